"""What a recipe of CONTRIBUTING.md brings along, and nothing else would remind of."""

import json
import re
from pathlib import Path

import pytest

from d2lmini.exercises import find
from d2lmini.exercises.notebook import checked
from scripts import counts

PAGES = Path(__file__).parents[1] / "chapters"
CHAPTERS = sorted(PAGES.glob("[0-9]*.ipynb"))


def cells(path):
    """Return (kind, text) of the cells of a notebook."""
    found = json.loads(path.read_text("utf8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in found]


def text(path):
    """Return what a notebook says, without its code."""
    return "\n\n".join(source for kind, source in cells(path) if kind == "markdown")


# Add a chapter


@pytest.mark.parametrize(
    ("path", "following"), [*zip(CHAPTERS, [*CHAPTERS[1:], PAGES / "closing.md"], strict=True)]
)
def test_a_chapter_opens_the_next_page_and_the_closing_page_says_what_it_was_for(path, following):
    last = text(path).split("\n\n")[-1]
    assert f"]({following.name})" in last, f"the last paragraph of {path.name} leads elsewhere"
    closing = (PAGES / "closing.md").read_text("utf8")
    assert f"]({path.name})" in closing, "add a line to chapters/closing.md"


# Add an exercise


def test_numbers_in_sentences_are_those_that_they_count():
    """Exercises, how long they take, and the scores; every chapter has a sentence for its own."""
    wrong = [path.name for path, text, right in counts.pages() if text != right]
    assert not wrong, "run python scripts/counts.py"
    assert all(counts.HEAD.search("\n\n" + text(path)) for path in CHAPTERS)


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_an_exercise_takes_in_the_chapter_what_it_takes_in_the_library(path):
    said = None
    for kind, source in cells(path):
        if kind == "markdown":
            heads = re.findall(r"^\*([\w-]+), (\d+) minutes", source, re.MULTILINE)
            said = heads[-1] if heads else said
        for written in checked([source]) if kind == "code" else ():
            exercise = find(written)
            assert said == (exercise.difficulty.capitalize(), str(exercise.minutes)), exercise.name
