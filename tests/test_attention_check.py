"""`check_attention` finds wrong attentions and names them; it calls none wrong that is right."""

import functools
import json
import math
import subprocess
import sys
import time
from importlib.metadata import entry_points

import numpy as np
import pytest
from comparing import needs_torch

from d2lmini import attention, masked_softmax, softmax
from d2lmini.testing import (
    EXHIBITS,
    FURTHER,
    INVARIANTS,
    by_loops,
    check_attention,
    check_language_model,
)
from d2lmini.testing.__main__ import main
from d2lmini.testing.museum import attend, combine, merge, score, split

with_part = functools.partial(functools.partial, attend)
dice = np.random.default_rng(4)


def raw(scores, visible):
    e = np.where(visible, np.exp(scores), 0)
    return e / e.sum(axis=-1, keepdims=True)


def renormalised(scores, visible):
    weights = softmax(scores) * visible
    total = weights.sum(axis=-1, keepdims=True)
    return weights / np.where(total > 0, total, 1)


def in_place(scores, mask, causal):
    if mask is None or causal is None:
        return combine(scores, mask, causal)
    mask &= causal
    return np.broadcast_to(mask, scores.shape)


def scaled_in_place(query, key):
    query /= math.sqrt(query.shape[-1])
    return query @ key.swapaxes(-1, -2)


class Remembering:
    """Take the mean of these keys and those of the call before."""

    def __init__(self):
        self.key = None

    def __call__(self, query, key):
        before = key if self.key is None or self.key.shape != key.shape else self.key
        self.key = key.copy()
        return score(query, (key + before) / 2)


def scaled(size):
    return lambda q, k: q @ k.swapaxes(-1, -2) / np.sqrt(size(q, k))


def joined(rule):
    return with_part(combine=rule)


def weighed(weigh):
    return with_part(weigh=weigh)


# What is wrong, and what is found out of it: the name of an exhibit, None, or ... for either.
WRONG = {
    "√ of the number of heads": (with_part(score=scaled(lambda q, k: q.shape[1])), ...),
    "√ of the number of queries": (with_part(score=scaled(lambda q, k: q.shape[-2])), ...),
    "√ of the batch": (with_part(score=scaled(lambda q, k: len(q))), ...),
    "the mask of the first query for all": (
        joined(lambda s, m, c: combine(s, m if m is None else m[..., :1, :], c)), ...),
    "padding of queries": (
        joined(lambda s, m, c: combine(s, m if m is None or m.shape[-2] > 1
                                       else m[..., : s.shape[-2]].swapaxes(-1, -2), c)), ...),
    "one token alone sees all": (
        joined(lambda s, m, c: combine(s, None if s.shape[-2] == 1 else m, c)), ...),
    "half precision inside": (with_part(score=lambda q, k: score(
        q.astype(np.float16), k.astype(np.float16)).astype(q.dtype)), ...),
    "no maximum": (weighed(raw), "softmax without its maximum"),
    "clipped scores": (with_part(score=lambda q, k: np.clip(score(q, k), -50, 50)), ...),
    "renormalised": (weighed(renormalised), ...),
    "fill of −1e9": (weighed(lambda s, v: softmax(np.where(v, s, -1e9))), "a very negative number"),
    "fill of −1e4": (weighed(lambda s, v: softmax(np.where(v, s, -1e4))), ...),
    "fill of −10": (weighed(lambda s, v: softmax(np.where(v, s, -10))), "a very negative number"),
    "nan": (weighed(lambda s, v: softmax(np.where(v, s, -np.inf))), "a query with no key"),
    "one more in the sum": (
        weighed(lambda s, v: raw(np.minimum(s, 700), v) / (1 + 0 * s) * 0.999), ...),
    "a little less": (weighed(lambda s, v: masked_softmax(s, v) / 1.001), None),
    "one sequence otherwise": (
        with_part(mix=lambda w, v: w @ v * (1 if len(v) > 1 else 1.01)), ...),
    "plain average": (weighed(lambda s, v: masked_softmax(0 * s, v)), ...),
    "largest only": (weighed(lambda s, v: masked_softmax(1e6 * s, v)), ...),
    "values one off": (with_part(mix=lambda w, v: w @ np.roll(v, 1, axis=-2)), ...),
    "dropped weights": (
        with_part(returned=lambda w: 2 * w * (dice.random(w.shape) < 0.5)),
        "weights after dropout"),
    "dropout": (
        with_part(mix=lambda w, v: (2 * w * (dice.random(w.shape) < 0.5)) @ v),
        "dropout that never stops"),
    "in place": (joined(in_place), "writing into what was given"),
    "scaled in place": (with_part(score=scaled_in_place), "writing into what was given"),
    "remembers": (with_part(score=Remembering()), ...),
}  # fmt: skip


