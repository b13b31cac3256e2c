"""The committed parts of two real models: what they hold, and that damage is noticed."""

import hashlib
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest

import d2lmini
from d2lmini import attention, rotary
from d2lmini.models import load_lookup, load_readings, stored

DATA = Path(d2lmini.__file__).parent / "data"
READINGS = load_readings()
LOOKUP = load_lookup()


@pytest.mark.parametrize("name", stored.SHA256)
def test_the_hash_in_the_code_is_that_of_the_file(name):
    found = hashlib.sha256((DATA / name).read_bytes()).hexdigest()
    assert found == stored.SHA256[name]
    assert found in (DATA / "README.md").read_text("utf8")


@pytest.mark.parametrize("load", [load_readings, load_lookup, d2lmini.models.MiniLMLayer.load])
def test_a_damaged_file_is_refused(load, monkeypatch, tmp_path):
    """One bit in the middle of the weights, which would still be read."""
    (tmp_path / "data").mkdir()
    for name in stored.SHA256:
        content = bytearray((DATA / name).read_bytes())
        content[len(content) // 2] ^= 1
        (tmp_path / "data" / name).write_bytes(content)
    monkeypatch.setattr(stored, "files", lambda package: tmp_path)
    with pytest.raises(ValueError, match=r"npz is damaged: its sha256 is .*, not .*install"):
        load()


@pytest.mark.parametrize("text", READINGS)
def test_readings_are_causal_weights_and_probabilities(text):
    pieces, weights, next_pieces = READINGS[text]
    n = len(pieces)
    assert "".join(pieces) == text
    assert weights.shape == (30, 9, n, n)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=5e-3)  # of float16
    assert (np.triu(weights, 1) == 0).all()
    chances = [chance for _, chance in next_pieces]
    assert len(chances) == 5
    assert chances[0] <= 1 and chances == sorted(chances, reverse=True) and sum(chances) < 1.001


def test_what_the_chapter_claims_of_the_lookup():
    pieces, weights, next_pieces = READINGS[LOOKUP.text]
    assert next_pieces[0][0] == LOOKUP.answer == "by"
    assert weights[18, 6, -1, pieces.index("by")] > 0.98
    assert weights[16, 0, -1, -2] > 0.95
    assert LOOKUP.order[0] == (19, 7)
    assert LOOKUP.without_first[0] > 0.99 > 0.3 > LOOKUP.without_first[8]
    assert LOOKUP.without_others.min() > 0.99
    assert np.argwhere(LOOKUP.without_one < 0.9).tolist() == [[0, 8], [1, 0], [16, 0]]


@pytest.mark.parametrize("name", LOOKUP.heads)
def test_a_stored_head_gives_the_stored_weights(name):
    states, gain, w_q, w_k, w_v = LOOKUP.heads[name]
    h = states / np.sqrt((states**2).mean(axis=-1, keepdims=True) + 1e-5) * gain
    query, key = (rotary(h @ w, base=100_000.0) for w in (w_q, w_k))
    found = attention(query, key, h @ w_v, causal=True).weights
    layer, head = name
    expected = READINGS[LOOKUP.text].weights[layer - 1, head - 1]
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_the_texts_are_those_of_the_builder(monkeypatch):
    scripts = Path(__file__).parents[2] / "scripts" / "data"
    monkeypatch.syspath_prepend(str(scripts))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert runpy.run_path(str(scripts / "build_smollm.py"))["TEXTS"] == tuple(READINGS)
    del sys.modules["_shared"]  # a script beside it, which other tests load for themselves
