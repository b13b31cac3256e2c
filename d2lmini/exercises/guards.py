"""Run a learner's function so that a check is fair: time, output, random numbers, settings."""

import dis
import io
import pickle
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType
from typing import Any

import numpy as np

__all__ = [
    "Deadline",
    "FirstOutput",
    "TimeUpError",
    "random_states",
    "restore_random_states",
    "standard_settings",
    "time_limit",
]

KEPT = 2000  # characters of what a function prints

# In a browser a thread has no clock of its own.
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
        if outer[0] > 0:  # someone else's alarm goes on, as that of a grader's test runner
            left = outer[0] - (_clock() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6), outer[1])


@contextmanager
def _clock_at_every_step(deadline: Deadline) -> Iterator[None]:
    def look(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        frame.f_trace_opcodes = True  # a loop on one line may make no event of its line
        if (why := deadline.passed()) and lets_in(frame):
            raise TimeUpError(why)
        return look

    def lets_in(frame: FrameType) -> bool:
        """Tell whether Python itself lets an interrupt in here: a function begins or a loop turns.

        Raised as an ``except`` begins or ends, it would leave that block's error for the one being
        handled, and each later error would be said to come from it.
        """
        step, how = frame.f_code.co_code[frame.f_lasti :][:2]
        return "JUMP_BACKWARD" in dis.opname[step] or (dis.opname[step], how) == ("RESUME", 0)

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


@contextmanager
def standard_settings() -> Iterator[None]:
    """Check under the same settings in every session, and leave the session as it was.

    What the reader has set, such as PyTorch's default dtype, does not reach the reference or the
    answer. Figures that an answer drew are closed. Whatever else it changes it has changed, as it
    would have in any cell.
    """
    figures = _figures()
    try:
        with np.errstate(all="ignore"), _standard_torch(sys.modules.get("torch")):
            yield
    finally:
        for number in _figures() - figures:
            sys.modules["matplotlib.pyplot"].close(number)


def _figures() -> set[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return set(pyplot.get_fignums()) if pyplot is not None else set()


@contextmanager
def _standard_torch(torch: Any) -> Iterator[None]:
    if not hasattr(torch, "get_default_dtype"):
        yield
        return
    dtype, threads = torch.get_default_dtype(), torch.get_num_threads()
    device = torch.get_default_device()
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    torch.set_num_threads(1)  # enough, and on a busy machine much quicker than two
    try:
        with torch.enable_grad():
            yield
    finally:
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:  # else it would cost each call of PyTorch a little
            torch.set_default_device(device)
        torch.set_num_threads(threads)


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
