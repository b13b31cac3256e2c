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
        causal = cache.window is None  # a window lets no query see later keys, asked or not
        result = attend(x[..., first:last, :], mask=seen, causal=causal, cache=cache, **options)
        outputs.append(result.output)
        first = last
    return torch.cat(outputs, dim=-2)


@either_path
@pytest.mark.parametrize("pieces", [[1] * 6, [1, 5], [4, 0, 2]], ids=str)
@pytest.mark.parametrize(
    "kv_heads, window, sinks, mask_shape",
    [
        *((heads, None, 0, None) for heads in (4, 1)),
        *((4, window, sinks, None) for window in (1, 3, 10) for sinks in (0, 2)),
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


# Errors leave the cache as it was


X = torch.zeros(2, 1, 8, dtype=torch.float64)
MASK = torch.ones(1, 3, dtype=torch.bool)  # the cache holds 3 keys: with the new one there are 4
BAD = {
    "another batch": (ValueError, (X[:1],), {}, r"key of shape \(1, 4, 1, 2\).* \(2, 4, 3, 2\)"),
    "an old mask": (ValueError, (X,), {"mask": MASK}, r"\(1, 3\).*\(1, 4\).*4 keys"),
    "values and keys": (ValueError, (X, X, X[:, :0]), {}, "1 keys and 0 values"),
    "a flag": (TypeError, (X,), {"causal": 1}, "causal must be True or False, got int"),
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


def test_gradients_flow_through_the_cache():
    attend, x = layer().train(), sequence()
    expected = torch.autograd.grad(attend(x, causal=True).output.square().sum(), attend.w_k.weight)
    cached = decode(attend, x, [1] * 6, KeyValueCache())
    found = torch.autograd.grad(cached.square().sum(), attend.w_k.weight)
    assert_close(found, expected, **EXACT)
