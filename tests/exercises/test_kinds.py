"""Slips of every kind, made of each exercise's own solution: none may pass, whatever the inputs."""

import numpy as np
import pytest
from answers import EXERCISES, agrees, on, run_text

from d2lmini.exercises import find, grade, grading
from d2lmini.exercises.grading import outcomes_of

KINDS = {
    "cast to int": lambda x: x.astype(int),
    "rounded": lambda x: np.round(x, 1),
    "absolute": np.abs,
    "without what is negative": lambda x: np.maximum(x, 0),
    "squeezed": np.squeeze,
    "sorted": lambda x: np.sort(x, axis=-1),
    "reversed": lambda x: np.flip(x, axis=-1),
    "shifted": lambda x: x - x.min(),
}


def slipped(exercise, kind, where):
    """Return the solution with this done to one of its arguments or results."""
    change = KINDS[kind]
    solution = run_text(exercise.solution, exercise.function)

    def at(things, position):
        return tuple(change(x) if i == position else x for i, x in enumerate(things))

    if exercise.needs_torch:
        import torch

        def changed(x):
            return torch.from_numpy(np.ascontiguousarray(change(x.detach().numpy()))).to(x.dtype)

        class Slipped(solution):
            def forward(self, x):
                after = where in exercise.returns
                return changed(super().forward(x)) if after else super().forward(changed(x))

        return Slipped

    def answer(*arguments):
        if where in exercise.arguments:
            return solution(*at(arguments, exercise.arguments.index(where)))
        result = solution(*arguments)
        if len(exercise.returns) == 1:
            return change(np.asarray(result))
        return at(result, list(exercise.returns).index(where))

    return answer


def places(exercise):
    """Return the names of what is an array of numbers in all cases of an exercise."""
    cases = exercise.cases()
    arrays = [
        name
        for name, *values in zip(exercise.arguments, *cases, strict=True)
        if all(isinstance(x, np.ndarray) and x.dtype.kind == "f" for x in values)
    ]
    return [*arrays, *exercise.returns]


# What changes no right answer, by its nature: why, the kinds, and the arguments or results.
EQUAL = [
    ("shifted",  # only differences count, or the order; or the least is 0
     "one_hot.scores one_hot.weights change_without.key change_without.value "
     "click_gradient.scores softmax.scores output_gradient.key output_gradient.value "
     "leave_one_out_error.x leave_one_out_error.y masked_softmax.scores masked_softmax.weights "
     "attention.key lookup_score.weights who_told.parts logit_lens.embedding "
     "share_of_first.weights fair_control.loudness tiled_attention.key padded_attention.key "
     "dropped_attention.key beyond_control.without"),
    ("absolute, without what is negative",  # nothing is negative
     "one_hot.weights trigram_vectors.vectors change_without.moves weighted_average.weights "
     "softmax.weights values_used.weights values_used.values_used leave_one_out_error.error "
     "masked_softmax.weights count_parameters.parameters lookup_score.weights "
     "lookup_score.score logit_lens.probabilities share_of_first.weights share_of_first.shares "
     "fair_control.loudness fair_control.control cache_bytes.bytes tiled_attention.tiles "
     "dropped_attention.weights head_importance.moves nobody_threshold.wrong "
     "beyond_control.without invariants_measured.measured"),
    ("absolute",  # only lengths count; one True or False
     "finds_no_fault.right share_of_first.value"),
    ("cast to int, rounded",  # the numbers are whole
     "one_hot.weights count_parameters.parameters fair_control.control cache_bytes.bytes "
     "tiled_attention.tiles without_vowels.left"),
    ("squeezed",  # a number, a vector, or a size that is never 1
     "change_without.moves click_gradient.scores click_gradient.slopes leave_one_out_error.x "
     "leave_one_out_error.y leave_one_out_error.error count_parameters.parameters "
     "finds_no_fault.right lookup_score.weights lookup_score.score logit_lens.gain "
     "cache_bytes.bytes tiled_attention.tiles keep_heads.w_o nobody_threshold.other_scores "
     "nobody_threshold.threshold nobody_threshold.wrong"),
    ("sorted, reversed",  # the order does not count, or there is one column
     "values_used.weights share_of_first.value merge_outputs.log_total "
     "merge_outputs.other_log_total"),
    ("reversed",  # the lengths do not depend on the order
     "change_without.value head_importance.w_o"),
]  # fmt: skip
RESULTS_OF_MASKS = {"mask", "weights above 0.9"}


