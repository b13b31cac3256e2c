"""What the main line of a chapter uses is made where a reader sees it, not in a fold."""

import pytest

from live_cells.plan import FOLDED, read_cells
from scripts import notebooks
from scripts.notebooks import read_notebook

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))
ROOM = 80  # letters in a line of code on a desktop: theme.css, --code-size


def hidden_names(cells):
    """Return, for each cell before the exercises that a reader sees, what only a fold has made."""
    found, shown, folded = {}, set(), set()
    for cell in cells:
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
def test_a_reader_sees_what_is_used_and_whole_lines(path):
    cells = read_cells(read_notebook(path.read_text("utf8")).cells)
    if path.stem < "10":
        found = hidden_names(cells)
        assert not found, f"make these in a cell that shows its code: {found}"
    seen = [one for one in cells if not one.tags & {*FOLDED, "remove-input"}]
    long = [line for one in seen for line in one.code.splitlines() if len(line) > ROOM]
    assert not long, f"at most {ROOM} letters, or a desktop breaks them: {long}"
