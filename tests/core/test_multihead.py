"""split_heads, merge_heads and multi_head_attention: the same on NumPy and PyTorch."""

import numpy as np
import oracles
import pytest
from comparing import assert_close, dtype_name, each_dtype, many, random
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from implementations import multi_head

from d2lmini import merge_heads, multi_head_attention, split_heads


def weights_for(xp, heads=2, kv_heads=2, d_q=4, d_k_in=5, d_v_in=3, dtype="float64"):
    """Return W_Q, W_K, W_V, W_O with d_k = 3, d_v = 2 and d_out = 6: all sizes differ."""
    shapes = (d_q, heads * 3), (d_k_in, kv_heads * 3), (d_v_in, kv_heads * 2), (heads * 2, 6)
    return [random(xp, i, *shape, dtype=dtype) for i, shape in enumerate(shapes)]


def inputs_for(xp, n=3, m=5, batch=(2,), dtype="float64"):
    shapes = (n, 4), (m, 5), (m, 3)
    return [random(xp, 9 + i, *batch, *shape, dtype=dtype) for i, shape in enumerate(shapes)]


# Heads


def test_each_head_gets_its_piece_of_every_token(xp):
    x = xp.reshape(xp.arange(16), (1, 2, 8))
    heads = split_heads(x, 2)
    assert heads.tolist() == [[[[0, 1, 2, 3], [8, 9, 10, 11]], [[4, 5, 6, 7], [12, 13, 14, 15]]]]
    assert merge_heads(heads).tolist() == x.tolist()  # side by side again


@pytest.mark.parametrize("shape", [(3, 6), (2, 4, 3, 6), (0, 3, 6), (2, 0, 6), (2, 3, 0), "turned"])
@pytest.mark.parametrize("heads", [1, 3, 6])
def test_merge_undoes_split(xp, shape, heads):
    x = random(xp, 0, 2, 6, 3).mT if shape == "turned" else random(xp, 0, *shape)
    pieces = split_heads(x, heads)
    assert tuple(pieces.shape) == (*x.shape[:-2], heads, x.shape[-2], x.shape[-1] // heads)
    assert merge_heads(pieces).tolist() == x.tolist()


# multi_head_attention


@each_dtype
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads, kv_heads", [(1, 1), (4, 1), (6, 3)])
def test_it_is_the_definition_head_by_head(xp, dtype, causal, heads, kv_heads):
    weights = weights_for(xp, heads, kv_heads, dtype=dtype)
    arrays = inputs_for(xp, dtype=dtype)
    result = multi_head_attention(
        *arrays, *weights, num_heads=heads, num_kv_heads=kv_heads, causal=causal
    )
    exact = [oracles.floats(w) for w in weights]
    output, table = multi_head(*arrays, exact, heads, kv_heads, is_causal=causal)
    assert dtype_name(result.output) == dtype_name(result.weights) == dtype
    assert_close(result.output, output, scale=100)
    assert_close(result.weights, table, scale=20)


@st.composite
def calls(draw):
    """Heads, sizes (also 0), batch axes that broadcast, and a mask for all heads or per head."""
    heads = draw(st.integers(1, 4))
    kv_heads = draw(st.sampled_from([g for g in range(1, heads + 1) if heads % g == 0]))
    n, m = draw(st.integers(0, 4)), draw(st.integers(0, 4))
    batch = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=3))
    batches = [draw(part_of(batch)) for _ in range(3)]
    mask_shape = draw(part_of((*np.broadcast_shapes(*batches[:2]), n, m)))
    per_head = len(mask_shape) >= 2 and draw(st.booleans())
    if per_head:
        full = (*np.broadcast_shapes(*batches[:2]), n, m)
        mask_shape = (*full[:-2], draw(st.sampled_from([1, heads])), *full[-2:])
    mask = draw(hnp.arrays(np.bool_, mask_shape))
    return heads, kv_heads, n, m, batches, mask, per_head, draw(st.booleans())


@st.composite
def part_of(draw, shape):
    """Return a shape that broadcasts to the given one."""
    sides = tuple(draw(st.sampled_from([1, side])) for side in shape)
    return sides[draw(st.integers(0, len(sides))) :]


@many
@given(call=calls())
def test_any_sizes_batches_and_masks(xp, call):
    heads, kv_heads, n, m, batches, mask, per_head, causal = call
    weights = weights_for(xp, heads, kv_heads)
    shapes = zip(batches, ((n, 4), (m, 5), (m, 3)), strict=True)
    arrays = [random(xp, i, *batch, *shape) for i, (batch, shape) in enumerate(shapes)]
    output, table = multi_head_attention(
        *arrays,
        *weights,
        num_heads=heads,
        num_kv_heads=kv_heads,
        mask=xp.asarray(mask),
        causal=causal,
    )
    exact = [oracles.floats(w) for w in weights]
    masks = [mask] * heads
    if per_head:
        each = np.broadcast_to(mask, (*mask.shape[:-3], heads, *mask.shape[-2:]))
        masks = [each[..., head, :, :] for head in range(heads)]
    for head, own in enumerate(masks):  # what the loops say of this head under its own mask
        _, expected = multi_head(*arrays, exact, heads, kv_heads, mask=own, is_causal=causal)
        found = oracles.floats(table)[..., head, :, :]
        expected = expected[..., head, :, :]
        np.testing.assert_allclose(*np.broadcast_arrays(found, expected), rtol=1e-9, atol=1e-12)
    if not per_head:
        expected, _ = multi_head(*arrays, exact, heads, kv_heads, mask=mask, is_causal=causal)
        assert_close(output, expected, scale=1000)
