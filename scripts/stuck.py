"""Write chapters/stuck.md: from what a learner sees to the likely mistake.

    python scripts/stuck.py

Every known mistake of every exercise is made, checked like a learner's answer, and sorted by what
the check shows. So the page cannot say anything else than the exercises do.
"""

import sys
from pathlib import Path

import numpy as np

from d2lmini.exercises import Exercise, Mistake, Result, exercises, find
from d2lmini.exercises.grading import grade_exercise, outcomes_of
from d2lmini.exercises.limits import TimeUpError

PAGE = Path(__file__).resolve().parents[1] / "chapters" / "stuck.md"
HEAD = """\
(page-stuck)=
# If You Are Stuck

*What you see, and which mistake is the likely one.*

Each exercise of this book knows the slips that are often made in it. `check` names one only if your
outputs are exactly those of the slip, on every input. When it names none, look here for what you
see. `hint("softmax")` gives the hints of an exercise.

<!-- Written by scripts/stuck.py from the exercises themselves. Change them, not this page. -->
"""
SYMPTOMS = {  # in the order of the checks
    "error": "It raises an error",
    "shape": "The shape is wrong",
    "kind": "It is not made of True and False",
    "nan": "There is nan or inf in it",
    "columns": "The columns sum to 1, the rows do not",
    "sums": "The rows of weights do not sum to 1",
    "order": "The right numbers, in the wrong places",
    "factor": "Everything is off by the same factor",
    "large": "Right on the smallest inputs, wrong on others",
    "values": "Other wrong values",
}


def symptom(exercise: Exercise, mistake: Mistake, result: Result) -> str:
    """Say what a learner sees who makes this mistake."""
    if result.status == "error":
        return "error"
    for word in ("shape", "kind"):
        if result.head.startswith(f"wrong {word}"):
            return word
    if result.head.startswith("nan"):
        return "nan"
    pairs = _pairs(exercise, mistake)
    apart = [(mine, right) for mine, right in pairs if not np.allclose(mine, right, equal_nan=True)]
    if "weights" in exercise.returns and not all(_sums_are_1(*pair, axis=-1) for pair in apart):
        columns = all(_sums_are_1(*pair, axis=-2) for pair in apart)
        return "columns" if columns else "sums"
    if all(_same_numbers(*pair) for pair in apart):
        return "order"
    if len(apart) > 1 and all(_one_factor(*pair) for pair in apart):
        return "factor"
    return "large" if np.allclose(*pairs[0]) else "values"


def _pairs(exercise: Exercise, mistake: Mistake) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return what comes back and what was expected, wherever the shapes agree."""
    wrong = outcomes_of(exercise, mistake.fn)
    right = outcomes_of(exercise, exercise.reference)
    both = zip(wrong, right, strict=True)
    pairs = [pair for w, r in both for pair in zip(w.arrays or [], r.arrays, strict=False)]
    return [(mine, expected) for mine, expected in pairs if mine.shape == expected.shape]


def _sums_are_1(mine: np.ndarray, right: np.ndarray, axis: int) -> bool:
    has_key = right.sum(axis=-1) > 0 if axis == -1 else ...
    return bool(np.allclose(mine.sum(axis=axis)[has_key], 1))


def _same_numbers(mine: np.ndarray, right: np.ndarray) -> bool:
    return bool(np.allclose(np.sort(mine, axis=None), np.sort(right, axis=None)))


def _one_factor(mine: np.ndarray, right: np.ndarray) -> bool:
    return mine.size > 1 and bool(np.linalg.matrix_rank([mine.ravel(), right.ravel()]) == 1)


def brief(text: str, longest: int = 44) -> str:
    """Write an array or a message into a table's cell."""
    text = " ".join(text.split()).replace("[ ", "[")
    return f"`{escaped(text if len(text) <= longest else text[: longest - 1] + '…')}`"


def escaped(text: str) -> str:
    """Keep a bar from ending a table's cell."""
    return text.replace("|", r"\|")


def row(exercise: Exercise, mistake: Mistake, result: Result) -> str:
    """Return the line of the table."""
    rows = dict(result.rows)
    if result.status == "error":
        seen = f"`{result.head.removeprefix('raised ').split(':')[0]}`"
    elif result.head.startswith(("wrong shape", "wrong kind")):
        seen = result.head.removeprefix("wrong ").rstrip(".")
    else:
        seen = f"{brief(rows['got'])} instead of {brief(rows['expected'])}"
    name = f"`{exercise.name}` (chapter {exercise.chapter})"
    return f"| {name}: {seen} | {escaped(mistake.says)} |"


def general() -> list[str]:
    """Return the lines of what every exercise may say, each provoked."""
    exercise = find("softmax")
    softmax = exercise.reference
    met: list[str] = []

    def nothing(scores):
        print(scores)

    def a_list(scores):
        return softmax(scores).tolist()

    def in_place(scores):
        scores -= scores.max(axis=-1, keepdims=True)
        return softmax(scores)

    def noisy(scores):
        return softmax(scores) + 0 * np.random.rand()  # noqa: NPY002

    def two_arguments(scores, mask):
        return softmax(scores)

    def misspelt(scores):
        return np.exp(score)  # noqa: F821

    def endless(scores):
        raise TimeUpError  # what the time limit raises

    def right_once(scores):
        met.append(str(scores))
        return softmax(scores) / met.count(str(scores))

    answers = [nothing, a_list, softmax(np.zeros(2)), two_arguments, misspelt, endless]
    answers += [in_place, noisy, right_once]
    results = [grade_exercise(exercise, answer) for answer in answers]
    heads = [result.head.split(":")[0].rstrip(".") for result in results]
    return [
        f"| {head} | {result.says or ADVICE[head]} |"
        for head, result in zip(heads, results, strict=True)
    ]


ADVICE = {
    "raised TypeError": "Keep the arguments as the exercise gives them. The card shows the call.",
    "raised NameError": "The card names your line. Is the name spelt as where it was defined?",
}


def page() -> str:
    """Return the text of the page."""
    found: dict[str, list[str]] = {kind: [] for kind in SYMPTOMS}
    for exercise in exercises():
        for mistake in exercise.mistakes:
            result = grade_exercise(exercise, mistake.fn)
            found[symptom(exercise, mistake, result)].append(row(exercise, mistake, result))
    parts = [HEAD, "## A message instead of a comparison\n"]
    parts += ["| the card says | what to do |\n|---|---|", *general(), ""]
    for kind, title in SYMPTOMS.items():
        if found[kind]:
            parts.append(f"## {title}\n")
            parts.append("| exercise, and what you see | likely mistake |\n|---|---|")
            parts += [*found[kind], ""]
    return "\n".join(parts)


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
