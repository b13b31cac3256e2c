"""Reading, running and storing a notebook, and its first cell. (What it gives: `strict.py`.)"""

import ast
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import nbformat
import pytest
import yaml
from IPython.core.interactiveshell import InteractiveShell

from scripts import notebooks
from scripts.notebooks import SourceError, read_notebook
from tests.notebooks import strict

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_chapters_are_stored_as_the_script_stores_them(path):
    """Nothing an editor leaves, the right first cell, `live` where it is; else run the script."""
    stored, normal = notebooks.read(path), notebooks.read(path)
    notebooks.normalise(normal)
    for new, old in zip(normal.cells, stored.cells, strict=True):
        if old.cell_type == "code":  # what a run gives is compared by a run
            new.outputs, new.execution_count = old.outputs, old.execution_count
    assert notebooks.text_of(normal) == path.read_text("utf-8")
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert code[0].id == "install" and "remove-cell" in code[0].metadata.tags
    assert any("live" in cell.metadata.get("tags", []) for cell in code)


PUBLISHED = {"address": "https://example.org/", "repository": "https://github.com/someone/book/"}
FROM_GITHUB = "d2lmini[torch,plot] @ git+https://github.com/someone/book@main"
HERE = f"{notebooks.ROOT}[torch,plot]"


@pytest.mark.parametrize(
    ("folder", "public", "pip", "asked"),
    [
        ("", PUBLISHED, 0, FROM_GITHUB),
        ("", PUBLISHED, 1, FROM_GITHUB),
        ("", {}, 0, None),
        ("chapters", {}, 0, HERE),
    ],
)
def test_a_missing_library_is_installed(tmp_path, monkeypatch, folder, public, pip, asked):
    """Opened alone, as on Colab, a notebook has no folder of the book around it."""
    shell, called, find = InteractiveShell(history_manager=None), [], importlib.util.find_spec
    config = tmp_path / "config.yml"
    config.write_text(yaml.safe_dump({"sphinx": {"config": {"public": public}}}))
    cell, place = notebooks.install_cell(config), notebooks.ROOT / folder if folder else tmp_path
    monkeypatch.setattr(Path, "cwd", lambda: place)
    monkeypatch.setattr(
        subprocess, "run", lambda command: called.append(command) or Mock(returncode=pip)
    )
    assert shell.run_cell(cell).success and called == [], "it is there"
    monkeypatch.setattr(importlib.util, "find_spec", lambda n: find(n) if n != "d2lmini" else None)
    result = shell.run_cell(cell)
    assert called == ([[sys.executable, "-m", "pip", "install", asked]] if asked else [])
    if asked and not pip:
        assert result.success
    else:  # one line says what to do
        said = str(result.error_in_exec)
        by_hand = asked or "/folder/of/the/book[torch,plot]"
        assert said.endswith(f'%pip install "{by_hand}"') and "\n" not in said


def test_a_python_that_is_too_old_is_one_line_and_nothing_is_fetched(monkeypatch):
    ast.parse(notebooks.install_cell(), feature_version=(3, 8))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(subprocess, "run", None)
    monkeypatch.setattr(sys, "version_info", (3, 10, 13, "final", 0))
    with pytest.raises(RuntimeError, match=r"is Python 3\.10: choose one with"):
        exec(notebooks.install_cell(), {})


# --- what cannot be read ---

MARKDOWN = {"cell_type": "markdown", "metadata": {}, "source": "# A"}
CODE = {"cell_type": "code", "metadata": {}, "source": "1", "outputs": [], "execution_count": 1}


def notebook(*cells, **more):
    return json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}, **more})


