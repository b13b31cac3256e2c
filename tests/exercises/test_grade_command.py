"""``python -m d2lmini.exercises grade``: a folder of notebooks, some of them bad.

A kernel takes seconds. What happens in one is asked of few notebooks of many cells; where the
question is what the command makes of it, the cells run here.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from answers import HAS_TORCH

from d2lmini.exercises import exercises, find
from d2lmini.exercises.__main__ import grade_notebook, main
from d2lmini.exercises.definition import RESULTS
from d2lmini.exercises.notebook import _read, checked, code_cells

IMPORTS = "import numpy as np\n%matplotlib inline"
IMPORT = "from d2lmini.exercises import check, hint, solution"
WRONG = "@check\ndef softmax(scores):\n    return scores"


def solved(exercise):
    """Return the cell of an exercise with its solution in it."""
    exercise = find(exercise) if isinstance(exercise, str) else exercise
    text = exercise.solution
    at = text.index(f"{'class' if exercise.needs_torch else 'def'} {exercise.function}")
    return text[:at] + "@check\n" + text[at:]


def write(path, *cells):
    """Write a notebook of these code cells, which are counted from 3 on."""
    empty = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    kinds = [{"cell_type": "markdown", "metadata": {}, "source": ["# Title"]}]
    kinds += [empty | {"source": s.splitlines(keepends=True)} for s in (IMPORTS, IMPORT, *cells)]
    notebook = {"cells": kinds, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(notebook), "utf-8")
    return path


def found(report, what="status"):
    return {exercise["name"]: exercise[what] for exercise in report["exercises"]}


def all_reports():
    return json.loads(Path("grades.json").read_text("utf-8"))["notebooks"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory, monkeypatch):
    """Work in a folder of its own, as the command writes grades.json where it is called."""
    monkeypatch.chdir(tmp_path_factory.mktemp("called_here"))


@pytest.fixture
def here(monkeypatch):
    """Run cells in this process."""

    def run(cells, seconds, megabytes):
        results, space, failed = Path("results.jsonl"), {}, []
        results.unlink(missing_ok=True)
        monkeypatch.setenv(RESULTS, str(results))
        for number, cell in enumerate(cells, 1):
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(cell.replace("%matplotlib inline", ""), space)
            except Exception as error:
                failed.append({"cell": number, "error": f"{type(error).__name__}: {error}"})
        return {"results": _read(results), "failed_cells": failed, "problem": None}

    monkeypatch.setattr("d2lmini.exercises.__main__.run", run)


# In a kernel

# otter-grader#604, #756: what people write, each cell with the beginning of its error, if any.
CELLS = [
    ("np.exp?", ""),
    ("t = %timeit -o -n 1 sum(range(9))", ""),
    ("%%javascript\nalert('hi');", ""),
    ("!ls", ""),
    ("import asyncio\nawait asyncio.sleep(0)", ""),
    ("from __future__ import annotations", ""),
    ("x = %time sum([1, 2])\nassert x == 3", ""),
    ("%%capture out\nprint('a')\nx = 1", ""),
    ("assert out.stdout == 'a\\n'", ""),
    ("%config InlineBackend.figure_formats = ['svg']\n%load_ext autoreload\n%autoreload 2", ""),
    ("%%writefile my.py\nA = 1", ""),
    ("from my import A\nassert A == 1", ""),
    ("if __name__ == '__main__':\n    x = 1\nassert x == 1", ""),
    ("import pickle\nclass A: pass\npickle.loads(pickle.dumps(A()))", ""),
    ("%pip install numpy", ""),
    ("print('a lot ' * 10_000_000)", ""),
    ("%%time\nx = 1", ""),
    ("display(x)", ""),
    ('hint("softmax")', ""),
    ("import os\nassert 'MY_SECRET_TOKEN' not in os.environ\nassert os.environ['PATH']", ""),
    ("with open('small.txt', 'w') as f:\n    f.write('x')", ""),
    ("with open('big.bin', 'wb') as f:\n    f.write(bytes(2**27))", "OSError"),
    ("huge = bytearray(2**34)", "MemoryError: "),
    ("name = input('Who? ')", "StdinNotImplementedError"),
    ("import sys; sys.exit(3)", "SystemExit"),
    ("this is no Python :", "SyntaxError"),
    ("x = '\0'", "SyntaxError"),
    ("import asyncio\nasyncio.run(asyncio.sleep(0))", "RuntimeError"),
    ("%%time\nimport nowhere\nx = 1", "ModuleNotFoundError"),
    ("x = 1\n1 / 0\nx = 2", "ZeroDivisionError"),
    ("assert x == 1, 'a cell ends where it fails'", ""),
    ("raise ValueError('\ud83d \\ud83d')", None),  # halves of an emoji: what follows goes on
    ("@check\ndef output_gradient(*all):\n    return np.ones((2**28, 8))", ""),
    ("import d2lmini.exercises.grading as g\nusual, g.SECONDS = g.SECONDS, 0.3", ""),
    ("@check\ndef kernel_regression(*all):\n    while True: pass", ""),
    ("g.SECONDS = usual", ""),
    (solved("softmax"), ""),
    (WRONG, ""),
    ("@check\ndef weighted_average(weights, values):\n    return values", ""),
    (solved("weighted_average"), ""),
    ("import threading, time\nthreading.Thread(target=lambda: time.sleep(10**6)).start()", ""),
    ("import sys\nsys.stdout = open('out.txt', 'w')", ""),
    ("sys.modules['torch'] = None", ""),
    ("check(object, name='OneHead')", "ImportError: "),
    (solved("count_parameters"), ""),
]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits are those of Linux")
def test_cells_of_all_kinds_run_as_in_jupyter_and_within_limits(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET_TOKEN", "hidden")
    path = write(tmp_path / "a.ipynb", *(source for source, _ in CELLS))
    report = grade_notebook(path, seconds=600, megabytes=3000)
    errors = {cell["cell"]: cell["error"] for cell in report["failed_cells"]}
    for number, (source, begins) in enumerate(CELLS, 3):
        error = errors.get(number, "")
        if begins is not None:
            assert error.startswith(begins) and bool(error) == bool(begins), (source, error)
    assert "pip install torch" in errors[len(CELLS) + 1]
    assert report["problem"] is None
    status = found(report)
    assert {name: status[name] for name in status if status[name] != "missing"} == {
        "softmax": "wrong",  # the last check of an exercise counts
        "weighted_average": "pass",
        "output_gradient": "error",
        "kernel_regression": "error",
        "OneHead": "failed",
        "count_parameters": "pass",
    }
    assert os.listdir(tmp_path) == ["a.ipynb"]


def test_chapters_with_all_solutions(tmp_path):
    asked = [*exercises(1), *(exercises(5) if HAS_TORCH else ())]
    report = grade_notebook(write(tmp_path / "all.ipynb", *map(solved, asked)))
    assert (report["problem"], report["failed_cells"]) == (None, [])
    assert found(report) == {e.name: "pass" for e in asked}
    assert report["passed"] == report["of"] == len(asked)


def test_an_endless_notebook_is_stopped_with_all_that_it_has_started(tmp_path):
    marker = tmp_path / "alive"
    child = f"import time\nwhile True:\n    open({str(marker)!r}, 'w').close(); time.sleep(0.05)"
    cells = [
        solved("softmax"),
        f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}])",
        "import time\nwhile True: time.sleep(0.1)",  # a busy machine may need seconds to get here
        solved("weighted_average"),
    ]
    report = grade_notebook(write(tmp_path / "endless.ipynb", *cells), seconds=15)
    assert report["problem"] == "stopped after 15 seconds, in code cell 5"
    assert found(report)["softmax"] == "pass"  # what was found before is kept
    assert found(report)["weighted_average"] == "not reached"
    assert found(report, "head")["weighted_average"] == report["problem"]
    if sys.platform != "win32":
        time.sleep(0.5)
        marker.unlink(missing_ok=True)
        time.sleep(0.5)
        assert not marker.exists()


def test_a_process_that_ends_early_is_a_problem(tmp_path, capsys):
    cells = [solved("softmax"), "import os; os._exit(7)", solved("weighted_average")]
    assert main(["grade", str(write(tmp_path / "a.ipynb", *cells))]) == 1
    assert "the kernel ended in code cell 4" in capsys.readouterr().out
    assert found(all_reports()[0])["softmax"] == "pass"


def test_results_that_a_learner_has_written_or_removed_are_no_results(tmp_path):
    results = tmp_path / "results.jsonl"
    for text in ("{}", "[" * 10**5, "<<<", '{"name": "softmax", "status": 3}'):
        results.write_text(text)
        assert _read(results) == [], text
    for make in (os.mkdir, os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
        results = tmp_path / f"results {make}"
        make(results)
        assert _read(results) == [], make
    folder = f"os.path.dirname(os.environ[{RESULTS!r}])"  # the kernel writes there, too
    cell = f"import os, shutil\nshutil.rmtree({folder}, ignore_errors=True)\nos._exit(0)"
    report = grade_notebook(write(tmp_path / "a.ipynb", cell))
    assert report["problem"] == "the kernel ended in code cell 3"
    assert report["exercises"] == []


def test_output_in_any_encoding(tmp_path):
    """import-linter#309: what the terminal cannot write does not stop anything."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    (tmp_path / "αλφα.ipynb").write_text("{")  # why it is no notebook is longer than its column
    show = "from d2lmini.exercises import *\ncheck(lambda s: 3 * s, name='softmax')\n"
    show += "print(grade(lambda s: s, name='softmax'))\nhint('softmax'); solution('softmax')\n"
    show += "for e in exercises(): print(e, e.mistakes); hint(e.name); solution(e.name)"
    grade = ["-m", "d2lmini.exercises", "grade", str(tmp_path)]
    for program, status, words in (grade, 1, b"not a notebook"), (["-c", show], 0, b"softmax"):
        done = subprocess.run([sys.executable, *program], capture_output=True, env=environment)
        assert (done.returncode, done.stderr) == (status, b"")
        assert words in done.stdout
    assert Path("grades.json").exists()


