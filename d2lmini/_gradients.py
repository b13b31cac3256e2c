"""The softmax where the scores stood, with its gradient written by hand, for PyTorch.

PyTorch records what is done one step at a time, and gives each step memory of its own. For n × m
numbers that memory takes longer than the arithmetic.
"""

import functools
import sys
from typing import Any

from d2lmini._arrays import Array

__all__ = ["softmax_in_place"]


def softmax_in_place(scores: Array, hidden: Array) -> Array:
    """Overwrite scores, -inf where `hidden`, with their softmax, whose gradient is 0 there."""
    return _function().apply(scores, hidden)


@functools.cache
def _function() -> Any:
    """Make the function where it is needed: no import, so that NumPy alone needs no PyTorch."""
    torch = sys.modules["torch"]

    class SoftmaxInPlace(torch.autograd.Function):  # type: ignore[misc, name-defined]
        """w = softmax(a), and ∂a_i = w_i (∂w_i - sum_j w_j ∂w_j)."""

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
