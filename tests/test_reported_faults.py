"""Faults that people reported in public, in many libraries, and that must not come back here.

Each test carries its source in its id: ``pytorch#41508`` is issue (or pull request) 41508 of
PyTorch, ``d2l-1.0.3`` was seen by running that release. True in a mask means "may attend", whatever
the convention of the source.
"""

import inspect

import numpy as np
import pytest
from comparing import needs_torch, no_nan_in_backward, uses_torch_func

import d2lmini
from d2lmini import (
    attention,
    bilinear_score,
    causal_mask,
    masked_softmax,
    padding_mask,
    scaled_dot_product_score,
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


@source("pytorch#41508", "pytorch#40932", "pytorch#26098", "pytorch#42323")
def test_a_query_without_keys_gets_zero_not_nan(xp):
    query, key, value = xp.zeros((1, 2, 4)), xp.zeros((1, 3, 4)), xp.ones((1, 3, 2))
    output, weights = attention(query, key, value, mask=xp.asarray([[T, T, T], [F, F, F]]))
    close(weights, [[[1 / 3] * 3, [0] * 3]])
    close(output, [[[1, 1], [0, 0]]])


@needs_torch
@source("pytorch#41508-gradients")
def test_a_query_without_keys_has_finite_gradients():
    import torch

    arrays = [torch.randn(1, n, 4, requires_grad=True) for n in (2, 3, 3)]
    with no_nan_in_backward():
        result = attention(*arrays, mask=torch.tensor([[T, T, T], [F, F, F]]))
        (result.output.sum() + result.weights[..., 0].sum()).backward()
    assert all(x.grad.isfinite().all() for x in arrays)


@source("pytorch#103963", "pytorch#103749", "pytorch#131060", "pytorch#133882")
def test_rows_of_false_are_exactly_zero(xp):
    x = normal(xp, 1, 1, 8, 8)
    mask = xp.arange(8)[:, None] < xp.full((1, 8), 4)
    output, weights = attention(x, x, x, mask=mask)
    assert not xp.any(output[..., 4:, :] != 0)
    assert not xp.any(weights[..., 4:, :] != 0)
    assert xp.all(output[..., :4, :] != 0)


@source("d2l-en#2423")
def test_a_sequence_of_length_zero_is_not_averaged(xp):
    weights = masked_softmax(normal(xp, 1, 1, 4), padding_mask(xp.asarray([0]), 4))
    assert weights.tolist() == [[[0, 0, 0, 0]]]


@source("allennlp#890", "allennlp#105")
def test_masked_scores_do_not_count_as_zero(xp):
    scores = xp.asarray([-5.0, -6.0, 9.0])
    close(masked_softmax(scores, xp.asarray([T, T, F])), [0.731, 0.269, 0])
    assert masked_softmax(xp.full((6,), 0.3423), xp.asarray([F] * 6)).tolist() == [0] * 6


@source("d2l-1.0.3-fill")
def test_scores_below_any_fill_value_still_win_over_padding(xp):
    scores = xp.asarray([[[-2e6, -3e6, 0.0]]])
    assert masked_softmax(scores, padding_mask(xp.asarray([2]), 3)).tolist() == [[[1, 0, 0]]]


@source("apex#1052", "apex#1105", "fairseq#3575", "TorchSharp#1135")
def test_a_mask_works_in_half_precision(xp):
    weights = masked_softmax(
        xp.asarray([[1.0, 2.0, 3.0]], dtype=xp.float16), xp.asarray([[T, T, F]])
    )
    assert weights.dtype == xp.float16
    close(weights, [[0.269, 0.731, 0]], tolerance=1e-3)
    assert weights[0, 2] == 0


@source("apex#93", "flax#982", "flax#1527")
def test_a_hidden_row_in_half_precision(xp):
    scores = xp.asarray([[1.0, 6e4, -6e4]], dtype=xp.float16)
    assert masked_softmax(scores, xp.asarray([[F, F, F]])).tolist() == [[0, 0, 0]]


@source("transformers#26572", "transformers#18057")
def test_two_masks_on_one_half_precision_row(xp):
    """Masks are combined with &, never added."""
    x = xp.asarray(normal(xp, 1, 3, 4), dtype=xp.float16)
    padding_first = xp.asarray([[[F, T, T]]])
    output, weights = attention(x, x, x, mask=padding_first, causal=True)
    assert output.dtype == xp.float16
    assert weights[0, 0, :].tolist() == [0, 0, 0]
    assert weights[0, 1, :].tolist() == [0, 1, 0]


@source("unsloth#9848", "transformers#26572-two-layers")
def test_padding_first_with_causal_stays_finite_through_two_layers(xp):
    x = normal(xp, 1, 3, 4)
    mask = xp.asarray([[[F, T, T]]])
    first = attention(x, x, x, mask=mask, causal=True)
    assert first.output[0, 0, :].tolist() == [0] * 4
    close(xp.sum(first.weights, axis=-1), [[0, 1, 1]])
    second = attention(first.output, first.output, first.output, mask=mask, causal=True)
    assert np.isfinite(second.output.tolist()).all()


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


@source("curated-transformers#360")
def test_a_piece_of_padding_alone_does_not_spoil_the_next_layer(xp):
    x = normal(xp, 2, 3, 4)
    mask = padding_mask(xp.asarray([3, 0]), 3)
    for _ in range(3):
        x = attention(x, x, x, mask=mask).output
    assert np.isfinite(x.tolist()).all()
    assert not xp.any(x[1, :, :] != 0)


@needs_torch
@source("mlx#2608", "rten#1321")
def test_zeros_are_what_others_settled_on():
    import torch

    x, mask = torch.randn(1, 1, 3, 4), torch.tensor([[T, F, T], [F, F, F], [T, T, T]])
    theirs = torch.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=mask)
    assert theirs[0, 0, 1].tolist() == [0] * 4
    assert torch.allclose(attention(x, x, x, mask=mask).output, theirs, atol=1e-6)


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


