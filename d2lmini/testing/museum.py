"""The exhibits of chapter 9 as code: mistakes that others made, to name the one that is found."""

import functools
import itertools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from d2lmini.testing.invariants import Array, Sizes, padded, rules, some, square
from d2lmini.weights import masked_softmax, softmax

if TYPE_CHECKING:
    from d2lmini.testing.subject import Subject

__all__ = ["EXHIBITS", "PARTS", "Exhibit", "attend", "named"]


# Attention in parts that can be exchanged, as in the chapter


def split(x: Array, heads: int) -> Array:
    """Bring (batch, n, h · d) into (batch, h, n, d)."""
    return x.reshape(*x.shape[:2], heads, -1).swapaxes(1, 2)


def merge(x: Array) -> Array:
    """Bring (batch, h, n, d) into (batch, n, h · d)."""
    return x.swapaxes(1, 2).reshape(len(x), x.shape[2], -1)


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
    "merge": merge,
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
    for unknown in other.keys() - PARTS.keys():
        raise TypeError(f"attend() got an unexpected keyword argument {unknown!r}")
    do = PARTS | other
    q, k, v = (do["split"](x, heads) for x in (query, key, value))
    scores = do["score"](q, k)
    rule = do["earlier"](*scores.shape[-2:]) if causal else None
    if mask is not None and mask.ndim > 2:
        mask = mask[:, None]  # the same for every head
    weights = do["weigh"](scores, do["combine"](scores, mask, rule))
    return do["merge"](do["mix"](weights, v)), do["returned"](weights)


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


def _by_value_width(query: Array, key: Array, value: Array, **rule: Any) -> tuple[Array, Array]:
    return attend(query * np.sqrt(query.shape[-1] / value.shape[-1]), key, value, **rule)


def _reshaped(query: Array, key: Array) -> Array:
    turned = key.reshape(*key.shape[:-2], key.shape[-1], key.shape[-2])
    scores: Array = query @ turned / np.sqrt(query.shape[-1])
    return scores


def _hidden_is_zero(scores: Array, visible: Array) -> Array:
    return softmax(scores * visible)


def _keepdims_forgotten(scores: Array, visible: Array) -> Array:
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * visible
    return e / e.sum(axis=-1)[..., None, :]


def _over_heads(scores: Array, visible: Array) -> Array:
    return softmax(np.where(visible, scores, -np.inf), axis=1)


def _mean_of_heads(scores: Array, visible: Array) -> Array:
    weights = masked_softmax(scores, visible)
    return np.broadcast_to(weights.mean(axis=1, keepdims=True), weights.shape)


def _first_mask(scores: Array, mask: Array | None, causal: Array | None) -> Array:
    return combine(scores, mask if mask is None or mask.ndim < 4 else mask[:1], causal)


def _masks_in_turns(scores: Array, mask: Array | None, causal: Array | None) -> Array:
    if mask is not None and mask.ndim > 3:  # heads lie beside each other, and the masks do not
        batch, heads = scores.shape[:2]
        mask = np.tile(mask[:, 0], (heads, 1, 1)).reshape(batch, heads, *mask.shape[2:])
    return combine(scores, mask, causal)


def _mask_upside_down(scores: Array, mask: Array | None, causal: Array | None) -> Array:
    return combine(scores, None if mask is None else ~mask, causal)


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

    def __str__(self) -> str:
        """Say which it is, and what it does."""
        where = f"{self.where} of the museum" if self.where.startswith("exhibit") else self.where
        return f"It is “{self.name}”{f' ({where})' if where else ''}: {self.shows}."


def _exhibit(name: str, shows: str, where: str = "", **parts: Callable[..., Any]) -> Exhibit:
    return Exhibit(name, shows, where, parts)


