"""A causal language model as a black box: ids in, scores out, and what must hold of them."""

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np

from d2lmini.testing.invariants import Array, Trial
from d2lmini.testing.museum import Exhibit
from d2lmini.testing.report import Finding, Report
from d2lmini.testing.subject import BadAnswer, in_words, stays

__all__ = ["check_language_model"]

Scores: TypeAlias = Callable[[Array], Array]
Step: TypeAlias = Callable[..., tuple[Array, Any]]
LENGTH = 9  # tokens of a text
SHOWN = 12  # scores in a row


SLIPS = {
    "dice": Exhibit(
        "dropout that never stops",
        "the same call gives something else each time; a model of PyTorch stops with .eval()",
        "exhibit 9",
    ),
    "next": Exhibit(
        "sees the next token",
        "a token reads what comes after it, and the first reads little of it",
        "the first mistake of the chapter",
    ),
    "all": Exhibit("never causal", "the first token already reads the last one"),
    "prompt": Exhibit(
        "the prompt is read without a mask",
        "tokens that are read together, with a cache, read each other",
        "in the second wing",
    ),
    "corner": Exhibit(
        "wrong corner",
        "the causal triangle begins at the top left, so a token written alone sees the first key",
        "exhibit 5",
    ),
    "cache": Exhibit(
        "another model with a cache",
        "what is read with a cache has other positions, or sees other tokens",
    ),
    "ignored": Exhibit("the mask is ignored", "padding is read"),
    "places": Exhibit(
        "padding on the left moves everything",
        "padding is not read, but it is counted as positions",
        "in the second wing",
    ),
}


def a_later_token_changes_nothing(ids: Array, read: Scores) -> Iterator[Trial]:
    """What comes later cannot be seen: change it, and the earlier scores stay."""
    before = read(ids)
    for t in range(1, ids.shape[1]):
        changed = ids.copy()
        changed[:, t:] = ids[:, t:][:, ::-1] if t + 1 < ids.shape[1] else ids[:, :1]
        case = f"changed from token {t + 1} on"
        yield Trial(read(changed)[:, :t], before[:, :t], case, {"ids": ids, "changed": changed})


def each_sequence_stands_alone(ids: Array, read: Scores) -> Iterator[Trial]:
    """A text gets the same scores in a batch and by itself."""
    together = read(ids)
    for b in range(len(ids)):
        one = slice(b, b + 1)
        yield Trial(together[one], read(ids[one]), f"text {b + 1} alone", {"ids": ids})


def the_same_call_gives_the_same(ids: Array, read: Scores) -> Iterator[Trial]:
    """A call gives the same again, after another call."""
    first = read(ids)
    read(ids[:, ::-1].copy())
    yield Trial(read(ids), first, "called again", {"ids": ids})


def one_chunk_or_two_the_same(ids: Array, read: Scores, step: Step) -> Iterator[Trial]:
    """With its cache, a model gives the same for a text in one, two or many chunks."""
    whole = read(ids)
    for cuts in ([4], [1], [2, 5], [*range(1, ids.shape[1])]):
        cache, found = None, []
        for chunk in np.split(ids, cuts, axis=1):
            scores, cache = _read_on(step, chunk, cache)
            found.append(scores)
        case = f"chunks that end after tokens {', '.join(map(str, [*cuts, ids.shape[1]]))}"
        yield Trial(np.concatenate(found, axis=1), whole, case, {"ids": ids})


def padding_left_or_right_the_same(ids: Array, read: Scores, padded: Step) -> Iterator[Trial]:
    """Padding is not read: it may come before a text or after it."""
    whole, pad = read(ids), np.full_like(ids[:, :3], ids[0, 0])
    real, none = np.ones(ids.shape, dtype=bool), np.zeros(pad.shape, dtype=bool)
    for side in "right", "left":
        order = slice(None, None, 1 if side == "right" else -1)
        longer = np.concatenate([ids, pad][order], axis=1)
        mask = np.concatenate([real, none][order], axis=1)
        scores = _array(stays(padded)(longer, mask), longer)
        kept = scores[:, : ids.shape[1]] if side == "right" else scores[:, 3:]
        yield Trial(kept, whole, f"padded on the {side}", {"ids": longer, "mask": mask})


