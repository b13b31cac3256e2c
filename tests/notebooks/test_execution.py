"""Reading, running and storing a notebook, and its first cell. (What it gives: `strict.py`.)"""

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
from scripts.notebooks import SourceError, read_notebook
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
    monkeypatch.setattr(
        subprocess, "run", lambda command: called.append(command) or Mock(returncode=pip)
    )
    assert shell.run_cell(first_cell(tmp_path, PUBLISHED)).success and called == [], "it is there"
    gone = "array_api_compat" if folder == "." else "d2lmini"  # which Python finds where it stands
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: find(n) if n != gone else None)
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


def test_what_the_outputs_were_made_with_is_stored():
    stored = json.loads(notebooks.STORED_WITH.read_text())
    here = json.loads(notebooks.stored_with())
    assert stored.keys() == here.keys() == {"python", "system", "processor"}
    assert all(stored.values())
    assert tuple(map(int, stored["python"].split(".")[:2])) >= (3, 11)


# --- what cannot be read ---

MARKDOWN = {"cell_type": "markdown", "metadata": {}, "source": "# A"}
CODE = {"cell_type": "code", "metadata": {}, "source": "1", "outputs": [], "execution_count": 1}
SHOWN = {"output_type": "display_data", "metadata": {}}


def notebook(*cells, **more):
    return json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}, **more})


RESTORE = "restore it from git"
UNREADABLE = [  # as a merge, an editor or a program may leave it (MyST-NB#492), and what is said
    ('{\n<<<<<<< HEAD\n"cells": []\n=======\n', "a merge that was not finished (line 2)"),
    ("\n", "is empty"),
    ('{"cells": [', "line 1, column 12"),
    ('{"nbformat": 3, "worksheets": []}', "in notebook format 3"),
    ('{"nbformat": 5, "cells": []}', "in notebook format 5"),
    ('{"nbformat": 4}', "it has no list of cells"),
    (notebook({**MARKDOWN, "attachments": {"a.png": {}}}), "a pasted picture (a.png)"),
    ("[" * 100_000, RESTORE),
    (notebook(MARKDOWN, nbformat_minor="5"), RESTORE),
    (notebook(MARKDOWN, metadata=[]), RESTORE),
    (notebook({**MARKDOWN, "metadata": []}), RESTORE),
    (notebook({**MARKDOWN, "source": 5}), RESTORE),
    (notebook({**MARKDOWN, "source": None}), RESTORE),
    (notebook({**MARKDOWN, "source": [1, 2]}), RESTORE),
    (notebook({**CODE, "outputs": None}), RESTORE),
    (notebook({**CODE, "outputs": ["x"]}), RESTORE),
    (notebook({**CODE, "outputs": [{}]}), RESTORE),
    (notebook({**CODE, "outputs": [{**SHOWN, "data": []}]}), RESTORE),
    (notebook({**CODE, "outputs": [{**SHOWN, "data": {"text/html": 3}}]}), RESTORE),
    (notebook({**CODE, "execution_count": "3"}), RESTORE),
    (notebook({**MARKDOWN, "id": "a b"}), RESTORE),
    (notebook({**MARKDOWN, "id": "a" * 65}), RESTORE),
    ("\ufeff" + notebook(MARKDOWN), RESTORE),
    (notebook({**MARKDOWN, "id": [1]}), RESTORE),
    (
        notebook({**MARKDOWN, "id": "a"}, {**CODE, "id": "a"}),
        "two cells of the id 'a': delete the id of one",
    ),
    (notebook({**CODE, "source": "'\ud83d'"}), "cell 0 holds half of a character"),
    (
        notebook({**CODE, "outputs": [{**SHOWN, "data": {"text/plain": "\udc00"}}]}),
        "cell 0 holds half of a character ('\\udc00'), which no file can: write it again",
    ),
]


