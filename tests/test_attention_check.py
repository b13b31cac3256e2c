"""`check_attention` finds wrong attentions and names them; it calls none wrong that is right."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
from broken import WRONG, Remembering, dice, with_part
from comparing import needs_torch

from d2lmini import attention, masked_softmax, softmax, tiled_attention
from d2lmini.testing import EXHIBITS, FURTHER, INVARIANTS, check_attention, check_language_model
from d2lmini.testing.__main__ import main
from d2lmini.testing.museum import score

# Right ones, of each convention


def plain(q, k, v, mask):
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    return masked_softmax(scores, np.ones(scores.shape, bool) if mask is None else mask)


def einsum(query, key, value, attn_mask=None, is_causal=False):
    """Take (batch, n, heads, d), with the subscripts of einsum."""
    scores = np.einsum("bnhd,bmhd->bhnm", query, key) / math.sqrt(query.shape[-1])
    n, m = scores.shape[-2:]
    visible = np.tri(n, m, m - n if is_causal else m, dtype=bool)
    visible = visible if attn_mask is None else visible & attn_mask
    return np.einsum("bhnm,bmhd->bnhd", masked_softmax(scores, visible), value)


def in_turns(query, key, value):
    """Share a head of keys with every other head of queries, as x-transformers does."""
    own = np.arange(query.shape[1]) % key.shape[1] if query.ndim == 4 else slice(None)
    return attention(query, key[:, own], value[:, own]).output


def upside_down(query, key, value, mask=None, causal=False):
    return attention(query, key, value, mask=None if mask is None else ~mask, causal=causal)


def masks_of(ndim):
    def takes(q, k, v, mask=None):
        assert mask is None or mask.ndim == ndim
        return plain(q, k, v, mask) @ v

    return takes


def two_masks(combined):
    def two_masks(query, key, value, attn_mask=None, key_padding_mask=None, need_weights=True):
        padding = True if key_padding_mask is None else ~key_padding_mask[:, None]
        rows = True if attn_mask is None else attn_mask
        found = attention(query, key, value, mask=np.array([[True]]) & combined(rows, padding))
        return tuple(found) if need_weights else found.output

    return two_masks


def swallowing(query, key, value, mask=None, **options):
    return attention(query, key, value, mask=mask)[0]


top_left = with_part(earlier=lambda n, m: np.tri(n, m, dtype=bool))
RIGHT = {
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
    "full masks": (masks_of(4), {}),
    "tables": (masks_of(2), {}),
    "another order": (
        lambda value, key, query, mask=None: plain(query, key, value, mask) @ value, {}),
    "by name": (lambda *, query, key, value: plain(query, key, value, None) @ value, {}),
    "mask must be given": (lambda q, k, v, mask: plain(q, k, v, mask) @ v, {}),
    "causal if nothing is said": (lambda q, k, v, attention_mask=None, is_causal=True, **kwargs:
                                  attention(q, k, v, mask=attention_mask, causal=is_causal), {}),
    "names that are not read": (swallowing, {}),
    "two masks": (two_masks(np.logical_and), {}),
    "in blocks": (lambda query, key, value, block_size=2: tiled_attention(
        query, key, value, block_size=block_size), {}),
    "hidden": (upside_down, {"mask": "hidden"}),
    "top left": (top_left, {"corner": "top-left"}),
    "nan without keys": (WRONG["nan"][1], {"no_keys": "any"}),
    "in turns": (in_turns, {"shared_heads": "turns"}),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_not_called_wrong(name):
    function, said = RIGHT[name]
    report = check_attention(function, **said)
    assert not report and "it_is_the_definition" in report.held, report


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


# Wrong ones, besides those of ``broken.py``: in what only some functions can be asked for


def largest_of_all(query, key, value):
    scores = score(query, key)
    e = np.exp(scores - scores.max())
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total > 0, total, 1) @ value


def zero_times_infinity(q, k, v, mask=None):
    with np.errstate(invalid="ignore"):
        extra = 0 if mask is None else ~mask * -np.inf
    return softmax(q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1]) + extra) @ v


FURTHER_SLIPS = {
    "causal by default, and not": (..., lambda q, k, v, is_causal=True: attention(q, k, v).output),
    "a number of heads that is not used": (
        ..., lambda q, k, v, num_heads: attention(q, k, v).output),
    "padding ignored": ("the mask is ignored", two_masks(lambda rows, padding: rows)),
    "padding turned": ("upside down", two_masks(
        lambda rows, pad: rows & (pad if pad is True else ~pad))),
    "the largest of all": ("rows that vanish", largest_of_all),
    "weights of before": ("other weights", lambda q, k, v, mask=None: (
        plain(q, k, v, mask) @ v, plain(q, k, v, None))),
    "0 · ∞": ("0 times infinity", zero_times_infinity),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG | FURTHER_SLIPS)
def test_what_is_wrong_is_found(name):
    exhibit, function = (WRONG | FURTHER_SLIPS)[name]
    report = check_attention(function)
    assert report.names, "nothing is found"
    assert report[0].says and report[0].case and report[0].expected is not None
    if exhibit is not ...:
        assert (report.exhibit and report.exhibit.name) == exhibit, report


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.name)
def test_an_exhibit_is_named(exhibit):
    report = check_attention(exhibit)
    assert report.exhibit is not None and report.exhibit.name == exhibit.name
    assert exhibit.shows in repr(report)


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


def in_parts(again):
    """Take the first key again with each further part, as if they shared it."""

    def in_parts(query, key, value, parts=1):
        seen = np.append(np.zeros(again * (parts - 1), dtype=int), np.arange(key.shape[-2]))
        return attention(query, key[..., seen, :], value[..., seen, :]).output

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


# What is said


def test_what_is_found_out_is_said():
    for function, convention, words in (
        (einsum, "layout", "(batch, n, heads, d)"),
        (RIGHT["causal"][0], "causal", "always"),
        (swallowing, "causal", "no such argument"),
        (RIGHT["in single precision"][0], "precision", "computed in single precision"),
        (lambda q, k, v: attention(q, k, v)[0].astype(np.float16), "precision", "float16 returned"),
        (lambda q, k, v, bias=None: plain(q, k, v, None) @ v, "not understood", "bias"),
    ):
        assert words in check_attention(function).conventions[convention], words


def test_a_report_is_a_sequence_and_json():
    report = check_attention(WRONG["√ of the number of heads"][1])
    assert report.names == [finding.name for finding in report] == ["it_is_the_definition"]
    assert report[0].inputs["query"].size <= 4, "the smallest input that shows it"
    told = json.loads(report.to_json())
    assert told["broken"][0]["invariant"] == "it_is_the_definition" and not told["holds"]
    assert json.loads(check_attention(WRONG["nan"][1]).to_json())["broken"][0]["got"] is not None
    report = check_attention(attention)
    assert not report and json.loads(report.to_json())["holds"]
    assert len(report.held) == len(INVARIANTS)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda query, key, value: 1 / 0, "ZeroDivisionError"),
        (lambda query, key, value: sys.exit(3), "it ended the program, with sys.exit(3)"),
        (lambda query, key, value: None, "is a return missing"),
        (lambda query, key, value, w_o: value, "w_o"),
        (lambda x: x, "could not be called"),
    ],
)
def test_what_cannot_be_attention_is_said_in_words(function, words):
    report = check_attention(function)
    assert report and words in repr(report), report


REFUSED = [
    (attention, {"layout": "n h d"}, "layout must be one of 'batch heads n d'"),
    (masks_of(2), {"names": {"mask": "nope"}}, "no argument 'nope'"),
    (lambda q, k, v, rule=None: v, {"mask": "additive"}, "no argument is known to be a mask"),
    (3, {}, "attend must be a function, got int"),
    (Remembering, {}, "attend must be a function, got the class Remembering"),
]


@pytest.mark.parametrize(("function", "said", "words"), REFUSED)
def test_what_cannot_be_meant_is_refused_in_words(function, said, words):
    with pytest.raises(ValueError if said else TypeError, match=words):
        check_attention(function, **said)


@needs_torch
def test_the_frameworks_own():
    import torch

    fused = torch.nn.functional.scaled_dot_product_attention
    report = check_attention(fused)
    assert report.names == ["it_is_the_definition", "one_at_a_time_is_all_at_once"]
    assert report.exhibit.name == "wrong corner" and "top-left" in report.advice
    for mask in "attend", "additive":
        assert not check_attention(fused, corner="top-left", mask=mask)

    def filled(query, key, value, mask=None):
        scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
        scores = scores if mask is None else scores.masked_fill(mask == 0, -1e9)
        return scores.softmax(dim=-1) @ value

    report = check_attention(filled, no_keys="any")
    assert report.exhibit.name == "a very negative number" and "half" in report.exhibit.shows


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
    wide = check_attention(torch.nn.MultiheadAttention(4, 2, kdim=3, vdim=3))
    assert "keys and values must be as wide as queries" in repr(wide)


# A language model from outside: a weighted average of embeddings, and ways to spoil it

EMBEDDING = np.random.default_rng(3).normal(size=(6, 4))
CHUNKS, PADDED = "one_chunk_or_two_the_same", "padding_left_or_right_the_same"
LATER, SAME = "a_later_token_changes_nothing", "the_same_call_gives_the_same"


def read(ids, mask=None, causal=True):
    x = EMBEDDING[ids]
    mask = None if mask is None else mask[:, None]
    return attention(x, x, x, mask=mask, causal=causal).output @ EMBEDDING.T


def step(ids, cache, causal=True, keep=0):
    seen = ids if cache is None else np.concatenate([cache, ids], axis=1)
    return read(seen, causal=causal)[:, -ids.shape[1] :], seen[:, -keep:]


def from_the_top_left(ids, cache):
    seen = ids if cache is None else np.concatenate([cache, ids], axis=1)
    rule, x = np.tri(ids.shape[1], seen.shape[1], dtype=bool), EMBEDDING[seen]
    return attention(EMBEDDING[ids], x, x, mask=rule).output @ EMBEDDING.T, seen


def padding_is_counted(ids, mask):
    shifted = np.arange(ids.shape[1]) + np.argmax(mask, axis=1)[:, None] % 2
    return read(ids, mask) + shifted[..., None]


def looks_ahead(ids):
    x, n = EMBEDDING[ids], ids.shape[1]
    return attention(x, x, x, mask=np.tri(n, n, 1, dtype=bool)).output @ EMBEDDING.T


def test_a_right_language_model_passes():
    report = check_language_model(read, vocabulary=6, step=step, padded=read)
    assert not report and len(report.held) == 5, report
    assert check_language_model(read, vocabulary=6).idle == (CHUNKS, PADDED)


WRONG_MODELS = [
    (looks_ahead, {}, LATER, "sees the next token"),
    (lambda ids: read(ids, causal=False), {}, LATER, "never causal"),
    (lambda ids: read(ids) - read(ids).mean(0), {}, "each_sequence_stands_alone", None),
    (lambda ids: read(ids) + dice.normal(size=(*ids.shape, 6)), {}, SAME,
     "dropout that never stops"),
    (read, {"step": lambda ids, cache: step(ids, cache, causal=cache is None)}, CHUNKS,
     "the prompt is read without a mask"),  # as TinyLLM#17 did with a later chunk
    (read, {"step": from_the_top_left}, CHUNKS, "wrong corner"),
    (read, {"step": lambda ids, cache: step(ids, cache, keep=4)}, CHUNKS,
     "another model with a cache"),
    (read, {"padded": lambda ids, mask: read(ids)}, PADDED, "the mask is ignored"),
    (read, {"padded": padding_is_counted}, PADDED, "padding on the left moves everything"),
]  # fmt: skip


@pytest.mark.parametrize("model, options, broken, exhibit", WRONG_MODELS)
def test_a_wrong_language_model_is_found(model, options, broken, exhibit):
    report = check_language_model(model, vocabulary=6, **options)
    assert broken in report.names, report
    assert (report.exhibit and report.exhibit.name) == exhibit


@pytest.mark.parametrize(
    "model, options, words",
    [
        (lambda ids: (read(ids),), {}, r"expected scores (3, 9, vocabulary), got tuple"),
        (lambda ids: sys.exit("no"), {}, "no"),
        (read, {"step": lambda ids, cache: read(ids)}, "step must return scores and the cache"),
    ],
)
def test_what_cannot_be_a_language_model_is_said(model, options, words):
    assert words in repr(check_language_model(model, vocabulary=6, **options))
    with pytest.raises(ValueError, match="vocabulary must be at least 2, got 1"):
        check_language_model(model, vocabulary=1, **options)
    with pytest.raises(TypeError, match="model must be a function, got NoneType"):
        check_language_model(None, vocabulary=6)


# From a shell, and in pytest


@pytest.mark.parametrize(
    "function, ends, words",
    [
        ("d2lmini:attention", 0, "all 9 invariants hold"),
        ("d2lmini:attention --mask hidden", 1, "it_is_the_definition"),
        ("FOLDER/mine.py:mine --json", 1, '"holds": false'),
        ("attention", 2, "should be module:function"),
        ("no_such_module:attention", 2, "cannot be imported"),
        ("FOLDER/bad.py:wrong", 2, "cannot be imported: SyntaxError"),
    ],
)
def test_the_command_says_what_is_broken_or_cannot_be_found_and_ends_so(
    function, ends, words, capsys, tmp_path
):
    (tmp_path / "bad.py").write_text("def (")
    (tmp_path / "mine.py").write_text("def mine(query, key, value):\n    return value[..., :1, :]")
    assert main(function.replace("FOLDER", str(tmp_path)).split()) == ends
    assert words in "".join(capsys.readouterr())


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
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    command += ["--attention", "mine:wrong", "--attention", "mine:hidden --mask hidden"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 1
    assert "1 failed, 16 passed, 2 skipped" in ran.stdout, ran.stdout
    assert "FAILED attention::it_is_the_definition[mine:wrong]" in ran.stdout
