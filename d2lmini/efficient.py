"""Attention when the sequence grows: the same output in less memory, or nearly it in less work.

`tiled_attention` is exact. The other three give something up, each something else (chapter 8). The
cache that decoding needs stands in ``cache.py``, attention on several machines in
``distributed.py``.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from d2lmini._arrays import (
    A,
    Array,
    fill,
    floating,
    is_torch,
    on_one_batch,
    rounding_ignored,
)
from d2lmini._checks import (
    check_attention_mask,
    check_bias,
    check_flag,
    check_rows,
    check_same_space,
    check_shape,
    check_tables,
    scores_shape,
    whole_number,
)
from d2lmini._kernel import fused_attention, kernel_serves
from d2lmini.attention import Attention, _attention
from d2lmini.masks import _no_later_key
from d2lmini.scores import _scale_that_fits, _unit

__all__ = ["linear_attention", "linformer_attention", "lsh_attention", "tiled_attention"]

BINARY = math.log2(math.e)  # e^a = 2^(a · this)
ROWS, COLUMNS = 256, 512  # queries and keys of a tile: its scores stay in a processor's cache
NEAR = 32  # scores (of powers of 2) no further from 0 than this can be summed without a shift
CHUNK = 64  # tokens between two states of the recurrence

# Of some keys: the largest score, the sum of the weights measured from it, the sum of the values.
# Scores are those of powers of 2, which take half the time of powers of e.
State: TypeAlias = tuple[A, A, A]


def _tiled_attention(
    xp: Any,
    query: A,  # (..., n, d)
    key: A,  # (..., m, d)
    value: A,  # (..., m, d_v)
    mask: A | None,  # (..., n, m)
    bias: A | None,  # (..., n, m)
    triangle: A | None,  # (rows, rows), where it is causal
    scale: float,
    rows: int,
    columns: int,
    near: bool = False,
) -> A:
    """Return the output of attention, never with more scores in memory than those of a tile.

    `near` says that no score is far from 0, and none need be looked for that is the largest.
    """
    n, m = query.shape[-2], key.shape[-2]
    blind = 0 if triangle is None else max(n - m, 0)  # so many queries come before all keys
    if near and mask is None and triangle is not None:
        triangle = xp.astype(triangle, query.dtype)  # a product within one dtype is quicker
    shape = (*query.shape[:-2], blind, value.shape[-1])
    outputs = [xp.zeros(shape, dtype=value.dtype, device=value.device)]
    for top in range(blind, n, rows):
        bottom = min(top + rows, n)
        q = query[..., top:bottom, :] * (scale * BINARY)  # (..., rows, d)
        state = None
        for left, right, visible in _tiles(mask, triangle, top, bottom, n, m, columns):
            scores = (key[..., left:right, :] @ q.mT).mT  # (..., rows, columns), as Q Kᵀ
            if bias is not None:
                scores = scores + bias[..., top:bottom, left:right] * BINARY
            state = _partial(xp, scores, value[..., left:right, :], visible, state, near)
        assert state is not None
        outputs.append(_finished(xp, state))
    return xp.concat(outputs, axis=-2)


def _triangle(xp: Any, causal: bool, rows: int, query: Array) -> Any:
    """Return what the tiles on the diagonal hide; None if nothing."""
    if not causal:
        return None
    row = xp.arange(min(rows, query.shape[-2]), device=query.device)
    return _no_later_key(row, row[:, None]).mT  # in memory key by key, as scores are


def _tiles(
    mask: A | None, triangle: A | None, top: int, bottom: int, n: int, m: int, columns: int
) -> Iterator[tuple[int, int, A | None]]:
    """Yield the first and last column of each tile that may be seen, and its mask if it has one."""
    diagonal = top + m - n  # the key in the place of the first query; all rows see those before it
    seen_by_all = m if triangle is None else diagonal
    for left in range(0, seen_by_all, columns):
        right = min(left + columns, seen_by_all)
        yield left, right, None if mask is None else mask[..., top:bottom, left:right]
    if triangle is not None:
        right = bottom + m - n
        lower = triangle[: bottom - top, : bottom - top]
        yield (
            diagonal,
            right,
            lower if mask is None else mask[..., top:bottom, diagonal:right] & lower,
        )


def _partial(
    xp: Any,
    scores: A,
    value: A,
    visible: A | None = None,
    before: State[A] | None = None,
    near: bool = False,
) -> State[A]:
    """Return M = max bⱼ, Σ 2^(bⱼ - M) and Σ 2^(bⱼ - M) vⱼ of some keys and of those `before`.

    Here b = a log₂ e, so that 2^b = e^a. M cancels out in the end; with scores `near` 0 it is 0.
    The scores are used up. In memory they best lie key by key: NumPy compares whole rows of queries
    more quickly than the keys within a row.
    """
    if near:
        shift = largest = xp.zeros((1, 1), dtype=scores.dtype)
        e = xp.exp2(scores, out=scores)
        if visible is not None:
            e *= visible
    else:
        if visible is not None:
            scores = _hidden(xp, scores, ~visible)
        fixed = scores.detach() if is_torch(scores) else scores  # what is subtracted cancels out
        largest = xp.max(fixed, axis=-1, keepdims=True)  # (..., n, 1)
        if before is not None:
            largest = xp.maximum(before[0], largest)
        shift = _finite(xp, largest)
        e = _power_from(xp, scores, shift, masked=visible is not None)  # (..., n, m)
    total = e @ xp.ones((e.shape[-1], 1), dtype=e.dtype, device=e.device)  # a sum, but quicker
    mixed = e @ value  # (..., n, d_v)
    if before is not None:
        fade = xp.exp2(before[0] - shift)
        total += before[1] * fade
        mixed += before[2] * fade
    return largest, total, mixed


def _hidden(xp: Any, scores: A, hidden: A) -> A:
    if is_torch(scores):
        return xp.where(hidden, -xp.inf, scores)
    fill(scores, hidden, -math.inf)
    return scores


def _power_from(xp: Any, scores: A, shift: A, *, masked: bool) -> Any:
    """Return 2^(scores - shift), in NumPy where the scores stood: fresh memory is slow."""
    if is_torch(scores):
        return xp.exp2(scores - shift)
    scores -= shift
    if not masked:
        return xp.exp2(scores, out=scores)
    dtype = xp.finfo(scores.dtype)  # 2^-inf would take it five times as long as all of this
    scores = xp.maximum(scores, dtype.minexp, out=scores)
    scores = xp.exp2(scores, out=scores)
    return xp.subtract(scores, dtype.smallest_normal, out=scores)  # 2^minexp: what was hidden is 0


def _merged(xp: Any, one: State[A], other: State[A]) -> State[A]:
    """Join what two sets of keys have given, as if they had been one set: the online softmax."""
    largest = xp.maximum(one[0], other[0])
    shift = _finite(xp, largest)
    fade, other_fade = xp.exp2(one[0] - shift), xp.exp2(other[0] - shift)  # one of them is 1
    total = one[1] * fade + other[1] * other_fade
    return largest, total, one[2] * fade + other[2] * other_fade


def _finished(xp: Any, state: State[A]) -> A:
    """Divide by the sum of the weights; a query that has seen no key gets 0."""
    _, total, mixed = state
    return mixed / xp.where(total == 0, 1.0, total)


def _finite(xp: Any, largest: A) -> A:
    """Return what is subtracted from scores: 0 where nothing is visible, since inf - inf is NaN."""
    return xp.where(largest == -xp.inf, 0.0, largest)


def tiled_attention(
    query: A,
    key: A,
    value: A,
    *,
    mask: A | None = None,
    causal: bool = False,
    scale: float | None = None,
    bias: A | None = None,
    block_size: int | None = None,
) -> A:
    r"""Return the output of `attention`, exactly, without ever holding the n × m weights.

    The scores are computed tile by tile. Of the keys seen so far three things are kept for each
    query: the largest score, the sum of the weights measured from it, and the weighted sum of the
    values. A new tile with scores :math:`a_j` goes on from there:

    .. math::
        M' &= \max(M, \max_j a_j), \\
        s' &= s\, e^{M - M'} + \sum_j e^{a_j - M'}, \\
        o' &= o\, e^{M - M'} + \sum_j e^{a_j - M'} v_j,

    and the output is :math:`o / s` in the end.

    Parameters
    ----------
    query : array, shape (..., n, d)
    key : array, shape (..., m, d)
    value : array, shape (..., m, d_v)
        Any number of leading batch axes, which broadcast. Any axis may be 0.
    mask : boolean array that broadcasts to (..., n, m), optional
        True = may attend.
    causal : bool
        Hide later keys too (see `causal_mask`: the last query sees every key). Tiles that no query
        sees are not computed.
    scale : float, optional
        What the dot product is multiplied by; 1/√d unless given.
    bias : array that broadcasts to (..., n, m), optional
        Added to the scores, such as `alibi_bias`.
    block_size : int, optional
        Compute square tiles of this many queries and keys. Without it NumPy's arrays are cut to
        tiles of a size that suits a processor, and PyTorch's go to its fused kernel, which does the
        same (but has no second derivatives).

    Returns
    -------
    array, shape (..., n, d_v)
        The output alone. Beside it memory grows with n + m; the backward pass of a given
        `block_size` keeps all tiles.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, NumPy and PyTorch are mixed, `mask` is not
        boolean, `causal` is not a bool, or `block_size` is not an integer.
    ValueError
        If shapes do not fit together, `scale` does not fit the dtype, or `block_size` is less
        than 1.

    References
    ----------
    Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018; Rabe and Staats,
    "Self-attention does not need O(n²) memory", 2021; Dao et al., "FlashAttention: fast and
    memory-efficient exact attention with IO-awareness", 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from d2lmini import attention
    >>> x = np.linspace(-1, 1, 24).reshape(8, 3)
    >>> output = tiled_attention(x, x, x, causal=True, block_size=2)
    >>> np.testing.assert_allclose(output, attention(x, x, x, causal=True).output)
    """
    biases = {} if bias is None else {"bias": bias}
    xp, query, key, value, *found = floating(query=query, key=key, value=value, **biases)
    check_rows(query, key, value)
    check_same_space(query, key)
    check_attention_mask(mask, query, key)
    check_bias(bias, scores_shape(query, key))
    bias = found[0] if found else None
    check_flag("causal", causal)
    number = 1 / math.sqrt(max(query.shape[-1], 1))
    if scale is not None:
        number = _scale_that_fits(xp, scale, query.dtype)
    if block_size is not None:
        block_size = whole_number("block_size", block_size, at_least=1)
    output = _by_the_best_way(xp, query, key, value, mask, causal, number, bias, block_size)
    return xp.astype(output, value.dtype, copy=False)


def _by_the_best_way(
    xp: Any,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    causal: bool,
    scale: float,
    bias: Array | None,
    block_size: int | None,
) -> Array:
    """Choose between the tiles of this file and PyTorch's."""
    query, key, value = on_one_batch(xp, query, key, value)
    rows, columns = (ROWS, COLUMNS) if block_size is None else (block_size, block_size)
    with rounding_ignored(value, invalid=True):
        if 0 in (*query.shape, *key.shape, *value.shape):  # nothing to cut
            whole = _attention(xp, query, key, value, mask, causal, scale=scale, bias=bias)
            return whole.output
        if block_size is None and is_torch(query) and kernel_serves(query, key, value, mask, bias):
            return fused_attention(query, key, value, mask, causal, scale, bias)
        mask, bias = (x if x is None else _whole(xp, x, query, key) for x in (mask, bias))
        if not is_torch(query):
            return _one_matrix_at_a_time(
                xp, query, key, value, mask, bias, causal, scale, rows, columns
            )
        query, key, value = _wide(xp, query, key, value)
        triangle = _triangle(xp, causal, rows, query)
        return _tiled_attention(xp, query, key, value, mask, bias, triangle, scale, rows, columns)


def _whole(xp: Any, x: A, query: A, key: A) -> A:
    """Broadcast a mask or a bias to the scores; that takes no memory either."""
    return xp.broadcast_to(x, (*query.shape[:-1], key.shape[-2]))


def _wide(xp: Any, *arrays: A) -> tuple[Any, ...]:
    """Compute with at least four bytes, since sums over all keys are carried along."""
    narrow = xp.finfo(arrays[0].dtype).bits < 32
    return tuple(xp.astype(x, xp.float32) for x in arrays) if narrow else arrays


# NumPy


def _one_matrix_at_a_time(
    xp: Any,
    query: A,  # (*batch, n, d)
    key: A,
    value: A,
    mask: A | None,
    bias: A | None,
    causal: bool,
    scale: float,
    rows: int,
    columns: int,
) -> A:
    """Attend item by item and head by head, so that a tile is a tile of one matrix."""
    *batch, n, _ = query.shape
    small = math.prod(batch) * n * key.shape[-2] <= ROWS * COLUMNS
    triangle = _triangle(xp, causal, rows, query)
    output = xp.empty((*batch, n, value.shape[-1]), dtype=value.dtype)
    for item in [...] if small else np.ndindex(*batch):
        q, k, v = _wide(xp, query[item], key[item], value[item])
        seen, added = (x if x is None else x[item] for x in (mask, bias))
        near = bias is None and _scores_near_0(q, k, v, scale)
        output[item] = _tiled_attention(
            xp, q, k, v, seen, added, triangle, scale, rows, columns, near
        )
    return output


def _scores_near_0(query: Array, key: Array, value: Array, scale: float) -> bool:
    """Tell whether 2^b and 2^b v neither overflow nor vanish, since |q · k| ≤ |q| |k|."""
    q, k, v = (math.sqrt(np.vecdot(x, x).max()) for x in (query, key, value))
    return q * k * abs(scale) * BINARY <= NEAR and 2.0**-NEAR <= v < math.inf


# Fewer keys: low rank


def linformer_attention(query: A, key: A, value: A, w_k: A, w_v: A) -> Attention[A]:
    r"""Mix m keys and values down to r of each, then attend to those.

    .. math:: \text{output} = \operatorname{softmax}\!\left(
        \frac{Q\, (W_K K)^\top}{\sqrt{d}}\right) W_V V

    The work grows with n · r instead of n · m. What is given up: no position has a weight of its
    own any more, the matrices fit one length m only, and there is no mask, since each of the r
    mixtures holds something of every position, of later ones too. With r = m and unit matrices it
    is `attention`.

    Parameters
    ----------
    query : array, shape (..., n, d)
    key : array, shape (..., m, d)
    value : array, shape (..., m, d_v)
    w_k, w_v : array, shape (r, m)
        How keys and values are mixed along the sequence; learned in a model.

    Returns
    -------
    Attention
        ``output`` (..., n, d_v) and ``weights`` (..., n, r), those of the mixtures.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, or NumPy and PyTorch are mixed.
    ValueError
        If shapes do not fit together.

    References
    ----------
    Wang et al., "Linformer: self-attention with linear complexity", 2020.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 24).reshape(8, 3)
    >>> pairs = np.kron(np.eye(4), [[0.5, 0.5]])               # means of two neighbours, (4, 8)
    >>> output, weights = linformer_attention(x, x, x, pairs, pairs)
    >>> output.shape, weights.shape
    ((8, 3), (8, 4))
    """
    xp, query, key, value, w_k, w_v = floating(query=query, key=key, value=value, w_k=w_k, w_v=w_v)
    check_rows(query, key, value)
    check_same_space(query, key)
    if w_k.ndim != 2:
        raise ValueError(f"w_k must have shape (r, m), got {tuple(w_k.shape)}")
    for name, w in (("w_k", w_k), ("w_v", w_v)):
        check_shape(name, w, (w_k.shape[0], key.shape[-2]), "(r, m)")
    with rounding_ignored(value, invalid=True):
        return _attention(xp, query, w_k @ key, w_v @ value)


# No softmax: a feature map


def _linear_attention(xp: Any, query: A, key: A, value: A) -> A:
    """Return φ(Q) (φ(K)ᵀ V) / φ(Q) Σ φ(k), from what the feature map has given."""
    mixed = query @ (key.mT @ value)  # (..., n, f) @ ((..., f, m) @ (..., m, d_v))
    return _divided(xp, mixed, query @ xp.sum(key, axis=-2, keepdims=True).mT)


def _causal_linear_attention(xp: Any, query: A, key: A, value: A) -> A:
    """Do so as a recurrence: some queries at a time see the sums of all keys before them."""
    n, m = query.shape[-2], key.shape[-2]
    past = max(m - n, 0)  # keys before the first query's own
    state = key[..., :past, :].mT @ value[..., :past, :]  # (..., f, d_v)
    normaliser = xp.sum(key[..., :past, :], axis=-2, keepdims=True).mT  # (..., f, 1)
    blind = max(n - m, 0)
    outputs = [xp.zeros_like(query[..., :blind, :] @ state)]
    for top in range(blind, n, CHUNK):
        q = query[..., top : min(top + CHUNK, n), :]
        own = slice(top + m - n, min(top + CHUNK, n) + m - n)
        k, v = key[..., own, :], value[..., own, :]
        weights = q @ k.mT  # (..., CHUNK, CHUNK)
        positions = xp.arange(q.shape[-2], device=q.device)
        weights = xp.where(_no_later_key(positions[:, None], positions), weights, 0.0)
        total = xp.sum(weights, axis=-1, keepdims=True) + q @ normaliser
        outputs.append(_divided(xp, weights @ v + q @ state, total))
        state = state + k.mT @ v
        normaliser = normaliser + xp.sum(k, axis=-2, keepdims=True).mT
    return xp.concat(outputs, axis=-2)


def _divided(xp: Any, mixed: A, total: A) -> A:
    """Divide by the sum of the weights; 0 where there is none."""
    return xp.where(total == 0, 0.0, mixed / xp.where(total == 0, 1.0, total))


def _elu_plus_one(xp: Any, x: A) -> A:
    """Return x + 1 above 0, and e to the x below."""
    return xp.where(x > 0, x + 1, xp.exp(xp.where(x > 0, 0.0, x)))


def linear_attention(
    query: A,
    key: A,
    value: A,
    *,
    feature_map: Callable[[A], A] | None = None,
    causal: bool = False,
) -> A:
    r"""Weigh by a product of features, so that keys and values can be summed once for all queries.

    .. math:: \text{output}_i = \frac{\phi(q_i)^\top \sum_j \phi(k_j)\, v_j^\top}
        {\phi(q_i)^\top \sum_j \phi(k_j)}

    The work grows with n + m. What is given up: the weights are no softmax. They are never as
    sharp, because f features cannot tell more than f keys apart. It is exactly `attention` with
    the score :math:`\log(\phi(q)^\top \phi(k))`.

    Parameters
    ----------
    query : array, shape (..., n, d)
    key : array, shape (..., m, d)
    value : array, shape (..., m, d_v)
    feature_map : callable, optional
        φ, from (..., n, d) to (..., n, f), with features that are not negative; elu(x) + 1 unless
        given.
    causal : bool
        Hide later keys (see `causal_mask`). The sums are then those of the keys so far: what has
        been read is kept as f × d_v numbers, however much it was.

    Returns
    -------
    array, shape (..., n, d_v)
        The output alone.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, NumPy and PyTorch are mixed, `causal` is
        not a bool, or `feature_map` is not a function that returns an array.
    ValueError
        If shapes do not fit together.

    References
    ----------
    Katharopoulos et al., "Transformers are RNNs: fast autoregressive transformers with linear
    attention", 2020.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 24).reshape(8, 3)
    >>> linear_attention(x, x, x, causal=True).shape
    (8, 3)
    """
    xp, query, key, value = floating(query=query, key=key, value=value)
    check_rows(query, key, value)
    check_same_space(query, key)
    check_flag("causal", causal)
    with rounding_ignored(value, invalid=True):
        query, key = (
            _elu_plus_one(xp, x) if feature_map is None else _features(feature_map, name, x)
            for name, x in (("query", query), ("key", key))
        )
        attend = _causal_linear_attention if causal else _linear_attention
        return attend(xp, *on_one_batch(xp, query, key, value))


def _features(feature_map: Callable[[A], A], name: str, x: A) -> A:
    """Return the features of queries or keys, checked."""
    if not callable(feature_map):
        raise TypeError(f"feature_map must be a function of an array, got {feature_map!r:.40}")
    features = feature_map(x)
    _, features, _ = floating(**{f"feature_map({name})": features, name: x})
    if tuple(features.shape[:-1]) != tuple(x.shape[:-1]):
        raise ValueError(
            f"feature_map must return shape (..., n, f) for (..., n, d): it made "
            f"{tuple(features.shape)} of the {name} {tuple(x.shape)}"
        )
    return features


# Fewer pairs: hashing


def _lsh_attention(
    xp: Any,
    query: A,  # (..., n, d)
    key: A,
    value: A,  # (..., n, d_v)
    buckets: list[A],  # of each round, (..., n)
    num_buckets: int,
    causal: bool,
) -> A:
    """Attend to the tokens that a round has put next to one's own, each of them once."""
    n, d = query.shape[-2:]
    size = n // num_buckets  # of a chunk
    orders = [xp.argsort(bucket * n + xp.arange(n, device=query.device)) for bucket in buckets]
    places = [xp.argsort(order) for order in orders]  # (..., n), where each token came to stand
    chunks = [place // size for place in places]
    hashes, stands = xp.stack(buckets, axis=-1), xp.stack(chunks, axis=-1)  # (..., n, rounds)
    state = None
    for hashed, (order, place) in enumerate(zip(orders, places, strict=True)):
        cut = functools.partial(_in_chunks, xp, order=order, size=size)
        (bucket, other_bucket), (chunk, other_chunk) = cut(hashes), cut(stands)
        ahead = chunk[..., :, None, :] - other_chunk[..., None, :, :]  # (..., n, 2n, rounds)
        together = bucket[..., :, None, :] == other_bucket[..., None, :, :]
        shown = together & (ahead >= 0) & (ahead <= 1)  # by each round, of the pairs of this one
        i, j = cut(xp.broadcast_to(xp.arange(n, device=query.device), order.shape)[..., None])
        visible = shown[..., hashed] & ((j.mT < i) if causal else (j.mT != i))
        scores = cut(query)[0] @ cut(key)[1].mT / math.sqrt(d)
        times = xp.sum(xp.astype(shown, scores.dtype), axis=-1)
        scores = scores - xp.log(xp.where(visible, times, 1.0))  # each round adds its share
        part = _unsorted(xp, _partial(xp, scores * BINARY, cut(value)[1], visible), place)
        state = part if state is None else _merged(xp, state, part)
    assert state is not None
    return xp.where(state[1] == 0, value, _finished(xp, state))  # else there is only itself


def _in_chunks(xp: Any, x: A, order: A, size: int) -> tuple[A, A]:
    """Sort and cut (..., n, d): to (..., chunks, size, d), and with the chunk before each."""
    x = xp.take_along_axis(x, order[..., None], axis=-2)
    own = x.reshape((*x.shape[:-2], -1, size, x.shape[-1]))
    if own.shape[-3] == 1:
        return own, own
    return own, xp.concat([xp.roll(own, 1, axis=-3), own], axis=-2)


def _unsorted(xp: Any, state: State[A], place: A) -> State[A]:
    """Bring what the tokens have seen back into their order."""

    def back(x: A) -> A:
        x = x.reshape((*x.shape[:-3], -1, x.shape[-1]))  # (..., n, d)
        return xp.take_along_axis(x, place[..., None], axis=-2)

    largest, total, mixed = state
    return back(largest), back(total), back(mixed)


def _buckets(xp: Any, query: A, directions: A) -> A:
    """Return in which bucket each query falls: the direction ±r that it is most like, (..., n)."""
    along = query @ directions  # (..., n, b / 2)
    if along.shape[-1] == 0:
        return xp.zeros(along.shape[:-1], dtype=xp.int64, device=query.device)
    return xp.argmax(xp.concat([along, -along], axis=-1), axis=-1)


def _number_of_buckets(num_buckets: int, n: int) -> int:
    """Return the number of buckets, checked."""
    num_buckets = whole_number("num_buckets", num_buckets, at_least=1)

    def serves(number: int) -> bool:
        return n % number == 0 and (number == 1 or number % 2 == 0)

    if not serves(num_buckets):
        serving = filter(serves, range(1, max(n, 2) + 1))
        near = sorted(sorted(serving, key=lambda number: abs(number - num_buckets))[:2])
        raise ValueError(
            f"num_buckets must be 1, or an even number that divides n = {n} (each direction makes "
            f"two buckets, and each bucket a chunk), got {num_buckets}; the nearest: "
            f"{', '.join(map(str, near))}"
        )
    return num_buckets


def lsh_attention(
    query: A,
    value: A,
    *,
    num_buckets: int,
    num_rounds: int = 1,
    seed: int,
    causal: bool = False,
) -> A:
    r"""Let each token look only at those that a random hash puts next to it.

    Keys are the queries, scaled to length 1. Random directions cut the space into buckets, so that
    vectors that point the same way are likely to share one. The tokens are sorted by bucket and cut
    into as many chunks of equal length; each looks at those of its own bucket in its own chunk and
    in the one before. Several rounds with other directions find what one round has missed: a token
    looks, once, at all that any round has shown to it. It looks at itself only if there is nothing
    else, since no other key is as similar.

    The work grows with rounds² · n² / buckets. With one bucket nothing is left out:
    the output is that of `attention` with these keys, where no token sees itself.

    Parameters
    ----------
    query : array, shape (..., n, d)
    value : array, shape (..., n, d_v)
    num_buckets : int
        1, or an even number that divides n.
    num_rounds : int
        How often to hash.
    seed : int
        Of the random directions, which are the same for NumPy and PyTorch.
    causal : bool
        Hide later tokens too.

    Returns
    -------
    array, shape (..., n, d_v)
        The output alone.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, NumPy and PyTorch are mixed, `causal` is
        not a bool, or a number is not an integer.
    ValueError
        If shapes do not fit together, or `num_buckets` is odd or does not divide n.

    References
    ----------
    Kitaev, Kaiser and Levskaya, "Reformer: the efficient transformer", 2020.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(8, 3))
    >>> lsh_attention(x, x, num_buckets=2, num_rounds=2, seed=0).shape
    (8, 3)
    """
    xp, query, value = floating(query=query, value=value)
    check_tables(query=query, value=value)
    n, d = query.shape[-2:]
    if value.shape[-2] != n:
        raise ValueError(
            f"each query needs one value, got {n} queries and {value.shape[-2]} values"
        )
    num_buckets = _number_of_buckets(num_buckets, n)
    num_rounds = whole_number("num_rounds", num_rounds, at_least=1)
    seed = whole_number("seed", seed, at_least=0)
    check_flag("causal", causal)
    query, value = on_one_batch(xp, query, value)
    if 0 in (*query.shape[:-1], value.shape[-1]):
        return value * 1
    with rounding_ignored(value, invalid=True):
        drawn = np.random.default_rng(seed).standard_normal((num_rounds, d, num_buckets // 2))
        directions = xp.asarray(drawn, dtype=query.dtype, device=query.device)
        fixed = query.detach() if is_torch(query) else query
        buckets = [_buckets(xp, fixed, each) for each in directions]
        key = _unit(xp, query)
        return _lsh_attention(xp, query, key, value, buckets, num_buckets, causal)