def check_language_model(
    model: Callable[..., Any],
    *,
    vocabulary: int,
    step: Step | None = None,
    padded: Step | None = None,
    tolerance: float = 1e-4,
) -> Report:
    """Check that a causal language model does not look ahead, from its inputs and outputs alone.

    Parameters
    ----------
    model : callable
        Takes ids, an integer array (batch, n), and returns scores (batch, n, vocabulary): an array,
        a tensor, or something whose ``logits`` they are.
    vocabulary : int
        How many ids there are.
    step : callable, optional
        ``step(ids, cache)`` reads further tokens after those in `cache` (None at first), and
        returns scores and the cache.
    padded : callable, optional
        ``padded(ids, mask)`` reads texts with padding; `mask` (batch, n) is True for real tokens.
    tolerance : float
        How far scores may differ, as a share of the largest.

    Returns
    -------
    Report
        As that of `check_attention`.

    Raises
    ------
    ValueError
        If there are fewer than two ids, or the tolerance is not positive.
    TypeError
        For what cannot be called, and for a class.

    Examples
    --------
    >>> import numpy as np
    >>> def counts(ids):  # scores: how often each id has occurred so far
    ...     return np.eye(5)[ids].cumsum(axis=1)
    >>> bool(check_language_model(counts, vocabulary=5))
    False
    >>> def looks_ahead(ids):
    ...     return np.eye(5)[ids].sum(axis=1, keepdims=True) + counts(ids)
    >>> check_language_model(looks_ahead, vocabulary=5).names
    ['a_later_token_changes_nothing']
    """
    for what, given in (("model", model), ("step", step), ("padded", padded)):
        if (given is not None or what == "model") and not callable(given):
            raise TypeError(f"{what} must be a function, got {type(given).__name__}")
    if isinstance(model, type):
        raise TypeError(f"model must be a function, got the class {model.__name__}")
    if not isinstance(vocabulary, int | np.integer):
        raise TypeError(f"vocabulary must be a whole number, got {vocabulary!r}")
    if not tolerance > 0:
        raise ValueError(f"tolerance must be positive, got {tolerance}")
    if vocabulary < 2:
        raise ValueError(f"vocabulary must be at least 2, got {vocabulary}")
    ids = np.random.default_rng(0).integers(vocabulary, size=(3, LENGTH))
    ids[:, 0], ids[:, -1] = 0, 1  # so that a change is one

    def read(ids: Array) -> Array:
        return _array(stays(model)(ids), ids)

    checks: dict[str, tuple[Any, tuple[Any, ...]]] = {
        check.__name__: (check, ())
        for check in (
            a_later_token_changes_nothing,
            each_sequence_stands_alone,
            the_same_call_gives_the_same,
        )
    }
    checks["one_chunk_or_two_the_same"] = one_chunk_or_two_the_same, (step,)
    checks["padding_left_or_right_the_same"] = padding_left_or_right_the_same, (padded,)
    findings, held, idle = [], [], []
    for name, (check, more) in checks.items():
        if more == (None,):
            idle.append(name)
        elif finding := _first(check, (ids, read, *more), tolerance):
            findings.append(finding)
        else:
            held.append(name)
    title = getattr(model, "__name__", type(model).__name__)
    found = {"ids": f"({ids.shape[0]}, {LENGTH}) of {vocabulary}"}
    exhibit = None
    with contextlib.suppress(Exception):  # it is a guess at why, of something that is broken
        exhibit = _named(
            [one.name for one in findings if not isinstance(one.got, str)], ids, read, step, padded
        )
    return Report(title, tuple(findings), tuple(held), tuple(idle), found, exhibit)


