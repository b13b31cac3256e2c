"""What a public function asks of its arguments, once, before it computes.

Each check raises an error that names the argument, what it got, and the way out: a TypeError for a
wrong kind, a ValueError for a wrong shape or value.
"""

import math
import numbers
import operator
import sys
from collections.abc import Callable
from typing import Any, TypeGuard

import numpy as np

from d2lmini._arrays import (
    Array,
    check_real,
    floating,
    is_kind,
    is_torch,
    namespace,
    namespace_of,
)

# Numbers and flags


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}")


def whole_number(name: str, value: Any, *, at_least: float) -> int:
    """Return ``value`` as an int; TypeError for another kind, ValueError if it is too small."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}")
    try:
        number = value if _is_int(value) else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}") from None
    if number < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {number}")
    return number


def array_size(name: str, value: Any, *, at_least: int) -> int:
    """Return ``value`` as an int; as `whole_number`, and ValueError for more than any array has."""
    number = whole_number(name, value, at_least=at_least)
    if isinstance(number, int) and number > sys.maxsize:
        raise ValueError(f"{name} must be at most {sys.maxsize}, as of any array; got {number}")
    return number


def _is_int(value: object) -> TypeGuard[int]:
    """Tell whether a number is an int, or a size that PyTorch, as it exports, leaves open."""
    torch = sys.modules.get("torch")
    return isinstance(value, int) or (torch is not None and isinstance(value, torch.SymInt))


def position(name: str, value: Any, count: int) -> int:
    """Return which of ``count`` things is meant, from 0; a negative one counts from the end."""
    at = whole_number(name, value, at_least=-math.inf)
    if not -count <= at < count:
        there = f"from 0 to {count - 1}" if count else "none at all"
        raise ValueError(f"{name} = {at}: there are {count}, {there}")
    return at % count


def finite_number(name: str, value: Any) -> float:
    """Return ``value`` as a float; TypeError unless it is one real number, ValueError for inf."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, got {type(value).__name__}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not -math.inf < number < math.inf:  # NaN is not either
        raise ValueError(f"{name} must be finite, got {number:g}")
    return number


def positive_number(name: str, value: Any) -> float:
    """Return ``value`` as a float; TypeError for another kind, ValueError unless 0 < value < ∞."""
    number = finite_number(name, value)
    if number <= 0:
        raise ValueError(f"{name} must be positive, got {number:g}")
    return number


# Shapes


AXES = {"query": "(..., n, d)", "key": "(..., m, d)", "value": "(..., m, d_v)"}


def check_tables(hint: str = "", **arrays: Array) -> None:
    """Raise ValueError unless each is a table of vectors, and their leading axes broadcast."""
    for name, x in arrays.items():
        if x.ndim < 2:
            raise ValueError(
                f"{name} must have at least 2 axes {AXES.get(name, '(..., n, d)')}, got shape "
                f"{tuple(x.shape)}; for a single vector use {name}[None, :]"
            )
    check_batch(hint, **arrays)


def check_batch(hint: str = "", **arrays: Array) -> None:
    """Raise ValueError unless the leading axes (all but the last two) broadcast together."""
    first, *others = [x.shape[:-2] for x in arrays.values()]
    for batch in others:
        if batch != first:
            break
    else:
        return
    try:
        np.broadcast_shapes(first, *others)
    except ValueError:
        listed = " and ".join(f"{name} {tuple(x.shape)}" for name, x in arrays.items())
        raise ValueError(
            f"the leading (batch) axes do not broadcast: {listed}; all axes but the last two "
            f"must be equal or 1{hint}"
        ) from None


def check_rows(query: Array, key: Array, value: Array) -> None:
    """Raise ValueError unless these are tables of vectors, one value for each key."""
    hint = ""
    if query.ndim > 2 and key.ndim > 2 and 1 < key.shape[-3] < query.shape[-3]:
        hint = ", or the heads grouped: enable_gqa=True in attention and tiled_attention"
    check_tables(hint, query=query, key=key, value=value)
    check_one_value_for_each_key(key, value)


def check_one_value_for_each_key(key: Array, value: Array) -> None:
    """Raise ValueError unless there are as many values as keys."""
    if key.shape[-2] != value.shape[-2]:
        raise ValueError(
            f"each key needs one value, got {key.shape[-2]} keys and {value.shape[-2]} values "
            f"(key {tuple(key.shape)}, value {tuple(value.shape)})"
        )


def check_same_space(query: Array, key: Array) -> None:
    """Raise ValueError unless queries and keys are tables of vectors of one length."""
    check_tables(query=query, key=key)
    check_same_length(query, key)


def check_same_length(query: Array, key: Array) -> None:
    """Raise ValueError unless the vectors of queries and keys have one length."""
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"query and key must be vectors of one length, got {query.shape[-1]} and "
            f"{key.shape[-1]}; project them to one space, or use bilinear_score or additive_score"
        )


