"""Compare an answer with the reference, and find out which known mistake explains it."""

import copy
import dis
import inspect
import itertools
import linecache
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from d2lmini._arrays import is_torch
from d2lmini.exercises.cards import LARGEST, show_value
from d2lmini.exercises.definition import Case, Exercise, Result, Tables, find
from d2lmini.exercises.guards import (
    Deadline,
    FirstOutput,
    TimeUpError,
    random_states,
    restore_random_states,
    standard_settings,
    time_limit,
)
from d2lmini.exercises.variations import related, variations

__all__ = ["grade", "grade_exercise", "outcomes_of", "same_outcome"]

SECONDS = 5.0  # of work, for all calls of one round; a right answer takes milliseconds
PATIENCE = 30.0  # seconds on the clock
RELATIVE, ABSOLUTE = 1e-4, 1e-5  # float32 is good enough
OF_NAN = (
    "nan comes from 0 / 0, ∞ − ∞ and 0 · ∞, and inf from a division by 0 or from exp of more than "
    "709. Which line makes the first?"
)
SHAKEN = 3  # how often the numbers of each case are moved, to tell one reason from another

Rows = tuple[tuple[str, str], ...]


@dataclass
class Outcome:
    """What one call did."""

    arrays: list[np.ndarray] | None = None  # what it returned, copied at once
    live: list[np.ndarray] = field(default_factory=list)  # the same, not copied
    unreadable: str = ""  # what it returned instead, in words
    advice: str = ""  # what to return in place of that
    error: BaseException | None = None
    message: str = ""  # of the error
    changed: str = ""  # the argument that it changed
    random: str = ""  # the global generator that it used
    views: str = ""  # the argument whose memory it gave back
    printed: str = ""


def grade(fn: Any, name: str | None = None) -> Result:
    """Check an answer without showing the result.

    Parameters
    ----------
    fn : callable
        The answer: a function, or a class where the exercise asks for a module.
    name : str, optional
        The exercise; ``fn.__name__`` unless given.

    Returns
    -------
    Result

    Raises
    ------
    TypeError
        If there is no name to go by, or if it is not a string.
    ValueError
        If there is no exercise of that name.
    ImportError
        If the exercise needs PyTorch and there is none.

    Examples
    --------
    >>> import numpy as np
    >>> def weighted_average(weights, values):
    ...     return weights @ values
    >>> result = grade(weighted_average)
    >>> result.status, result.mistake
    ('wrong', 'not-normalised')
    """
    if name is None:
        name = getattr(fn, "__name__", None)
        if not isinstance(name, str) or name == "<lambda>":
            raise TypeError(
                f"cannot tell which exercise this {type(fn).__name__} answers; "
                'give its name: check(answer, name="softmax")'
            )
    if not isinstance(name, str):
        raise TypeError(
            f"name must be a string, the name of an exercise; got {_in_words(name)}: "
            'check(answer, name="softmax")'
        )
    return grade_exercise(find(name), fn)


def grade_exercise(exercise: Exercise, fn: Any) -> Result:
    """Check an answer to this exercise, registered or not."""
    if exercise.needs_torch:
        _require_torch(exercise)
    if not callable(fn):
        return Result(
            exercise.name,
            "error",
            f"got {_in_words(fn)}, which cannot be called.",
            says="Give the function itself, without parentheses and arguments.",
        )
    if exercise.needs_torch and not isinstance(fn, type) and hasattr(fn, "named_parameters"):
        return Result(
            exercise.name,
            "error",
            f"got an object of the class {type(fn).__name__}, not the class.",
            says="Give the class itself. The check builds objects of several sizes.",
        )
    if _is_stub(fn):
        return _not_attempted(exercise)
    states = random_states()
    try:
        with standard_settings(), _under_its_name(fn):
            return _grade(exercise, fn)
    finally:
        if random_states() != states:
            restore_random_states(states)


@contextmanager
def _under_its_name(fn: Any) -> Iterator[None]:
    """Let the answer find itself, as in recursion or ``super(OneHead, self)``.

    ``@check`` runs before Python has bound the name, which may still be that of another try.
    """
    name: str = getattr(fn, "__name__", "")
    spaces = {
        id(f.__globals__): f.__globals__ for f in _functions(fn) if name in _names(f.__code__)
    }
    before = [(space, space.get(name, _UNBOUND)) for space in spaces.values()]
    for space in spaces.values():
        space[name] = fn
    try:
        yield
    finally:
        for space, thing in before:
            if thing is _UNBOUND:
                space.pop(name, None)
            else:
                space[name] = thing