def _named(
    broken: list[str], ids: Array, read: Scores, step: Step | None, padded: Step | None
) -> Exhibit | None:
    """Tell the mistakes of the museum apart, by some further questions."""
    if "the_same_call_gives_the_same" in broken:
        return SLIPS["dice"]
    if "a_later_token_changes_nothing" in broken:
        far = not _alike(read(_changed(ids, [-1]))[:, 0], read(ids)[:, 0])
        return SLIPS["all" if far else "next"]
    if "one_chunk_or_two_the_same" in broken and step:
        first, rest, last = ids[:, :5], ids[:, 5:], ids[:, -1:]
        for before in [], [first]:  # read as a prompt, and after one
            one, two = (_chunked(step, *before, x)[:, :-1] for x in (rest, _changed(rest, [-1])))
            if not _alike(one, two):
                return SLIPS["prompt"]
        alone = _chunked(step, first, last)
        of_first, of_others = (
            not _alike(_chunked(step, _changed(first, where), last), alone)
            for where in ([0], [1, 2, 3, 4])
        )
        return SLIPS["corner" if of_first and not of_others else "cache"]
    if "padding_left_or_right_the_same" in broken and padded:
        longer = np.concatenate([ids[:, :3], ids], axis=1)
        mask = np.arange(longer.shape[1]) >= 3 + 0 * longer
        one, two = (_array(padded(x, mask), x) for x in (longer, _changed(longer, [0, 1, 2])))
        return SLIPS["places" if _alike(one[:, 3:], two[:, 3:]) else "ignored"]
    return None


def _changed(ids: Array, where: list[int]) -> Array:
    """Return other ids in these places."""
    other = ids.copy()
    other[:, where] = 1 - np.minimum(ids[:, where], 1)
    return other


def _chunked(step: Step, *chunks: Array) -> Array:
    """Return the scores of the last of these chunks."""
    cache = None
    for chunk in chunks:
        scores, cache = _read_on(step, chunk, cache)
    return scores


def _read_on(step: Step, ids: Array, cache: Any) -> tuple[Array, Any]:
    """Read a chunk, and see that scores and a cache come back."""
    found = stays(step)(ids, cache)
    if not isinstance(found, tuple) or len(found) != 2:
        raise BadAnswer(f"step must return scores and the cache, got {type(found).__name__}")
    return _array(found[0], ids), found[1]


def _alike(one: Array, other: Array) -> bool:
    return np.allclose(one, other, rtol=1e-4, atol=1e-4 * abs(other).max())


def _first(check: Any, arguments: tuple[Any, ...], tolerance: float) -> Finding | None:
    says = (check.__doc__ or "").strip()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for trial in check(*arguments):
                size = max(1.0, float(np.abs(trial.expected).max(initial=0)))
                got, expected = trial.got, trial.expected
                if got.shape != expected.shape:
                    return Finding(check.__name__, says, trial.case, trial.inputs, expected, got)
                same = np.isclose(got, expected, rtol=tolerance, atol=tolerance * size).all(axis=-1)
                if not same.all():
                    b, t = np.argwhere(~same)[0]
                    case = f"{trial.case}: scores after token {t + 1}"
                    inputs = {name: x[b] for name, x in trial.inputs.items()}
                    which = slice(None)
                    if expected.shape[-1] > SHOWN:  # the one that differs most is enough
                        most = int(np.nanargmax(np.abs(got[b, t] - expected[b, t])))
                        case, which = f"{case}, of id {most}", slice(most, most + 1)
                    expected, got = expected[b, t, which], got[b, t, which]
                    return Finding(check.__name__, says, case, inputs, expected, got)
    except Exception as error:
        inputs = {"ids": arguments[0]}
        return Finding(check.__name__, says, "called", inputs, "scores", in_words(error))
    return None


def _array(scores: Any, ids: Array) -> Array:
    """Return what a model gave as an array; its ``logits``, if it has such."""
    scores = getattr(scores, "logits", scores)
    wanted = f"expected scores ({len(ids)}, {ids.shape[1]}, vocabulary)"
    if scores is None or isinstance(scores, tuple | dict):
        raise BadAnswer(f"{wanted}, got {type(scores).__name__}")
    with contextlib.suppress(AttributeError):
        scores = scores.detach().float().cpu().numpy()
    array = np.asarray(scores)
    if array.dtype.kind not in "fiu" or array.shape[:-1] != ids.shape:
        what = f"shape {array.shape}" if array.dtype.kind in "fiu" else f"{array.dtype} numbers"
        raise BadAnswer(f"{wanted}, got {what}")
    return array