def is_found(function, exhibit, **said):
    report = check_attention(function, **said)
    assert report and report.names, "nothing is found"
    assert report[0].says and report[0].case and report[0].expected is not None
    if exhibit is not ...:
        assert (report.exhibit and report.exhibit.name) == exhibit, report


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found(name):
    is_found(*WRONG[name])


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_an_exhibit_is_named(exhibit):
    report = check_attention(exhibit)
    assert report.exhibit is not None and report.exhibit.name == exhibit.name
    assert exhibit.shows in repr(report)


def einsum(query, key, value, attn_mask=None, is_causal=False):
    """Take (batch, n, heads, d), with the subscripts of einsum."""
    scores = np.einsum("bnhd,bmhd->bhnm", query, key) / math.sqrt(query.shape[-1])
    n, m = scores.shape[-2:]
    visible = np.tri(n, m, m - n if is_causal else m, dtype=bool)
    visible = visible if attn_mask is None else visible & attn_mask
    return np.einsum("bhnm,bmhd->bnhd", masked_softmax(scores, visible), value)


def added(query, key, value, bias=None):
    scores = query @ key.swapaxes(-1, -2) / math.sqrt(query.shape[-1])
    scores = scores if bias is None else scores + bias
    return masked_softmax(scores, scores > -np.inf) @ value


def in_turns(query, key, value):
    """Share a head of keys with every other head of queries, as x-transformers does."""
    own = np.arange(query.shape[1]) % key.shape[1] if query.ndim == 4 else slice(None)
    return attention(query, key[:, own], value[:, own]).output


def plain(q, k, v, mask, extra=0):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + extra
    return masked_softmax(scores, np.ones(scores.shape, bool) if mask is None else mask)


def upside_down(query, key, value, mask=None, causal=False):
    return attention(query, key, value, mask=None if mask is None else ~mask, causal=causal)


def full_masks_only(q, k, v, mask=None):
    assert mask is None or mask.shape == (*q.shape[:-1], k.shape[-2])
    return plain(q, k, v, mask) @ v


def tables_only(q, k, v, mask=None):
    assert mask is None or mask.ndim == 2
    return plain(q, k, v, mask) @ v


def in_order_only(query, key, value):
    if not key.flags.c_contiguous:
        raise ValueError("the keys must be contiguous")
    return attention(query, key, value).output


def looks_around(q, k, v, causal=False, window_size=(-1, -1)):
    """Take how many keys may be seen before and after one's own, as FlashAttention does."""
    n, m = q.shape[-2], k.shape[-2]
    back = np.arange(m - n, m)[:, None] - np.arange(m)
    before, after = (m if size < 0 else size for size in window_size)
    return attention(q, k, v, mask=(back <= before) & (-back <= after), causal=causal).output


def two_masks(combined):
    def two_masks(query, key, value, attn_mask=None, key_padding_mask=None, need_weights=True):
        padding = True if key_padding_mask is None else ~key_padding_mask[:, None]
        rows = True if attn_mask is None else attn_mask
        found = attention(query, key, value, mask=np.array([[True]]) & combined(rows, padding))
        return tuple(found) if need_weights else found.output

    return two_masks


def in_blocks(size, filled=False):
    def in_blocks(query, key, value, block_size=size):
        m = key.shape[-2] // block_size * block_size if filled else key.shape[-2]
        lots = [range(i, min(i + block_size, m)) for i in range(0, m, block_size)]
        seen = np.concatenate([np.array(lot) for lot in lots])
        return attention(query, key[..., seen, :], value[..., seen, :]).output

    return in_blocks


def of_one_sequence(x_q, x_k, x_v, num_heads):
    q, k, v = (x.reshape(len(x), num_heads, -1).swapaxes(0, 1) for x in (x_q, x_k, x_v))
    return attention(q, k, v).output.swapaxes(0, 1).reshape(len(x_q), -1)


