"""What plays with a chapter (see `strict.Played`) finds what does not survive it."""

import copy

import nbformat
import pytest
from jupyter_client.manager import KernelManager

from d2lmini.exercises import find
from scripts import notebooks
from tests.notebooks.playing import Player

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_are_stored_as_the_script_stores_them(path):
    """Nothing an editor leaves; if not, `scripts/notebooks.py` writes it so."""
    stored = notebooks.read(path)
    normal = notebooks.read(path)
    notebooks.normalise(normal)
    for new, old in zip(normal.cells, stored.cells, strict=True):
        if old.cell_type == "code":  # what a run gives is compared by a run
            new.outputs, new.execution_count = old.outputs, old.execution_count
    assert notebooks.text_of(normal) == path.read_text("utf-8")


def play(folder, *sources, tags=()):
    """Run cells from top to bottom, take that for what is stored, then play; return what fails."""
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    cells[-1].metadata.tags = list(tags)
    kernel = KernelManager(kernel_name="python3")
    kernel.start_kernel(cwd=str(folder), extra_arguments=["--IPKernelApp.log_level=ERROR"])
    try:
        player = Player(nbformat.v4.new_notebook(cells=cells), kernel)
        for cell in player.notebook.cells:
            assert not player.run(cell)
        player.stored = copy.deepcopy(player.notebook)
        return player.play()
    finally:
        kernel.shutdown_kernel(now=True)


IMPORTS = "import numpy as np\nfrom d2lmini.exercises import check\nfrom d2lmini import softmax"
EXERCISE = find("weighted_average")  # whose function has a name of its own
DESCRIBED = f"{EXERCISE.function}.__doc__"  # another text in the stub than in an answer
STUB = "@check\ndef softmax(scores):\n    ..."
USED = "softmax(np.zeros(2)).tolist()"


def test_a_notebook_that_survives(tmp_path):
    sources = [IMPORTS, "total = 1\ntotal", "total + 1", EXERCISE.starter, USED]
    assert play(tmp_path, *sources) == []


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
    failures = play(tmp_path, *sources)
    assert any(failure.startswith(f"{cell}, {how}") for failure in failures), failures


def test_only_cells_that_train_may_go_on_from_where_they_stopped(tmp_path):
    cells = ["steps = [0]", "steps.append(1)\nlen(steps)"]
    assert play(tmp_path, *cells, tags=["trains"]) == []
    assert play(tmp_path, *cells)


def test_of_a_long_training_two_steps_are_run_again(tmp_path):
    """They find what it no longer finds, and the cells that use it find what it had given."""
    train = "total = first\nfor step in progress(9, 'nine'):\n    total += step\nsteps = step"
    start, shows = "from d2lmini.models import progress\nfirst = 1", "print(total, steps)"
    cells = [IMPORTS, start, train, shows, EXERCISE.starter]
    assert play(tmp_path, *cells) == []
    failures = play(tmp_path, *cells, "first = None")
    assert [f for f in failures if f.startswith("cell-2, run again: raises TypeError")], failures
