"""Whatever a learner hands in, the check says what is wrong, and the session goes on."""

import contextlib
import functools
import signal
import sys
import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
from answers import answer, assert_fits_a_terminal, needs_torch, run_text
from answers import softmax as right

from d2lmini import attention
from d2lmini.exercises import find, grade, grading, guards, register
from d2lmini.exercises.cards import show_value
from d2lmini.exercises.grading import grade_exercise

SOFTMAX = find("softmax")
ROUND = len(SOFTMAX.cases())  # calls


def report(fn, status, *words, name="softmax"):
    """Grade a function, or the softmax of this body, and check what is said."""
    result = grade(answer(fn) if isinstance(fn, str) else fn, name=name)
    text = repr(result)
    assert result.status == status and bool(result) == (status == "pass"), text
    assert_fits_a_terminal(text)
    assert len(result.head) < 300, "a card has room for no more"
    for word in words:
        assert word in " ".join(text.split()), text
    return result


# Stubs, exceptions, side effects: the body of a softmax, and what is said of it.

STUBS = "...", "return", "'''Doc.'''\nraise NotImplementedError('soon')"
IN_PLACE = "scores -= scores.max()\ne = np.exp(scores)\nreturn e / e.sum(-1, keepdims=True)"
PRINTS = "for i in range(20_000): print('line', i)\nreturn scores"
DEEP = "def deep(): raise NotImplementedError('deep')\nreturn deep()"
UNWRITABLE = "class Bad(Exception):\n    def __str__(self): return 1 / 0\nraise Bad"
ENDLESS = "class Bad(Exception):\n    def __str__(self):\n        while True: pass\nraise Bad"
BODIES = [
    *((stub, "todo", ["not attempted"]) for stub in STUBS),
    ("y = scores", "wrong", ["returned None", "return statement"]),
    ("raise SystemExit(3)", "error", ["SystemExit"]),
    ("raise ValueError('word ' * 10_000)", "error", ["raised ValueError: word"]),
    ("return scores * np.nan", "wrong", ["nan or inf. The smallest input"]),
    (IN_PLACE, "wrong", ["changed its input scores in place"]),
    (PRINTS, "wrong", ["printed line 0 line 1 line 2 expected"]),
    (DEEP, "error", ["raised NotImplementedError: deep"]),
    (UNWRITABLE, "error", ["raised Bad"]),
]


@pytest.mark.parametrize(("body", "status", "words"), BODIES)
def test_what_is_said_of_a_body(body, status, words, capsys):
    report(body, status, *words)
    assert capsys.readouterr() == ("", "")


def test_an_exception_shows_its_class_message_input_and_the_own_line():
    def softmax(scores):
        return np.reshape(scores, (7, 7))

    rows = dict(report(softmax, "error", "raised ValueError: cannot", "my_softmax(scores)").rows)
    line = softmax.__code__.co_firstlineno + 1
    assert rows["where"] == f"line {line}: return np.reshape(scores, (7, 7))"
    assert rows["scores"] == "[[0., 1.]]"


def test_interrupting_a_check_interrupts_it():
    with pytest.raises(KeyboardInterrupt):
        grade(answer("raise KeyboardInterrupt"))


# Time

CATCHES = "while True:\n    try: 1 / 0\n    except Exception: pass"
ONE_LINE = "import itertools\nfor i in itertools.count(): scores + i"


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(grading, "SECONDS", 0.2)


@pytest.fixture
def no_alarms(monkeypatch):
    """As in a browser, where nothing else traces."""
    before = sys.gettrace()
    sys.settrace(None)
    monkeypatch.setattr(sys, "platform", "emscripten")
    assert not guards._has_alarm()
    yield
    sys.settrace(before)


def test_an_endless_loop_is_stopped(short):
    report(CATCHES, "error", "stopped after", "never ends")
    report(ENDLESS, "error", "raised Bad")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarms on this system")
def test_an_alarm_of_someone_else_still_rings():
    rung = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        assert grade(right, name="softmax")
        end = time.monotonic() + 10
        while not rung and time.monotonic() < end:
            time.sleep(0.01)
        assert rung
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_an_endless_loop_is_stopped_in_another_thread(short):
    results = []
    thread = threading.Thread(target=lambda: results.append(grade(answer(CATCHES))), daemon=True)
    thread.start()
    thread.join()
    assert "stopped after" in results[0].head


@pytest.mark.parametrize("body", [CATCHES, ONE_LINE])
def test_an_endless_loop_is_stopped_without_alarms(short, no_alarms, body):
    report(body, "error", "stopped after")
    assert sys.gettrace() is None


def test_what_was_stopped_within_an_except_causes_no_later_error(no_alarms, monkeypatch):
    monkeypatch.setattr(grading, "SECONDS", 0.01)
    for _ in range(60):  # each is stopped at a step of its own
        grade(answer(CATCHES))
        assert sys.exc_info() == (None, None, None)


def test_a_right_answer_that_the_computer_keeps_waiting_is_right(short):
    """The work counts, not the clock on the wall: waiting stands here for a busy machine."""
    assert grade(lambda scores: time.sleep(0.1) or right(scores), name="softmax")


