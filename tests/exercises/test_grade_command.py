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
from d2lmini.exercises.notebook import checked

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


def test_what_does_not_say_its_chapter_counts_none_of_all_that_the_others_are_asked(tmp_path):
    write(tmp_path / "right.ipynb", solved(find("one_hot")))
    write(tmp_path / "renamed.ipynb", solved(find("one_hot")).replace("one_hot", "mine"))
    (tmp_path / "half.ipynb").write_text('{"cells": [')
    main(["grade", str(tmp_path)])
    reports = json.loads(Path("grades.json").read_text())["notebooks"]
    names = [e.name for e in exercises(1)]
    assert [[e["name"] for e in one["exercises"]] for one in reports] == [names] * 3
    counts = {one["notebook"]: (one["passed"], one["of"]) for one in reports}
    all_of_them = len(names)
    assert counts == {
        "half.ipynb": (0, all_of_them),
        "renamed.ipynb": (0, all_of_them),
        "right.ipynb": (1, all_of_them),
    }
    near = write(tmp_path / "near.ipynb", solved(find("one_hot")).replace("one_hot", "one_hott"))
    found = grade_notebook(near)["exercises"][0]
    assert (found["name"], found["head"]) == (
        "one_hot",
        "not in the notebook; is 'one_hott' meant for it?",
    )


@pytest.mark.parametrize("chapter", [1, pytest.param(5, marks=on(find("CausalHeads")).marks)])
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
        find("weighted_average").solution
        + f"\ncheck({find('weighted_average').function}, name='weighted_average')",
        "@check\ndef softmax(scores):\n    e = np.exp2(scores)\n    return e / e.sum(axis=0)",
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
    rows = {tuple(line[:2]): line[2:] for line in lines}
    assert rows["ada.ipynb", "kernel_regression"][0] == "todo"
    assert rows["ada.ipynb", "output_gradient"] == [
        "error",
        "raised NameError: name 'widht' is not defined",
    ]
    assert rows["ada.ipynb", "leave_one_out_error"] == ["missing", "not in the notebook."]
    every = len(exercises(2))
    assert ["ada.ipynb", "passed", "1", f"of {every}"] in lines
    assert ["bob.ipynb", "passed", "1", f"of {every}"] in lines
    ada, bob = json.loads(out.read_text("utf-8"))["notebooks"]
    assert (ada["passed"], ada["of"], bob["passed"]) == (1, every, 1)
    found = {e["name"]: e for e in ada["exercises"]}["softmax"]
    assert (found["mistake"], found["says"]) == ("axis", find("softmax").mistakes[0].says)


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
    assert report["problem"] == "stopped after 6 seconds, in code cell 5"
    assert statuses(report)["softmax"] == "pass"  # what was found before is kept
    unseen = next(e for e in report["exercises"] if e["name"] == "weighted_average")
    assert (unseen["status"], unseen["head"]) == ("not reached", report["problem"])
    if sys.platform != "win32":
        time.sleep(0.5)
        marker.unlink(missing_ok=True)
        time.sleep(0.5)
        assert not marker.exists()


