"""A head of a real model, run with right, wrong and missing answers."""

import json

import pytest
from answers import on, run_text

from d2lmini.exercises import check, find, speak, speaking

PARTS = [find(name) for name in speaking.PARTS]
WRONG = [on(exercise, mistake) for exercise in PARTS for mistake in exercise.mistakes]


@pytest.fixture(autouse=True)
def nothing_written(monkeypatch):
    monkeypatch.setattr(speaking, "_answers", {})
    monkeypatch.delenv(speaking.KEPT, raising=False)


@pytest.fixture
def said(capsys):
    """Return a function that lets the model speak, and gives the lines."""

    def lines(*names):
        capsys.readouterr()
        speak(*names)
        found = capsys.readouterr().out.splitlines()
        assert max(map(len, found)) <= 48, "a phone shows 48 letters of a line"
        return found

    return lines


def test_what_is_missing_is_said(said):
    check(run_text(find("attention").starter, "my_attention"))  # a stub
    assert said("attention", "split_heads")[1:] == [
        "my_attention       not written yet (chapter 3)",
        "my_split_heads     not written yet (chapter 5)",
    ]


def test_right_answers_speak_alone_and_together(said):
    for exercise in PARTS:
        check(run_text(exercise.solution, exercise.function))
    lines = said(*speaking.PARTS)
    assert lines[2:] == [
        "my_attention       by 0.99 ✓",
        "my_masked_softmax  by 0.99 ✓",
        "my_split_heads     by 0.99 ✓",
        "my_rotary          Qu 0.96 ✓",
        "all 4 together     by 0.99 ✓",
    ]


@pytest.mark.parametrize(("exercise", "mistake"), WRONG)
def test_a_slip_is_seen_and_named(exercise, mistake, said):
    check(mistake.fn, name=exercise.name)
    lines = said(exercise.name)
    (own,) = (line for line in lines if line.startswith(exercise.function))
    assert own.endswith("✗")
    assert " ".join(mistake.says.split()) in " ".join(" ".join(lines).split())


def test_what_a_page_has_kept_comes_first(said, monkeypatch):
    check(find("attention").mistakes[0].fn, name="attention")
    cell = "from d2lmini.exercises import check\n@check\n" + find("attention").solution
    monkeypatch.setenv(speaking.KEPT, json.dumps(["1 +", cell]))
    assert said("attention")[1].endswith("by 0.99 ✓")
    monkeypatch.setenv(speaking.KEPT, json.dumps(["1 / 0\ndef my_attention(): ..."]))
    _, own, *why = said("attention")
    assert own == "my_attention       its cell fails ✗"
    assert "ZeroDivisionError: division by zero" in " ".join(why)


def test_what_is_no_part_of_a_head_is_refused():
    with pytest.raises(ValueError, match="'softmax' is no part of a head; these are: attention"):
        speak("softmax")