_UNBOUND = object()


def _names(code: CodeType) -> set[str]:
    """Return the names that a function, or one inside it, looks up outside."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {*code.co_names}.union(*map(_names, inner))


def _require_torch(exercise: Exercise) -> None:
    try:
        import d2lmini._torch  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"the exercise {exercise.name} is about a PyTorch module, and there is no PyTorch "
            "here: pip install torch; the exercises on functions work without it"
        ) from error


def _not_attempted(exercise: Exercise) -> Result:
    message = "not attempted yet. Replace the three dots and run again."
    return Result(exercise.name, "todo", message)


def _grade(exercise: Exercise, fn: Callable[..., Any]) -> Result:
    cases = exercise.cases()
    rights = outcomes_of(exercise, exercise.reference)
    expected = [right.arrays for right in rights if right.arrays is not None]
    if len(expected) < len(cases):
        error = next(right.error for right in rights if right.arrays is None)
        raise RuntimeError(f"the reference of {exercise.name} fails on a case") from error
    outcomes = outcomes_of(exercise, fn, limit=SECONDS)
    if isinstance(outcomes[0].error, NotImplementedError) and _raised_by(outcomes[0].error, fn):
        return _not_attempted(exercise)
    for case, outcome, want in zip(cases, outcomes, expected, strict=False):
        found = _judge(exercise, fn, case, outcome, want)
        if found is None:
            continue
        if found.says or found.status == "todo":
            return found
        return _diagnosed(exercise, fn, found, outcomes, expected)
    for case, outcome in zip(cases, outcomes, strict=True):  # all is right but for this
        found = _aliased(exercise, outcome, _shown(exercise, case))
        if found is not None:
            return found
    unsteady = _steady(exercise, fn, cases, outcomes, expected)
    if unsteady is not None:
        return unsteady
    return Result(exercise.name, "pass", f"correct on all {len(cases)} inputs.")


def outcomes_of(
    exercise: Exercise, fn: Callable[..., Any], limit: float | None = None
) -> list[Outcome]:
    """Call an answer on every case; with a limit in seconds of work, stop when they are over."""
    deadline = None if limit is None else Deadline(limit, PATIENCE)
    arrays = _run_all(exercise, fn, deadline, tensors=False)
    if _may_want_tensors(arrays) and not exercise.needs_torch:
        tensors = _run_all(exercise, fn, deadline, tensors=True)
        if _returned(tensors) > _returned(arrays) or _asks_for_tensors(arrays[0]):
            return tensors
    return arrays


def _may_want_tensors(outcomes: list[Outcome]) -> bool:
    """Tell whether the answer failed on arrays, as one written for PyTorch may do.

    Any exception will do: ``x.transpose(1, 2)`` raises a ValueError on an array.
    """
    loaded = sys.modules.get("torch") is not None
    return loaded and any(isinstance(outcome.error, Exception) for outcome in outcomes)


def _returned(outcomes: list[Outcome]) -> int:
    return sum(outcome.error is None for outcome in outcomes)


def _asks_for_tensors(outcome: Outcome) -> bool:
    """Tell whether PyTorch itself turned the array away; on tensors the learner's fault shows."""
    return isinstance(outcome.error, TypeError) and "must be Tensor" in str(outcome.error)


def _run_all(
    exercise: Exercise, fn: Callable[..., Any], deadline: Deadline | None, *, tensors: bool
) -> list[Outcome]:
    outcomes = []
    for case in exercise.cases():
        outcomes.append(_run(exercise, fn, case, deadline, tensors=tensors))
        if isinstance(outcomes[-1].error, TimeUpError):
            break
    return outcomes