@source("LLMs-from-scratch#1061")
def test_our_causal_mask_hides_the_future(xp):
    x = normal(xp, 3, 4)
    weights = attention(x, x, x, mask=causal_mask(3, like=x)).weights
    assert weights[0, :].tolist() == [1, 0, 0]
    seen = [[w > 0 for w in row] for row in weights.tolist()]
    assert seen == [[T, F, F], [T, T, F], [T, T, T]]


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


@source("pytorch#117939", "pytorch#163026", "pytorch#21518")
def test_a_boolean_mask_is_not_added_to_the_scores(xp):
    weights = masked_softmax(xp.zeros((1, 1, 2)), xp.asarray([[[T, F]]]))
    assert weights.tolist() == [[[1, 0]]]  # adding 1 and 0 would give 0.731 and 0.269


@source("pytorch#136816", "pytorch#141018", "tsai#171")
def test_a_mask_of_ones_and_zeros_is_turned_away(xp):
    mask = xp.asarray([[1.0, 0.0]], dtype=xp.float32)
    words = r"mask must be boolean \(True = may attend\), got .*float32"
    with pytest.raises(TypeError, match=words):
        masked_softmax(xp.zeros((1, 2)), mask)
    with pytest.raises(TypeError, match=words):
        attention(xp.zeros((1, 2)), xp.zeros((2, 2)), xp.zeros((2, 2)), mask=mask)


@source("pytorch#92554")
def test_an_additive_mask_is_turned_away_not_ignored(xp):
    x = xp.zeros((2, 2))
    with pytest.raises(TypeError, match=r"mask must be boolean.*additive one as mask == 0"):
        attention(x, x, x, mask=xp.asarray([[0.0, -INF]]))
    output = attention(x, x, xp.asarray([[1.0], [5.0]]), mask=xp.asarray([[0.0, -INF]]) == 0).output
    assert output.tolist() == [[1], [1]]


@source("mlverse/torch#1205")
def test_a_padding_mask_of_floats_is_turned_away(xp):
    padding = xp.asarray(padding_mask(xp.asarray([1]), 2), dtype=xp.float32)
    with pytest.raises(TypeError, match="mask must be boolean"):
        attention(xp.zeros((1, 2, 2)), xp.zeros((1, 2, 2)), xp.zeros((1, 2, 2)), mask=padding)


@source("keras#23038", "keras#23040")
def test_the_weights_are_those_that_made_the_output(xp):
    x = normal(xp, 2, 4, 3)
    output, weights = attention(x, x, x, causal=True)
    close(weights @ x, output.tolist(), tolerance=1e-12)
    assert not xp.any(weights[:, 0, 1:] != 0)


