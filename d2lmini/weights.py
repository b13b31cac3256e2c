"""Weights from scores: the softmax, and the softmax over what may be seen (chapter 2)."""

from typing import Any

from d2lmini._arrays import Array, check_mask, floating, is_torch, namespace, quiet, whole_number

__all__ = ["masked_softmax", "softmax"]


def softmax(scores: Array, *, axis: int = -1) -> Array:
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
    return _softmax(xp, scores, axis)


def _softmax(xp: Any, scores: Array, axis: int) -> Array:
    """`softmax` of scores that are known to be good."""
    if is_torch(scores):
        return xp.softmax(scores, dim=axis)  # PyTorch's own: one pass instead of four
    if scores.shape[axis] == 0:
        return xp.zeros_like(scores)
    with quiet(scores):  # a gap too wide for the dtype is -inf, whose exp is 0
        if scores.dtype == xp.float16:  # a float16 sum stalls at 2048, and overflows at 65504
            return xp.astype(_softmax(xp, xp.astype(scores, xp.float32), axis), xp.float16)
        e = xp.exp(scores - xp.max(scores, axis=axis, keepdims=True))
        return e / xp.sum(e, axis=axis, keepdims=True)


def masked_softmax(scores: Array, mask: Array | None = None, *, axis: int = -1) -> Array:
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
    visible = scores != -xp.inf
    if mask is not None:
        namespace(scores=scores, mask=mask)
        check_mask(xp, mask, tuple(scores.shape))
        visible = visible & mask
    return softmax_over(xp, scores, visible, axis=axis)


def softmax_over(xp: Any, scores: Array, visible: Array, *, axis: int = -1) -> Array:
    """Softmax over the visible keys, whose scores are finite; the core of `masked_softmax`."""
    has_key = xp.any(visible, axis=axis, keepdims=True)
    # A row without keys is filled with 0, not -inf, so that no NaN ever arises.
    hidden = xp.asarray(-xp.inf, dtype=scores.dtype, device=scores.device)
    fill = xp.where(has_key, hidden, 0.0)
    weights = _softmax(xp, xp.where(visible, scores, fill), axis)
    return xp.where(visible, weights, 0.0)  # and what is hidden has no gradient, not even inf · 0


def _check_axis(scores: Array, axis: int) -> None:
    axis = whole_number("axis", axis, at_least=-max(scores.ndim, 1))
    if not -scores.ndim <= axis < scores.ndim:
        raise ValueError(
            f"axis must be one of the {scores.ndim} axes of scores of shape "
            f"{tuple(scores.shape)}, got {axis}"
        )
