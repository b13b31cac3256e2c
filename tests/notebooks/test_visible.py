"""What the main line of a chapter uses is made where a reader sees it, not in a fold."""

import pytest

from live_cells.plan import FOLDED, read_cells
from scripts import notebooks
from scripts.notebooks import read_notebook

CHAPTERS = sorted(notebooks.CHAPTERS.glob("0[1-9]-*.ipynb"))


def hidden_names(cells):
    """Return, for each cell before the exercises that a reader sees, what only a fold has made."""
    found = {}
    shown, folded = set(), set()
    for cell in read_cells(cells):
        if cell.among_exercises:
            break
        made = set(cell.defines) - set(cell.imports)
        if cell.tags & FOLDED:
            folded |= made
            continue
        if lost := sorted((folded - shown) & set(cell.uses)):
            found[cell.id] = lost
        shown |= made
    return found


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_no_visible_cell_needs_what_only_a_fold_makes(path):
    found = hidden_names(read_notebook(path.read_text("utf8")).cells)
    assert not found, f"make these in a cell that shows its code: {found}"


ROOM = 80  # letters in a line of code on a desktop: theme.css, --code-size


@pytest.mark.parametrize("path", sorted(notebooks.CHAPTERS.glob("*.ipynb")), ids=lambda p: p.stem)
def test_no_line_that_a_reader_sees_is_broken(path):
    seen = [
        one
        for one in read_cells(read_notebook(path.read_text("utf8")).cells)
        if not one.tags & {*FOLDED, "remove-cell", "remove-input"}
    ]
    long = [line for one in seen for line in one.code.splitlines() if len(line) > ROOM]
    assert not long, f"at most {ROOM} letters, or a desktop breaks them: {long}"


def cell(id, source, *tags):
    return {"cell_type": "code", "id": id, "source": source, "metadata": {"tags": list(tags)}}


def test_it_would_notice():
    folded = cell("folded", "import numpy as np\nkey = np.eye(2)", "hide-input")
    uses = cell("uses", "print(np.sum(key))")
    again = cell("again", "key = 3\nprint(key)")
    assert hidden_names([folded, uses, again]) == {"uses": ["key"]}
    assert hidden_names([folded, again, uses]) == {}  # imports may stand in a fold
