"""What plays with a chapter (see `strict.play`) finds what does not survive it."""

import copy

import nbformat
import pytest
from jupyter_client.manager import KernelManager

from d2lmini.exercises import find
from scripts import notebooks
from tests.notebooks.playing import WATCH, Player

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_are_stored_as_the_script_stores_them(path):
    """Nothing an editor leaves; if not, `scripts/notebooks.py` writes it so."""
    stored, normal = notebooks.read(path), notebooks.read(path)
    notebooks.normalise(normal)
    for new, old in zip(normal.cells, stored.cells, strict=True):
        if old.cell_type == "code":  # what a run gives is compared by a run
            new.outputs, new.execution_count = old.outputs, old.execution_count
    assert notebooks.text_of(normal) == path.read_text("utf-8")


@pytest.fixture(scope="module")
def play(tmp_path_factory):
    """Run cells from top to bottom, take that for what is stored, then play; return what fails."""
    kernel = KernelManager(kernel_name="python3")
    folder = str(tmp_path_factory.mktemp("play"))
    kernel.start_kernel(cwd=folder, extra_arguments=["--IPKernelApp.log_level=ERROR"])

    client = kernel.blocking_client()
    client.start_channels()
    client.wait_for_ready()
    client.execute(WATCH, reply=True)
    client.stop_channels()

    def played(*sources, tags=(), costly=1):
        start = f"%reset -f\nget_ipython().watcher.costly = {costly}"
        cells = [nbformat.v4.new_code_cell(source) for source in (start, *sources)]
        for number, cell in enumerate(cells, -1):
            cell.id = f"cell-{number}"
        cells[-1].metadata.tags = list(tags)
        player = Player(nbformat.v4.new_notebook(cells=cells), kernel)
        for cell in player.notebook.cells:
            assert not player.run(cell)
        del player.notebook.cells[0]
        player.stored = copy.deepcopy(player.notebook)
        return player.play()

    yield played
    kernel.shutdown_kernel(now=True)


IMPORTS = "import numpy as np\nfrom d2lmini.exercises import check\nfrom d2lmini import softmax"
EXERCISE = find("weighted_average")  # whose function has a name of its own
DESCRIBED = f"{EXERCISE.function}.__doc__"  # another text in the stub than in an answer
STUB = "@check\ndef softmax(scores):\n    ..."
USED = "softmax(np.zeros(2)).tolist()"
TRAIN = "total = first\nfor step in progress(9, 'nine'):\n    total += step\nsteps = step"
TRAINED = [
    IMPORTS,
    "from d2lmini.models import progress\nfirst = 1",
    TRAIN,
    "print(total, steps)",  # finds what the whole training gave
    EXERCISE.starter,
]
GOES_ON = ["steps = [0]", "steps.append(1)\nlen(steps)"]


def test_a_notebook_that_survives(play):
    sources = [IMPORTS, "total = 1\ntotal", "total + 1", EXERCISE.starter, USED]
    assert play(*sources) == play(*TRAINED) == play(*GOES_ON, tags=["trains"]) == []


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        (["x = 1", "x", "x = 2"], "cell-1, run again"),
        (["x = [1]", "x.append(2)\nx"], "cell-1, run again"),
        (["x = 1", "del x"], "cell-1, run again"),
        (["x = 1\nx", "y = x\ny", "for x in range(3):\n    pass"], "cell-1, run again"),
        (GOES_ON, "cell-1, run again"),
        ([IMPORTS, USED, STUB], "cell-1, run again"),
        ([IMPORTS, EXERCISE.starter, DESCRIBED], "cell-2, after right answers"),
        ([IMPORTS, EXERCISE.starter, DESCRIBED], "cell-2, after wrong answers"),
        ([*TRAINED, "first = None"], "cell-2, run again: raises TypeError"),  # two steps of it
    ],
)
def test_one_that_breaks_is_found(play, sources, said):
    failures = play(*sources)
    assert any(failure.startswith(said) for failure in failures), failures


# A cell that would see that it is run again, and what it is given; then what changes that, or not.
COUNTED = "# trains\nopen('runs', 'a').write('x') and None\nlen(open('runs').read()), {}"
GIVEN = ["import numpy as np\nfrom pathlib import Path\nPath('runs').unlink(missing_ok=True)"]
GIVEN += ["x = np.ones(3)\ndef f(): return g() + x.sum()", "def g(): return 1"]
GIVEN += ["class A:\n    step = 1\n    def one(self): return self.step\na = A()"]


@pytest.mark.parametrize(
    ("reads", "after", "again"),
    [
        ("f()", "y = 3", False),
        ("x.sum()", "x = np.ones(3)", False),
        ("x.sum()", "x = np.ones(3); x[0] = 2", True),
        ("f()", "x[0] = 2", True),
        ("f()", "def g(): return 2", True),
        ("f()", "f.__defaults__ = (1,)", True),
        ("a.one()", "a.step = 2", True),
        ("a.one()", "A.one = lambda self: 2", True),
        ("A().one()", "A.step = 2", True),
        ("np.random.rand() < 2", "", True),
        ("(lambda: open)() and h", "", True),
    ],
)
def test_a_costly_cell_is_run_again_where_it_is_given_something_else(play, reads, after, again):
    given = [*GIVEN, "h = (i for i in 'ab')", COUNTED.format(reads), after or "0"]
    failures = play(*given, costly=-1)
    assert any(one.startswith("cell-5, run again") for one in failures) == again, failures
