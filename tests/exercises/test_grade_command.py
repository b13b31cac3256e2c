"""``python -m d2lmini.exercises grade``: a folder of notebooks, some of them bad."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from answers import on

from d2lmini.exercises import exercises, find
from d2lmini.exercises.__main__ import grade_notebook, main
from d2lmini.exercises.notebook import plain_python

IMPORTS = "import numpy as np\n%matplotlib inline"
IMPORT = "from d2lmini.exercises import check, hint, solution"


def solved(exercise):
    """Return the cell of an exercise with its solution in it."""
    text = exercise.solution
    at = text.index(f"{'class' if exercise.needs_torch else 'def'} {exercise.function}")
    return text[:at] + "@check\n" + text[at:]


def write(path, *cells):
    """Write a notebook of these code cells."""
    kinds = [{"cell_type": "markdown", "metadata": {}, "source": ["# Title"]}]
    kinds += [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": cell.splitlines(keepends=True),
        }
        for cell in (IMPORTS, IMPORT, *cells)
    ]
    notebook = {"cells": kinds, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook), "utf-8")
    return path


def statuses(report):
    return {exercise["name"]: exercise["status"] for exercise in report["exercises"]}


@pytest.fixture(autouse=True)
def elsewhere(tmp_path_factory, monkeypatch):
    """Work in a folder of its own, as the command writes grades.json where it is called."""
    monkeypatch.chdir(tmp_path_factory.mktemp("called_here"))


@pytest.mark.parametrize("chapter", [1, 3, pytest.param(5, marks=on(find("ManyHeads")).marks)])
def test_a_chapter_with_all_solutions(tmp_path, chapter):
    cells = [solved(exercise) for exercise in exercises(chapter)]
    report = grade_notebook(write(tmp_path / "all.ipynb", *cells, 'hint("softmax")'))
    assert report["problem"] is None
    assert report["failed_cells"] == []
    assert set(statuses(report).values()) == {"pass"}
    assert report["passed"] == report["of"] == len(exercises(chapter))


def test_a_folder_a_table_and_a_json_file(tmp_path, capsys):
    write(
        tmp_path / "ada.ipynb",
        find("weighted_average").solution + "\ncheck(weighted_average)",
        "@check\ndef softmax(scores):\n    e = np.exp(scores)\n    return e / e.sum(axis=0)",
        find("kernel_regression").starter,
        "@check\ndef output_gradient(query, key, value):\n    return query[:, None] * widht",
    )
    write(tmp_path / "bob.ipynb", solved(find("softmax")))
    (tmp_path / "notes.txt").write_text("not a notebook")
    out = tmp_path / "grades.json"
    assert main(["grade", str(tmp_path), "--json", str(out)]) == 0
    lines = [line.split(maxsplit=3) for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["notebook", "exercise", "status", "found"]
    assert ["ada.ipynb", "weighted_average", "pass"] in lines
    assert ["ada.ipynb", "softmax", "wrong", "axis"] in lines
    assert lines[3][:3] == ["ada.ipynb", "kernel_regression", "todo"]
    assert lines[4][3] == "raised NameError: name 'widht' is not defined"
    assert lines[5] == ["ada.ipynb", "leave_one_out_error", "missing", "not in the notebook."]
    assert ["ada.ipynb", "passed", "1", "of 5"] in lines
    assert ["bob.ipynb", "passed", "1", "of 5"] in lines
    ada, bob = json.loads(out.read_text("utf-8"))["notebooks"]
    assert (ada["passed"], ada["of"], bob["passed"]) == (1, 5, 1)
    assert ada["exercises"][1]["mistake"] == "axis"
    assert ada["exercises"][1]["says"] == find("softmax").mistakes[0].says


def test_the_json_file_is_written_without_being_asked_for(tmp_path, capsys):
    path = write(tmp_path / "a.ipynb", "@check\ndef softmax(scores):\n    return scores * 1.5")
    assert main(["grade", str(path)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[-1] == "All that was found is in grades.json"
    line = next(line for line in said if " softmax " in line)
    assert line.endswith("wrong values.")
    (report,) = json.loads(Path("grades.json").read_text("utf-8"))["notebooks"]
    (found,) = (e for e in report["exercises"] if e["name"] == "softmax")
    assert found["head"] == "wrong values. The smallest input that shows it:"


def test_a_json_file_that_cannot_be_written(tmp_path, capsys):
    path = write(tmp_path / "a.ipynb", find("softmax").starter)
    assert main(["grade", str(path), "--json", str(tmp_path)]) == 1
    said = capsys.readouterr()
    assert "not attempted yet" in said.out
    assert said.err.startswith(f"cannot write {tmp_path}: ")


def test_the_last_check_of_an_exercise_counts(tmp_path):
    right = solved(find("softmax"))
    wrong = "@check\ndef softmax(scores):\n    return scores"
    assert statuses(grade_notebook(write(tmp_path / "a.ipynb", right, wrong)))["softmax"] == "wrong"
    assert statuses(grade_notebook(write(tmp_path / "b.ipynb", wrong, right)))["softmax"] == "pass"


def test_cells_that_fail_do_not_stop_the_others(tmp_path):
    report = grade_notebook(
        write(
            tmp_path / "fails.ipynb",
            "1 / 0",
            "raise SystemExit",
            "this is no Python :",
            "!ls",
            "print('a lot ' * 10_000_000)",
            "%%time\nx = 1",
            "display(x)",
            solved(find("softmax")),
        )
    )
    assert report["problem"] is None
    assert statuses(report)["softmax"] == "pass"
    errors = {cell["cell"]: cell["error"].split(":")[0] for cell in report["failed_cells"]}
    assert errors == {3: "ZeroDivisionError", 4: "SystemExit", 5: "SyntaxError"}


def test_an_endless_notebook_is_stopped_with_all_that_it_has_started(tmp_path):
    marker = tmp_path / "alive"
    child = f"import time\nwhile True:\n    open({str(marker)!r}, 'w').close(); time.sleep(0.05)"
    start = time.monotonic()
    report = grade_notebook(
        write(
            tmp_path / "endless.ipynb",
            solved(find("softmax")),
            f"import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', {child!r}])",
            "while True: pass",
            solved(find("weighted_average")),
        ),
        seconds=6,
    )
    assert time.monotonic() - start < 30
    assert report["problem"] == "stopped after 6 seconds"
    assert statuses(report)["softmax"] == "pass"  # what was found before is kept
    missing = next(e for e in report["exercises"] if e["name"] == "weighted_average")
    assert (missing["status"], missing["head"]) == (
        "missing",
        "not reached: stopped after 6 seconds",
    )
    if sys.platform != "win32":
        time.sleep(0.5)
        marker.unlink(missing_ok=True)
        time.sleep(0.5)
        assert not marker.exists()


def test_an_endless_answer_is_stopped_and_the_notebook_goes_on(tmp_path):
    report = grade_notebook(
        write(
            tmp_path / "endless.ipynb",
            "import d2lmini.exercises.grading\nd2lmini.exercises.grading.SECONDS = 0.3",
            "@check\ndef softmax(scores):\n    while True: pass",
            solved(find("weighted_average")),
        )
    )
    assert report["problem"] is None
    assert statuses(report)["softmax"] == "error"
    assert statuses(report)["weighted_average"] == "pass"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is limited on Linux only")
def test_memory_is_limited(tmp_path):
    cells = [
        "@check\ndef softmax(scores):\n    return np.ones((2**28, 8))",
        "huge = bytearray(2**34)",
        solved(find("weighted_average")),
    ]
    report = grade_notebook(write(tmp_path / "memory.ipynb", *cells), megabytes=3000)
    found = statuses(report)
    assert (found["softmax"], found["weighted_average"]) == ("error", "pass")
    assert report["failed_cells"] == [{"cell": 4, "error": "MemoryError: "}]


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of file size on Windows")
def test_the_size_of_files_is_limited_and_the_folder_is_a_temporary_one(tmp_path):
    path = write(
        tmp_path / "writes.ipynb",
        "with open('big.bin', 'wb') as f:\n    f.write(bytes(2**27))",
        "with open('small.txt', 'w') as f:\n    f.write('x')",
        solved(find("softmax")),
    )
    report = grade_notebook(path)
    assert [cell["cell"] for cell in report["failed_cells"]] == [3]
    assert statuses(report)["softmax"] == "pass"
    assert os.listdir(tmp_path) == ["writes.ipynb"]


def test_a_crash_of_python_loses_only_what_comes_after(tmp_path):
    report = grade_notebook(
        write(tmp_path / "crash.ipynb", solved(find("softmax")), "import os; os._exit(7)")
    )
    assert report["problem"] == "the process ended with status 7"
    assert statuses(report)["softmax"] == "pass"


def test_secrets_in_the_environment_are_not_passed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET_TOKEN", "hidden")
    cell = "import os\nassert 'MY_SECRET_TOKEN' not in os.environ\nassert os.environ['PATH']"
    report = grade_notebook(write(tmp_path / "a.ipynb", cell))
    assert report["failed_cells"] == []
    assert report["exercises"] == []


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": [{}]}', '{"cells": 3}', "\x00"])
def test_what_is_not_a_notebook(tmp_path, text, capsys):
    path = tmp_path / "bad.ipynb"
    path.write_text(text, "utf-8")
    assert main(["grade", str(path)]) == 1
    assert "not a notebook: " in capsys.readouterr().out


def test_bytes_that_are_no_text_and_a_file_that_is_not_there(tmp_path, capsys):
    (tmp_path / "bad.ipynb").write_bytes(b"\xff\xfe\xfd")
    assert main(["grade", str(tmp_path / "bad.ipynb"), str(tmp_path / "none.ipynb")]) == 1
    said = capsys.readouterr().out
    assert "problem  not a notebook: UnicodeDecodeError" in said
    assert "problem  No such file" in said


@pytest.mark.parametrize(
    "arguments",
    [[], ["grade"], ["other"], ["grade", "x", "--seconds", "0"], ["grade", "x", "--memory", "a"]],
)
def test_wrong_arguments(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_a_folder_without_notebooks(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(["grade", str(tmp_path)])
    assert "no notebook there" in capsys.readouterr().err


def test_as_a_command(tmp_path):
    path = write(tmp_path / "a.ipynb", find("softmax").starter)
    done = subprocess.run(
        [sys.executable, "-m", "d2lmini.exercises", "grade", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "not attempted yet" in done.stdout
    assert done.stderr == ""


def test_a_notebook_with_modules_where_there_is_no_torch(tmp_path):
    cells = [
        "import sys\nsys.modules['torch'] = None",
        solved(find("count_parameters")),
        "check(object, name='OneHead')",
    ]
    report = grade_notebook(write(tmp_path / "a.ipynb", *cells))
    assert statuses(report)["count_parameters"] == "pass"
    assert statuses(report)["OneHead"] == "missing"
    (failed,) = report["failed_cells"]
    assert failed["cell"] == 5
    assert "pip install 'd2lmini[torch]'" in failed["error"]


def test_only_what_is_not_python_is_left_out():
    assert plain_python("x = (7\n     % 4)") == "x = (7\n     % 4)"
    assert plain_python("if True:\n    %pip install x") == "if True:\n    pass"
    assert plain_python("%%time\ny = 1\n!ls") == "pass\ny = 1\npass"