top_left = with_part(earlier=lambda n, m: np.tri(n, m, dtype=bool))
RIGHT = {
    "as it is": (attention, {}),
    "in parts": (attend, {}),
    "one sequence (n, d)": (
        lambda query, key, value: masked_softmax(query @ key.T / key.shape[1] ** 0.5) @ value, {}),
    "einsum": (einsum, {}),
    "causal": (lambda query, key, value: attention(query, key, value, causal=True).output, {}),
    "padding, True = hidden": (lambda query, key, value, key_padding_mask=None: attention(
        query, key, value, mask=None if key_padding_mask is None else ~key_padding_mask[:, None]),
        {}),
    "in single precision": (lambda query, key, value, mask=None, causal=False: attention(
        *(x.astype(np.float32) for x in (query, key, value)), mask=mask, causal=causal
    ).output.astype(query.dtype), {}),
    "loops": (lambda query, key, value: by_loops(
        query, key, value, np.ones((len(query), len(key)), bool)), {}),
    "full masks": (full_masks_only, {}),
    "tables": (tables_only, {}),
    "another order": (
        lambda value, key, query, mask=None: plain(query, key, value, mask) @ value, {}),
    "values first": (lambda values, keys, query: attention(query, keys, values).output, {}),
    "contiguous": (in_order_only, {}),
    "by name": (lambda *, query, key, value: plain(query, key, value, None) @ value, {}),
    "mask must be given": (lambda q, k, v, mask: plain(q, k, v, mask) @ v, {}),
    "causal if nothing is said": (lambda q, k, v, attention_mask=None, is_causal=True, **kwargs:
                                  attention(q, k, v, mask=attention_mask, causal=is_causal), {}),
    "a window on two sides": (looks_around, {}),
    "two masks": (two_masks(np.logical_and), {}),
    "in blocks": (in_blocks(2), {}),
    "heads of one sequence": (of_one_sequence, {}),
    "of a width": (lambda query, key, value: merge(attention(
        *(split(x @ np.eye(8), 2) for x in (query, key, value))).output), {"width": 8, "heads": 2}),
    "added": (added, {"mask": "additive"}),
    "hidden": (upside_down, {"mask": "hidden"}),
    "top left": (top_left, {"corner": "top-left"}),
    "nan without keys": (WRONG["nan"][0], {"no_keys": "any"}),
    "in turns": (in_turns, {"shared_heads": "turns"}),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_not_called_wrong(name):
    function, said = RIGHT[name]
    report = check_attention(function, **said)
    assert not report and "it_is_the_definition" in report.held, report
    if not FURTHER.keys() & {kind for kind in FURTHER if FURTHER[kind].__name__ in report.held}:
        assert len(report.held) + len(report.idle) == len(INVARIANTS)


@pytest.mark.parametrize(
    ("function", "advice"),
    [
        (upside_down, 'mask="hidden"'),
        (in_turns, 'shared_heads="turns": then nothing is broken'),
        (top_left, 'corner="top-left"'),
    ],
)
def test_another_convention_is_said_to_be_one(function, advice):
    report = check_attention(function)
    assert report and advice in report.advice, report


FURTHER_SLIPS = [  # in what they are asked for
    lambda q, k, v, mask: plain(2 * q, k, v, mask) @ v,
    lambda q, k, v, is_causal=True: attention(q, k, v).output,
    lambda q, k, v, causal=False, window_size=(-1, -1): looks_around(
        q, k, v, causal, (window_size[0] + 1, -1)),
    two_masks(lambda rows, padding: rows if padding is True else padding),
    in_blocks(2, filled=True),
    lambda q, k, v, block=64: in_blocks(64, filled=block < k.shape[-2])(q, k, v, block),
    lambda q, k, v, num_heads: attention(q, k, v).output,
    lambda q, k, v: in_order_only(2 * q, k, v),
]  # fmt: skip


def weights_of_before(q, k, v, mask=None):
    return plain(q, k, v, mask) @ v, plain(q, k, v, None)


def scaled_with_its_bias(q, k, v, attn_mask=None):
    added = 0 if attn_mask is None else attn_mask / np.sqrt(q.shape[-1])
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + added) @ v


