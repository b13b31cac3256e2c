"""Tiled attention is exact; the approximate ones are what they say, and what they cost.

``test_invariants.py`` asks them too, where they are exact; LSH is asked here alone.
"""

import itertools
import tracemalloc

import numpy as np
import oracles
import pytest
from comparing import assert_close, each_dtype, random

from d2lmini import attention, linear_attention, linformer_attention, lsh_attention, tiled_attention

CHUNK, ROWS, COLUMNS = 64, 256, 512  # queries and keys of one step: sizes around them are tried

# Tiled attention


@pytest.mark.parametrize("n, m", [(ROWS + 9, COLUMNS + 9), (2 * ROWS + 1, ROWS - 1), (700, 700)])
@pytest.mark.parametrize("causal", [False, True])
def test_more_than_one_tile_of_the_usual_size(xp, n, m, causal):
    query, key, value = random(xp, 0, 2, 2, n, 4), random(xp, 1, 2, 1, m, 4), random(xp, 2, m, 5)
    masks = [None, random(xp, 3, m) < 0.3, random(xp, 3, n, 1) < 0.3, random(xp, 4, 2, 1, n, m) < 0]
    for mask in masks:
        options = {"mask": mask, "causal": causal}
        output = tiled_attention(query, key, value, **options)
        assert_close(output, attention(query, key, value, **options).output, scale=4)


@each_dtype
@pytest.mark.parametrize("block_size", [None, 1, 100])
def test_every_dtype_is_kept_and_as_close_as_it_can_be(xp, dtype, block_size):
    arrays = [random(xp, i, 2, 6, 4, dtype=dtype) for i in range(3)]
    output = tiled_attention(*arrays, causal=True, block_size=block_size)
    assert output.dtype == arrays[0].dtype
    assert_close(output, oracles.attention(*arrays, is_causal=True)[0], scale=4)


@pytest.mark.parametrize("size", [1e-36, 1, 1e18, 1e19, 1e34])
@pytest.mark.parametrize("score", [-40, -20, 0, 20, 40])
def test_values_of_any_size_with_scores_of_any_size(xp, size, score):
    """Small scores need no shift, but 2^score times a value must neither overflow nor vanish."""
    query, key, value = np.ones((300, 4)) * score / 2, np.ones((600, 4)), random(np, 0, 600, 3)
    key[1::2, :] = 0.9
    for hidden in ({}, {"mask": random(np, 1, 300, 600) > 0}, {"causal": True}):
        right = attention(query, key, value, **hidden).output
        arrays = (xp.asarray(x, dtype=xp.float32) for x in (query, key, value * size))
        options = {name: xp.asarray(x) if name == "mask" else x for name, x in hidden.items()}
        found = tiled_attention(*arrays, **options, block_size=128)
        assert_close(found / size, right, scale=4)


@pytest.mark.parametrize("broken", ["query", "key", "value"])
def test_nan_is_not_lost(xp, broken):
    arrays = {name: random(xp, i, 9, 4) for i, name in enumerate(("query", "key", "value"))}
    arrays[broken][5, 1] = float("nan")
    found, right = tiled_attention(**arrays), attention(**arrays).output
    assert xp.isnan(found).tolist() == xp.isnan(right).tolist()
    assert xp.any(xp.isnan(found))


@pytest.mark.parametrize("block_size", [1, 2, 5])
def test_scores_that_overflow_and_hidden_ones_leave_nothing(xp, block_size):
    """What is hidden has weight 0 exactly, however large its value; so has a score of -inf."""
    query = xp.asarray([[1e30], [1e30], [1.0], [1.0]], dtype=xp.float32)
    key = xp.asarray([[-1e30], [-1e30], [1.0], [-1e30]], dtype=xp.float32)
    value = xp.asarray([[1e38], [2.0], [3.0], [1e38]], dtype=xp.float32)
    for mask in (None, xp.asarray([False, True, True, False])):
        options = {"mask": mask, "causal": True}
        output = tiled_attention(query, key, value, **options, block_size=block_size)
        assert_close(output, attention(query, key, value, **options).output)
        assert output[:2, 0].tolist() == [0, 0]
        assert output[2:, 0].tolist() == [3, 3]


def test_numpy_needs_memory_for_tiles_only():
    n = 4096
    query, key, value = (random(np, i, 2, n, 8, dtype="float32") for i in range(3))
    tracemalloc.start()
    for causal in (False, True):
        tiled_attention(query, key, value, causal=causal)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < n * n / 2  # bytes: an eighth of one table of scores