EXHIBITS = (
    _exhibit("upside down", "True was taken for hidden", "exhibit 4", combine=_upside_down),
    _exhibit("upside down", "True was taken for hidden", "exhibit 4", combine=_mask_upside_down),
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
             "in the second wing", combine=_one_of_them("mask")),
    _exhibit("the causal rule replaces the mask", "with causal, the mask is forgotten",
             combine=_one_of_them("causal")),
    _exhibit("the mask is ignored", "the mask is given and not applied",
             combine=lambda s, mask, causal: combine(s, None, causal)),
    _exhibit("masked after the softmax", "the weights of hidden keys are set to 0 afterwards",
             weigh=_masked_afterwards),
    _exhibit("hidden scores become 0", "a hidden score is set to 0, which is a score like others",
             weigh=_hidden_is_zero),
    _exhibit("the first mask serves all", "every sequence gets the mask of the first",
             combine=_first_mask),
    Exhibit("wrong width", "the scores are divided by the root of the width of the values",
            function=_by_value_width),
    _exhibit("wrong width", "the scores are divided by the root of the number of keys",
             score=lambda q, k: score(q, k) * np.sqrt(q.shape[-1] / k.shape[-2])),
    _exhibit("masks in another order than heads", "with heads in the batch's axis, a sequence gets "
             "the mask of another one", combine=_masks_in_turns),
    _exhibit("reshape is no transpose", "the keys were reshaped where they should be transposed",
             score=_reshaped),
    _exhibit("no transpose", "heads are joined across the tokens: the swap of axes before the "
             "reshape is missing", "exhibit 1", merge=lambda x: x.reshape(len(x), x.shape[2], -1)),
    _exhibit("no transpose", "heads are cut and joined across the tokens: both swaps of axes are "
             "missing", "exhibit 1", split=_no_transpose,
             merge=lambda x: x.reshape(len(x), x.shape[2], -1)),
    _exhibit("keepdims forgotten", "each weight is divided by the sum of another row",
             weigh=_keepdims_forgotten),
    _exhibit("softmax over the heads", "the softmax runs over the heads", weigh=_over_heads),
    _exhibit("one table for all heads", "the weights were averaged over the heads before they were "
             "used", weigh=_mean_of_heads),
    _exhibit("heads taken for time", "the heads of a token attend to each other",
             split=lambda x, heads: x.reshape(*x.shape[:2], heads, -1),
             merge=lambda x: x.reshape(*x.shape[:2], -1)),
)  # fmt: skip

# These differ from what is right only for special numbers, so they are told by what they break.
_BY_SYMPTOM = {
    "fill": ("a very negative number", "a number stands in for −∞, and a score is lower still",
             "exhibit 6"),
    "nan": ("a query with no key", "a query without keys gets nan", "exhibit 7"),
    "mean": ("a very negative number", "a query without keys gets the mean of what is hidden",
             "exhibit 6"),
    "overflow": ("a very negative number", "a number stands in for −∞, and half precision has no "
                 "such number", "exhibit 6"),
    "unpadded": ("the mask is ignored", "padding is given and not always applied", ""),
    "padding": ("upside down", "True was taken the other way in the argument for padding",
                "exhibit 4"),
    "lost": ("rows that vanish", "the exponentials of a row are all 0: its own maximum was not "
             "subtracted", ""),
    "infinity": ("0 times infinity", "−∞ was multiplied by 0, which is nan", ""),
    "half": ("half precision inside", "the scores are computed in half precision", ""),
    "window": ("a window of one key too many", "a window of w shows w keys before one's own",
               "in the second wing"),
    "few": ("a window of one key too few", "a window of w shows w - 1 keys", ""),
    "another": ("another window", "a window shows other keys than it says", ""),
    "rules": ("other rules in parts", "with keys in several parts, a mask counts for less", ""),
    "paths": ("whoever asks for the weights gets other ones",
              "with weights and without, other rules are applied", "in the second wing"),
    "parts": ("a ring counts the shared keys twice",
              "keys in several parts are counted twice, or not at all", "in the second wing"),
    "afterwards": ("masked after the softmax", "the weights of hidden keys are set to 0 afterwards",
                   ""),
    "raw": ("softmax without its maximum", "the exponential of a large score overflows", ""),
    "dropped": ("weights after dropout", "the output is right, and the weights do not sum to 1",
                "exhibit 10"),
    "others": ("other weights", "the weights that are returned did not make the output", ""),
    "dice": ("dropout that never stops", "the same call gives something else each time",
             "exhibit 9"),
    "written": ("writing into what was given", "a call writes to its arguments", "exhibit 11"),
}  # fmt: skip


def _probes(f: "Subject") -> list[tuple[Sizes, dict[str, Any]]]:
    sizes = [f.sizes(Sizes()), f.sizes(Sizes(keys=4))]
    return [(s, rule) for s in sizes for _, rule in rules(f, s)]


