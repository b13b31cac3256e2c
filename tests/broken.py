"""Implementations with one mistake each, and the invariant that is meant to find it.

They are built from small stages that are right. A mistake replaces one stage, so that nothing but
the mistake can be the reason for a rejection.
"""

import functools
import math
import operator
from dataclasses import dataclass

import numpy as np
from array_api_compat import array_namespace
from comparing import TORCH
from implementations import (
    GROUPED,
    HEADS,
    Implementation,
    implementation,
    like,
    loop_headed,
    loop_turned,
    starts,
)
from museum import exhibits

from d2lmini import masked_softmax, softmax
from d2lmini.testing import INVARIANTS

# The statements of the list, each by its name.
(
    DEFINITION, SUMS, NO_KEYS, GONE, LATER, ONE_AT_A_TIME, ALONE, SAME, LEFT_ALONE
) = (one.__name__ for one in INVARIANTS)  # fmt: skip

# The stages, as they should be.


def score(query, key):
    return query @ key.mT / math.sqrt(query.shape[-1])


def earlier(n, m):
    return np.tri(n, m, m - n, dtype=bool)


def combine(scores, mask, causal):
    """Return who may attend to whom, of the shape of the scores."""
    xp = array_namespace(scores)
    visible = xp.ones_like(scores, dtype=xp.bool)
    if mask is not None:
        visible = visible & mask
    return visible if causal is None else visible & causal


def attend(
    query, key, value, *, mask=None, causal=False, score=score, earlier=earlier, combine=combine,
    weigh=masked_softmax, mix=operator.matmul, returned=lambda weights: weights,
):  # fmt: skip
    """Put the stages together."""
    scores = score(query, key)
    rule = like(scores > 0, earlier(*scores.shape[-2:])) if causal else None
    weights = weigh(scores, combine(scores, mask, rule))
    return mix(weights, value), returned(weights)


def turn(x, start, way=1):
    """Turn pairs of components by an angle that grows with the position."""
    places = start + np.arange(x.shape[-2])[:, None]
    angle = way * places / 10_000 ** (np.arange(0, x.shape[-1], 2) / x.shape[-1])
    turned = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    return np.stack([turned.real, turned.imag], axis=-1).reshape(x.shape)


def score_turned(query, key, *, starts=starts, key_way=1):
    first, other = starts(query, key)
    return score(turn(query, first), turn(key, other, key_way))


def split(x, heads):
    return x.reshape(*x.shape[:-1], heads, x.shape[-1] // heads).swapaxes(-3, -2)


def share(x, heads):
    return np.repeat(x, heads // x.shape[-3], axis=-3)


def merge(x):
    x = x.swapaxes(-3, -2)
    return x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])


def attend_in_heads(query, key, value, *, mask=None, weights=HEADS, heads=2, kv_heads=2,
                    split=split, share=share, merge=merge, **options):  # fmt: skip
    """Put the stages of several heads together."""
    w_q, w_k, w_v, w_o = weights
    q = split(query @ w_q, heads)
    k = share(split(key @ w_k, kv_heads), heads)
    v = share(split(value @ w_v, kv_heads), heads)
    mask = None if mask is None else mask[..., None, :, :]
    outputs, tables = attend(q, k, v, mask=mask, **options)
    return merge(outputs) @ w_o, tables


GROUPS = {"weights": GROUPED, "heads": 4, "kv_heads": 2}


# The mistakes.


@dataclass(frozen=True)
class Broken:
    name: str
    meant: str  # the name of the invariant
    implementation: Implementation
    raises: type[Exception] = AssertionError


def correct():
    """Return the implementations that the mistakes are made from."""
    return [
        *implementation("one head", attend),
        *implementation(
            "one head, turned",
            functools.partial(attend, score=score_turned),
            loop_turned,
            kinds=["numpy"],
            lacks="unordered",
        ),
        *in_heads(attend_in_heads),
        *in_heads(functools.partial(attend_in_heads, **GROUPS), GROUPED, 4),
    ]


def in_heads(function, weights=HEADS, heads=2):
    expected = loop_headed(weights, heads, 2)
    return implementation(f"{heads} heads", function, expected, kinds=["numpy"])


BROKEN: list[Broken] = []


def broken(name, meant, function=attend, *, kind="numpy", raises=AssertionError, **stages):
    """Add a mistake: another function, or another stage of the right one."""
    if kind == "torch" and not TORCH:
        return
    function = functools.partial(function, **stages) if stages else function
    (made,) = implementation(name, function, kinds=[kind])
    BROKEN.append(Broken(name, meant, made, raises))


