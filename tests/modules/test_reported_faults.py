"""Faults that people reported of layers with several heads, of training mode and of derivatives.

As in ``tests/test_reported_faults.py``: each test carries its source in its id, and True in a mask
means "may attend", whatever the convention of the source.
"""

import functools
import inspect
import warnings

import pytest

torch = pytest.importorskip("torch")

from comparing import no_nan_in_backward, uses_torch_func  # noqa: E402
from torch import nn  # noqa: E402
from torch.testing import assert_close  # noqa: E402

from d2lmini import (  # noqa: E402
    AdditiveAttention,
    KeyValueCache,
    MultiHeadAttention,
    SelfAttention,
    attention,
    merge_heads,
    multi_head_attention,
    padding_mask,
    split_heads,
)

T, F = True, False
EXACT = {"rtol": 1e-12, "atol": 1e-12}
either_path = pytest.mark.parametrize("need_weights", [False, True], ids=["fused", "weights"])
each_mode = pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])


def source(*reports):
    """Give a test the reports that it stands for, as its id."""
    return pytest.mark.parametrize(
        "reported", [pytest.param(reports, id=",".join(reports))], indirect=True
    )


@pytest.fixture(autouse=True)
def reported(request):
    """See to it that each test names its source."""
    return request.param


def layer(*sizes, **options):
    return MultiHeadAttention(*(sizes or (8, 2)), **options).double()


def sequence(*shape):
    return torch.randn(*(shape or (2, 3, 8)), dtype=torch.float64)


# Rows without keys


@source("pytorch#41508-layer", "pytorch#40932-layer")
@either_path
@each_mode
def test_a_layer_gives_zero_and_finite_gradients_without_keys(need_weights, training):
    attend, x = layer().train(training), sequence(1, 2, 8).requires_grad_()
    mask = torch.tensor([[T, T], [F, F]])
    with no_nan_in_backward():
        output, weights = attend(x, mask=mask, need_weights=need_weights)
        output.sum().backward()
    assert not output[0, 1].any()
    assert torch.isfinite(x.grad).all()
    assert all(torch.isfinite(p.grad).all() for p in attend.parameters())
    if need_weights:
        assert weights[0, :, 1].tolist() == [[0, 0], [0, 0]]


@source("pytorch#152028", "pytorch#189045")
@either_path
def test_rows_without_keys_are_zero_with_dropout_too(need_weights):
    attend, x = layer(dropout=0.5), sequence()
    mask = padding_mask(torch.tensor([0, 3]), 3)
    for training in (True, False):
        output, weights = attend.train(training)(x, mask=mask, need_weights=need_weights)
        assert not output[0].any()
        assert torch.isfinite(output).all()
        assert weights is None or not weights[0].any()


@source("pytorch#107084", "pytorch#86120")
@each_mode
@either_path
@pytest.mark.parametrize("grad", [True, False], ids=["grad", "no_grad"])
def test_padding_alone_gives_zeros_on_every_path(training, need_weights, grad):
    attend, x = layer().train(training), sequence()
    mask = padding_mask(torch.tensor([3, 0]), 3)
    with torch.set_grad_enabled(grad):
        output = attend(x, mask=mask, need_weights=need_weights).output
    assert not output[1].any()
    assert_close(output[0], attend(x[0]).output, **EXACT)


@source("unsloth#9848-layers", "transformers#26572-layers")
@either_path
def test_padding_first_with_causal_stays_finite_through_two_layers(need_weights):
    first, second, x = layer(), layer(), sequence(1, 3, 8)
    mask = padding_mask(torch.tensor([2]), 3).flip(-1)
    options = {"mask": mask, "causal": True, "need_weights": need_weights}
    output = second(first(x, **options).output, **options).output
    assert not output[0, 0].any()
    alone = x[:, 1:]
    for attend in (first, second):
        alone = attend(alone, causal=True).output
    assert_close(output[:, 1:], alone, **EXACT)


# Polarity and kinds of masks


@source("pytorch#170415-layer", "pytorch#120668-layer")
@either_path
def test_from_torch_needs_the_opposite_mask(need_weights):
    theirs = nn.MultiheadAttention(8, 2, batch_first=True, dtype=torch.float64)
    x = sequence()
    hidden = torch.tensor([[F, T, F], [F, F, T]])  # their convention
    ours = MultiHeadAttention.from_torch(theirs)
    expected, _ = theirs(x, x, x, key_padding_mask=hidden)
    output, _ = ours(x, mask=~hidden[:, None, :], need_weights=need_weights)
    assert_close(output, expected, **EXACT)


EYE = torch.eye(4, dtype=torch.float64)


