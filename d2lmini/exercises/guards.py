"""Run a learner's function so that a check is fair, and does no harm to the session.

What is guarded: time, output, random numbers, and what an answer may replace in the libraries and
in the checks themselves. NumPy and PyTorch compute under their standard settings, whatever the
reader has set. All else that a function can do to a session it can do here too, as in any cell.
"""

import io
import math
import pickle
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType, ModuleType
from typing import Any

import numpy as np

__all__ = [
    "Deadline",
    "FirstOutput",
    "TimeUpError",
    "random_states",
    "restore_random_states",
    "session_as_it_was",
    "standard_settings",
    "time_limit",
]

KEPT = 2000  # characters of what a function prints

# A reader may replace these. In a browser a thread has no clock of its own.
_clock = time.monotonic
_work = _clock if sys.platform == "emscripten" else getattr(time, "thread_time", _clock)


class TimeUpError(BaseException):
    """The time is up. Not an Exception, so that ``except Exception`` does not catch it.

    Its argument says of which: "work", of the processor, or "wait", of the clock on the wall.
    """


class Deadline:
    """When a check ends: after so many seconds of work, or of the clock on the wall.

    It is the work that counts: on a busy machine a right answer takes long and works little. The
    clock is for an answer that sleeps.
    """

    def __init__(self, work: float, wait: float) -> None:
        self._work, self._wait = _work() + work, _clock() + wait

    def passed(self) -> str:
        """Return "work" or "wait", or nothing while there is time."""
        return "work" if _work() > self._work else "wait" if _clock() > self._wait else ""


def time_limit(deadline: Deadline) -> Any:
    """Raise TimeUpError in the block when the deadline has passed.

    On the main thread of Unix an alarm does it. Elsewhere (Windows, another thread, the browser)
    each step of Python looks at the clock. Neither can interrupt a single long call into compiled
    code, nor a loop that catches every BaseException; where a debugger or a coverage tool already
    traces and there is no alarm, there is no limit.
    """
    if _has_alarm():
        return _alarm(deadline)
    return _clock_at_every_step(deadline) if sys.gettrace() is None else nullcontext()


def _has_alarm() -> bool:
    return (
        hasattr(signal, "setitimer")
        and sys.platform != "emscripten"
        and threading.current_thread() is threading.main_thread()
    )


@contextmanager
def _alarm(deadline: Deadline) -> Iterator[None]:
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed and (why := deadline.passed()):
            raise TimeUpError(why)

    began = _clock()
    before = signal.signal(signal.SIGALRM, ring)
    outer = signal.getitimer(signal.ITIMER_REAL)
    try:
        # It rings again and again: a bare ``except`` may have swallowed the first.
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer[0] > 0:  # someone else's alarm goes on
            left = outer[0] - (_clock() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6), outer[1])


@contextmanager
def _clock_at_every_step(deadline: Deadline) -> Iterator[None]:
    def look(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        frame.f_trace_opcodes = True  # a loop on one line may make no event of its line
        if why := deadline.passed():
            raise TimeUpError(why)
        return look

    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(None)


class FirstOutput(io.TextIOBase):
    """A stream that keeps the first characters, however much is printed."""

    def __init__(self) -> None:
        self.text = ""

    def writable(self) -> bool:
        """Tell that it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Keep what still fits."""
        if len(self.text) < KEPT:
            self.text += text[: KEPT - len(self.text)]
        return len(text)


def _torch() -> Any:
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "get_default_dtype") else None


@contextmanager
def standard_settings() -> Iterator[None]:
    """Check under the same settings in every session, and leave the session as it was.

    What the reader has set, such as a default dtype or device, does not reach the reference or the
    answer. One thread is enough, and on a busy machine much quicker than two.
    """
    torch = _torch()
    with session_as_it_was():
        if torch is None:
            yield
            return
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(1)
        with (
            torch.device("cpu"),
            torch.inference_mode(False),
            torch.enable_grad(),
            torch.autocast("cpu", enabled=False),
        ):
            yield


@contextmanager
def session_as_it_was() -> Iterator[None]:
    """Put back what is replaced in the libraries, or set in them, and close what was drawn."""
    torch = _torch()
    options = np.get_printoptions()
    settings = [torch.get_default_dtype(), torch.get_num_threads()] if torch else []
    names = [(place, dict(vars(place))) for place in _places(torch)]
    figures = _figures()
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        for place, kept in names:
            _put_back(place, kept)
        np.set_printoptions(**options)
        if torch and settings != [torch.get_default_dtype(), torch.get_num_threads()]:
            torch.set_default_dtype(settings[0])
            torch.set_num_threads(settings[1])
        for number in _figures() - figures:
            sys.modules["matplotlib.pyplot"].close(number)


def _figures() -> set[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return set(pyplot.get_fignums()) if pyplot is not None else set()


def _places(torch: Any) -> list[Any]:
    """Return the modules, and the class of tensors, in which an answer might replace something."""
    checks = [
        module for name, module in sys.modules.items() if name.startswith("d2lmini.exercises.")
    ]
    places = [np, np.linalg, np.random, math, random, time, *checks]
    return [*places, *([torch, torch.nn, torch.nn.functional, torch.Tensor] if torch else [])]


def _put_back(place: Any, kept: dict[str, Any]) -> None:
    """Let everything have its name again, but for what large libraries note for themselves."""
    now = dict(vars(place))
    with suppress(Exception):  # different things may not be comparable
        if now == kept:  # fast, as what is the same thing is equal
            return
    private = isinstance(place, ModuleType) and place.__name__.startswith("torch")
    for name in sorted(now.keys() | kept.keys()):
        if private and name.startswith("_"):
            continue
        if name not in kept:
            if not isinstance(now[name], ModuleType):  # a part that was loaded may stay
                delattr(place, name)
        elif now.get(name, _MISSING) is not kept[name]:
            setattr(place, name, kept[name])


_MISSING = object()


def random_states() -> dict[str, bytes]:
    """Return the state of every global random generator that is loaded, as bytes."""
    states = {
        "random": pickle.dumps(random.getstate()),
        "np.random": pickle.dumps(np.random.get_state(legacy=False)),  # noqa: NPY002
    }
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_rng_state"):
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


def restore_random_states(states: dict[str, bytes]) -> None:
    """Put the states back."""
    random.setstate(pickle.loads(states["random"]))
    np.random.set_state(pickle.loads(states["np.random"]))  # noqa: NPY002
    torch = sys.modules.get("torch")
    if torch is not None and "torch" in states:
        torch.set_rng_state(torch.tensor(list(states["torch"]), dtype=torch.uint8))
