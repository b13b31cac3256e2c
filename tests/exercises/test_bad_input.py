"""Whatever a learner hands in, the check says what is wrong, and the session goes on."""

import functools
import gc
import random
import sys
import threading
import time
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from answers import HAS_TORCH, answer, assert_fits_a_terminal, run_text
from answers import softmax as right

from d2lmini import attention
from d2lmini.exercises import Mistake, check, find, grade, grading, guards, register
from d2lmini.exercises.cards import show_value
from d2lmini.exercises.grading import grade_exercise

needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="needs PyTorch")
SOFTMAX = find("softmax")
ROUND = len(SOFTMAX.cases())  # calls


def report(fn, status, *words, name="softmax"):
    """Grade a function, or the softmax of this body, and check what is said."""
    result = grade(answer(fn) if isinstance(fn, str) else fn, name=name)
    text = repr(result)
    assert result.status == status and bool(result) == (status == "pass"), text
    assert_fits_a_terminal(text)
    for word in words:
        assert word in " ".join(text.split()), text
    return result


def raises(error):
    raise error


# Stubs, exceptions, side effects: the body of a softmax, and what is said of it.

STUBS = ["...", "pass", "return", "return ...", "'''Doc.'''", "'''Doc.'''\n...",
         "raise NotImplementedError", "'''Doc.'''\nraise NotImplementedError('soon')"]  # fmt: skip
NO_RETURN = ["y = scores", "y = 2 + 3", "scores[0]", "for i in scores: pass", "x = None; return x"]
UNWRITABLE = "class E(Exception):\n    def __str__(self): return 1 / 0\nraise E"
IN_PLACE = "scores -= scores.max()\ne = np.exp(scores)\nreturn e / e.sum(-1, keepdims=True)"
RESIZED = "e = 1 * scores\nscores.resize(scores.size, refcheck=False)\nreturn e"
PRINTS = "for i in range(20_000): print('line', i)\nreturn scores"
BODIES = [
    *((stub, "todo", ["not attempted"]) for stub in STUBS),
    *((body, "wrong", ["returned None", "return statement"]) for body in NO_RETURN),
    *((body, "error", ["SystemExit"]) for body in ("raise SystemExit(3)", "exit()")),
    ("return softmax(scores)", "error", ["raised RecursionError"]),
    ("raise ValueError('word ' * 10_000)", "error", ["raised ValueError: word"]),
    (UNWRITABLE, "error", ["raised E"]),
    ("return np.ones(10**15)", "error", ["raised", "MemoryError"]),
    ("return scores * np.nan", "wrong", ["nan or inf. The smallest input"]),
    (IN_PLACE, "wrong", ["changed its input scores in place"]),
    (RESIZED, "wrong", ["changed its input scores in place"]),
    (PRINTS, "wrong", ["printed line 0 line 1 line 2 expected"]),
]


@pytest.mark.parametrize(("body", "status", "words"), BODIES)
def test_what_is_said_of_a_body(body, status, words, capsys):
    report(body, status, *words)
    assert capsys.readouterr() == ("", "")


