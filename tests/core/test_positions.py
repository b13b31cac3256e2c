"""sinusoidal_positions and rotary: where a token stands."""

import math

import numpy as np
import oracles
from comparing import many
from hypothesis import given
from hypothesis import strategies as st

from d2lmini import rotary, sinusoidal_positions

EXACT = {"rtol": 1e-12, "atol": 1e-12}


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


# Sinusoidal


@many
@given(n=st.integers(0, 9), dim=st.integers(0, 9), base=st.sampled_from([2.0, 100.0, 10_000.0]))
def test_each_entry_is_that_of_the_definition(n, dim, base):
    table = sinusoidal_positions(n, dim, like=np.zeros(0), base=base)
    expected = np.array(oracles.sinusoidal_positions(n, dim, base)).reshape(n, dim)
    np.testing.assert_allclose(table, expected, **EXACT)


def test_the_kind_is_that_of_like(xp):
    for dtype in (xp.float64, xp.float32, xp.float16):
        assert sinusoidal_positions(3, 4, like=xp.zeros(1, dtype=dtype)).dtype == dtype
    default = sinusoidal_positions(3, 4, like=xp.zeros(1, dtype=xp.int64)).dtype
    assert default == xp.asarray(0.0).dtype


def test_far_positions_are_as_exact_as_near_ones(xp):
    table = np.asarray(sinusoidal_positions(1_000_001, 2, like=xp.zeros(0, dtype=xp.float32))[-1])
    np.testing.assert_allclose(table, [math.sin(1e6), math.cos(1e6)], rtol=1e-6)


# Rotary


@many
@given(
    n=st.integers(0, 5),
    half=st.integers(0, 4),
    start=st.integers(0, 50),
    base=st.sampled_from([2.0, 10_000.0, 100_000.0]),
)
def test_each_pair_is_turned_as_in_the_definition(n, half, start, base):
    x = drawn(0, 2, n, 2 * half)
    expected = np.array([oracles.rotary(each.tolist(), start, base) for each in x]).reshape(x.shape)
    np.testing.assert_allclose(rotary(x, start=start, base=base), expected, **EXACT)


def test_half_precision_is_rounded_once(xp):
    x = drawn(5, 300, 4).astype(np.float16)
    narrow = rotary(xp.asarray(x))
    assert narrow.dtype == xp.float16
    wide = rotary(x.astype(float))
    np.testing.assert_allclose(np.asarray(narrow).astype(float), wide, rtol=1e-3, atol=1e-3)


def test_the_input_stays_and_integers_count_as_floats(xp):
    x = xp.asarray([[1, 2], [3, 4]])
    assert rotary(x).dtype == xp.asarray(0.0).dtype
    assert x.tolist() == [[1, 2], [3, 4]]
