"""What must hold for every attention: nine statements, and three of further arguments."""

import functools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from d2lmini.testing.subject import Subject

__all__ = ["FURTHER", "INVARIANTS", "Invariant", "Sizes", "Trial", "by_loops", "defined"]

Array: TypeAlias = np.ndarray[Any, Any]
Score: TypeAlias = Callable[[Array, Array], float]


class Sizes(NamedTuple):
    """The sizes of an input. All differ, since equal ones hide mistakes."""

    batch: int = 3
    heads: int = 2
    queries: int = 4
    keys: int = 6
    width: int = 5  # of a query and a key in one head
    value_width: int = 7


# From the smallest on: a report shows the first that fails.
SMALLER = [
    Sizes(1, 1, 1, 2, 1, 1),
    Sizes(1, 1, 2, 2, 1, 1),
    Sizes(1, 1, 2, 3, 2, 1),
    Sizes(1, 2, 2, 3, 2, 1),
    Sizes(2, 1, 2, 3, 2, 1),
    Sizes(1, 1, 4, 4, 1, 1),
    Sizes(2, 2, 3, 4, 2, 1),
]


@dataclass(frozen=True)
class Trial:
    """One comparison: what a function gave, and what it should have given."""

    got: Any
    expected: Any
    case: str
    inputs: Mapping[str, Any] = field(default_factory=dict)


Invariant: TypeAlias = "Callable[[Subject, Sizes], Iterator[Trial]]"


# The definition


def scaled_dot_product(query: Array, key: Array) -> float:
    """Compare two vectors."""
    return float(query @ key) / math.sqrt(len(query))


def by_loops(
    query: Array,
    key: Array,
    value: Array,
    sees: Array,
    score: Score = scaled_dot_product,
    bias: Array | None = None,
) -> tuple[Array, Array]:
    """Attend in one sequence with one head, as plainly as one can.

    Parameters
    ----------
    query : array of shape (n, d)
    key : array of shape (m, d)
    value : array of shape (m, d_v)
    sees : boolean array of shape (n, m)
        True where a query may attend to a key.
    score : callable
        Compares two vectors.
    bias : array of shape (n, m), optional
        Is added to the scores.

    Returns
    -------
    output : array of shape (n, d_v)
    weights : array of shape (n, m)

    Examples
    --------
    >>> import numpy as np
    >>> output, weights = by_loops(*np.ones((3, 1, 2)), sees=np.array([[True]]))
    >>> output, weights
    (array([[1., 1.]]), array([[1.]]))
    """
    output, weights = np.zeros((len(query), value.shape[-1])), np.zeros(sees.shape)
    for i, q in enumerate(query):
        scores = {j: score(q, k) for j, k in enumerate(key) if sees[i, j]}
        if bias is not None:
            scores = {j: a + bias[i, j] for j, a in scores.items()}
        largest = max(scores.values(), default=0.0)
        e = {j: math.exp(a - largest) for j, a in scores.items()}
        for j in e:
            weights[i, j] = e[j] / sum(e.values())
            output[i] += weights[i, j] * value[j]
    return output, weights


def visible(
    queries: int, keys: int, mask: Array | None, causal: bool, *, corner: str = "bottom-right"
) -> Array:
    """Return who may attend to whom: both rules must allow it. (n, m), or with a batch axis."""
    shift = keys - queries if corner == "bottom-right" else 0
    sees: Array = np.tri(queries, keys, shift if causal else keys, dtype=bool)
    return sees if mask is None else sees & mask


