"""Every exercise: its solution passes, its stub is not attempted, its mistakes are found.

The known mistakes are the checker's tests: each is a wrong answer that must be rejected, under its
own name.
"""

import ast
import inspect
import time

import numpy as np
import pytest
from answers import EXERCISES, MISTAKES, on, run_text

from d2lmini.exercises import grade
from d2lmini.exercises.grading import grade_exercise, outcomes_of, same_outcomes

each = pytest.mark.parametrize("exercise", [on(exercise) for exercise in EXERCISES])
DIFFICULTIES = ["warm-up", "easy", "medium", "hard"]
SLOWEST = 0.3  # seconds


def timed(*arguments, **options):
    """Grade, and return the result and the processor's seconds: other programs run as well."""
    start = time.process_time()
    result = grade(*arguments, **options)
    return result, time.process_time() - start


@pytest.mark.parametrize("chapter", range(1, 6))
def test_a_chapter_goes_from_a_warm_up_to_half_an_hour(chapter):
    found = [exercise for exercise in EXERCISES if exercise.chapter == chapter]
    assert len(found) >= 4
    assert found[0].difficulty == "warm-up"
    assert min(exercise.minutes for exercise in found) == 5
    assert max(exercise.minutes for exercise in found) == 30
    assert {exercise.difficulty for exercise in found} == set(DIFFICULTIES)


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_an_exercise_is_complete(exercise):
    assert exercise.difficulty in DIFFICULTIES
    assert 5 <= exercise.minutes <= 30
    assert len(exercise.hints) >= 2
    assert len(exercise.mistakes) >= 3
    ids = [mistake.id for mistake in exercise.mistakes]
    assert len(set(ids)) == len(ids)
    says = [mistake.says for mistake in exercise.mistakes]
    assert len(set(says)) == len(says)
    assert all(
        text.rstrip(")").endswith((".", "?")) for text in (*says, *exercise.hints, exercise.task)
    )


NAMED = {  # the slips that are known from elsewhere and that this book must catch
    "softmax": {"axis", "whole-matrix", "no-max", "no-exp", "not-normalised"},
    "masked_softmax": {"polarity", "zeroed-scores", "after-softmax", "ignored"},
    "attention": {"no-scale", "scale-d", "scale-late", "axis", "no-softmax", "not-transposed"},
    "split_heads": {"no-transpose", "reshape-only", "interleaved"},
    "merge_heads": {"not-transposed-back"},
    "causal_mask": {"off-by-one", "transposed", "top-left"},
    "padding_mask": {"no-query-axis", "queries-hidden"},
    "kernel_regression": {"width-not-squared", "not-normalised"},
}


@pytest.mark.parametrize("name", NAMED)
def test_the_well_known_mistakes_are_there(name):
    (exercise,) = (exercise for exercise in EXERCISES if exercise.name == name)
    assert NAMED[name] <= {mistake.id for mistake in exercise.mistakes}


@each
def test_the_reference_passes(exercise):
    assert grade_exercise(exercise, exercise.reference).status == "pass"


@each
def test_the_printed_solution_passes_in_time(exercise):
    solution = run_text(exercise.solution, exercise.name)
    grade(solution)  # the first call loads what is loaded when needed
    result, taken = timed(solution)
    assert result.status == "pass", result
    assert taken < SLOWEST
    assert result


@each
def test_the_starter_is_not_attempted_and_has_the_signature_of_the_solution(exercise):
    assert exercise.starter.count("@check\n") == 1
    checked = []
    stub = run_text(exercise.starter, exercise.name, check=lambda fn: checked.append(fn) or fn)
    assert checked == [stub]
    assert grade(stub).status == "todo"
    solution = run_text(exercise.solution, exercise.name)
    for name in ["__init__", "forward"] if isinstance(stub, type) else [None]:
        one, two = (getattr(x, name) if name else x for x in (stub, solution))
        assert inspect.signature(one) == inspect.signature(two)
    assert all(len(line) <= 88 for line in exercise.starter.splitlines())


@each
def test_a_stub_without_its_docstring_is_not_attempted(exercise):
    tree = ast.parse(exercise.starter)
    node = tree.body[-1]
    assert isinstance(node.body[0].value, ast.Constant)
    del node.body[0]
    stub = run_text(ast.unparse(tree), exercise.name)
    assert stub.__doc__ is None
    assert grade(stub).status == "todo"


@each
def test_no_hint_contains_a_line_of_the_solution(exercise):
    lines = [line.split("#")[0].strip() for line in exercise.solution.splitlines()]
    hints = " ".join(" ".join(exercise.hints).split())
    for line in lines:
        if len(line) > 12:
            assert line not in hints
            assert line.removeprefix("return ") not in hints
    assert exercise.solution not in exercise.task


@each
def test_the_cases_are_fixed_small_and_not_square(exercise):
    first, second = exercise.cases(), exercise.cases()
    sizes = [sum(np.size(argument) for argument in case) for case in first]
    assert sizes[0] == min(sizes)
    assert len(first) >= 3
    for one, two in zip(first, second, strict=True):
        assert len(one) == len(exercise.arguments)
        assert all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize(("exercise", "mistake"), [on(*pair) for pair in MISTAKES])
def test_a_known_mistake_is_found_under_its_own_name(exercise, mistake):
    for fn in (mistake.fn, *mistake.also):
        result, taken = timed(fn, name=exercise.name)
        assert result.status in ("wrong", "error")
        assert result.mistake == mistake.id, result
        assert result.says == mistake.says
        assert not result
        assert len(repr(result).splitlines()) <= 24
        assert all(len(line) <= 120 for line in repr(result).splitlines())
        assert taken < SLOWEST


@each
def test_no_two_mistakes_are_the_same_and_none_is_right(exercise):
    all_outcomes = [outcomes_of(exercise, exercise.reference)]
    all_outcomes += [outcomes_of(exercise, mistake.fn) for mistake in exercise.mistakes]
    for i, one in enumerate(all_outcomes):
        for two in all_outcomes[i + 1 :]:
            assert not same_outcomes(one, two)


@each
def test_mistakes_and_checks_leave_the_random_state_alone(exercise):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    grade(run_text(exercise.solution, exercise.name))
    grade(exercise.mistakes[0].fn, name=exercise.name)
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002
