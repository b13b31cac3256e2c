"""Faults that people reported in public, in many libraries, and that must not come back here.

Each test carries its source in its id: ``pytorch#41508`` is issue (or pull request) 41508 of
PyTorch, ``d2l-1.0.3`` was seen by running that release. True in a mask means "may attend", whatever
the convention of the source.
"""

import inspect

import numpy as np
import pytest
from comparing import needs_torch, no_nan_in_backward

import d2lmini
from d2lmini import (
    attention,
    masked_softmax,
    padding_mask,
    softmax,
)

T, F = True, False
INF, NAN = float("inf"), float("nan")


def source(*reports):
    """Give a test the reports that it stands for, as its id."""
    return pytest.mark.parametrize(
        "reported", [pytest.param(reports, id=",".join(reports))], indirect=True
    )


@pytest.fixture(autouse=True)
def reported(request):
    """See to it that each test names its source."""
    return request.param


def close(actual, expected, tolerance=5e-4):
    numbers = np.array(actual.tolist(), dtype=float)
    assert numbers.shape == np.shape(expected)
    np.testing.assert_allclose(numbers, expected, rtol=0, atol=tolerance)


def normal(xp, *shape, seed=0):
    return xp.asarray(np.random.default_rng(seed).standard_normal(shape))


# Rows without keys, fill values, NaN


@source("pytorch#101967")
def test_nan_in_a_hidden_value_comes_through_and_is_documented(xp):
    """0 · NaN is NaN, as in PyTorch: what is hidden must be finite, however huge."""
    query, key = normal(xp, 1, 2, 3), normal(xp, 1, 2, 3)
    value, mask = xp.ones((1, 2, 2)), xp.asarray([[T, F], [T, F]])
    value[0, 1, 0] = NAN
    output = attention(query, key, value, mask=mask).output
    assert np.isnan(output.tolist()).tolist() == [[[T, F], [T, F]]]
    value[0, 1, 0] = 1e30
    close(attention(query, key, value, mask=mask).output, np.ones((1, 2, 2)))
    assert "must still be finite" in inspect.getdoc(attention)


@needs_torch
@source("tensorflow#11756")
def test_the_gradient_of_a_hidden_score_is_zero():
    import torch

    scores = torch.ones(5, requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([T, F, T, T, T]))
    (gradient,) = torch.autograd.grad(weights[0], scores)
    close(gradient, [0.1875, 0, -0.0625, -0.0625, -0.0625])


@needs_torch
@source("pytorch#31829")
def test_the_gradient_at_minus_infinity_is_zero():
    import torch

    scores = torch.tensor([-INF, -INF], requires_grad=True)
    with no_nan_in_backward():
        masked_softmax(scores).sum().backward()
    assert scores.grad.tolist() == [0, 0]


# Polarity and kinds of masks


@needs_torch
@source("pytorch#170415", "pytorch#170400", "pytorch#120668")
def test_true_means_what_it_means_in_sdpa_and_the_opposite_of_multihead_attention():
    import torch

    x, mask = torch.randn(1, 3, 4), torch.tensor([[T, F, F], [T, T, F], [F, T, T]])
    ours = attention(x, x, x, mask=mask)
    sdpa = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    assert torch.allclose(ours.output, sdpa, atol=1e-6)
    layer = torch.nn.MultiheadAttention(4, 1, bias=False, batch_first=True)
    with torch.no_grad():  # projections that change nothing
        layer.in_proj_weight.copy_(torch.eye(4).repeat(3, 1))
        layer.out_proj.weight.copy_(torch.eye(4))
    output, weights = layer(x, x, x, attn_mask=~mask)
    assert torch.allclose(ours.output, output, atol=1e-6)
    assert torch.allclose(ours.weights, weights, atol=1e-6)


@pytest.mark.parametrize("name", ["masked_softmax", "attention", "causal_mask", "padding_mask"])
@source("x-transformers#164", "equinox#463")
def test_every_docstring_with_a_mask_says_what_true_means(name):
    assert "True = may attend" in inspect.getdoc(getattr(d2lmini, name))


@source("pytorch#92554")
def test_an_additive_mask_is_turned_away_not_ignored(xp):
    x = xp.zeros((2, 2))
    with pytest.raises(TypeError, match=r"mask must be boolean.*additive one as mask == 0"):
        attention(x, x, x, mask=xp.asarray([[0.0, -INF]]))
    output = attention(x, x, xp.asarray([[1.0], [5.0]]), mask=xp.asarray([[0.0, -INF]]) == 0).output
    assert output.tolist() == [[1], [1]]


# Causal alignment, shapes, broadcasting


@source("pytorch#120810", "xformers#1089")
def test_a_mask_per_batch_must_not_pass_as_one_per_query(xp):
    """A 2-D mask is always (n, m); where batch = n no check could tell: use padding_mask."""
    query, key = xp.zeros((2, 3, 4)), xp.zeros((2, 5, 4))
    with pytest.raises(ValueError, match=r"\(2, 5\) .* \(2, 3, 5\).*padding_mask\(lengths, 5\)"):
        attention(query, key, key, mask=xp.ones((2, 5), dtype=xp.bool))
    query, key = xp.zeros((3, 3, 4)), xp.zeros((3, 5, 4))
    per_query = xp.arange(5)[None, :] < xp.asarray([1, 3, 5])[:, None]
    per_item = padding_mask(xp.asarray([1, 3, 5]), 5)
    by_query = attention(query, key, key, mask=per_query).weights
    by_item = attention(query, key, key, mask=per_item).weights
    assert (by_query[0, :, 4] > 0).tolist() == [F, F, T]
    assert (by_item[:, 0, 4] > 0).tolist() == [F, F, T]


# Axis, scale, dtype, numerics


@source("ultralytics#24990", "Paddle#41933", "pytorch#60939")
def test_half_precision_does_not_overflow_before_scaling(xp):
    query = xp.full((1, 64), 32.0, dtype=xp.float16)
    key = query * xp.asarray([[1.0], [0.5]], dtype=xp.float16)
    value = xp.asarray([[1.0], [2.0]], dtype=xp.float16)
    assert attention(query, key, value).output.tolist() == [[1]]


@source("pytorch-2.13-infinite-scores")
def test_an_infinite_score_gives_nan_and_is_documented(xp):
    with np.errstate(invalid="ignore"):
        weights = softmax(xp.asarray([INF, 0.0]))
    assert np.isnan(weights.tolist()).all()
    assert "+inf" in inspect.getdoc(softmax)


# Derivatives, and inputs left alone


@needs_torch
@source("pytorch#116350", "pytorch#116348", "pytorch#117974", "learn2learn#429")
def test_gradients_of_gradients():
    import torch

    arrays = [torch.randn(n, 2, dtype=torch.float64, requires_grad=True) for n in (2, 3, 3)]
    mask = torch.tensor([[T, T, F], [F, F, F]])
    assert torch.autograd.gradgradcheck(lambda *x: attention(*x, mask=mask).output, arrays)


@source("d2l-1.0.3-in-place")
def test_the_callers_scores_are_left_alone(xp):
    scores = xp.ones((1, 2, 3))
    masked_softmax(scores, padding_mask(xp.asarray([1]), 3))
    assert scores.tolist() == [[[1, 1, 1]] * 2]