def _run(
    exercise: Exercise,
    fn: Callable[..., Any],
    case: Case,
    deadline: Deadline | None,
    *,
    tensors: bool,
) -> Outcome:
    """Make one call, and see to it that nothing but its outcome remains."""
    outcome = Outcome()
    given = tuple(copy.deepcopy(argument) for argument in case)
    passed = tuple(_tensor(argument) if tensors else argument for argument in given)
    printed = FirstOutput()
    states = random_states()
    returned: Any = None
    with redirect_stdout(printed), redirect_stderr(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with time_limit(deadline) if deadline else nullcontext():
                returned = exercise.call(fn, *passed)
                # An object of the learner's own may compute when it is looked at.
                _read(exercise, returned, outcome)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit too: the session goes on
            outcome.error = error
            outcome.message = _message(error, deadline or Deadline(1, PATIENCE))
        returned = None
    outcome.printed = printed.text
    outcome.changed = _changed_argument(exercise, case, given)
    after = random_states()
    changed = [name for name, state in states.items() if after.get(name, state) != state]
    if changed:
        outcome.random = changed[0]
        restore_random_states(states)
    if outcome.error is None:
        outcome.views = _viewed_argument(exercise, given, outcome.live)
    return outcome


def _message(error: BaseException, deadline: Deadline) -> str:
    """Return what an error says; one of the learner's own may fail to, or never come to an end."""
    try:
        with time_limit(deadline):
            return " ".join(str(error).split())
    except BaseException:
        return ""


def _tensor(argument: Any) -> Any:
    return sys.modules["torch"].from_numpy(argument) if _is_array(argument) else argument


def _is_array(argument: Any) -> bool:
    return isinstance(argument, np.ndarray)


def _changed_argument(exercise: Exercise, case: Case, given: Case) -> str:
    for name, before, after in zip(exercise.arguments, case, given, strict=True):
        if _is_array(before):
            same = np.array_equal(before, after, equal_nan=before.dtype.kind == "f")
        else:
            same = before == after
        if not same:
            return name
    return ""


def _viewed_argument(exercise: Exercise, given: Case, returned: list[np.ndarray]) -> str:
    for name, argument in zip(exercise.arguments, given, strict=True):
        if _is_array(argument) and any(np.may_share_memory(argument, x) for x in returned):
            return name
    return ""


# What came back


def _read(exercise: Exercise, returned: Any, outcome: Outcome) -> None:
    """Turn what was returned into NumPy arrays, or say in words what it is."""
    outcome.advice = _advice(exercise, returned)
    count = len(exercise.returns)
    if returned is None or returned is Ellipsis:
        outcome.unreadable = str(returned)
        return
    parts = (returned,)
    if count > 1:
        if not isinstance(returned, tuple | list) or len(returned) != count:
            outcome.unreadable = _in_words(returned)
            return
        parts = tuple(returned)
    for name, part in zip(exercise.returns, parts, strict=True):
        try:
            outcome.live.append(_as_array(part))
        except Exception:  # whatever an object of the learner's own does when it is converted
            words = _in_words(part)
            outcome.unreadable = f"{words} for {name}" if count > 1 else words
            return
    # An array that is too large has the wrong shape, which is seen without a copy.
    outcome.arrays = [x.copy() if x.size <= LARGEST else x for x in outcome.live]


def _as_array(value: Any) -> np.ndarray:
    """Return numbers as an array; TypeError for anything else."""
    if is_torch(value):
        value = value.detach().cpu()
        value = (value.float() if value.dtype == sys.modules["torch"].bfloat16 else value).numpy()
    if isinstance(value, list | tuple | np.ma.MaskedArray):
        raise TypeError
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise TypeError
    return array


def _in_words(value: Any) -> str:
    if isinstance(value, tuple | list):
        plural = "" if len(value) == 1 else "s"
        return f"{_a(type(value).__name__)} of {len(value)} thing{plural}"
    if type(value) is np.ndarray:
        return f"an array of {value.dtype}"
    return _a(type(value).__name__)


def _a(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


# What is wrong with it, in the order in which a learner should hear of it


def _judge(
    exercise: Exercise, fn: Any, case: Case, outcome: Outcome, expected: list[np.ndarray]
) -> Result | None:
    shown = _shown(exercise, case)
    if outcome.printed.strip():
        shown = (*shown, ("printed", "\n".join(outcome.printed.strip().splitlines()[:3])))
    if outcome.error is not None:
        return _raised(exercise, fn, outcome.error, outcome.message, shown)
    if outcome.unreadable == "None":
        return Result(
            exercise.name,
            "wrong",
            "returned None.",
            shown,
            "Does every path through the function end in a return statement?",
        )
    if outcome.unreadable == "Ellipsis":
        return _not_attempted(exercise)
    if outcome.unreadable:
        return Result(
            exercise.name,
            "wrong",
            f"returned {outcome.unreadable}; expected {_expected_kind(exercise, expected)}.",
            shown,
            outcome.advice,
        )
    if outcome.changed:
        return Result(
            exercise.name,
            "wrong",
            f"changed its input {outcome.changed} in place.",
            shown,
            f"The caller still needs {outcome.changed}. Compute something new instead.",
        )
    if outcome.random:
        return Result(
            exercise.name,
            "wrong",
            f"used or changed the global random generator of {outcome.random}.",
            shown,
            "Nothing is random here: the same input has one right answer.",
        )
    assert outcome.arrays is not None
    return _compare(exercise, outcome.arrays, expected, shown)


def _expected_kind(exercise: Exercise, expected: list[np.ndarray]) -> str:
    if len(exercise.returns) > 1:
        return f"{len(exercise.returns)} arrays, {', '.join(exercise.returns)}"
    if expected[0].ndim == 0:
        return "a number"
    (axes,) = exercise.returns.values()
    return f"an array of shape {_with_axes(expected[0], axes)}"


def _with_axes(right: np.ndarray, axes: str) -> str:
    """Write a shape, and what its axes are called where that says more."""
    return f"{right.shape}" if axes == str(right.shape) else f"{right.shape} = {axes}"


def _advice(exercise: Exercise, returned: Any) -> str:
    """Say what to return in place of what cannot be read."""
    if inspect.isgenerator(returned):
        return "A function that yields computes nothing until it is asked: use return."
    if len(exercise.returns) > 1:
        return f"Return {', '.join(exercise.returns)}, in this order."
    if "output" in getattr(returned, "_fields", ()):
        return "That holds the output and the weights: return its .output."
    if isinstance(returned, tuple) and any(_is_array(x) or is_torch(x) for x in returned):
        return "Return only what is asked for: a comma makes a tuple of several things."
    if isinstance(returned, list | tuple):
        return "Return an array or a number: np.array(...) makes an array of nested lists."
    return "Return a number, or an array of numbers; of True and False where a mask is asked for."


def _compare(
    exercise: Exercise, got: list[np.ndarray], expected: list[np.ndarray], shown: Rows
) -> Result | None:
    several = len(expected) > 1
    for (name, axes), mine, right in zip(exercise.returns.items(), got, expected, strict=True):
        of = f" of {name}" if several else ""
        if mine.shape != right.shape:
            wanted = _with_axes(right, axes) if right.ndim else "a single number"
            head = f"wrong shape {mine.shape}{of}; expected {wanted}."
        elif right.dtype.kind == "b" and mine.dtype.kind != "b":
            head = f"wrong kind{of}: {mine.dtype} instead of True and False."
        elif exercise.whole and mine.dtype.kind not in "iu":
            head = f"wrong kind{of}: {mine.dtype} instead of whole numbers."
        elif not np.isfinite(mine[np.isfinite(right)]).all():
            head = f"nan or inf{of}. The smallest input that shows it:"
        elif not _close(mine, right):
            head = f"wrong values{of}. The smallest input that shows it:"
        else:
            continue
        precision = 3 if show_value(mine) != show_value(right) else 9
        rows = [("expected", show_value(right, precision)), ("got", show_value(mine, precision))]
        long = any(len(text.splitlines()) > 3 for _, text in rows)
        if long and mine.shape == right.shape and not _close(mine, right):
            rows.append(("differ first", _first_difference(mine, right)))
        return Result(exercise.name, "wrong", head, (*shown, *rows), tables=_tables(mine, right))
    return None


def _first_difference(mine: np.ndarray, right: np.ndarray) -> str:
    """Write the first numbers that differ, which a long table may hide."""
    same = np.isclose(mine, right, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True)
    place = tuple(int(i) for i in np.argwhere(~same)[0])
    want, have = (show_value(np.asarray(x[place]), 3) for x in (right, mine))
    if want == have:
        want, have = (show_value(np.asarray(x[place]), 9) for x in (right, mine))
    return f"at {list(place)}: expected {want}, got {have}"


def _tables(mine: np.ndarray, right: np.ndarray) -> Tables | None:
    """Return the first table of numbers that differs, to be drawn."""
    if mine.shape != right.shape or right.ndim < 2 or "c" in mine.dtype.kind + right.dtype.kind:
        return None
    rows = right.shape[-2:]
    for one, two in zip(right.reshape(-1, *rows), mine.reshape(-1, *rows), strict=True):
        if not _close(two, one):
            return tuple(tuple(map(tuple, x.astype(float).tolist())) for x in (one, two))
    return None


def _close(mine: np.ndarray, right: np.ndarray) -> bool:
    """Tell whether numbers agree; whole numbers have no last digits in which they may differ."""
    if mine.shape != right.shape or right.dtype.kind in "iu":
        return np.array_equal(mine, right)
    return bool(np.allclose(mine, right, rtol=RELATIVE, atol=ABSOLUTE, equal_nan=True))


def _aliased(exercise: Exercise, outcome: Outcome, shown: Rows) -> Result | None:
    if exercise.views or not outcome.views:
        return None
    return Result(
        exercise.name,
        "wrong",
        f"returned a view of {outcome.views}, not an array of its own.",
        shown,
        "Whoever changes the result would change the input with it.",
    )


def _raised(exercise: Exercise, fn: Any, error: BaseException, message: str, shown: Rows) -> Result:
    if isinstance(error, TimeUpError):
        head = f"stopped after {SECONDS:g} seconds of work."
        says = (
            "A right answer takes a fraction of a second. Is there a loop that never ends, or one "
            "that does far more than it must?"
        )
        if error.args == ("wait",):
            head = f"stopped after {PATIENCE:g} seconds, in which it worked little."
            says = (
                "Does it wait for something, as time.sleep does? Otherwise the computer was busy."
            )
        return Result(exercise.name, "error", head, shown, says)
    if isinstance(error, SystemExit):
        return Result(
            exercise.name,
            "error",
            "tried to leave Python (SystemExit).",
            shown,
            "Return the result. Leave out exit() and quit().",
        )
    message = message if len(message) <= 200 else message[:199] + "…"
    head = f"raised {type(error).__name__}{': ' if message else ''}{message}"
    where = _where(error, fn)
    rows = (*shown, ("where", where)) if where else shown
    says = ""
    if isinstance(error, TypeError | AttributeError) and "'Attention'" in message:
        says = "Attention holds two things, the output and the weights: take its .output."
    if type(error) is NameError:
        says = (
            "Is the name spelt as where it was defined? If that is a cell above, run it first. "
            "The third cell of code, What this chapter imports, brings the libraries."
        )
    return Result(exercise.name, "error", head, (("called as", exercise.signature), *rows), says)


def _where(error: BaseException, fn: Any) -> str:
    """Name the learner's own line: the innermost one in the file (or cell) of the answer."""
    files = {code.co_filename for code in _codes(fn)}
    for frame in reversed(traceback.extract_tb(error.__traceback__, limit=-1000)):
        if frame.filename in files:
            text = linecache.getline(frame.filename, frame.lineno or 0).strip()
            return f"line {frame.lineno}: {text}" if text else f"line {frame.lineno}"
    return ""


def _raised_by(error: BaseException, fn: Any) -> bool:
    """Tell whether the answer's own body, and nothing that it calls, raised this."""
    codes = _codes(fn)
    frames = list(traceback.walk_tb(error.__traceback__))
    return bool(frames) and frames[-1][0].f_code in codes


def _codes(fn: Any) -> list[CodeType]:
    return [function.__code__ for function in _functions(fn)]


def _functions(fn: Any) -> list[FunctionType]:
    """Return a function, what a partial or a wrapper holds, or the methods of a class."""
    fn = getattr(fn, "func", fn)
    holders = list(vars(fn).values()) if isinstance(fn, type) else [fn, type(fn).__call__]
    found = (getattr(holder, "__wrapped__", holder) for holder in holders)
    return [function for function in found if isinstance(function, FunctionType)]


def _is_stub(fn: Any) -> bool:
    """Tell whether a function, or a class's ``forward``, does nothing, docstring or not."""
    if isinstance(fn, type):
        fn = vars(fn).get("forward")
    if not isinstance(fn, FunctionType):
        return False
    instructions = [i for i in dis.get_instructions(fn) if i.opname not in PADDING]
    constants = [i.argval for i in instructions if i.opname in ("LOAD_CONST", "RETURN_CONST")]
    return constants in ([None], [Ellipsis]) and all(i.opname in NOTHING for i in instructions)


PADDING = {"RESUME", "NOP", "CACHE", "COPY_FREE_VARS", "MAKE_CELL"}
NOTHING = {"LOAD_CONST", "RETURN_CONST", "RETURN_VALUE"}


def _shown(exercise: Exercise, case: Case) -> Rows:
    return tuple(
        (name, show_value(argument))
        for name, argument in zip(exercise.arguments, case, strict=True)
    )


def _steady(
    exercise: Exercise,
    fn: Callable[..., Any],
    cases: list[Case],
    first: list[Outcome],
    expected: list[list[np.ndarray]],
) -> Result | None:
    """Call everything again: an answer that is remembered or drawn at random is no answer."""
    again = outcomes_of(exercise, fn, limit=SECONDS)
    for case, outcome, want in itertools.zip_longest(cases, again, expected):
        found = None if outcome is None else _judge(exercise, fn, case, outcome, want)
        if found is not None:
            return Result(
                exercise.name,
                "wrong",
                "right at first, but not when the same input came again.",
                found.rows,
                "The result must depend on the arguments alone, not on earlier calls.",
            )
    remembered = _remembered(exercise, fn, first)
    if remembered is not None:
        return remembered
    for case, outcome in zip(cases, first, strict=True):
        assert outcome.arrays is not None
        if not all(map(_close, outcome.live, outcome.arrays)):
            return Result(
                exercise.name,
                "wrong",
                "a later call changed the result of an earlier one.",
                _shown(exercise, case),
                "Each call must return an array of its own.",
            )
    return None


def _remembered(exercise: Exercise, fn: Callable[..., Any], first: list[Outcome]) -> Result | None:
    """Call everything with other values: neither a memory by shape nor a list of cases helps."""
    fresh, expected = _fresh(exercise)
    outcomes = outcomes_of(replace(exercise, cases=lambda: copy.deepcopy(fresh)), fn, limit=SECONDS)
    for i, (case, outcome, want) in enumerate(zip(fresh, outcomes, expected, strict=False)):
        found = _judge(exercise, fn, case, outcome, want)
        if found is None:
            continue
        if i >= len(first) or not same_outcome(first[i], outcome):
            return found
        return replace(
            found,
            head="gave the result of an earlier input of the same shape.",
            says="The result must depend on the values of the arguments, not only on their shapes.",
        )
    return None


def _fresh(exercise: Exercise) -> tuple[list[Case], list[list[np.ndarray]]]:
    """Return other inputs, with the same shapes first, and the right answers to them."""
    cases = list(map(_rearranged, exercise.cases()))
    cases += [_larger(case) for case in cases if any(type(n) is int for n in case)]
    wanted = outcomes_of(replace(exercise, cases=lambda: copy.deepcopy(cases)), exercise.reference)
    pairs = [
        (case, want.arrays)
        for case, want in zip(cases, wanted, strict=True)
        # Others are not inputs that this exercise allows, as 3 heads for 4 numbers.
        if want.arrays is not None and all(np.isfinite(x).all() for x in want.arrays)
    ]
    return [case for case, _ in pairs], [arrays for _, arrays in pairs]


def _larger(case: Case) -> Case:
    """Return the case with each whole number one larger: a list of the cases is no answer."""
    return tuple(n + 1 if type(n) is int else n for n in case)


def _rearranged(case: Case) -> Case:
    """Reverse the values of every other array or list, which keeps shapes and magnitudes."""
    changed: list[Any] = []
    count = 0
    for argument in case:
        if isinstance(argument, list) or (_is_array(argument) and argument.dtype.kind in "fi"):
            count += 1
            if count % 2:
                argument = (
                    argument[::-1]
                    if isinstance(argument, list)
                    else argument.ravel()[::-1].reshape(argument.shape).copy()
                )
        changed.append(argument)
    return tuple(changed)


# Which known mistake is it?


def _diagnosed(
    exercise: Exercise,
    fn: Any,
    found: Result,
    outcomes: list[Outcome],
    expected: list[list[np.ndarray]],
) -> Result:
    last = len(outcomes) - 1  # the case in which the most slips differ
    at_last = replace(exercise, cases=lambda: exercise.cases()[last : last + 1])
    for mistake in exercise.mistakes:
        for slip in (mistake.fn, *mistake.also):
            if not same_outcome(outcomes_of(at_last, slip)[0], outcomes[last]):
                continue
            theirs = outcomes_of(exercise, slip)
            if len(theirs) == len(outcomes) and same_outcomes(theirs, outcomes):
                return replace(found, says=mistake.says, mistake=mistake.id)
    says = _explained(exercise, fn, outcomes, expected)
    return replace(found, says=says or (OF_NAN if found.head.startswith("nan") else ""))


def _explained(
    exercise: Exercise, fn: Any, outcomes: list[Outcome], expected: list[list[np.ndarray]]
) -> str:
    """Say how the right answer must be changed to give these outcomes, on fresh inputs too."""
    fresh, wanted = _fresh(exercise)
    shaken = [_shaken(case, seed) for seed in range(SHAKEN) for case in exercise.cases()]
    cases = [*exercise.cases(), *fresh, *shaken]
    more = replace(exercise, cases=lambda: copy.deepcopy(cases[len(expected) :]))
    whole = [*outcomes, *outcomes_of(more, fn, limit=SECONDS)]
    if len(whole) < len(cases) or 3 * sum(map(_has_numbers, whole)) < len(whole):
        return ""  # too little came out that could tell one reason from another
    last = replace(exercise, cases=lambda: copy.deepcopy(shaken))
    also = [right.arrays for right in outcomes_of(last, exercise.reference)]
    pairs = [
        (got.arrays, right)
        for got, right in zip(whole, [*expected, *wanted, *also], strict=True)
        if right is not None
    ]
    if all(got for got, _ in pairs):
        if says := _exchanged(exercise, pairs):
            return says
        for part, name in enumerate(exercise.returns):
            one = [(got[part], right[part]) for got, right in pairs if got]
            if says := related(one, _close):
                return f"Of {name}: {says}" if len(exercise.returns) > 1 else says
    deadline = Deadline(SECONDS, PATIENCE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if _agrees(exercise, exercise.reference, cases, whole):
            return ""  # the numbers are right: what is wrong is their kind
        for says, other in variations(exercise):
            if _agrees(exercise, other, cases, whole):
                return says
            if deadline.passed():
                break
    return ""


def _agrees(exercise: Exercise, fn: Any, cases: list[Case], outcomes: list[Outcome]) -> bool:
    """Tell whether an answer of our own does the same on every input, the last first."""
    for case, outcome in zip(reversed(cases), reversed(outcomes), strict=True):
        own = Outcome()
        try:
            _read(exercise, exercise.call(fn, *copy.deepcopy(case)), own)
        except Exception as error:
            own.error = error
        if not same_outcome(own, outcome):
            return False
    return True


def _has_numbers(outcome: Outcome) -> bool:
    """Tell whether a call gave anything that is a number: nan is like any other nan."""
    return outcome.arrays is not None and any(
        x.size <= LARGEST and np.isfinite(x).any() for x in outcome.arrays
    )


def _exchanged(exercise: Exercise, pairs: list[tuple[Any, list[np.ndarray]]]) -> str:
    """Say which results stand in each other's place."""
    for one, two in itertools.combinations(range(len(exercise.returns)), 2):
        order = [*range(len(exercise.returns))]
        order[one], order[two] = two, one
        if all(all(map(_close, (got[i] for i in order), right)) for got, right in pairs):
            names = [*exercise.returns]
            return f"You returned {names[one]} and {names[two]} in each other's place."
    return ""


def _shaken(case: Case, seed: int) -> Case:
    """Return the case with each number that is not whole a little changed."""
    rng = np.random.default_rng(seed)

    def shaken(x: Any) -> Any:
        if type(x) is float or (_is_array(x) and x.dtype.kind == "f"):
            moved = x * rng.uniform(0.6, 1.4, np.shape(x))
            return float(moved) if type(x) is float else moved.astype(x.dtype)
        return x

    return tuple(map(shaken, case))


def same_outcomes(one: list[Outcome], two: list[Outcome]) -> bool:
    """Tell whether two answers agree on every case, and on more than how they fail."""
    compared = any(outcome.arrays is not None for outcome in one)
    return all(
        same_outcome(a, b) and (compared or a.message == b.message)
        for a, b in zip(one, two, strict=True)
    )


def same_outcome(one: Outcome, two: Outcome) -> bool:
    """Tell whether two calls gave the same numbers, or raised the same class of exception."""
    if one.error is not None or two.error is not None:
        return type(one.error) is type(two.error)
    if one.arrays is None or two.arrays is None:
        return False
    return all(
        _close(a, b) and (a.dtype.kind == "b") == (b.dtype.kind == "b")
        for a, b in zip(one.arrays, two.arrays, strict=True)
    )