def zero_times_infinity(q, k, v, mask=None):
    with np.errstate(invalid="ignore"):
        extra = 0 if mask is None else ~mask * -np.inf
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + extra) @ v


def swapped_without_scale(q, k, v, mask=None):
    q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
    return (plain(q * np.sqrt(q.shape[-1]), k, v, mask) @ v).swapaxes(1, 2)


def remembered():
    """Return a function whose keys of earlier calls stay, in a list that is made only once."""

    def call(query, key, value, *, cache=[]):  # noqa: B006
        last = cache[-1] if cache else (key[:, :0], value[:, :0])
        if last[0].shape[::2] != key.shape[::2] or last[1].shape[::2] != value.shape[::2]:
            last = key[:, :0], value[:, :0]
        cache.append([np.append(x, y, axis=1) for x, y in zip(last, (key, value), strict=True)])
        return attention(query, *cache[-1]).output

    return call


def padding_of_queries(query, key, value, key_padding_mask=None):
    n, m = query.shape[1], key.shape[1]
    mask = None if key_padding_mask is None else ~np.resize(key_padding_mask, (len(key), n, 1))
    return attention(query, key, value, mask=mask if mask is None else mask.repeat(m, 2)).output


def largest_of_all(query, key, value):
    scores = score(query, key)
    e = np.exp(scores - scores.max())
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total > 0, total, 1) @ value


def full_width(query, key, value):
    """Divide by the root of the width of all heads, in a layer that makes them."""
    q, k, v = (x.reshape(*x.shape[:2], 3, 4).swapaxes(1, 2) for x in (query, key, value))
    heads = attention(q * np.sqrt(4 / query.shape[-1]), k, v).output
    return heads.swapaxes(1, 2).reshape(query.shape)


def test_a_layer_that_makes_heads_is_given_none():
    report = check_attention(full_width, width=12, heads=3)
    assert report.exhibit.name == "wrong width" and "n, d)" in report.conventions["layout"], report


def test_a_layout_in_which_masks_are_not_taken_is_left():
    report = check_attention(padding_of_queries)
    assert report.conventions["layout"] == "(batch, n, d)", report
    assert "inputs_are_left_alone" in report.held, report


def test_what_is_kept_of_other_calls_is_no_dropout():
    report = check_attention(remembered(), layout="batch n d")
    assert "the_same_call_gives_the_same" in report.names and not report.exhibit, report
    report = check_attention(remembered())
    assert "a call that worked fails later on" in str(report), report


def test_a_convention_explains_nothing_that_it_leaves_broken():
    def wide(q, k, v, causal=False, window=None):
        return attention(q, k, v, causal=causal and window is None).output

    assert check_attention(wide).names == ["a_window_that_covers_all_is_no_window"]
    assert not check_attention(wide).advice
    declared = check_attention(attention, corner="top-left", shared_heads="turns")
    assert 'corner="bottom-right"' in declared.advice


turned_mask = two_masks(lambda rows, pad: rows & (pad if pad is True else ~pad))
mask_alone = functools.partial(
    top_left, combine=lambda s, m, c: combine(s, m, c if m is None else None)
)
other_weights = lambda q, k, v: (plain(q, k, v, None) @ v, 2 * plain(q, k, v, None))  # noqa: E731


@pytest.mark.parametrize(
    ("function", "exhibit", "said"),
    [
        *((slip, ..., {}) for slip in FURTHER_SLIPS),
        (two_masks(lambda rows, padding: rows), "the mask is ignored", {}),
        (turned_mask, "upside down", {}),
        (largest_of_all, "rows that vanish", {}),
        (weights_of_before, "other weights", {}),
        (other_weights, "other weights", {}),
        (mask_alone, "the mask replaces the causal rule", {"corner": "top-left"}),
        (scaled_with_its_bias, None, {"mask": "additive", "no_keys": "any"}),
        (zero_times_infinity, "0 times infinity", {}),
        (swapped_without_scale, "no scale", {}),
    ],
)
def test_further_slips_are_found_and_named(function, exhibit, said):
    is_found(function, exhibit, **said)


