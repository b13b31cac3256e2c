"""Whatever a learner hands in, the check says what is wrong, and the session goes on."""

import functools
import gc
import random
import sys
import threading
import time
import warnings
from contextlib import suppress

import numpy as np
import pytest
from answers import HAS_TORCH, answer, assert_fits_a_terminal, run_text
from answers import softmax as right

from d2lmini.exercises import (
    Exercise,
    Mistake,
    check,
    find,
    grade,
    grading,
    guards,
    register,
)
from d2lmini.exercises.cards import show_value
from d2lmini.exercises.grading import grade_exercise

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch")


def report(fn, status, *words, name="softmax"):
    """Grade, and check what is said."""
    result = grade(fn, name=name)
    assert result.status == status, result
    text = repr(result)
    assert_fits_a_terminal(text)
    for word in words:
        assert word in " ".join(text.split()), text
    assert bool(result) == (status == "pass")
    return result


# Stubs, and what only looks like one


@pytest.mark.parametrize(
    "body",
    [
        "...",
        "pass",
        "return",
        "return None",
        "return ...",
        "'''Doc.'''",
        "'''Doc.'''\n...",
        "raise NotImplementedError",
        "'''Doc.'''\nraise NotImplementedError('soon')",
    ],
)
def test_a_stub_is_not_attempted(body):
    report(answer(body), "todo", "not attempted")


@pytest.mark.parametrize(
    "body", ["y = scores", "y = 2 + 3", "scores[0]", "for i in scores: pass", "x = None; return x"]
)
def test_an_attempt_without_a_return_is_not_a_stub(body):
    report(answer(body), "wrong", "returned None", "return statement")


def test_a_call_that_is_not_implemented_is_an_error_of_the_answer():
    def helper():
        raise NotImplementedError("deep inside")

    report(lambda scores: helper(), "error", "raised NotImplementedError: deep inside")


# Exceptions


