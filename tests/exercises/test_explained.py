"""What is said of a wrong answer that no known mistake explains: what one change would give it."""

import numpy as np
import pytest
from answers import run_text

from d2lmini.exercises import find, grade, grading

RIGHT = find("additive_score").reference


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: -x, "Your result is of the opposite sign."),
        (lambda x: 3 * x, "Each number is 3 times the right one, whatever the input."),
        (lambda x: x + 0.5, "Each number is too large by 0.5."),
        (lambda x: -x if x.size > 4 else x + 1, ""),  # what holds on some inputs only is not said
        (lambda x: x * np.nan, grading.OF_NAN),  # as good as any other reason for nan
    ],
)
def test_what_holds_on_every_input_is_said(change, says):
    result = grade(lambda *case: change(RIGHT(*case)), name="additive_score")
    assert result.status == "wrong"
    assert result.mistake is None
    assert result.says == says


@pytest.mark.parametrize(
    ("name", "body", "says"),
    [
        ("moved_tokens(x, w_q, w_k, w_v, steps)",
         "for _ in range(steps + 1):\n        q, k, v = x @ w_q, x @ w_k, x @ w_v\n"
         "        s = q @ k.T / len(w_q[0]) ** 0.5\n"
         "        e = np.exp(s - s.max(1)[:, None])\n"
         "        x = x + e / e.sum(1)[:, None] @ v\n    return x",
         "It is as if steps were one larger than it should be."),
        ("who_told(parts, query, place)",
         "s = np.einsum('pnd,d->pn', parts, query) / len(query)\n    n = s.shape[1]\n"
         "    return s[:, place] - (s.sum(1) - s[:, place]) / (n - 1)",
         "It is as if the root were left out."),
        ("decode_step(query, key, value, cached_key, cached_value)",
         "k, v = np.r_[cached_key, key], np.r_[cached_value, value]\n"
         "    e = np.exp((s := query @ k.T / key.shape[1] ** 0.5) - s.max())\n"
         "    return e / e.sum() @ v, v, k",
         "You returned keys and values in each other's place."),
    ],
)  # fmt: skip
def test_one_slip_is_said_however_the_answer_is_written(name, body, says):
    answer = run_text(f"def {name}:\n    {body}", name.split("(")[0])
    assert grade(answer).says == says


def test_what_never_learns_is_explained_by_no_change_of_the_numbers():
    pytest.importorskip("torch")
    text = find("OneHead").solution.replace("scores.softmax(dim=-1)", "scores.softmax(-1).detach()")
    result = grade(run_text(text, "OneHead"))
    assert "does not move with w_q.weight, w_k.weight" in result.head and result.says == ""


def test_of_two_results_one_is_named():
    merged = find("merge_outputs").reference
    result = grade(lambda *case: (-merged(*case)[0], merged(*case)[1]), name="merge_outputs")
    assert result.says == "Of output: Your result is of the opposite sign."


def test_right_numbers_of_the_wrong_kind_are_explained_by_nothing_else():
    result = grade(lambda *case: float(np.prod(case)) * 2, name="cache_bytes")
    assert "wrong kind" in str(result) and result.says == ""