def test_an_endless_answer_is_stopped_and_the_notebook_goes_on(tmp_path):
    report = grade_notebook(
        write(
            tmp_path / "endless.ipynb",
            "import d2lmini.exercises.grading as g\nusual, g.SECONDS = g.SECONDS, 0.3",
            "@check\ndef softmax(scores):\n    while True: pass",
            "g.SECONDS = usual",
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


def test_secrets_in_the_environment_are_not_passed_on(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_SECRET_TOKEN", "hidden")
    cell = "import os\nassert 'MY_SECRET_TOKEN' not in os.environ\nassert os.environ['PATH']"
    report = grade_notebook(write(tmp_path / "a.ipynb", cell))
    assert report["failed_cells"] == []
    assert report["exercises"] == []


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "3", '{"cells": [{}]}', '{"cells": 3}', "\x00", "[" * 10**5, "<<<<<<< HEAD"],
)
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


def test_what_is_wrong_with_a_notebook_is_said(tmp_path, capsys):
    """MyST-NB#492: each in one line that says what it is and what to do."""
    old = {"nbformat": 3, "worksheets": [{"cells": []}]}
    (tmp_path / "merge.ipynb").write_text('{"cells": [\n<<<<<<< HEAD\n')
    (tmp_path / "old.ipynb").write_text(json.dumps(old))
    (tmp_path / "folder.ipynb").mkdir()
    (tmp_path / "folder.ipynb" / "empty.ipynb").touch()
    with (tmp_path / "huge.ipynb").open("wb") as file:
        file.truncate(2**30)
    (tmp_path / "link.ipynb").symlink_to("nowhere")
    (tmp_path / "loop.ipynb").symlink_to("loop.ipynb")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.ipynb")
    assert main(["grade", str(tmp_path)]) == 1
    reports = json.loads(Path("grades.json").read_text("utf-8"))["notebooks"]
    said = {one["notebook"]: one["problem"] for one in reports}
    assert "merge that was not finished: take one side" in said["merge.ipynb"]
    assert "format 3: save it again with Jupyter" in said["old.ipynb"]
    assert "the file is empty" in said["empty.ipynb"]
    assert "larger than 64 MB" in said["huge.ipynb"]
    assert "No such file" in said["link.ipynb"]
    assert "loop.ipynb" in said
    assert "not a file" in said.get("pipe.ipynb", "not a file")
    assert "folder.ipynb" not in said


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32"])
def test_a_notebook_in_another_encoding_of_unicode(tmp_path, encoding):
    path = write(tmp_path / "a.ipynb", solved(find("softmax")))
    path.write_bytes(path.read_text("utf-8").encode(encoding))
    assert statuses(grade_notebook(path))["softmax"] == "pass"


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["grade"],
        ["other"],
        ["grade", "x", "--seconds", "0"],
        ["grade", "x", "--memory", "a"],
        ["grade", "x", "--json", "mine.ipynb"],
    ],
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


def test_a_notebook_with_modules_where_there_is_no_torch(tmp_path):
    cells = [
        "import sys\nsys.modules['torch'] = None",
        solved(find("count_parameters")),
        "check(object, name='OneHead')",
    ]
    report = grade_notebook(write(tmp_path / "a.ipynb", *cells))
    assert statuses(report)["count_parameters"] == "pass"
    assert statuses(report)["OneHead"] == "failed"
    (failed,) = report["failed_cells"]
    assert failed["cell"] == 5
    assert "pip install torch" in failed["error"]


# otter-grader#604, #756: a right answer in a notebook as people write them
OTHERS = {
    "help": "np.exp?",
    "time it": "t = %timeit -o -n 1 sum(range(9))",
    "another language": "%%javascript\nalert('hi');",
    "await": "import asyncio\nawait asyncio.sleep(0)",
    "annotations": "from __future__ import annotations",
    "the value of a timed call": "x = %time sum([1, 2])\nassert x == 3",
    "a captured cell": "%%capture out\nprint('a')\nx = 1",
    "what a notebook prints": "assert out.stdout == 'a\\n'",
    "plots": "%config InlineBackend.figure_formats = ['svg']\n%load_ext autoreload\n%autoreload 2",
    "a module of its own": "%%writefile my.py\nA = 1",
    "its import": "from my import A\nassert A == 1",
    "main": "if __name__ == '__main__':\n    x = 1\nassert x == 1",
    "what a cell defines": "import pickle\nclass A: pass\npickle.loads(pickle.dumps(A()))",
    "what is installed": "%pip install numpy",
}
PROCESSES = {
    "a thread that never ends": "import threading, time\n"
    "threading.Thread(target=lambda: time.sleep(10**6)).start()",
    "closed output": "import sys\nsys.stdout = open('out.txt', 'w')",
}


