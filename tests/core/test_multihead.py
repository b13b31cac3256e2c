"""split_heads, merge_heads and multi_head_attention: the same on NumPy and PyTorch."""

import numpy as np
import oracles
import pytest
from comparing import assert_close, dtype_name, each_dtype, many, random
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from implementations import multi_head

from d2lmini import (
    causal_mask,
    merge_heads,
    multi_head_attention,
    padding_mask,
    split_heads,
)


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


def test_pieces_are_put_side_by_side_again(xp):
    x = xp.reshape(xp.arange(8), (1, 2, 2, 2))
    assert merge_heads(x).tolist() == [[[0, 1, 4, 5], [2, 3, 6, 7]]]


@pytest.mark.parametrize(
    "shape", [(3, 6), (2, 3, 6), (2, 4, 3, 6), (0, 3, 6), (2, 0, 6), (2, 3, 0)]
)
@pytest.mark.parametrize("heads", [1, 2, 3, 6])
def test_merge_undoes_split(xp, shape, heads):
    x = random(xp, 0, *shape)
    pieces = split_heads(x, heads)
    assert tuple(pieces.shape) == (*shape[:-2], heads, shape[-2], shape[-1] // heads)
    assert merge_heads(pieces).tolist() == x.tolist()


@each_dtype
def test_heads_keep_the_dtype(xp, dtype):
    x = random(xp, 0, 3, 4, dtype=dtype)
    assert dtype_name(split_heads(x, 2)) == dtype
    assert dtype_name(merge_heads(split_heads(x, 2))) == dtype


def test_heads_of_an_array_that_is_not_contiguous(xp):
    x = random(xp, 0, 2, 6, 3).mT  # (2, 3, 6)
    assert merge_heads(split_heads(x, 3)).tolist() == x.tolist()


@pytest.mark.parametrize(
    "width, heads, said", [(100, 3, "100 .* = 3; .* 2, 4"), (6, 4, "6 .* = 4; .* 2, 3")]
)
def test_a_width_that_does_not_divide_names_both_numbers_and_what_would(xp, width, heads, said):
    with pytest.raises(ValueError, match=said):
        split_heads(xp.zeros((2, width)), heads)


@pytest.mark.parametrize(
    "heads, kind, said",
    [
        (0, ValueError, "num_heads must be at least 1, got 0"),
        (2.0, TypeError, "num_heads must be an integer, got float"),
        (True, TypeError, "num_heads must be an integer, got bool"),
    ],
)
def test_a_number_of_heads_that_is_none(xp, heads, kind, said):
    with pytest.raises(kind, match=said):
        split_heads(xp.zeros((2, 4)), heads)


def test_heads_of_too_few_axes(xp):
    with pytest.raises(ValueError, match=r"x must have at least 2 axes .* \(4,\)"):
        split_heads(xp.zeros(4), 2)
    with pytest.raises(ValueError, match=r"x must have at least 3 axes .* \(2, 4\)"):
        merge_heads(xp.zeros((2, 4)))
    with pytest.raises(TypeError, match="x must be a NumPy array or a PyTorch tensor, got list"):
        merge_heads([[1.0]])


# multi_head_attention


@each_dtype
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads, kv_heads", [(1, 1), (2, 2), (4, 2), (4, 1), (6, 3)])
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


def test_a_query_head_uses_the_key_value_head_of_its_group(xp):
    weights = weights_for(xp, 4, 2)
    table = multi_head_attention(*inputs_for(xp), *weights, num_heads=4, num_kv_heads=2).weights
    w_q, w_k, w_v, w_o = weights
    full = [w_q, xp.concat([w_k[:, :3], w_k[:, :3], w_k[:, 3:], w_k[:, 3:]], axis=1)]
    full += [xp.concat([w_v[:, :2], w_v[:, :2], w_v[:, 2:], w_v[:, 2:]], axis=1), w_o]
    same = multi_head_attention(*inputs_for(xp), *full, num_heads=4).weights
    assert_close(table, oracles.floats(same))


# Masks: with fewer axes than the scores (batch, heads, n, m) a mask is for all heads.


def visible(result):
    return (oracles.floats(result.weights) > 0).tolist()


def test_a_mask_with_a_head_axis_is_per_head(xp):
    mask = padding_mask(xp.asarray([1, 5]), 5)[None, ...]  # (1, heads, 1, m)
    result = multi_head_attention(*inputs_for(xp), *weights_for(xp), num_heads=2, mask=mask)
    table = oracles.floats(result.weights)
    assert (table[:, 0, :, 0] == 1).all()  # head 0 of both items sees one key
    assert (table[:, 1] > 0).all()


@pytest.mark.parametrize("shape", [(), (5,), (1,), (1, 5), (3, 1), (3, 5), (1, 3, 5), (2, 1, 1)])
def test_any_shape_that_broadcasts_to_the_scores_of_one_head(xp, shape):
    mask = np.random.default_rng(1).random(shape) < 0.6
    weights = weights_for(xp)
    given = xp.asarray(mask)
    result = multi_head_attention(*inputs_for(xp), *weights, num_heads=2, mask=given)
    exact = [oracles.floats(w) for w in weights]
    output, table = multi_head(*inputs_for(xp), exact, 2, 2, mask=mask)
    assert_close(result.output, output, scale=100)
    assert_close(result.weights, table, scale=20)


@pytest.mark.parametrize("shape", [(1, 2, 1, 5), (2, 2, 3, 5), (2, 1, 3, 5), (1, 1, 1, 5)])
def test_a_mask_per_head_in_every_shape(xp, shape):
    mask = np.random.default_rng(1).random(shape) < 0.6
    result = multi_head_attention(
        *inputs_for(xp), *weights_for(xp), num_heads=2, mask=xp.asarray(mask)
    )
    assert not oracles.floats(result.weights)[~np.broadcast_to(mask, (2, 2, 3, 5))].any()


def test_masks_for_queries_without_a_batch(xp):
    arrays, weights = inputs_for(xp, batch=()), weights_for(xp)
    for mask in (causal_mask(3, 5, like=arrays[0]), causal_mask(3, 5, like=arrays[0])[None, ...]):
        result = multi_head_attention(*arrays, *weights, num_heads=2, mask=mask)
        assert tuple(result.output.shape) == (3, 6)
        assert visible(result) == np.broadcast_to(np.tri(3, 5, 2) > 0, (2, 3, 5)).tolist()


def test_a_mask_per_item_when_only_the_keys_have_a_batch(xp):
    query, _, _ = inputs_for(xp, batch=())
    _, key, value = inputs_for(xp)
    mask = padding_mask(xp.asarray([1, 5]), 5)
    result = multi_head_attention(query, key, value, *weights_for(xp), num_heads=2, mask=mask)
    table = oracles.floats(result.weights)
    assert (table[0, :, :, 0] == 1).all()
    assert (table[1] > 0).all()


# Bad input


def call(xp, n=3, m=5, **changed):
    names = ("query", "key", "value", "w_q", "w_k", "w_v", "w_o")
    given = dict(zip(names, [*inputs_for(xp, n, m), *weights_for(xp)], strict=True))
    return multi_head_attention(**{**given, "num_heads": 2, **changed})


@pytest.mark.parametrize(
    "changed, said",
    [
        ({"w_q": (4, 5)}, r"5 .*num_heads = 2"),
        ({"w_q": (3, 6)}, r"w_q must be a matrix of 4 rows .* \(3, 6\)"),
        ({"w_k": (4, 6)}, r"w_k must be a matrix of 5 rows .* \(4, 6\)"),
        ({"w_k": (5, 8)}, r"w_q.*w_k|w_k.*w_q"),
        ({"w_v": (3, 5)}, r"5 .*num_kv_heads = 2"),
        ({"w_v": (3,)}, r"w_v must be a matrix of 3 rows .* \(3,\)"),
        ({"w_o": (6, 6)}, r"w_o must be a matrix of 4 rows .* \(6, 6\)"),
        ({"value": (2, 4, 3)}, r"5 keys and 4 values \(key \(2, 5, 5\), value \(2, 4, 3\)\)"),
        ({"key": (3, 5, 5)}, r"query \(2, 3, 4\) and key \(3, 5, 5\)"),
        ({"query": (4,)}, r"query must have at least 2 axes .* \(4,\)"),
    ],
)
def test_shapes_that_do_not_fit(xp, changed, said):
    arrays = {name: xp.ones(shape, dtype=xp.float64) for name, shape in changed.items()}
    with pytest.raises(ValueError, match=said):
        call(xp, **arrays)


@pytest.mark.parametrize(
    "changed, kind, said",
    [
        ({"num_heads": 4}, ValueError, r"6 .*num_heads = 4"),
        ({"num_heads": 0}, ValueError, "num_heads must be at least 1, got 0"),
        ({"num_kv_heads": 3}, ValueError, "num_heads = 2 is not divisible by num_kv_heads = 3"),
        ({"num_kv_heads": 1.0}, TypeError, "num_kv_heads must be an integer, got float"),
        ({"causal": 1}, TypeError, "causal must be True or False, got int"),
    ],
)
def test_options_that_do_not_fit(xp, changed, kind, said):
    with pytest.raises(kind, match=said):
        call(xp, **changed)


@pytest.mark.parametrize("shape", [(2, 5), (3, 3), (3, 1, 5), (2, 3, 3, 5), (1, 2, 2, 3, 5)])
def test_a_mask_that_fits_neither_all_heads_nor_each(xp, shape):
    with pytest.raises(ValueError, match=r"mask of shape \(.*padding_mask\(lengths, 5\)"):
        call(xp, mask=xp.ones(shape, dtype=xp.bool))
