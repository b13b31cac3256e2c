"""What is said of a wrong answer that no known mistake explains: what one change would give it."""

import sys

import numpy as np
import pytest
from answers import EXERCISES, on, run_text

from d2lmini.exercises import find, grade, grading, guards
from d2lmini.exercises.variations import CHANGES, variations

RIGHT = find("additive_score").reference


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda x: -x, "Your result is of the opposite sign."),
        (lambda x: x[..., ::-1], "Your result is reversed within each row."),
        (lambda x: x**2, "Your result is squared."),
        (lambda x: 3 * x, "Each number is 3 times the right one, whatever the input."),
        (lambda x: x + 0.5, "Each number is too large by 0.5."),
        (lambda x: x[None], "Your result is given an axis of length 1 that should not be there."),
        (lambda x: x + 0.1 * x**3, ""),
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
        # Written otherwise than the solution is.
        ("moved_tokens(x, w_q, w_k, w_v, steps)",
         "for _ in range(steps + 1):\n        q, k, v = x @ w_q, x @ w_k, x @ w_v\n"
         "        s = q @ k.T / len(w_q[0]) ** 0.5\n"
         "        e = np.exp(s - s.max(1)[:, None])\n"
         "        x = x + e / e.sum(1)[:, None] @ v\n    return x",
         "It is as if steps were one larger than it should be."),
        ("attention(query, key, value, bias)",
         "s = np.einsum('nd,md->nm', query, key) / key.shape[1] ** 0.5 * bias\n"
         "    e = np.exp(s - s.max(1)[:, None])\n    return (e / e.sum(1)[:, None]) @ value",
         "It is as if “× bias” stood in place of “+ bias”."),
        ("lookup_score(weights, tokens)",
         "last, found = {}, []\n    for i, t in enumerate(tokens.tolist()):\n"
         "        if t in last:\n            found.append(weights[i][last[t] + 1])\n"
         "        last[t] = i\n    return sorted(found)[-1]",
         "It is as if the largest were taken, not the mean."),
        ("who_told(parts, query, place)",
         "s = np.einsum('pnd,d->pn', parts, query) / len(query)\n    n = s.shape[1]\n"
         "    return s[:, place] - (s.sum(1) - s[:, place]) / (n - 1)",
         "It is as if the root were left out."),
        ("dropped_attention(query, key, value, kept, training)",
         "s = query @ key.T / key.shape[1] ** 0.5\n    e = np.exp(s - s.max(0))\n"
         "    w = e / e.sum(0)\n    return (2 * w * kept if training else w) @ value, w",
         "It is as if the softmax ran over the queries, not over the keys."),
        ("decode_step(query, key, value, cached_key, cached_value)",
         "k, v = np.r_[cached_key, key], np.r_[cached_value, value]\n"
         "    e = np.exp((s := query @ k.T / key.shape[1] ** 0.5) - s.max())\n"
         "    return e / e.sum() @ v, v, k",
         "You returned keys and values in each other's place."),
        # Two slips at once, slips that cannot be told from others by what is tried here, and
        # what gives nan whatever the numbers are.
        ("attend_to_others(x)",
         "s = x @ x.T / x.shape[1] ** 0.5\n    np.fill_diagonal(s, np.inf)\n"
         "    e = np.exp(s - s.max(1)[:, None])\n"
         "    return e / e.sum(1)[:, None] @ x if len(x) > 1 else 0 * x", grading.OF_NAN),
        ("values_used(weights)", "return (weights > 0.1).sum(1)", ""),
        ("moved_tokens(x, w_q, w_k, w_v, steps)",
         "for _ in range(steps + 1):\n        x = x - (x @ w_q) @ (x @ w_k).T @ (x @ w_v)\n"
         "    return x", ""),
        ("ask_or_nobody(query, key, value, least)",
         "q, k = (x / np.sqrt((x**2).sum(1))[:, None] for x in (query, key))\n"
         "    s = q @ k.T / 0.1\n    e = np.exp(s)\n"
         "    return np.where(s.max(1)[:, None] >= least, e / e.sum(1)[:, None] @ value, 0)", ""),
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


def test_without_an_alarm_no_clock_slows_what_is_tried(monkeypatch):
    """In a browser a learner's answer is timed at each step of Python; what is our own is not."""
    traced = []

    def watched(exercise):
        yield "It is as if nothing were wrong.", lambda *case: traced.append(sys.gettrace())

    monkeypatch.setattr(guards, "_has_alarm", lambda: False)
    monkeypatch.setattr(grading, "variations", watched)
    before = sys.gettrace()
    assert grade(lambda *case: RIGHT(*case) ** 3, name="additive_score").says == ""
    assert traced == [before]


def test_a_known_mistake_comes_first_and_of_two_results_one_is_named():
    def merged(*case):
        output, total = find("merge_outputs").reference(*case)
        return output, 2 * total + 1

    assert grade(merged, name="merge_outputs").says == ""
    merged = find("merge_outputs").reference
    result = grade(lambda *case: (-merged(*case)[0], merged(*case)[1]), name="merge_outputs")
    assert result.says == "Of output: Your result is of the opposite sign."


def test_right_numbers_of_the_wrong_kind_are_explained_by_nothing_else():
    result = grade(lambda *case: float(np.prod(case)) * 2, name="cache_bytes")
    assert "wrong kind" in str(result) and result.says == ""


@pytest.mark.filterwarnings("ignore")  # of the compiler, about what makes no sense
@pytest.mark.parametrize("exercise", [on(exercise) for exercise in EXERCISES])
def test_there_is_much_to_try_and_each_has_a_sentence(exercise):
    said = [says for says, _ in variations(exercise)]
    assert len(said) > len(CHANGES)
    assert all(says.startswith("It is as if ") and says.endswith(".") for says in said)
    assert max(map(len, said)) < 150
