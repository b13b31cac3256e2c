"""MultiHeadAttention with a KeyValueCache: the same outputs, a few tokens at a time."""

import pytest

torch = pytest.importorskip("torch")

from torch.testing import assert_close  # noqa: E402

from d2lmini import (  # noqa: E402
    KeyValueCache,
    MultiHeadAttention,
    padding_mask,
    sliding_window_mask,
)

EXACT = {"rtol": 1e-12, "atol": 1e-12}
either_path = pytest.mark.parametrize("need_weights", [False, True], ids=["fused", "weights"])


def layer(heads=4, **options):
    return MultiHeadAttention(8, heads, **options).double().eval()


def sequence(*shape):
    return torch.randn(*(shape or (2, 6, 8)), dtype=torch.float64)


def decode(attend, x, pieces, cache, *, mask=None, **options):
    """Give the layer the tokens of x piece by piece; `mask` (..., 6, 6) is cut to what is kept."""
    first, outputs = 0, []
    for count in pieces:
        last = first + count
        seen = None
        if mask is not None:
            seen = mask[..., first:last, first - cache.context : last]
        result = attend(x[..., first:last, :], mask=seen, causal=True, cache=cache, **options)
        outputs.append(result.output)
        first = last
    return torch.cat(outputs, dim=-2)


@either_path
@pytest.mark.parametrize("pieces", [[1] * 6, [3, 1, 1, 1], [2, 2, 2], [1, 5], [4, 0, 2]], ids=str)
@pytest.mark.parametrize(
    "kv_heads, window, sinks, mask_shape",
    [
        *((heads, None, 0, None) for heads in (4, 2, 1)),
        *((4, window, sinks, None) for window in (1, 2, 3, 10) for sinks in (0, 2)),
        *((4, window, 0, shape) for window in (None, 3) for shape in ((2, 6, 6), (2, 4, 6, 6))),
    ],
)
def test_cached_is_uncached(pieces, kv_heads, window, sinks, mask_shape, need_weights):
    """A window is the sliding window mask; a mask counts the keys of the cache."""
    attend, x = layer(num_kv_heads=kv_heads, bias=True), sequence()
    cache = KeyValueCache(window=window, sinks=sinks)
    mask = None if mask_shape is None else torch.rand(mask_shape) < 0.6
    output = decode(attend, x, pieces, cache, mask=mask, need_weights=need_weights)
    whole = sliding_window_mask(6, window=window or 6, sinks=sinks, like=x)
    whole = whole if mask is None else mask & whole
    assert_close(output, attend(x, mask=whole).output, **EXACT)
    kept = 6 if window is None else min(window + sinks, 6)
    assert cache.key.shape == cache.value.shape == (2, kv_heads, kept, 2)


@either_path
def test_padding_at_the_start_of_a_prompt(need_weights):
    """Left padding and causal leave the first queries of an item without a key."""
    attend, x, cache = layer(bias=True), sequence(), KeyValueCache()
    mask = padding_mask(torch.tensor([3, 6]), 6).flip(-1)
    pieces = [
        attend(x[:, :4], mask=mask[..., :4], causal=True, cache=cache, need_weights=need_weights),
        attend(x[:, 4:], mask=mask, causal=True, cache=cache, need_weights=need_weights),
    ]
    output = torch.cat([piece.output for piece in pieces], dim=1)
    assert_close(output[0, :3], attend.w_o.bias.expand(3, 8), **EXACT)
    assert_close(output[:1, 3:], attend(x[:1, 3:], causal=True).output, **EXACT)
    assert_close(output[1:], attend(x[1:], causal=True).output, **EXACT)


@pytest.mark.parametrize("window", [None, 2])
def test_the_weights_are_those_of_the_keys_that_may_be_seen(window):
    attend, x, cache = layer(), sequence(), KeyValueCache(window=window)
    mask = sliding_window_mask(6, window=window or 6, like=x)
    whole = attend(x, mask=mask, need_weights=True).weights
    for t in range(6):
        _, weights = attend(x[:, t : t + 1], causal=True, cache=cache, need_weights=True)
        first = 0 if window is None else max(t - window + 1, 0)
        assert_close(weights, whole[:, :, t : t + 1, first : t + 1], **EXACT)


