"""The teacher's page runs, and its numbers are those of the code."""

import re
from pathlib import Path

import test_exercises
import test_kinds

from d2lmini.exercises import definition, find

TEACHING = Path(__file__).parents[2] / "chapters" / "teaching.md"


def test_the_example_of_the_teachers_page_is_a_good_exercise(monkeypatch, capsys):
    """Its code runs, and what it registers passes the tests of every exercise."""
    monkeypatch.setattr(definition, "_registry", dict(definition._registry))
    blocks = re.findall(r"^```python\n(.*?)^```", TEACHING.read_text("utf-8"), re.M | re.S)
    namespace = {}
    for block in blocks:
        exec(compile(block, "teaching.md", "exec"), namespace)
    said = capsys.readouterr().out
    assert "def largest_weight(weights):\n" in said and "Hint 1 of 2" in said
    assert "→ You looked down the columns." in said
    exercise = find("largest_weight")
    order = ("sorted, reversed", "largest_weight.weights")  # whose largest is the same
    monkeypatch.setattr(test_kinds, "EQUAL", [*test_kinds.EQUAL, order])
    each = test_exercises.each.mark
    of_each = [t for t in vars(test_exercises).values() if each in getattr(t, "pytestmark", [])]
    assert len(of_each) > 4
    for test in of_each:
        test(exercise)
    for mistake in exercise.mistakes:
        test_exercises.test_a_known_mistake_is_found_under_its_own_name(exercise, mistake)
    test_kinds.test_no_slip_of_these_kinds_passes(exercise)


def test_the_numbers_of_the_teachers_page_are_those_of_the_code():
    from d2lmini.exercises import __main__ as command
    from d2lmini.exercises import grading, notebook

    text = TEACHING.read_text("utf-8")
    assert f"stopped after {grading.SECONDS:.0f} seconds" in text
    assert f"`--seconds` (default {command.SECONDS})" in text
    assert f"`--memory` ({command.MEGABYTES} MB)" in text
    assert f"larger than {notebook.LARGEST_FILE // 2**20} MB" in text
    assert (grading.ABSOLUTE, grading.RELATIVE) == (1e-5, 1e-4)
    assert r"$10^{-5} + 10^{-4} \cdot" in text
