"""Run a learner's function so that it can do no harm to the session: time, output, settings."""

import io
import os
import pickle
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import numpy as np

__all__ = [
    "FirstOutput",
    "TimeUpError",
    "random_states",
    "restore_random_states",
    "standard_settings",
    "time_limit",
]

KEPT = 2000  # characters of what a function prints


class TimeUpError(BaseException):
    """The time is up. Not an Exception, so that ``except Exception`` does not catch it."""


def time_limit(deadline: float) -> Any:
    """Raise TimeUpError in the block when `time.monotonic` passes `deadline`.

    On the main thread of Unix an alarm does it. Elsewhere (Windows, another thread, the browser)
    each step of Python looks at the clock. Neither can interrupt a single long call into compiled
    code, nor a loop that catches every BaseException; where a debugger or a coverage tool already
    traces and there is no alarm, there is no limit.
    """
    if _has_alarm():
        return _alarm(deadline)
    return _clock_at_every_step(deadline) if sys.gettrace() is None else _no_limit()


def _has_alarm() -> bool:
    return (
        hasattr(signal, "setitimer")
        and sys.platform != "emscripten"
        and threading.current_thread() is threading.main_thread()
    )


@contextmanager
def _alarm(deadline: float) -> Iterator[None]:
    armed = True

    def ring(number: int, frame: FrameType | None) -> None:
        if armed:
            raise TimeUpError

    began = time.monotonic()
    before = signal.signal(signal.SIGALRM, ring)
    outer = signal.getitimer(signal.ITIMER_REAL)
    try:
        # It rings again and again: a bare ``except`` may have swallowed the first. Set within the
        # try: where the time is up already, it rings at once, and must be taken off all the same.
        signal.setitimer(signal.ITIMER_REAL, max(deadline - began, 1e-6), 0.05)
        yield
    finally:
        armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if outer[0] > 0:  # someone else's alarm goes on
            left = outer[0] - (time.monotonic() - began)
            signal.setitimer(signal.ITIMER_REAL, max(left, 1e-6), outer[1])


@contextmanager
def _clock_at_every_step(deadline: float) -> Iterator[None]:
    def look(frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        frame.f_trace_opcodes = True  # a loop on one line may make no event of its line
        if time.monotonic() > deadline:
            raise TimeUpError
        return look

    sys.settrace(look)
    try:
        yield
    finally:
        sys.settrace(None)


@contextmanager
def _no_limit() -> Iterator[None]:
    yield


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

    What the reader has set, such as a default dtype or device, does not reach the reference or the
    answer. More than these settings is not put back: an answer that replaces a function of NumPy
    has replaced it, as it would have in any cell.
    """
    before = [get() for get, _ in _settings()]
    try:
        with np.errstate(all="ignore"), _standard_torch(sys.modules.get("torch")):
            yield
    finally:
        for (get, put), value in zip(_settings(), before, strict=False):
            if get() != value:
                put(value)


Setting = tuple[Callable[[], Any], Callable[[Any], Any]]  # how it is read, how it is put back


def _settings() -> list[Setting]:
    settings: list[Setting] = [
        (_folder, lambda folder: os.chdir(folder) if folder else None),
        (sys.getrecursionlimit, sys.setrecursionlimit),
        (np.get_printoptions, lambda options: np.set_printoptions(**options)),
    ]
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch, "get_default_dtype"):
        settings += [
            (torch.get_default_dtype, torch.set_default_dtype),
            (torch.get_default_device, torch.set_default_device),
        ]
    return settings


def _folder() -> str:
    with suppress(OSError):  # it may have been deleted
        return os.getcwd()
    return ""


@contextmanager
def _standard_torch(torch: Any) -> Iterator[None]:
    if not hasattr(torch, "get_default_dtype"):
        yield
        return
    torch.set_default_dtype(torch.float32)
    torch.set_default_device(None)
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast("cpu", enabled=False),
    ):
        yield


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
