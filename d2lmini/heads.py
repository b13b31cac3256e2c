"""Several heads side by side, as functions of NumPy arrays or PyTorch tensors (chapter 5).

The PyTorch module, `MultiHeadAttention`, stands in ``multihead.py``: a file that defines a module
needs PyTorch, and a file without one does not load it.
"""

from typing import Any

from d2lmini._arrays import A, floating, namespace, rounding_ignored
from d2lmini._checks import (
    check_bias,
    check_flag,
    check_heads,
    check_rows,
    check_tables,
    divided_evenly,
    mask_with_heads,
    scores_shape,
    whole_number,
)
from d2lmini.attention import Attention, _attention
from d2lmini.scores import _scale_that_fits

__all__ = ["merge_heads", "multi_head_attention", "split_heads"]


def _multi_head_attention(
    xp: Any,
    query: A,  # (..., n, d_q)
    key: A,  # (..., m, d_k_in)
    value: A,  # (..., m, d_v_in)
    matrices: tuple[A, A, A, A],
    num_heads: int,  # h
    num_kv_heads: int,  # g
    mask: A | None,
    causal: bool,
    scale: float | None,
    bias: A | None,  # (..., h, n, m)
) -> Attention[A]:
    w_q, w_k, w_v, w_o = matrices
    q = _split_heads(query @ w_q, num_heads)  # (..., h, n, d_k)
    k = _share_heads(xp, _split_heads(key @ w_k, num_kv_heads), num_heads)  # (..., h, m, d_k)
    v = _share_heads(xp, _split_heads(value @ w_v, num_kv_heads), num_heads)  # (..., h, m, d_v)
    heads, weights = _attention(xp, q, k, v, mask, causal, scale=scale, bias=bias)
    return Attention(_merge_heads(heads) @ w_o, weights)  # (..., n, d_out), (..., h, n, m)


def _split_heads(x: A, num_heads: int) -> A:
    *batch, n, width = x.shape
    pieces = x.reshape((*batch, n, num_heads, width // num_heads))  # (..., n, h, d)
    return pieces.swapaxes(-3, -2)  # (..., h, n, d)


def _merge_heads(x: A) -> A:
    *batch, num_heads, n, head_width = x.shape
    return x.swapaxes(-3, -2).reshape((*batch, n, num_heads * head_width))  # (..., n, h·d)


def _share_heads(xp: Any, x: A, num_heads: int) -> A:
    """Give each group of query heads its key-value head: (..., g, m, d) -> (..., h, m, d)."""
    group = num_heads // x.shape[-3]
    return x if group == 1 else xp.repeat(x, group, axis=-3)


def split_heads(x: A, num_heads: int) -> A:
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
    namespace(x=x)
    check_tables(x=x)
    num_heads = whole_number("num_heads", num_heads, at_least=1)
    divided_evenly("the vectors' length", x.shape[-1], "num_heads", num_heads)
    return _split_heads(x, num_heads)


def merge_heads(x: A) -> A:
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
    namespace(x=x)
    if x.ndim < 3:
        raise ValueError(f"x must have at least 3 axes (..., h, n, d), got shape {tuple(x.shape)}")
    return _merge_heads(x)


def multi_head_attention(
    query: A,
    key: A,
    value: A,
    w_q: A,
    w_k: A,
    w_v: A,
    w_o: A,
    *,
    num_heads: int,
    num_kv_heads: int | None = None,
    mask: A | None = None,
    causal: bool = False,
    scale: float | None = None,
    bias: A | None = None,
) -> Attention[A]:
    r"""Attend in several subspaces at once, and mix the results.

    .. math::
        Q_i &= Q W_Q^{(i)} \\
        K_i &= K W_K^{(i)} \\
        V_i &= V W_V^{(i)} \\
        \text{head}_i &= \operatorname{Attention}(Q_i, K_i, V_i) \\
        \text{output} &= [\text{head}_1, \dots, \text{head}_h]\, W_O

    Parameters
    ----------
    query : array, shape (..., n, d_q)
    key : array, shape (..., m, d_k_in)
    value : array, shape (..., m, d_v_in)
    w_q : array, shape (d_q, h·d_k)
        The W_Q of all heads side by side; used as ``query @ w_q``. (``torch.nn.Linear`` stores the
        transpose: ``linear.weight.T``.)
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
    scale : float, optional
        What the dot products are multiplied by; 1/√d_k unless given.
    bias : array that broadcasts to (..., h, n, m), optional
        Added to the scores: (n, m) to those of all heads, (h, n, m) to those of each, such as
        `alibi_bias`.

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
        If shapes do not fit together, heads do not divide, or `scale` does not fit the dtype.

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
    biases = {} if bias is None else {"bias": bias}
    xp, query, key, value, w_q, w_k, w_v, w_o, *found = floating(
        query=query, key=key, value=value, w_q=w_q, w_k=w_k, w_v=w_v, w_o=w_o, **biases
    )
    num_heads, num_kv_heads = check_heads(num_heads, num_kv_heads)
    check_rows(query, key, value)
    check_flag("causal", causal)
    d_k = _head_width("w_q", w_q, "query", query, "num_heads", num_heads)
    d_k_of_keys = _head_width("w_k", w_k, "key", key, "num_kv_heads", num_kv_heads)
    d_v = _head_width("w_v", w_v, "value", value, "num_kv_heads", num_kv_heads)
    if d_k != d_k_of_keys:
        raise ValueError(
            f"w_q makes {num_heads} queries of length {d_k}, w_k makes {num_kv_heads} keys of "
            f"length {d_k_of_keys}; both lengths must be d_k"
        )
    _check_weight("w_o", w_o, num_heads * d_v, "num_heads times d_v")
    mask = mask_with_heads(mask, query, key, num_heads)
    check_bias(bias, scores_shape(query, key, num_heads))
    bias = found[0] if found else None
    scale = None if scale is None else _scale_that_fits(xp, scale, query.dtype)
    matrices = (w_q, w_k, w_v, w_o)
    with rounding_ignored(query, invalid=True):
        return _multi_head_attention(
            xp, query, key, value, matrices, num_heads, num_kv_heads, mask, causal, scale, bias
        )


def _head_width(
    weight_name: str, weight: Any, name: str, x: Any, heads_name: str, heads: int
) -> int:
    """Check one projection, and return the length of the vectors that it gives each head."""
    _check_weight(weight_name, weight, x.shape[-1], f"the length of each {name}")
    return divided_evenly(f"the columns of {weight_name}", weight.shape[-1], heads_name, heads)


def _check_weight(name: str, weight: Any, rows: int, what: str) -> None:
    if weight.ndim != 2 or weight.shape[0] != rows:
        raise ValueError(
            f"{name} must be a matrix of {rows} rows ({what}), got shape {tuple(weight.shape)}; "
            "torch.nn.Linear stores the transpose: give linear.weight.T"
        )
