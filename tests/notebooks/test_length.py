"""A chapter is read in one sitting: so many words and cells before its exercises, and no more."""

import json
import re
from pathlib import Path

import pytest

CHAPTERS = Path(__file__).resolve().parents[2] / "chapters"
FIRST = ("01-database-analogy", "02-softmax-weighting", "03-scaled-dot-product")
FIRST += ("04-projections", "05-multi-head-attention")
LIMITS = dict.fromkeys(FIRST, (2000, 30))  # words, shown cells with code
LATER = ("06-choosing-q-k-v", "07-real-models", "08-attention-at-scale", "09-bug-museum")
LATER += ("10-the-lookup-learned",)
LIMITS |= dict.fromkeys(LATER, (2500, 40))
UNSEEN = {"remove-cell", "hide-cell"}
UNREAD = re.compile(  # what is no running text: folds, formulas, tables, headings
    r"^```.*?^```$|<details>.*?</details>|\$\$.*?\$\$|^\|.*?$|^#.*?$", re.MULTILINE | re.DOTALL
)
MARKUP = re.compile(
    r"^\([\w-]+\)=$"  # a label
    r"|(?<=\])\([^)]*\)"  # where a link leads
    r"|</?\w[^>]*>"  # a tag
    r"|^[#>|*-]+ ",  # what a line begins with
    re.MULTILINE,
)


def before_the_exercises(name):
    """Return the words of the text, and how many cells with code a reader sees."""
    cells = json.loads((CHAPTERS / f"{name}.ipynb").read_text("utf8"))["cells"]
    last = next(i for i, cell in enumerate(cells) if "## Exercises" in "".join(cell["source"]))
    words, shown = [], 0
    for cell in cells[:last]:
        if cell["cell_type"] == "markdown":
            text = UNREAD.sub("", "".join(cell["source"]))
            words += MARKUP.sub("", re.sub(r"\$[^$]+\$", "x", text)).split()
        else:
            shown += not UNSEEN & set(cell["metadata"].get("tags", []))
    return words, shown


@pytest.mark.parametrize("name", LIMITS)
def test_a_chapter_is_no_longer_than_it_may_be(name):
    most_words, most_cells = LIMITS[name]
    words, cells = before_the_exercises(name)
    reason = "a reader is to finish it in one sitting: shorten it, or move something to another"
    assert len(words) <= most_words, f"{name} has {len(words)} words of {most_words}; {reason}"
    assert cells <= most_cells, f"{name} shows {cells} cells of {most_cells}; {reason}"
    assert len(words) > most_words / 2 and cells > 0, "nothing was counted"


def test_what_is_folded_or_set_apart_is_not_counted():
    fold = "<details><summary>Why</summary>\n\nBecause.\n\n</details>"
    text = f"# Head\n\nOne.\n\n{fold}\n\n| a |\n\n$$\nx\n$$"
    assert UNREAD.sub("", text).split() == ["One."]


def test_markup_is_no_word():
    text = "(a-label)=\n## Two words\n\n> **Note.** Not *[here](there.md#x)*, <b>but</b> *so*.\n"
    assert MARKUP.sub("", text).split() == (
        ["Two", "words", "**Note.**", "Not", "*[here]*,", "but", "*so*."]
    )
