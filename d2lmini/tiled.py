"""Exact attention in tiles, without the n × m weights: how two parts become one (chapter 8)."""

import math
from typing import Any, Generic, NamedTuple

import numpy as np

from d2lmini._arrays import (
    device_of,
    floating,
    is_torch,
    on_one_batch,
    rounding_ignored,
    widened,
)
from d2lmini._checks import (
    check_attention_mask,
    check_bias,
    check_flag,
    check_rows,
    check_same_space,
    scores_shape,
    shared_heads,
    whole_number,
)
from d2lmini._kernel import fused_attention, kernel_serves
from d2lmini._quick_tiles import quick_tiles
from d2lmini._types import A, Array, T
from d2lmini.attention import _attention
from d2lmini.masks import _no_later_key
from d2lmini.scores import _scale_that_fits

__all__ = ["tiled_attention"]

SIZE = 512  # queries and keys of a tile


class Part(NamedTuple, Generic[T]):
    """What some of the keys give to each query: M, s and o of the formula."""

    largest: T  # (..., n, 1), the largest score
    total: T  # (..., n, 1), the sum of the weights, measured from it
    mixed: T  # (..., n, d_v), the sum of the values, each times its weight


def _merged(xp: Any, one: Part[A], other: Part[A]) -> Part[A]:
    """Join what two sets of keys have given, as if they had been one set: the online softmax."""
    largest = xp.maximum(one.largest, other.largest)
    fade, other_fade = (xp.exp(part.largest - _finite(xp, largest)) for part in (one, other))
    total = one.total * fade + other.total * other_fade
    return Part(largest, total, one.mixed * fade + other.mixed * other_fade)


def _part(xp: Any, scores: A, value: A, visible: A | None = None) -> Part[A]:
    """Return the part of some keys, from scores (..., n, m) and values (..., m, d_v)."""
    if visible is not None:
        scores = xp.where(visible, scores, -xp.inf)
    fixed = scores.detach() if is_torch(scores) else scores  # what is subtracted cancels out
    largest = xp.max(fixed, axis=-1, keepdims=True)
    e = xp.exp(scores - _finite(xp, largest))
    return Part(largest, xp.sum(e, axis=-1, keepdims=True), e @ value)


def _finished(xp: Any, part: Part[A]) -> A:
    """Divide by the sum of the weights; a query that has seen no key gets 0."""
    return part.mixed / xp.where(part.total == 0, 1.0, part.total)


def _nothing(xp: Any, query: A, value: A) -> Part[A]:
    """Return the part of no keys at all."""
    kind = {"dtype": value.dtype, "device": device_of(value)}
    total = xp.zeros((*query.shape[:-1], 1), **kind)
    return Part(total - xp.inf, total, xp.zeros((*query.shape[:-1], value.shape[-1]), **kind))


def _finite(xp: Any, largest: A) -> A:
    """Return what is subtracted from scores: 0 where nothing is visible, since inf - inf is NaN."""
    return xp.where(largest == -xp.inf, 0.0, largest)


def _tiled_attention(
    xp: Any,
    query: A,  # (..., n, d)
    key: A,  # (..., m, d)
    value: A,  # (..., m, d_v)
    mask: A | None,  # (..., n, m)
    causal: bool,
    scale: float,
    bias: A | None,  # (..., n, m)
    size: int,
) -> A:
    """Attend in square tiles of some queries and keys."""
    n, m = query.shape[-2], key.shape[-2]
    outputs = []
    for top in range(0, n, size):
        rows = slice(top, min(top + size, n))
        seen = _nothing(xp, query[..., rows, :], value)
        for left in range(0, rows.stop + m - n if causal else m, size):
            columns = slice(left, min(left + size, m))
            scores = (query[..., rows, :] * scale) @ key[..., columns, :].mT
            scores = scores if bias is None else scores + bias[..., rows, columns]
            visible = _visible(xp, mask, causal, rows, columns, m - n, query)
            seen = _merged(xp, seen, _part(xp, scores, value[..., columns, :], visible))
        outputs.append(_finished(xp, seen))
    return xp.concat(outputs, axis=-2)


def _visible(
    xp: Any, mask: A | None, causal: bool, rows: slice, columns: slice, shift: int, like: A
) -> A | None:
    """Return the mask of a tile; None if nothing is hidden in it."""
    visible = None if mask is None else mask[..., rows, columns]
    if not causal or columns.stop - 1 <= rows.start + shift:
        return visible
    queries = xp.arange(rows.start + shift, rows.stop + shift, device=device_of(like))[:, None]
    earlier = _no_later_key(queries, xp.arange(columns.start, columns.stop, device=device_of(like)))
    return earlier if visible is None else visible & earlier


def tiled_attention(
    query: A,
    key: A,
    value: A,
    *,
    mask: A | None = None,
    causal: bool = False,
    scale: float | None = None,
    bias: A | None = None,
    enable_gqa: bool = False,
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
    enable_gqa : bool
        Grouped heads, as in `attention`.
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
    check_flag("enable_gqa", enable_gqa)
    if enable_gqa:
        key, value = shared_heads(xp, query, key, value)
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
    """Choose between the tiles of this file, their quick twin for NumPy, and PyTorch's kernel."""
    query, key, value = on_one_batch(xp, query, key, value)
    with rounding_ignored(value, invalid=True):
        if 0 in (*query.shape, *key.shape, *value.shape):  # nothing to cut
            whole = _attention(xp, query, key, value, mask, causal, scale=scale, bias=bias)
            return whole.output
        if block_size is None and is_torch(query) and kernel_serves(query, key, value, mask, bias):
            return fused_attention(query, key, value, mask, causal, scale, bias)
        shape = (*query.shape[:-1], key.shape[-2])
        mask, bias = (x if x is None else xp.broadcast_to(x, shape) for x in (mask, bias))
        if isinstance(query, np.ndarray):
            return quick_tiles(xp, query, key, value, mask, causal, scale, bias, block_size)
        query, key, value = widened(xp, query, key, value)
        size = block_size or SIZE
        return _tiled_attention(xp, query, key, value, mask, causal, scale, bias, size)
