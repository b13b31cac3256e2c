"""Say where a token stands, since attention does not see order (chapter 6)."""

from typing import Any

import array_api_compat

from d2lmini._arrays import A, Array, floating, is_kind, namespace
from d2lmini._checks import check_tables, positive_number, whole_number

__all__ = ["rotary", "sinusoidal_positions"]


def sinusoidal_positions(num_positions: int, dim: int, *, like: A, base: float = 10_000.0) -> A:
    r"""Return a vector for each position, made of waves of different lengths.

    .. math:: P_{t, 2i} = \sin\!\left(t / b^{2i/d}\right), \quad
              P_{t, 2i+1} = \cos\!\left(t / b^{2i/d}\right)

    Add them to embeddings. Positions are counted from t = 0.

    Parameters
    ----------
    num_positions : int
        How many positions, from 0 on.
    dim : int
        d, the length of each vector. If it is odd, the last wave has a sine alone.
    like : array
        An array whose kind (NumPy, PyTorch), device and floating dtype the result takes; for
        an array of integers, the default float of its kind.
    base : float
        b > 0: the wave length grows from 2π to 2πb.

    Returns
    -------
    array, shape (num_positions, dim)

    Raises
    ------
    TypeError
        If a number is of another kind, or `like` is not an array.
    ValueError
        If a size is negative, or `base` is not positive.

    References
    ----------
    Vaswani et al., "Attention is all you need", 2017, section 3.5.

    Examples
    --------
    >>> import numpy as np
    >>> sinusoidal_positions(3, 4, like=np.zeros(0)).round(2)
    array([[ 0.  ,  1.  ,  0.  ,  1.  ],
           [ 0.84,  0.54,  0.01,  1.  ],
           [ 0.91, -0.42,  0.02,  1.  ]])
    """
    xp = namespace(like=like)
    num_positions = whole_number("num_positions", num_positions, at_least=0)
    dim = whole_number("dim", dim, at_least=0)
    angle = _angles(xp, 0, num_positions, dim, positive_number("base", base))
    waves = _in_pairs(xp, xp.sin(angle), xp.cos(angle))[:, :dim]
    dtype = like.dtype if is_kind(xp, like.dtype, "real floating") else xp.asarray(0.0).dtype
    return _on_device_of(like, xp.astype(waves, dtype))


def rotary(x: A, *, start: int = 0, base: float = 10_000.0) -> A:
    r"""Turn queries or keys by an angle that grows with their position.

    Neighbouring components are a pair, and pair i of the vector at position t is turned by
    :math:`\theta_{t, i} = t / b^{2i/d}`:

    .. math:: \begin{pmatrix} y_{2i} \\ y_{2i+1} \end{pmatrix} =
              \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}
              \begin{pmatrix} x_{2i} \\ x_{2i+1} \end{pmatrix}

    Lengths stay as they are, and the dot product of a turned query and a turned key depends on the
    distance of their positions, not on where they stand. Values are not turned.

    Parameters
    ----------
    x : array, shape (..., n, d)
        Queries or keys, after they were split into heads.
    start : int
        The position of the first of them, counted from 0: with a cache, how many tokens came
        before.
    base : float
        b > 0.

    Returns
    -------
    array, shape (..., n, d)

    Raises
    ------
    TypeError
        If `x` is not an array of real numbers, or a number is of another kind.
    ValueError
        If d is odd, `x` has fewer than two axes, `start` is negative, or `base` is not positive.

    References
    ----------
    Su et al., "RoFormer: enhanced Transformer with rotary position embedding", 2021.

    Examples
    --------
    A turn by one radian, and by none at position 0.

    >>> import numpy as np
    >>> rotary(np.array([[1.0, 0.0], [1.0, 0.0]])).round(2)
    array([[1.  , 0.  ],
           [0.54, 0.84]])
    """
    xp, x = floating(x=x)
    check_tables(x=x)
    n, d = x.shape[-2:]
    if d % 2:
        raise ValueError(
            f"rotary turns pairs of components, and the last axis of x has {d}, an odd number; "
            "choose an even width of a head"
        )
    start = whole_number("start", start, at_least=0)
    angle = _angles(xp, start, n, d, positive_number("base", base))  # (n, d/2)
    wide = xp.result_type(x.dtype, xp.float32)  # a half has too few digits for a sum of products
    cos, sin = (_on_device_of(x, xp.astype(f(angle), wide)) for f in (xp.cos, xp.sin))
    even, odd = x[..., 0::2], x[..., 1::2]
    return xp.astype(_in_pairs(xp, even * cos - odd * sin, even * sin + odd * cos), x.dtype)


def _angles(xp: Any, start: int, n: int, dim: int, base: float) -> Array:
    """Return t / base^(2i/dim) for positions t and pairs i, in double precision."""
    position = xp.arange(start, start + n, dtype=xp.float64)
    pair = xp.arange((dim + 1) // 2, dtype=xp.float64)
    return position[:, None] / base ** (2 * pair / max(dim, 1))


def _in_pairs(xp: Any, first: Array, second: Array) -> Array:
    """Let the components of two arrays (..., d/2) take turns: (..., d)."""
    pairs = xp.stack([first, second], axis=-1)
    return xp.reshape(pairs, (*first.shape[:-1], 2 * first.shape[-1]))


def _on_device_of(like: Array, x: Array) -> Array:
    return array_api_compat.to_device(x, array_api_compat.device(like))
