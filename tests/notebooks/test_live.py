"""Which cells run in a reader's browser, and how they run: as in a notebook, whatever they do."""

import builtins
import importlib
import io
import json
import subprocess
import sys
import zipfile

import matplotlib.pyplot as plt
import pytest

from live_cells import extension as live
from live_cells.plan import plan_cells
from live_cells.runner import MOST_LETTERS, MOST_LINES, Printed, Runner
from scripts import notebooks
from tests.book.building import ROOT

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))


def cells(*sources, tags=()):
    """Return the cells of a notebook that has these, all tagged alike."""
    return [
        {"cell_type": "code", "source": text, "id": f"c{place}", "metadata": {"tags": list(tags)}}
        if not text.startswith("#")
        else {"cell_type": "markdown", "source": text, "metadata": {}}
        for place, text in enumerate(sources)
    ]


def test_only_what_needs_pytorch_is_not_live():
    sources = [
        "import numpy as np\nimport torch\nfrom d2lmini import SelfAttention, softmax",
        "x = np.zeros(3)",
        "t = torch.zeros(3)",
        "t.shape",
        "softmax(x)",
        "SelfAttention",
        "def f():\n    return t\nx",
        "import d2lmini\nd2lmini.SelfAttention",
        "%pip install x",
    ]
    planned = plan_cells(cells(*sources))
    assert [cell.live for cell in planned] == [0, 1, 0, 0, 1, 0, 0, 0, 0]
    assert planned[4].needs == [0, 1]
    assert planned[4].whole == {1}, "of the first cell only the imports"
    assert plan_cells(cells("## Exercises", "1 + 1"))[0].live
    folded = plan_cells(cells("1 + 1", "## Exercises", "1 + 1", tags=["hide-cell"]))
    assert [cell.live for cell in folded] == [True, False], "a folded answer"


@pytest.mark.parametrize(
    ("sources", "needs"),
    [
        (["a = 1", "b = 2", "a"], [0]),
        (["a = 1", "a = 2", "b = a", "b"], [1, 2]),
        (["a = 1", "for a in range(3): pass\nprint(a)"], []),
        (["a = 1", "a += 1\na"], [0]),
        (["def f(): return g()", "def g(): return 1", "f()"], [0, 1]),
        (["a = 1", "def f(a): return a\nf(2)"], []),
    ],
)
def test_what_a_cell_needs(sources, needs):
    assert plan_cells(cells(*sources))[-1].needs == needs


# Run all live cells of pages as a reader's browser does, without PyTorch; say what came out. Each
# page has a process of its own, which has imported the library before it began.
PLAYED = """
import json, multiprocessing, sys
sys.modules["torch"] = None
import d2lmini.plotting
from live_cells.runner import Runner

def played(cells):
    sent, came = [], {}
    runner = Runner(lambda piece: sent.append(json.loads(piece)))
    for cell in filter(lambda cell: cell["live"], cells):
        for step in json.loads(runner.prepare(json.dumps(cells), cell["id"]))["steps"]:
            sent.clear()
            runner.run(step)
        came[cell["id"]] = sent[:]
    return came

with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
    print(json.dumps(pool.map(played, json.load(sys.stdin), chunksize=1)))
"""


