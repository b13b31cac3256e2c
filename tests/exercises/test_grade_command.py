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
from answers import needs_torch

from d2lmini.exercises import exercises, find
from d2lmini.exercises.__main__ import grade_notebook, main
from d2lmini.exercises.definition import RESULTS
from d2lmini.exercises.notebook import LARGEST_FILE, _read, checked

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
    ("np.exp?\n!ls", ""),
    ("import asyncio\nawait asyncio.sleep(0)", ""),
    ("print('a lot ' * 10_000_000)", ""),
    ("import os\nassert 'MY_SECRET_TOKEN' not in os.environ\nassert os.environ['PATH']", ""),
    ("with open('big.bin', 'wb') as f:\n    f.write(bytes(2**27))", "OSError"),
    ("huge = bytearray(2**34)", "MemoryError: "),
    ("name = input('Who? ')", "StdinNotImplementedError"),
    ("import sys; sys.exit(3)", "SystemExit"),
    ("this is no Python :", "SyntaxError"),
    ("x = 1\n1 / 0\nx = 2", "ZeroDivisionError"),
    ("assert x == 1, 'a cell ends where it fails'", ""),
    ("raise ValueError('\ud83d \\ud83d')", None),  # halves of an emoji: what follows goes on
    ("import d2lmini.exercises.grading as g\nusual, g.SECONDS = g.SECONDS, 0.3", ""),
    ("@check\ndef kernel_regression(*all):\n    while True: pass", ""),
    ("g.SECONDS = usual", ""),
    (solved("softmax"), ""),
    (WRONG, ""),
    ("import threading, time\nthreading.Thread(target=lambda: time.sleep(10**6)).start()", ""),
    ("import sys\nsys.stdout = open('out.txt', 'w')", ""),
    *((solved(exercise), "") for exercise in exercises(5)),
]


@needs_torch
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
    assert report["problem"] is None
    status = found(report)
    assert {name: status[name] for name in status if status[name] != "missing"} == {
        "softmax": "wrong",  # the last check of an exercise counts
        "kernel_regression": "error",
    } | {e.name: "pass" for e in exercises(5)}
    assert (os.listdir(tmp_path), os.listdir()) == (["a.ipynb"], [])


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


def test_output_in_any_encoding(tmp_path):
    """import-linter#309: what the terminal cannot write does not stop anything."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    (tmp_path / "αλφα.ipynb").write_text("{")  # why it is no notebook is longer than its column
    grade = [sys.executable, "-m", "d2lmini.exercises", "grade", str(tmp_path)]
    done = subprocess.run(grade, capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (1, b"") and b"not a notebook" in done.stdout


def test_without_jupyter_grading_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "nbclient", None)
    assert main(["grade", str(write(tmp_path / "a.ipynb", "1"))]) == 1
    assert "there is no nbclient: pip install" in capsys.readouterr().out


# What is said of it


def test_a_folder_a_table_and_a_json_file(tmp_path, capsys, here):
    write(
        tmp_path / "ada.ipynb",
        solved("weighted_average"),
        "@check\ndef softmax(scores):\n    e = np.exp2(scores)\n    return e / e.sum(axis=0)",
        "@check\ndef output_gradient(query, key, value):\n    return query[:, None] * widht",
        "raise ValueError('\\x1b[2J\\x1b]0;title\\x07 \\u202e')",  # orders to a terminal
    )
    write(tmp_path / "bob.ipynb", WRONG)
    out, every = tmp_path / "grades.json", len(exercises(2))
    assert main(["grade", str(tmp_path), "--json", str(out)]) == 0
    said = capsys.readouterr().out
    assert "\\x1b[2J" in said and not {"\x1b", "\x07", "\u202e"} & set(said)
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert lines[0] == "notebook exercise status found"
    assert lines[-1] == f"All that was found is in {out}"
    assert {
        "ada.ipynb weighted_average pass",
        "ada.ipynb softmax wrong axis",
        "ada.ipynb output_gradient error raised NameError: name 'widht' is not defined",
        f"ada.ipynb passed 1 of {every}",
    } <= {*lines}
    ada, bob = json.loads(out.read_text("utf-8"))["notebooks"]
    assert (ada["passed"], ada["of"], bob["passed"]) == (1, every, 0)
    assert main(["grade", str(tmp_path / "bob.ipynb"), "--json", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "wrong values" in said.out and said.err.startswith(f"cannot write {tmp_path}: ")


def test_what_does_not_say_its_chapter_counts_none_of_all_that_the_others_are_asked(tmp_path, here):
    write(tmp_path / "subs/right.ipynb", solved("one_hot"))
    write(tmp_path / "subs/renamed.ipynb", solved("one_hot").replace("one_hot", "mine"))
    (tmp_path / "subs/half.ipynb").write_text('{"cells": [')
    main(["grade", str(tmp_path / "subs")])
    every = len(exercises(1))
    assert [(one["passed"], one["of"]) for one in all_reports()] == [(0, every)] * 2 + [(1, every)]
    (tmp_path / "02-hers.ipynb").write_text("{")
    assert grade_notebook(tmp_path / "02-hers.ipynb")["of"] == len(exercises(2))


def test_one_word_for_each_reason(tmp_path, here):
    cells = [
        "@check\ndef softmax(scores):\n    return scores +",
        "if False:\n    check(None, name='kernel_regression')",
        WRONG.replace("softmax", "leave_out_one_error"),
    ]
    head = found(grade_notebook(write(tmp_path / "a.ipynb", *cells)), "head")
    assert head["softmax"].startswith("its cell failed: SyntaxError")
    assert head["kernel_regression"] == "its check was not called."
    assert head["output_gradient"] == "not in the notebook."
    assert head["leave_one_out_error"].endswith("is 'leave_out_one_error' meant for it?")


# Which files

FAULTS = {
    "half": ("{", "not a notebook: JSONDecodeError"),
    "empty": ("", "the file is empty"),
    "merge": ('{"cells": [\n<<<<<<< HEAD\n', "merge that was not finished: take one side"),
    "old": ('{"nbformat": 3, "worksheets": []}', "format 3: save it again with Jupyter"),
    "bytes": ("\udcff\udcfe\udcfd", "not a notebook: UnicodeDecodeError"),
    "huge": (" " * (LARGEST_FILE + 1), "larger than 64 MB"),
}


def test_what_is_wrong_with_a_notebook_is_said(tmp_path):
    """MyST-NB#492: each in one line that says what it is and what to do."""
    for name, (text, _) in FAULTS.items():
        (tmp_path / f"{name}.ipynb").write_bytes(text.encode("utf-8", "surrogateescape"))
    (tmp_path / "link.ipynb").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe.ipynb")
    assert main(["grade", str(tmp_path)]) == 1
    said = {one["notebook"].removesuffix(".ipynb"): one["problem"] for one in all_reports()}
    assert "No such file" in said["link"] and said["pipe"] == "not a file"
    assert not [name for name, (_, words) in FAULTS.items() if words not in said[name]], said


