"""The table of mask conventions in chapters/api/masks.md, cell by cell."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.testing import assert_close  # noqa: E402

import d2lmini  # noqa: E402
from d2lmini import MultiHeadAttention, attention, causal_mask  # noqa: E402

sdpa = nn.functional.scaled_dot_product_attention


@pytest.fixture
def made():
    """Return PyTorch's layer, ours with its weights, queries and keys for them, and a mask."""
    layer = nn.MultiheadAttention(12, 3, batch_first=True, dtype=torch.float64)
    rng = np.random.default_rng(5)
    mask = torch.from_numpy(rng.random((4, 6)) > 0.4)  # True = may attend
    x, y = (torch.from_numpy(rng.normal(size=(1, n, 12))) for n in (4, 6))
    q, k, v = (torch.from_numpy(part) for part in rng.normal(size=(3, 6, 5)))
    return layer, MultiHeadAttention.from_torch(layer), x, y, mask, (q[:4], k, v)


def test_true_may_attend_but_in_the_layer_it_is_hidden(made):
    layer, ours, x, y, mask, qkv = made
    expected = ours(x, y, mask=mask).output
    assert_close(layer(x, y, y, attn_mask=~mask)[0], expected)
    assert not torch.allclose(layer(x, y, y, attn_mask=mask)[0], expected)
    assert_close(sdpa(*qkv, attn_mask=mask), attention(*qkv, mask=mask).output)


def test_a_mask_of_floats_is_added_or_refused(made):
    layer, ours, x, y, _, (q, k, v) = made
    added = torch.from_numpy(np.random.default_rng(6).normal(size=(4, 6)))  # neither 0 nor -inf
    assert_close(sdpa(q, k, v, attn_mask=added), ((q @ k.T) / 5**0.5 + added).softmax(dim=-1) @ v)
    per_head = {"average_attn_weights": False}
    plain = layer(x, y, y, **per_head)[1]
    moved = layer(x, y, y, attn_mask=added, **per_head)[1]
    assert_close((plain.log() + added).softmax(dim=-1), moved)
    with pytest.raises(TypeError):
        ours(x, y, mask=added)


def test_causal_with_fewer_queries_than_keys(made):
    layer, ours, x, y, _, qkv = made
    late = causal_mask(4, 6, like=qkv[0])  # the last sees every key
    early = torch.ones(4, 6, dtype=torch.bool).tril()  # the first sees the first
    assert_close(attention(*qkv, causal=True).output, attention(*qkv, mask=late).output)
    assert_close(sdpa(*qkv, is_causal=True), attention(*qkv, mask=early).output)
    told = {"attn_mask": ~late, "is_causal": True}  # the right mask
    assert_close(layer(x, y, y, **told)[0], ours(x, y, mask=late).output)
    ignored = layer(x, y, y, **told, need_weights=False)[0]
    assert_close(ignored, ours(x, y, mask=early).output)
    assert not torch.allclose(ignored, ours(x, y, mask=late).output)
    with pytest.raises(RuntimeError):
        layer(x, y, y, is_causal=True)


def test_a_query_that_may_see_no_key(made):
    layer, ours, x, y, mask, qkv = made
    mask[0] = False
    assert layer(x, y, y, attn_mask=~mask)[0][0, 0].isnan().all()
    bias = layer.out_proj.bias
    assert_close(layer(x, y, y, attn_mask=~mask, need_weights=False)[0][0, 0], bias)
    assert_close(ours(x, y, mask=mask).output[0, 0], bias)
    assert (sdpa(*qkv, attn_mask=mask)[0] == 0).all()


def test_every_mask_argument_says_what_true_means():
    layers = MultiHeadAttention.forward, d2lmini.AdditiveAttention.forward
    masks = d2lmini.masked_softmax, d2lmini.causal_mask, d2lmini.padding_mask
    for documented in (*layers, *masks, attention, d2lmini.multi_head_attention):
        assert "True = may attend" in documented.__doc__, documented
