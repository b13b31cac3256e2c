"""Weights from scores: the softmax, and the softmax over what may be seen (chapter 2).

Here, as everywhere in d2lmini, ``_name`` is the formula of ``name`` for arguments that are known to
be good; ``name`` checks them first.
"""

from typing import Any

from d2lmini._arrays import floating, is_torch, namespace, rounding_ignored
from d2lmini._checks import check_mask, whole_number
from d2lmini._types import A

__all__ = ["masked_softmax", "softmax"]


def _softmax(xp: Any, scores: Any, axis: int = -1) -> Any:
    """exp(a_i) / sum_j exp(a_j)."""
    if is_torch(scores):
        return xp.softmax(scores, dim=axis)  # PyTorch's own: one pass instead of four
    e = xp.exp(scores - scores.max(axis=axis, keepdims=True, initial=-xp.inf))
    wide = xp.float32 if e.dtype == xp.float16 else e.dtype  # a float16 sum stalls at 2048
    return xp.astype(e / e.sum(axis=axis, keepdims=True, dtype=wide), e.dtype, copy=False)


def _masked_softmax(xp: Any, scores: A, mask: A | None, axis: int = -1) -> A:
    """m_i exp(a_i) / sum_j m_j exp(a_j); 0 where the sum is 0."""
    if scores.shape[axis] == 0:
        return scores
    if mask is not None:
        scores = xp.where(mask, scores, -xp.inf)
    blind = xp.max(scores, axis=axis, keepdims=True) == -xp.inf  # sees no key: softmax would be NaN
    weights = xp.where(blind, 0.0, _softmax(xp, xp.where(blind, 0.0, scores), axis))
    return weights if mask is None else xp.where(mask, weights, 0.0)  # and its gradient is 0 too


def softmax(scores: A, *, axis: int = -1) -> A:
    r"""Turn scores into weights: positive, and summing to 1 along ``axis``.

    .. math:: \alpha_i = \frac{\exp(a_i)}{\sum_j \exp(a_j)}

    The largest score is subtracted first. That changes nothing in the result (the softmax does not
    notice a constant added to all scores) and keeps ``exp`` from overflowing.

    Parameters
    ----------
    scores : array, shape (..., m)
        Real scores of any size. Integers and booleans become the default float.
    axis : int
        The axis over which the weights sum to 1: the keys.

    Returns
    -------
    array, same shape as `scores`
        The weights. An axis of length 0 gives an empty array.

    Raises
    ------
    TypeError
        If `scores` is not a NumPy array or a PyTorch tensor of real numbers.
    ValueError
        If `scores` has no axis `axis`.

    Notes
    -----
    NaN gives NaN. A score of +inf, or a row of -inf only, has no softmax: the result is NaN, as in
    PyTorch. To hide keys use `masked_softmax`.

    References
    ----------
    Bridle, "Probabilistic interpretation of feedforward classification network outputs, with
    relationships to statistical pattern recognition", 1990.

    Examples
    --------
    >>> import numpy as np
    >>> softmax(np.array([2.0, 1.0, 0.0])).round(3)
    array([0.665, 0.245, 0.09 ])
    >>> softmax(np.array([1002.0, 1001.0, 1000.0])).round(3)
    array([0.665, 0.245, 0.09 ])
    """
    xp, scores = floating(scores=scores)
    _check_axis(scores, axis)
    with rounding_ignored(scores):  # a gap too wide for the dtype is -inf, whose exp is 0
        return _softmax(xp, scores, axis)


def masked_softmax(scores: A, mask: A | None = None, *, axis: int = -1) -> A:
    r"""Softmax over the keys that may be seen; the others get weight 0.

    .. math:: \alpha_i = \frac{m_i \exp(a_i)}{\sum_j m_j \exp(a_j)}, \qquad m_i \in \{0, 1\}

    A query that may see no key gets weights 0, and finite gradients (0), where the formula would
    divide 0 by 0.

    Parameters
    ----------
    scores : array, shape (..., n, m)
        Scores of n queries with m keys. A score of -inf counts as hidden.
    mask : boolean array that broadcasts to `scores`, optional
        True = may attend.
    axis : int
        The axis of the keys.

    Returns
    -------
    array, same shape as `scores`
        Each row sums to 1, or to 0 if every key is hidden. Hidden keys have weight 0 exactly,
        whatever their score.

    Raises
    ------
    TypeError
        If `mask` is not boolean, or `scores` and `mask` are not of one kind (NumPy, PyTorch).
    ValueError
        If `mask` does not broadcast to `scores`.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0]])
    >>> mask = np.array([[True, True, False], [False, False, False]])
    >>> masked_softmax(scores, mask).round(3)
    array([[0.269, 0.731, 0.   ],
           [0.   , 0.   , 0.   ]])
    """
    xp, scores = floating(scores=scores)
    _check_axis(scores, axis)
    if mask is not None:
        namespace(scores=scores, mask=mask)
        check_mask(xp, mask, tuple(scores.shape))
        mask = xp.broadcast_to(mask, tuple(scores.shape))  # for an axis that is not the last
    with rounding_ignored(scores):
        return _masked_softmax(xp, scores, mask, axis)


def _check_axis(scores: A, axis: int) -> None:
    axis = whole_number("axis", axis, at_least=-max(scores.ndim, 1))
    if not -scores.ndim <= axis < scores.ndim:
        raise ValueError(
            f"axis must be one of the {scores.ndim} axes of scores of shape "
            f"{tuple(scores.shape)}, got {axis}"
        )