@source("pytorch-2.13-causal-and-mask")
def test_causal_and_a_mask_together_mean_both(xp):
    x = normal(xp, 3, 4)
    mask = xp.asarray([[T, T, T], [F, T, T], [T, F, T]])
    weights = attention(x, x, x, mask=mask, causal=True).weights
    seen = [[w > 0 for w in row] for row in weights.tolist()]
    assert seen == [[T, F, F], [F, T, F], [T, F, T]]


# Causal alignment, shapes, broadcasting


@source("pytorch#103082", "pytorch#115111", "pytorch#144858", "pytorch#108108")
def test_one_new_token_sees_all_that_came_before(xp):
    assert causal_mask(1, 4, like=xp.zeros(0)).tolist() == [[T, T, T, T]]
    query, key = xp.zeros((1, 2)), xp.zeros((4, 2))
    weights = attention(query, key, key, causal=True).weights
    assert weights.tolist() == [[0.25] * 4]


@source("hyunwoongko/transformer#40", "hyunwoongko/transformer#32")
def test_padding_hides_columns_not_rows(xp):
    tokens = xp.asarray([[5, 7, 0, 0]])
    mask = padding_mask(xp.sum(xp.astype(tokens != 0, xp.int64), axis=-1), 4)
    assert tuple(mask.shape) == (1, 1, 4)
    x = normal(xp, 1, 4, 3)
    weights = attention(x, x, x, mask=mask).weights
    assert not xp.any(weights[..., 2:] != 0)
    assert xp.all(weights[..., :2] > 0)  # for every query, the padded ones too


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


@source("pytorch#193728")
def test_each_key_needs_one_value(xp):
    query, key, value = xp.zeros((1, 1, 2, 8)), xp.zeros((1, 1, 5, 8)), xp.zeros((1, 1, 6, 8))
    with pytest.raises(ValueError, match="5 keys and 6 values"):
        attention(query, key, value)


@source("pytorch#122959", "OmDet#19", "movie-gen#8")
def test_attention_runs_over_the_tokens_not_the_batch(xp):
    x = normal(xp, 2, 3, 4)
    assert tuple(attention(x, x, x).weights.shape) == (2, 3, 3)


@source("attention-is-all-you-need-pytorch#211")
def test_values_may_be_longer_than_keys(xp):
    output, weights = attention(normal(xp, 2, 3, 4), normal(xp, 2, 5, 4), normal(xp, 2, 5, 6))
    assert tuple(output.shape) == (2, 3, 6)
    assert tuple(weights.shape) == (2, 3, 5)


@source("pytorch#27623", "pytorch#41070", "pytorch#120793", "d2l-en#2056")
def test_queries_keys_and_values_may_all_differ_in_length(xp):
    matrix = normal(xp, 5, 7)
    result = attention(
        normal(xp, 2, 3, 5),
        normal(xp, 2, 6, 7),
        normal(xp, 2, 6, 4),
        score=lambda q, k: bilinear_score(q, k, matrix),
    )
    assert tuple(result.output.shape) == (2, 3, 4)


@source("x-transformers#174", "x-transformers#183")
def test_in_cross_attention_the_mask_is_that_of_the_keys(xp):
    query, key = normal(xp, 1, 2, 3), normal(xp, 1, 4, 3)
    weights = attention(query, key, key, mask=padding_mask(xp.asarray([3]), 4)).weights
    assert weights[0, :, 3].tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"\(1, 1, 2\) .* \(1, 2, 4\)"):
        attention(query, key, key, mask=padding_mask(xp.asarray([2]), 2))


@source("d2l-1.0.3-four-axes")
def test_masked_softmax_of_four_axes(xp):
    scores, mask = normal(xp, 2, 2, 3, 3), padding_mask(xp.asarray([1, 3]), 3)[:, None]
    weights = masked_softmax(scores, mask)
    close(xp.sum(weights, axis=-1), np.ones((2, 2, 3)))
    assert not xp.any(weights[0, :, :, 1:] != 0)


# Axis, scale, dtype, numerics


@source("labml#282", "labml#146")
def test_rows_sum_to_one_and_columns_do_not(xp):
    weights = softmax(normal(xp, 1, 2, 3))
    close(xp.sum(weights, axis=-1), np.ones((1, 2)))
    assert max(abs(total - 1) for total in xp.sum(weights, axis=-2)[0, :].tolist()) > 0.05