def check_shape(name: str, x: Array, expected: tuple[int, ...], symbols: str) -> None:
    """Raise ValueError unless `x` has exactly this shape."""
    if tuple(x.shape) != expected:
        raise ValueError(f"{name} must have shape {symbols} = {expected}, got {tuple(x.shape)}")


# Scores and masks


def checked_score(
    score: Callable[[Any, Any], Any], value: Array, mask: Array | None, bias: Array | None = None
) -> Callable[[Any, Any], Any]:
    """Return `score` such that what it gives is checked, and the mask that has to fit it."""
    if not callable(score):
        raise TypeError(f"score must be a function of query and key, got {score!r:.40}")

    def checked(query: Array, key: Array) -> Array:
        scores = score(query, key)
        _, _, scores = floating(value=value, **{"score(query, key)": scores})
        expected = (query.shape[-2], key.shape[-2])
        if tuple(scores.shape[-2:]) != expected:
            raise ValueError(
                f"score must return shape (..., n, m) = (..., {expected[0]}, {expected[1]}), "
                f"got {tuple(scores.shape)}"
            )
        check_batch(**{"score(query, key)": scores}, value=value)
        if mask is not None:
            check_mask(namespace(query=query, mask=mask), mask, tuple(scores.shape))
        check_bias(bias, tuple(scores.shape))
        return scores

    return checked


def check_boolean(xp: Any, mask: Array) -> None:
    """Raise TypeError unless ``mask`` is boolean."""
    if mask.dtype != xp.bool:
        raise TypeError(
            f"mask must be boolean (True = may attend), got {mask.dtype}; "
            "write a 0/1 mask as mask != 0, an additive one as mask == 0"
        )


def check_mask(xp: Any, mask: Array, scores_shape: tuple[int, ...]) -> None:
    """Raise unless ``mask`` is boolean and broadcasts to scores of shape ``(..., n, m)``."""
    check_boolean(xp, mask)
    shape = tuple(mask.shape)
    padding = len(scores_shape) > 3 and len(shape) == 3 and shape[0] == scores_shape[-4] > 1
    if broadcasts_to(mask, scores_shape):
        if padding and shape[0] == scores_shape[-3]:
            raise ValueError(
                f"mask of shape {shape} may be one for each of {shape[0]} items or one for each of "
                f"{shape[0]} heads (scores {scores_shape}); write mask[:, None] for items, "
                "mask[None] for heads"
            )
        return
    way_out = "a mask is (queries, keys), True where a query may attend to a key"
    if padding:
        way_out = "if it is one for each item of the batch, insert the axis of heads: mask[:, None]"
    elif len(scores_shape) > 2:
        m = scores_shape[-1]
        way_out = (
            f"for per-sequence lengths use padding_mask(lengths, {m}), "
            f"which has shape (batch, 1, {m})"
        )
    raise ValueError(
        f"mask of shape {tuple(mask.shape)} does not broadcast to scores of shape "
        f"{scores_shape}; {way_out}"
    )


def check_attention_mask(mask: Array | None, query: Array, key: Array) -> None:
    """Raise unless a mask, if there is one, fits the scores of `query` and `key`."""
    if mask is not None:
        xp = namespace(query=query, mask=mask)
        check_mask(xp, mask, scores_shape(query, key))


def check_bias(bias: Array | None, shape: tuple[int, ...]) -> None:
    """Raise unless a bias, if there is one, holds numbers and broadcasts to the scores."""
    if bias is None:
        return
    if is_kind(namespace(bias=bias), bias.dtype, "bool"):
        raise TypeError("bias holds numbers that are added to the scores; give a boolean as mask")
    if not broadcasts_to(bias, shape):
        raise ValueError(
            f"bias of shape {tuple(bias.shape)} does not broadcast to scores of shape "
            f"{shape}; its last two axes are (queries, keys), those before them of the scores"
        )


def scores_shape(query: Array, key: Array, *heads: int) -> tuple[int, ...]:
    """Return the shape that the scores of `query` and `key` have, a head axis inserted if told."""
    return (*batch_of(query, key), *heads, query.shape[-2], key.shape[-2])


def batch_of(query: Array, key: Array) -> tuple[int, ...]:
    """Return the leading axes (all but the last two) of queries and keys together."""
    batch, other = query.shape[:-2], key.shape[:-2]
    return tuple(batch) if batch == other else np.broadcast_shapes(batch, other)


def broadcasts_to(x: Array, shape: tuple[int, ...]) -> bool:
    """Tell whether each axis of `x`, counted from the last, is 1 or that of `shape`."""
    own = tuple(x.shape)
    if own == shape:
        return True
    pairs = zip(reversed(own), reversed(shape), strict=False)
    return len(own) <= len(shape) and all(a == 1 or a == b for a, b in pairs)


# Several heads