def windowed(off, ahead=False):
    def windowed(query, key, value, sliding_window=None):
        n, m = query.shape[-2], key.shape[-2]
        back = np.arange(m - n, m)[:, None] - np.arange(m)
        near = True if sliding_window is None else back < sliding_window + off
        earlier = (back >= 0) | (ahead and sliding_window is not None)
        return attention(query, key, value, mask=earlier & near).output

    return windowed


def masked_in_one_part_only(query, key, value, mask=None, parts=1):
    return attention(query, key, value, mask=mask if parts == 1 else None).output


def in_parts(shared):
    def in_parts(query, key, value, parts=1):
        lots = np.array_split(np.arange(key.shape[-2]), parts)
        lots = [lot if i == 0 else np.append(np.arange(shared), lot) for i, lot in enumerate(lots)]
        scores = [query @ key[..., lot, :].swapaxes(-1, -2) / key.shape[-1] ** 0.5 for lot in lots]
        highest = np.max([score.max(axis=-1, keepdims=True) for score in scores], axis=0)
        e = [np.exp(score - highest) for score in scores]
        sums = [x @ value[..., lot, :] for x, lot in zip(e, lots, strict=True)]
        return sum(sums) / sum(x.sum(axis=-1, keepdims=True) for x in e)

    return in_parts


def for_weights(rule):
    def for_weights(query, key, value, causal=False, need_weights=False):
        result = attention(query, key, value, causal=causal and (rule or not need_weights))
        return tuple(result) if need_weights else result.output

    return for_weights


ASKED = {  # right, and what is wrong with the exhibit that it is
    "window": (windowed(0), {
        "a window of one key too many": windowed(1),
        "a window of one key too few": windowed(-1),
        "another window": windowed(0, ahead=True),
    }),
    "parts": (in_parts(0), {
        "a ring counts the shared keys twice": in_parts(1),
        "other rules in parts": masked_in_one_part_only,
    }),
    "weights": (for_weights(True), {
        "whoever asks for the weights gets other ones": for_weights(False),
    }),
}  # fmt: skip


@pytest.mark.parametrize("kind", ASKED)
def test_further_arguments_are_tried(kind):
    name, (right, wrong) = FURTHER[kind].__name__, ASKED[kind]
    report = check_attention(right)
    assert not report and name in report.held, report
    for exhibit, one in wrong.items():
        report = check_attention(one)
        assert name in report.names and report.exhibit.name == exhibit, report
    report = check_attention(einsum)
    assert name not in {*report.held, *report.idle}


def half(query, key, value):
    return attention(query, key, value)[0].astype(np.float16)


def slow(query, key, value):
    time.sleep(0.1)
    return attention(query, key, value)[0]


def test_what_is_found_out_is_said():
    for function, convention, words in (
        (einsum, "layout", "(batch, n, heads, d)"),
        (einsum, "mask", "attn_mask"),
        (RIGHT["causal"][0], "causal", "always"),
        (RIGHT["in single precision"][0], "precision", "computed in single precision"),
        (half, "precision", "float16 returned"),
        (slow, "time", "slow"),
    ):
        assert words in check_attention(function).conventions[convention], words


def test_a_report_is_a_sequence_and_json():
    report = check_attention(WRONG["√ of the number of heads"][0])
    assert report.names == [finding.name for finding in report] == ["it_is_the_definition"]
    assert report[0].inputs["query"].size <= 4, "the smallest input that shows it"
    told = json.loads(report.to_json())
    assert told["broken"][0]["invariant"] == "it_is_the_definition" and not told["holds"]
    assert json.loads(check_attention(WRONG["nan"][0]).to_json())["broken"][0]["got"] is not None
    report = check_attention(attention)
    assert not report and json.loads(report.to_json())["holds"]


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda query, key, value: 1 / 0, "ZeroDivisionError"),
        (lambda query, key, value: sys.exit(3), "it ended the program, with sys.exit(3)"),
        (lambda query, key, value: value + 0j, "it returned complex"),
        (lambda query, key, value: None, "is a return missing"),
        (lambda query, key, value: "no", "it returned str; expected an array of real numbers"),
        (lambda query, key, value: query @ key.swapaxes(-1, -2), "expected"),
        (lambda query, key, value: (), "empty tuple"),
        (lambda query, key, value, w_o: value, "w_o"),
        (lambda: 1, "argument"),
        (lambda x: x, "could not be called"),
    ],
)
def test_what_cannot_be_attention_is_said_in_words(function, words):
    report = check_attention(function)
    assert report and words in repr(report), report


