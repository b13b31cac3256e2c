"""What an exercise is, what can go wrong in it, and what a check says."""

import ast
import json
import os
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

__all__ = [
    "Case",
    "Exercise",
    "Mistake",
    "Result",
    "Status",
    "Tables",
    "exercises",
    "find",
    "register",
]

Case: TypeAlias = tuple[Any, ...]  # the arguments of one call
Status: TypeAlias = Literal["todo", "pass", "wrong", "error"]
Tables: TypeAlias = tuple[tuple[tuple[float, ...], ...], ...]  # expected and got, each by rows


@dataclass(frozen=True)
class Mistake:
    """A slip that learners make, as code.

    Attributes
    ----------
    id : str
        Short name, unique within the exercise.
    says : str
        The diagnosis that the learner reads: which slip it is, not the code that repairs it.
    fn : callable
        An answer that makes exactly this slip. The diagnosis is given only to an answer that
        agrees with it on every case.
    also : tuple of callable
        Other ways to make the same slip, where they give other outputs.
    """

    id: str
    says: str
    fn: Callable[..., Any]
    also: tuple[Callable[..., Any], ...] = ()

    def __repr__(self) -> str:
        return f"<Mistake {self.id!r}>"


def _call(submission: Callable[..., Any], *arguments: Any) -> Any:
    return submission(*arguments)


@dataclass(frozen=True)
class Exercise:
    """One exercise, with all that is needed to pose, check, diagnose and solve it.

    Attributes
    ----------
    name : str
        Unique in the book. The learner's function or class has this name, or, where the library
        or its chapter has something of that name, ``my_`` before it: an answer must not take
        the place of what other cells call.
    chapter : int
    difficulty : str
        "warm-up", "easy", "medium" or "hard".
    minutes : int
        How long a reader of the chapter may need.
    task : str
        The docstring of the starter: what comes in and out, with shapes.
    returns : mapping of str to str
        The name and the axes of what is returned; several for an answer that is a tuple.
    reference : callable
        A right answer.
    cases : callable
        Returns the inputs, smallest first, always the same.
    mistakes : tuple of Mistake
    hints : tuple of str
        From the idea over the formula to the call or the axis.
    solution : str
        A right answer as source text, the one that is shown.
    call : callable
        Called with an answer and a case, returns the result. For modules: loads the weights.
    needs_torch : bool
    views : bool
        Whether a right answer may share memory with its input (a reshape does).
    whole : bool
        Whether the task asks for whole numbers, and not only for numbers that are whole.
    """

    name: str
    chapter: int
    difficulty: str
    minutes: int
    task: str
    returns: Mapping[str, str]
    reference: Callable[..., Any]
    cases: Callable[[], list[Case]]
    mistakes: tuple[Mistake, ...]
    hints: tuple[str, ...]
    solution: str
    call: Callable[..., Any] = _call
    needs_torch: bool = False
    views: bool = False
    whole: bool = False

    @cached_property
    def arguments(self) -> tuple[str, ...]:
        """The names of what a case holds, read from the solution."""
        node = self._definition
        functions = [node] if isinstance(node, ast.FunctionDef) else _methods(node)
        names = [argument.arg for function in functions for argument in function.args.args]
        return tuple(name for name in names if name != "self")

    @cached_property
    def signature(self) -> str:
        """How the answer is called, as in ``my_softmax(scores)`` or ``OneHead(d_model)(x)``."""
        node = self._definition
        if isinstance(node, ast.FunctionDef):
            return f"{self.function}({', '.join(self.arguments)})"
        calls = [", ".join(a.arg for a in method.args.args[1:]) for method in _methods(node)]
        return self.function + "".join(f"({arguments})" for arguments in calls)

    def __repr__(self) -> str:
        return f"<Exercise {self.name!r} of chapter {self.chapter}>"

    @property
    def function(self) -> str:
        """The name of the function or class that the learner writes, read from the solution."""
        return self._definition.name

    @cached_property
    def starter(self) -> str:
        """The text of the cell that a learner fills in."""
        lines = self.solution.splitlines()
        node = self._definition
        before = "\n".join(lines[: node.lineno - 1]).strip()  # what it imports
        alone = "from d2lmini.exercises import check"  # the cell may be the first that runs
        if before:
            alone = before + ("\n" if "\nfrom d2lmini" in before else "\n\n") + alone
        kept = [alone, "", "", "@check", lines[node.lineno - 1]]
        kept += _docstring(self.task)
        if isinstance(node, ast.FunctionDef):
            return "\n".join([*kept, "    ..."])
        for method in _methods(node):
            kept += ["", lines[method.lineno - 1]]
            if method.name == "__init__":
                kept.append("        super().__init__()")
            kept.append("        ...")
        return "\n".join(kept)

    @cached_property
    def _definition(self) -> ast.FunctionDef | ast.ClassDef:
        names = (self.name, f"my_{self.name}")
        for node in ast.parse(self.solution).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names:
                return node
        raise ValueError(f"the solution of {self.name} does not define {' or '.join(names)}")


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    """Return the two methods that a module must have; a learner may write others."""
    return [
        method
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name in ("__init__", "forward")
    ]