def check_groups(query: Array, key: Array, value: Array) -> int:
    """Return how many query heads use each key-value head; an error unless that is one number."""
    for name, x in (("query", query), ("key", key), ("value", value)):
        if x.ndim < 3:
            raise ValueError(
                f"with enable_gqa=True {name} must be (..., heads, n, d), got {tuple(x.shape)}"
            )
    heads, kv_heads = query.shape[-3], key.shape[-3]
    if value.shape[-3] != kv_heads:
        raise ValueError(f"key has {kv_heads} heads and value {value.shape[-3]}; they go together")
    name = "the number of key-value heads"
    return divided_evenly("the number of query heads", heads, name, max(kv_heads, 1))


def shared_heads(xp: Any, query: Array, key: Array, value: Array) -> tuple[Any, Any]:
    """Give each group of query heads its key-value head: (..., g, m, d) -> (..., h, m, d)."""
    group = check_groups(query, key, value)
    if group == 1:
        return key, value
    return xp.repeat(key, group, axis=-3), xp.repeat(value, group, axis=-3)


def check_heads(num_heads: int, num_kv_heads: int | None) -> tuple[int, int]:
    """Return both numbers of heads, checked."""
    num_heads = whole_number("num_heads", num_heads, at_least=1)
    if num_kv_heads is None:
        return num_heads, num_heads
    num_kv_heads = whole_number("num_kv_heads", num_kv_heads, at_least=1)
    divided_evenly("num_heads", num_heads, "num_kv_heads", num_kv_heads)
    return num_heads, num_kv_heads


def divided_evenly(name: str, number: int, by_name: str, by: int) -> int:
    """Return number / by; ValueError with both numbers and the way out if that is not whole."""
    if number % by:
        divisors = [i for i in range(1, number + 1) if number % i == 0]
        near = sorted(sorted(divisors, key=lambda i: abs(i - by))[:2])
        raise ValueError(
            f"{name} = {number} is not divisible by {by_name} = {by}; the nearest {by_name} that "
            f"divide it: {', '.join(map(str, near))}"
        )
    return number // by


def mask_with_heads(
    mask: Array | None, query: Array, key: Array, num_heads: int, num_cached: int = 0
) -> Array | None:
    """Insert the head axis into a mask that serves all heads, and check that it fits.

    `query` (..., n, d_q) and `key` (..., m, d_k) have no head axis yet; the scores will be
    (..., heads, n, cached + m), and a mask with fewer axes than they is for all heads.
    """
    if mask is None:
        return None
    check_boolean(namespace(query=query, mask=mask), mask)
    batch = batch_of(query, key)
    n, m = query.shape[-2], num_cached + key.shape[-2]
    scores_shape = (*batch, num_heads, n, m)
    with_heads = mask
    while with_heads.ndim < 2:
        with_heads = with_heads[None, ...]
    if with_heads.ndim < len(scores_shape):
        with_heads = with_heads[..., None, :, :]
    if not broadcasts_to(with_heads, scores_shape):
        raise ValueError(
            f"mask of shape {tuple(mask.shape)} fits neither all heads nor each: for all heads "
            f"give {(n, m)} or {(*batch, n, m)}, per head {scores_shape}, for lengths "
            f"padding_mask(lengths, {m}) of shape {(*batch, 1, m)}; there are {num_heads} heads, "
            f"{n} queries and {m} keys"
        )
    return with_heads


# What a PyTorch module is given


def module_input(name: str, x: Any, weight: Any, width: int | None = None) -> Any:
    """Return a tensor of shape (..., n, width) in the dtype of a module's weights.

    Raises
    ------
    TypeError
        If ``x`` is not a tensor of real numbers, or of another floating dtype than ``weight``.
    ValueError
        If its shape does not fit.
    """
    xp = namespace_of(name, x)
    if not is_torch(x):
        raise TypeError(
            f"{name} must be a PyTorch tensor, got a NumPy array; convert it with "
            f"torch.as_tensor({name})"
        )
    if x.ndim < 2 or (width is not None and width != x.shape[-1]):
        raise ValueError(f"{name} must have shape (..., n, {width or 'd'}), got {tuple(x.shape)}")
    check_real(xp, name, x)
    if not x.is_floating_point():
        return x.to(weight.dtype)
    if x.dtype != weight.dtype and not _autocast(x, weight):
        raise TypeError(
            f"{name} has dtype {x.dtype}, the module's weights have {weight.dtype}; convert one "
            f"of them: {name}.to({weight.dtype}) or module.to({x.dtype})"
        )
    return x


def _autocast(x: Any, weight: Any) -> bool:
    """Tell whether PyTorch will bring these to one dtype; it leaves float64 as it is."""
    torch = sys.modules["torch"]
    kind = x.device.type
    available = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return bool(available) and torch.float64 not in (x.dtype, weight.dtype)


def dropout_rate(dropout: float) -> float:
    """Return ``dropout``; TypeError for another kind, ValueError unless 0 ≤ dropout ≤ 1."""
    number = finite_number("dropout", dropout)
    if not 0 <= number <= 1:
        raise ValueError(f"dropout is a probability between 0 and 1, got {number:g}")
    return number
