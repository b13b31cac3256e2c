"""MultiHeadAttention, the PyTorch module: parity with PyTorch's own, and its two paths in one."""

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.nn import functional  # noqa: E402
from torch.testing import assert_close  # noqa: E402

from d2lmini import (  # noqa: E402
    KeyValueCache,
    MultiHeadAttention,
    alibi_bias,
    causal_mask,
    multi_head_attention,
    padding_mask,
)

EXACT = {"rtol": 1e-12, "atol": 1e-12}
TOLERANCE = {
    torch.float64: EXACT,
    torch.float32: {"rtol": 1e-5, "atol": 1e-5},
    torch.float16: {"rtol": 5e-3, "atol": 5e-3},
    torch.bfloat16: {"rtol": 4e-2, "atol": 4e-2},
}
either_path = pytest.mark.parametrize("need_weights", [False, True], ids=["fused", "weights"])


def layer(*arguments, dtype=torch.float64, **options):
    """Return a layer whose biases are not zero."""
    made = MultiHeadAttention(*(arguments or (8, 2)), **options).to(dtype)
    for parameter in made.parameters():
        nn.init.normal_(parameter, std=0.5)
    return made


def sequence(*shape, dtype=torch.float64):
    return torch.randn(*(shape or (2, 5, 8)), dtype=dtype)


# Parity with torch.nn.MultiheadAttention


HIDDEN = torch.tensor([[False] * 5, [False, False, False, True, True], [True, False] * 2 + [True]])
BLOCKED = torch.ones(4, 5, dtype=torch.bool).triu(2)
EACH = torch.arange(120).reshape(3, 2, 4, 5) % 5 % 3 > 0  # of each head; a row without keys is NaN
GIVEN = {  # the masks of PyTorch's layer, and ours
    "none": ({}, None),
    "attn": ({"attn_mask": BLOCKED}, ~BLOCKED),
    "padding": ({"key_padding_mask": HIDDEN}, ~HIDDEN[:, None]),
    "both": ({"attn_mask": BLOCKED, "key_padding_mask": HIDDEN}, ~BLOCKED & ~HIDDEN[:, None]),
    "per head": ({"attn_mask": EACH.flatten(0, 1)}, ~EACH),
}
FROM_TORCH = {  # each option by itself, and some together
    "plain": ({}, "none"),
    "batch second": ({"batch_first": False}, "padding"),
    "no bias": ({"bias": False}, "both"),
    "kdim": ({"kdim": 5}, "attn"),
    "vdim": ({"vdim": 3, "bias": False}, "per head"),
    "all": ({"kdim": 5, "vdim": 3, "batch_first": False}, "both"),
}


