"""The committed parts of two real models: what they hold, and that damage is noticed."""

from pathlib import Path

import numpy as np
import pytest

import d2lmini
from d2lmini import attention, rotary
from d2lmini.models import MiniLMLayer, load_lookup, load_readings, load_trials, stored

DATA = Path(d2lmini.__file__).parent / "data"
READINGS = load_readings()
LOOKUP = load_lookup()
TRIALS = load_trials()


def test_a_damaged_file_is_refused(monkeypatch, tmp_path):
    """One bit in the middle of the weights, which would still be read."""
    (tmp_path / "data").mkdir()
    for name in stored.SHA256:
        content = bytearray((DATA / name).read_bytes())
        content[len(content) // 2] ^= 1
        (tmp_path / "data" / name).write_bytes(content)
    monkeypatch.setattr(stored, "files", lambda package: tmp_path)
    for load in load_readings, load_lookup, load_trials, MiniLMLayer.load:
        with pytest.raises(ValueError, match=r"npz is damaged: its sha256 is .*, not .*install"):
            load()


@pytest.mark.parametrize("text", READINGS)
def test_readings_are_causal_weights_and_probabilities(text):
    pieces, weights, next_pieces = READINGS[text]
    assert "".join(pieces) == text and weights.shape == (30, 9, *[len(pieces)] * 2)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=5e-3)  # of float16
    assert (np.triu(weights, 1) == 0).all()
    chances = [chance for _, chance in next_pieces]
    assert len(chances) == 5 and chances == sorted(chances, reverse=True) and sum(chances) < 1.001


@pytest.mark.parametrize("name", LOOKUP.heads)
def test_a_stored_head_gives_the_stored_weights(name):
    states, gain, w_q, w_k, w_v = LOOKUP.heads[name]
    h = states / np.sqrt((states**2).mean(axis=-1, keepdims=True) + 1e-5) * gain
    query, key = (rotary(h @ w, base=100_000.0) for w in (w_q, w_k))
    found = attention(query, key, h @ w_v, causal=True).weights
    layer, head = name
    expected = READINGS[LOOKUP.text].weights[layer, head]
    np.testing.assert_allclose(found, expected, atol=2e-3)


def test_the_stored_parts_add_up():
    """The vectors, the scores and the trials were stored by themselves; they must agree."""
    states, gain, w_q, w_k, _ = LOOKUP.heads[18, 6]
    size = np.sqrt((states**2).mean(axis=-1, keepdims=True) + 1e-5)
    query = rotary((states / size * gain) @ w_q, base=100_000.0)[-1]
    tokens, scores = TRIALS.scores[LOOKUP.text]
    assert tokens == READINGS[LOOKUP.text].pieces
    one = scores[TRIALS.parts.index("17.1")]
    for part, told in (states, scores.sum(0)), (LOOKUP.told, one):
        found = rotary((part / size * gain) @ w_k, base=100_000.0) @ query / 8
        np.testing.assert_allclose(found, told, atol=0.05)  # 181 roundings to float16
    place = tokens.index(LOOKUP.answer)
    lead = scores[:, place] - np.delete(scores, place, axis=1).mean(axis=1)
    np.testing.assert_allclose(lead, TRIALS.lead[0], atol=0.02)
    np.testing.assert_allclose(LOOKUP.last[18], states[-1], atol=0.02)
    for (layer, head), chances in zip(TRIALS.alone, TRIALS.without_alone.T, strict=True):
        np.testing.assert_allclose(LOOKUP.without_one[layer, head], chances[0], atol=2e-3)


def test_the_trials_are_whole():
    for name, array in TRIALS._asdict().items():
        if isinstance(array, np.ndarray) and array.dtype.kind == "f":
            assert np.isfinite(array).all(), name
    assert not set(TRIALS.eight) & set(TRIALS.loud)
    assert len(TRIALS.parts) == TRIALS.lead.shape[1] == 181
    for one, other in zip(TRIALS.texts[::2], TRIALS.texts[1::2], strict=True):
        assert sorted(one.split()) == sorted(other.split()), "the same text in the other order"