def test_an_exception_shows_its_class_message_input_and_the_own_line(tmp_path, monkeypatch):
    (tmp_path / "own_softmax.py").write_text(
        "import numpy as np\ndef softmax(scores):\n    e = np.exp(scores)\n"
        "    return np.reshape(e, (7, 7))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    import own_softmax

    result = report(
        own_softmax.softmax, "error", "raised ValueError: cannot reshape", "softmax(scores)"
    )
    assert dict(result.rows)["where"] == "line 4: return np.reshape(e, (7, 7))"
    assert dict(result.rows)["scores"] == "[[0., 1.]]"


def test_interrupting_a_check_interrupts_it():
    state = random.getstate()
    with pytest.raises(KeyboardInterrupt):
        grade(answer("import random; random.random(); raise KeyboardInterrupt"))
    assert random.getstate() == state


def test_a_warning_is_not_shown(capsys, recwarn):
    grade(answer("import warnings; warnings.warn('careful')\nreturn np.log(scores - 5)"))
    assert capsys.readouterr() == ("", "")
    assert not recwarn.list


# Time

ENDLESS = [
    "while True: pass",
    "while True:\n    try: 1 / 0\n    except Exception: pass",
    "import itertools\nfor i in itertools.count(): scores + i",
]


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


@pytest.mark.parametrize("body", ENDLESS)
@pytest.mark.parametrize("where", ["here", "another thread", "without alarms"])
def test_an_endless_loop_is_stopped(short, request, where, body):
    results = []
    if where == "without alarms":
        request.getfixturevalue("no_alarms")
    thread = threading.Thread(target=lambda: results.append(grade(answer(body))), daemon=True)
    if where == "another thread":
        thread.start()
        thread.join()
    else:
        thread.run()
    (result,) = results
    assert "stopped after" in result.head and "never ends" in result.says
    assert where != "without alarms" or sys.gettrace() is None


def test_what_was_stopped_within_an_except_causes_no_later_error(no_alarms, monkeypatch):
    monkeypatch.setattr(grading, "SECONDS", 0.01)
    for _ in range(60):  # each is stopped at a step of its own
        grade(answer(ENDLESS[1]))
        assert sys.exc_info() == (None, None, None)


def test_what_runs_at_a_garbage_collection_does_not_swallow_the_end(short, no_alarms):
    """Nearly all of the time passes in it, so that its end comes there as well."""

    def watcher(phase, info):
        sum(i for i in range(20_000))

    gc.callbacks.append(watcher)
    try:
        report("import gc\nwhile True: gc.collect(0)", "error", "stopped after")
    finally:
        gc.callbacks.remove(watcher)


def test_where_something_else_traces_there_is_no_limit_and_no_harm(no_alarms):
    def other(frame, event, argument):
        return None

    sys.settrace(other)
    result, still = grade(right, name="softmax"), sys.gettrace()
    sys.settrace(None)
    assert result
    assert still is other


def test_a_right_answer_that_the_computer_keeps_waiting_is_right(short):
    """The work counts, not the clock on the wall: waiting stands here for a busy machine."""
    assert grade(lambda scores: time.sleep(0.1) or right(scores), name="softmax")


def test_an_answer_that_only_waits_is_stopped_with_other_words(monkeypatch):
    monkeypatch.setattr(grading, "PATIENCE", 0.2)
    result = report("import time; time.sleep(60)", "error", "stopped after 0.2 sec", "time.sleep")
    assert "never ends" not in result.says


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


def test_an_error_that_never_ends_its_message(short):
    Endless = type("Endless", (Exception,), {"__str__": for_ever})
    began = time.thread_time()
    report(lambda scores: raises(Endless), "error", "raised Endless")
    assert time.thread_time() - began < 10, "all messages of a round share its time"


# What comes back


class Hostile:
    def __array__(self, *args, **kwargs):
        raise ZeroDivisionError

    def __repr__(self):
        raise ZeroDivisionError


async def later(scores):
    return right(scores)


def lazy(scores):
    yield right(scores)


def always(result):
    return lambda *arguments: result


SHAPE = "(1, 2) = (queries, keys)"
NO_NUMBERS = {
    "a tuple of 2 things": (1, 2),
    "a list of 1 thing;": [[0.5, 0.5]],
    "a list of 2 things": [[1], [2, 3]],
    "an array of <U1": np.array([["a", "b"]]),
    "an array of object": np.array([[None, 1]]),
    "an array of complex128": np.array([[1 + 2j, 0]]),
    "a masked array": np.ma.array([[1.0, 2.0]], mask=[[0, 1]]),
    "a str": "text",
    "a dict": {},
    "a set": {1.0},
    "an object": object(),
    "a Hostile": Hostile(),
    "an ufunc": np.exp,
}
OTHER_SHAPES = 2.5, True, np.zeros(()), np.zeros((0, 2)), np.broadcast_to(0.5, (10**6, 10**6))
RETURNED = [
    *((always(x), "softmax", [f"returned {what}", SHAPE]) for what, x in NO_NUMBERS.items()),
    *((always(x), "softmax", ["wrong shape", SHAPE]) for x in OTHER_SHAPES),
    (lazy, "softmax", ["a generator", "use return"]),
    (later, "softmax", ["a coroutine", "leave out async"]),
    (lambda s: attention(s, s, s), "softmax", [".output"]),
    (lambda s: right(s).tolist(), "softmax", ["np.array(...)"]),
    (always((1, 2)), "project", ["a tuple of 2 things", "query, key, value"]),
    (always(("a", 2, 3)), "project", ["a str for query"]),
    (lambda x, *w: x, "project", ["an array of float64", "3 arrays"]),
    (lambda x, q, k, v: (x @ q.T, x @ k.T, x), "project", ["of value"]),
    (lambda n, m: np.ones((n, m)), "causal_mask", ["wrong kind: float64"]),
    (lambda texts, v: texts.clear() or np.zeros(1), "trigram_vectors", ["changed its input texts"]),
]


@pytest.mark.parametrize(("fn", "name", "words"), RETURNED)
def test_what_is_said_of_what_comes_back(fn, name, words, recwarn):
    assert report(fn, "wrong", *words, name=name).mistake is None
    assert not recwarn.list  # a coroutine is closed


def test_a_negative_zero_is_written_like_zero():
    assert show_value(np.array([-0.0001, -0.0, 0.125])) == "[0.000, 0.000, 0.125]"
    assert show_value(np.array([-0.0006, -0.0004])) == "[-0.001,  0.000]"
    assert show_value(np.array([1e300, np.nan, -np.inf])) == "[1.e+300,     nan,    -inf]"

    def nudged(query, key):
        lengths = np.linalg.norm(query, axis=1)[:, None] * np.linalg.norm(key, axis=1)
        return query @ key.T / (lengths + 1e-3)

    rows = dict(report(nudged, "wrong", "wrong values", name="cosine_scores").rows)
    assert rows["got"] != rows["expected"]


@needs_torch
def test_odd_tensors():
    import torch

    zeros = torch.zeros(1, 2)
    for odd in zeros.to(torch.complex64), zeros.to("meta"), torch.eye(2).to_sparse():
        report(always(odd), "wrong", "returned a Tensor")
    report(always(zeros.bfloat16()), "wrong", "wrong values")


def test_the_first_difference_in_a_long_table_is_written_and_drawn():
    result = grade(lambda s: np.round(right(s), 3) + 0.01 * (s < 0), name="softmax")
    assert result.status == "wrong"
    (want, have) = result.tables
    assert (np.array(want) != np.array(have)).any()
    card = result._repr_html_()
    assert 'role="img"' in card
    assert "numbers differ, most in row" in card


def for_ever(*arguments, **options):
    while True:
        pass


def leaves(*arguments, **options):
    raise SystemExit


LOOKED_AT = {"__array__": for_ever}, {"__array__": leaves}, {"__class__": property(leaves)}


@pytest.mark.parametrize("members", LOOKED_AT)
def test_a_result_that_computes_itself_when_it_is_looked_at(short, members):
    thing = type("Thing", (), members)()
    assert grade(lambda scores: thing, name="softmax").status in ("wrong", "error")


# What depends on more than the arguments


@pytest.mark.parametrize(
    "call",
    ["np.random.rand()", "np.random.seed(1)", "__import__('random').random()"]
    + ["__import__('torch').rand(2)"] * HAS_TORCH,
)
def test_global_random_state_is_caught_and_restored(call):
    if HAS_TORCH:
        import torch  # noqa: F401
    before = guards.random_states()
    report(f"{call}\nreturn scores", "wrong", "global random generator")
    assert guards.random_states() == before


def tired(*bad):
    """Return a softmax that is wrong in some of its calls, as they are counted from 1."""
    calls = []
    return lambda scores: calls.append(1) or right(scores) * (1 + (len(calls) in bad))


def fails_in_the_second_round(calls=[]):  # noqa: B006
    return lambda scores: calls.append(1) or (1 / 0 if len(calls) > ROUND + 1 else right(scores))


def in_one_buffer(scores, buffer=np.zeros(100)):  # noqa: B008
    result = buffer[: scores.size].reshape(scores.shape)
    result[:] = right(scores)
    return result


def test_a_random_answer_is_wrong():
    rng = np.random.default_rng()
    report(lambda scores: rng.random(scores.shape), "wrong", "wrong values")
    report(lambda scores: right(scores) + rng.random(scores.shape), "wrong", "wrong values")


def test_what_a_call_leaves_behind_is_found():
    for fn in (tired(2 * ROUND), tired(ROUND + 1), fails_in_the_second_round()):
        report(fn, "wrong", "right at first", "earlier calls")
    report(in_one_buffer, "wrong", "a later call changed the result of an earlier one")


@pytest.mark.parametrize("name", ["causal_mask", "count_parameters", "cache_bytes", "window_mask"])
def test_a_list_of_the_cases_is_no_answer(name):
    """Where an input is made of whole numbers alone, other numbers come too."""
    exercise = find(name)
    known = {case: exercise.reference(*case) for case in exercise.cases()}
    assert grade(lambda *case: known[case], name=name).status == "error"


def test_a_view_of_the_input_is_right_only_where_the_task_is_to_rearrange():
    same = replace(
        SOFTMAX,
        name="as_it_is",
        returns={"copy": "(n,)"},
        reference=np.copy,
        cases=lambda: [(np.arange(2.0),), (np.arange(3.0),)],
        mistakes=(),
        solution="def as_it_is(x):\n    return x.copy()",
    )
    assert grade_exercise(same, lambda x: x.copy()).status == "pass"
    for view in (lambda x: x, lambda x: x[:], lambda x: x[::-1][::-1]):
        result = grade_exercise(same, view)
        assert result.head == "returned a view of x, not an array of its own."
    assert grade(lambda x, h: x.reshape(len(x), 3, h, -1).transpose(1, 2, 0, 3), "split_heads")


# What is handed in


class Softmax:
    def __call__(self, scores):
        return right(scores)


class NotYet:
    def __call__(self, scores):
        raise NotImplementedError


HANDED_IN = [
    (lambda scores: right(scores), "pass"),
    (functools.partial(right, axis=-1), "pass"),
    (functools.partial(right, axis=0), "wrong"),
    (Softmax(), "pass"),
    (Softmax().__call__, "pass"),
    (NotYet(), "todo"),
    (np.exp, "wrong"),
    (len, "wrong"),
    (print, "wrong"),
    (dict, "wrong"),
    (int, "error"),
    (Softmax, "error"),
    (lambda: 1, "error", "raised TypeError", "called as my_softmax(scores)"),
    (lambda a, b: 1, "error", "raised TypeError", "called as my_softmax(scores)"),
    (lambda scores: raises(NotImplementedError("deep")), "error", "NotImplementedError: deep"),
    *((x, "error", "cannot be called", "without parent") for x in (3, None, np.zeros(2), [right])),
]


@pytest.mark.parametrize("handed_in", HANDED_IN)
def test_callables_of_all_kinds_and_what_cannot_be_called(handed_in):
    report(*handed_in)


def test_an_answer_with_a_cache_cannot_take_arrays():
    result = grade(functools.lru_cache(right), name="softmax")  # but tensors, which have a hash
    assert result.status == ("pass" if "torch" in sys.modules else "error")


broken = replace(SOFTMAX, reference=lambda scores: 1 / 0)
other = replace(SOFTMAX, solution="def other(x):\n    return x")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: grade(lambda scores: scores), TypeError, r'check\(answer, name="softmax"\)'),
        (lambda: grade(functools.partial(right)), TypeError, "partial"),
        (lambda: check(None), TypeError, "NoneType"),
        (lambda: grade(right, 5), TypeError, r"name must be a string, .* got an int"),
        (lambda: grade(right, "sofmax"), ValueError, "did you mean 'softmax'"),
        (lambda: grade(right, "zzz"), ValueError, "no exercise called 'zzz'"),
        (lambda: register(SOFTMAX), ValueError, "already an exercise called 'softmax'"),
        (lambda: other.starter, ValueError, "does not define softmax"),
        (lambda: grade_exercise(broken, right), RuntimeError, "the reference of softmax fails"),
    ],
)
def test_what_is_no_exercise_is_refused_in_words(call, error, words):
    with pytest.raises(error, match=words):
        call()


