"""Attention itself: score, mask, softmax, weighted sum (chapter 3)."""

from collections.abc import Callable
from typing import Any

from d2lmini._arrays import floating, rounding_ignored
from d2lmini._checks import (
    check_attention_mask,
    check_bias,
    check_flag,
    check_rows,
    check_same_length,
    checked_score,
    scores_shape,
    shared_heads,
)
from d2lmini._quick import is_quick, quick_attention
from d2lmini._types import A, Attention, readable
from d2lmini.masks import _combined_mask
from d2lmini.scores import _scale_that_fits, _scaled_dot_product_score, scaled_dot_product_score
from d2lmini.weights import _masked_softmax

__all__ = ["Attention", "attention"]


def _attention(
    xp: Any,
    query: A,  # (..., n, d)
    key: A,  # (..., m, d)
    value: A,  # (..., m, d_v)
    mask: A | None = None,
    causal: bool = False,
    score: Callable[..., A] = _scaled_dot_product_score,
    scale: float | None = None,
    bias: A | None = None,
) -> Attention[A]:
    """softmax(Q Kᵀ / √d) V."""
    mask = _combined_mask(mask, query.shape[-2], key.shape[-2], causal=causal, like=query)
    if score is _scaled_dot_product_score and is_quick(query, key, mask, bias):
        return Attention(*quick_attention(xp, query, key, value, mask, scale, bias))  # the same
    scores = score(query, key) if scale is None else score(query, key, scale)  # (..., n, m)
    scores = scores if bias is None else scores + bias
    weights = _masked_softmax(xp, scores, mask)  # (..., n, m): rows sum to 1, or 0
    value = xp.astype(value, weights.dtype, copy=False)  # another score's dtype may be wider
    return Attention(weights @ value, weights)  # (..., n, d_v), (..., n, m)


@readable
def attention(
    query: A,
    key: A,
    value: A,
    *,
    mask: A | None = None,
    causal: bool = False,
    score: Callable[[A, A], A] = scaled_dot_product_score,
    scale: float | None = None,
    bias: A | None = None,
    enable_gqa: bool = False,
) -> Attention[A]:
    r"""Mix the values, each weighted by how well its key matches the query.

    .. math:: \text{output} = \operatorname{softmax}\!\left(\frac{Q K^\top}{\sqrt{d}}\right) V

    (with the default score; in general the softmax is taken of ``score(query, key)``).

    Parameters
    ----------
    query : array, shape (..., n, d_q)
    key : array, shape (..., m, d_k)
    value : array, shape (..., m, d_v)
        Any number of leading batch axes, which broadcast. Any axis may be 0.
    mask : boolean array that broadcasts to (..., n, m), optional
        True = may attend, as in PyTorch's ``scaled_dot_product_attention``. A 2-D mask is always
        (n, m). A mask (batch, 1, m) from `padding_mask` needs a head axis before it meets queries
        of shape (batch, heads, n, d): ``mask[:, None]``, or ``padding_mask(..., heads=True)``. A
        mask of three axes is refused where it could be either, with as many heads as items.
    causal : bool
        Hide later keys too (see `causal_mask`: the last query sees every key). With `mask`, both
        hold.
    score : callable
        ``score(query, key)`` returns the scores, shape (..., n, m); the weights have the leading
        axes that it returns. Give parameters with a lambda:
        ``score=lambda q, k: bilinear_score(q, k, weight)``. A score of -inf hides its key,
        whichever function gives it, and one that overflows to -inf does so too.
    scale : float, optional
        What the dot product is multiplied by; 1/√d unless given. (Another `score` does so itself.)
    bias : array that broadcasts to (..., n, m), optional
        Added to the scores, such as `alibi_bias`.
    enable_gqa : bool
        Grouped heads, under PyTorch's name for them: query (..., h, n, d) with key and value
        (..., g, m, d), g a divisor of h. Query head i uses key-value head i // (h / g).

    Returns
    -------
    Attention
        ``output`` (..., n, d_v) and ``weights`` (..., n, m). A query that may see no key has
        weights 0 and output 0.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, NumPy and PyTorch are mixed, `mask` is not
        boolean, `causal` is not a bool, or `score` is not a function that returns an array.
    ValueError
        If shapes do not fit together, `scale` does not fit the dtype, or there is a `scale` for
        another `score`.

    Notes
    -----
    Integers and booleans become the default float. In 16 bits scores and weights are rounded too,
    and not only the output, as in PyTorch's fused kernel (see `tiled_attention`). A masked key or
    value must still be finite: a NaN there reaches the output (from a value: 0 · NaN = NaN) or the
    gradients (from a key), as it does in PyTorch.

    References
    ----------
    Vaswani et al., "Attention is all you need", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> query = np.array([[1.0, 0.0]])                         # n = 1
    >>> key = np.array([[4.0, 0.0], [0.0, 4.0], [0.0, 4.0]])   # m = 3
    >>> value = np.array([[10.0], [20.0], [60.0]])
    >>> output, weights = attention(query, key, value)
    >>> weights.round(3), output.round(2)
    (array([[0.894, 0.053, 0.053]]), array([[13.17]]))
    >>> attention(query, key, value, mask=np.array([[False, True, True]])).output
    array([[40.]])
    """
    biases = {} if bias is None else {"bias": bias}
    xp, query, key, value, *found = floating(query=query, key=key, value=value, **biases)
    check_flag("enable_gqa", enable_gqa)
    if enable_gqa:
        key, value = shared_heads(xp, query, key, value)
    check_rows(query, key, value)
    check_flag("causal", causal)
    if score is scaled_dot_product_score:  # the same, without asking again what it would ask
        check_same_length(query, key)
        check_attention_mask(mask, query, key)
        check_bias(bias, scores_shape(query, key))
        scale = None if scale is None else _scale_that_fits(xp, scale, query.dtype)
        score = _scaled_dot_product_score
    elif scale is not None:
        raise ValueError(
            f"scale = {scale!r:.40} is that of scaled_dot_product_score; another score scales "
            "itself: score=lambda q, k: scale * score(q, k)"
        )
    else:
        score = checked_score(score, value, mask, bias)
    bias = found[0] if found else None
    with rounding_ignored(value, invalid=True):
        return _attention(xp, query, key, value, mask, causal, score, scale, bias)