@pytest.mark.parametrize(("text", "words"), UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_is_no_notebook_is_said_in_one_line(text, words):
    with pytest.raises(SourceError) as said:
        read_notebook(text)
    assert words in str(said.value) and "\n" not in str(said.value)


def test_what_jupyter_would_mend_is_mended():
    code = {"cell_type": "code", "source": ["1\n", "2"]}
    read = read_notebook(notebook({**MARKDOWN, "attachments": None}, code))
    assert read.cells[1].source == "1\n2" and read.cells[1].outputs == []


# --- running and storing ---


def write(path: Path, *sources: str) -> Path:
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


@pytest.mark.parametrize("tags", [[], ["--tags"]], ids=["run", "tags alone"])
def test_whatever_lies_there_is_named_in_a_line_and_kept_and_the_others_go_on(
    tmp_path, capsys, tags
):
    """What cannot be read, run, or stored: a warning, an error, a kernel that ends."""
    good = write(tmp_path / "good.ipynb", "1 + 1")
    fails = {"import warnings; warnings.warn('beware')": "cell 1 wrote to stderr"}
    fails |= {"[][1]": "IndexError", "import os; os._exit(3)": "kernel"}
    said = ["is empty", "is not in UTF-8", "half of a character", "cannot be read", "cannot be"]
    bad = {"empty": b"", "latin": b'{"nbformat": 4, "caf\xe9": 1}', "half": UNREADABLE[-1][0]}
    bad["half"] = bad["half"].encode()
    for name, text in bad.items():
        (tmp_path / f"{name}.ipynb").write_bytes(text)
    (tmp_path / "folder.ipynb").mkdir()
    names = [*bad, "folder", "nowhere"]
    if not tags:
        for number, (source, words) in enumerate(fails.items()):
            path = write(tmp_path / f"{number}.ipynb", "1", source)
            names, said, bad[str(number)] = [*names, path.stem], [*said, words], path.read_bytes()
    paths = [str(tmp_path / f"{name}.ipynb") for name in names]
    assert notebooks.main([*tags, *paths, str(good)]) == 1
    out = capsys.readouterr()
    lines = [line for line in out.err.splitlines() if line.startswith("not stored: ")]
    for line, name, words in zip(lines, names, said, strict=True):
        assert line.split()[2].startswith(f"{name}.ipynb")
        assert words in line or (name.isdecimal() and words in out.err)
    assert {name: (tmp_path / f"{name}.ipynb").read_bytes() for name in bad} == bad
    assert ("good.ipynb" in out.out) is not bool(tags)
    assert bool(json.loads(good.read_text())["cells"][0]["outputs"]) is not bool(tags)


def test_an_option_that_there_is_not(capsys):
    assert notebooks.main(["--tag"]) == 2
    assert capsys.readouterr().err == "there is no option --tag; there is --tags\n"


NAMED = {"code_prompt_show": "Why"}
FOLDED = [  # the tags of a cell, and what Jupyter hides of it: what the page folds
    ([], None),
    (["hide-input"], {"source_hidden": True}),
    (["remove-cell"], {"source_hidden": True}),
    (["hide-cell"], {"source_hidden": True, "outputs_hidden": True}),
    (["trains"], None),
]


def test_what_is_stored_is_whole_and_the_same_each_time(tmp_path):
    """What an editor leaves out is added: ids that say what a cell holds, the same every time."""
    path = tmp_path / "made.ipynb"
    left = {"mystnb": NAMED, "collapsed": True, "jupyter": {"source_hidden": True}}
    sources = ["import numpy as np", "print(1)\nprint(2)", "import numpy as np", "3", "4"]
    cells = [
        {"cell_type": "code", "source": source, "metadata": {"tags": tags, **left}}
        for source, (tags, _) in zip(sources, FOLDED, strict=True)
    ]
    heading = {"cell_type": "markdown", "source": ["## Why divide by √d?"]}
    path.write_text(json.dumps({"nbformat": 4, "cells": [heading, *cells]}))
    assert notebooks.main([str(path)]) == 0
    first = path.read_bytes()
    assert not strict.defects(first.decode())
    made = nbformat.reads(first.decode(), 4)
    ids = "why-divide-by-d import-numpy-as-np print-1-print-2 import-numpy-as-np-2 3 4"
    assert " ".join(cell.id for cell in made.cells) == ids
    assert made.cells[2].outputs[0].text == "1\n2\n"
    for cell, (tags, hidden) in zip(made.cells[1:], FOLDED, strict=True):
        live = [] if "remove-cell" in tags else ["live"]  # it needs nothing but Python
        wanted = {"tags": [*tags, *live], "mystnb": NAMED}
        assert cell.metadata == wanted | ({"jupyter": hidden} if hidden else {})
    assert notebooks.main([str(path)]) == 0
    assert path.read_bytes() == first