def identity(module):
    """Return the module with projections that change nothing."""
    for linear in module.modules():
        if isinstance(linear, nn.Linear) and linear.weight.shape[0] > 1:
            nn.init.eye_(linear.weight)
    return module.double()


def with_module(module, **options):
    return lambda x, mask: module(x, mask=mask, **options).output


ONE_HEAD = identity(MultiHeadAttention(4, 1))
ALL = {
    "attention": lambda x, mask: attention(x, x, x, mask=mask).output,
    "multi_head_attention": lambda x, mask: (
        multi_head_attention(x, x, x, EYE, EYE, EYE, EYE, num_heads=1, mask=mask).output
    ),
    "MultiHeadAttention": with_module(ONE_HEAD),
    "MultiHeadAttention, weights": with_module(ONE_HEAD, need_weights=True),
    "SelfAttention": with_module(identity(SelfAttention(4))),
    "AdditiveAttention": lambda x, mask: (
        identity(AdditiveAttention(4, 4, 4))(x, x, x, mask=mask).output
    ),
}


@source("TransformerEngine#614")
@pytest.mark.parametrize("function", ALL.values(), ids=ALL)
def test_true_means_the_same_everywhere(function):
    x = sequence(1, 3, 4)
    only_the_second = torch.tensor([F, T, F]).expand(3, 3)
    assert_close(function(x, only_the_second), x[:, 1:2].expand(1, 3, 4), **EXACT)


@source("x-transformers#164-layers", "equinox#463-layers")
@pytest.mark.parametrize(
    "documented",
    [multi_head_attention, MultiHeadAttention.forward, AdditiveAttention.forward],
    ids=lambda function: function.__qualname__,
)
def test_every_mask_argument_says_what_true_means(documented):
    assert "True = may attend" in inspect.getdoc(documented)


@source("pytorch#136816-layer", "pytorch#107084-float", "mlverse/torch#1205-layer")
@each_mode
@either_path
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.int64], ids=str)
def test_a_mask_of_numbers_is_turned_away_on_every_path(training, need_weights, dtype):
    attend = layer().train(training)
    with torch.no_grad(), pytest.raises(TypeError, match="mask must be boolean"):
        attend(sequence(), mask=torch.ones(3, 3, dtype=dtype), need_weights=need_weights)


@source("depthcharge#30")
@either_path
def test_two_masks_and_no_warning(need_weights):
    attend, x = layer(), sequence()
    mask = padding_mask(torch.tensor([2, 3]), 3) & torch.ones(3, 3, dtype=torch.bool).tril()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        attend.eval()(x, mask=mask, causal=True, need_weights=need_weights)
    assert not caught


@source("keras#23038-layer", "keras#23040-layer")
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_causal_holds_whether_the_weights_are_asked_for_or_not(dropout):
    attend, x = layer(dropout=dropout).eval(), sequence()
    changed = x.clone()
    changed[:, 2] = 100
    for need_weights in (False, True):
        outputs = [attend(y, causal=True, need_weights=need_weights).output for y in (x, changed)]
        assert torch.equal(outputs[0][:, :2], outputs[1][:, :2])
        assert_close(outputs[0], attend(x, causal=True).output, **EXACT)


@source("pytorch-2.13-causal-and-mask-layer")
@either_path
def test_causal_and_a_mask_together_mean_both(need_weights):
    attend, x = layer(), sequence()
    mask = torch.tensor([[T, T, T], [F, T, T], [T, F, T]])
    both = mask & torch.ones(3, 3, dtype=torch.bool).tril()
    output = attend(x, mask=mask, causal=True, need_weights=need_weights).output
    assert_close(output, attend(x, mask=both, need_weights=True).output, **EXACT)


# Causal alignment and shapes


@source("pytorch#103082-layer", "pytorch#144858-layer")
@either_path
def test_one_new_token_sees_all_that_came_before(need_weights):
    attend, x = layer(), sequence(1, 4, 8)
    output = attend(x[:, 3:], x, causal=True, need_weights=need_weights).output
    assert_close(output, attend(x, causal=True).output[:, 3:], **EXACT)
    cache = KeyValueCache()
    attend(x[:, :3], causal=True, cache=cache)
    cached = attend(x[:, 3:], causal=True, cache=cache, need_weights=need_weights).output
    assert_close(cached, output, **EXACT)