def broken_heads(name, meant, **stages):
    weights, heads = stages.get("weights", HEADS), stages.get("heads", 2)
    (made,) = in_heads(functools.partial(attend_in_heads, **stages), weights, heads)
    BROKEN.append(Broken(name, meant, made))


# Scores


def score_with_recency(query, key):
    return score(query, key) + np.arange(key.shape[-2]) / 10


def score_of_memory(query, key):
    """Take the numbers in the order in which they lie in memory."""
    return score(query, key.ravel(order="K").reshape(key.shape))


def score_without_strides(query, key):
    """Read on from the first number, as a pointer without strides does."""
    whole = key if key.base is None else key.base[..., : key.shape[-1]]
    return score(query, whole if whole.shape == key.shape else key)


def score_like_batch_norm(query, key):
    scores = score(query, key)
    return scores - scores.mean(axis=0)


def score_and_scale_in_place(query, key):
    query /= math.sqrt(query.shape[-1])
    return query @ key.mT


def score_and_scale_there_and_back(query, key):
    scores = query.mul_(0.5) @ key.mT
    query.mul_(2)
    return scores


class Remembering:
    """Take the mean of these keys and those of the call before."""

    def __init__(self):
        self.key = None

    def __call__(self, query, key):
        before = key if self.key is None or self.key.shape != key.shape else self.key
        self.key = key.copy()
        return score(query, (key + before) / 2)


broken("no scale", DEFINITION, score=lambda q, k: q @ k.mT)
broken("divided by d", DEFINITION, score=lambda q, k: q @ k.mT / q.shape[-1])
broken("position in the score", DEFINITION, score=score_with_recency)
broken("memory order", SAME, score=score_of_memory)
broken("strides forgotten", "strides_cannot_matter", score=score_without_strides)
broken("mean over the batch", ALONE, score=score_like_batch_norm)
broken("last keys remembered", SAME, score=Remembering())
broken("query scaled in place", LEFT_ALONE, score=score_and_scale_in_place)
broken(
    "query scaled there and back", LEFT_ALONE, kind="torch", score=score_and_scale_there_and_back
)
broken(
    "scores without gradient",
    "gradients_are_the_slopes",
    kind="torch",
    score=lambda q, k: score(q, k).detach(),
)


# Positions

broken(
    "query and key turned against each other",
    "where_a_text_begins_cannot_matter",
    score=functools.partial(score_turned, key_way=-1),
)
broken(
    "queries turned as if they came first",
    ONE_AT_A_TIME,
    score=functools.partial(score_turned, starts=lambda query, key: (0, 0)),
)


# Masks


def combine_query_axis(scores, mask, causal):
    """Lay what is said of the keys along the queries."""
    if mask is not None:
        mask = mask[..., :1, : scores.shape[-2]].mT
    return combine(scores, mask, causal)


broken(
    "causal sees the next token", LATER, earlier=lambda n, m: np.tri(n, m, m - n + 1, dtype=bool)
)
broken(
    "causal hides the token itself",
    DEFINITION,
    earlier=lambda n, m: np.tri(n, m, m - n - 1, dtype=bool),
)
broken(
    "causal dropped where a mask is given",
    LATER,
    combine=lambda s, mask, causal: combine(s, mask, causal if mask is None else None),
)
broken(
    "causal or mask",
    LATER,
    combine=lambda s, mask, causal: (
        combine(s, None, causal)
        if mask is None
        else combine(s, mask, None) | combine(s, None, causal)
    ),
)
broken(
    "polarity",
    GONE,
    combine=lambda s, mask, causal: combine(s, None if mask is None else ~mask, causal),
)
broken("queries masked", GONE, combine=combine_query_axis)


# Weights


def mask_after_softmax(scores, visible):
    return softmax(scores) * visible


def softmax_then_nan_to_num(scores, visible):
    import torch

    return torch.nan_to_num(softmax(torch.where(visible, scores, -torch.inf)))


def weigh_but_learn_from_all(scores, visible):
    """Hide a key from the output, and let it learn all the same."""
    open_to_all = softmax(scores)
    return masked_softmax(scores, visible) + 0.1 * (open_to_all - open_to_all.detach())


def weigh_without_care_for_nothing(scores, visible):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * visible
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total > 0, total, 1)


