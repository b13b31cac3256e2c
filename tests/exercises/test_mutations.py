"""Every solution with one change in it is rejected, or it is named here why it is right as well."""

import re
from dataclasses import replace

import numpy as np
import pytest
from answers import EXERCISES, agrees, on, run_text

from d2lmini.exercises import find, grading
from d2lmini.exercises.grading import grade_exercise, outcomes_of
from d2lmini.exercises.mutants import mutants

# Where no array has more than two axes, the last is axis 1.
LAST_OF_TWO = r"axis: .*axis=-1.* -> .*axis=1.*|sign: -1 -> 1"
# Why a changed solution is right: the reason, the exercises, and what has been changed.
RIGHT = [
    ("what is summed over the tokens has two axes", "mean_pool", r"axis: .*total, axis=-1.*"),
    ("the second of three axes is axis -2", "mean_pool", r"axis: .*axis=1.* -> .*axis=-2.*"),
    ("what is divided by its length may be a mean", "mean_pool", r"other: .*sum.*mean.*"),
    ("of two axes the first is axis -2", "change_without", r"axis: .*axis=0.* -> .*axis=-2.*"),
    ("two axes may be swapped in either order",
     "grouped_attention CausalHeads",
     r"order: .*(swapaxes|transpose).*"),
    ("a scale, a length and a count are of one row",
     "decode_step", r"(missing|axis): .*(max|sum)\(.*|other: True -> False"),
    ("the last of four axes is also the one after all the others; two of four are the last two",
     "CausalHeads", r"sign: -2 -> 2|(missing|off by one): -2:.*"),
    ("a mask for all heads may be made for each", "CausalHeads", r"missing: -2: -> :"),
    ("what is asked for is at the two axes at either end of the swap",
     "grouped_attention CausalHeads", r"off by one: [12] -> [23]"),
    ("0 divided by any number is 0, and its logarithm counts 0 times",
     "cosine_scores trigram_vectors values_used masked_softmax mean_pool",
     r"off by one: 1\.0 -> 2\.0"),
    ("exp(-inf) is 0 whatever is subtracted", "masked_softmax",
     r"off by one: 0\.0 -> -?1\.0|missing: mask\.any.*"),
    ("a length or a square has no sign",
     "change_without kernel_regression leave_one_out_error head_importance fair_control "
     "invariants_measured", r"order: .* - .*"),
    ("the store has one query, and the list one name", "change_without invariants_measured",
     r"off by one: 0 -> -1"),
    ("the first part of what attention returns is its output", "change_without",
     r"missing: attention.*"),
    ("pieces that are too short are in no vocabulary", "trigram_vectors",
     r"(sign|missing): len\(padded\) - 2.*|off by one: 2 -> 1"),
    ("counts are at least 1 where they are not 0, and whole", "trigram_vectors",
     r"off by one: 0 -> 1|missing: np\.array\(rows.*"),
    ("counts, sums, means, sets and merged tiles have no order",
     "trigram_vectors lookup_score fair_control tiled_attention without_vowels",
     r"first or last: .*\[::-1\]|order: \[0, 4, 8.*"),
    ("the steps and the heads are done one by one, each in its own place",
     "moved_tokens beyond_control", r"first or last: .*\[::-1\]"),
    ("if one factor is centred, the other need not be", "output_gradient",
     r"(sign|missing): (value - output|key - mean_key) -> .*"),
    ("any number that is large enough", "previous_token", r"off by one: (1 -> 2|20 -> 2?1?9?).*"),
    ("the larger of two numbers, and a sum, are the same in either order",
     "merge_outputs tiled_attention linear_attention",
     r"order: (np\.(logaddexp|maximum|minimum)|asked @ normaliser).*"),
    ("x + 1 and exp(x) agree at 0, and np.where leaves the other branch alone",
     "linear_attention", r"comparison: x > 0.*|missing: np\.minimum.*|off by one: 0 -> 1"),
    ("a slice begins at 0", "later_positions", r"missing: 0::2 -> ::2"),
    ("the first token has no earlier one", "lookup_score", r"first or last: .*\[1:\]"),
    ("argmin finds the same in a count and in a share", "nobody_threshold",
     r"other: .*\.sum\(\).*\.mean\(\)"),
    ("another draw, a longer text or the opposite mask tests as well", "finds_no_fault",
     r"off by one: .*|comparison: rng.*|(missing|order): np\.allclose.*"),
    ("letters are 0 to 25, names have at most 64 of them, and layers and heads are few",
     "without_vowels mean_pool fair_control", r"int8: .*"),
    ("NumPy works out the size that is written as a negative number", "split_heads keep_heads",
     r"off by one: 1 -> 2"),
    ("the rows of a head come back in their order, whatever its axes are in between", "keep_heads",
     r"order: w_o\.reshape\(.*|off by one: 1 -> 0"),
]  # fmt: skip


def survivors(exercise):
    """Return the changes that pass: most do not agree with the reference, and need no grade."""
    right = outcomes_of(exercise, exercise.reference)
    for kind, what, text in mutants(exercise.solution):
        answer = run_text(text, exercise.function)
        if agrees(exercise, right, answer, limit=0.3) and grade_exercise(exercise, answer):
            yield f"{kind}: {what}"


@pytest.fixture(autouse=True)
def short(monkeypatch):
    monkeypatch.setattr(grading, "SECONDS", 0.3)  # a changed loop may have no end
    # A diagnosis takes time, and is tested elsewhere.
    monkeypatch.setattr(grading, "_diagnosed", lambda exercise, fn, found, *outcomes: found)


@pytest.mark.parametrize("exercise", [on(exercise) for exercise in EXERCISES])
def test_no_changed_solution_passes_without_a_reason(exercise):
    given = {reason: pattern for reason, names, pattern in RIGHT if exercise.name in names.split()}
    two = all(np.ndim(x) <= 2 for case in exercise.cases() for x in case)
    used, left = set(), []
    for what in survivors(exercise):
        why = [reason for reason, pattern in given.items() if re.fullmatch(pattern, what)]
        used.update(why)
        left += [] if why or (two and re.fullmatch(LAST_OF_TWO, what)) else [what]
    assert not left, "add a case that shows it; if it is right as well, say why in RIGHT"
    assert used == set(given), "a reason for what does not pass excuses what may pass later"


def test_a_case_less_is_noticed():
    """Without its last cases, an exercise lets mutants through: the test can fail."""
    exercise = find("masked_softmax")
    few = replace(exercise, cases=lambda: exercise.cases()[:3])
    assert "fill: -np.inf -> -10000.0" in {*survivors(few)} - {*survivors(exercise)}
