"""Running a notebook, and its first cell. (nbval compares what a chapter gives: `strict.py`.)"""

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import nbformat
import pytest
import yaml
from IPython.core.interactiveshell import InteractiveShell

from scripts import notebooks
from tests.notebooks import strict

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_the_first_cell_is_that_of_the_configuration(path):
    """If not, the place of the book has changed: `make notebooks` writes the cell."""
    code = [cell for cell in nbformat.read(path, 4).cells if cell.cell_type == "code"]
    assert [cell.id for cell in code].index("install") == 0
    assert code[0].source == notebooks.install_cell()
    assert "remove-cell" in code[0].metadata.tags and code[0].outputs == []


PUBLISHED = {"address": "https://example.org/", "repository": "https://github.com/someone/book/"}
FROM_GITHUB = "d2lmini[torch,plot] @ git+https://github.com/someone/book@main"
HERE = f"{notebooks.ROOT}[torch,plot]"
BY_HAND = "/folder/of/the/book[torch,plot]"


def first_cell(folder, public):
    config = folder / "config.yml"
    config.write_text(yaml.safe_dump({"sphinx": {"config": {"public": public}}}))
    return notebooks.install_cell(config)


@pytest.mark.parametrize(
    ("folder", "public", "pip", "asked"),
    [
        ("", PUBLISHED, 0, FROM_GITHUB),
        ("", PUBLISHED, 1, FROM_GITHUB),
        ("", {}, 0, None),
        (".", PUBLISHED, 0, HERE),
        ("chapters", PUBLISHED, 0, HERE),
        ("chapters", {}, 1, HERE),
        ("mine/week 1", {}, 0, HERE),
    ],
)
def test_a_missing_library_is_installed(tmp_path, monkeypatch, folder, public, pip, asked):
    """Opened alone, as on Colab, a notebook has no folder of the book around it."""
    shell, called, find = InteractiveShell(history_manager=None), [], importlib.util.find_spec
    place = notebooks.ROOT / folder if folder else tmp_path
    monkeypatch.setattr(Path, "cwd", lambda: place)
    monkeypatch.setitem(sys.modules, "google.colab", ModuleType("google.colab"))
    gone = "array_api_compat" if folder == "." else "d2lmini"  # which Python finds where it stands
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: find(n) if n != gone else None)
    monkeypatch.setattr(
        subprocess, "run", lambda command: called.append(command) or Mock(returncode=pip)
    )
    result = shell.run_cell(first_cell(tmp_path, public))
    assert called == ([[sys.executable, "-m", "pip", "install", asked]] if asked else [])
    if asked and not pip:
        assert result.success
    else:  # one line says what to do
        said = str(result.error_in_exec)
        assert isinstance(result.error_in_exec, ModuleNotFoundError)
        assert said.endswith(f'%pip install "{asked or BY_HAND}"') and "\n" not in said
        assert ("Put the folder of your copy" in said) is not bool(asked)


@pytest.mark.parametrize("version", [(3, 8, 20, "final", 0), (3, 10, 13, "final", 0)])
def test_a_python_that_is_too_old_is_one_line_and_nothing_is_fetched(monkeypatch, version):
    ast.parse(notebooks.install_cell(), feature_version=version[:2])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(subprocess, "run", None)
    monkeypatch.setattr(sys, "version_info", version)
    with pytest.raises(RuntimeError) as caught:
        exec(notebooks.install_cell(), {})
    have = f"this kernel is Python {version[0]}.{version[1]}"
    assert str(caught.value) == f"{have}: choose one with Python 3.11 or newer"


def test_nothing_is_installed_where_it_is_there(tmp_path, monkeypatch):
    monkeypatch.setattr(subprocess, "run", None)
    shell = InteractiveShell(history_manager=None)
    assert shell.run_cell(first_cell(tmp_path, PUBLISHED)).success


def test_what_the_outputs_were_made_with_is_stored():
    stored = json.loads(notebooks.STORED_WITH.read_text())
    here = json.loads(notebooks.stored_with())
    assert stored.keys() == here.keys() == {"python", "system", "processor"}
    assert all(stored.values())
    assert tuple(map(int, stored["python"].split(".")[:2])) >= (3, 11)


def write(folder: Path, *sources: str) -> Path:
    path = folder / "made.ipynb"
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_storing_twice_gives_the_same_bytes(tmp_path):
    path = write(tmp_path, "print(1)\nprint(2)", "3")
    assert notebooks.main([str(path)]) == 0
    first = path.read_bytes()
    assert notebooks.main([str(path)]) == 0
    assert path.read_bytes() == first
    assert not strict.defects(first.decode())


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import warnings; warnings.warn('beware')", "cell 1 wrote to stderr"),
        ("[][1]", "IndexError"),
    ],
)
def test_defects_are_not_stored(tmp_path, capsys, source, reason):
    path = write(tmp_path, "1", source)
    before = path.read_bytes()
    assert notebooks.main([str(path)]) == 1
    assert path.read_bytes() == before
    said = capsys.readouterr().err
    assert reason in said
    assert "made.ipynb" in said


