"""Attention itself: score, mask, softmax, weighted sum (chapter 3)."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from d2lmini._arrays import (
    Array,
    check_batch,
    check_flag,
    check_mask,
    check_rank,
    floating,
    namespace,
    quiet,
)
from d2lmini.masks import causal_mask
from d2lmini.scores import scaled_dot_product_score
from d2lmini.weights import masked_softmax, softmax, softmax_over

__all__ = ["Attention", "attention"]

Score: TypeAlias = Callable[[Array, Array], Array]  # (..., n, d_q), (..., m, d_k) -> (..., n, m)


class Attention(NamedTuple):
    """What attention returns: ``output, weights = attention(...)``.

    Attributes
    ----------
    output : array, shape (..., n, d_v)
        One mixture of the values for each query.
    weights : array, shape (..., n, m), or None
        How much of each value went into it. Each row sums to 1, or to 0 for a query with no key.
    """

    output: Array
    weights: Array


def attention(
    query: Array,
    key: Array,
    value: Array,
    *,
    mask: Array | None = None,
    causal: bool = False,
    score: Score = scaled_dot_product_score,
) -> Attention:
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
        of shape (batch, heads, n, d): ``mask[:, None]``.
    causal : bool
        Hide later keys too (see `causal_mask`: the last query sees every key). With `mask`, both
        hold.
    score : callable
        ``score(query, key)`` returns the scores, shape (..., n, m); the weights have the leading
        axes that it returns. Give parameters with a lambda:
        ``score=lambda q, k: bilinear_score(q, k, weight)``.

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
        If shapes do not fit together.

    Notes
    -----
    Integers and booleans become the default float. A masked key or value must still be finite:
    a NaN there reaches the output (from a value: 0 · NaN = NaN) or the gradients
    (from a key), as it does in PyTorch.

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
    xp, query, key, value = floating(query=query, key=key, value=value)
    _check_arguments(query, key, value, causal)
    if not callable(score):
        raise TypeError(f"score must be a function of query and key, got {score!r:.40}")
    with quiet(query, invalid=True):  # a hidden key may be as huge as it likes
        scores = score(query, key)  # (..., n, m)
    _check_scores(scores, query, key, value)
    if mask is not None:
        namespace(query=query, mask=mask)
        check_mask(xp, mask, tuple(scores.shape))
    if causal:
        earlier = causal_mask(query.shape[-2], key.shape[-2], like=query)
        mask = earlier if mask is None else mask & earlier
    if score is not scaled_dot_product_score:
        weights = masked_softmax(scores, mask)  # a score of -inf hides its key as well
    elif mask is None:
        weights = softmax(scores)
    else:
        weights = softmax_over(xp, scores, mask)
    if weights.dtype != value.dtype:  # a score with weights of its own
        _, weights, value = floating(weights=weights, value=value)
    with quiet(value):
        return Attention(weights @ value, weights)


def _check_arguments(query: Array, key: Array, value: Array, causal: bool) -> None:
    check_rank("query", query, "(..., n, d_q)")
    check_rank("key", key, "(..., m, d_k)")
    check_rank("value", value, "(..., m, d_v)")
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"each key needs one value, got {key.shape[-2]} keys and {value.shape[-2]} values "
            f"(key {tuple(key.shape)}, value {tuple(value.shape)})"
        )
    check_batch(query=query, key=key, value=value)
    check_flag("causal", causal)


def _check_scores(scores: Array, query: Array, key: Array, value: Array) -> None:
    namespace(query=query, **{"score(query, key)": scores})
    expected = (query.shape[-2], key.shape[-2])
    if tuple(scores.shape[-2:]) != expected:
        raise ValueError(
            f"score must return shape (..., n, m) = (..., {expected[0]}, {expected[1]}), "
            f"got {tuple(scores.shape)}"
        )
    check_batch(**{"score(query, key)": scores}, value=value)