# Diagnoses


PACKED = "packed_self_attention(x, text, a, b, c)"
EXP = "e = np.exp(query @ key / np.sqrt(key.shape[-1]) + bias)"
WEIGHTS = "e / e.sum(-1, keepdims=True)"
KNOWN = [  # half of one, another error of its class, a NameError: no guess
    ("softmax(s)", "return right(s, axis=0 if len(s) == 2 else -1)", None),
    ("project(x, a, b, c)", "raise ValueError('mine')", None),
    (PACKED, "return x.reshape(7, 7)", None),
    (PACKED, "return x @ a @ (x @ b)", "not-transposed"),
    ("attention(query, key, value, bias)", "return softmax_(query @ key) @ value", None),
    (
        "attention(query, key, value, bias)",
        f"{EXP}\n    return {WEIGHTS} @ value",
        "not-transposed",
    ),
]


@pytest.mark.parametrize(("head", "body", "mistake"), KNOWN)
def test_a_diagnosis_is_given_only_where_a_known_mistake_does_the_same(head, body, mistake):
    space = {"np": np, "right": right}
    exec(f"def {head}:\n    {body}", space)
    result = grade(space[head.split("(")[0]])
    assert result.status in ("wrong", "error") and result.mistake == mistake, result


def test_a_mistake_that_fails_itself_is_passed_over():
    failing = Mistake("fails", "It fails.", lambda scores: 1 / 0)
    more = replace(SOFTMAX, mistakes=(failing, *SOFTMAX.mistakes))
    assert grade_exercise(more, lambda scores: right(scores, axis=0)).mistake == "axis"


