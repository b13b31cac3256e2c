"""Attention to fewer keys, mixed from all of them: low rank (chapter 8)."""

from typing import Any

from d2lmini._arrays import floating, rounding_ignored
from d2lmini._checks import check_rows, check_same_space, check_shape
from d2lmini._types import A, Attention
from d2lmini.attention import _attention

__all__ = ["linformer_attention"]


def _linformer_attention(
    xp: Any,
    query: A,  # (..., n, d)
    key: A,  # (..., m, d)
    value: A,  # (..., m, d_v)
    w_k: A,  # (r, m)
    w_v: A,  # (r, m)
) -> Attention[A]:
    """softmax(Q (W_K K)ᵀ / √d) W_V V."""
    return _attention(xp, query, w_k @ key, w_v @ value)  # (..., n, d_v), (..., n, r)


def linformer_attention(query: A, key: A, value: A, w_k: A, w_v: A) -> Attention[A]:
    r"""Mix m keys and values down to r of each, then attend to those.

    .. math:: \text{output} = \operatorname{softmax}\!\left(
        \frac{Q\, (W_K K)^\top}{\sqrt{d}}\right) W_V V

    The work grows with n · r instead of n · m. What is given up: no position has a weight of its
    own any more, the matrices fit one length m only, and there is no mask, since each of the r
    mixtures holds something of every position, of later ones too. With r = m and unit matrices it
    is `attention`.

    Parameters
    ----------
    query : array, shape (..., n, d)
    key : array, shape (..., m, d)
    value : array, shape (..., m, d_v)
    w_k, w_v : array, shape (r, m)
        How keys and values are mixed along the sequence; learned in a model.

    Returns
    -------
    Attention
        ``output`` (..., n, d_v) and ``weights`` (..., n, r), those of the mixtures.

    Raises
    ------
    TypeError
        If an argument is not an array of real numbers, or NumPy and PyTorch are mixed.
    ValueError
        If shapes do not fit together.

    References
    ----------
    Wang et al., "Linformer: self-attention with linear complexity", 2020.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 24).reshape(8, 3)
    >>> pairs = np.kron(np.eye(4), [[0.5, 0.5]])               # means of two neighbours, (4, 8)
    >>> output, weights = linformer_attention(x, x, x, pairs, pairs)
    >>> output.shape, weights.shape
    ((8, 3), (8, 4))
    """
    xp, query, key, value, w_k, w_v = floating(query=query, key=key, value=value, w_k=w_k, w_v=w_v)
    check_rows(query, key, value)
    check_same_space(query, key)
    if w_k.ndim != 2:
        raise ValueError(f"w_k must have shape (r, m), got {tuple(w_k.shape)}")
    for name, w in (("w_k", w_k), ("w_v", w_v)):
        check_shape(name, w, (w_k.shape[0], key.shape[-2]), "(r, m)")
    with rounding_ignored(value, invalid=True):
        return _linformer_attention(xp, query, key, value, w_k, w_v)