UNREADABLE = [  # as a merge, an editor or a program may leave it (MyST-NB#492), and what is said
    ('{\n<<<<<<< HEAD\n"cells": []\n=======\n', "a merge that was not finished (line 2)"),
    ('{"cells": [', "line 1, column 12"),
    ('{"nbformat": 3, "worksheets": []}', "in notebook format 3"),
    (notebook({**MARKDOWN, "attachments": {"a.png": {}}}), "a pasted picture (a.png)"),
    (notebook({**MARKDOWN, "source": None}), "at cells 0"),
    (notebook({**MARKDOWN, "id": "a"}, {**CODE, "id": "a"}), "two cells of the id 'a'"),
    (notebook({**CODE, "source": "'\ud83d'"}), "cell 0 holds half of a character"),
]


@pytest.mark.parametrize(("text", "words"), UNREADABLE, ids=range(len(UNREADABLE)))
def test_what_is_no_notebook_is_said_in_one_line(text, words):
    with pytest.raises(SourceError) as said:
        read_notebook(text)
    assert words in str(said.value) and "\n" not in str(said.value)


# --- running and storing ---


def test_what_cannot_be_stored_is_named_in_a_line_and_kept_and_the_others_go_on(tmp_path, capsys):
    """What cannot be read, or run: a warning, an error, a kernel that ends."""
    bad = {"empty": (b"", "is empty"), "latin": (b'{"caf\xe9": 1}', "is not in UTF-8")}
    fails = {"import warnings; warnings.warn('beware')": "cell 1 wrote to stderr"}
    fails |= {"[][1]": "IndexError", "import os; os._exit(3)": "Kernel died"}
    for number, (source, words) in enumerate(fails.items()):
        bad[f"fails{number}"] = notebook(CODE, {**CODE, "source": source}).encode(), words
    paths = {name: tmp_path / f"{name}.ipynb" for name in [*bad, "good"]}
    for name, path in paths.items():
        path.write_bytes(bad[name][0] if name in bad else notebook(CODE).encode())
    assert notebooks.main(["--tags", str(paths["good"])]) == 0, "it runs nothing"
    assert json.loads(paths["good"].read_text())["cells"][0]["outputs"] == []
    assert notebooks.main([*map(str, paths.values()), str(tmp_path / "nowhere.ipynb")]) == 1
    out, err = capsys.readouterr()
    said = err.split("not stored: ")[1:]
    for one, name in zip(said, [*bad, "nowhere"], strict=True):
        assert one.startswith(f"{name}.ipynb") and bad.get(name, ("", "be read"))[1] in one
    assert {name: paths[name].read_bytes() for name in bad} == {
        n: one for n, (one, _) in bad.items()
    }
    assert "good.ipynb" in out and json.loads(paths["good"].read_text())["cells"][0]["outputs"]


FOLDED = [  # the tags of a cell, and what Jupyter hides of it: what the page folds
    ([], None),
    (["hide-input"], {"source_hidden": True}),
    (["remove-cell"], {"source_hidden": True}),
    (["hide-cell"], {"source_hidden": True, "outputs_hidden": True}),
]


def test_what_is_stored_is_whole_and_the_same_each_time(tmp_path):
    """What an editor leaves out is added: ids that say what a cell holds, the same every time."""
    path = tmp_path / "made.ipynb"
    name = {"mystnb": {"code_prompt_show": "Why"}}
    left = {**name, "collapsed": True, "jupyter": {"source_hidden": True}}
    sources = ["import numpy as np", "print(1)\nprint(2)", "import numpy as np", "3"]
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
    ids = "why-divide-by-d import-numpy-as-np print-1-print-2 import-numpy-as-np-2 3"
    assert " ".join(cell.id for cell in made.cells) == ids
    assert made.cells[2].outputs[0].text == "1\n2\n"
    for cell, (tags, hidden) in zip(made.cells[1:], FOLDED, strict=True):
        live = [] if "remove-cell" in tags else ["live"]  # it needs nothing but Python
        wanted = {"tags": [*tags, *live], **name}
        assert cell.metadata == wanted | ({"jupyter": hidden} if hidden else {})
    assert notebooks.main([str(path)]) == 0
    assert path.read_bytes() == first