def test_without_jupyter_grading_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "nbclient", None)
    assert main(["grade", str(write(tmp_path / "a.ipynb", "1"))]) == 1
    assert "there is no nbclient: pip install" in capsys.readouterr().out


# What is said of it


def test_a_folder_a_table_and_a_json_file(tmp_path, capsys, here):
    average = find("weighted_average")
    write(
        tmp_path / "ada.ipynb",
        f"{average.solution}\ncheck({average.function}, name='weighted_average')",
        "@check\ndef softmax(scores):\n    e = np.exp2(scores)\n    return e / e.sum(axis=0)",
        find("kernel_regression").starter,
        "@check\ndef output_gradient(query, key, value):\n    return query[:, None] * widht",
        "raise ValueError('\\x1b[2J\\x1b]0;title\\x07 \\u202e')",  # orders to a terminal
    )
    write(tmp_path / "bob.ipynb", "@check\ndef softmax(scores):\n    return scores * 1.5")
    (tmp_path / "notes.txt").write_text("not a notebook")
    out, every = tmp_path / "grades.json", len(exercises(2))
    assert main(["grade", str(tmp_path), "--json", str(out)]) == 0
    said = capsys.readouterr().out
    assert "\\x1b[2J" in said and not {"\x1b", "\x07", "\u202e"} & set(said)
    *lines, last = said.splitlines()
    assert last == f"All that was found is in {out}"
    rows = [line.split(maxsplit=3) for line in lines]
    assert rows[0] == ["notebook", "exercise", "status", "found"]
    for row in (
        ["ada.ipynb", "weighted_average", "pass"],
        ["ada.ipynb", "softmax", "wrong", "axis"],
        ["ada.ipynb", "output_gradient", "error", "raised NameError: name 'widht' is not defined"],
        ["ada.ipynb", "leave_one_out_error", "missing", "not in the notebook."],
        ["ada.ipynb", "passed", "1", f"of {every}"],
        ["bob.ipynb", "softmax", "wrong", "wrong values."],
        ["bob.ipynb", "passed", "0", f"of {every}"],
    ):
        assert row in rows, row
    assert ["ada.ipynb", "kernel_regression", "todo"] in [row[:3] for row in rows]
    ada, bob = json.loads(out.read_text("utf-8"))["notebooks"]
    assert (ada["passed"], ada["of"], bob["passed"]) == (1, every, 0)
    assert found(ada, "mistake")["softmax"] == "axis"
    assert found(ada, "says")["softmax"] == find("softmax").mistakes[0].says
    assert found(bob, "head")["softmax"] == "wrong values. The smallest input that shows it:"
    assert ada["failed_cells"][-1]["error"].startswith("ValueError: \x1b[2J")
    assert main(["grade", str(tmp_path / "bob.ipynb"), "--json", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "wrong values" in said.out and said.err.startswith(f"cannot write {tmp_path}: ")


def test_what_does_not_say_its_chapter_counts_none_of_all_that_the_others_are_asked(tmp_path, here):
    renamed = solved("one_hot").replace("one_hot", "mine")
    write(tmp_path / "subs/right.ipynb", solved("one_hot"))
    write(tmp_path / "subs/renamed.ipynb", renamed)
    (tmp_path / "subs/half.ipynb").write_text('{"cells": [')
    main(["grade", str(tmp_path / "subs")])
    names = [e.name for e in exercises(1)]
    assert [[*found(one)] for one in all_reports()] == [names] * 3
    assert [(one["notebook"], one["passed"], one["of"]) for one in all_reports()] == [
        ("half.ipynb", 0, len(names)),
        ("renamed.ipynb", 0, len(names)),
        ("right.ipynb", 1, len(names)),
    ]
    (tmp_path / "02-hers.ipynb").write_text("{")
    report = grade_notebook(tmp_path / "02-hers.ipynb")
    assert (report["passed"], report["of"]) == (0, len(exercises(2)))


def test_one_word_for_each_reason(tmp_path, here):
    cells = [
        "@check\ndef softmax(scores):\n    return scores +",
        "@check\n@not_there\ndef weighted_average(weights, values):\n    ...",
        "if False:\n    check(None, name='kernel_regression')",
        WRONG.replace("softmax", "leave_out_one_error"),
    ]
    report = grade_notebook(write(tmp_path / "a.ipynb", *cells))
    head = {
        name: f"{status}: {found(report, 'head')[name]}" for name, status in found(report).items()
    }
    assert head["softmax"].startswith("failed: its cell failed: SyntaxError")
    assert "failed: its cell failed: NameError: name 'not_there'" in head["weighted_average"]
    assert head["kernel_regression"] == "not reached: its check was not called."
    assert head["output_gradient"] == "missing: not in the notebook."
    misspelt = "missing: not in the notebook; is 'leave_out_one_error' meant for it?"
    assert head["leave_one_out_error"] == misspelt


# Which files


def test_what_is_wrong_with_a_notebook_is_said(tmp_path, capsys):
    """MyST-NB#492: each in one line that says what it is and what to do."""
    texts = ["{", "[]", "3", '{"cells": [{}]}', '{"cells": 3}', "\x00", "[" * 10**5, "<<<<<<< HEAD"]
    for number, text in enumerate(texts):
        (tmp_path / f"bad {number}.ipynb").write_text(text, "utf-8")
    (tmp_path / "bytes.ipynb").write_bytes(b"\xff\xfe\xfd")
    (tmp_path / "merge.ipynb").write_text('{"cells": [\n<<<<<<< HEAD\n')
    (tmp_path / "old.ipynb").write_text(json.dumps({"nbformat": 3, "worksheets": [{"cells": []}]}))
    (tmp_path / "folder.ipynb").mkdir()
    (tmp_path / "folder.ipynb" / "empty.ipynb").touch()
    with (tmp_path / "huge.ipynb").open("wb") as file:
        file.truncate(2**30)
    (tmp_path / "link.ipynb").symlink_to("nowhere")
    (tmp_path / "loop.ipynb").symlink_to("loop.ipynb")
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert main(["grade", str(tmp_path), str(tmp_path / "none.ipynb")]) == 1
    said = {one["notebook"]: one["problem"] for one in all_reports()}
    for name, words in {
        **{f"bad {number}.ipynb": "not a notebook: " for number in range(len(texts))},
        "bytes.ipynb": "not a notebook: UnicodeDecodeError",
        "merge.ipynb": "merge that was not finished: take one side",
        "old.ipynb": "format 3: save it again with Jupyter",
        "empty.ipynb": "the file is empty",
        "huge.ipynb": "larger than 64 MB",
        "link.ipynb": "No such file",
        "none.ipynb": "No such file",
        "loop.ipynb": "",
        "pipe.ipynb": "not a file",
    }.items():
        assert words in said[name], name
    assert "folder.ipynb" not in said
    assert "problem  not a notebook: UnicodeDecodeError" in capsys.readouterr().out


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_notebook_in_another_encoding_of_unicode(tmp_path, encoding):
    path = write(tmp_path / "a.ipynb", "x = 'ä'")
    path.write_bytes(path.read_text("utf-8").encode(encoding))
    assert code_cells(path)[-1] == "x = 'ä'"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "usage:"),
        ("grade", "usage:"),
        ("other", "usage:"),
        ("grade x --seconds 0", "--seconds must be at least 1"),
        ("grade x --memory a", "usage:"),
        ("grade x --json mine.ipynb", "would be written over a notebook"),
        ("grade .", "no notebook there"),
    ],
)
def test_wrong_arguments(arguments, words, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments.split())
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