@source("pytorch#120810-layer", "xformers#1089-layer")
@either_path
def test_a_mask_of_two_axes_is_never_one_of_batch_and_keys(need_weights):
    attend, query, key = layer(), sequence(3, 3, 8), sequence(3, 5, 8)
    mask = torch.tensor([[T, F, F, F, F], [T, T, F, F, F], [T, T, T, T, T]])
    output = attend(query, key, mask=mask, need_weights=need_weights).output
    assert_close(output[:, 0], attend(query, key[:, :1]).output[:, 0], **EXACT)
    with pytest.raises(ValueError, match=r"mask of shape \(2, 5\) .*padding_mask\(lengths, 5\)"):
        attend(query[:2], key[:2], mask=mask[:2], need_weights=need_weights)


@source("pytorch#122959-layer", "OmDet#19-layer", "movie-gen#8-layer")
def test_the_first_axis_is_the_batch():
    _, weights = layer(4, 2)(sequence(2, 3, 4), need_weights=True)
    assert weights.shape == (2, 2, 3, 3)


@source("detr#499", "mmaction2#1271", "LLMs-from-scratch#444", "bert#316")
def test_a_width_that_the_heads_do_not_divide_is_an_error_when_the_layer_is_made():
    with pytest.raises(ValueError, match="embed_dim = 100 is not divisible by num_heads = 3"):
        MultiHeadAttention(100, 3)


@source("pytorch#27623-layer", "pytorch#41070-layer", "pytorch#120793-layer", "d2l-en#2056-layer")
@either_path
def test_keys_and_values_may_have_other_lengths(need_weights):
    attend = layer(8, 2, kdim=7, vdim=4)
    output = attend(
        sequence(2, 3, 8), sequence(2, 5, 7), sequence(2, 5, 4), need_weights=need_weights
    )
    assert output.output.shape == (2, 3, 8)
    weights = [sequence(*shape) for shape in ((5, 8), (7, 8), (4, 8), (8, 8))]
    inputs = sequence(2, 3, 5), sequence(2, 6, 7), sequence(2, 6, 4)
    assert multi_head_attention(*inputs, *weights, num_heads=2).output.shape == (2, 3, 8)


@source("attention-is-all-you-need-pytorch#211-heads")
def test_values_may_be_longer_than_keys_in_each_head():
    x = sequence(2, 3, 5)
    weights = [sequence(*shape) for shape in ((5, 8), (5, 8), (5, 12), (12, 5))]
    assert multi_head_attention(x, x, x, *weights, num_heads=2).output.shape == (2, 3, 5)


@source("x-transformers#174-layer", "x-transformers#183-layer")
@either_path
def test_in_cross_attention_the_mask_is_that_of_the_keys(need_weights):
    attend, query, key = layer(), sequence(1, 2, 8), sequence(1, 4, 8)
    mask = padding_mask(torch.tensor([3]), 4)
    output = attend(query, key, mask=mask, need_weights=need_weights).output
    assert_close(output, attend(query, key[:, :3]).output, **EXACT)
    with pytest.raises(ValueError, match="2 queries and 4 keys"):
        attend(query, key, mask=padding_mask(torch.tensor([2]), 2), need_weights=need_weights)


# Scale, dtype, rounding


@source("pytorch#34060-layer", "TabPFN#800-layer", "unsloth#9708-layer")
@either_path
def test_a_batch_gives_what_its_items_give_up_to_rounding(need_weights):
    attend = MultiHeadAttention(8, 2)
    x = torch.randn(8, 100, 8)
    together = attend(x, need_weights=need_weights).output
    for item in range(8):
        alone = attend(x[item : item + 1], need_weights=need_weights).output[0]
        assert_close(alone, together[item], rtol=1e-5, atol=1e-6)


# Training mode and derivatives


@source("pytorch#124464", "pytorch#99293", "torchtune#1791", "timm#1978", "wenet#2699",
        "torch-harmonics#221")  # fmt: skip
@either_path
def test_no_dropout_in_eval(need_weights):
    attend, x = layer(dropout=0.5).eval(), sequence()
    outputs = [attend(x, need_weights=need_weights).output for _ in range(2)]
    assert torch.equal(*outputs)
    assert_close(outputs[0], attend(x, need_weights=not need_weights).output, **EXACT)


@source("pytorch#42929", "pytorch#33360", "pytorch#90842", "fast-transformers#131", "espnet#2185")
@pytest.mark.parametrize("kind", ["heads", "additive"])
def test_weights_sum_to_one_in_training(kind):
    x = sequence(2, 7, 8)
    if kind == "heads":
        _, weights = layer(dropout=0.5).train()(x, need_weights=True)
    else:
        _, weights = AdditiveAttention(8, 8, 4, dropout=0.5).double().train()(x, x, x)
    assert_close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]), **EXACT)


