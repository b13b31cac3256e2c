"""Write the tables of chapters/stuck.md: every slip that the exercises know, and how it looks.

    python scripts/stuck.py [CHAPTER …]      all chapters, or the tables of some

Every known mistake of every exercise is made and checked like a learner's answer. So the tables
cannot say anything else than the exercises do. What stands above the mark is written by hand.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from d2lmini.exercises import Exercise, Mistake, Result, exercises, find, grade
from d2lmini.exercises.grading import grade_exercise
from d2lmini.exercises.guards import TimeUpError

PAGE = Path(__file__).resolve().parents[1] / "chapters" / "stuck.md"
MARK = "<!-- From here on written by scripts/stuck.py, from the exercises themselves. -->\n"
SLIPS = """
## Every slip that the exercises know

`check` names a slip only if your outputs are exactly those of the slip, on every input. When it
names none, look here for what you see. `hint("{first}")` gives the hints of an exercise.
"""


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
    return f"| `{exercise.name}` | {seen} | {escaped(mistake.says)} |"


def chapter(number: int, graded: Callable[[str, Any], Result]) -> list[str]:
    """Return the fold with the slips of a chapter."""
    rows = [
        row(exercise, mistake, graded(exercise.name, mistake.fn))
        for exercise in exercises(number)
        for mistake in exercise.mistakes
    ]
    return [
        f"\n<details><summary>Chapter {number}: {len(rows)} slips</summary>\n",
        "| exercise | what you see | likely mistake |\n|---|---|---|",
        *rows,
        "\n</details>",
    ]


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
        return np.exp(score)  # type: ignore[name-defined]  # noqa: F821

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
}


def page(now: str, graded: Callable[[str, Any], Result] = lambda name, fn: grade(fn, name)) -> str:
    """Return the page with the tables as they should be; a test that has graded all says how."""
    by_hand, mark, _ = now.partition(MARK)
    if not mark:
        raise ValueError(f"{PAGE.name} has lost the line {MARK!r}, below which the tables stand")
    parts = ["\n| the card says | what to do |\n|---|---|", *general()]
    parts.append(SLIPS.format(first=exercises()[0].name).rstrip())
    for number in sorted({exercise.chapter for exercise in exercises()}):
        parts += chapter(number, graded)
    return by_hand + mark + "\n".join(parts) + "\n"


def with_chapter(now: str, number: int) -> str:
    """Return the page with the table of one chapter written again, which takes seconds."""
    fold = re.compile(rf"\n<details><summary>Chapter {number}: .*?\n</details>", re.DOTALL)
    if not fold.search(now):
        raise ValueError(f"{PAGE.name} has no table of chapter {number} yet: write all of it")
    rows = "\n".join(chapter(number, lambda name, fn: grade(fn, name)))
    return fold.sub(lambda match: rows, now, count=1)


def main(chapters: list[str]) -> int:
    """Write the page, or some of its tables."""
    text = PAGE.read_text("utf-8")
    for number in chapters:
        text = with_chapter(text, int(number))
    PAGE.write_text(text if chapters else page(text), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
