"""What the tests of the exercises share: answers made from their texts."""

import functools
import importlib.util
import math
from dataclasses import replace

import numpy as np
import pytest

from d2lmini import weights
from d2lmini.exercises import exercises, grade
from d2lmini.exercises.grading import outcomes_of, same_outcome

HAS_TORCH = importlib.util.find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch")
EXERCISES = exercises()
MISTAKES = [(exercise, mistake) for exercise in EXERCISES for mistake in exercise.mistakes]


def softmax(scores, axis=-1):
    """Answer the exercise softmax: one point more doubles a weight."""
    return weights.softmax(scores * math.log(2), axis=axis)


@functools.cache
def graded(name, fn):
    """Grade an answer once, for all that is said of it."""
    return grade(fn, name=name)


def agrees(exercise, right, answer, limit=None):
    """Tell whether an answer gives these outcomes; the last case, which shows most, comes first."""
    chosen = []
    one = replace(exercise, cases=lambda: chosen)
    for case, want in zip(reversed(exercise.cases()), reversed(right), strict=True):
        chosen[:] = [case]
        (found,) = outcomes_of(one, answer, limit)
        if not same_outcome(found, want):
            return False
    return True


def on(exercise, *values):
    """Return a pytest parameter; without torch, an exercise on modules is skipped by name."""
    marks = [needs_torch] if exercise.needs_torch else []
    names = [exercise.name, *(value.id for value in values)]
    return pytest.param(exercise, *values, id="-".join(names), marks=marks)


def run_text(text, name):
    """Run the text of a cell, as in a notebook with the usual imports; return what it defines."""
    namespace = {"np": np, "check": lambda answer: answer}
    exec(compile(text, f"<{name}>", "exec"), namespace)
    return namespace[name]


def assert_fits_a_terminal(text, columns=120):
    """What a check says is read at one glance, without scrolling; a card of HTML says no more."""
    lines = text.splitlines()
    assert len(lines) <= 24, f"{len(lines)} lines, and a terminal has 24: say less"
    widest = max(map(len, lines))
    assert widest <= columns, f"a line of {widest} letters, and {columns} have room: wrap it"


def answer(lines):
    """Make a softmax from its body."""
    body = "\n".join(f"    {line}" for line in lines.splitlines())
    return run_text(f"def softmax(scores):\n{body}", "softmax")
