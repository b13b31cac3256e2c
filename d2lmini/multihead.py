"""Several heads side by side, each with its own projections (chapter 5).

The functions take NumPy arrays and PyTorch tensors. ``MultiHeadAttention``, the PyTorch module,
stands in ``multihead_module.py`` and can be imported from here as well.
"""

from typing import Any

import numpy as np

from d2lmini._arrays import (
    Array,
    broadcasts_to,
    check_batch,
    check_boolean,
    check_rank,
    floating,
    namespace,
    whole_number,
)
from d2lmini.attention import Attention, attention

__all__ = ["merge_heads", "multi_head_attention", "split_heads"]


def split_heads(x: Array, num_heads: int) -> Array:
    """Cut each vector into `num_heads` equal pieces, and make one sequence of each piece.

    ``(..., n, h·d) -> (..., n, h, d) -> (..., h, n, d)``. The second step swaps two axes. A reshape
    straight to (..., h, n, d) has the right shape and the wrong contents: it mixes the tokens.

    Parameters
    ----------
    x : array, shape (..., n, h·d)
    num_heads : int
        h, the number of heads.

    Returns
    -------
    array, shape (..., h, n, d), of the dtype of `x`
        ``[..., i, t, :]`` is piece i of token t. It is a view of `x` where that is possible.

    Raises
    ------
    TypeError
        If `x` is not an array or `num_heads` not an integer.
    ValueError
        If the vectors cannot be cut into `num_heads` equal pieces.

    Examples
    --------
    >>> import numpy as np
    >>> split_heads(np.arange(8).reshape(2, 4), 2)  # two tokens, two heads
    array([[[0, 1],
            [4, 5]],
    <BLANKLINE>
           [[2, 3],
            [6, 7]]])
    """
    xp = namespace(x=x)
    check_rank("x", x, "(..., n, h*d)")
    num_heads = whole_number("num_heads", num_heads, at_least=1)
    *batch, n, width = x.shape
    head_width = divide("the vectors' length", width, "num_heads", num_heads)
    pieces = xp.reshape(x, (*batch, n, num_heads, head_width))
    return pieces.swapaxes(-3, -2)


def merge_heads(x: Array) -> Array:
    """Undo `split_heads`: put the pieces of each token side by side again.

    ``(..., h, n, d) -> (..., n, h, d) -> (..., n, h·d)``.

    Parameters
    ----------
    x : array, shape (..., h, n, d)

    Returns
    -------
    array, shape (..., n, h·d), of the dtype of `x`
        It is a view of `x` where that is possible.

    Raises
    ------
    TypeError
        If `x` is not an array.
    ValueError
        If `x` has fewer than three axes.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.arange(8).reshape(2, 4)
    >>> bool((merge_heads(split_heads(x, 2)) == x).all())
    True
    """
    xp = namespace(x=x)
    if x.ndim < 3:
        raise ValueError(f"x must have at least 3 axes (..., h, n, d), got shape {tuple(x.shape)}")
    *batch, num_heads, n, head_width = x.shape
    return xp.reshape(x.swapaxes(-3, -2), (*batch, n, num_heads * head_width))


def multi_head_attention(
    query: Array,
    key: Array,
    value: Array,
    w_q: Array,
    w_k: Array,
    w_v: Array,
    w_o: Array,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    mask: Array | None = None,
    causal: bool = False,
) -> Attention:
    r"""Attend in several subspaces at once, and mix the results.

    .. math::
        \text{head}_i = \operatorname{Attention}(Q W_Q^{(i)}, K W_K^{(i)}, V W_V^{(i)}), \qquad
        \text{output} = [\text{head}_1, \dots, \text{head}_h]\, W_O

    Parameters
    ----------
    query : array, shape (..., n, d_q)
    key : array, shape (..., m, d_k_in)
    value : array, shape (..., m, d_v_in)
    w_q : array, shape (d_q, h·d_k)
        The W_Q of all heads side by side; used as ``query @ w_q``.
    w_k : array, shape (d_k_in, g·d_k)
    w_v : array, shape (d_v_in, g·d_v)
    w_o : array, shape (h·d_v, d_out)
    num_heads : int
        h, the number of heads.
    num_kv_heads : int, optional
        g, a divisor of h; h unless given. Query head i uses key-value head i // (h / g). g = 1 is
        multi-query attention, 1 < g < h grouped-query attention.
    mask : boolean array, optional
        True = may attend. With at most as many axes as `query` it serves all heads: (n, m), or
        (batch, 1, m) from `padding_mask`. With one axis more it is per head: (batch, h, n, m).
        (Counted against the scores, where only the keys have a batch.)
    causal : bool
        Hide later keys too (see `causal_mask`).

    Returns
    -------
    Attention
        ``output`` (..., n, d_out) and ``weights`` (..., h, n, m).

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, NumPy and PyTorch are mixed, or `mask` is
        not boolean.
    ValueError
        If shapes do not fit together, or heads do not divide.

    References
    ----------
    Vaswani et al., "Attention is all you need", 2017; Shazeer, "Fast transformer decoding:
    one write-head is all you need", 2019; Ainslie et al., "GQA", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> x, one = np.eye(3, 4), np.eye(4)
    >>> output, weights = multi_head_attention(x, x, x, one, one, one, one, num_heads=2)
    >>> output.shape, weights.shape
    ((3, 4), (2, 3, 3))
    """
    names = ("query", "key", "value", "w_q", "w_k", "w_v", "w_o")
    arrays = (query, key, value, w_q, w_k, w_v, w_o)
    _, query, key, value, w_q, w_k, w_v, w_o = floating(**dict(zip(names, arrays, strict=True)))
    num_heads, num_kv_heads = check_heads(num_heads, num_kv_heads)
    check_rows(query=query, key=key, value=value)
    d_k = _head_width("w_q", w_q, "query", query, "num_heads", num_heads)
    d_k_of_keys = _head_width("w_k", w_k, "key", key, "num_kv_heads", num_kv_heads)
    d_v = _head_width("w_v", w_v, "value", value, "num_kv_heads", num_kv_heads)
    if d_k != d_k_of_keys:
        raise ValueError(
            f"w_q makes {num_heads} queries of length {d_k}, w_k makes {num_kv_heads} keys of "
            f"length {d_k_of_keys}; both lengths must be d_k"
        )
    _check_weight("w_o", w_o, num_heads * d_v, "num_heads times d_v")
    q = split_heads(query @ w_q, num_heads)  # (..., h, n, d_k)
    k = share_heads(split_heads(key @ w_k, num_kv_heads), num_heads)  # (..., h, m, d_k)
    v = share_heads(split_heads(value @ w_v, num_kv_heads), num_heads)  # (..., h, m, d_v)
    mask = head_mask(mask, query, scores_shape(q, k))
    heads, weights = attention(q, k, v, mask=mask, causal=causal)
    return Attention(merge_heads(heads) @ w_o, weights)