@pytest.mark.parametrize("exercise", [on(exercise) for exercise in EXERCISES])
def test_no_slip_of_these_kinds_passes(exercise):
    right = outcomes_of(exercise, exercise.reference)
    passed = set()
    for where in places(exercise):
        place = f"{exercise.name}.{where}".replace(" ", "_")
        equal = {
            kind for kinds, named in EQUAL if place in named.split() for kind in kinds.split(", ")
        }
        for kind in {*KINDS} - equal if where not in RESULTS_OF_MASKS else ():
            if agrees(exercise, right, slipped(exercise, kind, where)):
                passed.add((where, kind))
    assert not passed, (
        "add a case that shows the slip; where it cannot change a right answer, name it in EQUAL"
    )


SLIPS = [
    # A shift that does not come from the row's largest score.
    ("with_nobody", "scaled.max(axis=-1, keepdims=True)", "scaled.mean(axis=-1, keepdims=True)"),
    # A width that cannot be small.
    ("kernel_regression", "(2 * width**2)", "(2 * max(width, 0.5) ** 2)"),
    # Texts that are tidied up first, and pieces that come often.
    ("trigram_vectors", "text.lower()", "text.lower().replace('-', '')"),
    ("trigram_vectors", "pieces.count(gram) for", "min(pieces.count(gram), 3) for"),
    # Sizes that are not there: one component, one token, more queries than keys.
    ("attention", "key.shape[-1]", "max(key.shape[-1], 2)"),
    ("OneHead", "scores.softmax(dim=-1)", "scores.softmax(dim=-1).squeeze()"),
    ("window_mask", "num_keys - num_queries", "max(0, num_keys - num_queries)"),
    ("lookup_score", "reversed(range(i))", "reversed(range(max(0, i - 3), i))"),
    # What is right for numbers, and learns nothing.
    ("OneHead", "scores.softmax(dim=-1) @ value", "scores.softmax(dim=-1).detach() @ value"),
    ("CausalHeads", "self.w_o(", "self.w_o.requires_grad_(False)("),
    # A bend that only large numbers reach.
    ("ParallelBlock", "self.widen(h).relu()", "nn.functional.relu6(self.widen(h))"),
    # Whole numbers that wrap, or that are floats; token numbers as in a large vocabulary.
    ("cache_bytes", "numbers * layers", "np.int32(numbers) * layers"),
    ("cache_bytes", "numbers * layers", "1.0 * numbers * layers"),
    ("cache_bytes", "numbers * layers * tokens", "int(1.00001 * numbers * layers * tokens)"),
    ("lookup_score", "found = []", "found, tokens = [], tokens.astype(np.int16)"),
    # Positions that a table or a narrow number does not reach.
    ("rotary", "t = start + ", "t = start % 1024 + "),
    ("later_positions", "angle = steps /", "angle = steps % 1000 /"),
    # Weights that are hidden late.
    ("cross_attention", "return attention(x @ w_q, y @ w_k, y @ w_v, mask=mask).output",
     "w = attention(x @ w_q, y @ w_k, y @ w_v).weights * mask\n"
     "    return w / w.sum(-1, keepdims=True) @ (y @ w_v)"),
    # An empty cache that is taken for a short text; a batch in which every item is empty.
    ("keep_window", "    kept = []",
     "    if not len(cached_key): return key, value\n    kept = []"),
    ("padded_attention", "    sees =", "    max(n for n in lengths if n)\n    sees ="),
]  # fmt: skip


@pytest.mark.parametrize(("name", "old", "new"), SLIPS)
def test_a_slip_does_not_pass(name, old, new, monkeypatch):
    monkeypatch.setattr(grading, "_diagnosed", lambda exercise, fn, found, *outcomes: found)
    exercise = find(name)
    if exercise.needs_torch:
        pytest.importorskip("torch")
    text = exercise.solution.replace(old, new)
    assert text != exercise.solution
    result = grade(run_text(text, exercise.function), name=name)
    assert result.status in ("wrong", "error"), result
