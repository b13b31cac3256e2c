"""causal_mask, sliding_window_mask and padding_mask: who may attend to whom."""

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


# Causal, and within a window


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
    every = causal_mask(n, m, like=xp.zeros(0))
    assert every.dtype == xp.bool and every.tolist() == earlier.tolist()


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


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
def test_lengths_of_any_integer_dtype(xp, dtype):
    """PyTorch does not compare wide unsigned ones with int64 itself."""
    mask = padding_mask(xp.asarray([100, 0], dtype=getattr(xp, dtype)), 300)
    assert xp.sum(xp.astype(mask, xp.int64), axis=-1).tolist() == [[100], [0]]


# Where PyTorch runs a function before there are numbers


def test_lengths_within_vmap_and_masks_without_numbers(torch):
    lengths = torch.tensor([[1, 3], [0, 2]])
    masks = torch.func.vmap(lambda some: padding_mask(some, 3))(lengths)
    assert torch.equal(masks, torch.stack([padding_mask(some, 3) for some in lengths]))
    assert padding_mask(lengths[0].to("meta"), 3).device.type == "meta"
    elsewhere = torch.zeros(0, device="meta")
    assert sliding_window_mask(2, window=1, like=elsewhere).device.type == "meta"