def test_the_smallest_input_is_shown():
    result = report(lambda scores: right(scores) * (1 + (scores.shape[-1] == 3)), "wrong")
    assert dict(result.rows)["scores"] == "[[0., 1., 3.],\n [1., 1., 0.]]"


def test_the_example_of_the_documentation():
    text = (
        "def masked_softmax(scores, mask):\n"
        "    e = np.exp(np.where(mask, -np.inf, scores))\n"
        "    return e / e.sum(axis=-1, keepdims=True)"
    )
    assert repr(grade(run_text(text, "masked_softmax"))) == (
        "✗ my_masked_softmax: wrong values. The smallest input that shows it:\n"
        "  scores    [[1., 2., 0.]]\n"
        "  mask      [[ True,  True, False]]\n"
        "  expected  [[0.269, 0.731, 0.000]]\n"
        "  got       [[0., 0., 1.]]\n"
        "  → The mask is upside down: you hid the visible keys. Here True means the query may\n"
        "    look."
    )


# Answers that refer to themselves

SELF = """
def softmax(scores):
    if len(scores) > 1:
        return np.concatenate([softmax(scores[:1]), softmax(scores[1:])])
    e = np.exp2(scores - scores.max())
    return e / e.sum()
"""
CHECKED = "def check(fn):\n    found.append(grade(fn))\n    return fn\n@check\n"
INSIDE = "def inside():\n" + (CHECKED + SELF.strip()).replace("\n", "\n    ").join(["    ", "\n"])


