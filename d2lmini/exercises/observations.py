"""What can be said of a wrong answer that no known mistake explains, and holds on every input."""

from collections.abc import Callable, Sequence

import numpy as np

from d2lmini.exercises.cards import LARGEST

__all__ = ["observed"]

Tables = Sequence[np.ndarray]
Close = Callable[[np.ndarray, np.ndarray], bool]


def observed(got: Tables, right: Tables, close: Close) -> str:
    """Say how the answers to all inputs are related to the right ones; empty if no way is plain.

    Parameters
    ----------
    got, right : sequences of arrays
        One of each for every input.
    close : callable
        Tells whether two arrays agree.
    """
    pairs = [(np.asarray(a), np.asarray(b)) for a, b in zip(got, right, strict=True)]
    if any(x.size > LARGEST or x.dtype.kind not in "fiub" for pair in pairs for x in pair):
        return ""
    if not all(np.isfinite(x).all() for pair in pairs for x in pair):
        return ""
    if all(close(a, b) for a, b in pairs):
        return ""
    for says, changed in CHANGES:
        if all(_changed(changed, a, b, close) for a, b in pairs):
            return says
    if all(a.shape == b.shape for a, b in pairs):
        return _same_amount(pairs, close) or _some_rows(pairs, close)
    return ""


def _changed(
    change: Callable[[np.ndarray], np.ndarray], got: np.ndarray, right: np.ndarray, close: Close
) -> bool:
    try:
        return close(got, change(right))
    except (TypeError, ValueError, IndexError):  # such as a number, which has no axes
        return False


CHANGES: list[tuple[str, Callable[[np.ndarray], np.ndarray]]] = [
    ("Every True should be False, and every False True.", lambda x: ~x),
    ("Every sign is turned.", lambda x: -x),
    ("Your result is transposed: its last two axes are exchanged.", lambda x: x.swapaxes(-1, -2)),
    ("Your result is transposed: its first two axes are exchanged.", lambda x: x.swapaxes(0, 1)),
    ("Your result is in the reverse order.", lambda x: x[::-1]),
    ("Each row of your result is in the reverse order.", lambda x: x[..., ::-1]),
    ("Your result is the square of the right one.", lambda x: x.astype(float) ** 2),
    ("Your result is the root of the right one.", lambda x: np.sqrt(x)),
    ("Your result is the right one's absolute value: signs are lost.", np.abs),
    ("Your result is 1 minus the right one.", lambda x: 1.0 - x),
    ("Your result is 1 divided by the right one.", lambda x: 1.0 / x),
    ("Your result is the logarithm of the right one.", np.log),
    ("Your result is exp of the right one.", np.exp),
    ("Your result has an axis of length 1 that should not be there.", lambda x: x[None]),
    ("Your result has an axis of length 1 that should not be there.", lambda x: x[..., None]),
    ("Only the first row was returned.", lambda x: x[0]),
    ("Only the last row was returned.", lambda x: x[-1]),
]


def _same_amount(pairs: list[tuple[np.ndarray, np.ndarray]], close: Close) -> str:
    """Say by what the right numbers were multiplied, or what was added to them."""
    if any(x.dtype.kind == "b" for pair in pairs for x in pair):
        return ""
    a, b = (np.concatenate([pair[i].ravel().astype(float) for pair in pairs]) for i in (0, 1))
    if a.size < 3 or len(pairs) < 2:
        return ""
    largest = np.abs(b).argmax()
    factor = a[largest] / b[largest] if b[largest] else 1.0
    if factor not in (0.0, 1.0) and close(a, factor * b):
        return f"Each number is {factor:.4g} times the right one, whatever the input."
    if close(a - a[0] + b[0], b):
        more = a[0] - b[0]
        return f"Each number is too {'large' if more > 0 else 'small'} by {abs(more):.4g}."
    return ""


def _some_rows(pairs: list[tuple[np.ndarray, np.ndarray]], close: Close) -> str:
    """Say which rows are right, if it is all but the first, all but the last, or these alone."""
    long = [(a, b) for a, b in pairs if b.ndim and len(b) > 1 and not close(a, b)]
    if len(long) < 2:
        return ""
    for words, part in {
        "All but the first row is right": slice(1, None),
        "All but the last row is right": slice(0, -1),
        "Only the first row is right": slice(0, 1),
        "Only the last row is right": slice(-1, None),
    }.items():
        if all(close(a[part], b[part]) for a, b in long):
            return f"{words}, wherever there are several."
    return ""
