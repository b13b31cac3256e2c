"""What LAYOUT.md says of the imports of each folder holds."""

import re
import sys

import pytest

from scripts import layout

PAGE = layout.PAGE.read_text("utf8")
FOLDERS = layout.folders(PAGE)
IN_EXT = {path.stem for path in layout.modules("_ext")}  # they import each other by these names


def imported(path):
    """Return what a file imports: folders of ours, or libraries."""
    found = set()
    for name in layout.imports(path):
        first, _, rest = name.partition(".")
        inner = f"{first}/{rest.partition('.')[0]}"
        found.add("_ext" if first in IN_EXT else inner if inner in FOLDERS else first)
    return found


def may_import(folder):
    return {word.strip("/") for word in re.findall(r"`([^`]+)`", FOLDERS[folder])} | {folder}


@pytest.mark.parametrize("folder", [f for f in FOLDERS if layout.modules(f) and f != "tests"])
def test_dependencies_point_one_way_and_first_lines_say_what_a_module_is_for(folder):
    for path in layout.modules(folder):
        found = imported(path) - set(sys.stdlib_module_names)
        if not folder.startswith("d2lmini"):  # tools may use any library that is pinned
            found &= {*FOLDERS}
        assert found <= may_import(folder), f"{path.name}: say it in LAYOUT.md, or do without"
        assert layout.first_line(path)
