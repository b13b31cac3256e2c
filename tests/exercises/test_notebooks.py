"""The exercise cells of the chapters: the registered texts, and solvable as they stand."""

import ast
import json
import re
from pathlib import Path

import pytest

from d2lmini.exercises import exercises, find
from d2lmini.exercises.notebook import _as_python as as_python
from d2lmini.exercises.notebook import checked

CHAPTERS = sorted((Path(__file__).parents[2] / "chapters").glob("[0-9][0-9]-*.ipynb"))
by_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def code_cells(path):
    """Return (source, metadata) of the code cells."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [("".join(c["source"]), c["metadata"]) for c in cells if c["cell_type"] == "code"]


def exercise_cells(path):
    """Return {name: source} of the cells that pose an exercise."""
    found = {}
    for source, _ in code_cells(path):
        for written in checked([source]):
            name = find(written).name
            assert name not in found, f"{name} is posed twice"
            found[name] = source
    return found


@by_chapter
def test_each_exercise_is_there_with_its_text_hints_and_solution(path, capsys):
    """Each cell runs alone, in a new kernel, and calls the function what the learner does."""
    cells, posed = code_cells(path), exercise_cells(path)
    registered = [exercise.name for exercise in exercises(int(path.stem[:2]))]
    assert list(posed) == registered, "register them in the order in which the notebook poses them"
    sources = [source for source, _ in cells]
    for name, source in posed.items():
        exercise, at = find(name), sources.index(source)
        assert source == exercise.starter
        (one, about_one), (two, about_two) = cells[at + 1 : at + 3]
        exec(one, {})
        assert capsys.readouterr().out.startswith("Hint 1 of ")
        exec(two, {})
        assert capsys.readouterr().out.startswith(f"Solution of {exercise.function}\n")
        assert {calls(text) for text in (one, two)} == {exercise.function}
        assert "hide-input" in about_one["tags"] and "hide-input" in about_two["tags"]


@by_chapter
def test_no_later_cell_depends_on_a_learners_function(path):
    """Functions of a learner do nothing yet, and may have taken the place of the library's."""
    given = set()
    for source, _ in code_cells(path):
        names = set(checked([as_python(source)]))
        if not names and not calls(source):
            tree = ast.parse(as_python(source))
            words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
            assert not words & given, f"{words & given} used after the exercise"
        given |= names


def calls(source):
    """Return what a cell that shows hints or a solution asks for."""
    show = r"from d2lmini.exercises import (hint|solution)\n\n\1\(\"(\w+)\"\)"
    return found[2] if (found := re.fullmatch(show, source)) else ""