@source("pytorch#116350-layer", "pytorch#116348-layer", "learn2learn#429-layer")
def test_gradients_of_gradients():
    attend, x = layer(4, 2), sequence(1, 2, 4).requires_grad_()
    assert torch.autograd.gradgradcheck(lambda x: attend(x, need_weights=True).output, (x,))


@source("pytorch#128971-layer")
@uses_torch_func
@either_path
def test_forward_mode(need_weights):
    attend, x = layer(), sequence()
    step = 1e-6 * sequence()

    def output(x):
        return attend(x, causal=True, need_weights=need_weights).output

    _, tangent = torch.func.jvp(output, (x,), (step,))
    assert_close(tangent, output(x + step) - output(x), rtol=0, atol=1e-9)
    assert torch.linalg.norm(tangent) > 1e-7


@source("pytorch#34537", "pytorch#47583", "pytorch#70055", "fairseq#3365")
def test_weights_are_those_of_each_head():
    attend, x = layer(), sequence(2, 5, 8)
    output, weights = attend(x, need_weights=True)
    values = split_heads(attend.w_v(x), 2)
    assert weights.shape == (2, 2, 5, 5)
    assert not torch.allclose(weights[:, 0], weights[:, 1])
    assert_close(attend.w_o(merge_heads(weights @ values)), output, **EXACT)


@source("transformers#31990", "transformers#36096", "transformers#38750")
def test_weights_are_there_whenever_they_are_asked_for():
    x = sequence()
    for attend in (layer(), layer(dropout=0.5), layer(num_kv_heads=1)):
        for training in (True, False):
            attend.train(training)
            assert attend(x, need_weights=True).weights.shape == (2, 2, 3, 3)
            assert attend(x).weights is None


# Where PyTorch compiles and exports


DYNAMIC = {
    "MultiHeadAttention": lambda: layer(),
    "MultiHeadAttention, weights": lambda: functools.partial(layer(), need_weights=True),
    "SelfAttention": lambda: SelfAttention(8, 4, 5).double(),
    "AdditiveAttention": lambda: with_itself(AdditiveAttention(8, 8, 4).double()),
}


def with_itself(module):
    return lambda x, mask: module(x, x, x, mask=mask)


@source("pytorch#97158")
@pytest.mark.parametrize("made", DYNAMIC.values(), ids=DYNAMIC)
def test_it_compiles_with_dynamic_shapes(made):
    """Whether a name stands for an open size or a number: ``size in (1, n)`` does not tell."""
    attend = made()
    torch.compiler.reset()
    compiled = torch.compile(attend, backend="eager", fullgraph=True, dynamic=True)
    for batch, n in ((2, 3), (4, 6), (1, 2), (2, 0), (0, 3)):
        x, mask = sequence(batch, n, 8), torch.rand(batch, 1, n) < 0.7
        assert_close(compiled(x, mask=mask).output, attend(x, mask=mask).output, **EXACT)


@source("pytorch#156681")
@either_path
@pytest.mark.skipif(
    not hasattr(torch.utils._pytree, "is_namedtuple_class"),
    reason="this PyTorch cannot export a named tuple that says what it holds",
)
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_it_exports_with_a_dynamic_batch(need_weights, training):
    attend = layer().train(training)
    exported = torch.export.export(
        attend,
        (sequence(),),
        {"causal": True, "need_weights": need_weights},
        dynamic_shapes={"query": {0: torch.export.Dim.AUTO}, "causal": None, "need_weights": None},
    ).module()
    x = sequence(5, 3, 8)
    output = exported(x, causal=True, need_weights=need_weights).output
    assert_close(output, attend(x, causal=True).output, **EXACT)


@source("mlx-lm#1903")
@either_path
def test_a_mask_per_item_where_the_batch_has_as_many_items_as_there_are_key_value_heads(
    need_weights,
):
    attend, x = layer(8, 4, num_kv_heads=2), sequence(2, 3, 8)
    mask = padding_mask(torch.tensor([1, 3]), 3)
    output = attend(x, mask=mask, need_weights=need_weights).output
    assert_close(output[0], attend(x[0], x[0, :1]).output, **EXACT)
    assert_close(output[1], attend(x[1]).output, **EXACT)


@source("TinyLLM#17", "LLMs-from-scratch#697", "llama#899")
@either_path
def test_a_prompt_of_many_tokens_is_causal_with_a_cache_too(need_weights):
    attend, x, cache = layer(), sequence(1, 6, 8), KeyValueCache()
    pieces = [
        attend(x[:, a:b], causal=True, cache=cache, need_weights=need_weights).output
        for a, b in ((0, 4), (4, 6))
    ]
    assert_close(torch.cat(pieces, dim=1), attend(x, causal=True).output, **EXACT)
