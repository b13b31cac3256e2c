"""Attention to fewer pairs: tokens that a random hash puts next to each other (chapter 8)."""

import functools
import math
from typing import Any

import numpy as np

from d2lmini._arrays import floating, is_torch, on_one_batch, rounding_ignored, widened
from d2lmini._checks import check_flag, check_tables, whole_number
from d2lmini._types import A
from d2lmini.scores import _unit
from d2lmini.tiled import Part, _finished, _merged, _nothing, _part

__all__ = ["lsh_attention"]


def _lsh_attention(
    xp: Any,
    query: A,  # (..., n, d)
    key: A,  # (..., n, d)
    value: A,  # (..., n, d_v)
    buckets: list[A],  # of each round, (..., n)
    size: int,  # of a chunk
    causal: bool,
) -> A:
    """Attend to the tokens that a round has put next to one's own, each of them once."""
    n, d = query.shape[-2:]
    token = xp.arange(n, device=query.device)
    orders = [xp.argsort(bucket * n + token) for bucket in buckets]  # (..., n), of each round
    places = [xp.argsort(order) for order in orders]  # where each token is in that order
    hashes = xp.stack(buckets, axis=-1)  # (..., n, rounds)
    chunks = xp.stack([place // size for place in places], axis=-1)  # (..., n, rounds)
    seen = _nothing(xp, query, value)
    for turn, (order, place) in enumerate(zip(orders, places, strict=True)):
        cut = functools.partial(_in_chunks, xp, order=order, size=size)
        (bucket, other_bucket), (chunk, other_chunk) = cut(hashes), cut(chunks)
        ahead = chunk[..., :, None, :] - other_chunk[..., None, :, :]  # (..., size, 2 size, rounds)
        together = bucket[..., :, None, :] == other_bucket[..., None, :, :]
        shown = together & (ahead >= 0) & (ahead <= 1)  # by each round, the pairs of this one
        seen_in_rounds = xp.sum(xp.astype(shown, query.dtype), axis=-1)  # (..., size, 2 size)
        i, j = cut(xp.broadcast_to(token, order.shape)[..., None])
        visible = shown[..., turn] & ((j.mT < i) if causal else (j.mT != i))
        scores = cut(query)[0] @ cut(key)[1].mT / math.sqrt(d)
        scores = scores - xp.log(xp.where(visible, seen_in_rounds, 1.0))
        part = _part(xp, scores, cut(value)[1], visible)
        seen = _merged(xp, seen, Part(*(_unsorted(xp, x, place) for x in part)))
    return xp.where(seen.total == 0, value, _finished(xp, seen))  # else there is only itself


def _in_chunks(xp: Any, x: A, order: A, size: int) -> tuple[A, A]:
    """Sort and cut (..., n, d): to (..., chunks, size, d), and with the chunk before each."""
    x = xp.take_along_axis(x, order[..., None], axis=-2)
    own = x.reshape((*x.shape[:-2], -1, size, x.shape[-1]))
    if own.shape[-3] == 1:
        return own, own
    return own, xp.concat([xp.roll(own, 1, axis=-3), own], axis=-2)


def _unsorted(xp: Any, x: A, place: A) -> A:
    """Bring what the tokens have seen, (..., chunks, size, d), back into their order."""
    x = x.reshape((*x.shape[:-3], -1, x.shape[-1]))  # (..., n, d)
    return xp.take_along_axis(x, place[..., None], axis=-2)


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
    in the one before. Several rounds with other directions find what one round has missed. With
    S_r(i) the tokens that round r shows to token i, and c_ij the number of rounds that show it j,

    .. math:: \text{output}_i = \frac{\sum_r \sum_{j \in S_r(i)} e^{a_{ij} - \log c_{ij}}\, v_j}
        {\sum_r \sum_{j \in S_r(i)} e^{a_{ij} - \log c_{ij}}}

    so that each token counts once, however many rounds have found it. A token looks at itself only
    if there is nothing else, since no other key is as similar.

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
    dtype = value.dtype
    query, value = widened(xp, *on_one_batch(xp, query, value))
    if 0 in (*query.shape[:-1], value.shape[-1]):
        return xp.astype(value, dtype)
    with rounding_ignored(value, invalid=True):
        drawn = np.random.default_rng(seed).standard_normal((num_rounds, d, num_buckets // 2))
        directions = xp.asarray(drawn, dtype=query.dtype, device=query.device)
        fixed = query.detach() if is_torch(query) else query
        buckets = [_buckets(xp, fixed, each) for each in directions]
        size = n // num_buckets
        output = _lsh_attention(xp, query, _unit(xp, query), value, buckets, size, causal)
        return xp.astype(output, dtype, copy=False)
