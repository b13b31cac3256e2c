"""Slips of every kind, made of each exercise's own solution: none may pass, whatever the inputs."""

from dataclasses import replace

import numpy as np
import pytest
from answers import EXERCISES, agrees, on, run_text

from d2lmini.exercises import find, grade
from d2lmini.exercises.grading import outcomes_of

KINDS = {
    "cast to int": lambda x: x.astype(int),
    "rounded": lambda x: np.round(x, 1),
    "absolute": np.abs,
    "without what is negative": lambda x: np.maximum(x, 0),
    "single digits": lambda x: x.astype(np.float16).astype(float),
    "squeezed": np.squeeze,
    "sorted": lambda x: np.sort(x, axis=-1),
    "reversed": lambda x: np.flip(x, axis=-1),
    "first row for all": lambda x: np.broadcast_to(x[:1], x.shape).copy(),
    "clipped": lambda x: np.clip(x, -1, 1),
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


# What changes no right answer, by its nature.
NOT_NEGATIVE = {"absolute", "without what is negative"}
WEIGHTS = NOT_NEGATIVE | {"clipped"}
ONE_ROW = {"first row for all"}
ONE_COLUMN = {"sorted", "reversed"}
EQUAL = {
    ("one_hot", "scores"): {"shifted"},  # only differences count, or the order
    ("one_hot", "weights"): WEIGHTS | {"cast to int", "rounded", "single digits", "shifted"},
    ("cosine_scores", "scores"): {"clipped"},
    ("trigram_vectors", "vectors"): WEIGHTS,
    ("change_without", "key"): {"shifted"},
    ("change_without", "value"): {"reversed", "shifted"},
    ("change_without", "moves"): NOT_NEGATIVE | {"squeezed"},
    ("click_gradient", "scores"): {"shifted", "squeezed"},
    ("click_gradient", "slopes"): {"squeezed"},
    ("weighted_average", "weights"): NOT_NEGATIVE,
    ("softmax", "scores"): {"shifted"},
    ("softmax", "weights"): WEIGHTS,
    ("values_used", "weights"): WEIGHTS | {"sorted", "reversed"},
    ("values_used", "values used"): NOT_NEGATIVE,
    ("output_gradient", "key"): {"shifted"},
    ("output_gradient", "value"): {"shifted"},
    ("leave_one_out_error", "x"): {"shifted", "squeezed"},
    ("leave_one_out_error", "y"): {"shifted", "squeezed"},
    ("leave_one_out_error", "error"): NOT_NEGATIVE | {"squeezed"},
    ("masked_softmax", "scores"): {"shifted"},
    ("masked_softmax", "weights"): WEIGHTS | {"shifted"},
    ("attention", "key"): {"shifted"},
    ("count_parameters", "parameters"): NOT_NEGATIVE | {"cast to int", "rounded", "squeezed"},
    ("later_positions", "waves"): {"clipped"},
    ("finds_no_fault", "right"): {"absolute", "squeezed"},  # one True or False
    ("lookup_score", "weights"): WEIGHTS | {"shifted", "squeezed"},
    ("lookup_score", "score"): WEIGHTS | {"squeezed"},
    ("who_told", "parts"): {"shifted"},  # adds the same to every key
    ("logit_lens", "gain"): {"squeezed"},
    ("logit_lens", "embedding"): {"shifted"},
    ("logit_lens", "probabilities"): WEIGHTS,
    ("share_of_first", "weights"): WEIGHTS | {"shifted"},  # at least one of them is 0
    ("share_of_first", "value"): {"absolute", "sorted", "reversed"},  # only lengths count
    ("share_of_first", "shares"): WEIGHTS,
    ("fair_control", "loudness"): NOT_NEGATIVE | {"shifted"},
    ("fair_control", "control"): NOT_NEGATIVE | {"cast to int", "rounded", "single digits"},
    ("cache_bytes", "bytes"): NOT_NEGATIVE | {"cast to int", "rounded", "squeezed"},
    ("tiled_attention", "key"): {"shifted"},
    ("tiled_attention", "tiles"): NOT_NEGATIVE | {"cast to int", "rounded", "squeezed"},
    ("merge_outputs", "log_total"): ONE_COLUMN,
    ("merge_outputs", "other_log_total"): ONE_COLUMN,
    ("padded_attention", "key"): {"shifted"},
    ("dropped_attention", "key"): {"shifted"},
    ("dropped_attention", "weights"): WEIGHTS,
    ("keep_heads", "w_o"): {"squeezed"},
    ("decode_step", "query"): ONE_ROW,
    ("decode_step", "key"): ONE_ROW,
    ("decode_step", "value"): ONE_ROW,
    ("decode_step", "output"): ONE_ROW,
    ("head_importance", "w_o"): {"reversed"},
    ("head_importance", "moves"): NOT_NEGATIVE,
    ("without_vowels", "left"): {"cast to int", "rounded", "single digits"},
    ("mean_pool", "vectors"): {"clipped"},
    ("nobody_threshold", "other_scores"): {"squeezed"},
    ("nobody_threshold", "threshold"): {"squeezed"},
    ("nobody_threshold", "wrong"): WEIGHTS | {"squeezed"},
    ("beyond_control", "without"): WEIGHTS | {"shifted"},  # shares; only differences count
    ("beyond_control", "effect"): {"clipped"},
    ("invariants_measured", "measured"): NOT_NEGATIVE,
}
CLOSE = {"single digits"}  # of an argument: within what float32 may differ by, after a softmax
RESULTS_OF_MASKS = {"mask", "weights above 0.9"}


@pytest.mark.parametrize("exercise", [on(exercise) for exercise in EXERCISES])
def test_no_slip_of_these_kinds_passes(exercise):
    right = outcomes_of(exercise, exercise.reference)
    passed = set()
    for where in places(exercise):
        for kind in KINDS:
            if where in RESULTS_OF_MASKS or kind in EQUAL.get((exercise.name, where), set()):
                continue
            if kind in CLOSE and where in exercise.arguments:
                continue
            if agrees(exercise, right, slipped(exercise, kind, where)):
                passed.add((where, kind))
    assert not passed, (
        "add a case that shows the slip; where it cannot change a right answer, name it in EQUAL"
    )


def test_a_list_of_kinds_would_notice():
    """With the first cases alone, slips of several kinds pass: the test can fail."""
    exercise = find("share_heads")
    few = replace(exercise, cases=lambda: exercise.cases()[:3])
    right = outcomes_of(few, few.reference)
    assert agrees(few, right, slipped(few, "cast to int", "keys"))


SLIPS = [
    # A shift that does not come from the row's largest score.
    ("with_nobody", "scaled.max(axis=-1, keepdims=True)", "scaled.mean(axis=-1, keepdims=True)"),
    ("decode_step", "scores.max(axis=-1, keepdims=True)", "scores[:, -1:]"),
    ("masked_softmax", "np.where(mask, scores, -np.inf)", "np.where(mask, scores, -100)"),
    ("masked_softmax", "np.where(mask, scores, -np.inf)", "scores * mask"),
    # A width that cannot be small.
    ("kernel_regression", "(2 * width**2)", "(2 * max(width, 0.5) ** 2)"),
    # Words that are put in order first.
    ("trigram_vectors", "text.lower()", "' '.join(text.lower().split())"),
    ("trigram_vectors", "text.lower()", "text.lower().replace(chr(32), chr(32) * 2)"),
    ("trigram_vectors", "text.lower()", "text.lower().replace(chr(39), chr(0)[1:])"),
    ("trigram_vectors", "pieces.count(gram) for", "min(pieces.count(gram), 2) for"),
    ("trigram_vectors", "text.lower()", "text.lower().strip()"),
    ("trigram_vectors", "text.lower()", "text.lower().replace('-', '')"),
    ("trigram_vectors", 'f" {text.lower()} "', 'f"  {text.lower()}  "'),
    ("trigram_vectors", "pieces.count(gram) for", "min(pieces.count(gram), 3) for"),
    # Limits that numbers of the usual size do not reach.
    ("masked_softmax", "np.where(mask, scores, -np.inf)", "np.where(mask, scores, -1e4)"),
    ("tiled_attention", "np.full((n, 1), -np.inf)", "np.zeros((n, 1))"),
    ("tiled_attention", "np.full((n, 1), -np.inf)", "np.full((n, 1), -100.0)"),
    # Sizes that are not there: one component, one token, more queries than keys, a long cache.
    ("attention", "key.shape[-1]", "max(key.shape[-1], 2)"),
    ("packed_self_attention", "key.shape[-1]", "max(key.shape[-1], 2)"),
    ("OneHead", "scores.softmax(dim=-1)", "scores.softmax(dim=-1).squeeze()"),
    ("window_mask", "num_keys - num_queries", "max(0, num_keys - num_queries)"),
    ("keep_window", "joined[sinks:][-window:]", "joined[sinks:][-min(window, 4) :]"),
    ("lookup_score", "reversed(range(i))", "reversed(range(max(0, i - 3), i))"),
    # Another middle than the mean.
    ("who_told", "others.mean(axis=1)", "np.median(others, axis=1)"),
    # What is right for numbers, and learns nothing.
    ("OneHead", "scores.softmax(dim=-1) @ value", "(scores.softmax(dim=-1) @ value).detach()"),
    ("OneHead", "scores.softmax(dim=-1) @ value", "scores.softmax(dim=-1).detach() @ value"),
    ("CausalHeads", "self.w_o(", "self.w_o.requires_grad_(False)("),
    # A bend that only large numbers reach.
    ("ParallelBlock", "self.widen(h).relu()", "nn.functional.relu6(self.widen(h))"),
    # An empty cache that is taken for a short text; whole numbers that wrap, or that are floats.
    (
        "keep_window",
        "    kept = []",
        "    if not len(cached_key): return key, value\n    kept = []",
    ),
    ("cache_bytes", "numbers * layers", "np.int32(numbers) * layers"),
    ("cache_bytes", "numbers * layers", "1.0 * numbers * layers"),
    ("cache_bytes", "numbers * layers * tokens", "int(1.00001 * numbers * layers * tokens)"),
    # Token numbers as they are in a large vocabulary.
    ("lookup_score", "found = []", "found, tokens = [], tokens.astype(np.uint8)"),
    ("lookup_score", "found = []", "found, tokens = [], tokens.astype(np.int16)"),
    ("lookup_score", "found = []", "found, tokens = [], tokens.astype(np.float16)"),
    # Positions that a table or a narrow number does not reach.
    ("rotary", "t = start + ", "t = start % 1024 + "),
    ("later_positions", "angle = steps /", "angle = steps % 1000 /"),
    # A state that is read along the wrong axis where it is square.
    (
        "linear_attention",
        "asked @ state /",
        "(state @ asked if len(state) == state.shape[1] else asked @ state) /",
    ),
    # Weights that are hidden late, or scores too large for exp.
    (
        "cross_attention",
        "return attention(x @ w_q, y @ w_k, y @ w_v, mask=mask).output",
        "w = attention(x @ w_q, y @ w_k, y @ w_v).weights * mask\n"
        "    return w / w.sum(-1, keepdims=True) @ (y @ w_v)",
    ),
    (
        "cross_attention",
        "return attention(x @ w_q, y @ w_k, y @ w_v, mask=mask).output",
        "w = np.exp((x @ w_q) @ (y @ w_k).swapaxes(1, 2) / w_k.shape[1] ** 0.5) * mask\n"
        "    return w / w.sum(-1, keepdims=True) @ (y @ w_v)",
    ),
    # Scores too large for exp, in exercises that the library may be used in.
    (
        "dropped_attention",
        "weights = attention(query, key, value).weights",
        "e = np.exp(query @ key.T / query.shape[-1] ** 0.5)\n"
        "    weights = e / e.sum(axis=-1, keepdims=True)",
    ),
    (
        "change_without",
        "return attention(query[None], key, value, score=dot_product_score).output[0]",
        "return np.exp(key @ query) @ value / np.exp(key @ query).sum()",
    ),
    # A batch in which every item is empty.
    ("padded_attention", "    sees =", "    max(n for n in lengths if n)\n    sees ="),
]


@pytest.mark.parametrize(("name", "old", "new"), SLIPS)
def test_a_slip_does_not_pass(name, old, new):
    exercise = find(name)
    if exercise.needs_torch:
        pytest.importorskip("torch")
    text = exercise.solution.replace(old, new)
    assert text != exercise.solution
    result = grade(run_text(text, exercise.function), name=name)
    assert result.status in ("wrong", "error"), result
