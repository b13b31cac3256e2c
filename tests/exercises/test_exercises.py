"""Every exercise: its solution passes, its stub is not attempted, its mistakes are found.

The known mistakes are the checker's tests: each is a wrong answer that must be rejected, under its
own name.
"""

import copy
import inspect
import itertools
import re

import numpy as np
import pytest
from answers import EXERCISES, HAS_TORCH, MISTAKES, assert_fits_a_terminal, graded, on, run_text

from d2lmini.exercises import find, grade
from d2lmini.exercises.grading import outcomes_of, same_outcomes
from scripts import stuck

each = pytest.mark.parametrize("exercise", [on(exercise) for exercise in EXERCISES])


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_an_exercise_is_complete(exercise):
    assert exercise.difficulty in ("warm-up", "easy", "medium", "hard")
    assert 5 <= exercise.minutes <= 30, "longer ones are two exercises, shorter ones a question"
    assert len(exercise.hints) >= 2, "the idea, then the call: give two hints or more"
    assert len(exercise.mistakes) >= 3, "a check explains only what it knows: three slips or more"
    widest = max(map(len, exercise.solution.splitlines()))
    assert widest <= 96, f"a cell has room for 96 letters of a solution, not {widest}: wrap it"
    for told in [m.id for m in exercise.mistakes], [m.says for m in exercise.mistakes]:
        assert len({*told}) == len(told)


@each
def test_the_printed_solution_passes(exercise):
    solution = run_text(exercise.solution, exercise.function)
    result = grade(solution)
    assert result and result.status == "pass", result


@each
def test_the_starter_is_not_attempted_and_has_the_signature_of_the_solution(exercise):
    assert exercise.starter.count("@check\n") == 1
    alone = "from d2lmini.exercises import check\n"  # it may be the first cell that runs
    assert exercise.starter.count(alone) == 1
    stub = run_text(exercise.starter.replace(alone, ""), exercise.function)
    assert grade(stub).status == "todo"
    solution = run_text(exercise.solution, exercise.function)
    for name in ["__init__", "forward"] if isinstance(stub, type) else [None]:
        one, two = (getattr(x, name) if name else x for x in (stub, solution))
        assert inspect.signature(one) == inspect.signature(two)
    widest = max(map(len, exercise.starter.splitlines()))
    assert widest <= 88, f"a cell on a page has room for 88 letters, not {widest}: wrap the task"


@each
def test_no_hint_contains_a_line_of_the_solution(exercise):
    lines = [line.split("#")[0].strip() for line in exercise.solution.splitlines()]
    hints = " ".join(" ".join(exercise.hints).split())
    assert not [x for x in lines if len(x) > 12 and x.removeprefix("return ") in hints]


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
        result = graded(exercise.name, fn)
        assert not result and result.status in ("wrong", "error")
        assert (result.mistake, result.says) == (mistake.id, mistake.says), result
        assert_fits_a_terminal(repr(result))


@pytest.mark.skipif(not HAS_TORCH, reason="the page has the mistakes in modules too")
def test_if_you_are_stuck_is_up_to_date():
    """Here, where each mistake has been graded."""
    text = stuck.PAGE.read_text("utf-8")
    assert text == stuck.page(text, graded), "run python scripts/stuck.py"
    rows = re.findall(r"^\| `.*", text.split(stuck.MARK)[1], re.MULTILINE)
    assert len(rows) == len(MISTAKES)
    assert {len(re.split(r"(?<!\\)\|", row)) for row in rows} == {5}, "columns"


@pytest.mark.parametrize("name", ["softmax", "project", "trigram_vectors", "fair_control"])
def test_an_answer_or_a_buffer_kept_by_shape_is_found(name):
    exercise, memory, buffers = find(name), {}, {}

    def remembers(*arguments):
        key = str(list(map(np.shape, arguments)))
        return copy.deepcopy(memory.setdefault(key, exercise.reference(*arguments)))

    def reuses(*arguments):
        result = exercise.reference(*arguments)
        parts = result if isinstance(result, tuple) else (result,)
        kept = buffers.setdefault(str(list(map(np.shape, arguments))), list(map(np.array, parts)))
        for buffer, part in zip(kept, parts, strict=True):
            buffer[...] = part
        return tuple(kept) if isinstance(result, tuple) else kept[0]

    result = grade(remembers, name=exercise.name)
    assert result.status == "wrong" and result.mistake is None
    assert result.head.startswith(("gave the result of an earlier input", "wrong values"))
    result = grade(reuses, name=exercise.name)
    assert result.head == "a later call changed the result of an earlier one."


@each
def test_no_two_mistakes_are_the_same_and_none_is_right(exercise):
    all_outcomes = [outcomes_of(exercise, exercise.reference)]
    all_outcomes += [outcomes_of(exercise, mistake.fn) for mistake in exercise.mistakes]
    for one, two in itertools.combinations(all_outcomes, 2):
        assert not same_outcomes(one, two)
