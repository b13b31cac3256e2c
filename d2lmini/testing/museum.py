"""The exhibits of chapter 9 as code: mistakes that others made, to name the one that is found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from d2lmini.testing.invariants import Array, Sizes, rules, some
from d2lmini.weights import masked_softmax, softmax

if TYPE_CHECKING:
    from d2lmini.testing.subject import Subject

__all__ = ["EXHIBITS", "PARTS", "Exhibit", "attend", "named"]


# Attention in parts that can be exchanged, as in the chapter


def split(x: Array, heads: int) -> Array:
    """Bring (batch, n, h · d) into (batch, h, n, d)."""
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def score(query: Array, key: Array) -> Array:
    """Compare all queries with all keys."""
    scores: Array = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    return scores


def earlier(n: int, m: int) -> Array:
    """Return the causal rule: the last query sees every key."""
    return np.tri(n, m, m - n, dtype=bool)


def combine(scores: Array, mask: Array | None, causal: Array | None) -> Array:
    """Return who may attend to whom: both rules must allow it."""
    visible = np.ones(scores.shape, dtype=bool)
    for rule in (mask, causal):
        visible = visible if rule is None else visible & rule
    return visible


PARTS: dict[str, Callable[..., Any]] = {
    "split": split,
    "score": score,
    "earlier": earlier,
    "combine": combine,
    "weigh": masked_softmax,
    "mix": np.matmul,
    "returned": np.copy,
}


def attend(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    causal: bool = False,
    heads: int = 1,
    **other: Callable[..., Any],
) -> tuple[Array, Array]:
    """Put the parts together, some of them exchanged."""
    do = PARTS | other
    q, k, v = (do["split"](x, heads) for x in (query, key, value))
    scores = do["score"](q, k)
    rule = do["earlier"](*scores.shape[-2:]) if causal else None
    if mask is not None and mask.ndim > 2:
        mask = mask[:, None]  # the same for every head
    weights = do["weigh"](scores, do["combine"](scores, mask, rule))
    joined = do["mix"](weights, v).swapaxes(1, 2)
    return joined.reshape(*joined.shape[:2], -1), do["returned"](weights)


# The mistakes


def _upside_down(scores: Array, mask: Array | None, causal: Array | None) -> Array:
    hidden = np.ones(scores.shape, dtype=bool)
    for rule in (mask, causal):
        hidden = hidden if rule is None else hidden & ~rule
    return hidden


def _by_model_width(query: Array, key: Array) -> Array:
    d_model = query.shape[-3] * query.shape[-1]
    return score(query, key) * np.sqrt(query.shape[-1] / d_model)


def _over_queries(scores: Array, visible: Array) -> Array:
    columns = masked_softmax(scores.swapaxes(-1, -2), visible.swapaxes(-1, -2))
    return columns.swapaxes(-1, -2)


def _no_transpose(x: Array, heads: int) -> Array:
    return x.reshape(len(x), heads, x.shape[1], -1)


def _fill(number: float) -> Callable[[Array, Array], Array]:
    def weigh(scores: Array, visible: Array) -> Array:
        return softmax(np.where(visible, scores, number))

    return weigh


def _masked_afterwards(scores: Array, visible: Array) -> Array:
    return softmax(scores) * visible


def _raw(scores: Array, visible: Array) -> Array:
    e = np.where(visible, np.exp(scores), 0.0)
    return e / e.sum(axis=-1, keepdims=True)


def _either(scores: Array, mask: Array | None, causal: Array | None) -> Array:
    if mask is None or causal is None:
        return combine(scores, mask, causal)
    return np.broadcast_to(mask | causal, scores.shape)


def _one_of_them(first: str) -> Callable[..., Array]:
    def joined(scores: Array, mask: Array | None, causal: Array | None) -> Array:
        if mask is not None and causal is not None:
            mask, causal = (mask, None) if first == "mask" else (None, causal)
        return combine(scores, mask, causal)

    return joined


def _across_batch(query: Array, key: Array, value: Array, **rule: Any) -> tuple[Array, Array]:
    query, key, value = (x.swapaxes(0, 1) for x in (query, key, value))
    output, weights = attend(query, key, value, **rule)
    return output.swapaxes(0, 1), weights


@dataclass(frozen=True)
class Exhibit:
    """A mistake that somebody made.

    Attributes
    ----------
    name : str
    shows : str
        In a sentence, what it does.
    where : str
        Its place in chapter 9.
    parts : mapping
        Which parts of `attend` it exchanges.
    function : callable
        `attend`, or what stands in its place.
    """

    name: str
    shows: str
    where: str = ""
    parts: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    function: Callable[..., tuple[Array, Array]] = attend

    def __call__(self, *arrays: Array, **rule: Any) -> tuple[Array, Array]:
        """Make the mistake."""
        return self.function(*arrays, **rule, **self.parts)


def _exhibit(name: str, shows: str, where: str = "", **parts: Callable[..., Any]) -> Exhibit:
    return Exhibit(name, shows, where, parts)


EXHIBITS = (
    _exhibit("upside down", "True was taken for hidden", "exhibit 4", combine=_upside_down),
    _exhibit(
        "wrong corner",
        "the causal triangle begins at the top left, so a token written alone sees the first key",
        "exhibit 5",
        earlier=lambda n, m: np.tri(n, m, dtype=bool),
    ),
    _exhibit(
        "wrong width",
        "the scores are divided by the root of the width of all heads",
        "exhibit 2",
        score=_by_model_width,
    ),
    _exhibit(
        "wrong axis", "the softmax runs over the queries", "exhibit 8", weigh=_over_queries
    ),
    _exhibit(
        "no transpose",
        "heads are cut across the tokens: the swap of axes after the reshape is missing",
        "exhibit 1",
        split=_no_transpose,
    ),
    Exhibit(
        "batch as time",
        "the first axis was taken for time, so tokens attend to other sequences",
        "exhibit 12",
        function=_across_batch,
    ),
    _exhibit("no scale", "the scores are not divided by the root of the width",
             score=lambda q, k: q @ k.swapaxes(-1, -2)),
    _exhibit("divided by d", "the scores are divided by the width, not by its root",
             score=lambda q, k: score(q, k) / np.sqrt(q.shape[-1])),
    _exhibit("sees the next token", "the causal rule is off by one: the next token is seen",
             earlier=lambda n, m: np.tri(n, m, m - n + 1, dtype=bool)),
    _exhibit("hides its own token", "the causal rule is off by one: a token does not see itself",
             earlier=lambda n, m: np.tri(n, m, m - n - 1, dtype=bool)),
    _exhibit("never causal", "the causal rule is asked for and not applied",
             earlier=lambda n, m: np.ones((n, m), dtype=bool)),
    _exhibit("either rule is enough", "mask and causal rule are joined by OR", combine=_either),
    _exhibit("the mask replaces the causal rule", "with a mask, causal is forgotten",
             combine=_one_of_them("mask")),
    _exhibit("the causal rule replaces the mask", "with causal, the mask is forgotten",
             combine=_one_of_them("causal")),
    _exhibit("the mask is ignored", "the mask is given and not applied",
             combine=lambda s, mask, causal: combine(s, None, causal)),
    _exhibit("masked after the softmax", "the weights of hidden keys are set to 0 afterwards",
             weigh=_masked_afterwards),
)  # fmt: skip

# These differ from what is right only for special numbers, so they are told by what they break.
_BY_SYMPTOM = {
    "fill": ("a very negative number", "a number stands in for −∞, and a score is lower still",
             "exhibit 6"),
    "nan": ("a query with no key", "a query without keys gets nan", "exhibit 7"),
    "mean": ("a very negative number", "a query without keys gets the mean of what is hidden",
             "exhibit 6"),
    "raw": ("softmax without its maximum", "the exponential of a large score overflows", ""),
    "dropped": ("weights after dropout", "the output is right, and the weights do not sum to 1",
                "exhibit 10"),
    "dice": ("dropout that never stops", "the same call gives something else each time",
             "exhibit 9"),
    "written": ("writing into what was given", "a call writes to its arguments", "exhibit 11"),
}  # fmt: skip


def _probes(f: "Subject") -> list[tuple[Sizes, dict[str, Any]]]:
    sizes = [f.sizes(Sizes()), f.sizes(Sizes(keys=4))]
    return [(s, rule) for s in sizes for _, rule in rules(f, s)]


def _signature(f: "Subject", function: Callable[..., Any]) -> list[Any]:
    """Return the outputs of some calls; one that fails has None."""
    found: list[Any] = []
    for s, rule in _probes(f):
        try:
            with np.errstate(all="ignore"):
                found.append(np.asarray(function(*some(f, s), **rule, heads=s.heads)[0]))
        except Exception:
            found.append(None)
    return found


def _same(one: list[Any], other: list[Any]) -> bool:
    if not any(x is not None for x in one):
        return False
    for x, y in zip(one, other, strict=True):
        if (x is None) != (y is None):
            return False
        if x is None:
            continue
        if x.shape != y.shape:
            return False
        # a query without any key may get nan, 0 or a mean: that is another exhibit
        empty = ~np.isfinite(x).all(axis=-1) | ~y.any(axis=-1) | ~np.isfinite(y).all(axis=-1)
        if empty.all() or not np.allclose(x[~empty], y[~empty], rtol=1e-4, atol=1e-4):
            return False
    return True


def named(f: "Subject", broken: Mapping[str, Any]) -> Exhibit | None:
    """Return the exhibit that does the same as this function on every probe, or None."""
    own = _signature(f, f)
    if not _same(own, _signature(f, f)):
        return Exhibit(*_BY_SYMPTOM["dice"])
    right = _signature(f, attend)
    if not _same(own, right):
        for exhibit in EXHIBITS:
            wrong = _signature(f, exhibit)
            if not _same(wrong, right) and _same(own, wrong):
                return exhibit
    return _by_symptom(broken, _same(own, right))


def _by_symptom(broken: Mapping[str, Any], usually_right: bool) -> Exhibit | None:
    kind = None
    ran = {name: finding for name, finding in broken.items() if not isinstance(finding.got, str)}
    nothing = ran.get("a_query_without_keys_gets_nothing")
    if "inputs_are_left_alone" in ran:
        kind = "written"
    elif not usually_right:
        return None
    elif set(broken) == {"weights_sum_to_one"}:
        kind = "dropped"
    elif "large scores" in getattr(ran.get("it_is_the_definition"), "case", ""):
        kind = "raw" if not np.isfinite(ran["it_is_the_definition"].got).all() else None
    elif "a_hidden_key_might_as_well_be_gone" in broken:
        kind = "fill"
    elif nothing is not None and isinstance(nothing.got, np.ndarray):
        kind = "nan" if not np.isfinite(nothing.got).all() else "mean"
    return Exhibit(*_BY_SYMPTOM[kind]) if kind else None
