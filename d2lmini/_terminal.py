"""Text for a terminal: one that knows few letters, and one that obeys control characters."""

import errno
import os
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["careful_output", "command", "escaped", "for_terminal", "record"]

PLAINER: dict[str, str | int | None] = {"✓": "+", "✗": "x", "○": "o", "→": "->", "…": "..."}
PLAINER |= {"−": "-", "·": "*", "√": "sqrt "}
PLAINER |= {"α": "a", "ᵢ": "_i", "ₖ": "_k", "␣": "_", "×": "x", "“": '"', "”": '"', "÷": "/"}
PLAINER |= {"∞": "inf", "Σ": "sum "}


def for_terminal(text: str) -> str:
    """Return the text as the standard output can write it; most are written as they are."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        text = text.translate(str.maketrans(PLAINER))
        text = text.encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        pass
    return text


def record(values: Any) -> str:
    """Write a named tuple as Python does, in letters that the standard output can write."""
    pairs = ", ".join(f"{name}={value!r}" for name, value in values._asdict().items())
    return for_terminal(f"{type(values).__name__}({pairs})")


def careful_output() -> None:
    """Let the standard output write a letter that it does not know as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def escaped(text: str) -> str:
    """Write control characters, and others that cannot be seen, as escapes, on one line."""
    one_line = " ".join(text.split())
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in one_line
    )


def command(main: Callable[[], int]) -> int:
    """Run a command of the shell and return its exit status.

    Where nobody reads on (``| head``) it ends quietly, where nothing more can be written it says
    why, and Ctrl-C is one line; the status of a signal is what a shell gives a program that it
    ended.
    """
    try:
        status = main()
        if sys.stdout:  # None where it was closed before (`>&-`)
            sys.stdout.flush()
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        nowhere = os.open(os.devnull, os.O_WRONLY)  # Python would complain once more when it ends
        os.dup2(nowhere, sys.stdout.fileno())
        if error.errno == errno.EPIPE:
            return 141
        print(f"cannot write: {error.strerror}", file=sys.stderr)
        return 74  # an error of input or output, in sysexits.h
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    return status