def python(*command, **options):
    """Run Python; return what it has said."""
    command = [sys.executable, *map(str, command)]
    options = {"cwd": ROOT, "capture_output": True, "text": True, **options}
    done = subprocess.run(command, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.again
def test_every_live_cell_says_here_what_is_stored():
    """As in `browser/test_live.py`, but with the NumPy of this machine and without pictures."""
    given, stored = [], []
    for path in CHAPTERS:
        code = [one for one in notebooks.read(path).cells if one.cell_type == "code"]
        live_ones = {cell.id: cell for cell in code if "live" in cell.metadata.get("tags", [])}
        stored.append({name: words_of(cell.outputs) for name, cell in live_ones.items()})
        given.append([{"id": c.id, "code": c.source, "live": c.id in live_ones} for c in code])
    came = json.loads(python("-c", PLAYED, input=json.dumps(given)))
    for path, cells, here in zip(CHAPTERS, stored, came, strict=True):
        assert {name: words_of(one) for name, one in here.items()} == cells, path.stem


def words_of(outputs):
    """Return the words of what a cell puts out, of a picture its description."""
    said = [one.get("text") or one.get("data", {}).get("text/plain", str(one)) for one in outputs]
    return " ".join("".join(said).split())


class Page:
    """A page in the hands of a reader, without a browser."""

    def __init__(self, *sources):
        self.cells = [{"id": f"c{place}", "code": text} for place, text in enumerate(sources)]
        self.sent = []
        self.runner = Runner(lambda piece: self.sent.append(json.loads(piece)))

    def run(self, place):
        """Run a cell with what it needs; return the cells that ran, and what the last put out."""
        prepared = json.loads(self.runner.prepare(json.dumps(self.cells), f"c{place}"))
        self.libraries = prepared["libraries"]
        for step in prepared["steps"]:
            self.sent.clear()
            if not self.runner.run(step):
                break
        return [int(step[1:]) for step in prepared["steps"]], self.sent

    def says(self, place):
        """Run a cell; return the words of each thing that it puts out."""
        return [
            one["data"]["text/plain"] if one["kind"] == "display" else one.get("text", one)
            for one in self.run(place)[1]
        ]


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    """Leave no stand-in for IPython and `input` behind; begin without figures of other tests."""
    plt.close("all")
    monkeypatch.setattr(builtins, "input", input)
    for name in ("IPython", "IPython.display"):
        monkeypatch.setitem(sys.modules, name, importlib.import_module(name))


# --- what is needed ---


def test_what_is_needed_runs_once_and_again_when_it_was_changed():
    page = Page("a = 1", "b = a + 1", "print(b)")
    assert (page.run(2)[0], page.run(2)[0]) == ([0, 1, 2], [2])
    page.cells[0]["code"] = "a = 5"
    page.cells[1]["code"] = "b = a + 10"
    ran, sent = page.run(2)
    assert (ran, words(sent)) == ([0, 1, 2], "15\n")


def test_what_a_reader_adds_is_found_too_and_a_library_loaded_where_it_is_used():
    page = Page("import numpy as np\nfrom d2lmini.plotting import show_heatmaps", "a = 3", "")
    page.cells[2]["code"] = "np.ones(a)"
    assert page.says(2) == ["array([1., 1., 1.])"] and page.libraries == []
    page.cells[2]["code"] = "show_heatmaps(np.eye(2), 'k', 'q')"
    (shown,) = page.run(2)[1]
    assert page.libraries == ["matplotlib"]
    assert [*shown["data"]] == ["text/html", "text/plain"], "no PNG, which no page shows"
    assert "d2lmini-figure" in shown["data"]["text/html"]


def test_the_weights_of_models_come_only_when_they_are_used():
    large = zipfile.ZipFile(io.BytesIO(live.pack(large=True))).namelist()
    assert large and all(name.startswith("d2lmini/data/") for name in large)
    page = Page("from d2lmini.models import MiniLMLayer", "1", "MiniLMLayer.load().words[:0]")
    for place, libraries in ((1, []), (2, ["data"])):
        page.run(place)
        assert page.libraries == libraries


def test_of_a_cell_that_imports_pytorch_too_the_rest_is_imported(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    page = Page("import numpy as np\nimport torch\ntorch.set_num_threads(1)", "np.float64(2) * 2")
    assert page.run(1)[0] == [0, 1] and page.says(1) == ["np.float64(4.0)"]
    for code in ("import torch\ntorch.zeros(2)", "import torch"):
        (error,) = Page(code).run(0)[1]
        assert "PyTorch" in error["name"] and "notebook" in error["says"]


def test_a_figure_of_a_cell_that_fails_is_shown_there_and_not_by_the_next():
    page = Page("import matplotlib.pyplot as plt\nplt.plot([1, 2])\n1 / 0", "1 + 1")
    figure, error = page.run(0)[1]
    assert list(figure["data"]) == ["image/svg+xml"] and error["name"] == "ZeroDivisionError"
    assert page.says(1) == ["2"]


# --- what is printed, when it is printed ---


def printed(*texts):
    """Return the pieces that are sent for these writes, while the cell has not ended."""
    sent = []
    out = Printed(lambda piece: sent.append(dict(piece)))
    for text in texts:
        out.write(text)
    return sent, out


def words(sent):
    return "".join(piece["text"] for piece in sent if piece["kind"] == "stream")


def test_nothing_waits_for_a_later_print():
    """What waits is lost when the cell is stopped."""
    bar = ["\r", *(f"\r{i} of 100000" for i in range(100_001))]  # it ends where it ends
    for texts in (["hello"], [f"{i}\n" for i in range(999)], ["a\x0c" * 1500], bar):
        sent, out = printed(*texts)
        assert words(sent) == "".join(texts)
        out.close_cell()
        assert all(piece["kind"] == "stream" for piece in sent)


def test_a_flood_is_cut_with_a_note_as_soon_as_it_begins():
    """The note stands there although the cell is stopped; at its end it has the number."""
    floods = {"4,000 more lines": [f"{i}\n" for i in range(5000)]}
    floods["100,000 more letters"] = ["x" * 100] * 2000
    for left, texts in floods.items():
        sent, out = printed(*texts)
        assert words(sent).count("\n") == MOST_LINES or len(words(sent)) == MOST_LETTERS
        assert sent[-1] == {"kind": "cut", "text": "More printed, which the page does not show."}
        out.close_cell()
        assert sent[-1]["text"].startswith(left)


def test_a_value_that_no_page_can_hold_is_cut_or_not_shown():
    value, note = Page("list(range(10**6))").run(0)[1]
    assert len(value["data"]["text/plain"]) == MOST_LETTERS and note["kind"] == "cut"
    (note,) = Page("display({'text/html': 'x' * 10**7}, raw=True)").says(0)
    assert "not show" in note


def test_what_is_shown_goes_when_more_comes_and_gives_its_room_back():
    clear = "clear_output(wait=True)"
    loop = f"for i in range(3000):\n    {clear}\n    print(i)\n{clear}"
    sent = Page(f"from IPython.display import clear_output\n{loop}").run(0)[1]
    assert words(sent).endswith("2999\n") and {one["kind"] for one in sent} == {"clear", "stream"}
    assert sent[-1]["kind"] != "clear"


# --- last values, as IPython shows them ---

SHOWN = [
    ("1 + 1", ["2"]),
    ("1 + 1;", []),
    ("display(3)\n4", ["3", "4"]),
    (
        "class Bad:\n    def __repr__(self): 1 / 0\nBad()",
        ["<Bad: its repr failed with ZeroDivisionError: division by zero>"],
    ),
    ("from IPython.display import Code\ndisplay(Code('x = 1'))", ["x = 1"]),
]


@pytest.mark.parametrize(("code", "shown"), SHOWN)
def test_what_is_shown(code, shown):
    assert Page(code).says(0) == shown


# --- errors ---

# What goes wrong: its name, what is said, and the lines of the reader's own that are shown.
ERRORS = [
    ("exit()", "SystemExit", "asked to stop", []),
    ("input('Your name?')", "RuntimeError", "Your name?: nobody is asked", ["1 input('Your name?"]),
    ("def f(): return f()\nf()", "RecursionError", "recursion", None),
    ("import d2lmini\n\nd2lmini.softmax('a')", "TypeError", "", ["3 d2lmini.softmax('a')"]),
    ("a = 1\n%timeit a", "SyntaxError", "no %timeit", ["2 %timeit a"]),
    ("x = !ls", "SyntaxError", "no !ls", ["1 x = !ls"]),
    ("from IPython.display import Javascript", "ImportError", "no Javascript", ["1 from"]),
]


@pytest.mark.parametrize(("code", "name", "says", "lines"), ERRORS)
def test_whatever_goes_wrong_is_said_and_the_next_cell_runs(code, name, says, lines):
    page = Page(code, "1 + 1")
    error = page.run(0)[1][-1]
    assert error["kind"] == "error" and error["name"].endswith(name) and says in error["says"]
    assert name or error["says"]
    shown = [f"{one['line']} {one.get('code')}" for one in error["lines"]]
    assert len(shown) <= 7, "only lines of the cell are shown, none of the runner's"
    if lines is not None:
        assert len(shown) == len(lines) and all(map(str.startswith, shown, lines)), shown
    assert page.says(1) == ["2"]


def test_an_error_names_the_reader_s_own_lines_and_what_it_came_from():
    half = "def half(x):\n    try: x / 0\n    except Exception as e: raise ValueError('b') from e"
    error = Page(half, "y = 1\nhalf(y)").run(1)[1][-1]
    lines = [(one["line"], one["cell"]) for one in error["lines"]]
    assert lines[-2:] == [(2, "c1"), (3, "c0")]
    assert error["says"] == "b\n(first: ZeroDivisionError: division by zero)"


# --- what the build brings ---


def test_the_archive_is_the_same_each_time_and_runs_alone(tmp_path):
    packed = live.pack()
    assert packed == live.pack()
    assert len(packed) < 650_000, (
        f"{len(packed)} bytes: a reader's first Run waits for them; leave out of live.pack() what "
        "no live cell imports"
    )
    zipfile.ZipFile(io.BytesIO(packed)).extractall(tmp_path)
    alone = {"cwd": tmp_path, "env": {"PYTHONPATH": str(tmp_path)}}
    cell = {"id": "a", "code": "import d2lmini\nd2lmini.__file__", "live": True}
    came = python("-P", "-c", PLAYED, input=json.dumps([[cell]]), **alone)
    assert f"{tmp_path}/d2lmini" in came


def test_pyodide_is_what_was_published(tmp_path, monkeypatch):
    monkeypatch.setenv("PYODIDE_DIR", str(tmp_path))
    (tmp_path / "pyodide.mjs").write_text("alert(1)")
    with pytest.raises(ValueError, match="its hash differs"):
        live.fetched("pyodide.mjs", live.HASHES["pyodide.mjs"])