def test_an_answer_that_only_waits_is_stopped_with_other_words(monkeypatch):
    monkeypatch.setattr(grading, "PATIENCE", 0.2)
    result = report("import time; time.sleep(60)", "error", "stopped after 0.2 sec", "time.sleep")
    assert "never ends" not in result.says


# What comes back


def lazy(scores):
    yield right(scores)


def always(result):
    return lambda *arguments: result


SHAPE = "(1, 2) = (queries, keys)"
NO_NUMBERS = {
    "a tuple of 2 things": (1, 2),
    "a list of 1 thing;": [[0.5, 0.5]],
    "an array of <U1": np.array([["a", "b"]]),
    "a MaskedArray": np.ma.array([[1.0, 2.0]], mask=[[0, 1]]),
}
RETURNED = [
    *((always(x), "softmax", [f"returned {what}", SHAPE]) for what, x in NO_NUMBERS.items()),
    (always(2.5), "softmax", ["wrong shape", SHAPE]),
    (lazy, "softmax", ["a generator", "use return"]),
    (lambda s: attention(s, s, s), "softmax", [".output"]),
    (lambda s: right(s).tolist(), "softmax", ["np.array(...)"]),
    (always(("a", 2, 3)), "project", ["a str for query"]),
    (lambda n, m: np.ones((n, m)), "causal_mask", ["wrong kind: float64"]),
    (lambda texts, v: texts.clear() or np.zeros(1), "trigram_vectors", ["changed its input texts"]),
]


@pytest.mark.parametrize(("fn", "name", "words"), RETURNED)
def test_what_is_said_of_what_comes_back(fn, name, words):
    assert report(fn, "wrong", *words, name=name).mistake is None


def test_what_differs_is_written_differently():
    assert show_value(np.array([-0.0001, -0.0, 0.125])) == "[0.000, 0.000, 0.125]"

    def nudged(query, key):
        lengths = np.linalg.norm(query, axis=1)[:, None] * np.linalg.norm(key, axis=1)
        return query @ key.T / (lengths + 1e-3)

    rows = dict(report(nudged, "wrong", "wrong values", name="cosine_scores").rows)
    assert rows["got"] != rows["expected"]
    result = grade(lambda s: np.round(right(s), 3) + 0.01 * (s < 0), name="softmax")  # far down
    assert "numbers differ, most in row" in result._repr_html_()


# What depends on more than the arguments


@pytest.mark.parametrize("call", ["np.random.rand()", "random.random()", "torch.rand(2)"])
def test_global_random_state_is_caught_and_restored(call):
    module = pytest.importorskip(call.split(".")[0].replace("np", "numpy"))
    before = guards.random_states()
    space = {call.split(".")[0]: module}
    report(lambda scores: (scores, eval(call, space))[0], "wrong", "global random generator")
    assert guards.random_states() == before


def warns(scores):
    warnings.warn("mine", stacklevel=1)
    return (right(scores), np.log(0 * scores))[0]


def tired(bad, does=lambda scores: right(scores) + 1):
    """Return a softmax that does something else from this call on, counted from 1."""
    calls = []
    return lambda scores: does(scores) if calls.append(1) or len(calls) >= bad else right(scores)


def test_what_a_call_leaves_behind_is_found():
    for fn in tired(2 * ROUND), tired(ROUND + 2, lambda scores: 1 / 0):
        report(fn, "wrong", "right at first", "earlier calls")


def test_a_list_of_the_cases_is_no_answer():
    """Where an input is made of whole numbers alone, other numbers come too."""
    exercise = find("window_mask")
    known = {case: exercise.reference(*case) for case in exercise.cases()}
    assert grade(lambda *case: known[case], name=exercise.name).status == "error"


def test_a_view_of_the_input_is_right_only_where_the_task_is_to_rearrange():
    cases = [(np.arange(2.0),), (np.arange(3.0),)]
    same = replace(SOFTMAX, reference=np.copy, cases=lambda: cases, mistakes=())
    assert grade_exercise(same, np.copy)
    result = grade_exercise(same, lambda x: x[::-1][::-1])
    assert result.head == "returned a view of scores, not an array of its own."
    assert grade(lambda x, h: x.reshape(len(x), 3, h, -1).transpose(1, 2, 0, 3), "split_heads")


# What is handed in


class Softmax:
    def __call__(self, scores):
        return right(scores)


HANDED_IN = [
    (functools.partial(right, axis=-1), "pass"),
    (Softmax(), "pass"),
    (Softmax, "error"),
    (lambda: 1, "error", "raised TypeError", "called as my_softmax(scores)"),
    (None, "error", "cannot be called", "without parent"),
]


@pytest.mark.parametrize("handed_in", HANDED_IN)
def test_callables_of_all_kinds_and_what_cannot_be_called(handed_in):
    report(*handed_in)