def _at_its_corner(f: "Subject", exhibit: Callable[..., Any]) -> Callable[..., Any]:
    """Let an exhibit begin its triangle where the function is said to begin it."""
    parts = {**getattr(exhibit, "parts", {})}
    rule = parts.get("earlier", earlier)
    if f.corner == "top-left":
        parts["earlier"] = lambda n, m: rule(max(n, m), max(n, m))[:n, :m]
    return functools.partial(getattr(exhibit, "function", exhibit), **parts)


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


def _same(one: list[Any], other: list[Any], tolerance: float = 1e-4) -> bool:
    compared = False
    for x, y in zip(one, other, strict=True):
        if (x is None) != (y is None):
            return False
        if x is None:
            continue
        if x.shape != y.shape:
            return False
        # a query without any key may get nan, 0 or a mean: that is another exhibit
        empty = ~np.isfinite(x).all(axis=-1) | ~y.any(axis=-1) | ~np.isfinite(y).all(axis=-1)
        if not np.allclose(x[~empty], y[~empty], tolerance, tolerance):
            return False
        compared = compared or not empty.all()
    return compared


def _repeats(one: list[Any], other: list[Any]) -> bool:
    """Tell whether two rounds of calls gave the same, nan for nan."""
    pairs = zip(one, other, strict=True)
    return all(
        x is y or (x is not None and y is not None and np.allclose(x, y, equal_nan=True))
        for x, y in pairs
    )


def named(f: "Subject", broken: Mapping[str, Any]) -> Exhibit | None:
    """Return the exhibit that does the same as this function on every probe, or None."""
    own = _signature(f, f)
    if not _repeats(own, _signature(f, f)):
        return Exhibit(*_BY_SYMPTOM["dice"]) if _drops(f) else None
    if "the_same_call_gives_the_same" in broken and "inputs_are_left_alone" not in broken:
        return None  # it remembers: what is seen of it depends on the call before
    paths = broken.get("asking_for_weights_changes_nothing")
    if paths is not None and not isinstance(paths.got, str) and not _is_nan(paths):
        return Exhibit(*_BY_SYMPTOM["paths"])
    right = _signature(f, _at_its_corner(f, attend))
    if not _same(own, right):
        for exhibit in EXHIBITS:
            wrong = _signature(f, _at_its_corner(f, exhibit))
            if not _same(wrong, right) and _same(own, wrong):
                return exhibit
    if _is_rounded(own[0], right[0]):
        return Exhibit(*_BY_SYMPTOM["half"])
    usually = all(
        x is not None and y is not None and x.shape == y.shape and np.allclose(x, y, 5e-3, 5e-3)
        for x, y in zip(own, right, strict=True)
    )
    if usually and f.padding and (kind := _of_padding(f)):
        return Exhibit(*_BY_SYMPTOM[kind])
    if [*broken] == ["weights_sum_to_one"] and not _are_dropped(f):
        return Exhibit(*_BY_SYMPTOM["others"])
    if "a_window_that_covers_all_is_no_window" in broken and usually:
        return _of_a_window(f)
    return _by_symptom(broken, usually)


def _of_padding(f: "Subject") -> str | None:
    """Tell whether the argument for padding is ignored, or meant the other way."""
    s = f.sizes(Sizes())
    q, k, v = some(f, s)
    said = [rule for _, rule in padded(f, s)]
    try:
        found = [f(q, k, v, **rule, heads=s.heads)[0] for rule in said]
    except Exception:
        return None

    def defined(change: Callable[[Array], Array | None]) -> list[Array]:
        changed = [{**rule, "padding": change(rule["padding"])} for rule in said]
        return [f.definition(q, k, v, **rule, heads=s.heads) for rule in changed]

    right = defined(lambda padding: padding)
    if _same(found, right):
        return None
    for kind, wrong in ("unpadded", defined(lambda _: None)), ("padding", defined(np.invert)):
        each = zip(found, right, wrong, strict=True)
        if all(_same([x], [y]) or _same([x], [z]) for x, y, z in each):
            return kind
    return None


