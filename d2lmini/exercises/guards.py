"""Run a learner's function so that it can do no harm to the session: time, output, settings."""

import builtins
import decimal
import gc
import io
import locale
import math
import os
import pickle
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from types import FrameType, ModuleType
from typing import Any

import numpy as np

__all__ = [
    "FirstOutput",
    "TimeUpError",
    "random_states",
    "restore_random_states",
    "session_as_it_was",
    "standard_settings",
    "time_limit",
    "without_modes",
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


@contextmanager
def without_modes() -> Iterator[None]:
    """Take away what PyTorch puts between a call and its numbers; put that back, and that alone.

    Such are a default device and the modes of `torch.overrides` and `torch.utils._python_dispatch`,
    as that of tensors without numbers: neither the reference nor the answer could run under them.
    """
    torch = _torch()
    functions, calls = _modes_taken_away(torch) if torch else ([], [])
    try:
        yield
    finally:
        if torch:
            _modes_taken_away(torch)  # what an answer has left there
            for mode in reversed(functions):
                torch._C._push_on_torch_function_stack(mode)
            for mode in reversed(calls):
                torch._C._push_on_torch_dispatch_stack(mode)


def _modes_taken_away(torch: Any) -> tuple[list[Any], list[Any]]:
    inner = torch._C
    return (
        [inner._pop_torch_function_stack() for _ in range(inner._len_torch_function_stack())],
        [inner._pop_torch_dispatch_stack(None) for _ in range(inner._len_torch_dispatch_stack())],
    )


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


Setting = tuple[Callable[[], Any], Callable[[Any], Any]]  # how it is read, how it is put back


@contextmanager
def standard_settings() -> Iterator[None]:
    """Check under the same settings in every session, and leave the session as it was.

    What the reader has set, such as a default dtype or device, does not reach the reference or the
    answer.
    """
    torch = _torch()
    with session_as_it_was(), _standard_torch(torch) if torch else nullcontext():
        yield


def _torch() -> Any:
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "get_default_dtype") else None


@contextmanager
def session_as_it_was() -> Iterator[None]:
    """Put back what is set in the block, or replaced in the libraries."""
    torch = _torch()
    settings = _settings() + (_settings_of_torch(torch) if torch else [])
    before = [get() for get, _ in settings]
    names = [(place, dict(vars(place))) for place in _places(torch)]
    try:
        yield
    finally:
        for place, kept in names:
            _put_back(place, kept)
        for (get, put), value in zip(settings, before, strict=True):
            if get() != value:
                put(value)


def _places(torch: Any) -> list[Any]:
    """Return the modules, and the class of tensors, in which an answer might replace something."""
    places = [builtins, np, np.linalg, np.random, math, random, time]
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


def _settings() -> list[Setting]:
    settings: list[Setting] = [
        (_folder, lambda folder: os.chdir(folder) if folder else None),
        (lambda: dict(os.environ), _set_environment),
        *((partial(list, words), partial(_refill, words)) for words in _lists()),
        (lambda: dict(sys.modules), _set_modules),
        (_umask, os.umask),
        (_arithmetic, _set_arithmetic),
        (lambda: [getattr(sys, name) for name in HOOKS], _set_hooks),
        (sys.getrecursionlimit, sys.setrecursionlimit),
        (sys.getswitchinterval, sys.setswitchinterval),
        (sys.gettrace, sys.settrace),
        (sys.getprofile, sys.setprofile),
        (gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
        (np.get_printoptions, lambda options: np.set_printoptions(**options)),
        (np.geterr, lambda errors: np.seterr(**errors)),
        (partial(locale.setlocale, locale.LC_ALL), partial(locale.setlocale, locale.LC_ALL)),
    ]
    if threading.current_thread() is threading.main_thread():
        kinds = [kind for kind in ("SIGINT", "SIGTERM") if hasattr(signal, kind)]
        for kind in map(partial(getattr, signal), kinds):
            settings.append((partial(signal.getsignal, kind), partial(signal.signal, kind)))
    return settings


HOOKS = ("stdin", "excepthook", "displayhook")


def _set_hooks(hooks: list[Any]) -> None:
    for name, hook in zip(HOOKS, hooks, strict=True):
        setattr(sys, name, hook)


def _lists() -> list[list[Any]]:
    return [sys.path, sys.argv, sys.meta_path, sys.path_hooks]


def _refill(words: list[Any], before: list[Any]) -> None:
    words[:] = before


def _set_modules(modules: dict[str, ModuleType]) -> None:
    sys.modules.update(modules)  # what was loaded meanwhile may stay


def _umask() -> int:
    umask = os.umask(0)  # there is no other way to read it
    os.umask(umask)
    return umask


ARITHMETIC = ("prec", "rounding", "Emin", "Emax", "capitals", "clamp")


def _arithmetic() -> list[Any]:
    """Return the settings of `decimal`; its flags and traps are tables."""
    now = decimal.getcontext()
    return [*(getattr(now, name) for name in ARITHMETIC), dict(now.flags), dict(now.traps)]


def _set_arithmetic(settings: list[Any]) -> None:
    now = decimal.getcontext()
    for name, value in zip((*ARITHMETIC, "flags", "traps"), settings, strict=True):
        setattr(now, name, value)


def _set_environment(variables: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(variables)


def _folder() -> str:
    with suppress(OSError):  # it may have been deleted
        return os.getcwd()
    return ""


def _settings_of_torch(torch: Any) -> list[Setting]:
    printing = torch._tensor_str.PRINT_OPTS
    return [
        (torch.get_default_dtype, torch.set_default_dtype),
        (lambda: vars(torch._GLOBAL_DEVICE_CONTEXT).copy(), partial(_set_device, torch)),
        (lambda: dict(vars(printing)), lambda options: vars(printing).update(options)),
        (torch.get_num_threads, torch.set_num_threads),
        (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
        (torch.get_float32_matmul_precision, torch.set_float32_matmul_precision),
        (torch.is_warn_always_enabled, torch.set_warn_always),
        (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
        # The processor's own switch: whether the smallest numbers are taken for 0.
        (lambda: sys.float_info.min / 2 == 0, torch.set_flush_denormal),
    ]


def _set_device(torch: Any, known: dict[str, Any]) -> None:
    """Let PyTorch know again which mode is the default device."""
    torch._GLOBAL_DEVICE_CONTEXT.device_context = known.get("device_context")


@contextmanager
def _standard_torch(torch: Any) -> Iterator[None]:
    torch.set_default_dtype(torch.float32)
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
