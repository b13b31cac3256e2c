"""How a query is compared with a key: the score functions (chapter 3).

Each takes n queries and m keys, any number of leading batch axes, and returns scores of shape
``(..., n, m)``: row i holds what query i thinks of every key. NaN in an input gives NaN.
"""

import math
from typing import Any

from d2lmini._arrays import A, floating, is_torch, nearest_in_dtype, rounding_ignored
from d2lmini._checks import (
    check_same_space,
    check_shape,
    check_tables,
    finite_number,
    positive_number,
)

__all__ = [
    "additive_score",
    "bilinear_score",
    "cosine_score",
    "dot_product_score",
    "gaussian_score",
    "scaled_dot_product_score",
]


def _dot_product_score(query: A, key: A) -> A:
    return query @ key.mT  # (..., n, d) @ (..., d, m) -> (..., n, m)


def _scaled_dot_product_score(query: A, key: A, scale: float | None = None) -> A:
    scale = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    return (query * scale) @ key.mT  # (..., n, m); scaled first: float16 does not reach far


def _cosine_score(xp: Any, query: A, key: A) -> A:
    return _unit(xp, query) @ _unit(xp, key).mT  # (..., n, m)


def _gaussian_score(xp: Any, query: A, key: A, width: float) -> A:
    difference = (query[..., :, None, :] - key[..., None, :, :]) / width  # (..., n, m, d)
    return -_squared_length(xp, difference) / 2  # (..., n, m)


def _bilinear_score(query: A, key: A, weight: A) -> A:
    return query @ weight @ key.mT  # (..., n, d_q) @ (d_q, d_k) @ (..., d_k, m) -> (..., n, m)


def _additive_score(xp: Any, query: A, key: A, w_q: A, w_k: A, w_v: A) -> A:
    hidden = (query @ w_q)[..., :, None, :] + (key @ w_k)[..., None, :, :]  # (..., n, m, d_h)
    return xp.tanh(hidden) @ w_v  # (..., n, m, d_h) @ (d_h,) -> (..., n, m)


def dot_product_score(query: A, key: A) -> A:
    r"""Compare by the dot product: large when the vectors are long and point the same way.

    .. math:: a(q, k) = q^\top k

    Parameters
    ----------
    query : array, shape (..., n, d)
    key : array, shape (..., m, d)

    Returns
    -------
    array, shape (..., n, m)

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, or NumPy and PyTorch are mixed.
    ValueError
        If the vectors differ in length, or the batch axes do not broadcast.

    References
    ----------
    Luong, Pham and Manning, "Effective approaches to attention-based neural machine
    translation", 2015.

    Examples
    --------
    >>> import numpy as np
    >>> dot_product_score(np.array([[1.0, 2.0]]), np.array([[3.0, 0.0], [1.0, 1.0]]))
    array([[3., 3.]])
    """
    _, query, key = floating(query=query, key=key)
    check_same_space(query, key)
    return _dot_product_score(query, key)


def scaled_dot_product_score(query: A, key: A, *, scale: float | None = None) -> A:
    r"""Compare by the dot product, divided by the square root of the vectors' length.

    .. math:: a(q, k) = \frac{q^\top k}{\sqrt{d}}

    If the components of q and k are independent with mean 0 and variance 1, the dot product has
    variance d; divided by the square root of d it has variance 1 for every d.

    Parameters
    ----------
    query : array, shape (..., n, d)
    key : array, shape (..., m, d)
    scale : float, optional
        What the dot product is multiplied by; 1/√d unless given. The query is scaled *before* the
        product, so that float16 does not overflow where the score itself would fit.

    Returns
    -------
    array, shape (..., n, m)

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, or NumPy and PyTorch are mixed.
    ValueError
        If the vectors differ in length, the batch axes do not broadcast, or `scale` does not fit
        the dtype.

    References
    ----------
    Vaswani et al., "Attention is all you need", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> q = np.array([[2.0, 0.0, 0.0, 0.0]])
    >>> scaled_dot_product_score(q, q)
    array([[2.]])
    """
    xp, query, key = floating(query=query, key=key)
    check_same_space(query, key)
    scale = None if scale is None else _scale_that_fits(xp, scale, query.dtype)
    return _scaled_dot_product_score(query, key, scale)


def cosine_score(query: A, key: A) -> A:
    r"""Compare by the cosine of the angle between the vectors: between -1 and 1.

    .. math:: a(q, k) = \frac{q^\top k}{|q|\,|k|}

    The score with a zero vector, which has no direction, is 0.

    Parameters
    ----------
    query : array, shape (..., n, d)
    key : array, shape (..., m, d)

    Returns
    -------
    array, shape (..., n, m)

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, or NumPy and PyTorch are mixed.
    ValueError
        If the vectors differ in length, or the batch axes do not broadcast.

    References
    ----------
    Graves, Wayne and Danihelka, "Neural Turing machines", 2014.

    Examples
    --------
    >>> import numpy as np
    >>> cosine_score(np.array([[3.0, 0.0]]), np.array([[5.0, 0.0], [0.0, 2.0], [-1.0, 0.0]]))
    array([[ 1.,  0., -1.]])
    """
    xp, query, key = floating(query=query, key=key)
    check_same_space(query, key)
    with rounding_ignored(query):
        return _cosine_score(xp, query, key)