def test_an_argument_that_is_not_understood_is_named():
    report = check_attention(lambda q, k, v, bias=None: plain(q, k, v, None) @ v)
    assert "bias" in report.conventions["not understood"]


REFUSED = [
    (attention, {"layout": "n h d"}, "layout must be one of 'batch heads n d'"),
    (attention, {"mask": "True"}, "mask must be one of 'attend'"),
    (attention, {"corner": "left"}, "corner must be one of"),
    (attention, {"arrays": "mxnet"}, "arrays must be one of"),
    (attention, {"no_keys": "nan"}, "no_keys must be one of"),
    (attention, {"always_causal": "yes"}, "always_causal must be one of"),
    (attention, {"width": 0}, "width must be a whole number from 1 on; got 0"),
    (tables_only, {"names": {"foo": "mask"}}, "no 'foo', only mask"),
    (tables_only, {"names": {"mask": "nope"}}, "no argument 'nope'"),
    (lambda q, k, v, rule=None: v, {"mask": "additive"}, "no argument is known to be a mask"),
    (3, {}, "attend must be a function, got int"),
    (Remembering, {}, "attend must be a function, got the class Remembering"),
]


@pytest.mark.parametrize(("function", "said", "words"), REFUSED)
def test_what_cannot_be_meant_is_refused_in_words(function, said, words):
    with pytest.raises(ValueError if said else TypeError, match=words):
        check_attention(function, **said)


def swallowing(query, key, value, mask=None, **options):
    return attention(query, key, value, mask=mask)[0]


def test_a_name_that_is_taken_and_not_read_is_no_argument():
    report = check_attention(swallowing)
    assert not report and report.conventions["causal"] == "no such argument", report

    def reading(query, key, value, **options):  # of the same kind, and it looks too far
        return attention(query, key, value, mask=np.tri(query.shape[-2], key.shape[-2], 1) > 0)[0]

    def choosing(*inputs, **options):
        return (reading if options.get("causal") else swallowing)(*inputs, **options)

    assert "a_later_token_changes_nothing" in check_attention(choosing).names


@needs_torch
def test_the_frameworks_own():
    import torch

    fused = torch.nn.functional.scaled_dot_product_attention
    report = check_attention(fused)
    assert report.names == ["it_is_the_definition", "one_at_a_time_is_all_at_once"]
    assert report.exhibit.name == "wrong corner" and "top-left" in report.advice
    for mask in "attend", "additive":
        assert not check_attention(fused, corner="top-left", mask=mask)
    assert check_attention(fused, corner="top-left", mask="hidden")

    def filled(query, key, value, mask=None):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        scores = scores if mask is None else scores.masked_fill(mask == 0, -1e9)
        return scores.softmax(dim=-1) @ value

    report = check_attention(filled, no_keys="any")
    assert report.exhibit.name == "a very negative number" and "half" in report.exhibit.shows
    threads = torch.get_num_threads()
    check_attention(attention, arrays="torch")
    assert torch.get_num_threads() == threads


@needs_torch
@pytest.mark.parametrize("batch_first", [True, False])
def test_the_frameworks_layer_is_taken_as_it_is(batch_first):
    """Its one fault is known: with weights, a query without keys gets nan (pytorch#41508)."""
    import torch

    layer = torch.nn.MultiheadAttention(12, 3, batch_first=batch_first)
    before = layer.in_proj_weight.clone()
    report = check_attention(layer)
    assert report.names == ["a_query_without_keys_gets_nothing"]
    assert report.exhibit.name == "a query with no key"
    assert torch.equal(layer.in_proj_weight, before), "it was checked in a copy"
    assert not check_attention(layer, no_keys="any")


@needs_torch
def test_a_layer_that_is_more_than_attention_is_refused_in_words():
    import torch

    wide = check_attention(torch.nn.MultiheadAttention(4, 2, kdim=3, vdim=3))
    assert "keys and values must be as wide as queries" in repr(wide)
    more = check_attention(torch.nn.MultiheadAttention(4, 2, add_zero_attn=True))
    assert "add_zero_attn" in repr(more)


# A language model from outside: a weighted average of embeddings, and five ways to spoil it.

