"""Every exercise: its solution passes, its stub is not attempted, its mistakes are found.

The known mistakes are the checker's tests: each is a wrong answer that must be rejected, under its
own name.
"""

import copy
import inspect
from dataclasses import replace

import numpy as np
import pytest
from answers import EXERCISES, HAS_TORCH, MISTAKES, assert_fits_a_terminal, graded, on, run_text

from d2lmini.exercises import find, grade
from d2lmini.exercises.grading import _rearranged, outcomes_of, same_outcomes
from scripts import stuck

each = pytest.mark.parametrize("exercise", [on(exercise) for exercise in EXERCISES])
DIFFICULTIES = ["warm-up", "easy", "medium", "hard"]
CHAPTERS = sorted({exercise.chapter for exercise in EXERCISES})


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_has_something_to_begin_with_and_something_to_grow_by(chapter):
    found = [exercise for exercise in EXERCISES if exercise.chapter == chapter]
    difficulties = {exercise.difficulty for exercise in found}
    assert len(found) >= 3, "a reader chooses: give the chapter three exercises or more"
    assert difficulties & {"warm-up", "easy"}, "give the chapter an easy exercise"
    assert difficulties & {"medium", "hard"}, "give the chapter one that takes some thought"


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda exercise: exercise.name)
def test_an_exercise_is_complete(exercise):
    assert exercise.difficulty in DIFFICULTIES
    assert 5 <= exercise.minutes <= 30, "longer ones are two exercises, shorter ones a question"
    assert len(exercise.hints) >= 2, "the idea, then the call: give two hints or more"
    assert len(exercise.mistakes) >= 3, "a check explains only what it knows: three slips or more"
    ids = [mistake.id for mistake in exercise.mistakes]
    assert len(set(ids)) == len(ids)
    says = [mistake.says for mistake in exercise.mistakes]
    assert len(set(says)) == len(says)
    assert all(
        text.rstrip(")").endswith((".", "?")) for text in (*says, *exercise.hints, exercise.task)
    )


NAMED = {  # the slips that are known from elsewhere and that this book must catch
    "softmax": {"axis", "base", "whole-matrix", "no-max", "one-max", "no-exp", "no-keepdims"},
    "masked_softmax": {"polarity", "zeroed-scores", "after-softmax", "ignored", "no-keepdims"}
    | {"no-max", "hidden-maximum", "one-maximum", "repaired-late"},
    "additive_score": {"row-by-row", "same-axis", "multiplied", "tanh-early", "no-tanh"},
    "attention": {"no-scale", "scale-d", "scale-late", "axis", "no-softmax", "not-transposed"},
    "weighted_average": {"not-normalised", "no-keepdims"},
    "project": {"not-transposed", "reshaped", "one-matrix"},
    "packed_self_attention": {"across-texts", "after-softmax", "scale-d", "one-max"},
    "OneHead": {"scale-d", "all-axes-transposed", "bare-parameters", "no-super", "bias"},
    "split_heads": {"no-transpose", "reshape-only", "interleaved", "head-by-head"},
    "keep_heads": {"interleaved", "order"},
    "causal_mask": {"off-by-one", "transposed", "top-left"},
    "attend_to_others": {"zeroed-scores", "after-softmax", "repaired-late", "no-key"},
    "kernel_regression": {"width-not-squared", "not-normalised"},
}


@pytest.mark.parametrize("name", NAMED)
def test_the_well_known_mistakes_are_there(name):
    assert NAMED[name] <= {mistake.id for mistake in find(name).mistakes}


@each
def test_the_printed_solution_passes(exercise):
    solution = run_text(exercise.solution, exercise.function)
    result = grade(solution)
    assert result.status == "pass", result
    assert result


@each
def test_the_starter_is_not_attempted_and_has_the_signature_of_the_solution(exercise):
    assert exercise.starter.count("@check\n") == 1
    checked = []
    alone = "from d2lmini.exercises import check\n"  # it may be the first cell that runs
    assert exercise.starter.count(alone) == 1
    stub = run_text(
        exercise.starter.replace(alone, ""),
        exercise.function,
        check=lambda fn: checked.append(fn) or fn,
    )
    assert checked == [stub]
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
        result = graded(exercise.name, fn)
        assert result.status in ("wrong", "error")
        assert result.mistake == mistake.id, result
        assert result.says == mistake.says
        assert not result
        assert_fits_a_terminal(repr(result))