def test_a_folder_for_each_learner(tmp_path, capsys, here):
    """nbgrader PR 30, #1905: names as long as needed to differ."""
    for name in ("ada", "bob"):
        for folder in (tmp_path / name, tmp_path / name / ".ipynb_checkpoints"):
            write(folder / "hw1.ipynb", WRONG)
    assert main(["grade", str(tmp_path)]) == 0
    rows = capsys.readouterr().out.splitlines()[1:-2]
    assert {row.split()[0] for row in rows} == {"ada/hw1.ipynb", "bob/hw1.ipynb"}


def test_every_file_and_every_folder_is_accounted_for(tmp_path, capsys, here):
    for name in ("ada", "bob", "carol", "__MACOSX/ada", "dan/.ipynb_checkpoints"):
        (tmp_path / "subs" / name).mkdir(parents=True)
    ada = write(tmp_path / "subs/ada/hw1.IPYNB", "1")
    write(tmp_path / "subs/ada/\x1b[31mhw\n2\u202e.ipynb", "1")
    for copy in ("__MACOSX/ada/._hw1.ipynb", "ada/._hw1.ipynb", "dan/.ipynb_checkpoints/a.ipynb"):
        (tmp_path / "subs" / copy).write_bytes(b"\x00\x05\x16\x07")
    (tmp_path / "subs/bob/link").symlink_to(ada.parent)
    (tmp_path / "subs/bob/link/again").symlink_to(tmp_path / "subs/bob")
    assert main(["grade", str(tmp_path / "subs"), str(ada), f"{ada.parent}/../ada/hw1.IPYNB"]) == 1
    assert not {"\x1b", "\u202e"} & set(capsys.readouterr().out)
    empty = [Path(one["notebook"]).name for one in all_reports() if one["problem"]]
    assert empty == ["carol", "dan"]
    odd = "\x1b[31mhw\n2\u202e.ipynb"
    graded = [one["notebook"] for one in all_reports() if not one["problem"]]
    assert graded == [f"ada/{odd}", "ada/hw1.IPYNB", f"link/{odd}", "link/hw1.IPYNB"]