@pytest.mark.parametrize(
    ("text", "before"),
    [(CHECKED + SELF, {}), (CHECKED + SELF, {"softmax": lambda scores: None}),
     (INSIDE + "inside()", {})],
    ids=["unbound", "bound before", "within a function"],
)  # fmt: skip
def test_an_answer_may_call_itself_before_python_has_bound_its_name(text, before):
    space = {"np": np, "grade": grade, "found": [], **before}
    exec(text, space)
    assert space["found"][0].status == "pass", space["found"][0]
    if fn := space.pop("softmax", None):
        grade(fn)
    assert "softmax" not in space, "the name is as it was before the check"


# The settings of the session: how each is changed, and how it is looked at

TORCHS = {
    "dtype": ("torch.set_default_dtype(torch.float64)", "torch.get_default_dtype()"),
    "device": ("torch.set_default_device('meta')", "torch.empty(0).device"),
    "gradients": ("torch.set_grad_enabled(False)", "torch.is_grad_enabled()"),
}
CHANGED = TORCHS | {
    "errors of NumPy": ("np.seterr(all='raise')", "np.geterr()"),
    "warnings": ("warnings.simplefilter('error')", "list(warnings.filters)"),
    "output": ("sys.stdout = None", "sys.stdout"),
}
BACK = (
    "torch.set_default_dtype(torch.float32); torch.set_default_device(None); "
    "torch.set_grad_enabled(True)"
)