BROKEN = {
    "merged": ('{\n<<<<<<< HEAD\n"cells": []\n=======\n', "a merge that was not finished (line 2)"),
    "empty": ("\n", "is empty"),
    "cut": ('{"cells": [', "line 1, column 12"),
    "old": ('{"nbformat": 3, "worksheets": []}', "in notebook format 3"),
    "new": ('{"nbformat": 5, "cells": []}', "in notebook format 5"),
    "bare": ('{"nbformat": 4}', "it has no list of cells"),
    "pasted": (
        '{"nbformat": 4, "cells": [{"cell_type": "markdown", "attachments": {"a.png": {}}}]}',
        "a pasted picture (a.png)",
    ),
    "latin": (b'{"nbformat": 4, "caf\xe9": 1}', "not in UTF-8"),
}


def test_what_cannot_be_read_is_named_in_a_line_and_the_others_go_on(tmp_path, capsys):
    for name, (text, _) in BROKEN.items():
        (tmp_path / f"{name}.ipynb").write_bytes(text if isinstance(text, bytes) else text.encode())
    good = write(tmp_path, "1 + 1")
    paths = [tmp_path / f"{name}.ipynb" for name in BROKEN]
    assert notebooks.main([*map(str, paths), str(good)]) == 1
    lines = capsys.readouterr().err.splitlines()
    for line, (name, (text, said)) in zip(lines, BROKEN.items(), strict=True):
        assert line.startswith(f"not stored: {name}.ipynb ") and said in line
        left = (tmp_path / f"{name}.ipynb").read_bytes()
        assert left == (text if isinstance(text, bytes) else text.encode())
    assert not strict.defects(good.read_text("utf8"))


@pytest.mark.parametrize("tags", [[], ["--tags"]], ids=["run", "tags alone"])
def test_whatever_lies_there_is_named_in_a_line_and_kept(tmp_path, capsys, tags):
    """MyST-NB#492: other files of the kind, and what could only be seen when it is written."""
    good = write(tmp_path, "1 + 1")
    half = json.dumps(json.loads(good.read_text()), ensure_ascii=True).replace("1 + 1", "'\\ud83d'")
    bad = {"latin.ipynb": "é".encode("latin-1"), "half.ipynb": half.encode(), "empty.ipynb": b""}
    for name, text in bad.items():
        (tmp_path / name).write_bytes(text)
    (tmp_path / "folder.ipynb").mkdir()
    names = [*bad, "folder.ipynb", "nowhere.ipynb"]
    assert notebooks.main([*tags, *(str(tmp_path / name) for name in names), str(good)]) == 1
    said = capsys.readouterr().err.splitlines()
    assert [line.split()[2] for line in said] == names
    assert {name: (tmp_path / name).read_bytes() for name in bad} == bad
    assert bool(json.loads(good.read_text())["cells"][0]["outputs"]) is not bool(tags)


def test_a_kernel_that_ends_is_named_in_a_line_and_the_others_go_on(tmp_path, capsys):
    (tmp_path / "a").mkdir()
    ends, good = write(tmp_path / "a", "import os; os._exit(3)"), write(tmp_path, "1 + 1")
    before = ends.read_bytes()
    assert notebooks.main([str(ends), str(good)]) == 1
    said = capsys.readouterr()
    assert "not stored: made.ipynb: " in said.err and "made.ipynb" in said.out
    assert ends.read_bytes() == before


def test_an_option_that_there_is_not(capsys):
    assert notebooks.main(["--tag"]) == 2
    assert capsys.readouterr().err == "there is no option --tag; there is --tags\n"


def test_what_an_editor_leaves_out_is_added(tmp_path):
    """Ids that say what a cell holds, the same ones every time."""
    path = tmp_path / "made.ipynb"
    sources = ["## Why divide by √d?", "import numpy as np", "import numpy as np", ""]
    kinds = ["markdown", "code", "code", "code"]
    cells = [{"cell_type": k, "source": [s]} for k, s in zip(kinds, sources, strict=True)]
    path.write_text(json.dumps({"nbformat": 4, "cells": cells}))
    assert notebooks.main([str(path)]) == 0
    made = nbformat.read(path, 4).cells
    ids = ["why-divide-by-d", "import-numpy-as-np", "import-numpy-as-np-2", "cell"]
    assert [cell.id for cell in made] == ids


NAMED = {"code_prompt_show": "Why"}


@pytest.mark.parametrize(
    ("tags", "hidden"),
    [
        ([], None),
        (["hide-input"], {"source_hidden": True}),
        (["remove-cell"], {"source_hidden": True}),
        (["hide-cell"], {"source_hidden": True, "outputs_hidden": True}),
        (["trains"], None),
    ],
)
def test_jupyter_folds_what_a_page_folds(tmp_path, tags, hidden):
    path = write(tmp_path, "1")
    made = nbformat.read(path, 4)
    left = {"tags": tags, "mystnb": NAMED, "collapsed": True, "jupyter": {"source_hidden": True}}
    made.cells[0].metadata = nbformat.from_dict(left)
    nbformat.write(made, path)
    assert notebooks.main([str(path)]) == 0
    live = [] if "remove-cell" in tags else ["live"]  # it needs nothing but Python
    wanted = {"tags": [*tags, *live], "mystnb": NAMED} | ({"jupyter": hidden} if hidden else {})
    assert nbformat.read(path, 4).cells[0].metadata == wanted