def test_gradients_flow_through_the_cache():
    attend, x = layer().train(), sequence()
    expected = torch.autograd.grad(attend(x, causal=True).output.square().sum(), attend.w_k.weight)
    cached = decode(attend, x, [1] * 6, KeyValueCache())
    found = torch.autograd.grad(cached.square().sum(), attend.w_k.weight)
    assert_close(found, expected, **EXACT)


def test_without_a_batch_and_across_sequences():
    attend, x = layer(kdim=5, vdim=3), sequence(4, 8)
    key, value = sequence(4, 5), sequence(4, 3)
    cache = KeyValueCache()
    outputs = [
        attend(x[t : t + 1], key[t : t + 1], value[t : t + 1], cache=cache).output for t in range(4)
    ]
    assert_close(torch.cat(outputs), attend(x, key, value, causal=True).output, **EXACT)


def test_without_causal_the_tokens_of_one_piece_see_each_other():
    attend, x, cache = layer(), sequence(), KeyValueCache()
    attend(x[:, :2], cache=cache)
    output = attend(x[:, 2:], cache=cache).output
    assert_close(output, attend(x[:, 2:], x).output, **EXACT)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_the_cache_holds_the_dtype_of_the_layer(dtype):
    attend, cache = layer().to(dtype), KeyValueCache()
    x = sequence().to(dtype)
    output = decode(attend, x, [1] * 6, cache)
    assert output.dtype == cache.key.dtype == cache.value.dtype == dtype
    limit = {torch.float32: 1e-5, torch.bfloat16: 5e-2}[dtype]
    assert_close(output, attend(x, causal=True).output, rtol=limit, atol=limit)


# Errors leave the cache as it was


X = torch.zeros(2, 1, 8, dtype=torch.float64)
MASK = torch.ones(1, 3, dtype=torch.bool)  # the cache holds 3 keys: with the new one there are 4
BAD = {
    "another batch": (ValueError, (X[:1],), {}, r"key of shape \(1, 4, 1, 2\).* \(2, 4, 3, 2\)"),
    "a larger batch": (ValueError, (X.repeat(2, 1, 1),), {}, r"\(4, 4, 1, 2\).* \(2, 4, 3, 2\)"),
    "an old mask": (ValueError, (X,), {"mask": MASK}, r"\(1, 3\).*\(1, 4\).*4 keys"),
    "a float mask": (TypeError, (X,), {"mask": MASK.float()}, "mask must be boolean"),
    "values and keys": (ValueError, (X, X, X[:, :0]), {}, "1 keys and 0 values"),
    "a flag": (TypeError, (X,), {"causal": 1}, "causal must be True or False, got int"),
    "another flag": (TypeError, (X,), {"need_weights": 1}, "need_weights must be True or False"),
    "a width": (ValueError, (X[..., :7],), {}, r"query must have shape .*8\), got \(2, 1, 7\)"),
    "a query alone": (ValueError, (X.repeat(2, 1, 1), X), {}, r"\(4, 1, 8\).*\(2, 1, 8\)"),
}


@either_path
@pytest.mark.parametrize("kind, inputs, options, said", BAD.values(), ids=BAD)
def test_errors_leave_the_cache_as_it_was(kind, inputs, options, said, need_weights):
    attend, cache = layer(), KeyValueCache()
    attend(sequence(2, 3, 8), cache=cache)
    key, value = cache.key, cache.value
    with pytest.raises(kind, match=said):
        attend(*inputs, cache=cache, **{"need_weights": need_weights, **options})
    assert cache.key is key
    assert cache.value is value


def test_a_cache_of_another_layer_or_dtype():
    cache = KeyValueCache()
    layer()(sequence(2, 3, 8), cache=cache)
    with pytest.raises(ValueError, match=r"\(2, 2, 1, 4\).*\(2, 4, 3, 2\)"):
        layer(2)(X, cache=cache)
    with pytest.raises(
        TypeError, match=r"key has dtype torch.float32, the cache holds torch.float64"
    ):
        layer().float()(X.float(), cache=cache)
    assert len(cache) == 3
