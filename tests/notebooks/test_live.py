"""Which cells run in a reader's browser, and how they run: as in a notebook, whatever they do."""

import builtins
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import zipfile

import matplotlib.pyplot as plt
import pytest

from d2lmini.plotting import show_heatmaps
from live_cells import extension as live
from live_cells.plan import plan_cells
from live_cells.runner import MOST_LETTERS, MOST_LINES, Printed, Runner
from scripts import notebooks
from scripts.notebooks import read_notebook
from tests.book.building import ROOT

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))
each = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def cells(*sources, tags=()):
    """Return the cells of a notebook that has these, all tagged alike."""
    return [
        {"cell_type": "code", "source": text, "id": f"c{place}", "metadata": {"tags": list(tags)}}
        if not text.startswith("#")
        else {"cell_type": "markdown", "source": text, "metadata": {}}
        for place, text in enumerate(sources)
    ]


@each
def test_the_stored_tags_are_those_that_the_code_gives(path):
    """If this fails, run `python scripts/notebooks.py --tags`."""
    notebook = read_notebook(path.read_text("utf8"))
    tagged = {cell.id for cell in notebook.cells if "live" in cell.metadata.get("tags", [])}
    assert tagged == {cell.id for cell in plan_cells(notebook.cells) if cell.live}
    assert tagged, "nothing of this chapter runs on its page: is every cell in need of PyTorch?"


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
    for heading in "## Exercises", "## Limits\n\nSome.\n\n## Exercises\n\nMore.":
        folded = plan_cells(cells("1 + 1", heading, "1 + 1", tags=["hide-cell"]))
        assert [cell.live for cell in folded] == [True, False], "a folded answer"


@pytest.mark.parametrize(
    ("sources", "needs"),
    [
        (["a = 1", "b = 2", "a"], [0]),
        (["a = 1", "a = 2", "a"], [1]),
        (["a = 1", "b = a", "b"], [0, 1]),
        (["a = 1", "for a in range(3): pass\nprint(a)"], []),
        (["a = 1", "a += 1\na"], [0]),
        (["def f(): return g()", "def g(): return 1", "f()"], [0, 1]),
        (["a = 1", "[a for a in range(3)]"], []),
        (["a = 1", "def f(a): return a\nf(2)"], []),
    ],
)
def test_what_a_cell_needs(sources, needs):
    assert plan_cells(cells(*sources))[-1].needs == needs


# Run all live cells of a chapter as a page does, where there is no PyTorch; say what came out.
PLAYED = """
import json, sys
sys.modules["torch"] = None
from live_cells.runner import Runner
cells, sent, came = json.load(sys.stdin), [], {}
runner = Runner(lambda piece: sent.append(json.loads(piece)))
for cell in cells:
    if cell["live"]:
        for step in json.loads(runner.prepare(json.dumps(cells), cell["id"]))["steps"]:
            sent.clear()
            runner.run(step)
        came[cell["id"]] = sent[:]
print(json.dumps(came))
"""


