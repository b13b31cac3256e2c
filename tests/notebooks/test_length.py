"""A chapter is read in one sitting: so many words and cells before its exercises, and no more."""

import json
import re
from pathlib import Path

import pytest

CHAPTERS = sorted((Path(__file__).resolve().parents[2] / "chapters").glob("[0-9]*.ipynb"))
FIRST, LATER = (2000, 30), (2500, 40)  # words, shown cells with code: of chapters 1 to 5, 6 to 10
UNSEEN = {"remove-cell", "hide-cell"}
UNREAD = re.compile(  # what is no running text: folds, formulas, tables, headings
    r"^```.*?^```$|<details>.*?</details>|\$\$.*?\$\$|^\|.*?$|^#.*?$", re.MULTILINE | re.DOTALL
)
MARKUP = re.compile(  # a label, where a link leads, a tag, what a line begins with
    r"^\([\w-]+\)=$|(?<=\])\([^)]*\)|</?\w[^>]*>|^[#>|*-]+ ", re.MULTILINE
)


def words_of(text):
    text = UNREAD.sub("", text)
    return MARKUP.sub("", re.sub(r"\$[^$]+\$", "x", text)).split()


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_is_no_longer_than_it_may_be(path):
    cells = json.loads(path.read_text("utf8"))["cells"]
    last = next(i for i, cell in enumerate(cells) if "## Exercises" in "".join(cell["source"]))
    code = [cell for cell in cells[:last] if cell["cell_type"] == "code"]
    texts = ["".join(cell["source"]) for cell in cells[:last] if cell["cell_type"] == "markdown"]
    words = sum(len(words_of(text)) for text in texts)
    shown = sum(not UNSEEN & {*cell["metadata"].get("tags", [])} for cell in code)
    most_words, most_cells = FIRST if path.stem < "06" else LATER
    reason = "a reader is to finish it in one sitting: shorten it, or move something to another"
    assert words <= most_words, f"{words} words of {most_words}; {reason}"
    assert shown <= most_cells, f"{shown} cells of {most_cells}; {reason}"
    assert words > most_words / 2 and shown > 0, "nothing was counted"
