"""Weights from distance alone: kernels and Nadaraya-Watson regression (chapter 2)."""

from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from d2lmini._arrays import A, Array, floating, nearest_in_dtype, rounding_ignored
from d2lmini._checks import check_rows, check_same_space, positive_number
from d2lmini.attention import Attention, _attention
from d2lmini.scores import _gaussian_score

__all__ = ["nadaraya_watson"]

Kernel: TypeAlias = Literal["gaussian", "boxcar", "triangular", "epanechnikov"]

# Each takes u = distance / width, and is zero where u > 1.
COMPACT_KERNELS: dict[str, Callable[[Array], Array]] = {
    "boxcar": lambda u: 0 * u + 1,
    "triangular": lambda u: 1 - u,
    "epanechnikov": lambda u: 1 - u**2,
}


def _log_kernel(xp: Any, query: A, key: A, kernel: Kernel, width: float) -> A:
    """Score by log K(|q - k| / w): the softmax of log K is K / sum K."""
    if kernel == "gaussian":
        return _gaussian_score(xp, query, key, width)  # (..., n, m)
    u = _distance(xp, query, key, width)  # (..., n, m)
    near = COMPACT_KERNELS[kernel](u)
    outside = (u > 1) | (near <= 0)  # not true of NaN, which stays NaN
    return xp.where(outside, -xp.inf, xp.log(xp.where(outside, 1.0, near)))


def nadaraya_watson(
    query: A, key: A, value: A, *, kernel: Kernel = "gaussian", width: float = 1.0
) -> Attention[A]:
    r"""Estimate a value at each query as the mean of the values, weighted by distance.

    .. math:: f(q) = \sum_i \frac{K(|q - k_i|)}{\sum_j K(|q - k_j|)}\, v_i

    with the distance u = \|q - k\| and the width w in one of four kernels K:

    ============== =======================================
    gaussian       exp(-u² / 2w²)
    boxcar         1 if u ≤ w, else 0
    triangular     1 - u/w if u ≤ w, else 0
    epanechnikov   1 - u²/w² if u ≤ w, else 0
    ============== =======================================

    It is attention: with the Gaussian kernel, softmax over `gaussian_score`.

    Parameters
    ----------
    query : array, shape (..., n, d)
        Where the estimate is wanted.
    key : array, shape (..., m, d)
        Where values are known.
    value : array, shape (..., m, d_v)
    kernel : str
        One of the four names above.
    width : float
        w > 0, in the units of query and key.

    Returns
    -------
    Attention
        ``output`` (..., n, d_v), the estimate, and ``weights`` (..., n, m). A query with no key
        within reach of the kernel has weights 0 and output 0; the Gaussian reaches as far as the
        dtype holds u²/2w² (half-precision input is computed in float32).

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, or NumPy and PyTorch are mixed.
    ValueError
        If shapes do not fit together, `kernel` has another name, or `width` is not positive.

    References
    ----------
    Nadaraya, "On estimating regression", 1964; Watson, "Smooth regression analysis",
    1964; Epanechnikov, "Non-parametric estimation of a multivariate probability density",
    1969.

    Examples
    --------
    >>> import numpy as np
    >>> years, flow = np.array([[0.0], [1.0], [2.0]]), np.array([[10.0], [20.0], [60.0]])
    >>> nadaraya_watson(np.array([[1.0]]), years, flow, kernel="triangular", width=2.0)
    Attention(output=array([[27.5]]), weights=array([[0.25, 0.5 , 0.25]]))
    """
    if not isinstance(kernel, str):
        raise TypeError(f"kernel must be a string, got {type(kernel).__name__}")
    names = ["gaussian", *COMPACT_KERNELS]
    if kernel not in names:
        raise ValueError(f"kernel must be one of {', '.join(names)}; got {kernel!r}")
    width = positive_number("width", width)
    xp, query, key, value = floating(query=query, key=key, value=value)
    check_rows(query, key, value)
    check_same_space(query, key)
    dtype = value.dtype
    if dtype.itemsize < 4:  # the square of 256 does not fit float16
        query, key, value = (xp.astype(x, xp.float32) for x in (query, key, value))
    width = nearest_in_dtype(xp, width, query.dtype)
    with rounding_ignored(value, invalid=True):
        estimate = _attention(
            xp, query, key, value, score=lambda q, k: _log_kernel(xp, q, k, kernel, width)
        )
        return Attention(*(xp.astype(x, dtype, copy=False) for x in estimate))


def _distance(xp: Any, query: A, key: A, width: float) -> A:
    """Distances in widths (..., n, m), with gradient 0 where query and key coincide."""
    squared = -2 * _gaussian_score(xp, query, key, width)  # in widths, before it is squared
    apart = squared != 0  # true of NaN, which stays NaN
    return xp.where(apart, xp.sqrt(xp.where(apart, squared, 1.0)), 0.0)
