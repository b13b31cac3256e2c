"""Say where a token stands, since attention does not see order (chapter 6)."""

from typing import Any, Literal

import array_api_compat

from d2lmini._arrays import (
    A,
    Array,
    Like,
    device_of,
    floating,
    is_kind,
    namespace,
    namespace_like,
    values_if_known,
    widest,
)
from d2lmini._checks import (
    array_size,
    broadcasts_to,
    check_tables,
    positive_number,
    whole_number,
)

__all__ = ["alibi_bias", "rotary", "sinusoidal_positions"]

EXACT = 2**53  # from here on not every position is a double


def sinusoidal_positions(
    num_positions: int, dim: int, *, like: Like | None = None, base: float = 10_000.0
) -> Like:
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
    like : array, optional
        An array whose kind (NumPy, PyTorch), device and floating dtype the result takes; for
        an array of integers, the default float of its kind. NumPy's float64 unless given.
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
    >>> sinusoidal_positions(3, 4).round(2)
    array([[ 0.  ,  1.  ,  0.  ,  1.  ],
           [ 0.84,  0.54,  0.01,  1.  ],
           [ 0.91, -0.42,  0.02,  1.  ]])
    """
    xp, _ = namespace_like(like)
    num_positions = array_size("num_positions", num_positions, at_least=0)
    dim = array_size("dim", dim, at_least=0)
    base = positive_number("base", base)
    angle = _angles(xp, xp.arange(num_positions, dtype=widest(xp)), dim, base)
    waves = _in_pairs(xp, xp.sin(angle), xp.cos(angle))[:, :dim]
    return _as_like(xp, waves, like)


def alibi_bias(
    num_heads: int, num_queries: int, num_keys: int | None = None, *, like: Like | None = None
) -> Like:
    r"""Return a bias on the scores that grows with the distance between query and key.

    .. math:: b_{hij} = -s_h\, |t_i - j|, \qquad t_i = i + (m - n), \qquad s_h = 2^{-8 (h + 1) / H}

    Give it to `attention` as `bias`: no position is written into queries and keys then, and each of
    the H heads looks a different way back. (The slopes :math:`s_h` are those of the paper. For H
    that is no power of 2 they are those of the largest power of 2 below, H', then every other one
    of 2H'.) With ``causal=True`` it is the paper's bias; later keys, where they are seen, are as
    far away as earlier ones.

    Parameters
    ----------
    num_heads : int
        H.
    num_queries, num_keys : int
        n and m; m = n unless given. The queries are the last n positions, as in `causal_mask`.
    like : array, optional
        An array whose kind (NumPy, PyTorch), device and floating dtype the result takes; NumPy's
        float64 unless given.

    Returns
    -------
    array, shape (H, n, m)

    Raises
    ------
    TypeError
        If a number is not an integer, or `like` is not an array.
    ValueError
        If a number is negative, or there is no head.

    References
    ----------
    Press, Smith and Lewis, "Train short, test long: attention with linear biases enables input
    length extrapolation", 2022.

    Examples
    --------
    >>> alibi_bias(2, 3)[1]  # the last of two heads: slope 1/256
    array([[ 0.        , -0.00390625, -0.0078125 ],
           [-0.00390625,  0.        , -0.00390625],
           [-0.0078125 , -0.00390625,  0.        ]])
    """
    num_heads = array_size("num_heads", num_heads, at_least=1)
    n = array_size("num_queries", num_queries, at_least=0)
    m = n if num_keys is None else array_size("num_keys", num_keys, at_least=0)
    xp, _ = namespace_like(like)
    query = xp.arange(m - n, m, dtype=widest(xp))[:, None]
    distance = xp.abs(query - xp.arange(m, dtype=widest(xp)))  # (n, m)
    slope = xp.asarray(_alibi_slopes(num_heads), dtype=widest(xp))[:, None, None]
    return _as_like(xp, 0 - slope * distance, like)  # (H, n, m)


def _alibi_slopes(num_heads: int) -> list[float]:
    power = 2 ** (num_heads.bit_length() - 1)  # the largest power of 2 that is not above it
    slopes = [2 ** (-8 * (head + 1) / power) for head in range(power)]
    between = [2 ** (-8 * (head + 1) / (2 * power)) for head in range(0, 2 * power, 2)]
    return [*slopes, *between[: num_heads - power]]


def rotary(
    x: A,
    *,
    start: int = 0,
    base: float = 10_000.0,
    layout: Literal["interleaved", "halves"] = "interleaved",
    positions: A | None = None,
) -> A:
    r"""Rotate queries or keys by an angle that grows with their position.

    Neighbouring components are a pair, and pair i of the vector at position t is rotated by
    :math:`\theta_{t, i} = t / b^{2i/d}`:

    .. math:: \begin{pmatrix} y_{2i} \\ y_{2i+1} \end{pmatrix} =
              \begin{pmatrix} \cos\theta & -\sin\theta \\ \sin\theta & \cos\theta \end{pmatrix}
              \begin{pmatrix} x_{2i} \\ x_{2i+1} \end{pmatrix}

    Lengths stay as they are, and the dot product of a rotated query and a rotated key depends on
    the distance of their positions, not on the positions themselves. Values are not rotated.

    Parameters
    ----------
    x : array, shape (..., n, d)
        Queries or keys, after they were split into heads.
    start : int
        The position of the first of them, counted from 0: with a cache, how many tokens came
        before.
    base : float
        b > 0.
    layout : "interleaved" or "halves"
        Which components are pairs: the neighbours 2i and 2i + 1, as in the paper, or i and
        i + d/2, as the published weights of Llama and its relatives expect. A model that was
        trained with one gives nonsense with the other.
    positions : integer array that broadcasts to (..., n), optional
        The position of each vector, where they do not follow each other: after padding at the start
        of a sequence, or with several texts in one row.

    Returns
    -------
    array, shape (..., n, d)

    Raises
    ------
    TypeError
        If `x` is not an array of real numbers, or a number is of another kind.
    ValueError
        If d is odd, `x` has fewer than two axes, `start` is negative, `base` is not positive, a
        position is beyond 2**53 (from where doubles skip some), `layout` has another name, or
        `positions` do not fit, or come with a `start`.

    References
    ----------
    Su et al., "RoFormer: enhanced Transformer with rotary position embedding", 2021.

    Examples
    --------
    A rotation by one radian, and by none at position 0.

    >>> import numpy as np
    >>> rotary(np.array([[1.0, 0.0], [1.0, 0.0]])).round(2)
    array([[1.  , 0.  ],
           [0.54, 0.84]])
    >>> rotary(np.array([[1.0, 9.0, 0.0, 0.0]]), start=1, layout="halves").round(2)
    array([[0.54, 9.  , 0.84, 0.09]])
    """
    xp, x = floating(x=x)
    check_tables(x=x)
    d = x.shape[-1]
    if d % 2:
        raise ValueError(
            f"rotary rotates pairs of components, and the last axis of x has {d}, an odd number; "
            "choose an even width of a head"
        )
    if layout not in ("interleaved", "halves"):
        raise ValueError(f'layout must be "interleaved" or "halves", got {layout!r:.40}')
    position = _positions(xp, x, whole_number("start", start, at_least=0), positions)
    angle = _angles(xp, position, d, positive_number("base", base))  # (..., n, d/2)
    wide = xp.result_type(x.dtype, xp.float32)  # a half has too few digits for a sum of products
    cos, sin = (_on_device_of(x, xp.astype(f(angle), wide)) for f in (xp.cos, xp.sin))
    if layout == "halves":
        first, second = x[..., : d // 2], x[..., d // 2 :]
    else:
        first, second = x[..., 0::2], x[..., 1::2]
    rotated = first * cos - second * sin, first * sin + second * cos
    y = xp.concat(rotated, axis=-1) if layout == "halves" else _in_pairs(xp, *rotated)
    return xp.astype(y, x.dtype)


def _positions(xp: Any, x: Array, start: int, positions: Array | None) -> Array:
    """Return the position of each vector as a double, (n,) or what broadcasts to (..., n)."""
    n = x.shape[-2]
    if positions is None:
        if start + n > EXACT:
            raise ValueError(
                f"start = {start} is too far: positions are exact up to 2**53, and the last of "
                f"these {n} is {start + n - 1}; count from a later token, since only distances "
                "matter"
            )
        return xp.arange(start, start + n, dtype=widest(xp))
    namespace(x=x, positions=positions)
    if not is_kind(xp, positions.dtype, "integral"):
        raise TypeError(f"positions must be integers, got {positions.dtype}")
    if start != 0:
        raise ValueError(f"give positions or start = {start}, not both; add it to the positions")
    shape = tuple(x.shape[:-1])
    if not broadcasts_to(positions, shape):
        raise ValueError(
            f"positions of shape {tuple(positions.shape)} do not broadcast to {shape}, one for "
            f"each vector of x; where x has heads, positions (batch, n) need an axis for them: "
            "positions[:, None]"
        )
    for extreme in (xp.min, xp.max) if 0 not in positions.shape else ():
        number = values_if_known(extreme(positions))
        if number is not None and abs(number) > EXACT:
            raise ValueError(f"positions are exact up to 2**53, got {number}")
    return xp.astype(positions, widest(xp))


def _angles(xp: Any, position: Array, dim: int, base: float) -> Array:
    """Return t / base^(2i/dim) for positions t and pairs i, in double precision."""
    pair = xp.arange((dim + 1) // 2, dtype=widest(xp), device=device_of(position))
    return position[..., None] / base ** (2 * pair / max(dim, 1))


def _in_pairs(xp: Any, first: Array, second: Array) -> Array:
    """Let the components of two arrays (..., d/2) take turns: (..., d)."""
    pairs = xp.stack([first, second], axis=-1)
    return xp.reshape(pairs, (*first.shape[:-1], 2 * first.shape[-1]))


def _as_like(xp: Any, x: Array, like: Array | None) -> Any:
    """Bring a table to the floating dtype and the device of `like`."""
    if like is None:
        return x
    floats = is_kind(xp, like.dtype, "real floating")
    return _on_device_of(like, xp.astype(x, like.dtype if floats else xp.asarray(0.0).dtype))


def _on_device_of(like: Array, x: Array) -> Array:
    place = device_of(like)
    return x if place is None else array_api_compat.to_device(x, place)
