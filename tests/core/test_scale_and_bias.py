"""`scale` and `bias`, one meaning in every function: softmax(s·qk + b). Positions as a bias."""

import math

import numpy as np
import oracles
import pytest
from comparing import assert_close, each_way, output_of, random

from d2lmini import (
    alibi_bias,
    attention,
    cosine_score,
    multi_head_attention,
    rotary,
    tiled_attention,
)

N, M, D, D_V = 3, 5, 4, 2
BIASES = {"(n, m)": (N, M), "(m,)": (M,), "per item": (2, 1, M), "one number": ()}


def in_loops(query, key, value, mask=True, causal=False, scale=None, bias=0.0):
    """Return the output of attention, with a bias that broadcasts to the scores."""
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    table = scale * oracles.scores(query, key, oracles.dot_product) + oracles.floats(bias)
    n, m = table.shape[-2:]
    if causal:
        mask = np.logical_and(
            np.asarray(mask), oracles.mask_of(lambda i, j: oracles.causal(i, j, n, m), n, m)
        )
    weights = oracles.masked_softmax(table, mask)
    return oracles.weighted_sum(weights, value), weights


def inputs(xp, dtype="float64", batch=(2,)):
    shapes = (N, D), (M, D), (M, D_V)
    return [random(xp, i, *batch, *shape, dtype=dtype) for i, shape in enumerate(shapes)]


@each_way
@pytest.mark.parametrize(
    "causal, masked, scale", [(False, False, 0.0), (True, False, -1.5), (False, True, 4.0)]
)
@pytest.mark.parametrize("shape", BIASES.values(), ids=BIASES)
def test_it_is_added_to_the_scores_at_any_scale(xp, attend, causal, masked, scale, shape):
    query, key, value = inputs(xp)
    options = {"causal": causal, "scale": scale, "bias": 3 * random(xp, 7, *shape)}
    mask = np.random.default_rng(1).random((N, M)) < 0.7 if masked else True
    expected = in_loops(query, key, value, mask, **options)
    result = attend(query, key, value, mask=xp.asarray(mask), **options)
    assert_close(output_of(result), expected[0], scale=5)
    if isinstance(result, tuple):
        assert_close(result.weights, expected[1])


@each_way
def test_minus_infinity_hides_a_key_and_a_query_without_key_gives_0(xp, attend):
    query, key, value = inputs(xp)
    bias = np.zeros((N, M))
    bias[0, 1:3] = bias[2] = -np.inf
    output = output_of(attend(query, key, value, bias=xp.asarray(bias)))
    assert_close(output, in_loops(query, key, value, bias=bias)[0], scale=5)
    assert not output[:, 2].any()


def test_another_score_takes_a_bias(xp):
    query, key, value = inputs(xp)
    bias = random(xp, 7, N, M)
    found = attention(query, key, value, score=cosine_score, bias=bias)
    table = oracles.scores(query, key, oracles.cosine) + oracles.floats(bias)
    assert_close(found.weights, oracles.masked_softmax(table))


