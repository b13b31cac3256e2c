"""Write the numbers that sentences of the book give: exercises, their minutes, the scores.

    python scripts/counts.py

Each sentence is written by hand, with any number in it; this puts the right one there.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat

from d2lmini import scores
from d2lmini.exercises import exercises

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"
WORDS = (
    *("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
NUMBER = "|".join(WORDS)
QUARTERS = ("", "a quarter", "a half", "three quarters")
HEAD = re.compile(r"(?:^|\n)## Exercises\n(.*?)(?=\n###? |\Z)", re.DOTALL)
POSED = re.compile(r"^### .+\n\n\*[\w-]+, (\d+) minutes", re.MULTILINE)


def hours(minutes: int) -> str:
    """Say minutes in quarters of an hour.

    >>> hours(40), hours(75), hours(165)
    ('three quarters of an hour', 'an hour and a quarter', 'two and three quarter hours')
    """
    whole, part = divmod(round(minutes / 15), 4)
    if whole == 0:
        return f"{QUARTERS[part]} of an hour".replace("a half of", "half")
    if whole == 1:
        return "an hour" + (f" and {QUARTERS[part]}" if part else "")
    return WORDS[whole] + (f" and {QUARTERS[part].rstrip('s')}" if part else "") + " hours"


def head_of(head: str, checked: int, others: int, minutes: int) -> str:
    """Put its numbers into what a chapter says of its exercises."""
    time = r"(?:[\w ]+?) hours?(?: and [a-z ]+?)?"
    for pattern, right in (
        (rf"(?<=[Tt]he first )(?:{NUMBER})(?= check)", WORDS[checked]),
        (rf"(?<=[Tt]he other )(?:{NUMBER})(?= )", WORDS[others]),
        (rf"(?<=about ){time}(?=[.,])", hours(minutes)),
    ):
        head, found = re.subn(pattern, right, head)
        if found != 1:
            raise ValueError(f"{head!r} should have one place for {right!r}: {pattern}")
    return head


def corrected(notebook: nbformat.NotebookNode, chapter: int) -> nbformat.NotebookNode:
    """Return a chapter with the right numbers in its sentences."""
    texts = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
    whole = "\n\n".join(cell.source for cell in texts)
    posed = [int(minutes) for minutes in POSED.findall(whole.partition("\n## Exercises\n")[2])]
    checked = len(exercises(chapter))
    for cell in texts:
        if head := HEAD.search(cell.source):
            new = head_of(head[1], checked, len(posed) - checked, sum(posed))
            cell.source = cell.source.replace(head[1], new)
        cell.source = of_scores(cell.source)
    return notebook


def of_scores(text: str) -> str:
    """Put in how many scores there are."""
    word = WORDS[len(scores.__all__)]
    text = re.sub(rf"(?<=the library has )(?:{NUMBER})(?=\.)", word, text)
    return re.sub(rf"\b(?:{NUMBER})(?= ways to say how well)", word, text)


def pages() -> Iterator[tuple[Path, str, str]]:
    """Yield each page with numbers in sentences: its path, its text, and the right one."""
    for path in sorted(CHAPTERS.glob("[0-9]*.ipynb")):
        text = path.read_text("utf8")
        notebook = corrected(nbformat.reads(text, as_version=4), int(path.name[:2]))
        yield path, text, nbformat.writes(notebook).rstrip() + "\n"
    path = CHAPTERS / "api" / "scores.md"
    yield path, path.read_text("utf8"), of_scores(path.read_text("utf8"))


def main() -> int:
    """Correct the pages, and say which."""
    for path, text, right in pages():
        if text != right:
            path.write_text(right, "utf8")
            print(f"changed {path.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
