"""What the known mistakes of several chapters share."""

from collections.abc import Callable
from typing import Any

import numpy as np

from d2lmini._arrays import Array
from d2lmini.exercises.definition import Mistake
from d2lmini.weights import softmax

__all__ = ["naive_softmax", "rough", "slip", "tables"]


def tables(*nested: object) -> tuple[Array, ...]:
    """Make a float array of each nested list."""
    return tuple(np.array(numbers, dtype=float) for numbers in nested)


def rough(seed: int, *sizes: tuple[int, ...], low: int = -997) -> tuple[Array, ...]:
    """Make arrays of numbers of both signs that no cast, rounding or absolute value leaves alone.

    Each is a fraction of whole numbers, and so the same on every machine.
    """
    rng = np.random.default_rng(seed)
    return tuple(rng.integers(low, 998, size) / 331 for size in sizes)


def naive_softmax(scores: Array, axis: int = -1) -> Array:
    """Do without the subtraction of the largest score, as learners do: it overflows."""
    e = np.exp(scores)
    return e / e.sum(axis=axis, keepdims=True)


def slip(id: str, says: str, make: Callable[[Any], Callable[..., Any]]) -> Mistake:
    """Make a Mistake in an answer that needs a softmax, whichever of the two the learner wrote."""
    return Mistake(id, says, make(softmax), also=(make(naive_softmax),))