def python(*command, **options):
    """Run Python; return what it has said."""
    command = [sys.executable, *map(str, command)]
    options = {"cwd": ROOT, "capture_output": True, "text": True, **options}
    done = subprocess.run(command, check=False, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.again
@each
def test_every_live_cell_says_here_what_is_stored(path):
    """As in `browser/test_live.py`, but with the NumPy of this machine and without pictures."""
    notebook = read_notebook(path.read_text("utf8"))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    live_ones = {cell.id: "live" in cell.metadata.get("tags", []) for cell in code}
    given = [{"id": cell.id, "code": cell.source, "live": live_ones[cell.id]} for cell in code]
    came = json.loads(python("-c", PLAYED, input=json.dumps(given)))
    for cell in code:
        if live_ones[cell.id]:
            assert words_of(came[cell.id]) == words_of(cell.outputs), cell.id


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
def as_before():
    """Leave no stand-in for IPython and `input` behind; begin without figures of other tests."""
    plt.close("all")
    names = ("IPython", "IPython.display")
    asked, modules = builtins.input, {name: sys.modules.get(name) for name in names}
    yield
    builtins.input = asked
    for name, module in modules.items():
        if module is None:
            sys.modules.pop(name, None)
        else:
            sys.modules[name] = module


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
    kept = show_heatmaps([[1.0]], "Keys", "Queries", show=False)  # for notebooks it is as ever
    assert list(kept._repr_mimebundle_()[0]) == ["text/html", "image/png", "text/plain"]


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


# --- figures ---


def test_a_figure_of_a_cell_that_fails_is_shown_there_and_not_by_the_next():
    drawn = "from d2lmini.plotting import show_heatmaps\nshown = show_heatmaps([[1.0]], 'k', 'q')"
    page = Page(
        "import matplotlib.pyplot as plt\nplt.plot([1, 2])\n1 / 0",
        "1 + 1",
        f"{drawn}\n1 / 0",
        "globals()['shown']",
    )
    figure, error = page.run(0)[1]
    assert list(figure["data"]) == ["image/svg+xml"] and error["name"] == "ZeroDivisionError"
    assert page.says(1) == ["2"]
    page.run(2)
    (again,) = page.run(3)[1]
    assert "d2lmini-figure" in again["data"]["text/html"]


def test_what_matplotlib_says_of_its_fonts_is_no_output(tmp_path):
    """Without a cache of fonts it makes one, which may take long, and says so."""
    code = (
        "from live_cells.runner import Runner\n"
        "import json; sent = []; runner = Runner(sent.append)\n"
        'say = \'import logging; logging.getLogger("matplotlib.font_manager").warning("fonts")\'\n'
        'draw = \'from d2lmini.plotting import show_heatmaps; show_heatmaps([[1.0]], "k", "q")\'\n'
        "page = json.dumps([{'id': 'a', 'code': f'{say}; {draw}'}])\n"
        "runner.prepare(page, 'a'); runner.run('a'); print(*(json.loads(p)['kind'] for p in sent))"
    )
    assert python("-c", code, env={**os.environ, "MPLCONFIGDIR": str(tmp_path)}) == "display\n"


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


@pytest.mark.parametrize(
    "texts",
    [
        ["hello\n"],  # and then an endless loop
        ["hello"],
        ["epoch 1", "\n", "epoch 2", "\n"],
        [f"{i}\n" for i in range(999)],
        ["a\x0c" * 1500],  # no line ends there, whatever Python's splitlines says
        ["\r", *(f"\r{i} of 100000" for i in range(100_001))],  # a bar ends where it ends
    ],
    ids=lambda texts: ascii(texts[0])[:12],
)
def test_nothing_waits_for_a_later_print(texts):
    sent, out = printed(*texts)
    assert words(sent) == "".join(texts), "what waits is lost when the cell is stopped"
    out.close_cell()
    assert all(piece["kind"] == "stream" for piece in sent)


@pytest.mark.parametrize(
    ("texts", "first", "left"),
    [
        ([f"{i}\n" for i in range(5000)], MOST_LINES, "4,000 more lines"),
        (["x" * 200_000], MOST_LETTERS, "100,000 more letters"),
        (["x" * 100] * 2000, MOST_LETTERS, "100,000 more letters"),
        (["\n" * 5000], MOST_LINES, "4,000 more lines"),
    ],
    ids=["lines", "one line", "letters", "breaks"],
)
def test_a_flood_is_cut_with_a_note_as_soon_as_it_begins(texts, first, left):
    """The note stands there although the cell is stopped; at its end it has the number."""
    sent, out = printed(*texts)
    shown = words(sent)
    assert len(shown.splitlines() if first == MOST_LINES else shown) == first
    assert sent[-1] == {"kind": "cut", "text": "More printed, which the page does not show."}
    out.close_cell()
    assert sent[-1]["text"].startswith(left)


@pytest.mark.parametrize("code", ["list(range(10**6))", "'x' * 10**7", "display('x' * 10**7)"])
def test_a_value_that_no_page_can_hold_is_cut(code):
    value, *notes = Page(code).run(0)[1]
    assert len(value["data"]["text/plain"]) == MOST_LETTERS
    assert [note["kind"] for note in notes] == ["cut"]


def test_of_many_and_large_things_the_first_are_shown():
    sent = Page(f"for i in range({MOST_LINES + 7}): display(i)").run(0)[1]
    assert [piece["kind"] for piece in sent] == ["display"] * MOST_LINES + ["cut", "cut"]
    assert sent[-1]["text"].startswith("7 more lines")
    (note,) = Page("display({'text/html': 'x' * 10**7}, raw=True)").says(0)
    assert "not show" in note


def test_what_is_shown_goes_when_more_comes_and_gives_its_room_back():
    code = (
        "from IPython.display import clear_output\nfor i in range(3 * 1000):\n"
        "    clear_output(wait=True)\n    print(i)\nclear_output(wait=True)"
    )
    sent = Page(code).run(0)[1]
    assert words(sent).split()[-1] == "2999" and sent[-1]["kind"] != "clear"
    assert not [piece for piece in sent if piece["kind"] == "cut"]


# --- last values, as IPython shows them ---

BAD = "class Bad:\n    def {}: {}\n    def __repr__(self): return 'bad'\nBad()"
ASKED = BAD.format("_repr_mimebundle_(self, include, exclude)", "return {'text/plain': 'asked'}")
SHOWN = [
    ("1 + 1", ["2"]),
    ("1 + 1;", []),
    ("x = 3\nx;  # quiet", []),
    ("'a;'", ["'a;'"]),
    ("1 + 1  # all;", ["2"]),
    ("(1,\n 2)  ;\n\n# said", []),
    ("x = 1", []),
    ("None", []),
    ("display(3)\n4", ["3", "4"]),
    ("from d2lmini.plotting import Shown\nShown", ["d2lmini.plotting.shown.Shown"]),
    (BAD.format("_repr_mimebundle_(self)", "return None"), ["bad"]),
    (BAD.format("_repr_html_(self)", "1 / 0"), ["bad"]),
    (BAD.format("_ipython_display_(self)", "1 / 0"), ["bad"]),
    (BAD.format("_repr_html_(self)", "return None"), ["bad"]),
    (BAD.format("_repr_mimebundle_(self)", "return {'text/html': '<b>'}, {}"), ["bad"]),
    (BAD.format("_repr_html_(self)", "return 5"), ["bad"]),
    (BAD.format("_repr_mimebundle_(self)", "return {'text/plain': 5, 'a/b': {1}}"), ["bad"]),
    (BAD.format("__getattr__(self, name)", "1 / 0"), ["bad"]),
    (ASKED, ["asked"]),
    (
        "class Bad:\n    def __repr__(self): 1 / 0\nBad()",
        ["<Bad: its repr failed with ZeroDivisionError: division by zero>"],
    ),
    ("from unittest.mock import Mock\nMock(name='m')", ["<Mock name='m'"]),
    ("  3\n", ["3"]),
    ("display(1)\n2\n_ = 3\n_", ["1", "3"]),
    (
        "from IPython.display import JSON, Code\ndisplay(JSON('{\"a\": [1]}'), Code('x = 1'))",
        ['{\n  "a": [\n    1\n  ]\n}', "x = 1"],
    ),
]


@pytest.mark.parametrize(("code", "shown"), SHOWN)
def test_what_is_shown(code, shown):
    said = Page(code).says(0)
    assert [one.partition(" id=")[0] for one in said] == shown


WRITTEN = [
    "int", "__import__('functools').reduce", "print", "[int, str]", "{'b', 'a'}", "[[1, 2]] * 40",
    "['a ' * 60]", "{'a': list(range(30)), 'b': {}}", "ValueError", "b'x'", "(1, 2)", "...",
    "{'a': __import__('numpy').eye(2)}", "[__import__('numpy').eye(2)] * 2", "range(5)",
    "__import__('collections').defaultdict(list, a=[1])", "__import__('re').compile('a')",
]  # fmt: skip


def test_values_are_written_as_ipython_writes_them():
    from IPython.core.interactiveshell import InteractiveShell

    write = InteractiveShell().display_formatter.formatters["text/plain"]
    for code in WRITTEN:
        assert Page(f"x = {code}\nx").says(0) == [write(eval(code))], code


def test_the_last_three_values_have_names_unless_the_reader_has_taken_them():
    page = Page("1", "2", "[_, __]", "for _ in 'ab': pass", "3", "_")
    assert [page.says(i) for i in range(6)] == [["1"], ["2"], ["[2, 1]"], [], ["3"], ["'b'"]]


def test_a_picture_is_a_picture():
    for how in (
        "_repr_png_(self): return b'ab'",
        "_repr_mimebundle_(self, **k): return {'image/png': b'ab'}",
    ):
        code = f"class P:\n    def {how}\nP()"
        assert Page(code).run(0)[1][0]["data"]["image/png"] == "YWI="


# --- errors ---

# What goes wrong: its name, what is said, and the lines of the reader's own that are shown.
ERRORS = [
    ("exit()", "SystemExit", "asked to stop", []),
    ("raise KeyboardInterrupt", "KeyboardInterrupt", "", ["1 raise KeyboardInterrupt"]),
    ("input('Your name?')", "RuntimeError", "Your name?: nobody is asked", ["1 input('Your name?"]),
    ("def f(): return f()\nf()", "RecursionError", "recursion", None),
    ("import numpy as np\nnp.zeros(10**15)", "MemoryError", "allocate", ["2 np.zeros"]),
    ("class E(Exception):\n    def __str__(self): 1 / 0\nraise E", "E", "", ["3 raise E"]),
    ("import d2lmini\n\nd2lmini.softmax('a')", "TypeError", "", ["3 d2lmini.softmax('a')"]),
    ("a = 1\nexec('x = (')", "SyntaxError", "never closed", ["2 exec('x = (')"]),
    ("x = 1\nreturn x", "SyntaxError", "outside function", ["2 return x\n^"]),
    ("x = 1\nbreak", "SyntaxError", "outside loop", ["2 break\n^"]),
    ("if 1:\n    continue", "SyntaxError", "not properly", ["2     continue\n    ^"]),
    ("await f()", "SyntaxError", "a page waits for nothing", ["1 await f()"]),
    ("def f():\n    nonlocal y", "SyntaxError", "nonlocal", ["2     nonlocal y"]),
    ("x = (1,", "SyntaxError", "never closed", ["1 x = (1,\n    ^"]),
    ("a = 1\n%timeit a", "SyntaxError", "no %timeit", ["2 %timeit a"]),
    ("!pip install x", "SyntaxError", "no !pip", ["1 !pip install x"]),
    ("x = !ls", "SyntaxError", "no !ls", ["1 x = !ls"]),
    ("len?", "SyntaxError", "no ?", ["1 len?"]),
    ("a = '\u2028\x0c'\nreturn a", "SyntaxError", "outside function", ["2 return a\n^"]),
    ("-" * 20_000 + "1", "", "", None),  # these Python cannot read at all
    ("'\ud83d'", "", "", None),
    ("x = '\0'", "", "", None),
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


def test_an_error_is_the_reader_s_own_line():
    error = Page("def half(x):\n    return x / 0", "y = 1\nhalf(y)").run(1)[1][-1]
    assert (error["name"], error["says"]) == ("ZeroDivisionError", "division by zero")
    assert [(one["line"], one["code"], one["where"], one["cell"]) for one in error["lines"]] == [
        (2, "half(y)", "", "c1"),
        (2, "return x / 0", "half", "c0"),
    ]


def test_an_error_brings_its_notes_and_what_it_came_from():
    code = (
        "try:\n    1 / 0\nexcept Exception as e:\n    e.add_note('look')\n"
        "    raise ExceptionGroup('two', [e, ValueError('b')])"
    )
    assert Page(code).run(0)[1][-1]["says"].split("\n")[1:] == [
        "- ZeroDivisionError: division by zero",
        "look",
        "- ValueError: b",
        "(first: ZeroDivisionError: division by zero",
        "look)",
    ]


# --- what the build brings ---


def test_the_archive_is_the_same_each_time_and_runs_alone(tmp_path):
    packed = live.pack()
    assert packed == live.pack()
    assert len(packed) < 650_000, (
        f"{len(packed)} bytes: a reader's first Run waits for them; leave out of live.pack() what "
        "no live cell imports"
    )
    zipfile.ZipFile(io.BytesIO(packed)).extractall(tmp_path)
    code = (
        "import json, sys; from live_cells.runner import Runner\n"
        "runner = Runner(sys.__stdout__.write)\n"
        "code = 'import numpy as np; import d2lmini; d2lmini.softmax(np.zeros(2))'\n"
        "page = json.dumps([{'id': 'a', 'code': code}])\n"
        "runner.prepare(page, 'a'); runner.run('a')\n"
        "assert sys.modules['d2lmini'].__file__.startswith(sys.argv[1])"
    )
    alone = {"cwd": tmp_path, "env": {"PYTHONPATH": str(tmp_path)}}
    assert "array([0.5, 0.5])" in python("-P", "-c", code, tmp_path, **alone)


@pytest.mark.skipif(not os.environ.get("PYODIDE_DIR"), reason="PYODIDE_DIR is not set")
@pytest.mark.skipif(not shutil.which("node"), reason="Node is not installed")
def test_what_a_first_run_imports_is_bytecode_and_every_hash_is_right(published_site, tmp_path):
    """In the book that was published, where Pyodide has compiled it."""
    (hosted,) = published_site.glob("book/_static/live/pyodide-*")
    folder, library = tmp_path / "pyodide", tmp_path / "library.zip"
    shutil.copytree(hosted, folder)
    hashes = live.host_pyodide(folder, library)
    assert list(hashes) == list(live.HASHES)
    files = zipfile.ZipFile(folder / "python_stdlib.zip").namelist()
    assert "ast.pyc" in files and "ast.py" not in files
    assert "turtle.py" in files or "pydoc.py" in files, "what nobody imports stays as it is"
    numpy = zipfile.ZipFile(folder / live.NUMPY).namelist()
    assert "numpy/__init__.pyc" in numpy and "numpy/__init__.py" not in numpy
    lock = json.loads((folder / "pyodide-lock.json").read_text("utf8"))["packages"]
    wheels = [one for one in lock.values() if (folder / one["file_name"]).exists()]
    assert len(wheels) > 5
    for one in wheels:
        content = (folder / one["file_name"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == one["sha256"], one["file_name"]
    worker = (hosted.parent / "worker.mjs").read_text("utf8")
    for name, said in hashes.items():
        assert said == live.integrity(hashlib.sha256((folder / name).read_bytes()))
        assert said in worker
    (folder / "python_stdlib.zip").write_bytes(b"other")
    assert live.host_pyodide(folder, library) != hashes, "what is there is what is hashed"


def test_pyodide_is_what_was_published_with_or_without_node(tmp_path, monkeypatch):
    monkeypatch.setattr(live.shutil, "which", lambda name: None)
    live.compile_ahead(tmp_path, tmp_path / "library.zip")
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setenv("PYODIDE_DIR", str(tmp_path))
    (tmp_path / "pyodide.mjs").write_text("alert(1)")
    with pytest.raises(ValueError, match="its hash differs"):
        live.fetched("pyodide.mjs", live.HASHES["pyodide.mjs"])