def share_heads(x: Array, num_heads: int) -> Array:
    """Give each group of query heads its key-value head: (..., g, m, d) -> (..., h, m, d)."""
    group = num_heads // x.shape[-3]
    return x if group == 1 else namespace(x=x).repeat(x, group, axis=-3)


def head_mask(mask: Array | None, query: Array, scores_shape: tuple[int, ...]) -> Array | None:
    """Insert the head axis into a mask that serves all heads, and check that it fits.

    `scores_shape` is (..., heads, n, m); a mask with fewer axes is for all heads.
    """
    if mask is None:
        return None
    check_boolean(namespace(query=query, mask=mask), mask)
    with_heads = mask
    while with_heads.ndim < 2:
        with_heads = with_heads[None, ...]
    if with_heads.ndim < len(scores_shape):
        with_heads = with_heads[..., None, :, :]
    if not broadcasts_to(with_heads, scores_shape):
        *batch, heads, n, m = scores_shape
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} fits neither all heads nor each: for all heads "
            f"give {(n, m)} or {(*batch, n, m)}, per head {scores_shape}, for lengths "
            f"padding_mask(lengths, {m}) of shape {(*batch, 1, m)}; there are {heads} heads, "
            f"{n} queries and {m} keys"
        )
    return with_heads


def scores_shape(query: Array, key: Array) -> tuple[int, ...]:
    """Return (..., h, n, m), the shape of the scores of all heads."""
    batch = query.shape[:-3]
    if batch != key.shape[:-3]:
        batch = np.broadcast_shapes(batch, key.shape[:-3])
    return (*batch, *query.shape[-3:-1], key.shape[-2])


def check_heads(num_heads: int, num_kv_heads: int | None) -> tuple[int, int]:
    """Return both numbers of heads, checked."""
    num_heads = whole_number("num_heads", num_heads, at_least=1)
    if num_kv_heads is None:
        return num_heads, num_heads
    num_kv_heads = whole_number("num_kv_heads", num_kv_heads, at_least=1)
    divide("num_heads", num_heads, "num_kv_heads", num_kv_heads)
    return num_heads, num_kv_heads


def divide(name: str, number: int, by_name: str, by: int) -> int:
    """Return number / by; ValueError with both numbers and the way out if that is not whole."""
    if number % by:
        divisors = [i for i in range(1, number + 1) if number % i == 0]
        near = sorted(sorted(divisors, key=lambda i: abs(i - by))[:2])
        raise ValueError(
            f"{name} = {number} is not divisible by {by_name} = {by}; the nearest {by_name} that "
            f"divide it: {', '.join(map(str, near))}"
        )
    return number // by


def check_rows(*, query: Array, key: Array, value: Array) -> None:
    """Raise ValueError unless these are tables of vectors, one value for each key."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        check_rank(name, x)
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"each key needs one value, got {key.shape[-2]} keys and {value.shape[-2]} values "
            f"(key {tuple(key.shape)}, value {tuple(value.shape)})"
        )
    check_batch(query=query, key=key, value=value)


def _head_width(
    weight_name: str, weight: Array, name: str, x: Array, heads_name: str, heads: int
) -> int:
    """Check one projection, and return the length of the vectors that it gives each head."""
    _check_weight(weight_name, weight, x.shape[-1], f"the length of each {name}")
    return divide(f"the columns of {weight_name}", weight.shape[-1], heads_name, heads)


def _check_weight(name: str, weight: Array, rows: int, what: str) -> None:
    if weight.ndim != 2 or weight.shape[0] != rows:
        raise ValueError(
            f"{name} must be a matrix of {rows} rows ({what}), got shape {tuple(weight.shape)}"
        )


def __getattr__(name: str) -> Any:
    if name == "MultiHeadAttention":
        from d2lmini.multihead_module import MultiHeadAttention

        return MultiHeadAttention
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