def test_pytorch_keeps_no_table_of_weights(torch):
    """In none of the forms that the kernel serves only with a table: what autograd keeps shows."""
    n = 1024
    kept = []
    for q_shape, v_shape, options in [
        ((1, 2, n, 8), (1, 2, n, 8), {}),
        ((2, 1, 1, 2, n, 8), (n, 8), {"causal": True}),
        ((2, n, 8), (2, n, 12), {"mask": torch.arange(n) < 700}),
        ((2, n // 2, 8), (n, 8), {"causal": True}),
    ]:
        query = torch.randn(q_shape, requires_grad=True)
        key, value = torch.randn(n, 8), torch.randn(v_shape)

        def note(x):
            kept.append(x.numel())
            return x

        with torch.autograd.graph.saved_tensors_hooks(note, lambda x: x):
            tiled_attention(query, key, value, **options)
    assert kept
    assert max(kept) < n * n / 2


# Low rank


def test_means_of_neighbours(xp):
    query, key, value = random(xp, 0, 2, 3, 4), random(xp, 1, 2, 6, 4), random(xp, 2, 6, 5)
    w_k, w_v = random(xp, 3, 2, 6), random(xp, 4, 2, 6)
    output, weights = linformer_attention(query, key, value, w_k, w_v)
    mixed = oracles.weighted_sum(w_k, key), oracles.weighted_sum(w_v, value)
    expected, table = oracles.attention(query, *mixed)
    assert_close(weights, table, scale=4)
    assert_close(output, expected, scale=9)


def test_mixed_keys_whose_scores_overflow_give_nan_in_silence():
    x = np.full((2, 2), 1e200)
    assert np.isnan(linformer_attention(x, x, x, np.eye(2), np.eye(2)).output).all()


# A feature map


@pytest.mark.parametrize("n, m", [(7, 7), (4, 9), (9, 4), (2 * CHUNK + 3, 2 * CHUNK + 9)])
@pytest.mark.parametrize("causal", [False, True])
def test_features_of_ones_own(xp, n, m, causal):
    query, key, value = random(xp, 0, n, 2), random(xp, 1, m, 2), random(xp, 2, m, 3)

    def features(x):
        return xp.concat([xp.abs(x), xp.full((len(x), 1), 0.5, dtype=x.dtype)], axis=-1)

    rows = [
        np.array([[*(abs(a) for a in row), 0.5] for row in oracles.floats(x)]) for x in (query, key)
    ]
    weights = rows[0] @ rows[1].T
    if causal:
        weights = weights * np.tri(n, m, m - n)
    total = weights.sum(axis=-1, keepdims=True)
    expected = weights @ oracles.floats(value) / np.where(total > 0, total, 1)
    output = linear_attention(query, key, value, feature_map=features, causal=causal)
    assert_close(output, expected, scale=9)


def test_no_feature_in_common_is_no_key(xp):
    query, key = xp.asarray([[1.0, 0.0], [0.0, 0.5]]), xp.asarray([[0.0, 2.0]])
    for causal in (False, True):
        output = linear_attention(
            query, key, xp.asarray([[5.0]]), feature_map=lambda x: x, causal=causal
        )
        assert output.tolist() == [[0], [5]]


# Hashing


def shown_by_hashing(query, num_buckets, num_rounds, seed):
    """Return which token is shown to which, in loops: by one round at least."""
    n, d = query.shape
    rounds = np.random.default_rng(seed).standard_normal((num_rounds, d, num_buckets // 2))
    shown = np.zeros((n, n), dtype=bool)
    for directions in rounds:
        along = query @ directions
        bucket = [0] * n if num_buckets == 1 else np.concatenate([along, -along], 1).argmax(1)
        order = sorted(range(n), key=lambda t: (bucket[t], t))
        chunk = {token: place // (n // num_buckets) for place, token in enumerate(order)}
        for i, j in itertools.product(range(n), range(n)):
            shown[i, j] |= bucket[i] == bucket[j] and chunk[i] - chunk[j] in (0, 1)
    return shown


@pytest.mark.parametrize("num_buckets", [1, 2, 12, 24])
@pytest.mark.parametrize("num_rounds, batch", [(1, 1), (3, 2)])
@pytest.mark.parametrize("causal", [False, True])
def test_a_token_sees_once_whatever_a_round_shows(xp, num_buckets, num_rounds, batch, causal):
    n, options = 24, {"num_buckets": num_buckets, "num_rounds": num_rounds, "seed": 3}
    query, value = random(xp, 0, batch, n, 5), random(xp, 1, 1, n, 3)
    output = lsh_attention(query, value, **options, causal=causal)
    for item, q in zip(output, oracles.floats(query), strict=True):
        seen = shown_by_hashing(q, **options) & ~np.eye(n, dtype=bool)
        seen &= np.tri(n, dtype=bool) | (not causal)
        seen |= np.eye(n, dtype=bool) & ~seen.any(axis=1)[:, None]  # itself where there is no other
        key = q / np.linalg.norm(q, axis=-1, keepdims=True)
        assert_close(item, oracles.attention(q, key, value[0], seen)[0], scale=9)


def test_gradients_where_something_is_left_out(torch):
    query, value = (random(torch, i, 8, 3).requires_grad_() for i in range(2))
    assert torch.autograd.gradcheck(
        lambda q, v: lsh_attention(q, v, num_buckets=4, num_rounds=2, seed=1, causal=True),
        (query, value),
    )


@pytest.mark.parametrize("shape", [(0,), (0, 4), (2, 0)])
def test_of_nothing_comes_nothing(xp, shape):
    query, value = random(xp, 0, *shape, 3), random(xp, 1, *shape, 2)
    assert lsh_attention(query, value, num_buckets=4, seed=0).shape == (*shape, 2)
