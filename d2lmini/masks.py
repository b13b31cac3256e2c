"""Who may attend to whom (chapter 3). Every mask is boolean, and True = may attend.

Masks combine with ``&``: ``causal_mask(n) & padding_mask(lengths, n)`` allows what both do.
"""

import functools
import operator
from typing import Any

from d2lmini._arrays import A, Array, Like, is_kind, namespace, namespace_like, values_if_known
from d2lmini._checks import array_size, check_flag, whole_number

__all__ = ["causal_mask", "padding_mask", "sliding_window_mask"]

FAR = 2**30  # beyond every position, and a number that every array can hold


def _no_later_key(queries: A, keys: A) -> A:
    """Let positions (n, 1) see positions (m,) up to their own: (n, m)."""
    return keys <= queries


def _near_key(queries: A, keys: A, window: int, sinks: int = 0) -> A:
    """Let positions (n, 1) see none (m,) that is `window` or more before, but for the sinks."""
    near = keys > queries - min(window, FAR)
    return near if sinks == 0 else near | (keys < min(sinks, FAR))


def _combined_mask(
    mask: Array | None,
    num_queries: int,
    num_keys: int,
    *,
    causal: bool = False,
    window: int | None = None,
    sinks: int = 0,
    like: Array,
) -> Array | None:
    """Combine all that says who may attend to whom; None if nothing is hidden."""
    rules = [] if mask is None else [mask]
    if causal and num_queries != 1:  # the last query sees every key
        rules.append(_no_later_key(*_positions(num_queries, num_keys, like)))
    if window is not None and window < num_keys:
        rules.append(_near_key(*_positions(num_queries, num_keys, like), window, sinks))
    return functools.reduce(operator.and_, rules) if rules else None


def causal_mask(num_queries: int, num_keys: int | None = None, *, like: Like | None = None) -> Like:
    r"""Let each query see the keys up to its own position, and none that comes later.

    .. math:: \text{mask}_{ij} = \left[\, j \le i + (m - n) \,\right]

    With fewer queries than keys the queries are the *last* n positions: the last query sees every
    key. (This is the bottom-right alignment that decoding with a cache needs.) With more queries
    than keys the first n - m queries see nothing.

    Parameters
    ----------
    num_queries, num_keys : int
        n and m; m = n unless given.
    like : array, optional
        An array whose kind (NumPy, PyTorch) and device the mask takes; NumPy unless given.

    Returns
    -------
    boolean array, shape (n, m)
        True = may attend.

    Raises
    ------
    TypeError
        If a number is not an integer, or `like` is not an array.
    ValueError
        If a number is negative.

    Examples
    --------
    >>> causal_mask(2, 4).astype(int)
    array([[1, 1, 1, 0],
           [1, 1, 1, 1]])
    """
    return _no_later_key(*_checked_positions(num_queries, num_keys, like))


def sliding_window_mask(
    num_queries: int,
    num_keys: int | None = None,
    *,
    window: int,
    sinks: int = 0,
    causal: bool = True,
    like: Like | None = None,
) -> Like:
    r"""Let each query see its own position, the ``window - 1`` before it, and the first ones.

    .. math:: \text{mask}_{ij} = \left[\, 0 \le t_i - j \,\right]
        \left[\, t_i - j < w \;\text{or}\; j < s \,\right], \qquad t_i = i + (m - n)

    Parameters
    ----------
    num_queries, num_keys : int
        n and m; m = n unless given. Aligned as in `causal_mask`.
    window : int
        w ≥ 1, in positions; it counts the query's own.
    sinks : int
        s ≥ 0: so many of the first positions stay visible to every later query. Language models put
        the weight there that they have no use for, and lose their way without them.
    causal : bool
        Hide what comes later. Without it the window reaches ``window - 1`` positions ahead as well.
    like : array, optional
        An array whose kind (NumPy, PyTorch) and device the mask takes; NumPy unless given.

    Returns
    -------
    boolean array, shape (n, m)
        True = may attend.

    Raises
    ------
    TypeError
        If a number is not an integer, or `like` is not an array.
    ValueError
        If a number is negative, or `window` is less than 1.

    References
    ----------
    Beltagy, Peters and Cohan, "Longformer: the long-document transformer", 2020; Xiao et al.,
    "Efficient streaming language models with attention sinks", 2024.

    Examples
    --------
    >>> sliding_window_mask(4, window=2).astype(int)
    array([[1, 0, 0, 0],
           [1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    >>> sliding_window_mask(4, window=2, sinks=1).astype(int)[-1]
    array([1, 0, 1, 1])
    """
    window = whole_number("window", window, at_least=1)
    sinks = whole_number("sinks", sinks, at_least=0)
    check_flag("causal", causal)
    queries, keys = _checked_positions(num_queries, num_keys, like)
    last = queries if causal else queries + (min(window, FAR) - 1)
    return (_no_later_key(last, keys) & _near_key(queries, keys, window)) | (
        _no_later_key(queries if causal else keys, keys) & (keys < min(sinks, FAR))
    )