def _docstring(task: str) -> list[str]:
    lines = textwrap.wrap(task, 75, initial_indent='    """', subsequent_indent="    ")
    if len(lines) == 1:
        return [lines[0] + '"""']
    return [*lines, '    """']


@dataclass(frozen=True)
class Result:
    """What a check found. It is true if the answer is right.

    Attributes
    ----------
    name : str
        Of the exercise.
    status : str
        "todo" (not attempted), "pass", "wrong" (ran, and gave something else) or "error" (could
        not be run to its end).
    head : str
        What happened, in a sentence.
    rows : tuple of pairs of str
        The smallest input that shows it, what was expected, what came back.
    says : str
        The diagnosis, or the advice; empty if there is none.
    mistake : str or None
        The id of the known mistake that explains every output.
    tables : pair of tables of numbers, or None
        What was expected and what came back, where both are tables: a card draws them.
    """

    name: str
    status: Status
    head: str
    rows: tuple[tuple[str, str], ...] = field(default=())
    says: str = ""
    mistake: str | None = None
    tables: Tables | None = field(default=None, repr=False)

    def __bool__(self) -> bool:
        return self.status == "pass"

    @property
    def function(self) -> str:
        """The name that the learner's function or class has: that of the exercise, or `my_…`."""
        return _registry[self.name].function if self.name in _registry else self.name

    def __repr__(self) -> str:
        from d2lmini.exercises.cards import plain

        return plain(self)

    def _repr_html_(self) -> str:
        from d2lmini.exercises.cards import html

        return html(self)


RESULTS = "D2LMINI_RESULTS"  # the variable that names the file in which checks write what they find
HANDED_OVER = "name", "status", "head", "says", "mistake"


def hand_over(result: Result) -> None:
    """Write down what a check has found, where a notebook is being graded."""
    if RESULTS in os.environ:
        with open(os.environ[RESULTS], "a", encoding="utf-8") as file:
            file.write(json.dumps({name: getattr(result, name) for name in HANDED_OVER}) + "\n")


_registry: dict[str, Exercise] = {}


def register(exercise: Exercise) -> Exercise:
    """Add an exercise to the book's, and return it.

    Raises
    ------
    ValueError
        If there is one of this name.
    """
    if exercise.name in _registry:
        raise ValueError(f"there is already an exercise called {exercise.name!r}")
    _registry[exercise.name] = exercise
    return exercise


def exercises(chapter: int | None = None) -> tuple[Exercise, ...]:
    """Return all exercises in the order of the book, or those of one chapter.

    Examples
    --------
    >>> "softmax" in [exercise.name for exercise in exercises(chapter=2)]
    True
    """
    found = [e for e in _registry.values() if chapter is None or e.chapter == chapter]
    return tuple(sorted(found, key=lambda exercise: exercise.chapter))


class UnknownExerciseError(ValueError):
    """There is no exercise of a name: perhaps its function was renamed. In a notebook, one line."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def find(name: str) -> Exercise:
    """Return the exercise of this name; ValueError with the nearest names if there is none.

    ``my_softmax`` finds ``softmax``: so a learner's function is called (see `Exercise.name`).
    """
    if name not in _registry and name.removeprefix("my_") in _registry:
        name = name.removeprefix("my_")
    if name not in _registry:
        import difflib

        near = difflib.get_close_matches(name, _registry, n=2, cutoff=0.5)
        meant = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        raise UnknownExerciseError(
            f"there is no exercise called {name!r}{meant or '; see exercises()'}"
        )
    return _registry[name]