@pytest.mark.parametrize("options, masks", FROM_TORCH.values(), ids=FROM_TORCH)
@either_path
def test_from_torch_gives_the_same_numbers_and_gradients(options, masks, need_weights):
    options = {"batch_first": True, **options}
    theirs = nn.MultiheadAttention(8, 2, dtype=torch.float64, **options)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.5)  # PyTorch sets biases to 0, where they would not matter
    ours = MultiHeadAttention.from_torch(theirs)
    widths = 8, options.get("kdim", 8), options.get("vdim", 8)
    own = [sequence(3, n, width) for n, width in zip((4, 5, 5), widths, strict=True)]
    given = [[x.clone().requires_grad_() for x in own] for _ in range(2)]
    seen, mask = GIVEN[masks]
    swapped = [x if theirs.batch_first else x.swapaxes(0, 1) for x in given[0]]
    expected, weights = theirs(*swapped, average_attn_weights=False, **seen)
    expected = expected if theirs.batch_first else expected.swapaxes(0, 1)
    result = ours(*given[1], mask=mask, need_weights=need_weights)
    assert_close(result.output, expected, **EXACT)
    if need_weights:
        assert_close(result.weights, weights, **EXACT)
    direction = torch.randn_like(expected)
    expected.backward(direction)
    result.output.backward(direction)
    for parameter in theirs.parameters():
        parameter.data = parameter.grad
    slopes = MultiHeadAttention.from_torch(theirs)  # a layer that is made of gradients
    pairs = [*zip(*given, strict=True), *zip(slopes.parameters(), ours.parameters(), strict=True)]
    for their, our in pairs:
        assert_close(our.grad, their if their.grad is None else their.grad, **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_from_torch_copies_all_that_is_set_and_draws_no_random_numbers(dtype):
    theirs = nn.MultiheadAttention(8, 2, dropout=0.25, dtype=dtype).eval()
    theirs.out_proj.requires_grad_(False)
    before = torch.get_rng_state()
    ours = MultiHeadAttention.from_torch(theirs)
    assert torch.equal(torch.get_rng_state(), before)
    assert {p.dtype for p in ours.parameters()} == {dtype}
    assert (ours.training, ours.dropout) == (False, 0.25)
    assert not any(p.requires_grad for p in ours.w_o.parameters())
    assert all(p.requires_grad for p in ours.w_q.parameters())
    assert MultiHeadAttention.from_torch(theirs.train()).training
    theirs.in_proj_weight.data.zero_()
    assert ours.w_q.weight.any()


# With weights and without: the same output


MASKS = {
    "none": lambda: None,
    "rows": lambda: torch.rand(5, 5) < 0.7,
    "empty item": lambda: padding_mask(torch.tensor([0, 5]), 5),
    "per head": lambda: torch.rand(2, 4, 5, 5) < 0.5,
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_asking_for_the_weights_does_not_change_the_output(dtype, mask, causal):
    attend = layer(8, 4, num_kv_heads=2, bias=True, dtype=dtype)
    x, options = sequence(dtype=dtype), {"mask": mask(), "causal": causal}
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            without = attend(x, **options)
            with_weights = attend(x, **options, need_weights=True)
        assert without.weights is None
        assert {x.dtype for x in (without.output, *with_weights)} == {dtype}
        assert without.output.requires_grad == grad
        assert_close(without.output, with_weights.output, **TOLERANCE[dtype])


# The function and the module


@either_path
@pytest.mark.parametrize("causal, n", [(False, 3), (True, 3), (True, 4)])
@pytest.mark.parametrize("scale", [None, 0.2])
def test_the_module_is_the_function(causal, n, scale, need_weights):
    """With a bias, to which gradients flow; a scale."""
    attend = layer(8, 4, num_kv_heads=2, kdim=5, vdim=3)
    inputs = sequence(2, n, 8), sequence(2, 4, 5), sequence(2, 4, 3)
    options = {"mask": padding_mask(torch.tensor([1, 4]), 4), "causal": causal, "scale": scale}
    bias = alibi_bias(4, n, 4, like=inputs[0]).requires_grad_()
    matrices = [x.weight.mT for x in (attend.w_q, attend.w_k, attend.w_v, attend.w_o)]
    result = attend(*inputs, **options, bias=bias, need_weights=need_weights)
    expected = multi_head_attention(
        *inputs, *matrices, num_heads=4, num_kv_heads=2, bias=bias, **options
    )
    assert_close(result.output, expected.output, **EXACT)
    assert result.weights is None or torch.equal(result.weights, expected.weights)
    slopes = [torch.autograd.grad(x.output.square().sum(), bias) for x in (result, expected)]
    assert_close(*slopes, **EXACT)


@either_path
@pytest.mark.parametrize("heads", [2, 4])
def test_a_mask_of_lengths_serves_all_heads_where_batch_and_heads_are_equal(heads, need_weights):
    attend, x = layer(8, heads, num_kv_heads=2), sequence()  # batch = key-value heads = 2
    mask = padding_mask(torch.tensor([2, 5]), 5)
    output = attend(x, mask=mask, need_weights=need_weights).output
    assert_close(output[:1], attend(x[:1], x[:1, :2]).output, **EXACT)
    assert_close(output[1:], attend(x[1:]).output, **EXACT)


# Weights and dropout


def test_weights_are_per_head_and_before_dropout():
    attend, x = layer(dropout=0.5).train(), sequence()
    noisy = attend(x, need_weights=True)
    assert noisy.weights.shape == (2, 2, 5, 5)
    assert_close(noisy.weights.sum(dim=-1), torch.ones(2, 2, 5).double(), **EXACT)
    assert_close(noisy.weights, attend.eval()(x, need_weights=True).weights, **EXACT)
    assert not torch.allclose(noisy.weights[:, 0], noisy.weights[:, 1])


@either_path
def test_dropout_leaves_the_mean_as_it_is_and_all_dropped_is_nothing(need_weights):
    attend, x = layer(4, 1, dropout=0.4).train(), sequence(1, 6, 4)
    mean = attend(x.expand(4000, 6, 4), need_weights=need_weights).output.mean(dim=0)
    assert_close(mean, attend.eval()(x[0]).output, rtol=0, atol=0.1)
    attend, x = layer(dropout=1.0).train(), sequence().requires_grad_()
    output = attend(x, need_weights=need_weights).output
    output.sum().backward()
    assert not output.any()
    assert torch.isfinite(x.grad).all()


@either_path
def test_no_dropout_in_eval(need_weights):
    attend, x = layer(dropout=0.5).eval(), sequence()
    outputs = [attend(x, need_weights=need_weights).output for _ in range(2)]
    assert torch.equal(*outputs)
    assert_close(outputs[0], attend(x, need_weights=not need_weights).output, **EXACT)


@either_path
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_rows_without_keys_are_zero_with_dropout_too(training, need_weights):
    attend, mask = layer(dropout=0.5).train(training), padding_mask(torch.tensor([0, 5]), 5)
    output, weights = attend(sequence(), mask=mask, need_weights=need_weights)
    assert not output[0].any()
    assert torch.isfinite(output).all()
    assert weights is None or not weights[0].any()


# What PyTorch offers its modules; `test_all.py` asks it of every layer, with weights


@either_path
def test_vmap(need_weights):
    attend, x, mask = layer(), sequence(3, 5, 8), torch.rand(3, 5, 5) < 0.7
    options = {"causal": True, "need_weights": need_weights}
    found = torch.func.vmap(lambda x, mask: attend(x, mask=mask, **options).output)(x, mask)
    assert_close(found, attend(x, mask=mask, causal=True).output, **EXACT)


def test_the_fused_path_compiles_in_one_graph_and_trains():
    attend, x, mask = layer(8, 4, num_kv_heads=2), sequence(), padding_mask(torch.tensor([3, 5]), 5)
    torch.compiler.reset()
    compiled = torch.compile(attend, backend="aot_eager", fullgraph=True)
    found = []
    for call in (attend, compiled):
        output = call(x, mask=mask, causal=True).output
        found.append((output, *torch.autograd.grad(output.sum(), attend.w_k.weight)))
    assert_close(*found, **EXACT)


class Exported(nn.Module):
    """A layer in a model of its own."""

    def __init__(self, **options):
        super().__init__()
        self.attend, self.options = layer(8, 2, num_kv_heads=1), {"causal": True, **options}

    def forward(self, x, lengths):
        mask = padding_mask(lengths, x.shape[1]) & causal_mask(x.shape[1], like=x)
        return self.attend(x, mask=mask, **self.options).output


@either_path
def test_it_can_be_exported_for_any_batch_and_length(need_weights):
    batch, n = (torch.export.Dim(name, min=2, max=9) for name in ("batch", "n"))
    model, example = Exported(need_weights=need_weights), (sequence(2, 3, 8), torch.tensor([1, 3]))
    run = torch.export.export(model, example, dynamic_shapes=({0: batch, 1: n}, {0: batch}))
    given = sequence(3, 7, 8), torch.tensor([0, 7, 2])
    assert_close(run.module()(*given), model(*given), **EXACT)


# What the inputs may be


def test_dtypes_that_do_not_go_together():
    float32 = torch.float32
    for other, argument in (("w_q", "query"), ("w_k", "key"), ("w_v", "value")):
        attend, x = layer(dtype=float32), sequence(dtype=float32)
        getattr(attend, other).double()
        with pytest.raises(TypeError, match=rf"^{argument} has dtype .*float32.*convert one of"):
            attend(x, x, x)
    with pytest.raises(TypeError, match=r"query has dtype torch\.float8.*query\.float\(\)"):
        layer(dtype=float32)(x.to(torch.float8_e4m3fn))  # which only stores


# What PyTorch's kernel is given


@pytest.fixture
def given_to_kernel(monkeypatch):
    """Return what PyTorch's kernel is given: whether a mask, is_causal, and how many axes."""
    calls, kernel = [], functional.scaled_dot_product_attention

    def watched(q, k, v, attn_mask=None, is_causal=False, **options):
        calls.append((attn_mask is not None, is_causal, q.ndim))
        return kernel(q, k, v, attn_mask=attn_mask, is_causal=is_causal, **options)

    monkeypatch.setattr(functional, "scaled_dot_product_attention", watched)
    return calls


def test_no_mask_is_made_where_the_kernel_knows_what_causal_means(given_to_kernel):
    """A mask of 16,384 tokens would take a hundred times the memory of all the rest."""
    attend, x = layer(), sequence()
    attend(x, causal=True)
    attend(x, causal=True, cache=KeyValueCache(window=5))
    attend(sequence(5, 8), causal=True)  # the kernel asks for four axes
    attend(sequence(2, 1, 5, 8), causal=True)
    assert given_to_kernel == [(False, True, 4)] * 4


@pytest.mark.parametrize(
    ("shape", "mask_shape"),
    [((2, 5, 8), (2, 1, 5)), ((5, 8), (5, 5)), ((3, 2, 5, 8), (3, 1, 1, 5, 5))],
)
def test_with_a_mask_no_weights_are_kept_either(shape, mask_shape):
    """PyTorch takes its way without weights only for four axes, of the mask too: #108108."""
    attend, x = layer(), sequence(*shape)
    mask = torch.rand(mask_shape) < 0.7
    mask[..., 0] = True
    expected = attend(x, mask=mask, need_weights=True).output
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        output = attend(x, mask=mask).output  # PyTorch raises where its other way would be needed
    assert_close(output, expected, **EXACT)


def test_integers_become_the_dtype_of_the_weights():
    attend, ones = layer(), torch.ones(2, 3, 8, dtype=torch.int64)
    assert_close(attend(ones).output, attend(ones.double()).output, **EXACT)