def padding_mask(lengths: A, num_keys: int, *, heads: bool = False) -> A:
    """Hide the padding at the end of each sequence of a batch.

    Parameters
    ----------
    lengths : integer array, shape (batch,)
        How many keys of each sequence are real.
    num_keys : int
        m, the padded length.
    heads : bool
        Insert an axis for heads, which `attention` needs where its queries are
        (batch, heads, n, d). (`multi_head_attention` and the layer do so themselves.)

    Returns
    -------
    boolean array, shape (batch, 1, m), or (batch, 1, 1, m) with `heads`
        True = may attend; the last axis of length 1 is that of the queries. For padding at the
        *start* of each sequence flip the last axis of ``padding_mask``.

    Raises
    ------
    TypeError
        If `lengths` is not an array of integers.
    ValueError
        If a length is negative or larger than `num_keys`. (Within ``torch.compile`` and ``vmap``,
        where the numbers are not known, they are not checked.)

    Examples
    --------
    >>> import numpy as np
    >>> padding_mask(np.array([1, 3]), 3).astype(int)
    array([[[1, 0, 0]],
    <BLANKLINE>
           [[1, 1, 1]]])
    """
    xp = namespace(lengths=lengths)
    num_keys = array_size("num_keys", num_keys, at_least=0)
    if not is_kind(xp, lengths.dtype, "integral"):
        raise TypeError(f"lengths must be integers, got {lengths.dtype}")
    check_flag("heads", heads)
    if lengths.ndim != 1:
        raise ValueError(
            f"lengths must have shape (batch,), got {tuple(lengths.shape)}: one number a sequence; "
            "an attention_mask of 0 and 1, (batch, m), becomes a mask by "
            "(attention_mask != 0)[:, None]"
        )
    for i, length in enumerate(values_if_known(lengths) or []):
        if not 0 <= length <= num_keys:
            raise ValueError(
                f"lengths[{i}] = {length} is not between 0 and num_keys = {num_keys}; lengths "
                "count the real keys of each sequence"
            )
    keys = xp.arange(num_keys, device=lengths.device)
    mask = keys < xp.astype(lengths, keys.dtype)[:, None, None]
    return mask[:, None] if heads else mask


def _checked_positions(
    num_queries: int, num_keys: int | None, like: Array | None
) -> tuple[Any, Any]:
    n = array_size("num_queries", num_queries, at_least=0)
    m = n if num_keys is None else array_size("num_keys", num_keys, at_least=0)
    return _positions(n, m, like)


def _positions(num_queries: int, num_keys: int, like: Array | None) -> tuple[Any, Any]:
    """Return the positions of queries (n, 1) and keys (m,); the last of both coincide."""
    xp, device = namespace_like(like)
    queries = xp.arange(num_keys - num_queries, num_keys, device=device)
    return queries[:, None], xp.arange(num_keys, device=device)
