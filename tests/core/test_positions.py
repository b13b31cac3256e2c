"""sinusoidal_positions and rotary: where a token stands."""

import math

import numpy as np
import oracles
import pytest
from comparing import many, needs_torch
from hypothesis import given
from hypothesis import strategies as st

from d2lmini import dot_product_score, rotary, sinusoidal_positions

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


def test_an_odd_width_ends_with_a_sine(xp):
    table = np.asarray(sinusoidal_positions(4, 3, like=xp.zeros(0)))
    np.testing.assert_allclose(
        table[:, 2], [math.sin(t / 10_000 ** (2 / 3)) for t in range(4)], rtol=1e-6
    )


def test_the_kind_is_that_of_like(xp):
    for dtype in (xp.float64, xp.float32, xp.float16):
        assert sinusoidal_positions(3, 4, like=xp.zeros(1, dtype=dtype)).dtype == dtype
    assert (
        sinusoidal_positions(3, 4, like=xp.zeros(1, dtype=xp.int64)).dtype == xp.asarray(0.0).dtype
    )


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


def test_the_score_depends_on_the_distance_alone(xp):
    q, k = (xp.asarray(drawn(seed, 1, 6)) for seed in (1, 2))
    score = {
        (i, j): float(dot_product_score(rotary(q, start=i), rotary(k, start=j))[0, 0])
        for i in (0, 3, 500)
        for j in (0, 1, 7, 498)
    }
    assert score[3, 1] == pytest.approx(score[500, 498], abs=1e-12)
    assert abs(score[0, 0] - score[3, 0]) > 0.01  # and it does depend on that


def test_lengths_stay(xp):
    x = drawn(3, 2, 5, 4)
    turned = np.asarray(rotary(xp.asarray(x)))
    np.testing.assert_allclose(np.linalg.norm(turned, axis=-1), np.linalg.norm(x, axis=-1), **EXACT)
    np.testing.assert_allclose(turned[:, 0], x[:, 0], **EXACT)  # position 0 is not turned


def test_a_start_continues_the_sequence(xp):
    x = xp.asarray(drawn(4, 3, 6, 4))
    whole = np.asarray(rotary(x))
    np.testing.assert_allclose(rotary(x[:, 4:], start=4), whole[:, 4:], **EXACT)


def test_half_precision_is_rounded_once(xp):
    x = drawn(5, 300, 4).astype(np.float16)
    narrow = rotary(xp.asarray(x))
    assert narrow.dtype == xp.float16
    wide = rotary(x.astype(float))
    np.testing.assert_allclose(np.asarray(narrow).astype(float), wide, rtol=1e-3, atol=1e-3)


def test_the_input_stays_and_integers_count_as_floats(xp):
    x = xp.asarray([[1, 2], [3, 4]])
    turned = rotary(x)
    assert turned.dtype == xp.asarray(0.0).dtype
    assert x.tolist() == [[1, 2], [3, 4]]


@needs_torch
def test_gradients_turn_back():
    import torch

    x = torch.tensor(drawn(6, 3, 4), requires_grad=True)
    assert torch.autograd.gradcheck(rotary, (x,))


# Bad input


@pytest.mark.parametrize(
    "arguments, options, error, words",
    [
        ((-1, 4), {}, ValueError, "num_positions must be at least 0, got -1"),
        ((2, -4), {}, ValueError, "dim must be at least 0, got -4"),
        ((2.0, 4), {}, TypeError, "num_positions must be an integer"),
        ((2, 4), {"base": 0}, ValueError, "base must be positive"),
        ((2, 4), {"base": "large"}, TypeError, "base must be a number"),
        ((2, 4), {"like": [0.0]}, TypeError, "like must be a NumPy array or a PyTorch tensor"),
    ],
)
def test_bad_tables(arguments, options, error, words):
    with pytest.raises(error, match=words):
        sinusoidal_positions(*arguments, **{"like": np.zeros(0), **options})


@pytest.mark.parametrize(
    "x, options, error, words",
    [
        (np.zeros((2, 3)), {}, ValueError, "rotates pairs of components.*has 3, an odd number"),
        (np.zeros(4), {}, ValueError, r"x must have at least 2 axes.*x\[None, :\]"),
        ([[1.0, 2.0]], {}, TypeError, "x must be a NumPy array or a PyTorch tensor, got list"),
        (np.zeros((2, 4)), {"start": -1}, ValueError, "start must be at least 0, got -1"),
        (np.zeros((2, 4)), {"start": 0.5}, TypeError, "start must be an integer"),
        (np.zeros((2, 4)), {"base": -2}, ValueError, "base must be positive"),
    ],
)
def test_bad_turns(x, options, error, words):
    with pytest.raises(error, match=words):
        rotary(x, **options)
