"""A chapter gives what is stored, and survives a reader who plays with it."""

import nbformat
import pytest

from d2lmini.exercises import find
from scripts import notebooks
from tests.notebooks.playing import Player

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_gives_what_is_stored_and_every_cell_can_be_run_again(path, tmp_path):
    """One kernel for all: the run from another folder, then each cell again.

    Where a cell fails that is run again, two cells use one name for two things, or a cell changes
    what it is given.
    Give each thing a name of its own, make what is changed in the cell that changes it, and call a
    learner's function ``my_…``. A cell that goes on with a training has the tag ``trains``.
    """
    stored = nbformat.read(path, as_version=4)
    player = Player(stored, tmp_path)
    failures = player.play()
    assert not failures, "\n".join(failures)
    for new, old in zip(player.fresh.cells, stored.cells, strict=True):
        if old.cell_type == "code":
            new.outputs = old.outputs  # the same, but for the rounding of pixels
    assert notebooks.text_of(player.fresh) == path.read_text("utf-8")
    assert not list(tmp_path.iterdir()), "a notebook leaves no files behind"


def stored(folder, *sources, tags=()):
    """Return a notebook with these cells, run and stored."""
    path = folder / "made.ipynb"
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    if tags:
        cells[-1].metadata.tags = list(tags)
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    assert notebooks.main([str(path)]) == 0
    return nbformat.read(path, as_version=4)


IMPORTS = "import numpy as np\nfrom d2lmini.exercises import check\nfrom d2lmini import softmax"
EXERCISE = find("weighted_average")  # whose function has a name of its own
DESCRIBED = f"{EXERCISE.function}.__doc__"  # another text in the stub than in an answer
STUB = "@check\ndef softmax(scores):\n    ..."
USED = "softmax(np.zeros(2)).tolist()"


def test_a_notebook_that_survives(tmp_path):
    sources = [IMPORTS, "total = 1\ntotal", "total + 1", EXERCISE.starter, USED]
    assert Player(stored(tmp_path, *sources), tmp_path).play() == []


@pytest.mark.parametrize(
    ("sources", "cell", "how"),
    [
        (["x = 1", "x", "x = 2"], "cell-1", "run again"),
        (["x = [1]", "x.append(2)\nx"], "cell-1", "run again"),
        (["x = 1", "del x"], "cell-1", "run again"),
        (["x = 1\nx", "y = x\ny", "for x in range(3):\n    pass"], "cell-1", "run again"),
        ([IMPORTS, USED, STUB], "cell-1", "run again"),
        ([IMPORTS, EXERCISE.starter, DESCRIBED], "cell-2", "after right answers"),
        ([IMPORTS, EXERCISE.starter, DESCRIBED], "cell-2", "after wrong answers"),
    ],
    ids=["reused", "mutated", "deleted", "loop", "taken-by-a-stub", "needs-a-stub", "needs-it-too"],
)
def test_one_that_breaks_is_found(tmp_path, sources, cell, how):
    failures = Player(stored(tmp_path, *sources), tmp_path).play()
    assert any(failure.startswith(f"{cell}, {how}") for failure in failures), failures


def test_only_cells_that_train_may_go_on_from_where_they_stopped(tmp_path):
    made = stored(tmp_path, "steps = [0]", "steps.append(1)\nlen(steps)", tags=["trains"])
    assert Player(made, tmp_path).play() == []