REFUSED = [
    (lambda: grade(lambda scores: scores), TypeError, r'check\(answer, name="softmax"\)'),
    (lambda: grade(right, 5), TypeError, r"name must be a string, .* got an int"),
    (lambda: grade(right, "sofmax"), ValueError, "did you mean 'softmax'"),
    (lambda: register(SOFTMAX), ValueError, "already an exercise called 'softmax'"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_what_is_no_exercise_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()


# Diagnoses

KNOWN = [  # half of a mistake, another error of its class: no guess; the same error
    ("softmax", lambda s: right(s, axis=0 if len(s) == 2 else -1), None),
    ("packed_self_attention", lambda x, text, a, b, c: x.reshape(7, 7), None),
    ("packed_self_attention", lambda x, text, a, b, c: x @ a @ (x @ b), "not-transposed"),
]


@pytest.mark.parametrize(("name", "fn", "mistake"), KNOWN)
def test_a_diagnosis_is_given_only_where_a_known_mistake_does_the_same(name, fn, mistake):
    result = grade(fn, name=name)
    assert result.status in ("wrong", "error") and result.mistake == mistake, result


# The settings of the session: how each is changed, and how it is looked at

SETTINGS = {
    "dtype": ("torch.set_default_dtype(torch.float64)", "torch.get_default_dtype()"),
    "device": ("torch.set_default_device('meta')", "torch.empty(0).device"),
    "gradients": ("torch.set_grad_enabled(False)", "torch.is_grad_enabled()"),
    "errors of NumPy": ("np.seterr(all='raise')", "np.geterr()"),
    "warnings": ("warnings.simplefilter('error')", "list(warnings.filters)"),
    "output": ("sys.stdout = None", "sys.stdout"),
}


@needs_torch
@pytest.mark.parametrize(("change", "look"), SETTINGS.values(), ids=SETTINGS)
def test_settings_are_as_before_and_the_readers_own_reach_no_check(change, look):
    """pytorch#27355: neither the reference nor the answer."""
    import torch

    space = {"np": np, "sys": sys, "warnings": warnings, "torch": torch}
    module = run_text(find("OneHead").solution, "OneHead")
    before = eval(look, space)
    grade(lambda scores: exec(change, space) or scores, name="softmax")
    assert eval(look, space) == before
    with np.errstate(), warnings.catch_warnings(), contextlib.redirect_stdout(sys.stdout):
        exec(change, space)
        own = eval(look, space)
        try:
            assert grade(module) and grade(warns, name="softmax")
            assert eval(look, space) == own
        finally:
            torch.set_default_dtype(torch.float32)
            torch.set_default_device(None)
            torch.set_grad_enabled(True)


def test_figures_that_an_answer_draws_are_closed():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    mine = pyplot.figure()
    try:
        assert grade(lambda scores: pyplot.figure() and right(scores), name="softmax")
        assert pyplot.get_fignums() == [mine.number]
    finally:
        pyplot.close(mine)


# Modules

ONE_HEAD = find("OneHead").solution
BUFFER = "super(OneHead, self).__init__()\n        self.register_buffer('eye', torch.eye(2))"
STUB = ONE_HEAD[: ONE_HEAD.index("    def forward")] + "    def forward(self, x):\n        ..."
NO_MODULE = "class OneHead:\n    def __init__(self, *sizes): self.forward = 1"
PARAMETERS = "missing w_q.weight (1, 2); not asked for query_layer.weight (1, 2)"
CHECKED = "def check(fn):\n    found.append(grade(fn))\n    return fn\n@check\n"
MODULES = [  # what is changed in the solution, and what is said
    ("w_q", "query_layer", "error", PARAMETERS),
    ("super().__init__()", BUFFER, "pass", "correct"),
    (ONE_HEAD, STUB, "todo", "not attempted"),
    (ONE_HEAD, NO_MODULE, "error", "expected a subclass of nn.Module, got OneHead"),
]


@needs_torch
@pytest.mark.parametrize(("old", "new", "status", "words"), MODULES)
def test_what_is_said_of_a_module(old, new, status, words):
    text = ONE_HEAD.replace(old, new)
    assert text != ONE_HEAD
    at = text.index("class OneHead")  # a check finds what refers to itself before it is bound
    space = {"grade": grade, "found": []}
    exec("import torch\nfrom torch import nn\n" + CHECKED + text[at:], space)
    (result,) = space["found"]
    assert result.status == status and words in result.head, result
    module, space["OneHead"] = space["OneHead"], None
    grade(module)
    assert space["OneHead"] is None, "the name is as it was before the check"


@needs_torch
def test_building_a_module_draws_weights_and_that_is_no_fault():
    import torch

    before = torch.get_rng_state()
    module = run_text(find("CausalHeads").solution, "CausalHeads")
    assert grade(module).status == "pass"
    assert torch.equal(before, torch.get_rng_state())
    head = grade(module(2, 1), name="CausalHeads").head
    assert head == "got an object of the class CausalHeads, not the class."


def test_without_torch_modules_say_what_is_missing(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "d2lmini._torch", raising=False)
    with pytest.raises(ImportError, match=r"OneHead is about a PyTorch module.*pip install"):
        grade(lambda *sizes: None, name="OneHead")
    assert grade(right, name="softmax").status == "pass"