def test_wrong_arguments(capsys):
    for arguments, words in {
        "x --seconds 0": "--seconds must be at least 1",
        "x --json mine.ipynb": "would be written over a notebook",
        ".": "no notebook there",
    }.items():
        with pytest.raises(SystemExit):
            main(["grade", *arguments.split()])
        assert words in capsys.readouterr().err


def test_every_file_and_every_folder_is_accounted_for(tmp_path, capsys, here):
    """nbgrader PR 30, #1905: names as long as needed to differ."""
    ada = write(tmp_path / "subs/ada/hw1.IPYNB", "1")
    for name in ("ada/\x1b\n2\u202e.ipynb", "bob/hw1.IPYNB", "dan/.ipynb_checkpoints/a.ipynb"):
        write(tmp_path / "subs" / name, "1")
    for copy in ("__MACOSX/ada/hw1.ipynb", "ada/._hw1.ipynb"):
        write(tmp_path / "subs" / copy).write_bytes(b"\x00\x05\x16\x07")
    assert main(["grade", str(tmp_path / "subs"), str(ada), f"{ada.parent}/../ada/hw1.IPYNB"]) == 1
    assert not {"\x1b", "\u202e"} & set(capsys.readouterr().out)
    assert [one["notebook"][-4:] for one in all_reports() if one["problem"]] == ["dan/"]
    graded = [one["notebook"] for one in all_reports() if not one["problem"]]
    assert graded == ["ada/\x1b\n2\u202e.ipynb", "ada/hw1.IPYNB", "bob/hw1.IPYNB"]


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
    assert [one["passed"] for one in all_reports()] == [1, 0]


def test_what_is_checked_is_found_however_it_is_written():
    cells = [
        "@check\ndef my_softmax(s): ...",
        "import d2lmini.exercises as ex\n@ex.check(name='attention')\ndef f(q, k, v): ...",
        "check(merge_heads)\ncheck(lambda x: x, name='split_heads')",
        "@check\nclass OneHead(nn.Module):\n    oops =",
        "%%time\n!ls\n@check\ndef project(x): ...",
        "from d2lmini.exercises import check as test\n@test\ndef entropy(w): ...",
    ]
    found = {"my_softmax": 1, "attention": 2, "merge_heads": 3, "split_heads": 3, "OneHead": 4}
    assert checked(cells) == found | {"project": 5, "entropy": 6}
