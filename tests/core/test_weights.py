"""softmax and masked_softmax: weights from scores."""

import numpy as np
import oracles
import pytest
from comparing import assert_close, dtype_name, each_dtype, many, no_nan_in_backward, random
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from d2lmini import masked_softmax, softmax

INF, NAN = float("inf"), float("nan")
SHAPES = hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4)


@st.composite
def scores_and_mask(draw):
    """Scores of any size and shape, and a mask that broadcasts to them."""
    shape = draw(SHAPES)
    numbers = draw(hnp.arrays(np.float64, shape, elements=st.floats(-1e6, 1e6)))
    mask_shape = tuple(draw(st.sampled_from([1, side])) for side in shape)
    mask_shape = mask_shape[draw(st.integers(0, len(shape))) :]
    return numbers, draw(hnp.arrays(np.bool_, mask_shape))


# softmax


@each_dtype
@pytest.mark.parametrize("axis", [-1, 0, 1, -3])
def test_softmax_is_the_definition_along_its_axis(xp, dtype, axis):
    scores = 3 * random(xp, 0, 2, 3, 4, dtype=dtype)
    weights = softmax(scores, axis=axis)
    last = np.moveaxis(oracles.floats(scores), axis, -1)
    expected = np.moveaxis(oracles.masked_softmax(last), -1, axis)
    assert dtype_name(weights) == dtype
    assert_close(weights, expected)


@many
@given(numbers=hnp.arrays(np.float64, SHAPES, elements=st.floats(-1e6, 1e6)))
def test_softmax_of_any_scores(xp, numbers):
    weights = softmax(xp.asarray(numbers))
    assert_close(weights, oracles.masked_softmax(numbers))


@pytest.mark.parametrize(
    "row, expected",
    [
        ([1002.0, 1000.0, 1000.0], [0.787, 0.107, 0.107]),
        ([1e308, -1e308], [1, 0]),  # their difference does not fit float64
        ([0.0, -INF], [1, 0]),
    ],
)
def test_softmax_does_not_overflow(xp, row, expected):
    weights = softmax(xp.asarray(row, dtype=xp.float64))
    np.testing.assert_allclose(np.array(weights.tolist()), expected, atol=5e-4)


@pytest.mark.parametrize("shape, axis", [((4096, 2), 0), ((70_000,), -1)])
def test_float16_weights_of_many_keys_sum_to_one(xp, shape, axis):
    """A float16 sum of ones stalls at 2048 and overflows at 65520."""
    weights = softmax(xp.zeros(shape, dtype=xp.float16), axis=axis)
    total = xp.sum(xp.astype(weights, xp.float64), axis=axis)
    np.testing.assert_allclose(np.array(total.tolist()), 1.0, rtol=5e-3)


@pytest.mark.parametrize("row", [[NAN, 1.0], [INF, 0.0], [-INF, -INF]])
def test_softmax_without_an_answer_is_nan(xp, row):
    with np.errstate(invalid="ignore"):  # NumPy warns of it, as everywhere
        weights = softmax(xp.asarray([row, [0.0, 0.0]]))
    assert np.isnan(weights[0, :].tolist()).all()
    assert weights[1, :].tolist() == [0.5, 0.5]  # the other rows do not suffer


# masked_softmax


@each_dtype
def test_masked_softmax_is_the_definition(xp, dtype):
    """One query sees nothing; the scores stay as they are."""
    scores = 3 * random(xp, 1, 2, 3, 5, dtype=dtype)
    before, mask = scores.tolist(), random(xp, 2, 2, 3, 5) > 0
    mask[0, 1] = False
    weights = masked_softmax(scores, mask)
    assert dtype_name(weights) == dtype
    assert_close(weights, oracles.masked_softmax(scores, mask))
    assert scores.tolist() == before


@many
@given(drawn=scores_and_mask())
def test_masked_softmax_of_any_scores_and_mask(xp, drawn):
    numbers, mask = drawn
    weights = masked_softmax(xp.asarray(numbers), xp.asarray(mask))
    assert_close(weights, oracles.masked_softmax(numbers, mask))


def test_masked_softmax_along_another_axis(xp):
    scores, mask = random(xp, 3, 4, 3), random(xp, 4, 4, 3) > 0
    mask[:, 1], mask[2, :] = False, False  # a column without keys, and a row
    expected = oracles.masked_softmax(scores.mT, mask.mT).T
    assert_close(masked_softmax(scores, mask, axis=0), expected)


@each_dtype
def test_hidden_weights_are_zero_whatever_the_score(xp, dtype):
    """Also where what is visible is far below any constant that one could fill in."""
    largest = 6e4 if dtype == "float16" else 1e30
    row = [-largest, -largest, largest, NAN, INF]
    scores = xp.asarray([row], dtype=getattr(xp, dtype))
    mask = xp.asarray([[True, True, False, False, False]])
    assert masked_softmax(scores, mask).tolist() == [[0.5, 0.5, 0, 0, 0]]


def test_a_score_of_minus_infinity_is_hidden_and_a_visible_nan_passes_on(xp):
    weights = masked_softmax(xp.asarray([[0.0, -INF], [-INF, -INF], [NAN, 0.0]]))
    assert weights[:2, :].tolist() == [[1, 0], [0, 0]]
    assert np.isnan(weights[2, :].tolist()).all()


# Gradients


def test_gradients_are_zero_without_keys_and_at_what_is_hidden(torch):
    scores = torch.tensor([[1.0, NAN, INF], [1.0, 2.0, 3.0], [-INF] * 3], requires_grad=True)
    mask = torch.tensor([[False, False, False], [True, True, False], [True, True, True]])
    with no_nan_in_backward():
        masked_softmax(scores, mask)[:, 0].sum().backward()
    assert scores.grad.isfinite().all()
    assert not scores.grad[0].any() and not scores.grad[2].any()
    assert scores.grad[1, 2] == 0
