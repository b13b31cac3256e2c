"""Exercises that check themselves, and say which mistake was made.

    from d2lmini.exercises import check, hint, solution

    @check
    def my_softmax(scores):
        ...

``check`` shows what it found and gives the function back. ``grade`` returns the `Result` without
showing it. ``hint`` and ``solution`` show what their names say, folded away on a page.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, TypeVar, overload

from d2lmini.exercises.cards import Folded, in_notebook, show
from d2lmini.exercises.definition import (
    Exercise,
    Mistake,
    Result,
    exercises,
    find,
    hand_over,
    register,
)
from d2lmini.exercises.grading import grade
from d2lmini.exercises.speaking import remember, speak

__all__ = [
    "Exercise",
    "Mistake",
    "Result",
    "check",
    "exercises",
    "find",
    "grade",
    "hint",
    "register",
    "solution",
    "speak",
]

Answer = TypeVar("Answer")
_NOT_GIVEN: Any = object()
_hints_seen: dict[str, int] = {}

for _module in sorted(module.name for module in iter_modules(__path__)):
    if _module.startswith("chapter"):  # each registers its exercises
        import_module(f"{__name__}.{_module}")


@overload
def check(fn: Answer, *, name: str | None = None) -> Answer: ...
@overload
def check(*, name: str | None = None) -> Callable[[Answer], Answer]: ...
def check(fn: Any = _NOT_GIVEN, *, name: str | None = None) -> Any:
    """Check an answer and show what was found.

    Use it as ``@check`` above a function or class that has the name of the exercise, with or
    without ``my_`` before it, or call it: ``check(other_name, name="softmax")``. An answer that
    is not written yet, raises an error or never ends does not stop the notebook.

    Parameters
    ----------
    fn : callable
    name : str, optional
        The exercise; ``fn.__name__`` unless given.

    Returns
    -------
    `fn` itself, unchanged.

    Raises
    ------
    TypeError, ValueError, ImportError
        As `grade`: there is no exercise of that name, or no PyTorch for it.

    Examples
    --------
    >>> @check
    ... def my_softmax(scores):
    ...     ...
    ○ my_softmax: not attempted yet. Replace the three dots and run again.
    """
    if fn is _NOT_GIVEN:
        return lambda answer: check(answer, name=name)
    result = grade(fn, name)
    hand_over(result)
    remember(result.name, fn)
    show(result)
    return fn


def hint(which: Any) -> None:
    """Show the hints: on a page all of them, each folded; in a terminal the next with each call.

    Parameters
    ----------
    which : str or callable
        The exercise, by name or by the function itself.

    Examples
    --------
    >>> hint("softmax")
    Hint 1 of 3
        With the scores 0, 1 and 3, the second key gets twice the weight of the first. How many
        times does the third get it?
    """
    exercise = _which(which)
    count = len(exercise.hints)
    items = tuple((f"Hint {i} of {count}", text) for i, text in enumerate(exercise.hints, 1))
    if not in_notebook():
        seen = _hints_seen.get(exercise.name, 0) % count  # after the last one, from the first
        _hints_seen[exercise.name] = seen + 1
        items = items[seen : seen + 1]
    show(Folded(items))


def solution(which: Any) -> None:
    """Show a right answer, folded on a page.

    Parameters
    ----------
    which : str or callable
        The exercise, by name or by the function itself.

    Examples
    --------
    >>> solution("softmax")
    Solution of my_softmax
        def my_softmax(scores):
            powers = 2.0 ** (scores - scores.max(axis=-1, keepdims=True))
            return powers / powers.sum(axis=-1, keepdims=True)
    """
    exercise = _which(which)
    show(Folded(((f"Solution of {exercise.function}", exercise.solution),), code=True))


def _which(which: Any) -> Exercise:
    name = which if isinstance(which, str) else getattr(which, "__name__", None)
    if not isinstance(name, str):
        raise TypeError(f"name an exercise, as in hint('softmax'); got {type(which).__name__}")
    return find(name)