def test_an_exception_shows_its_class_message_input_and_the_own_line(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import numpy as np\ndef softmax(scores):\n    e = np.exp(scores)\n"
        "    return np.reshape(e, (7, 7))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import mine

    result = report(mine.softmax, "error", "raised ValueError: cannot reshape", "softmax(scores)")
    assert dict(result.rows)["where"] == "line 4: return np.reshape(e, (7, 7))"
    assert dict(result.rows)["scores"] == "[[0., 1.]]"


@pytest.mark.parametrize("code", ["raise SystemExit(3)", "exit()", "import sys; sys.exit()"])
def test_leaving_python(code):
    report(answer(code), "error", "SystemExit")


def test_interrupting_a_check_interrupts_it():
    state = random.getstate()
    with pytest.raises(KeyboardInterrupt):
        grade(answer("import random; random.random(); raise KeyboardInterrupt"))
    assert random.getstate() == state


def test_endless_recursion():
    report(answer("return softmax(scores)"), "error", "raised RecursionError")


def test_a_very_long_message_and_one_that_cannot_be_written():
    report(answer("raise ValueError('word ' * 10_000)"), "error", "raised ValueError: word")
    report(
        answer("class E(Exception):\n    def __str__(self): return 1 / 0\nraise E"),
        "error",
        "raised E",
    )


def test_the_wrong_number_of_arguments():
    report(lambda: 1, "error", "raised TypeError", "called as my_softmax(scores)")
    report(lambda a, b: 1, "error", "raised TypeError", "called as my_softmax(scores)")


# Time


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(grading, "SECONDS", 0.2)


ENDLESS = [
    "while True: pass",
    "while True:\n    try: 1 / 0\n    except Exception: pass",
    "import itertools\nfor i in itertools.count(): scores + i",
]


@pytest.mark.parametrize("body", ENDLESS)
def test_an_endless_loop_is_stopped(short, body):
    report(answer(body), "error", "stopped after", "never ends")


@pytest.mark.parametrize("body", ENDLESS)
def test_an_endless_loop_is_stopped_outside_of_the_main_thread(short, body):
    results = []
    thread = threading.Thread(target=lambda: results.append(grade(answer(body))), daemon=True)
    thread.start()
    thread.join()
    assert "stopped after" in results[0].head


@pytest.mark.parametrize("body", ENDLESS)
def test_an_endless_loop_is_stopped_where_there_are_no_alarms(short, monkeypatch, body):
    monkeypatch.setattr(sys, "platform", "emscripten")  # the browser
    assert not guards._has_alarm()
    before = sys.gettrace()
    sys.settrace(None)
    try:
        report(answer(body), "error", "stopped after")
        assert sys.gettrace() is None
    finally:
        sys.settrace(before)


def test_what_runs_at_a_garbage_collection_does_not_swallow_the_end(short, monkeypatch):
    """Nearly all of the time passes in it, so that its end comes there as well."""
    monkeypatch.setattr(sys, "platform", "emscripten")

    def watcher(phase, info):
        sum(i for i in range(20_000))

    before = sys.gettrace()
    sys.settrace(None)
    gc.callbacks.append(watcher)
    try:
        report(answer("import gc\nwhile True: gc.collect(0)"), "error", "stopped after")
    finally:
        gc.callbacks.remove(watcher)
        sys.settrace(before)


def test_where_something_else_traces_there_is_no_limit_and_no_harm(monkeypatch):
    monkeypatch.setattr(sys, "platform", "emscripten")

    def other(frame, event, argument):
        return None

    before = sys.gettrace()
    sys.settrace(other)
    try:
        result = grade(right, name="softmax")
        still = sys.gettrace()
    finally:
        sys.settrace(before)
    assert result
    assert still is other


def test_a_right_answer_that_the_computer_keeps_waiting_is_right(short):
    """The work counts, not the clock on the wall: waiting stands here for a busy machine."""

    def softmax(scores):
        time.sleep(0.1)
        return right(scores)

    assert grade(softmax).status == "pass"


def test_an_answer_that_only_waits_is_stopped_with_other_words(monkeypatch):
    monkeypatch.setattr(grading, "PATIENCE", 0.2)
    result = report(answer("import time; time.sleep(60)"), "error", "stopped after 0.2 seconds")
    assert "never ends" not in result.says
    assert "time.sleep" in result.says


@pytest.mark.skipif(not hasattr(guards.signal, "setitimer"), reason="no alarms on this system")
def test_an_alarm_of_someone_else_still_rings():
    rung = []
    before = guards.signal.signal(guards.signal.SIGALRM, lambda number, frame: rung.append(1))
    guards.signal.setitimer(guards.signal.ITIMER_REAL, 0.3)
    try:
        assert grade(right, name="softmax")
        while not rung:  # without end if it is lost
            time.sleep(0.01)
    finally:
        guards.signal.setitimer(guards.signal.ITIMER_REAL, 0)
        guards.signal.signal(guards.signal.SIGALRM, before)
    assert rung


# What comes back


class Hostile:
    def __array__(self, *args, **kwargs):
        raise ZeroDivisionError

    def __repr__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ((1, 2), "a tuple of 2 things"),
        ([[0.5, 0.5]], "a list of 1 thing"),
        ([[1], [2, 3]], "a list of 2 things"),
        (np.array([["a", "b"]]), "an array of <U1"),
        (np.array([[None, 1]]), "an array of object"),
        (np.array([[1 + 2j, 0]]), "an array of complex128"),
        (np.ma.array([[1.0, 2.0]], mask=[[0, 1]]), "a masked array"),
        ("text", "a str"),
        (b"bytes", "a bytes"),
        ({}, "a dict"),
        ({1.0}, "a set"),
        (object(), "an object"),
        (Hostile(), "a Hostile"),
        (np.exp, "an ufunc"),
        ((i for i in ()), "a generator"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_wrong_kind(value, words):
    report(lambda scores: value, "wrong", f"returned {words}", "shape (1, 2) = (queries, keys)")


@pytest.mark.parametrize("value", [1, 2.5, True, np.float64(1), np.zeros(()), np.zeros((0, 2))])
def test_a_number_or_an_empty_array_has_the_wrong_shape(value):
    report(lambda scores: value, "wrong", "wrong shape", "(1, 2) = (queries, keys)")


def test_a_tuple_of_the_wrong_parts():
    report(lambda *a: (1, 2), "wrong", "a tuple of 2 things", "query, key, value", name="project")
    report(lambda *a: ("a", 2, 3), "wrong", "a str for query", name="project")
    report(lambda x, *w: x, "wrong", "an array of float64", "3 arrays", name="project")
    report(lambda x, q, k, v: (x @ q.T, x @ k.T, x), "wrong", "of value", name="project")


def test_a_coroutine_is_closed(recwarn):
    async def later(scores):
        return right(scores)

    report(later, "wrong", "returned a coroutine")
    assert not recwarn.list


def test_a_negative_zero_is_written_like_zero():
    assert show_value(np.array([-0.0001, -0.0, 0.125])) == "[0.000, 0.000, 0.125]"
    assert show_value(np.array([-0.0006, -0.0004])) == "[-0.001,  0.000]"
    assert show_value(np.array([1e300, np.nan, -np.inf])) == "[1.e+300,     nan,    -inf]"

    def nudged(query, key):
        lengths = np.linalg.norm(query, axis=1)[:, None] * np.linalg.norm(key, axis=1)
        return query @ key.T / (lengths + 1e-3)

    rows = dict(report(nudged, "wrong", "wrong values", name="cosine_scores").rows)
    assert rows["got"] != rows["expected"]


def test_numbers_for_a_mask():
    result = report(
        lambda n, m: np.ones((n, m)), "wrong", "wrong kind: float64", name="causal_mask"
    )
    assert result.mistake is None


@needs_torch
def test_odd_tensors():
    import torch

    report(lambda x: torch.zeros(1, 2, dtype=torch.complex64), "wrong", "returned a Tensor")
    report(lambda x: torch.zeros(1, 2, device="meta"), "wrong", "returned a Tensor")
    report(lambda x: torch.eye(2).to_sparse(), "wrong", "returned a Tensor")
    report(lambda x: torch.zeros(1, 2).bfloat16(), "wrong", "wrong values")


def test_nan_before_values():
    report(lambda scores: scores * np.nan, "wrong", "nan or inf. The smallest input")


# Side effects


def test_the_input_is_changed():
    body = "scores -= scores.max()\ne = np.exp(scores)\nreturn e / e.sum(-1, keepdims=True)"
    report(answer(body), "wrong", "changed its input scores in place")
    report(lambda texts, v: texts.clear() or np.zeros(1), "wrong", "texts", name="trigram_vectors")


def test_changes_of_shape_and_kind_are_changes():
    def reshaped(scores):
        result = right(scores)
        scores.resize(scores.size, refcheck=False)
        return result

    report(reshaped, "wrong", "changed its input scores in place")


@pytest.mark.parametrize(
    "call",
    ["np.random.rand()", "np.random.seed(1)", "__import__('random').random()"]
    + (["__import__('torch').manual_seed(1)", "__import__('torch').rand(2)"] if HAS_TORCH else []),
)
def test_global_random_state_is_caught_and_restored(call):
    if HAS_TORCH:
        import torch  # noqa: F401
    before = guards.random_states()
    fn = answer(f"{call}\ne = np.exp(scores - scores.max(-1, keepdims=True))\nreturn e / e.sum(-1)")
    report(fn, "wrong", "global random generator")
    assert guards.random_states() == before


def test_a_random_answer_is_wrong():
    rng = np.random.default_rng()
    report(lambda scores: rng.random(scores.shape), "wrong", "wrong values")
    report(lambda scores: right(scores) + rng.random(scores.shape), "wrong", "wrong values")


def test_right_only_on_the_first_call():
    seen = []

    def once(scores):
        seen.append(scores.tobytes())
        return right(scores) if seen.count(scores.tobytes()) == 1 else np.zeros_like(scores)

    report(once, "wrong", "right at first", "earlier calls")


@pytest.mark.parametrize("last", [-1, 0])
def test_right_in_all_calls_but_one_of_the_second_round(last):
    count = len(find("softmax").cases())
    calls = []

    def tired(scores):
        calls.append(1)
        bad = 2 * count if last == -1 else count + 1
        return right(scores) * (1 + (len(calls) == bad))

    report(tired, "wrong", "right at first")


def test_an_exception_in_the_second_round():
    calls = []

    def tired(scores):
        calls.append(1)
        return right(scores) if len(calls) <= len(find("softmax").cases()) + 1 else 1 / 0

    report(tired, "wrong", "right at first")


@pytest.mark.parametrize("name", ["causal_mask", "count_parameters", "cache_bytes", "window_mask"])
def test_a_list_of_the_cases_is_no_answer(name):
    """Where an input is made of whole numbers alone, other numbers come too."""
    exercise = find(name)
    known = {case: exercise.reference(*case) for case in exercise.cases()}
    assert grade(lambda *case: known[case], name=name).status == "error"


def test_one_buffer_for_all_results():
    buffer = np.zeros(100)

    def reuse(scores):
        result = buffer[: scores.size].reshape(scores.shape)
        result[:] = right(scores)
        return result

    report(reuse, "wrong", "a later call changed the result of an earlier one")


def test_a_view_of_the_input():
    same = Exercise(
        name="as_it_is",
        chapter=1,
        difficulty="easy",
        minutes=5,
        task="Return a copy.",
        returns={"copy": "(n,)"},
        reference=lambda x: x.copy(),
        cases=lambda: [(np.arange(2.0),), (np.arange(3.0),)],
        mistakes=(),
        hints=("Copy.",),
        solution="def as_it_is(x):\n    return x.copy()",
    )
    assert grade_exercise(same, lambda x: x.copy()).status == "pass"
    for view in (lambda x: x, lambda x: x[:], lambda x: x[::-1][::-1]):
        result = grade_exercise(same, view)
        assert result.status == "wrong"
        assert result.head == "returned a view of x, not an array of its own."


def test_a_view_is_right_where_the_task_is_to_rearrange():
    fused = lambda x, h: x.reshape(len(x), 3, h, -1).transpose(1, 2, 0, 3)  # noqa: E731
    report(fused, "pass", name="split_heads")


def test_what_is_printed_is_kept_and_shown_in_part(capsys):
    fn = answer("for i in range(20_000): print('line', i)\nreturn scores")
    result = report(fn, "wrong", "printed line 0 line 1 line 2")
    assert "line 3" not in repr(result)
    assert capsys.readouterr() == ("", "")


def test_a_warning_is_not_shown(capsys, recwarn):
    grade(answer("import warnings; warnings.warn('careful')\nreturn np.log(scores - 5)"))
    assert capsys.readouterr() == ("", "")
    assert not recwarn.list


def test_an_object_as_big_as_the_memory():
    report(answer("return np.ones(10**15)"), "error", "raised", "MemoryError")


# What is handed in


class Softmax:
    def __call__(self, scores):
        return right(scores)


class NotYet:
    def __call__(self, scores):
        raise NotImplementedError


@pytest.mark.parametrize(
    ("fn", "status"),
    [
        (lambda scores: right(scores), "pass"),
        (functools.partial(right, axis=-1), "pass"),
        (functools.partial(right, axis=0), "wrong"),
        (Softmax(), "pass"),
        (Softmax().__call__, "pass"),
        (NotYet(), "todo"),
        (np.exp, "wrong"),
        (np.tanh, "wrong"),
        (len, "wrong"),
        (print, "wrong"),
        (int, "error"),
        (Softmax, "error"),
        (dict, "wrong"),
    ],
)
def test_callables_of_all_kinds(fn, status):
    report(fn, status)


def test_an_answer_with_a_cache_cannot_take_arrays():
    result = grade(functools.lru_cache(right), name="softmax")  # but tensors, which have a hash
    assert result.status == ("pass" if "torch" in sys.modules else "error")


@pytest.mark.parametrize("thing", [3, "softmax", None, np.zeros((1, 2)), [right]])
def test_what_cannot_be_called(thing):
    report(thing, "error", "cannot be called", "without parentheses")


def test_no_name_to_go_by():
    with pytest.raises(TypeError, match=r'check\(answer, name="softmax"\)'):
        grade(lambda scores: scores)
    with pytest.raises(TypeError, match="partial"):
        grade(functools.partial(right))
    with pytest.raises(TypeError, match="NoneType"):
        check(None)


def test_a_name_that_is_no_string():
    with pytest.raises(TypeError, match=r"name must be a string, .* got an int"):
        grade(right, 5)


def test_no_such_exercise():
    with pytest.raises(ValueError, match="did you mean 'softmax'"):
        grade(right, name="sofmax")
    with pytest.raises(ValueError, match="no exercise called 'zzz'"):
        grade(right, name="zzz")


def test_a_name_can_be_taken_once():
    with pytest.raises(ValueError, match="already an exercise called 'softmax'"):
        register(find("softmax"))


def test_a_solution_must_define_its_exercise():
    exercise = find("softmax")
    fields = {name: getattr(exercise, name) for name in exercise.__dataclass_fields__}
    other = Exercise(**fields | {"solution": "def other(x):\n    return x"})
    with pytest.raises(ValueError, match="does not define softmax"):
        other.starter  # noqa: B018


def test_a_reference_that_fails_is_the_exercises_fault():
    exercise = find("softmax")
    fields = {name: getattr(exercise, name) for name in exercise.__dataclass_fields__}
    broken = Exercise(**fields | {"reference": lambda scores: 1 / 0})
    with pytest.raises(RuntimeError, match="the reference of softmax fails"):
        grade_exercise(broken, right)


# Diagnoses


def test_half_a_known_mistake_gets_no_guess():
    """It normalises over the queries, but only where there are two."""

    def sometimes(scores):
        return right(scores, axis=0 if len(scores) == 2 else -1)

    assert report(sometimes, "wrong").mistake is None


def test_another_error_of_the_same_class_gets_no_guess():
    fn = run_text("def project(x, a, b, c):\n    raise ValueError('mine')", "project")
    assert report(fn, "error", "mine", name="project").mistake is None
    source = "def packed_self_attention(x, text, a, b, c):\n    return "
    mine = run_text(source + "x.reshape(7, 7)", "packed_self_attention")
    assert grade(mine).mistake is None  # as not-transposed it raises ValueError on every input
    known = run_text(source + "x @ a @ (x @ b)", "packed_self_attention")
    assert grade(known).mistake == "not-transposed"


def test_an_error_that_a_known_mistake_raises_too_is_diagnosed():
    result = grade(answer("return softmax_(query @ key) @ value", "attention"))
    assert (result.status, result.mistake) == ("error", None)  # a NameError
    body = "e = np.exp(query @ key / np.sqrt(key.shape[-1]) + bias)\n"
    body += "return e / e.sum(-1, keepdims=True) @ value"
    assert grade(answer(body, "attention")).mistake == "not-transposed"


def test_a_mistake_that_fails_itself_is_passed_over():
    exercise = find("softmax")
    fields = {name: getattr(exercise, name) for name in exercise.__dataclass_fields__}
    failing = Mistake("fails", "It fails.", lambda scores: 1 / 0)
    other = Exercise(**fields | {"mistakes": (failing, *exercise.mistakes)})
    assert grade_exercise(other, lambda scores: right(scores, axis=0)).mistake == "axis"


def test_the_smallest_input_is_shown():
    def wrong_for_three(scores):
        return right(scores) * (1 + (scores.shape[-1] == 3))

    result = report(wrong_for_three, "wrong")
    assert dict(result.rows)["scores"] == "[[0., 1., 3.],\n [1., 1., 0.]]"


def test_the_example_of_the_documentation():
    result = grade(
        run_text(
            "def masked_softmax(scores, mask):\n"
            "    e = np.exp(np.where(mask, -np.inf, scores))\n"
            "    return e / e.sum(axis=-1, keepdims=True)",
            "masked_softmax",
        )
    )
    assert repr(result) == (
        "✗ my_masked_softmax: wrong values. The smallest input that shows it:\n"
        "  scores    [[1., 2., 0.]]\n"
        "  mask      [[ True,  True, False]]\n"
        "  expected  [[0.269, 0.731, 0.000]]\n"
        "  got       [[0., 0., 1.]]\n"
        "  → The mask is upside down: you hid the visible keys. Here True means the query may\n"
        "    look."
    )


# Answers that refer to themselves, and what computes when it is looked at


SELF = """
def softmax(scores):
    if len(scores) > 1:
        return np.concatenate([softmax(scores[:1]), softmax(scores[1:])])
    e = np.exp2(scores - scores.max())
    return e / e.sum()
"""


@pytest.mark.parametrize("bound_before", [False, True])
def test_an_answer_may_call_itself_before_python_has_bound_its_name(bound_before):
    def stub(scores):
        return None

    space = {"np": np, "grade": grade, "found": []}
    if bound_before:
        space["softmax"] = stub
    exec("def check(fn):\n    found.append(grade(fn))\n    return fn\n@check" + SELF, space)
    assert space["found"][0].status == "pass", space["found"][0]


def test_the_name_is_as_it_was_after_the_check():
    space = {"np": np, "softmax": 3}
    exec(SELF, space)
    fn = space.pop("softmax")
    grade(fn)
    assert "softmax" not in space


def test_recursion_within_a_function():
    seen = []

    def check(fn):
        seen.append(grade(fn))
        return fn

    @check
    def softmax(scores):
        if len(scores) > 1:
            return np.concatenate([softmax(scores[:1]), softmax(scores[1:])])
        return right(scores)

    assert seen[0].status == "pass", seen[0]


class Endless:
    def __array__(self, *args, **kwargs):
        while True:
            pass


class Leaves:
    def __array__(self, *args, **kwargs):
        raise SystemExit


class Pretends:
    @property
    def __class__(self):
        raise SystemExit


@pytest.mark.parametrize("kind", [Endless, Leaves, Pretends])
def test_a_result_that_computes_itself_when_it_is_looked_at(monkeypatch, kind):
    monkeypatch.setattr(grading, "SECONDS", 0.2)
    assert grade(lambda scores: kind(), name="softmax").status in ("wrong", "error")


def test_an_error_that_never_ends_its_message(monkeypatch):
    class Endless(Exception):
        def __str__(self):
            while True:
                pass

    def raises(scores):
        raise Endless

    monkeypatch.setattr(grading, "SECONDS", 0.2)
    began = time.thread_time()
    report(raises, "error", "raised Endless")
    assert time.thread_time() - began < 10, "all messages of a round share its time"


def test_a_result_larger_than_any_memory_that_takes_none():
    report(
        lambda scores: np.broadcast_to(0.5, (10**6, 10**6)), "wrong", "wrong shape", name="softmax"
    )


# The settings of the session: how an answer changes each, and how it is looked at


CHANGED = {
    "errors of NumPy": ("np.seterr(all='raise')", "np.geterr()"),
    "warnings": ("warnings.simplefilter('error')", "list(warnings.filters)"),
    "output": ("sys.stdout = None", "sys.stdout"),
    "dtype": ("torch.set_default_dtype(torch.float64)", "torch.get_default_dtype()"),
    "device": ("torch.set_default_device('meta')", "torch.empty(0).device"),
    "gradients": ("torch.set_grad_enabled(False)", "torch.is_grad_enabled()"),
}


@pytest.mark.parametrize(("change", "look"), CHANGED.values(), ids=CHANGED)
def test_what_an_answer_changes_is_put_back(change, look):
    space = {"np": np, "sys": sys, "warnings": warnings}
    if "torch" in change:
        space["torch"] = pytest.importorskip("torch")
    before = eval(look, space)

    def softmax(scores):
        exec(change, space)
        return scores

    grade(softmax)
    assert eval(look, space) == before


def test_a_replaced_comparison_in_the_session_changes_nothing(monkeypatch):
    monkeypatch.setattr(np, "allclose", lambda *arguments, **options: True)
    assert grade(lambda scores: scores, name="softmax").status == "wrong"


def test_the_errors_and_warnings_that_the_reader_asks_for_reach_no_check():
    def softmax(scores):
        warnings.warn("mine", stacklevel=1)
        return right(scores) + 0 * np.log(scores * 0)

    with np.errstate(all="raise"), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert grade(right, name="softmax").status == "pass"
        assert grade(softmax).status == "wrong"


@pytest.mark.parametrize("name", ["_compare", "_judge", "show_value"])
def test_the_checks_are_as_they_were_after_an_answer_has_replaced_them(name):
    def softmax(scores):
        setattr(grading, name, lambda *arguments: None)
        return scores

    with suppress(Exception):
        grade(softmax)
    assert grade(lambda scores: scores, name="softmax").status == "wrong"


def test_figures_that_an_answer_draws_are_closed():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    mine = pyplot.figure()

    def softmax(scores):
        pyplot.figure()
        return right(scores)

    try:
        assert grade(softmax)
        assert mine.number in pyplot.get_fignums()
        assert len(pyplot.get_fignums()) == 1
    finally:
        pyplot.close(mine)


@needs_torch
def test_one_thread_is_enough():
    import torch

    seen, before = [], torch.get_num_threads()

    def softmax(scores):
        seen.append(torch.get_num_threads())
        return right(scores)

    assert grade(softmax)
    assert {*seen} == {1}
    assert torch.get_num_threads() == before


def test_the_advice_is_about_what_came_back():
    def lazy(scores):
        yield right(scores)

    async def later(scores):
        return right(scores)

    from d2lmini import attention

    for fn, word in (
        (lazy, "use return"),
        (later, "leave out async"),
        (lambda s: attention(s, s, s), ".output"),
        (lambda s: right(s).tolist(), "np.array(...)"),
    ):
        assert word in report(fn, "wrong", name="softmax").says


def test_the_first_difference_in_a_long_table_is_written_and_drawn():
    exercise = find("softmax")
    result = grade(lambda s: np.round(right(s), 3) + 0.01 * (s < 0), name="softmax")
    assert result.status == "wrong"
    assert exercise.cases()
    (want, have) = result.tables
    assert (np.array(want) != np.array(have)).any()
    card = result._repr_html_()
    assert 'role="img"' in card
    assert "numbers differ, most in row" in card


# Modules


SETTINGS = {  # as the reader sets each, and as the test puts it back
    "dtype": ("torch.set_default_dtype(torch.float64)", "torch.set_default_dtype(torch.float32)"),
    "device": ("torch.set_default_device('meta')", "torch.set_default_device(None)"),
    "no grad": ("torch.set_grad_enabled(False)", "torch.set_grad_enabled(True)"),
}


@needs_torch
@pytest.mark.parametrize("name", ["OneHead", "softmax"])
@pytest.mark.parametrize(("own", "back"), SETTINGS.values(), ids=SETTINGS)
def test_the_readers_settings_of_torch_reach_no_check(own, back, name):
    """pytorch#27355: neither the reference nor the answer."""
    import torch

    exercise, space = find(name), {"torch": torch}
    answer = run_text(exercise.solution, exercise.function)
    exec(own, space)
    try:
        before = torch.get_default_dtype(), torch.empty(0).device, torch.is_grad_enabled()
        assert grade(answer, name=name).status == "pass"
        after = torch.get_default_dtype(), torch.empty(0).device, torch.is_grad_enabled()
    finally:
        exec(back, space)
    assert after == before


@needs_torch
class TestModules:
    def grade(self, source, name="OneHead"):
        return grade(run_text("import torch\nfrom torch import nn\n" + source, name))

    def test_other_parameter_names(self):
        result = self.grade(find("OneHead").solution.replace("w_q", "query_layer"))
        assert result.status == "error"
        assert result.head == (
            "raised ValueError: the parameters differ: missing w_q.weight (1, 2); not asked for "
            "query_layer.weight (1, 2)"
        )

    def test_an_object_in_place_of_the_class(self):
        heads = run_text(find("OneHead").solution, "OneHead")
        result = grade(heads(2, 1, 3), name="OneHead")
        assert result.head == "got an object of the class OneHead, not the class."

    def test_a_buffer_and_super_with_the_own_name_are_fine(self):
        source = find("OneHead").solution.replace(
            "super().__init__()",
            "super(OneHead, self).__init__()\n        self.register_buffer('eye', torch.eye(2))",
        )
        assert "register_buffer" in source
        space = {"grade": grade, "found": []}
        check = "def check(fn):\n    found.append(grade(fn))\n    return fn\n@check\n"
        at = source.index("class OneHead")
        exec("import torch\nfrom torch import nn\n" + check + source[at:], space)
        assert space["found"][0].status == "pass", space["found"][0]

    def test_not_a_module(self):
        result = self.grade("class OneHead:\n    def __init__(self, *sizes): self.forward = 1")
        assert "expected a subclass of nn.Module, got OneHead" in result.head
        assert grade(lambda *sizes: sizes, name="OneHead").status == "error"

    def test_the_own_line_in_a_method(self):
        source = find("OneHead").solution.replace("scores.softmax(dim=-1)", "scores.sofmax()")
        result = self.grade(source)
        assert "AttributeError" in result.head
        assert dict(result.rows)["where"].startswith("line ")

    def test_building_a_module_draws_weights_and_that_is_no_fault(self):
        import torch

        before = torch.get_rng_state()
        assert self.grade(find("CausalHeads").solution, "CausalHeads").status == "pass"
        assert torch.equal(before, torch.get_rng_state())

    def test_random_numbers_in_forward_are_a_fault(self):
        source = find("OneHead").solution.replace(
            "return scores", "torch.rand(2)\n        return scores"
        )
        assert "global random generator of torch" in self.grade(source).head

    def test_a_forward_that_is_not_written_is_not_attempted(self):
        source = find("OneHead").solution
        source = (
            source[: source.index("    def forward")] + "    def forward(self, x):\n        ..."
        )
        assert self.grade(source).status == "todo"

    def test_no_forward_at_all(self):
        source = find("OneHead").solution
        result = self.grade(source[: source.index("    def forward")])
        assert result.status in ("error", "todo")
        assert not result

    def test_an_input_changed_in_place(self):
        source = find("OneHead").solution.replace("query, key", "x += 1\n        query, key")
        assert self.grade(source).head == "changed its input x in place."


def test_without_torch_modules_say_what_is_missing(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "d2lmini._torch", raising=False)
    with pytest.raises(ImportError, match=r"OneHead is about a PyTorch module.*pip install"):
        grade(lambda *sizes: None, name="OneHead")
    assert grade(right, name="softmax").status == "pass"