def _drops(f: "Subject") -> bool:
    """Tell whether a single key gives its value or 0 by chance, not something of other calls."""
    s, kept = f.sizes(Sizes(queries=1, keys=1)), []
    for seed in range(9):
        q, k, v = some(f, s, seed)
        try:
            found, _ = f(q, k, v, causal=f.causal[0], heads=s.heads)
        except Exception:
            return False
        if found.shape != v.shape:
            return True  # it is not known what was mixed
        kept.append((found / np.where(v, v, np.inf))[(v != 0) & (found != 0)])
    kinds = np.concatenate(kept)
    return len(kinds) == 0 or bool(np.allclose(kinds, kinds[0], 1e-3))


def _of_a_window(f: "Subject") -> Exhibit | None:
    """Tell how many keys a window of two shows."""
    s = square(f.sizes(Sizes()))
    back = np.arange(s.queries)[:, None] - np.arange(s.keys)
    q, k, v = some(f, s)
    try:
        found, _ = f(q, k, v, causal=f.causal[-1], heads=s.heads, window=2)
    except Exception:  # that is another mistake
        return None
    for (kind, keys), causal in itertools.product((("window", 3), ("few", 1)), (True, False)):
        shown = f.definition(q, k, v, abs(back) < keys, causal, s.heads)
        if causal >= f.causal[-1] and np.allclose(found, shown, 1e-4, 1e-4):
            return Exhibit(*_BY_SYMPTOM[kind])
    return Exhibit(*_BY_SYMPTOM["another"])


def _is_rounded(one: Array | None, right: Array) -> bool:
    """Tell whether, without a mask already, all is a little wrong, to either side."""
    if one is None or one.shape != right.shape or not np.allclose(one, right, 5e-3, 5e-3):
        return False
    error = (one - right) * np.sign(right)
    return bool(abs(error).max() > 1e-5 and 0.2 < (error > 0).mean() < 0.8)


def _are_dropped(f: "Subject") -> bool:
    """Tell whether some weights are 0, and all others too large by one factor."""
    s = f.sizes(Sizes())
    _, rule = rules(f, s)[0]
    _, weights = f(*some(f, s), **rule, heads=s.heads)
    _, true = _at_its_corner(f, attend)(*some(f, s), **rule, heads=s.heads)
    if weights is None or weights.shape != true.shape:
        return False
    factors = weights[true > 0] / true[true > 0]
    kept = factors[factors != 0]
    return (
        0 < len(kept) < len(factors) and kept.min() > 1 and bool(np.allclose(kept, kept[0], 1e-3))
    )


_ALONE = {  # what is broken, and nothing else
    "weights_sum_to_one": "dropped",
    "any_number_of_parts_gives_the_same": "parts",
}


def _by_symptom(broken: Mapping[str, Any], usually_right: bool) -> Exhibit | None:
    kind = None
    defined = broken.get("it_is_the_definition")
    ran = {name: finding for name, finding in broken.items() if not isinstance(finding.got, str)}
    nothing = ran.get("a_query_without_keys_gets_nothing")
    if "inputs_are_left_alone" in ran:
        kind = "written"
    elif defined is not None and re.search(r"mask(?!.*large)", defined.case) and _is_nan(defined):
        kind = "infinity"
    elif defined is not None and "Half without overflow" in str(defined.got):
        kind = "overflow"
    elif not usually_right:
        return None
    elif len(broken) == 1 and (alone := next(iter(broken))) in _ALONE:
        kind = _ALONE[alone] if alone in ran else None
        kind = "rules" if kind == "parts" and broken[alone].case.startswith("a ") else kind
    elif defined is not None and "large scores" in defined.case and defined.name in ran:
        zero = not np.any(defined.got, axis=-1).all()
        kind = "raw" if _is_nan(defined) else "lost" if zero else None
    elif "a_hidden_key_might_as_well_be_gone" in broken:
        finding = ran.get("a_hidden_key_might_as_well_be_gone")
        lost = finding is not None and not np.any(finding.got, axis=-1).all()
        kind = "afterwards" if lost and nothing is None else "fill"
    elif nothing is not None and isinstance(nothing.got, np.ndarray):
        kind = "nan" if not np.isfinite(nothing.got).all() else "mean"
    return Exhibit(*_BY_SYMPTOM[kind]) if kind else None


def _is_nan(finding: Any) -> bool:
    return isinstance(finding.got, np.ndarray) and not np.isfinite(finding.got).all()