EMBEDDING = np.random.default_rng(3).normal(size=(6, 4))


def read(ids, mask=None, causal=True):
    x = EMBEDDING[ids]
    mask = None if mask is None else mask[:, None]
    return attention(x, x, x, mask=mask, causal=causal).output @ EMBEDDING.T


def step(ids, cache):
    seen = ids if cache is None else np.concatenate([cache, ids], axis=1)
    return read(seen)[:, -ids.shape[1] :], seen


def forgets_the_mask(ids, cache):
    """Read a chunk after the first without a causal rule, as TinyLLM#17 did."""
    seen = ids if cache is None else np.concatenate([cache, ids], axis=1)
    return read(seen, causal=cache is None)[:, -ids.shape[1] :], seen


def from_the_top_left(ids, cache):
    seen = ids if cache is None else np.concatenate([cache, ids], axis=1)
    q, k = EMBEDDING[ids], EMBEDDING[seen]
    rule = np.tri(ids.shape[1], seen.shape[1], dtype=bool)
    return attention(q, k, k, mask=rule).output @ EMBEDDING.T, seen


def forgets_the_first(ids, cache):
    scores, seen = step(ids, cache)
    return scores, seen[:, -4:]


def rolls_dice(ids):
    return read(ids) + dice.normal(size=(*ids.shape, 6))


def padding_is_counted(ids, mask):
    places = np.arange(ids.shape[1])
    shifted = places + np.argmax(mask, axis=1)[:, None] % 2
    return read(ids, mask) + shifted[..., None]


def looks_ahead(far):
    def looks_ahead(ids):
        x, n = EMBEDDING[ids], ids.shape[1]
        return attention(x, x, x, mask=np.tri(n, n, far, dtype=bool)).output @ EMBEDDING.T

    return looks_ahead


def test_a_right_language_model_passes():
    report = check_language_model(read, vocabulary=6, step=step, padded=read)
    assert not report and len(report.held) == 5, report
    assert check_language_model(read, vocabulary=6).idle == (CHUNKS, PADDED)


CHUNKS, PADDED = "one_chunk_or_two_the_same", "padding_left_or_right_the_same"
LATER, SAME = "a_later_token_changes_nothing", "the_same_call_gives_the_same"
WRONG_MODELS = [
    (looks_ahead(1), {}, LATER, "sees the next token"),
    (looks_ahead(9), {}, LATER, "never causal"),
    (lambda ids: None, {}, LATER, None),
    (lambda ids: sys.exit("no"), {}, LATER, None),
    (lambda ids: read(ids) - read(ids).mean(0), {}, "each_sequence_stands_alone", None),
    (rolls_dice, {}, SAME, "dropout that never stops"),
    (read, {"step": forgets_the_mask}, CHUNKS, "the prompt is read without a mask"),
    (read, {"step": from_the_top_left}, CHUNKS, "wrong corner"),
    (read, {"step": forgets_the_first}, CHUNKS, "another model with a cache"),
    (read, {"padded": lambda ids, mask: read(ids)}, PADDED, "the mask is ignored"),
    (read, {"padded": padding_is_counted}, PADDED, "padding on the left moves everything"),
]


@pytest.mark.parametrize("model, options, broken, exhibit", WRONG_MODELS)
def test_a_wrong_language_model_is_found(model, options, broken, exhibit):
    report = check_language_model(model, vocabulary=6, **options)
    assert broken in report.names, report
    assert (report.exhibit and report.exhibit.name) == exhibit


@pytest.mark.parametrize(
    "model, options, error, words",
    [
        (read, {"vocabulary": 1}, ValueError, "vocabulary must be at least 2, got 1"),
        (read, {"vocabulary": 6.0}, TypeError, "vocabulary must be a whole number, got 6.0"),
        (read, {"vocabulary": 6, "tolerance": 0}, ValueError, "tolerance must be positive"),
        (read, {"vocabulary": 6, "step": 3}, TypeError, "step must be a function, got int"),
        (None, {"vocabulary": 6}, TypeError, "model must be a function, got NoneType"),
        (Remembering, {"vocabulary": 6}, TypeError, "got the class Remembering"),
    ],
)
def test_what_cannot_be_a_language_model_is_refused(model, options, error, words):
    with pytest.raises(error, match=words):
        check_language_model(model, **options)