@source("PyTorch-NLP#2", "KEQA#2", "catalyst#285")
def test_one_query_of_one_item_does_not_weigh_all_keys_fully(xp):
    close(softmax(xp.asarray([[[0.0, 1.0]]])), [[[0.269, 0.731]]])


@source("attention-is-all-you-need-pytorch#52", "fastNLP#254")
def test_the_axis_is_the_last_one_whatever_the_number_of_axes(xp):
    for shape in [(3,), (2, 3), (1, 2, 3), (2, 2, 2, 3)]:
        close(xp.sum(softmax(normal(xp, *shape)), axis=-1), np.ones(shape[:-1]))


@source("ViT-CIFAR#11", "DL4Proteins#12", "set_transformer#18", "dfdx#171")
def test_the_scale_is_that_of_a_head_not_of_the_model(xp):
    """Four heads of a model with 64 dimensions have 16 each: scale 1/4, not 1/8."""
    heads = xp.ones((1, 4, 2, 16))
    assert scaled_dot_product_score(heads, heads).tolist() == [[[[4, 4], [4, 4]]] * 4]


@source("perceiver-io#9", "cntkx#10")
def test_the_scale_divides_by_the_root_of_d(xp):
    x = xp.asarray([[2.0, 0.0, 0.0, 0.0]])
    assert scaled_dot_product_score(x, x).tolist() == [[2]]


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


@source("pytorch#14224")
def test_integers_give_the_same_in_both_libraries(xp):
    scores = xp.asarray([1, 2, 3])
    for function in (softmax, masked_softmax):
        weights = function(scores)
        close(weights, [0.090, 0.245, 0.665])
        assert weights.dtype == xp.asarray(0.0).dtype


@source("pytorch#34060", "TabPFN#800", "unsloth#9708")
def test_a_batch_gives_what_its_items_give_up_to_rounding(xp):
    x = xp.asarray(normal(xp, 8, 5, 4), dtype=xp.float32)
    together = attention(x, x, x).output
    for i in range(8):
        item = x[i, :, :]
        close(attention(item, item, item).output, together[i, :, :].tolist(), tolerance=1e-6)


@needs_torch
@source("pytorch#133671")
def test_gradients_are_those_of_pytorchs_plain_implementation():
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    arrays = [torch.randn(2, n, 4, dtype=torch.float64, requires_grad=True) for n in (3, 5, 5)]
    assert torch.autograd.gradcheck(lambda *x: attention(*x).output, arrays)
    with sdpa_kernel(SDPBackend.MATH):
        theirs = torch.nn.functional.scaled_dot_product_attention(*arrays).square().sum()
    ours = attention(*arrays).output.square().sum()
    for mine, other in zip(*(torch.autograd.grad(y, arrays) for y in (ours, theirs)), strict=True):
        assert torch.allclose(mine, other, atol=1e-12)


# Derivatives, and inputs left alone


@needs_torch
@source("pytorch#116350", "pytorch#116348", "pytorch#117974", "learn2learn#429")
def test_gradients_of_gradients():
    import torch

    arrays = [torch.randn(n, 2, dtype=torch.float64, requires_grad=True) for n in (2, 3, 3)]
    mask = torch.tensor([[T, T, F], [F, F, F]])
    assert torch.autograd.gradgradcheck(lambda *x: attention(*x, mask=mask).output, arrays)


@needs_torch
@uses_torch_func
@source("pytorch#128971")
def test_forward_mode():
    import torch

    query, key, value = (torch.randn(n, 2, dtype=torch.float64) for n in (2, 3, 3))
    direction = torch.randn(2, 2, dtype=torch.float64)

    def output(q):
        return attention(q, key, value, causal=True).output

    _, tangent = torch.func.jvp(output, (query,), (direction,))
    step = 1e-6 * direction
    numeric = (output(query + step) - output(query - step)) / 2e-6
    assert torch.allclose(tangent, numeric, atol=1e-7)


@source("d2l-1.0.3-in-place")
def test_the_callers_scores_are_left_alone(xp):
    scores = xp.ones((1, 2, 3))
    masked_softmax(scores, padding_mask(xp.asarray([1]), 3))
    assert scores.tolist() == [[[1, 1, 1]] * 2]