def gaussian_score(query: A, key: A, *, width: float = 1.0) -> A:
    r"""Compare by distance: 0 where query and key are equal, below 0 elsewhere.

    .. math:: a(q, k) = -\frac{|q - k|^2}{2 w^2}

    Its softmax is the Gaussian kernel of `nadaraya_watson`. For keys of equal norm it orders the
    keys, and weighs them, as the dot product divided by w² does: the terms that differ depend on
    the query alone, and the softmax does not notice them.

    Parameters
    ----------
    query : array, shape (..., n, d)
    key : array, shape (..., m, d)
    width : float
        w > 0, in the units of query and key.

    Returns
    -------
    array, shape (..., n, m)
        Computed from the differences themselves, which takes n·m·d numbers of memory and loses no
        digits, as expanding the square would. A score too far below 0 for the dtype is -inf.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, or NumPy and PyTorch are mixed.
    ValueError
        If the vectors differ in length, the batch axes do not broadcast, or `width` is not
        positive.

    References
    ----------
    Nadaraya, "On estimating regression", 1964; Watson, "Smooth regression analysis",
    1964.

    Examples
    --------
    >>> import numpy as np
    >>> gaussian_score(np.array([[0.0]]), np.array([[0.0], [1.0], [2.0]]))
    array([[-0. , -0.5, -2. ]])
    """
    xp, query, key = floating(query=query, key=key)
    check_same_space(query, key)
    width = nearest_in_dtype(xp, positive_number("width", width), query.dtype)
    with rounding_ignored(query):
        return _gaussian_score(xp, query, key, width)


def bilinear_score(query: A, key: A, weight: A) -> A:
    r"""Compare through a learned matrix; query and key may differ in length.

    .. math:: a(q, k) = q^\top M k

    Parameters
    ----------
    query : array, shape (..., n, d_q)
    key : array, shape (..., m, d_k)
    weight : array, shape (d_q, d_k)
        M. With M = W_Q W_Kᵀ it is the dot product of projected queries and keys.

    Returns
    -------
    array, shape (..., n, m)

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, or NumPy and PyTorch are mixed.
    ValueError
        If `weight` does not fit, or the batch axes do not broadcast.

    References
    ----------
    Luong, Pham and Manning, "Effective approaches to attention-based neural machine
    translation", 2015 (the score they call "general").

    Examples
    --------
    >>> import numpy as np
    >>> q, k = np.array([[1.0, 2.0]]), np.array([[1.0, 0.0, 0.0]])
    >>> bilinear_score(q, k, np.array([[5.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))
    array([[7.]])
    """
    _, query, key, weight = floating(query=query, key=key, weight=weight)
    check_tables(query=query, key=key)
    check_shape("weight", weight, (query.shape[-1], key.shape[-1]), "(d_q, d_k)")
    return _bilinear_score(query, key, weight)


def additive_score(query: A, key: A, w_q: A, w_k: A, w_v: A) -> A:
    r"""Compare through a small neural network with one hidden layer of width d_h.

    .. math:: a(q, k) = w_v^\top \tanh(W_q^\top q + W_k^\top k)

    Parameters
    ----------
    query : array, shape (..., n, d_q)
    key : array, shape (..., m, d_k)
    w_q : array, shape (d_q, d_h)
    w_k : array, shape (d_k, d_h)
    w_v : array, shape (d_h,)

    Returns
    -------
    array, shape (..., n, m)
        Takes n·m·d_h numbers of memory on the way.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, or NumPy and PyTorch are mixed.
    ValueError
        If a weight does not fit, or the batch axes do not broadcast.

    References
    ----------
    Bahdanau, Cho and Bengio, "Neural machine translation by jointly learning to align and
    translate", 2015.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones((1, 1))
    >>> additive_score(one, np.array([[-1.0], [0.0]]), one, one, np.ones(1)).round(3)
    array([[0.   , 0.762]])
    """
    xp, query, key, w_q, w_k, w_v = floating(query=query, key=key, w_q=w_q, w_k=w_k, w_v=w_v)
    check_tables(query=query, key=key)
    if w_v.ndim != 1:
        raise ValueError(f"w_v must have shape (d_h,), got {tuple(w_v.shape)}")
    check_shape("w_q", w_q, (query.shape[-1], w_v.shape[0]), "(d_q, d_h)")
    check_shape("w_k", w_k, (key.shape[-1], w_v.shape[0]), "(d_k, d_h)")
    return _additive_score(xp, query, key, w_q, w_k, w_v)


def _unit(xp: Any, x: A) -> A:
    """Vectors of length 1 (a zero vector stays 0), without overflow on the way."""
    if x.shape[-1] == 0:
        return x
    largest = xp.max(xp.abs(x), axis=-1, keepdims=True)
    x = x / xp.where(largest > 0, largest, 1.0)
    squared = _squared_length(xp, x)[..., None]
    return x / xp.sqrt(xp.where(squared > 0, squared, 1.0))


def _squared_length(xp: Any, x: A) -> A:
    """Return |x|², (...), of vectors (..., d)."""
    if is_torch(x):
        return xp.sum(x * x, axis=-1)
    return xp.vecdot(x, x)  # NumPy's sum of float16 stalls at 2048 where x is not contiguous


def _scale_that_fits(xp: Any, scale: float, dtype: Any) -> float:
    number, largest = finite_number("scale", scale), float(xp.finfo(dtype).max)
    if abs(number) > largest:
        raise ValueError(
            f"scale = {number:g} does not fit {dtype}, whose largest number is {largest:g}; "
            "use a smaller scale, or float64"
        )
    return number
