"""The same as `attention` with scaled dot products, in less time: a twin of the plain formula.

Fresh memory for n × m numbers takes longer than the arithmetic. So the weights are made where the
scores were, in large pages; for PyTorch their gradient is written by hand, since it records one
step at a time and gives each step memory of its own. What is computed stands in ``attention.py``
and ``weights.py``; that both agree is tested (``tests/core/test_quick.py``).
"""

import ctypes
import functools
import math
import sys
from typing import Any

import numpy as np

from d2lmini._arrays import in_transform, is_compiling, is_torch, values_if_known
from d2lmini._types import Array

__all__ = ["is_quick", "quick_attention"]

LARGE = 2**22  # bytes, from which NumPy, too, asks Linux for large pages
MADV_HUGEPAGE, PAGE = 14, 4096


def is_quick(*arrays: Array | None) -> bool:
    """Tell whether nobody looks on: PyTorch does while it compiles, transforms or casts."""
    given = [x for x in arrays if x is not None]
    first = given[0]
    if not is_torch(first):
        return type(first) is np.ndarray
    torch = sys.modules["torch"]
    if is_compiling(first) or any(type(x) not in (torch.Tensor, torch.nn.Parameter) for x in given):
        return False
    kind = first.device.type
    casts = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return not (casts or in_transform(*given))


def quick_attention(
    xp: Any,
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None,
    scale: float | None,
    bias: Array | None,
) -> tuple[Array, Array]:
    """Return the output and the weights."""
    scale = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    scores = _product(query * scale, key.mT)  # from here on nobody else holds them
    scores = scores if bias is None else scores + bias
    hidden = None if mask is None else ~mask
    if hidden is not None:
        _fill(scores, hidden, -math.inf)
    blind = _rows_without_key(xp, scores)
    if blind is not None:  # -inf only would give NaN, and NaN a gradient NaN
        _fill(scores, blind, 0.0)
    if not getattr(scores, "requires_grad", False):
        weights = _softmax_in_place(xp, scores)
    elif hidden is None:
        weights = xp.softmax(scores, dim=-1)
    else:
        weights = _recorded_softmax().apply(scores, hidden)
    if blind is not None:
        weights = xp.where(blind, 0.0, weights)
    return weights @ value, weights


def _softmax_in_place(xp: Any, scores: Array) -> Array:
    if is_torch(scores):
        return xp.softmax(scores, dim=-1, out=scores)
    scores -= scores.max(axis=-1, keepdims=True, initial=-xp.inf)
    e = xp.exp(scores, out=scores)
    wide = xp.float32 if e.dtype == xp.float16 else e.dtype  # a float16 sum stalls at 2048
    return xp.divide(e, e.sum(axis=-1, keepdims=True, dtype=wide), out=e)


@functools.cache
def _recorded_softmax() -> Any:
    """Make the function where it is needed: no import, so that NumPy alone needs no PyTorch."""
    torch = sys.modules["torch"]

    class SoftmaxInPlace(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """w = softmax(a), and ∂a_i = w_i (∂w_i - sum_j w_j ∂w_j), 0 where hidden."""

        @staticmethod
        def forward(ctx: Any, scores: Array, hidden: Array) -> Array:
            torch.softmax(scores, dim=-1, out=scores)
            ctx.mark_dirty(scores)
            ctx.save_for_backward(scores, hidden)
            return scores

        @staticmethod
        def backward(ctx: Any, gradient: Array) -> tuple[Array, None]:
            weights, hidden = ctx.saved_tensors
            part = (gradient * weights).masked_fill_(hidden, 0.0)  # there it may be inf · 0
            return part.addcmul_(weights, part.sum(dim=-1, keepdim=True), value=-1), None

    return SoftmaxInPlace


def _fill(x: Array, where: Array, number: float) -> None:
    """Write a number where told, unrecorded: the gradient of a score is 0 where its weight is."""
    if is_torch(x):
        x.detach().masked_fill_(where, number)
    else:
        np.copyto(x, number, where=where)


def _rows_without_key(xp: Any, scores: Array) -> Array | None:
    """Tell which rows hold nothing but -inf; None if no row does."""
    if 0 in scores.shape:
        return None
    least = values_if_known(scores[..., 0].min())
    if least is not None and least > -math.inf:
        return None  # as nearly always, without a look at the other keys
    return xp.max(scores, axis=-1, keepdims=True) == -xp.inf


def _product(a: Array, b: Array) -> Array:
    """Return ``a @ b``, for PyTorch in large pages: the first touch of small ones takes as long."""
    shape = (*a.shape[:-1], b.shape[-1])
    size = math.prod(shape) * a.itemsize
    if not is_torch(a) or size < LARGE or a.shape[:-2] != b.shape[:-2] or a.device.type != "cpu":
        return a @ b
    torch = sys.modules["torch"]
    if torch.is_grad_enabled() and (a.requires_grad or b.requires_grad):
        return a @ b
    room = torch.empty(shape, dtype=a.dtype)
    if sys.platform == "linux":  # advice: where it is not taken, nothing happens
        first = -(-room.data_ptr() // PAGE) * PAGE
        count = (room.data_ptr() + size - first) // PAGE * PAGE
        _libc().madvise(ctypes.c_void_p(first), ctypes.c_size_t(count), MADV_HUGEPAGE)
    return torch.matmul(a, b, out=room)


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None)
