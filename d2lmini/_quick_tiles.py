"""The tiles of ``tiled.py`` in less time, for NumPy: a twin of the plain loop.

A tile's scores stay in a processor's cache, and are overwritten by their powers. These are powers
of 2, which take half the time of powers of e: 2^(a log₂ e) = e^a. In memory scores lie key by key,
since NumPy compares whole rows of queries more quickly than the keys within a row. That both agree
is tested (``tests/core/test_quick.py``).
"""

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from d2lmini._arrays import widened
from d2lmini._types import Array
from d2lmini.masks import _no_later_key

__all__ = ["quick_tiles"]

BINARY = math.log2(math.e)
ROWS, COLUMNS = 256, 512  # queries and keys of a tile
NEAR = 32  # scores (of powers of 2) no further from 0 than this can be summed without a shift

State: TypeAlias = tuple[Array, Array, Array]  # as `Part`, of powers of 2


def quick_tiles(
    xp: Any,
    query: Array,  # (*batch, n, d)
    key: Array,  # (*batch, m, d)
    value: Array,  # (*batch, m, d_v)
    mask: Array | None,  # (*batch, n, m)
    causal: bool,
    scale: float,
    bias: Array | None,  # (*batch, n, m)
    block_size: int | None,
) -> Array:
    """Attend item by item and head by head, so that a tile is a tile of one matrix."""
    *batch, n, _ = query.shape
    rows, columns = (ROWS, COLUMNS) if block_size is None else (block_size, block_size)
    small = math.prod(batch) * n * key.shape[-2] <= ROWS * COLUMNS
    output = xp.empty((*batch, n, value.shape[-1]), dtype=value.dtype)
    triangle = None  # what the tiles on the diagonal hide
    if causal:
        row = xp.arange(min(rows, n))
        triangle = _no_later_key(row, row[:, None]).mT
    for item in [...] if small else np.ndindex(*batch):
        q, k, v = widened(xp, query[item], key[item], value[item])
        seen = None if mask is None else mask[item]
        (added,) = (None,) if bias is None else widened(xp, bias[item])
        near = bias is None and _scores_near_0(q, k, v, scale)
        output[item] = _one_matrix(xp, q, k, v, seen, triangle, scale, added, rows, columns, near)
    return output


def _scores_near_0(query: Array, key: Array, value: Array, scale: float) -> bool:
    """Tell whether 2^b and 2^b v neither overflow nor vanish, since |q · k| ≤ |q| |k|."""
    q, k, v = (math.sqrt(np.vecdot(x, x).max()) for x in (query, key, value))
    return q * k * abs(scale) * BINARY <= NEAR and 2.0**-NEAR <= v < math.inf


def _one_matrix(
    xp: Any,
    query: Array,  # (..., n, d)
    key: Array,  # (..., m, d)
    value: Array,  # (..., m, d_v)
    mask: Array | None,  # (..., n, m)
    triangle: Array | None,  # (rows, rows), where it is causal
    scale: float,
    bias: Array | None,  # (..., n, m)
    rows: int,
    columns: int,
    near: bool,
) -> Array:
    """Return the output of attention, never with more scores in memory than those of a tile.

    `near` says that no score is far from 0, and none need be looked for that is the largest.
    """
    n, m = query.shape[-2], key.shape[-2]
    blind = 0 if triangle is None else max(n - m, 0)  # so many queries come before all keys
    if near and mask is None and triangle is not None:
        triangle = xp.astype(triangle, query.dtype)  # a product within one dtype is quicker
    shape = (*query.shape[:-2], blind, value.shape[-1])
    outputs = [xp.zeros(shape, dtype=value.dtype)]
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
        outputs.append(state[2] / xp.where(state[1] == 0, 1.0, state[1]))
    return xp.concat(outputs, axis=-2)


def _tiles(
    mask: Array | None, triangle: Array | None, top: int, bottom: int, n: int, m: int, columns: int
) -> Iterator[tuple[int, int, Array | None]]:
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
    scores: Array,
    value: Array,
    visible: Array | None,
    before: State | None,
    near: bool,
) -> State:
    """Return M = max bⱼ, Σ 2^(bⱼ - M) and Σ 2^(bⱼ - M) vⱼ of some keys and of those `before`.

    Here b = a log₂ e. M cancels out in the end; with scores `near` 0 it is 0. The scores are used
    up.
    """
    if near:
        shift = largest = xp.zeros((1, 1), dtype=scores.dtype)
        e = xp.exp2(scores, out=scores)
        if visible is not None:
            e *= visible
    else:
        if visible is not None:
            np.copyto(scores, -math.inf, where=~visible)
        largest = xp.max(scores, axis=-1, keepdims=True)  # (..., n, 1)
        if before is not None:
            largest = xp.maximum(before[0], largest)
        shift = xp.where(largest == -xp.inf, 0.0, largest)  # since inf - inf is NaN
        e = _power_from(xp, scores, shift, masked=visible is not None)  # (..., n, m)
    total = e @ xp.ones((e.shape[-1], 1), dtype=e.dtype)  # a sum, but quicker
    mixed = e @ value  # (..., n, d_v)
    if before is not None:
        fade = xp.exp2(before[0] - shift)
        total += before[1] * fade
        mixed += before[2] * fade
    return largest, total, mixed


def _power_from(xp: Any, scores: Array, shift: Array, *, masked: bool) -> Any:
    """Return 2^(scores - shift) where the scores stood: fresh memory is slow."""
    scores -= shift
    if not masked:
        return xp.exp2(scores, out=scores)
    dtype = xp.finfo(scores.dtype)  # 2^-inf would take it five times as long as all of this
    scores = xp.maximum(scores, dtype.minexp, out=scores)
    scores = xp.exp2(scores, out=scores)
    return xp.subtract(scores, dtype.smallest_normal, out=scores)  # 2^minexp: what was hidden is 0
