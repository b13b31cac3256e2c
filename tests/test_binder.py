"""Binder: others run the notebooks there, on the versions that are tested here."""

import ast
import json
import re
import sys
from pathlib import Path

import pytest
import yaml

from d2lmini.exercises.notebook import _as_python as as_python

ROOT = Path(__file__).resolve().parents[1]
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.M))
PROJECT = (ROOT / "pyproject.toml").read_text("utf8")
FROM_CONDA = {"pytorch-cpu": "torch"}  # what it is called there, and here


NEEDED = yaml.safe_load((ROOT / "binder/environment.yml").read_text())["dependencies"]
PYTHON, *CONDA, BEFORE_PIP, LAST = NEEDED
PIP = dict(line.split("==") for line in LAST["pip"])
THERE = {FROM_CONDA[line.split(">=")[0]] for line in CONDA} | {*PIP}


def test_versions_are_the_pinned_ones():
    oldest = re.search(r'requires-python = ">=3\.(\d+)"', PROJECT)[1]
    assert BEFORE_PIP == "pip"
    assert int(PYTHON.removeprefix("python=3.")) >= int(oldest)
    for line in CONDA:
        name, oldest = line.split(">=")
        assert f"{FROM_CONDA[name]}>={oldest}" in PROJECT
    for name, version in PIP.items():
        assert PINS[name] == version, "what is pinned in requirements.txt stands here again"


@pytest.mark.parametrize("path", sorted((ROOT / "chapters").glob("*.ipynb")), ids=lambda p: p.stem)
def test_all_that_a_chapter_imports_is_there(path):
    names = {name.replace("-", "_") for name in THERE} | {"d2lmini"}
    cells = json.loads(path.read_text("utf8"))["cells"]
    code = [as_python("".join(c["source"])) for c in cells if c["cell_type"] == "code"]
    imported = set()
    for node in ast.walk(ast.parse("\n".join(code))):
        if isinstance(node, ast.Import):
            imported |= {name.name.partition(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module.partition(".")[0])
    assert "d2lmini" in imported
    assert imported - set(sys.stdlib_module_names) <= names


def test_all_that_the_library_needs_is_there_and_nothing_else():
    """It is installed without its dependencies, so that none comes in another version."""
    needs = re.search(r"^dependencies = \[(.*)\]", PROJECT, re.M)[1] + '"torch>", "matplotlib>"'
    assert set(re.findall(r'"([\w-]+)>', needs)) == THERE
    post = ROOT / "binder" / "postBuild"
    assert "install --quiet --no-deps --editable ." in post.read_text()
    assert post.stat().st_mode & 0o100
