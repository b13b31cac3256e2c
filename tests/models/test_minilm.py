"""The stored layer of MiniLM: against plain loops over its definition, and bad input."""

import math

import numpy as np
import pytest

from d2lmini import attention
from d2lmini.models import MiniLMLayer
from d2lmini.models.stored import read_npz

LAYER = MiniLMLayer.load()


def by_loops(pieces, hide=None):
    """Compute the layer as BERT defines it, one head and one token at a time."""
    with read_npz("minilm_layer.npz") as file:
        w = {name: file[name].astype(float) if name != "words" else file[name] for name in file}
    rows = [w["words"].tolist().index(piece) for piece in pieces]

    def normalised(x, name):
        mean = sum(x) / len(x)
        variance = sum((a - mean) ** 2 for a in x) / len(x)
        scaled = np.array([(a - mean) / math.sqrt(variance + 1e-12) for a in x])
        return scaled * w[f"{name}_gain"] + w[f"{name}_shift"]

    def linear(x, name):
        return x @ w[f"{name}_weight"] + w[f"{name}_bias"]

    before = [normalised(w["word"][r] + w["position"][i], "embeddings") for i, r in enumerate(rows)]
    q, k, v = ([linear(x, name) for x in before] for name in ("query", "key", "value"))
    weights, after = np.zeros((12, len(rows), len(rows))), []
    for i, x in enumerate(before):
        mixed = np.zeros(384)
        for head in range(12):
            part = slice(32 * head, 32 * head + 32)
            e = [
                0.0 if piece == hide else math.exp(q[i][part] @ k[j][part] / math.sqrt(32))
                for j, piece in enumerate(pieces)
            ]
            weights[head, i] = np.array(e) / sum(e)
            mixed[part] = sum(a * u[part] for a, u in zip(weights[head, i], v, strict=True))
        h = normalised(x + linear(mixed, "output"), "attention")
        wide = [a * (1 + math.erf(a / math.sqrt(2))) / 2 for a in linear(h, "widen")]
        after.append(normalised(h + linear(np.array(wide), "shrink"), "layer"))
    return weights, np.array(before), np.array(after)


@pytest.mark.parametrize("text", ["I like the apple, phone!", "apple"])
def test_the_layer_is_what_the_loops_give(text):
    for hide in (None, "apple"):
        pieces, *found = LAYER.read(text, hide=hide)
        for ours, theirs in zip(found, by_loops(pieces, hide), strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-10)
    _, weights, before, _ = LAYER.read(text)
    projected = LAYER.project(text)
    np.testing.assert_array_equal(attention(*projected).weights, weights)
    with read_npz("minilm_layer.npz") as file:
        expected = before @ file["value_weight"].astype(float) + file["value_bias"]
    np.testing.assert_allclose(np.hstack(projected[2]), expected, atol=1e-12)


def test_weights_measured_on_the_whole_model():
    """In float32 and with all six layers, before the layer was cut out."""
    for text, head, word, weight in (
        ("i like the apple phone", 11, "phone", 0.03),
        ("i bought an apple laptop and ate an orange", 2, "laptop", 0.96),
    ):
        pieces, weights, _, _ = LAYER.read(text)
        found = weights[head - 1, pieces.index("apple"), pieces.index(word)]
        assert abs(found - weight) < 0.006


REFUSED = {
    "i like to eat appel": r"'appel' is not among the 354 stored words; .* apple",
    "": "no word",
    " ?! ": "no word",
    "i like " * 16: "32 words; the stored layer has positions for 30",
    None: "text must be a string",
}


@pytest.mark.parametrize("text", REFUSED, ids=repr)
def test_a_sentence_that_it_cannot_read(text):
    for ask in LAYER.read, LAYER.project:
        with pytest.raises(TypeError if text is None else ValueError, match=REFUSED[text]):
            ask(text)
    with pytest.raises(ValueError, match="hide='soup' is not among"):
        LAYER.read("i like to eat apple", hide="soup")