def defined(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    causal: bool = False,
    heads: int = 1,
    *,
    corner: str = "bottom-right",
    score: Score = scaled_dot_product,
) -> tuple[Array, Array]:
    """Attend in loops, for (batch, n, heads · d), and weights (batch, heads, n, m).

    A mask of numbers (n, m) is added to the scores.
    """
    query, key, value = (x.astype(float) for x in (query, key, value))
    bias, mask = (mask, None) if mask is not None and mask.dtype != bool else (None, mask)
    batch, n, m = len(query), query.shape[1], key.shape[1]
    sees = np.broadcast_to(visible(n, m, mask, causal, corner=corner), (batch, n, m))
    output, weights = np.zeros((batch, n, value.shape[2])), np.zeros((batch, heads, n, m))
    for b in range(batch):
        for h in range(heads):
            own = [slice(h * x.shape[2] // heads, (h + 1) * x.shape[2] // heads)
                   for x in (query, key, value)]  # fmt: skip
            q, k, v = (x[b, :, part] for x, part in zip((query, key, value), own, strict=True))
            output[b, :, own[2]], weights[b, h] = by_loops(q, k, v, sees[b], score, bias)
    return output, weights


# Inputs


def some(f: "Subject", s: Sizes, seed: int = 0) -> tuple[Array, Array, Array]:
    """Return queries, keys and values of these sizes, as arrays of their own."""
    q, k, v = drawn(s, seed)
    return f.array(q), f.array(k), f.array(v)


@functools.cache
def drawn(s: Sizes, seed: int) -> list[Array]:
    """Draw them once: most statements begin with the same ones."""
    draw = np.random.default_rng(seed)
    widths = s.heads * s.width, s.heads * s.width, s.heads * s.value_width
    lengths = s.queries, s.keys, s.keys
    return [
        draw.normal(size=(s.batch, n, d)).round(1) for n, d in zip(lengths, widths, strict=True)
    ]


def square(s: Sizes) -> Sizes:
    """Return sizes with as many keys as queries."""
    return s._replace(keys=s.queries)


Rule: TypeAlias = tuple[str, dict[str, Any]]


def rules(f: "Subject", s: Sizes, *, causal: bool | None = None) -> list[Rule]:
    """Return the ways to say who may attend to whom; each query keeps a key."""
    draw, places = np.random.default_rng(7), np.arange(s.queries)
    shift = s.keys - s.queries if f.corner == "bottom-right" else 0
    rows = draw.random((s.queries, s.keys)) < 0.4
    rows[places, np.minimum(places + shift, s.keys - 1)] = rows[:, 0] = True
    rows[0, -1] = True  # what a causal rule takes away again
    padding = lengths(s)
    masks: dict[str, Array | None] = {"": None}
    if f.masks in ("any", "rows"):
        masks["a mask of rows"] = rows
    if f.masks == "any":
        masks |= {"a padding mask": padding, "a mask for each sequence": rows & padding}
    elif f.masks == "padding":
        masks["a padding mask"] = padding
    said = []
    for also in f.causal if causal is None else [causal] if causal in f.causal else []:
        for words, mask in masks.items():
            if also and words and f.one_rule:
                continue
            both = [*([words] if words else []), *(["causal"] if also else [])]
            rule: dict[str, Any] = {"causal": True} if also else {}
            said.append((" and ".join(both) or "no mask", rule | ({"mask": mask} if words else {})))
    return said


def lengths(s: Sizes) -> Array:
    """Return a mask of padding, (batch, 1, m): each sequence is shorter than the one before."""
    own = np.array([max(s.keys - 2 * b, 1) for b in range(s.batch)])
    found: Array = np.arange(s.keys) < own[:, None, None]
    return found


def padded(f: "Subject", s: Sizes) -> list[Rule]:
    """Return the rules with padding in an argument of its own, beside that of the mask."""
    return [
        (f"{words} and padding".removeprefix("no mask and "), {**rule, "padding": lengths(s)})
        for words, rule in (rules(f, s) if f.padding else ())
        if words != "a padding mask" and "each" not in words
    ]


def given(q: Array, k: Array, v: Array, **rule: Any) -> dict[str, Any]:
    """Return the arguments of a call, to be shown."""
    return {"query": q, "key": k, "value": v, **rule}


# The nine


def it_is_the_definition(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """The output is that of three plain loops, for small and large scores, in half precision."""
    ways: list[tuple[int, Any, str]] = [(1, f.precision, "")]
    ways.append((600, f.precision, ", large scores"))  # beyond 1,000, of both signs
    ways += [(6, np.float16, ", half precision")] * f.takes_half
    for size, dtype, said in ways:
        for words, rule in rules(f, s) + padded(f, s) * (dtype is f.precision and size == 1):
            q, k, v = (x.astype(dtype) for x in some(f, s))
            q = size * q
            right = f.definition(q, k, v, **rule, heads=s.heads)
            found, _ = f(q, k, v, **rule, heads=s.heads)
            yield Trial(found, right, words + said, given(q, k, v, **rule))
    if f.rectangles and s.queries != s.keys:  # where a sequence asks itself, it may go another way
        for words, rule in rules(f, square(s)):
            q, k, v = some(f, square(s))
            found, _ = f(q, k, v, **rule, heads=s.heads)
            right = f.definition(q, k, v, **rule, heads=s.heads)
            yield Trial(found, right, f"{words}, as many keys as queries", given(q, k, v, **rule))
    yield from unequal_blocks(f, s)
    yield from shared_heads(f, s)
    if f.masks == "any" and f.meaning == "additive" and False in f.causal:
        q, k, v = some(f, s)
        mask = f.array(-0.5 * np.abs(np.arange(s.queries)[:, None] - np.arange(s.keys)))
        found, _ = f(q, k, v, mask=mask, heads=s.heads)
        right = f.definition(q, k, v, mask, heads=s.heads)
        yield Trial(found, right, "numbers added to the scores", given(q, k, v, mask=mask))


def unequal_blocks(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """Prime lengths, so that what is computed in blocks has one that is not full."""
    s = s._replace(queries=5, keys=7 if f.rectangles else 5)
    q, k, v = some(f, s)
    causal = f.causal[-1]
    try:
        found, _ = f(q, k, v, causal=causal, heads=s.heads)
    except Exception:  # it may refuse lengths that its blocks do not fill
        return
    right = f.definition(q, k, v, causal=causal, heads=s.heads)
    words = f"{'causal, ' * causal}{s.keys} keys"
    yield Trial(found, right, words, given(q, k, v, **({"causal": True} if causal else {})))


def shared_heads(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """Four heads of queries share two of keys, if the function takes them."""
    if s.heads == 1 or f.fixed or "heads" not in f.layout:
        return
    q, k, v = some(f, s._replace(heads=4))
    k, v = (x[..., : x.shape[-1] // 2].copy() for x in (k, v))
    try:
        found, _ = f(q, k, v, causal=f.causal[0], heads=4, key_heads=2)
    except Exception:  # it takes as many of both
        return
    whose = [0, 0, 1, 1] if f.shared_heads == "neighbours" else [0, 1, 0, 1]
    each = (x.reshape(*x.shape[:2], 2, -1)[:, :, whose] for x in (k, v))
    all_k, all_v = (x.reshape(*x.shape[:2], -1) for x in each)
    right = f.definition(q, all_k, all_v, causal=f.causal[0], heads=4)
    yield Trial(found, right, "four heads share two of the keys", given(q, k, v))


def weights_sum_to_one(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """The weights of each query are not negative, sum to 1, and mix the values into the output."""
    for words, rule in rules(f, s) if f.returns_weights else ():
        q, k, v = some(f, s)
        output, weights = f(q, k, v, **rule, heads=s.heads)
        assert weights is not None
        shown = given(q, k, v, **rule)
        sums = abs(weights).sum(axis=-1)
        yield Trial(sums, np.ones_like(sums), f"{words}, sums of weights", shown)
        if weights.shape == (s.batch, s.queries, s.keys) and s.heads == 1:
            weights = weights[:, None]
        projected = output.shape[-1] != v.shape[-1]  # then the values are not those that are mixed
        if weights.shape == (s.batch, s.heads, s.queries, s.keys) and not projected:
            mixed = weights @ v.reshape(s.batch, s.keys, s.heads, -1).swapaxes(1, 2)
            mixed = mixed.swapaxes(1, 2).reshape(output.shape)
            yield Trial(output, mixed, f"{words}, values mixed by the weights", shown)


def a_query_without_keys_gets_nothing(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """If a query may attend to no key, its output is 0."""
    if f.no_keys != "zero":
        return
    rows = np.ones((s.queries, s.keys), dtype=bool)
    rows[-1] = False  # the last query sees no key
    item = np.ones((s.batch, 1, s.keys), dtype=bool)
    item[-1] = False  # nobody in the last sequence does
    masks: dict[str, Array] = {}
    if f.masks in ("any", "rows"):
        masks["a query without a key"] = rows
    if f.masks in ("any", "padding"):
        masks["a sequence that is nothing but padding"] = item
    for words, mask in masks.items():
        q, k, v = some(f, s)
        rule: dict[str, Any] = {"mask": mask}
        rule |= {} if False in f.causal else {"causal": True}
        empty = ~np.broadcast_to(mask, (s.batch, s.queries, s.keys)).any(axis=-1)
        found = f(q, k, v, **rule, heads=s.heads)[0][empty]
        yield Trial(found, np.zeros_like(found), words, given(q, k, v, **rule))


def a_hidden_key_might_as_well_be_gone(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """Hidden keys and values do not matter, however low or high the scores are."""
    sees = np.arange(s.keys) % 3 != 1  # the second key of each three is hidden
    mask = np.tile(sees, (s.batch, 1, 1) if f.masks == "padding" else (s.queries, 1))
    for sign in (-1, 1) if f.masks and False in f.causal and f.rectangles else ():
        q, k, v = some(f, s)
        q, k = f.array(1e7 * abs(q)), sign * abs(k)
        if sees.all():
            return
        here, _ = f(q, k, v, mask=mask, heads=s.heads)
        gone, _ = f(q, k[:, sees], v[:, sees], heads=s.heads)
        case = f"the others score {'low' if sign < 0 else 'high'}"
        yield Trial(here, gone, case, given(q, k, v, mask=mask))
    for words, rule in rules(f, s):
        if rule.get("mask") is None:
            continue
        q, k, v = some(f, s)
        hidden = ~np.broadcast_to(rule["mask"], (s.batch, s.queries, s.keys)).any(axis=1)
        before, _ = f(q, k, v, **rule, heads=s.heads)
        k[hidden], v[hidden] = -30 * k[hidden], 1e4
        after, _ = f(q, k, v, **rule, heads=s.heads)
        yield Trial(after, before, f"{words}, hidden ones changed", given(q, k, v, **rule))


def a_later_token_changes_nothing(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """What comes later cannot be seen: change it, and the earlier outputs stay."""
    s = square(s)
    everything = np.ones((s.queries, s.keys), dtype=bool)
    further = [("causal and a mask that hides nothing", {"causal": True, "mask": everything})]
    further = further if f.masks in ("any", "rows") and True in f.causal and not f.one_rule else []
    for words, rule in [*rules(f, s, causal=True), *further]:
        for t in range(s.queries - 1, 0, -1):
            q, k, v = some(f, s)
            before, _ = f(q, k, v, **rule, heads=s.heads)
            k[:, t:], v[:, t:] = -9 * k[:, t:], 9
            after, _ = f(q, k, v, **rule, heads=s.heads)
            case = f"{words}, changed from token {t + 1} on"
            yield Trial(after[:, :t], before[:, :t], case, given(q, k, v, **rule))


def one_at_a_time_is_all_at_once(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """A token that is written alone, after the others, gets what it gets in the whole text."""
    if not f.rectangles or f.corner != "bottom-right":
        return
    s = square(s)
    for words, rule in rules(f, s, causal=True):
        q, k, v = some(f, s)
        whole, _ = f(q, k, v, **rule, heads=s.heads)
        for t in range(s.queries):
            now, past = slice(t, t + 1), slice(t + 1)
            own = {**rule}
            if "mask" in rule:
                rows = rule["mask"][..., now, :] if rule["mask"].shape[-2] > 1 else rule["mask"]
                own["mask"] = rows[..., past]
            step, _ = f(q[:, now], k[:, past], v[:, past], **own, heads=s.heads)
            case = f"{words}, token {t + 1} alone"
            yield Trial(step, whole[:, now], case, given(q[:, now], k[:, past], v[:, past], **own))


def each_sequence_stands_alone(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """A sequence gets the same in a batch and by itself."""
    for sizes, (words, rule) in [(z, r) for z in (square(s), s) for r in rules(f, z)]:
        q, k, v = some(f, sizes)
        together, _ = f(q, k, v, **rule, heads=s.heads)
        for b in range(s.batch):
            one = slice(b, b + 1)
            mask = rule.get("mask")
            own = {**rule, "mask": mask[one]} if mask is not None and mask.ndim > 2 else rule
            alone, _ = f(q[one], k[one], v[one], **own, heads=s.heads)
            case = f"{words}, sequence {b + 1} of {s.batch}"
            yield Trial(together[one], alone, case, given(q, k, v, **rule))


def the_same_call_gives_the_same(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """A call gives the same again, after other calls and however the numbers lie in memory."""
    for words, rule in rules(f, s):
        q, k, v = some(f, s)
        first, _ = f(q, k, v, **rule, heads=s.heads)
        f(*some(f, s, seed=1), **rule, heads=s.heads)
        again, _ = f(q, k, v, **rule, heads=s.heads)
        yield Trial(again, first, f"{words}, called again", given(q, k, v, **rule))
        try:
            with f.strided():
                laid, _ = f(q, k, v, **rule, heads=s.heads)
        except Exception as error:
            if re.search("contiguous|stride", str(error)):  # it may refuse them, if it says so
                f.refuses_strides = True
                continue
            raise
        yield Trial(laid, first, f"{words}, axes swapped in memory", given(q, k, v, **rule))


def inputs_are_left_alone(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """Queries, keys, values and mask are the caller's: a call writes to none of them."""
    s = square(s)
    for words, rule in rules(f, s):
        q, k, v = some(f, s)
        f(q, k, v, **rule, heads=s.heads)
        yield Trial(f.written(), [], f"{words}, written to", given(q, k, v, **rule))


INVARIANTS: tuple[Invariant, ...] = (
    it_is_the_definition,
    weights_sum_to_one,
    a_query_without_keys_gets_nothing,
    a_hidden_key_might_as_well_be_gone,
    a_later_token_changes_nothing,
    one_at_a_time_is_all_at_once,
    each_sequence_stands_alone,
    the_same_call_gives_the_same,
    inputs_are_left_alone,
)


# Of what some functions are asked for besides


def asking_for_weights_changes_nothing(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """The output is the same whether the weights are asked for or not."""
    for words, rule in rules(f, s) + padded(f, s):
        q, k, v = some(f, s)
        asked, _ = f(q, k, v, **rule, heads=s.heads)
        unasked, _ = f(q, k, v, **rule, heads=s.heads, weights=False)
        yield Trial(asked, unasked, f"{words}, weights asked for", given(q, k, v, **rule))


def a_window_that_covers_all_is_no_window(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """A window of w shows w keys, the query's own among them; one of all keys hides nothing."""
    s = square(s)
    for words, rule in rules(f, s, causal=True) or rules(f, s):
        q, k, v = some(f, s)
        shown = given(q, k, v, **rule)
        wide, _ = f(q, k, v, **rule, heads=s.heads, window=s.keys)
        none, _ = f(q, k, v, **rule, heads=s.heads)
        if True not in f.causal:  # then it may be the window that looks back only
            back = f.definition(q, k, v, **{**rule, "causal": True}, heads=s.heads)
            none = back if np.allclose(wide, back, 1e-4, 1e-4) else none
        yield Trial(wide, none, f"{words}, a window of {s.keys}", shown)
        if s.keys > 2 and "mask" not in rule:
            before, _ = f(q, k, v, **rule, heads=s.heads, window=2)
            k[:, 0], v[:, 0] = -9 * k[:, 0], 9
            after, _ = f(q, k, v, **rule, heads=s.heads, window=2)
            case = f"{words}, a window of 2, first key changed"
            yield Trial(after[:, 2:], before[:, 2:], case, shown)
            if f.rectangles and f.corner == "bottom-right":
                alone, _ = f(q[:, -1:], k, v, **rule, heads=s.heads, window=2)
                case = f"{words}, a window of 2, last token alone"
                yield Trial(alone, after[:, -1:], case, shown)


def any_number_of_parts_gives_the_same(f: "Subject", s: Sizes) -> Iterator[Trial]:
    """Keys in several parts, blocks or processes give what they give in one."""
    for keys, parts in (4, 2), (4, 4), (5, 2):
        sizes = s._replace(queries=keys, keys=keys)
        for words, rule in rules(f, sizes):
            q, k, v = some(f, sizes)
            one, _ = f(q, k, v, **rule, heads=s.heads, parts=1)
            try:
                several, _ = f(q, k, v, **rule, heads=s.heads, parts=parts)
            except Exception:
                if keys % parts:  # it may refuse parts that differ
                    continue
                raise
            case = f"{words}, {keys} keys in {parts} parts"
            yield Trial(several, one, case, given(q, k, v, **rule))


# The argument that a function must have, to be asked.
FURTHER: dict[str, Invariant] = {
    "weights": asking_for_weights_changes_nothing,
    "window": a_window_that_covers_all_is_no_window,
    "parts": any_number_of_parts_gives_the_same,
}