@pytest.mark.parametrize("shape", [(N, M), (4, N, M), (2, 4, N, M), (2, 1, 1, M)])
def test_in_several_heads_a_third_axis_is_that_of_the_heads(xp, shape):
    x, other = random(xp, 0, 2, N, 8), random(xp, 1, 2, M, 8)
    weights = [random(xp, 2 + i, 8, columns) / 3 for i, columns in enumerate((8, 4, 4, 8))]
    bias = 2 * random(xp, 9, *shape)
    output, found = multi_head_attention(
        x, other, other, *weights, num_heads=4, num_kv_heads=2, scale=0.3, bias=bias
    )
    w_q, w_k, w_v, w_o = (oracles.floats(w) for w in weights)
    everywhere, total = np.broadcast_to(oracles.floats(bias), (2, 4, N, M)), 0.0
    for head in range(4):
        own, shared = slice(2 * head, 2 * head + 2), slice(2 * (head // 2), 2 * (head // 2) + 2)
        parts = (x, w_q[:, own]), (other, w_k[:, shared]), (other, w_v[:, shared])
        projected = [oracles.floats(given) @ w for given, w in parts]
        result, table = in_loops(*projected, scale=0.3, bias=everywhere[:, head])
        assert_close(found[:, head], table)
        total = total + result @ w_o[own]
    assert_close(output, total, scale=5)


def test_with_a_cache_the_bias_counts_the_keys_of_the_cache(torch):
    from d2lmini import KeyValueCache, MultiHeadAttention

    layer, x, cache = MultiHeadAttention(8, 4).double(), torch.randn(2, 6, 8).double(), None
    whole = layer(x, causal=True, bias=alibi_bias(4, 6, like=x)).output
    cache = KeyValueCache()
    for t in range(6):
        bias = alibi_bias(4, 1, t + 1, like=x)
        token = layer(x[:, t : t + 1], causal=True, bias=bias, cache=cache).output
        torch.testing.assert_close(token[:, 0], whole[:, t])


@pytest.mark.parametrize("n, m", [(300, 300), (300, 700), (700, 300)])
def test_strips_of_the_kernel_cut_the_bias_too(torch, n, m):
    query, key, value = torch.randn(2, n, 4), torch.randn(2, m, 4), torch.randn(2, m, 3)
    options = {"causal": True, "bias": alibi_bias(2, n, m, like=query)}
    options["mask"] = torch.rand(m) < 0.9
    expected = attention(query, key, value, **options).output
    torch.testing.assert_close(tiled_attention(query, key, value, **options), expected)


# ALiBi


@pytest.mark.parametrize(
    "heads, slopes",
    {
        1: [2**-8],
        2: [2**-4, 2**-8],
        3: [2**-4, 2**-8, 2**-2],
        8: [2.0**-i for i in range(1, 9)],
        12: [2.0**-i for i in range(1, 9)] + [2**-0.5, 2**-1.5, 2**-2.5, 2**-3.5],
    }.items(),
)
@pytest.mark.parametrize("n, m", [(3, 3), (2, 4), (4, 2), (2, 0)])
def test_alibi_is_slope_times_distance(xp, heads, slopes, n, m):
    bias = alibi_bias(heads, n, m, like=xp.zeros(0, dtype=xp.float64))
    table = [[[-s * abs(i + m - n - j) for j in range(m)] for i in range(n)] for s in slopes]
    assert_close(bias, np.reshape(table, (heads, n, m)), scale=4)


def test_alibi_takes_kind_and_dtype_from_like(xp):
    for dtype in (xp.float32, xp.float16):
        assert alibi_bias(2, 3, like=xp.zeros(0, dtype=dtype)).dtype == dtype
    assert alibi_bias(2, 3, like=xp.zeros(0, dtype=xp.int64)).dtype == xp.asarray(0.0).dtype
    assert isinstance(plain := alibi_bias(2, 3), np.ndarray) and plain.dtype == np.float64


# Rotary: two layouts, and positions of one's own


PAIRS = {"interleaved": [0, 1, 2, 3, 4, 5], "halves": [0, 3, 1, 4, 2, 5]}  # one after the other


def turned(row, t, layout):
    """Turn the pairs of one row at position t."""
    order, result = PAIRS[layout][: len(row)], np.empty(len(row))
    result[order] = oracles.rotary([[row[i] for i in order]], t, 10_000.0)[0]
    return result


@pytest.mark.parametrize("layout", PAIRS)
@pytest.mark.parametrize("positions", [[0, 0, 1, 7], [[[-2, -1, 0, 1]], [[0, 1, 0, 1]]]])
def test_positions_of_ones_own(xp, layout, positions):
    """Two texts in one row, and padding at the start; x is (batch, heads, n, d)."""
    x = random(xp, 0, 2, 3, 4, 6)
    found = rotary(x, layout=layout, positions=xp.asarray(positions))
    where = np.broadcast_to(positions, (2, 3, 4))
    expected = np.empty((2, 3, 4, 6))
    for at in np.ndindex(2, 3, 4):
        expected[at] = turned(x[at].tolist(), int(where[at]), layout)
    assert_close(found, expected, scale=3)


def test_the_fused_path_serves_a_bias_that_hides_whole_rows_without_nan(torch):
    query, key, value = (x.requires_grad_() for x in inputs(torch))
    bias = torch.zeros(N, M, dtype=torch.float64)
    bias[1] = -math.inf
    tiled_attention(query, key, value, bias=bias).square().sum().backward()
    assert all(x.grad.isfinite().all() for x in (query, key, value))
