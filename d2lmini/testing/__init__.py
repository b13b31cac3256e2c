"""Is this attention right? What must hold for every attention, run on your own (chapter 9)."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from d2lmini.testing.invariants import (
    FURTHER,
    INVARIANTS,
    SMALLER,
    Invariant,
    Score,
    Sizes,
    Trial,
    by_loops,
    scaled_dot_product,
)
from d2lmini.testing.language import check_language_model
from d2lmini.testing.museum import EXHIBITS, Exhibit, named
from d2lmini.testing.report import Finding, Report
from d2lmini.testing.subject import LAYOUTS, MEANINGS, BadAnswer, Subject, in_words

__all__ = [
    "EXHIBITS",
    "FURTHER",
    "INVARIANTS",
    "Exhibit",
    "Finding",
    "Report",
    "by_loops",
    "check_attention",
    "check_language_model",
]

SLOW = 1.0  # second, where 0.05 is usual
TOLERANCE = {"float16": 0.06, "float32": 1e-4, "float64": 1e-9}


def check_attention(
    attend: Callable[..., Any],
    *,
    arrays: str | None = None,
    layout: str | None = None,
    mask: str | None = None,
    corner: str = "bottom-right",
    no_keys: str = "zero",
    shared_heads: str = "neighbours",
    always_causal: bool | None = None,
    names: Mapping[str, str | None] | None = None,
    width: int | None = None,
    heads: int | None = None,
    score: Score = scaled_dot_product,
) -> Report:
    """Run the invariants of chapter 9 on an attention function, and say which it breaks.

    A function that can be asked for its weights, for a window or for a number of parts is asked
    for each of them too: neither may change what the output should be.

    Parameters
    ----------
    attend : callable
        Called with query, key and value, and with a mask, a causal rule and a number of heads, if
        it has arguments for them. It returns its output, or output and weights. It has no
        parameters of its own, but ``nn.MultiheadAttention`` may be given as it is: its projections
        are set to the identity, in a copy.
        A mask comes as (n, m), as (batch, 1, m) and as (batch, n, m), with one more axis for heads
        if the layout has them; in its full shape, if the function takes no other.
    arrays : "numpy", "torch" or "jax", optional
        What it takes. Found out unless given, as all that follows.
    layout : str, optional
        "batch n d", "batch heads n d", "batch n heads d" or "n d".
    mask : "attend", "hidden" or "additive", optional
        What a mask means: True = may attend (the default), True = hidden, or numbers that are
        added to the scores.
    corner : "bottom-right" or "top-left"
        Where the causal triangle begins if there are more keys than queries.
    no_keys : "zero" or "any"
        What a query gets that may attend to no key; "any" leaves it untried.
    shared_heads : "neighbours" or "turns"
        Which heads of queries share one of keys, if there are fewer of those: 0 and 1 the first, as
        in Llama, or in turns.
    always_causal : bool, optional
    names : mapping, optional
        What its arguments are called, if they have unusual names, or None if there is none:
        ``{"mask": "bias", "heads": None}``. Its keys are "mask", "causal", "heads", "weights",
        "window" and "parts".
    width, heads : int, optional
        Of a layer that takes one width only, and of the heads that it makes of it.
    score : callable
        Compares two vectors; the scaled dot product unless given.

    Returns
    -------
    Report
        False if every invariant holds, else a sequence of what is broken: each with its name, the
        smallest input that shows it, what was expected and what came back.

    Raises
    ------
    ValueError
        For a convention or a name that is not known, and a size below 1.
    TypeError
        For what cannot be called, and for a class.

    Examples
    --------
    >>> from d2lmini import attention
    >>> report = check_attention(attention)
    >>> bool(report), report.held[:2]
    (False, ('it_is_the_definition', 'weights_sum_to_one'))
    >>> def forgets_the_scale(query, key, value):
    ...     return attention(query * query.shape[-1] ** 0.5, key, value)
    >>> report = check_attention(forgets_the_scale)
    >>> report.names, report.exhibit.name
    (['it_is_the_definition'], 'no scale')
    """
    if not callable(attend):
        raise TypeError(f"attend must be a function, got {type(attend).__name__}")
    if isinstance(attend, type):
        raise TypeError(
            f"attend must be a function, got the class {attend.__name__}: make one of it"
        )
    _known("arrays", arrays, (None, "numpy", "torch", "jax"))
    _known("layout", layout, (None, *LAYOUTS))
    _known("mask", mask, (None, *MEANINGS))
    _known("corner", corner, ("bottom-right", "top-left"))
    _known("no_keys", no_keys, ("zero", "any"))
    _known("shared_heads", shared_heads, ("neighbours", "turns"))
    _known("always_causal", always_causal, (None, True, False))
    for what, size in (("width", width), ("heads", heads)):
        if size is not None and (not isinstance(size, int) or size < 1):
            raise ValueError(f"{what} must be a whole number from 1 on; got {size!r}")
    if names is not None and not isinstance(names, Mapping):
        raise TypeError(f'names must be a mapping, as {{"mask": "bias"}}; got {names!r}')
    title, began = _title(attend), time.perf_counter()
    try:
        f = Subject(
            attend,
            arrays=arrays,
            layout=layout,
            mask=mask,
            corner=corner,
            no_keys=no_keys,
            shared_heads=shared_heads,
            always_causal=always_causal,
            names=names,
            width=width,
            heads=heads,
            score=score,
        )
    except BadAnswer as error:
        says = "It can be called with query, key and value."
        advice = (
            "If it wants other arrays, say so: arrays=, layout=, names=, width=, heads=. If it "
            "wants more of them, give a function that adds them: lambda query, key, value: …"
        )
        uncalled = Finding("it_can_be_called", says, "no mask", {}, "an output", in_words(error))
        return Report(title, (uncalled,), advice=advice)
    broken: dict[str, Finding] = {}
    held: list[str] = []
    idle: list[str] = []
    with f.one_thread():
        for invariant in (*INVARIANTS, *(FURTHER[kind] for kind in FURTHER if f.names[kind])):
            finding, tried = _smallest(f, invariant)
            if finding:
                broken[finding.name] = finding
            else:
                (held if tried else idle).append(invariant.__name__)
        exhibit = named(f, broken) if broken and score is scaled_dot_product else None
        advice = _advice(f, broken)
    found = f.conventions()
    if (seconds := time.perf_counter() - began) > SLOW:
        found["time"] = f"{seconds:.1f} s, which is slow for inputs as small as these"
    return Report(title, tuple(broken.values()), tuple(held), tuple(idle), found, exhibit, advice)


def _known(name: str, value: Any, values: tuple[Any, ...]) -> None:
    if value not in values:
        wanted = ", ".join(repr(one) for one in values if one is not None)
        raise ValueError(f"{name} must be one of {wanted}; got {value!r}")


def _title(attend: Callable[..., Any]) -> str:
    inner = getattr(attend, "func", attend)  # of a partial
    return getattr(inner, "__name__", type(inner).__name__)


def _smallest(f: Subject, invariant: Invariant) -> tuple[Finding | None, bool]:
    """Return what is broken, on the smallest input that shows it, and whether it was tried."""
    finding, tried = _first(f, invariant, f.sizes(Sizes()))
    for sizes in SMALLER if finding else ():
        smaller, _ = _first(f, invariant, f.sizes(sizes))
        if smaller:
            return smaller, True
    return finding, tried


def _first(f: Subject, invariant: Invariant, sizes: Sizes) -> tuple[Finding | None, bool]:
    """Return the first trial that fails, and whether there was any."""
    name, says = invariant.__name__, (invariant.__doc__ or "").strip()
    tried = False
    try:
        for trial in invariant(f, sizes):
            tried = True
            if not _agrees(f, trial):
                return (
                    Finding(name, says, trial.case, trial.inputs, trial.expected, trial.got),
                    True,
                )
    except Exception as error:
        shapes = ", ".join(f"{what} {was.shape}" for what, _, was, _ in f.calls)
        return Finding(name, says, f"called with {shapes}", {}, "an output", in_words(error)), True
    return None, tried


def _agrees(f: Subject, trial: Trial) -> bool:
    got, expected = trial.got, trial.expected
    if isinstance(expected, list):
        return bool(got == expected)
    if got.shape != expected.shape:
        return False
    if np.array_equal(got, expected):  # most are, and this is quick
        return True
    half = any(getattr(x, "dtype", None) == np.float16 for x in trial.inputs.values())
    tolerance = max(TOLERANCE.get(str(got.dtype), 0.0), f.exactness, TOLERANCE["float16"] * half)
    size = max(1.0, float(np.nanmax(np.abs(expected), initial=0)))
    return bool(np.allclose(got, expected, rtol=tolerance, atol=tolerance * size, equal_nan=True))


def _advice(f: Subject, broken: Mapping[str, Finding]) -> str:
    """Say whether another convention explains what is broken."""
    if not broken:
        return ""
    padding = f.padding_meaning  # if it has an argument of its own, the same must explain it
    meanings = [m for m in MEANINGS if f.padding or m != f.meaning]
    other = {"bottom-right": "top-left", "top-left": "bottom-right",
             "neighbours": "turns", "turns": "neighbours"}  # fmt: skip
    conventions = {"mask": meanings if f.masks else [],
                   "corner": [other[f.corner]] if True in f.causal and f.rectangles else [],
                   "shared_heads": [other[f.shared_heads]]}  # fmt: skip
    first = INVARIANTS[0]
    others = [*INVARIANTS[1:], *(FURTHER[kind] for kind in FURTHER if f.names[kind])]
    for convention, meanings in conventions.items():
        attribute = "meaning" if convention == "mask" else convention
        was = getattr(f, attribute)
        for meaning in meanings:
            setattr(f, attribute, meaning)
            if attribute == "meaning":
                f.padding_meaning = "attend" if meaning == "attend" else "hidden"
            # it has to be the definition, or nothing is explained
            fits = not _first(f, first, f.sizes(Sizes()))[0]
            left = [one for one in others if fits and _first(f, one, f.sizes(Sizes()))[0]]
            setattr(f, attribute, was)
            f.padding_meaning = padding
            if fits and len(left) < len(broken):
                rest = f"{len(left)} of them" if left else "nothing"
                return f'If it is meant, pass {convention}="{meaning}": then {rest} is broken.'
    return ""
