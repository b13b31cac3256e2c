"""What a recipe of CONTRIBUTING.md brings along, and nothing else would remind of."""

import json
import re
from pathlib import Path

import pytest

from d2lmini import scores
from d2lmini.exercises import exercises, find
from d2lmini.exercises.notebook import checked

PAGES = Path(__file__).parents[1] / "chapters"
CHAPTERS = sorted(PAGES.glob("[0-9]*.ipynb"))
by_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
each_score = pytest.mark.parametrize("name", scores.__all__)
COUNTS = [
    "no",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
    "twenty",
]


def cells(path):
    """Return (kind, text) of the cells of a notebook."""
    found = json.loads(path.read_text("utf8"))["cells"]
    return [(cell["cell_type"], "".join(cell["source"])) for cell in found]


def text(path):
    """Return what a notebook says, without its code."""
    return "\n\n".join(source for kind, source in cells(path) if kind == "markdown")


# Add a chapter


@pytest.mark.parametrize(
    "path, following", list(zip(CHAPTERS, [*CHAPTERS[1:], PAGES / "closing.md"], strict=True))
)
def test_a_chapter_ends_by_opening_the_next_page(path, following):
    last = text(path).split("\n\n")[-1]
    assert f"]({following.name})" in last, f"the last paragraph of {path.name} leads elsewhere"


@by_chapter
def test_the_closing_page_says_what_a_chapter_was_for(path):
    closing = (PAGES / "closing.md").read_text("utf8")
    assert f"]({path.name})" in closing, "add a line to chapters/closing.md"


# Add an exercise


def posed(path):
    """Return title, difficulty and minutes of each exercise of a chapter, as its text has them."""
    asked = text(path).partition("\n## Exercises\n")[2].split("\n## ")[0]
    return re.findall(r"^### (.+)\n\n\*([\w-]+), (\d+) minutes", asked, re.MULTILINE)


def about(minutes):
    """Return how a chapter may say so many minutes: in quarters of an hour, rounded either way."""
    return {hours(quarters) for quarters in (minutes // 15, -(-minutes // 15))}


def hours(quarters):
    """Return some quarters of an hour in words."""
    whole, part = divmod(quarters, 4)
    if whole == 0:
        return ["no time", "a quarter of an hour", "half an hour", "three quarters of an hour"][
            part
        ]
    if whole == 1:
        return "an hour" + ["", " and a quarter", " and a half", " and three quarters"][part]
    return (
        COUNTS[whole] + ["", " and a quarter", " and a half", " and three quarter"][part] + " hours"
    )


def test_hours_in_words():
    assert about(5) == {"no time", "a quarter of an hour"}
    assert about(75) == {"an hour and a quarter"}
    assert about(160) == {"two and a half hours", "two and three quarter hours"}


@by_chapter
def test_a_chapter_says_how_many_exercises_it_has_and_how_long_they_take(path):
    head = " ".join(text(path).partition("\n## Exercises\n")[2].split("\n### ")[0].split())
    count, found = len(exercises(int(path.stem[:2]))), posed(path)
    check = f"first {COUNTS[count]} check" if count > 1 else "first checks itself"
    assert check in head, f"the head of `## Exercises` should say that the {check}"
    rest = len(found) - count
    others = "the other " if rest == 1 else f"other {COUNTS[rest]} "
    assert not rest or others in head.lower(), (
        f"{rest} exercises do not check themselves: the head of `## Exercises` should say so"
    )
    minutes = sum(int(each) for *_, each in found)
    assert any(re.search(rf"about {words}[.,]", head) for words in about(minutes)), (
        f"the exercises take {minutes} minutes: the head of `## Exercises` should say about "
        + " or ".join(sorted(about(minutes)))
    )


@by_chapter
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


def words_of(name):
    return name.removesuffix("_score").replace("_", " ")


@each_score
def test_a_score_is_in_the_glossary(name):
    glossary = (PAGES / "glossary.md").read_text("utf8").lower()
    entry = rf"^{words_of(name)}( score)?$"
    assert re.search(entry, glossary, re.MULTILINE), "it needs an entry in chapters/glossary.md"


@each_score
def test_a_score_is_in_the_table_of_chapter_3(name):
    chapter = text(PAGES / "03-scaled-dot-product.ipynb")
    table = chapter.partition("\n| score |")[2].partition("\n\n")[0]
    rows = [row.split("|")[1].strip().lower() for row in table.splitlines()[2:]]
    found = [row for row in rows if words_of(name).startswith(row)]
    assert found, f"the table of scores in chapter 3 has only {', '.join(rows)}"


@pytest.mark.parametrize(
    "page, words",
    [("03-scaled-dot-product.ipynb", "the library has {}."), ("api/scores.md", "{} ways to say")],
)
def test_who_counts_the_scores_counts_them_all(page, words):
    path, said = PAGES / page, words.format(COUNTS[len(scores.__all__)])
    told = text(path) if path.suffix == ".ipynb" else path.read_text("utf8")
    assert said in told, f"{page} should say: {said}"


@each_score
def test_a_score_is_under_all_invariants(name):
    from implementations import IMPLEMENTATIONS

    names = {one.name.partition(" [")[0] for one in IMPLEMENTATIONS}
    assert words_of(name) in names or name == "scaled_dot_product_score", (
        "add a line to tests/implementations.py"
    )