def test_an_interrupted_command_keeps_what_it_has_found(tmp_path, capsys, monkeypatch, here):
    for name in "abc":
        write(tmp_path / f"{name}.ipynb", solved("softmax"))

    def interrupted(path, *limits):
        if path.name == "b.ipynb":
            raise KeyboardInterrupt
        return grade_notebook(path, *limits)

    monkeypatch.setattr("d2lmini.exercises.__main__.grade_notebook", interrupted)
    assert main(["grade", str(tmp_path)]) == 1
    assert "interrupted: 2 of 3 not graded" in capsys.readouterr().out
    first, _ = all_reports()
    assert (first["notebook"], first["passed"]) == ("a.ipynb", 1)


def test_what_is_checked_is_found_however_it_is_written():
    cells = [
        "@check\ndef my_softmax(s): ...",
        "import d2lmini.exercises as ex\n@ex.check(name='attention')\ndef f(q, k, v): ...",
        "check(merge_heads)\ncheck(lambda x: x, name='split_heads')",
        "@check\nclass OneHead(nn.Module):\n    oops =",
        "%%time\n!ls\n@check\ndef project(x): ...",
        "from d2lmini.exercises import check as test\n@test\ndef entropy(w): ...",
        "get_ipython().run_cell_magic()\nshell.run_cell_magic(*x)\nrun_cell_magic('time', '', 3)",
    ]
    found = {"my_softmax": 1, "attention": 2, "merge_heads": 3, "split_heads": 3, "OneHead": 4}
    assert checked(cells) == found | {"project": 5, "entropy": 6}


