"""LAYOUT.md names every folder, and what it says of the imports of each holds."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import layout

ROOT = layout.ROOT
PAGE = layout.PAGE.read_text("utf8")
FOLDERS = layout.folders(PAGE)
IN_EXT = {path.stem for path in layout.modules("_ext")}  # they import each other by these names


def imported(path):
    """Yield what a file imports, a folder of ours or a library."""
    yield from map(folder_of, layout.imports(path))


def folder_of(name):
    """Return the folder that an imported name comes from, or the library."""
    first, _, rest = name.partition(".")
    inner = f"{first}/{rest.partition('.')[0]}"
    if first in IN_EXT:
        return "_ext"
    return inner if inner in FOLDERS else first


def may_import(folder):
    return {word.strip("/") for word in re.findall(r"`([^`]+)`", FOLDERS[folder])} | {folder}


LOOKED_AT = [folder for folder in FOLDERS if layout.modules(folder) and folder != "tests"]


@pytest.mark.parametrize("folder", LOOKED_AT)
def test_dependencies_point_one_way(folder):
    ours = {*FOLDERS}
    for path in layout.modules(folder):
        found = set(imported(path)) - set(sys.stdlib_module_names)
        if not folder.startswith("d2lmini"):  # tools may use any library that is pinned
            found &= ours
        assert found <= may_import(folder), f"{path.name}: say it in LAYOUT.md, or do without"


@pytest.mark.parametrize("folder", LOOKED_AT)
def test_every_module_says_in_its_first_line_what_it_is_for(folder):
    assert all(map(layout.first_line, layout.modules(folder)))


LISTED = ("d2lmini", "_ext", "live_cells", "scripts", "chapters")  # with the folders in them


def test_every_folder_has_its_line():
    said = set(re.findall(r"`([\w./]+)/`", PAGE))
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    top = {Path(line).parts[0] for line in listed if "/" in line}
    inner = {
        Path(*Path(line).parts[:2]).as_posix()
        for line in listed
        if line.startswith(("d2lmini/", "_ext/", "live_cells/", "scripts/", "chapters/"))
        and line.count("/") > 1
    }
    assert top and top | inner <= said


def test_an_arrow_the_other_way_would_be_seen(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text("from d2lmini import plotting\nimport d2lmini.exercises.cards\n")
    assert set(imported(path)) == {"d2lmini/plotting", "d2lmini/exercises"}
    assert not set(imported(path)) & may_import("d2lmini")