def test_a_right_answer_beside_what_is_not_python(tmp_path):
    report = grade_notebook(write(tmp_path / "a.ipynb", *OTHERS.values(), solved(find("softmax"))))
    names = [*OTHERS]
    assert {names[cell["cell"] - 3]: cell["error"] for cell in report["failed_cells"]} == {}
    assert (report["problem"], statuses(report)["softmax"]) == (None, "pass")


@pytest.mark.parametrize("source", PROCESSES.values(), ids=PROCESSES)
def test_a_right_answer_after_a_thread_or_without_an_output(tmp_path, source):
    report = grade_notebook(write(tmp_path / "a.ipynb", source, solved(find("softmax"))))
    assert (report["problem"], report["failed_cells"]) == (None, [])
    assert statuses(report)["softmax"] == "pass"


FAILS = {
    "asks": ("name = input('Who? ')", "StdinNotImplementedError"),
    "leaves": ("import sys; sys.exit(3)", "SystemExit"),
    "no character": ("x = '\0'", "SyntaxError"),
    "a loop in a loop": ("import asyncio\nasyncio.run(asyncio.sleep(0))", "RuntimeError"),
    "a module of another place": ("%%time\nimport nowhere\nx = 1", "ModuleNotFoundError"),
}


def test_a_right_answer_beside_what_fails(tmp_path):
    cells = [source for source, _ in FAILS.values()]
    report = grade_notebook(write(tmp_path / "a.ipynb", *cells, solved(find("softmax"))))
    errors = {cell["cell"]: cell["error"] for cell in report["failed_cells"]}
    for number, (name, (_, error)) in enumerate(FAILS.items(), 3):
        assert errors.pop(number, "none").startswith(error), name
    assert errors == {}
    assert (report["problem"], statuses(report)["softmax"]) == (None, "pass")


def test_a_cell_ends_where_it_fails_as_in_jupyter(tmp_path):
    cells = ["x = 1\n1 / 0\nx = 2", "assert x == 1"]
    report = grade_notebook(write(tmp_path / "a.ipynb", *cells))
    assert [cell["cell"] for cell in report["failed_cells"]] == [3]


def test_a_renamed_function_is_said_in_its_own_row(tmp_path):
    cell = "@check\ndef sofmax(scores):\n    return scores"
    report = grade_notebook(write(tmp_path / "a.ipynb", cell, find("weighted_average").starter))
    (found,) = (e for e in report["exercises"] if e["name"] == "softmax")
    assert found["head"] == "not in the notebook; is 'sofmax' meant for it?"


def test_a_broken_notebook_counts_0_of_all(tmp_path):
    for name, text in (("02-hers.ipynb", "{"), ("02-his.ipynb", "")):
        (tmp_path / name).write_text(text)
        report = grade_notebook(tmp_path / name)
        assert (report["passed"], report["of"]) == (0, len(exercises(2)))


def test_one_word_for_each_reason(tmp_path):
    report = grade_notebook(
        write(
            tmp_path / "a.ipynb",
            "@check\ndef softmax(scores):\n    return scores +",
            "@check\n@not_there\ndef weighted_average(weights, values):\n    ...",
            "if False:\n    check(None, name='kernel_regression')",
        )
    )
    found = {e["name"]: (e["status"], e["head"]) for e in report["exercises"]}
    assert found["softmax"][0] == "failed"
    assert found["softmax"][1].startswith("its cell failed: SyntaxError")
    assert found["weighted_average"][0] == "failed"
    assert "NameError: name 'not_there'" in found["weighted_average"][1]
    assert found["kernel_regression"] == ("not reached", "its check was not called.")
    assert found["output_gradient"] == ("missing", "not in the notebook.")


