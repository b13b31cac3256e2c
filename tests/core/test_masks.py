"""causal_mask, sliding_window_mask and padding_mask: who may attend to whom."""

import functools
import tracemalloc

import numpy as np
import oracles
import pytest
from comparing import many
from hypothesis import given
from hypothesis import strategies as st

from d2lmini import causal_mask, padding_mask, sliding_window_mask

SIDES = st.integers(0, 7)


def as_rows(mask):
    """Return a mask as text, x where a query may attend."""
    return ["".join("x" if may else "." for may in row) for row in mask.tolist()]


# Causal


@pytest.mark.parametrize(
    "n, m, expected",
    [
        (3, 3, ["x..", "xx.", "xxx"]),
        (2, 4, ["xxx.", "xxxx"]),  # the last two of four positions
        (1, 4, ["xxxx"]),  # decoding one token: it sees all that came before
        (4, 2, ["..", "..", "x.", "xx"]),  # the first two queries precede every key
        (2, 0, ["", ""]),
        (0, 2, []),
    ],
)
def test_the_last_query_sees_every_key_and_no_query_sees_later_ones(xp, n, m, expected):
    mask = causal_mask(n, m, like=xp.zeros(0))
    assert mask.dtype == xp.bool
    assert tuple(mask.shape) == (n, m)
    assert as_rows(mask) == expected


# Sliding window


@many
@given(n=SIDES, m=SIDES, window=st.integers(1, 9), sinks=st.integers(0, 9))
def test_sliding_window_mask_of_any_size(xp, n, m, window, sinks):
    def may(i, j):
        return oracles.sliding_window(i, j, n, m, window) or (
            j < sinks and oracles.causal(i, j, n, m)
        )

    mask = sliding_window_mask(n, m, window=window, sinks=sinks, like=xp.zeros(0))
    assert mask.dtype == xp.bool
    assert mask.tolist() == oracles.mask_of(may, n, m).tolist()
    earlier = oracles.mask_of(lambda i, j: oracles.causal(i, j, n, m), n, m)
    assert causal_mask(n, m, like=xp.zeros(0)).tolist() == earlier.tolist()


@pytest.mark.parametrize("far", [2**31, 2**53 + 1, 2**64])
def test_a_window_beyond_every_array_hides_nothing(far):
    for wide in ({"window": far}, {"window": 1, "sinks": far}):
        assert (sliding_window_mask(2, 99, **wide) == causal_mask(2, 99)).all()
    mask = sliding_window_mask(2, 99, window=far, causal=False)
    assert mask.all() and isinstance(mask, np.ndarray)  # without like masks are NumPy's


# Padding


def test_padding_comes_last_and_has_an_axis_for_the_queries(xp):
    mask = padding_mask(xp.asarray([2, 0, 3]), 3)
    assert mask.dtype == xp.bool
    assert tuple(mask.shape) == (3, 1, 3)
    assert as_rows(mask[:, 0, :]) == ["xx.", "...", "xxx"]


INTEGERS = ["int8", "uint8", "int32", "int64", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_lengths_of_any_integer_dtype(xp, dtype):
    """PyTorch does not compare wide unsigned ones with int64 itself."""
    mask = padding_mask(xp.asarray([100, 0], dtype=getattr(xp, dtype)), 300)
    assert xp.sum(xp.astype(mask, xp.int64), axis=-1).tolist() == [[100], [0]]


# Memory: long sequences have many pairs of tokens


def test_no_mask_takes_more_than_a_few_bytes_for_each_pair():
    n, like = 500, np.zeros(0)
    for make in (causal_mask, functools.partial(sliding_window_mask, window=3)):
        tracemalloc.start()
        make(n, like=like)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 4 * n * n, f"{peak / n / n} bytes for a pair; a number would be 8, True is 1"


def test_no_tensor_takes_more_than_one_byte_for_each_pair(torch):
    from torch.utils._python_dispatch import TorchDispatchMode

    class Watched(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            sizes.append(result.numel() * result.element_size())
            return result

    n, like, sizes = 100, torch.zeros(0), []
    with Watched():
        mask = causal_mask(n, like=like) & sliding_window_mask(n, window=3, like=like)
    assert mask.numel() == max(sizes) == n * n


# Where PyTorch runs a function before there are numbers


def test_lengths_within_vmap_and_masks_without_numbers(torch):
    lengths = torch.tensor([[1, 3], [0, 2]])
    masks = torch.func.vmap(lambda some: padding_mask(some, 3))(lengths)
    assert torch.equal(masks, torch.stack([padding_mask(some, 3) for some in lengths]))
    elsewhere = torch.zeros(0, device="meta")
    mask = padding_mask(lengths[0].to("meta"), 3)
    assert (mask.device.type, tuple(mask.shape), mask.dtype) == ("meta", (2, 1, 3), torch.bool)
    assert causal_mask(2, 3, like=elsewhere).device.type == "meta"
    assert sliding_window_mask(2, window=1, like=elsewhere).device.type == "meta"


def test_masks_compile_once_for_all_sizes(torch):
    def masks(lengths, x):
        m = x.shape[0]
        return (
            padding_mask(lengths, m)
            & causal_mask(m, like=x)
            & sliding_window_mask(m, window=2, like=x)
        )

    torch.compiler.reset()
    compiled = torch.compile(masks, backend="eager", fullgraph=True)
    lengths = torch.tensor([1, 2])
    for m in range(2, 15):  # more sizes than PyTorch compiles one function for
        assert torch.equal(compiled(lengths, torch.zeros(m)), masks(lengths, torch.zeros(m)))