@pytest.mark.skipif(not HAS_TORCH, reason="the page has the mistakes in modules too")
def test_if_you_are_stuck_is_up_to_date():
    """Here, where each mistake has been graded."""
    text = stuck.PAGE.read_text("utf-8")
    assert text == stuck.page(text, graded), "run python scripts/stuck.py"


def shapes(things):
    """Return what a memory by shape goes by."""
    sized = [np.asarray(thing) for thing in things]
    return tuple(array.shape or thing for array, thing in zip(sized, things, strict=True))


def numbers_alone(exercise):
    """Tell whether its arguments are, or names: an answer that is remembered is the right one."""
    return all(isinstance(thing, int | str) for case in exercise.cases() for thing in case)


ON_ARRAYS = [e for e in EXERCISES if not e.needs_torch and not numbers_alone(e)]


assert len(ON_ARRAYS) > len(EXERCISES) / 2, "most exercises take arrays or lists"


@pytest.mark.parametrize("exercise", [on(exercise) for exercise in ON_ARRAYS])
def test_an_answer_or_a_buffer_kept_by_shape_is_found(exercise):
    memory, buffers = {}, {}

    def remembers(*arguments):
        key = shapes(arguments)
        if key not in memory:
            memory[key] = exercise.reference(*arguments)
        return copy.deepcopy(memory[key])

    def reuses(*arguments):
        result = exercise.reference(*arguments)
        parts = result if isinstance(result, tuple) else (result,)
        kept = buffers.setdefault(shapes(arguments), [np.array(part) for part in parts])
        for buffer, part in zip(kept, parts, strict=True):
            buffer[...] = part
        return tuple(kept) if isinstance(result, tuple) else kept[0]

    result = grade(remembers, name=exercise.name)
    assert result.status == "wrong" and result.mistake is None
    assert result.head.startswith(("gave the result of an earlier input", "wrong values"))
    assert_fits_a_terminal(repr(result))
    result = grade(reuses, name=exercise.name)
    assert result.head == "a later call changed the result of an earlier one."


@pytest.mark.parametrize("exercise", [on(e) for e in EXERCISES if e.needs_torch])
def test_a_module_that_remembers_by_shape_is_found(exercise):
    module = run_text(exercise.solution, exercise.function)
    memory = {}

    class Remembers(module):
        def forward(self, x):
            if x.shape not in memory:
                memory[x.shape] = super().forward(x)
            return memory[x.shape].clone()

    result = grade(Remembers, name=exercise.name)
    assert result.head in (
        "gave the result of an earlier input of the same shape.",
        "right at first, but not when the same input came again.",  # its weights are others
    )


@each
def test_the_rearranged_cases_are_inputs_with_a_right_answer(exercise):
    other = replace(exercise, cases=lambda: list(map(_rearranged, exercise.cases())))
    for case, before, outcome in zip(
        other.cases(), exercise.cases(), outcomes_of(other, exercise.reference), strict=True
    ):
        assert shapes(case) == shapes(before)
        assert outcome.error is None
        assert all(np.isfinite(array).all() for array in outcome.arrays)


def test_an_answer_that_fails_on_other_values_only_is_not_called_a_memory():
    softmax = find("softmax").reference
    result = grade(lambda s: softmax(s) * (1 + (s[0, 0] == 1999)), name="softmax")
    assert result.head == "wrong values. The smallest input that shows it:"


@each
def test_no_two_mistakes_are_the_same_and_none_is_right(exercise):
    all_outcomes = [outcomes_of(exercise, exercise.reference)]
    all_outcomes += [outcomes_of(exercise, mistake.fn) for mistake in exercise.mistakes]
    for i, one in enumerate(all_outcomes):
        for two in all_outcomes[i + 1 :]:
            assert not same_outcomes(one, two)


@pytest.mark.parametrize(("low", "total"), [("-1", "-1"), ("-1", "-1, keepdims=True"), ("", "1")])
def test_a_softmax_without_keepdims_is_told_so(low, total):
    shift = f" - scores.max(axis={low})" if low else ""
    body = f"e = np.exp2(scores{shift})\n    return e / e.sum(axis={total})"
    result = grade(run_text(f"def softmax(scores):\n    {body}", "softmax"))
    assert result.mistake == "no-keepdims"


def test_the_root_of_the_number_of_queries_is_not_taken_for_that_of_the_values():
    def attention(query, key, value, bias):
        e = np.exp(query @ key.T / len(query) ** 0.5 + bias)
        return e / e.sum(axis=-1, keepdims=True) @ value

    assert grade(attention).mistake == "scale-queries"