@pytest.mark.parametrize(("change", "look"), CHANGED.values(), ids=CHANGED)
def test_what_an_answer_changes_is_put_back(change, look):
    space = {"np": np, "sys": sys, "warnings": warnings}
    if "torch" in change:
        space["torch"] = pytest.importorskip("torch")
    before = eval(look, space)
    grade(lambda scores: exec(change, space) or scores, name="softmax")
    assert eval(look, space) == before


@needs_torch
@pytest.mark.parametrize("name", ["OneHead", "softmax"])
@pytest.mark.parametrize(("own", "look"), TORCHS.values(), ids=TORCHS)
def test_the_readers_settings_of_torch_reach_no_check(own, look, name):
    """pytorch#27355: neither the reference nor the answer."""
    import torch

    exercise, space = find(name), {"torch": torch}
    solution = run_text(exercise.solution, exercise.function)
    exec(own, space)
    try:
        before = eval(look, space)
        assert grade(solution, name=name).status == "pass"
        assert eval(look, space) == before
    finally:
        exec(BACK, space)


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
    try:
        assert grade(lambda scores: pyplot.figure() and right(scores), name="softmax")
        assert pyplot.get_fignums() == [mine.number]
    finally:
        pyplot.close(mine)


@needs_torch
def test_one_thread_is_enough():
    import torch

    seen, before = [], torch.get_num_threads()
    assert grade(lambda s: seen.append(torch.get_num_threads()) or right(s), name="softmax")
    assert {*seen} == {1}
    assert torch.get_num_threads() == before


# Modules

ONE_HEAD = find("OneHead").solution
BUFFER = "super(OneHead, self).__init__()\n        self.register_buffer('eye', torch.eye(2))"
NO_FORWARD = ONE_HEAD[: ONE_HEAD.index("    def forward")]
MODULES = {  # what is changed in the solution, and what is said
    "other names": (("w_q", "query_layer"), "error", "raised ValueError: the parameters differ: "
                    "missing w_q.weight (1, 2); not asked for query_layer.weight (1, 2)"),
    "a buffer": (("super().__init__()", BUFFER), "pass", "correct"),
    "random": (("return scores", "torch.rand(2)\n        return scores"), "wrong",
               "global random generator of torch"),
    "in place": (("query, key", "x += 1\n        query, key"), "wrong",
                 "changed its input x in place."),
    "an error": (("scores.softmax(dim=-1)", "scores.sofmax()"), "error", "AttributeError"),
    "forward is a stub": ((ONE_HEAD, NO_FORWARD + "    def forward(self, x):\n        ..."), "todo",
                          "not attempted"),
    "no forward": ((ONE_HEAD, NO_FORWARD), "error", "raised"),
    "no module": ((ONE_HEAD, "class OneHead:\n    def __init__(self, *sizes): self.forward = 1"),
                  "error", "expected a subclass of nn.Module, got OneHead"),
}  # fmt: skip


@needs_torch
@pytest.mark.parametrize(("change", "status", "words"), MODULES.values(), ids=MODULES)
def test_what_is_said_of_a_module(change, status, words):
    text = ONE_HEAD.replace(*change)
    assert text != ONE_HEAD
    at = text.index("class OneHead")  # a check finds what refers to itself before it is bound
    space = {"grade": grade, "found": []}
    exec("import torch\nfrom torch import nn\n" + CHECKED + text[at:], space)
    (result,) = space["found"]
    assert result.status == status and words in result.head, result
    if words == "AttributeError":
        assert dict(result.rows)["where"].startswith("line ")


@needs_torch
def test_what_is_no_class_of_modules():
    made = run_text(ONE_HEAD, "OneHead")(2, 1, 3)
    head = grade(made, name="OneHead").head
    assert head == "got an object of the class OneHead, not the class."
    assert grade(lambda *sizes: sizes, name="OneHead").status == "error"


@needs_torch
def test_building_a_module_draws_weights_and_that_is_no_fault():
    import torch

    before = torch.get_rng_state()
    assert grade(run_text(find("CausalHeads").solution, "CausalHeads")).status == "pass"
    assert torch.equal(before, torch.get_rng_state())


def test_without_torch_modules_say_what_is_missing(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "torch"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "d2lmini._torch", raising=False)
    with pytest.raises(ImportError, match=r"OneHead is about a PyTorch module.*pip install"):
        grade(lambda *sizes: None, name="OneHead")
    assert grade(right, name="softmax").status == "pass"
