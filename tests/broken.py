"""Attentions with one mistake each, made of stages that are right but for one.

`WRONG` are those that `check_attention` has to find, besides its own exhibits: chapter 9 runs it on
the exhibits of the museum. `BROKEN` are those that `test_invariants.py` has to find besides.
"""

import functools
import math

import numpy as np
from comparing import TORCH
from implementations import implementation, like

from d2lmini import masked_softmax, softmax
from d2lmini.testing.museum import attend, combine, score

with_part = functools.partial(functools.partial, attend)
dice = np.random.default_rng(4)


def raw(scores, visible):
    e = np.where(visible, np.exp(scores), 0)
    return e / e.sum(axis=-1, keepdims=True)


def scaled_in_place(query, key):
    query /= math.sqrt(query.shape[-1])
    return query @ key.swapaxes(-1, -2)


def scaled_there_and_back(query, key, value):
    scores = query.div_(query.shape[-1] ** 0.5) @ key.mT
    query.mul_(query.shape[-1] ** 0.5)
    return scores.softmax(dim=-1) @ value


class Remembering:
    """Take the mean of these keys and those of the call before."""

    def __init__(self):
        self.key = None

    def __call__(self, query, key):
        before = key if self.key is None or self.key.shape != key.shape else self.key
        self.key = key.copy()
        return score(query, (key + before) / 2)


def masked(change):
    """Return an attention that changes the mask, if there is one."""
    return with_part(combine=lambda s, m, c: combine(s, m if m is None else change(s, m), c))


def along_queries(scores, mask):
    return mask if mask.shape[-2] > 1 else mask[..., : scores.shape[-2]].swapaxes(-1, -2)


def filled(number):
    return with_part(weigh=lambda s, v: softmax(np.where(v, s, number)))


def dropped(weights):
    return 2 * weights * (dice.random(weights.shape) < 0.5)


# What is found out of it: the name of an exhibit, None, or ... for either; and what is wrong.
WRONG = {
    "√ of the number of heads": (..., with_part(
        score=lambda q, k: q @ k.swapaxes(-1, -2) / q.shape[1] ** 0.5)),
    "position in the score": (
        ..., with_part(score=lambda q, k: score(q, k) + np.arange(k.shape[-2]) / 10)),
    "mean over the batch": (
        ..., with_part(score=lambda q, k: score(q, k) - score(q, k).mean(axis=0))),
    "order in memory": (
        ..., with_part(score=lambda q, k: score(q, k.ravel(order="K").reshape(k.shape)))),
    "half precision inside": ("half precision inside", with_part(score=lambda q, k: score(
        q.astype(np.float16), k.astype(np.float16)).astype(q.dtype))),
    "padding of queries": (..., masked(along_queries)),
    "one token alone sees all": (..., masked(lambda s, m: None if s.shape[-2] == 1 else m)),
    "mask added to the scores": (..., with_part(weigh=lambda s, v: softmax(s + v))),
    "no maximum": ("softmax without its maximum", with_part(weigh=raw)),
    "fill of −1e9": ("a very negative number", filled(-1e9)),
    "fill of −10": ("a very negative number", filled(-10)),
    "nan": ("a query with no key", filled(-np.inf)),
    "a little less": (None, with_part(weigh=lambda s, v: masked_softmax(s, v) / 1.001)),
    "one sequence otherwise": (
        ..., with_part(mix=lambda w, v: w @ v * (1 if len(v) > 1 else 1.01))),
    "values one off": (..., with_part(mix=lambda w, v: w @ np.roll(v, 1, axis=-2))),
    "dropped weights": ("weights after dropout", with_part(returned=dropped)),
    "dropout": ("dropout that never stops", with_part(mix=lambda w, v: dropped(w) @ v)),
    "scaled in place": ("writing into what was given", with_part(score=scaled_in_place)),
    "remembers": (None, with_part(score=Remembering())),
}  # fmt: skip
if TORCH:
    WRONG["scaled there and back"] = ..., scaled_there_and_back


# Besides: gradients, strides, and axes of any number and size.


def stages(query, key, value, mask=None, causal=False, *, score=score, weigh=masked_softmax):
    """Attend over any leading axes, on NumPy or PyTorch."""
    scores = score(query, key)
    visible = scores == scores
    visible = visible if mask is None else visible & mask
    if causal:
        n, m = scores.shape[-2:]
        visible = visible & like(visible, np.tri(n, m, m - n, dtype=bool))
    weights = weigh(scores, visible)
    return weights @ value, weights


def score_without_strides(query, key):
    """Read on from the first number, as a pointer without strides does."""
    whole = key if key.base is None else key.base[..., : key.shape[-1]]
    return score(query, whole if whole.shape == key.shape else key)


def weigh_without_care_for_nothing(scores, visible):
    e = np.exp(scores - scores.max(axis=-1, keepdims=True)) * visible
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total > 0, total, 1)


def pair_by_pair(query, key, value, **options):
    """Lay all batch axes out in a row, and repeat what is too short from its start."""
    batch = np.broadcast_shapes(*(x.shape[:-2] for x in (query, key, value)))
    rows = [np.resize(x, (math.prod(batch), *x.shape[-2:])) for x in (query, key, value)]
    return tuple(x.reshape(*batch, *x.shape[-2:]) for x in stages(*rows, **options))


def replaced_afterwards(scores, visible):
    import torch

    return torch.nan_to_num(softmax(torch.where(visible, scores, -torch.inf)))


def learning_from_all(scores, visible):
    """Hide a key from the output, and let it learn all the same."""
    open_to_all = softmax(scores)
    return masked_softmax(scores, visible) + 0.1 * (open_to_all - open_to_all.detach())


def of(kind, function=stages, **parts):
    return implementation("broken", functools.partial(function, **parts), kinds=[kind])


RIGHT = {made.kind: made for made in implementation("stages", stages)}
SLOPES, FINITE = "gradients_are_the_slopes", "gradients_are_finite_without_keys"
BROKEN = [  # what is meant to find it, and what is broken
    ("strides_cannot_matter", of("numpy", score=score_without_strides)),
    ("any_axis_may_have_any_size", of("numpy", weigh=weigh_without_care_for_nothing)),
    ("batch_axes_broadcast", of("numpy", pair_by_pair)),
    (SLOPES, of("torch", score=lambda q, k: score(q, k).detach())),
    (SLOPES, of("torch", lambda q, k, v, **options: stages(q, k, v.detach(), **options))),
    (SLOPES, of("torch", weigh=learning_from_all)),
    (FINITE, of("torch", weigh=replaced_afterwards)),
]