broken("masked after the softmax", SUMS, weigh=mask_after_softmax)
broken("mask added to the scores", GONE, weigh=lambda s, seen: softmax(s + seen))
broken("scores multiplied by the mask", GONE, weigh=lambda s, seen: softmax(s * seen))
broken("uniform without keys", NO_KEYS, weigh=lambda s, seen: softmax(np.where(seen, s, -1e300)))
broken(
    "NaN replaced afterwards",
    "gradients_are_finite_without_keys",
    kind="torch",
    weigh=softmax_then_nan_to_num,
)
broken(
    "a hidden key learns", "gradients_are_the_slopes", kind="torch", weigh=weigh_but_learn_from_all
)
broken(
    "largest of no scores",
    "any_axis_may_have_any_size",
    raises=ValueError,
    weigh=weigh_without_care_for_nothing,
)


# Values


def attend_pair_by_pair(query, key, value, **options):
    """Lay all batch axes out in a row, and repeat what is too short from its start."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in (query, key, value)))
    rows = [np.resize(x, (math.prod(batch), *x.shape[-2:])) for x in (query, key, value)]
    output, weights = attend(*rows, **options)
    return tuple(x.reshape(*batch, *x.shape[-2:]) for x in (output, weights))


broken(
    "values one place off",
    DEFINITION,
    mix=lambda weights, value: weights @ np.roll(value, 1, axis=-2),
)
broken(
    "values without gradient",
    "gradients_are_the_slopes",
    kind="torch",
    mix=lambda weights, value: weights @ value.detach(),
)
broken("batch axes in a row", "batch_axes_broadcast", attend_pair_by_pair)


# Heads


def merge_without_transpose(x):
    return x.reshape(*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1])


def share_in_turn(x, heads):
    return np.concatenate([x] * (heads // x.shape[-3]), axis=-3)


broken_heads("heads merged without transpose", LATER, merge=merge_without_transpose)
broken_heads("key-value heads in turn", DEFINITION, share=share_in_turn, **GROUPS)


# The exhibits of chapter 9: which stage each replaces, and the invariant that is meant to find it.

EXHIBITS = exhibits()
MUSEUM = {
    "combine_upside_down": ("combine", LATER),
    "earlier_from_top_left": ("earlier", ONE_AT_A_TIME),
    "weigh_over_queries": ("weigh", SUMS),
    "weigh_with_fill": ("weigh", GONE),
    "weigh_with_infinity": ("weigh", NO_KEYS),
    "returned_after_dropout": ("returned", SUMS),
    "mix_with_dropout": ("mix", SAME),
    "combine_in_place": ("combine", LEFT_ALONE),
}
MUSEUM_OF_HEADS = {
    "score_by_model_width": ("score", DEFINITION),
    "split_without_transpose": ("split", LATER),
}
for name, (stage, meant) in MUSEUM.items():
    broken(name, meant, **{stage: EXHIBITS[name]})
for name, (stage, meant) in MUSEUM_OF_HEADS.items():
    broken_heads(name, meant, **{stage: EXHIBITS[name]})


def attend_across_batch(query, key, value, **options):
    return EXHIBITS["attend_across_batch"](query, key, value, **options)[0]


(made,) = implementation(
    "attend_across_batch", attend_across_batch, kinds=["numpy"], lacks="weights rectangles"
)
BROKEN.append(Broken(made.name, ALONE, made))


# Caches

if TORCH:
    from implementations import biased, cached, loop_layer

    from d2lmini import KeyValueCache

    class Forgetful(KeyValueCache):
        """Lose the oldest token whenever a new one comes."""

        def append(self, key, value):
            if len(self) > 1:
                self.key, self.value = self.key[..., 1:, :], self.value[..., 1:, :]
            key, value = super().append(key, value)
            return key, value

    class Repeating(KeyValueCache):
        """Give the newest token twice, in place of the one before it."""

        def append(self, key, value):
            key, value = super().append(key, value)
            if key.shape[-2] > 1:
                twice = [*range(key.shape[-2] - 2), key.shape[-2] - 1, key.shape[-2] - 1]
                key, value = key[..., twice, :], value[..., twice, :]
            return key, value

    class Misaligned(KeyValueCache):
        """Add new keys at the end, and new values at the start."""

        def append(self, key, value):
            n = key.shape[-2]
            key, value = super().append(key, value)
            self.value = value.roll(n, dims=-2)
            return key, self.value

    def broken_cache(name, meant, make_cache):
        (made,) = implementation(
            name,
            cached(biased, 1, make_cache),
            loop_layer(biased),
            kinds=["torch"],
            lacks="everything",
        )
        BROKEN.append(Broken(name, meant, made))

    broken_cache("cache forgets a token", ONE_AT_A_TIME, Forgetful)
    broken_cache("cache repeats a token", DEFINITION, Repeating)
    broken_cache("cache mixes keys and values", DEFINITION, Misaligned)
    same = KeyValueCache()
    broken_cache("one cache for all", SAME, lambda: same)
