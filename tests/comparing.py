"""How the tests compare: tolerances for each dtype, and the decorators that spread a test out."""

import contextlib
import functools
import importlib.util
import os
import re
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from d2lmini import attention, tiled_attention

# Where torch is required (in CI) a test that needs it fails without it, instead of being skipped.
TORCH = bool(
    os.environ.get("CI") or os.environ.get("REQUIRE_TORCH") or importlib.util.find_spec("torch")
)
needs_torch = pytest.mark.skipif(not TORCH, reason="needs PyTorch")

# torch.func itself uses what torch has deprecated.
uses_torch_func = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")

# About four roundings of numbers of size 1.
TOLERANCE = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-6, "float64": 1e-14}

each_dtype = pytest.mark.parametrize(
    "xp, dtype",
    [("numpy", name) for name in TOLERANCE if name != "bfloat16"]
    + [("torch", name) for name in TOLERANCE if TORCH],
    indirect=["xp"],
)

# What is asked of exact attention is asked of each way to compute it.
WAYS = {
    "attention": attention,
    "tiled": tiled_attention,
    "tiles of 2": functools.partial(tiled_attention, block_size=2),
}
each_way = pytest.mark.parametrize("attend", WAYS.values(), ids=WAYS)


def output_of(result):
    """Return the output, where weights may come with it."""
    return result.output if isinstance(result, tuple) else result


# For tests over many inputs, drawn by hypothesis: the same ones in every run.
many = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def dtype_name(x):
    """Return ``float32`` for NumPy's and PyTorch's alike."""
    return str(x.dtype).removeprefix("torch.")


def assert_close(actual, expected, *, scale=1.0):
    """Compare an array with an oracle's, as closely as its dtype allows; ``scale``: their size."""
    assert tuple(actual.shape) == np.shape(expected)
    numbers = np.array(actual.tolist(), dtype=np.float64).reshape(tuple(actual.shape))
    tolerance = TOLERANCE[dtype_name(actual)]
    np.testing.assert_allclose(numbers, expected, rtol=4 * tolerance, atol=tolerance * scale)


def random(xp, seed, *shape, dtype="float64"):
    """Return standard normal numbers; the same ones for every namespace."""
    numbers = np.random.default_rng(seed).standard_normal(shape)
    return xp.asarray(numbers, dtype=getattr(xp, dtype))


def in_words(words):
    """Return the pattern of an error's words, in which … stands for any others."""
    return ".*".join(re.escape(part.strip()) for part in words.split("…"))


@contextlib.contextmanager
def no_nan_in_backward():
    """Fail if any step of a backward pass makes a NaN, even one that does not reach the inputs."""
    import torch

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Anomaly Detection has been enabled")
        with torch.autograd.detect_anomaly(check_nan=True):
            yield