def test_a_process_that_ends_early_is_a_problem(tmp_path, capsys):
    cells = [solved(find("softmax")), "import os; os._exit(7)", solved(find("weighted_average"))]
    path = write(tmp_path / "a.ipynb", *cells)
    assert main(["grade", str(path)]) == 1
    assert "the kernel ended in code cell 4" in capsys.readouterr().out
    assert statuses(grade_notebook(path))["softmax"] == "pass"


@pytest.mark.parametrize(
    "what",
    [
        "open(name, 'w').write('{}')",
        "open(name, 'w').write('[' * 10**5)",
        "os.mkfifo(name)",
        "os.symlink('/dev/zero', name)",
        "os.mkdir(name)",
        "shutil.rmtree(os.path.dirname(name), ignore_errors=True)",  # the kernel writes there, too
    ],
)
def test_results_that_a_learner_has_written_are_no_results(tmp_path, what):
    cell = f"import os, shutil\nname = os.environ['D2LMINI_RESULTS']\n{what}\nos._exit(0)"
    report = grade_notebook(write(tmp_path / "a.ipynb", cell))
    assert report["problem"] == "the kernel ended in code cell 3"
    assert report["exercises"] == []


def test_one_notebook_cannot_take_the_others_with_it(tmp_path, capsys):
    """Half of an emoji, and orders to a terminal, in the message of an error."""
    half = "raise ValueError('\ud83d \\ud83d')"
    orders = "raise ValueError('\\x1b[2J\\x1b]0;title\\x07 \\u202e')"
    write(tmp_path / "a.ipynb", half, orders)
    write(tmp_path / "b.ipynb", solved(find("softmax")))
    assert main(["grade", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "\\x1b[2J" in said
    assert not {"\x1b", "\x07", "\u202e"} & set(said)
    a, b = json.loads(Path("grades.json").read_text("utf-8"))["notebooks"]
    assert b["passed"] == 1
    assert a["failed_cells"][-1]["error"].startswith("ValueError: \x1b[2J")


def test_a_folder_for_each_learner(tmp_path, capsys):
    """nbgrader PR 30, #1905: names as long as needed to differ."""
    for name in ("ada", "bob"):
        (tmp_path / name / ".ipynb_checkpoints").mkdir(parents=True)
        path = write(tmp_path / name / "hw1.ipynb", solved(find("softmax")))
        (path.parent / ".ipynb_checkpoints" / path.name).write_bytes(path.read_bytes())
    assert main(["grade", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert {line.split()[0] for line in said.splitlines()[1:-2]} == {
        "ada/hw1.ipynb",
        "bob/hw1.ipynb",
    }


def test_every_file_and_every_folder_is_accounted_for(tmp_path, capsys):
    for name in ("ada", "bob", "carol", "__MACOSX/ada", "dan/.ipynb_checkpoints"):
        (tmp_path / "subs" / name).mkdir(parents=True)
    ada = write(tmp_path / "subs/ada/hw1.IPYNB", "1")
    write(tmp_path / "subs/ada/\x1b[31mhw\n2\u202e.ipynb", "1")
    for copy in ("__MACOSX/ada/._hw1.ipynb", "ada/._hw1.ipynb", "dan/.ipynb_checkpoints/a.ipynb"):
        (tmp_path / "subs" / copy).write_bytes(b"\x00\x05\x16\x07")
    (tmp_path / "subs/bob/link").symlink_to(ada.parent)
    (tmp_path / "subs/bob/link/again").symlink_to(tmp_path / "subs/bob")
    assert main(["grade", str(tmp_path / "subs"), str(ada), f"{ada.parent}/../ada/hw1.IPYNB"]) == 1
    said = capsys.readouterr().out
    assert not {"\x1b", "\u202e"} & set(said)
    reports = json.loads(Path("grades.json").read_text("utf-8"))["notebooks"]
    empty = [Path(one["notebook"]).name for one in reports if one["problem"]]
    assert empty == ["carol", "dan"]
    graded = [one["notebook"] for one in reports if not one["problem"]]
    assert graded == [
        "ada/\x1b[31mhw\n2\u202e.ipynb",
        "ada/hw1.IPYNB",
        "link/\x1b[31mhw\n2\u202e.ipynb",
        "link/hw1.IPYNB",
    ]


def test_an_interrupted_command_keeps_what_it_has_found(tmp_path, capsys, monkeypatch):
    for name in "abc":
        write(tmp_path / f"{name}.ipynb", solved(find("softmax")))

    def interrupted(path, *limits):
        if path.name == "b.ipynb":
            raise KeyboardInterrupt
        return grade_notebook(path, *limits)

    monkeypatch.setattr("d2lmini.exercises.__main__.grade_notebook", interrupted)
    assert main(["grade", str(tmp_path)]) == 1
    assert "interrupted: 2 of 3 not graded" in capsys.readouterr().out
    first, _ = json.loads(Path("grades.json").read_text("utf-8"))["notebooks"]
    assert (first["notebook"], first["passed"]) == ("a.ipynb", 1)


def test_output_in_any_encoding(tmp_path):
    """import-linter#309: what the terminal cannot write does not stop anything."""
    environment = os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    path = write(tmp_path / "a.ipynb", find("softmax").starter, "raise ValueError('αλφα')")
    show = "from d2lmini.exercises import *\ncheck(lambda s: 3 * s, name='softmax')\n"
    show += "print(grade(lambda s: s, name='softmax'))\nhint('softmax'); solution('softmax')\n"
    show += "for e in exercises(): print(e, e.mistakes); hint(e.name); solution(e.name)"
    for program in (["-m", "d2lmini.exercises", "grade", str(path)], ["-c", show]):
        done = subprocess.run(
            [sys.executable, *program], capture_output=True, env=environment, check=True
        )
        assert done.stderr == b""
        assert b"softmax" in done.stdout
    assert Path("grades.json").exists()


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
    assert checked(cells) == {
        "my_softmax": 1,
        "attention": 2,
        "merge_heads": 3,
        "split_heads": 3,
        "OneHead": 4,
        "project": 5,
        "entropy": 6,
    }


def test_without_jupyter_grading_says_what_is_missing(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "nbclient", None)
    assert main(["grade", str(write(tmp_path / "a.ipynb", "1"))]) == 1
    assert "there is no nbclient: pip install" in capsys.readouterr().out


# A hundred submissions: of each chapter one of each kind. A kind is the cells that it makes of a
# chapter's exercises, and the status that each exercise then has, one of two if two are given.


def slipped(exercise):
    """Return a cell with the first known mistake of an exercise, as if a learner had made it."""
    return f"""from d2lmini.exercises import find
check(find({exercise.name!r}).mistakes[0].fn, name={exercise.name!r})"""


def headless(exercise):
    return solved(exercise).replace("):\n", ")\n", 1)


SUBMITTED = {
    "all right": (solved, "pass"),
    "not begun": (lambda exercise: exercise.starter, "todo"),
    "slips": (slipped, "wrong error"),
    "renamed": (lambda e: solved(e).replace(e.function, "their_own"), "missing"),
    "no Python": (headless, "failed"),
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
    reports = json.loads(Path("grades.json").read_text("utf-8"))["notebooks"]
    assert {one["notebook"] for one in reports} == {*expected}
    for one in reports:
        names, status = expected[one["notebook"]]
        found = {e["name"]: e["status"] for e in one["exercises"]}
        assert {*found} == names and one["of"] == len(names), one["notebook"]
        assert {each.replace(" ", "-") for each in found.values()} <= status, one["notebook"]
        assert one["passed"] == (one["of"] if status == {"pass"} else 0), one["notebook"]
        assert bool(one["problem"]) == ("half" in one["notebook"] or "empty" in one["notebook"])
