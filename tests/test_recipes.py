"""What a recipe of CONTRIBUTING.md brings along, and nothing else would remind of."""

import json
import re
from pathlib import Path

import pytest

from d2lmini import scores
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


def test_a_wrong_number_is_corrected():
    head = (
        "The first two check themselves. The other one is for two hours. About six: about an hour."
    )
    right = counts.head_of(head, 12, 3, 165)
    assert right.startswith("The first twelve check themselves. The other three is for two hours.")
    assert right.endswith("about two and three quarter hours.")
    assert counts.of_scores("the library has two. Ten ways") != "the library has two. Ten ways"
    with pytest.raises(ValueError, match="should have one place for 'three'"):
        counts.head_of("The first two check themselves. They take about an hour.", 2, 3, 60)


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


# Add a score


@pytest.mark.parametrize("name", scores.__all__)
def test_a_score_is_in_the_glossary_in_chapter_3_and_under_all_invariants(name):
    from implementations import IMPLEMENTATIONS

    words = name.removesuffix("_score").replace("_", " ")
    glossary = (PAGES / "glossary.md").read_text("utf8").lower()
    entry = rf"^\*\*{words}( score)?\*\*\\$"
    assert re.search(entry, glossary, re.MULTILINE), "it needs an entry in chapters/glossary.md"
    chapter = text(PAGES / "03-scaled-dot-product.ipynb")
    table = chapter.partition("\n| score |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1].strip().lower() for row in table.splitlines()[2:]]
    found = [row for row in rows if words.startswith(row)]
    assert found, f"the table of scores in chapter 3 has only {', '.join(rows)}"
    names = {one.name.partition(" [")[0] for one in IMPLEMENTATIONS}
    known = words in names or name == "scaled_dot_product_score"
    assert known, "add a line to tests/implementations.py"