# A hundred submissions: of each chapter one of each kind. A kind is the cells that it makes of a
# chapter's exercises, and the status that each exercise then has, one of two if two are given.


def slipped(exercise):
    """Return a cell with the first known mistake of an exercise, as if a learner had made it."""
    return f"""from d2lmini.exercises import find
check(find({exercise.name!r}).mistakes[0].fn, name={exercise.name!r})"""


SUBMITTED = {
    "all right": (solved, "pass"),
    "not begun": (lambda e: e.starter, "todo"),
    "slips": (slipped, "wrong error"),
    "renamed": (lambda e: solved(e).replace(e.function, "their_own"), "missing"),
    "no Python": (lambda e: solved(e).replace("):\n", ")\n", 1), "failed"),
    "leaves": (lambda e: f"import sys; sys.exit()\n{solved(e)}", "failed"),
    "right, then wrong": (
        lambda e: f"{solved(e)}\n\ncheck(lambda *all: 'none', name={e.name!r})",
        "wrong error",
    ),
    "no calls": (lambda e: e.solution, "missing"),
    "half a file": (None, "not-reached"),
    "empty": (None, "not-reached"),
}


@pytest.mark.weekly
def test_a_hundred_submissions_are_graded_each_as_it_should_be(tmp_path, capsys):
    pytest.importorskip("torch")
    expected = {}
    for chapter in range(1, 11):
        for kind, (cell, status) in SUBMITTED.items():
            path = tmp_path / f"{chapter:02} {kind}.ipynb"
            asked = exercises(chapter)
            expected[path.name] = ({e.name for e in asked}, set(status.split()))
            write(path, *(cell(exercise) for exercise in asked if cell))
            if cell is None:
                path.write_text("" if kind == "empty" else path.read_text("utf-8")[:-40], "utf-8")
    assert len(expected) == 100
    assert main(["grade", str(tmp_path)]) == 1  # some of them are no notebooks
    assert {one["notebook"] for one in all_reports()} == {*expected}
    for one in all_reports():
        names, status = expected[one["notebook"]]
        assert {*found(one)} == names and one["of"] == len(names), one["notebook"]
        assert {each.replace(" ", "-") for each in found(one).values()} <= status, one["notebook"]
        assert one["passed"] == (one["of"] if status == {"pass"} else 0), one["notebook"]
        assert bool(one["problem"]) == ("half" in one["notebook"] or "empty" in one["notebook"])
