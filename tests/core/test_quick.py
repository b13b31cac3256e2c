"""The quick twin beside the plain formula, which another score, though the same, leads to."""

import numpy as np
import pytest
from comparing import TOLERANCE, each_dtype, random

from d2lmini import attention, scaled_dot_product_score, tiled_attention

MASKS = {
    "nothing": None,
    "some keys": lambda n, m: np.random.default_rng(3).random((2, n, m)) < 0.5,
    "a row": lambda n, m: np.arange(n)[:, None] != 1 + np.zeros(m, dtype=int),
    "all": lambda n, m: np.zeros((m,), dtype=bool),
}


def plainly(query, key, value, **options):
    """Return attention by the formula: only the library's own score has a quick twin."""
    scale = options.pop("scale", None)
    score = lambda q, k: scaled_dot_product_score(q, k, scale=scale)  # noqa: E731
    return attention(query, key, value, score=score, **options)


def inputs(xp, n, m, dtype="float64", size=1.0):
    shapes = (2, n, 4), (2, m, 4), (2, m, 3)
    return [size * random(xp, i, *shape, dtype=dtype) for i, shape in enumerate(shapes)]


def assert_twins(given, dtype, **options):
    one, other = attention(*given, **options), plainly(*given, **options)
    for a, b in zip(one, other, strict=True):
        assert a.dtype == b.dtype
        a, b = (np.array(x.tolist(), dtype=float) for x in (a, b))
        np.testing.assert_allclose(a, b, rtol=4 * TOLERANCE[dtype], atol=2 * TOLERANCE[dtype])
    return one


@each_dtype
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_twins(xp, dtype, mask, causal, biased):
    for n, m in [(3, 5), (5, 3), (1, 4), (3, 0), (0, 3)]:
        options = {"causal": causal, "scale": 0.7}
        if mask is not None:
            options["mask"] = xp.asarray(mask(n, m))
        if biased:
            options["bias"] = random(xp, 5, n, m, dtype=dtype)
        assert_twins(inputs(xp, n, m, dtype), dtype, **options)


@each_dtype
def test_twins_where_scores_overflow(xp, dtype):
    """A score of -inf hides its key, and a row of them is a query without keys."""
    large = {"float16": 300.0, "bfloat16": 3e19, "float32": 3e19, "float64": 3e154}[dtype]
    query, key, value = inputs(xp, 3, 5, dtype)
    key = xp.concat([key[:, :2], 0 * key[:, 2:] - large], axis=1)
    query = 0 * query + large
    weights = assert_twins((query, key, value), dtype).weights
    assert not xp.any(weights[..., 2:]) and xp.any(weights)
    assert not xp.any(assert_twins((query, key[:, 2:], value[:, 2:]), dtype).weights)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("size", [0.1, 30.0])
def test_twins_in_tiles(causal, masked, biased, size):
    """Scores near 0 and far from it; NumPy takes its own way, PyTorch in blocks the plain one."""
    torch = pytest.importorskip("torch")
    for n, m in [(300, 700), (700, 300), (520, 520)]:
        given = inputs(np, n, m, size=size)
        options = {"causal": causal, "scale": 0.3, "block_size": None}
        if masked:
            options["mask"] = MASKS["some keys"](n, m)
        if biased:
            options["bias"] = random(np, 5, n, m)
        quick = tiled_attention(*given, **options)
        arrays = (torch.as_tensor(x) for x in given)
        options = {
            name: torch.as_tensor(x) if isinstance(x, np.ndarray) else x
            for name, x in options.items()
        }
        plain = tiled_attention(*arrays, **{**options, "block_size": 256})
        np.testing.assert_allclose(quick, plain.numpy(), rtol=1e-10, atol=1e-12 * size)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("learned", [(0,), (1,), (2,), (0, 1, 2)])
def test_gradients_of_twins(torch, mask, learned):
    slopes = []
    for function in (attention, plainly):
        given = inputs(torch, 3, 5)
        for i in learned:
            given[i].requires_grad_()
        seen = None if mask is None else torch.as_tensor(mask(3, 5))
        output, weights = function(*given, mask=seen)
        total = output.square().sum() + weights.sin().sum()
        leaves = [given[i] for i in learned]
        slopes.append(torch.autograd.grad(total, leaves) if total.requires_grad else ())
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("recorded", [False, True])
def test_large_weights_are_ordinary_tensors(torch, recorded):
    query = torch.zeros(1200, 4, requires_grad=recorded)
    output, weights = attention(query, query, query, mask=torch.ones(1200, dtype=torch.bool))
    assert weights.nbytes > 2**22
    assert weights.untyped_storage().resizable()
    assert weights.data_ptr() % 64 == 0
    assert weights.detach().sum(-1).allclose(torch.ones(1200))
    assert not output.any()