@pytest.mark.parametrize(
    "model, options, words",
    [
        (lambda ids: (read(ids),), {}, r"expected scores (3, 9, vocabulary), got tuple"),
        (lambda ids: read(ids)[:1], {}, "got shape (1, 9, 6)"),
        (lambda ids: read(ids)[:, -1], {}, "got shape (3, 6)"),
        (read, {"step": lambda ids, cache: read(ids)}, "step must return scores and the cache"),
        (lambda ids: np.eye(99)[ids] * dice.random(), {}, "of id"),
    ],
)
def test_what_a_language_model_may_not_return_is_said(model, options, words):
    assert words in repr(check_language_model(model, vocabulary=6, **options))


# From a shell, and in pytest.


def test_the_command_says_what_is_broken_and_ends_so(capsys, tmp_path):
    assert main(["d2lmini:attention"]) == 0
    assert "all 9 invariants hold" in capsys.readouterr().out
    file = tmp_path / "layers.py"
    file.write_text(
        "def mine(query, key, value):\n    return query @ key.swapaxes(-1, -2) @ value\n"
    )
    assert main([f"{file}:mine", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["broken"]
    assert main(["d2lmini:attention", "--mask", "hidden"]) == 1
    capsys.readouterr()


@pytest.mark.parametrize(
    "name, words",
    [
        ("attention", "should be module:function"),
        ("no_such_module:attention", "cannot be imported"),
        ("d2lmini:no_such_name", "has no no_such_name"),
        ("d2lmini:__name__", "is no function, but str"),
        ("pathlib:Path", "is a class"),
        ("no_such_folder/mine.py:wrong", "there is no file"),
        ("FOLDER/mine.py:wrong", "cannot be imported: SyntaxError"),
        ("FOLDER/ends.py:wrong", "cannot be imported: SystemExit"),
    ],
)
def test_the_command_says_in_a_line_what_it_cannot_find(name, words, capsys, tmp_path):
    (tmp_path / "mine.py").write_text("def (")
    (tmp_path / "ends.py").write_text("exit(0)")
    assert main([name.replace("FOLDER", str(tmp_path))]) == 2
    assert words in capsys.readouterr().err


def test_two_files_of_one_name_are_two(capsys, tmp_path):
    for folder, scale in ("right", 1), ("wrong", 2):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "mine.py").write_text(
            "from d2lmini import attention\n\ndef mine(query, key, value):\n"
            f"    return attention({scale} * query, key, value)\n"
        )
    assert main([f"{tmp_path}/right/mine.py:mine"]) == 0
    assert main([f"{tmp_path}/wrong/mine.py:mine"]) == 1
    capsys.readouterr()


def test_the_plugin_makes_a_test_of_each_invariant(tmp_path):
    (tmp_path / "test_mine.py").write_text(
        "from d2lmini import attention\n\n"
        "def test_it(check_attention):\n    check_attention(attention)\n"
    )
    (tmp_path / "mine.py").write_text(
        "from d2lmini import attention\n\ndef wrong(query, key, value, mask=None, causal=False):\n"
        "    return attention(2 * query, key, value, mask=mask, causal=causal)\n"
        "def hidden(query, key, value, mask=None):\n"
        "    return attention(query, key, value, mask=None if mask is None else ~mask)\n"
        "def fails(query, key, value):\n    return 1 / 0\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    if "d2lmini" not in {point.name for point in entry_points(group="pytest11")}:
        command += ["-p", "d2lmini.testing.plugin"]  # an older install

    def run(*functions):
        said = [word for name in functions for word in ("--attention", name)]
        return subprocess.run([*command, *said], cwd=tmp_path, capture_output=True, text=True)

    ran = run("mine:wrong", "mine:hidden --mask hidden", "mine:fails")
    assert ran.returncode == 1
    assert "2 failed, 16 passed, 2 skipped" in ran.stdout, ran.stdout
    assert "FAILED attention::it_is_the_definition[mine:wrong]" in ran.stdout
    assert "FAILED attention::it_can_be_called[mine:fails]" in ran.stdout
    ran = run("mine:hidden --mask no")
    assert ran.returncode == 4 and "invalid choice: 'no'" in ran.stderr, ran
