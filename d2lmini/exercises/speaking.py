"""Two heads of a real model, run with what a reader has written."""

import ast
import json
import os
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from d2lmini._arrays import Array
from d2lmini.exercises.definition import Exercise, find
from d2lmini.exercises.grading import grade
from d2lmini.masks import causal_mask

__all__ = ["speak"]

KEPT = "D2LMINI_ANSWERS"  # the variable with the texts of cells that a page has kept, as JSON
PARTS = ("attention", "masked_softmax", "split_heads", "rotary")
BASE = 100_000.0  # of the model's rotation
LOOKS = {(18, 6): (4, "by"), (16, 0): (16, "Qu")}  # where the last of the 18 tokens looks
CLOSE = 0.005
Answers = Mapping[str, Callable[..., Any]]
_answers: dict[str, Callable[..., Any]] = {}  # what has been checked in this session


def remember(name: str, answer: Callable[..., Any]) -> None:
    """Note the answer to an exercise."""
    _answers[name] = answer


def speak(*names: str) -> None:
    """Run a head of SmolLM2-135M with your own answers, and print what it looks at.

    The text is "Zed Quimby likes tea. Mo Larkin likes milk. Zed Quim". Head 19.7 looks at "by",
    which came after "Quim" before. Each answer takes the place of the book's code alone, then all
    right ones together. In place of head 19.7 ``my_rotary`` is tried on head 17.1, which looks at
    the previous token and cannot do without positions. Answers are those that `check` has seen in
    this session; on a page also those that the browser has kept, from any chapter.

    Parameters
    ----------
    *names : str
        Of exercises: "attention", "masked_softmax", "split_heads", "rotary".

    Raises
    ------
    ValueError
        If an exercise has no part in a head.

    Examples
    --------
    >>> speak("attention")
    the book's code    by 0.99
    my_attention       not written yet (chapter 3)
    """
    from d2lmini.models import load_lookup

    if unknown := [name for name in names if name not in PARTS]:
        raise ValueError(f"{unknown[0]!r} is no part of a head; these are: {', '.join(PARTS)}")
    heads = load_lookup().heads
    model = {at: _weights(heads, at, {}) for at in LOOKS}
    right: dict[str, Callable[..., Any]] = {}
    _show("the book's code", (18, 6), model[18, 6])
    if "rotary" in names:
        _show("  in head 17.1", (16, 0), model[16, 0])
    for name in names:
        exercise, at = find(name), (16, 0) if name == "rotary" else (18, 6)
        answer, problem = _answer_to(exercise)
        result = None if answer is None else grade(answer, name)
        if answer is None or result is None or result.status == "todo":
            missing = f"not written yet (chapter {exercise.chapter})"
            print(f"{exercise.function:18} {'its cell fails ✗' if problem else missing}")
            if problem:
                _say(problem)
            continue
        off = np.inf
        if result.status != "error":
            try:
                with np.errstate(all="ignore"):
                    weights = _weights(heads, at, {name: answer})
                off = float(np.abs(weights - model[at]).max())
            except Exception:  # what its check says is said below
                pass
        if off < np.inf or np.isnan(off):
            _show(exercise.function, at, weights, "✓" if result else "✗")
        else:
            print(f"{exercise.function:18} nothing comes out ✗")
        if result:
            right[name] = answer
            continue
        if off <= CLOSE:
            _say("This text does not show it, but the check of the exercise does.")
        elif off < np.inf:
            _say(f"Some of its 18 rows of weights differ from the model's by up to {off:.2f}.")
        _say(result.says or result.head)
    if len(right) > 1:
        _show(f"all {len(right)} together", (18, 6), _weights(heads, (18, 6), right), "✓")


def _show(what: str, at: tuple[int, int], weights: Array, mark: str = "") -> None:
    place, token = LOOKS[at]
    share = weights[-1, place]
    print(f"{what:18} {token} {share:.2f} {mark}".rstrip())


def _say(text: str) -> None:
    print(textwrap.indent(textwrap.fill(text, 44), "    "))


def _answer_to(exercise: Exercise) -> tuple[Callable[..., Any] | None, str]:
    """Return what the reader has written, and what is wrong with its cell, if anything."""
    for text in json.loads(os.environ.get(KEPT, "[]")):
        if f"def {exercise.function}(" not in text:
            continue
        space: dict[str, Any] = {"np": np, "check": lambda answer: answer}
        try:
            cell = ast.parse(text)
            cell.body = [line for line in cell.body if not _takes_check(line)]
            exec(compile(cell, f"<{exercise.function}>", "exec"), space)
        except Exception as error:  # the cell around an answer may do anything
            return None, f"{type(error).__name__}: {error}"
        return space.get(exercise.function), ""
    return _answers.get(exercise.name), ""


def _takes_check(line: ast.stmt) -> bool:
    """Tell whether a line imports `check`, which has nothing to say here."""
    return isinstance(line, ast.ImportFrom) and line.module == "d2lmini.exercises"


def _weights(heads: Any, at: tuple[int, int], mine: Answers) -> Array:
    """Return the weights (18, 18) of a head, with the reader's code in some of its parts."""
    part = {name: mine.get(name, find(name).reference) for name in PARTS}
    states, gain, *own = heads[at]
    h = states / np.sqrt((states**2).mean(axis=-1, keepdims=True)) * gain  # (18, 576)
    # The head behind another, as a layer has them: both queries, both keys, both values.
    (other,) = (head for name, head in heads.items() if name != at)
    x = h @ np.hstack([w for pair in zip(other[2:], own, strict=True) for w in pair])
    query, key, _ = np.asarray(part["split_heads"](x, 2))[:, 1]  # (18, 64) each
    # The exercise pairs the halves of a vector, and the stored matrices pair neighbours.
    query, key = (
        np.asarray(part["rotary"](np.hstack([a[:, 0::2], a[:, 1::2]]), 0, BASE))
        for a in (query, key)
    )
    visible = causal_mask(len(x), len(x))
    if "attention" in mine:  # a mixture of unit vectors is the weights
        weights = part["attention"](query, key, np.eye(len(x)), np.where(visible, 0.0, -np.inf))
    else:
        scores = query @ key.T / np.sqrt(key.shape[-1])
        weights = part["masked_softmax"](scores, visible)
    if np.shape(weights) != (len(x), len(x)):
        raise ValueError(f"weights of shape {np.shape(weights)}")
    return np.asarray(weights)
