"""MiniLM-L6, a small sentence encoder, computed with NumPy in float64.

In float64 two processors differ by about 1e-15, far below the step of the float16 numbers that
are stored, so that each machine rebuilds the same bytes. (In float32 a few of those 23,808 numbers
round the other way.)

Encoder: Wang et al. (2020), MiniLM; trained for sentences as in Reimers and Gurevych (2019).
"""

import json
import math
import re
import struct
import unicodedata
from pathlib import Path

import numpy as np

HEADS = 12
LAYERS = 6


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """Read a safetensors file: the length of a JSON header, the header, the raw numbers."""
    raw = np.memmap(path, np.uint8, "r")
    start = 8 + struct.unpack("<Q", raw[:8].tobytes())[0]
    header = json.loads(raw[8:start].tobytes())
    header.pop("__metadata__", None)
    kinds = {"F32": "<f4", "I64": "<i8"}
    return {
        name: raw[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]]
        .view(kinds[entry["dtype"]])
        .reshape(entry["shape"])
        for name, entry in header.items()
    }


def word_pieces(text: str, vocabulary: dict[str, int]) -> list[int]:
    """Split a text into the longest word pieces that the vocabulary knows; return their rows."""
    text = unicodedata.normalize("NFD", text.lower())
    text = "".join(letter for letter in text if unicodedata.category(letter) != "Mn")
    rows = [vocabulary["[CLS]"]]
    for word in re.findall(r"[^\W_]+|[^\w\s]|_", text):
        pieces, start = [], 0
        while start < len(word):
            for end in range(len(word), start, -1):
                piece = vocabulary.get(("##" if start else "") + word[start:end])
                if piece is not None:
                    break
            else:
                pieces = [vocabulary["[UNK]"]]
                break
            pieces.append(piece)
            start = end
        rows += pieces
    return [*rows, vocabulary["[SEP]"]]


class MiniLM:
    """The encoder whose ``model.safetensors`` and ``vocab.txt`` lie in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.stored = read_safetensors(folder / "model.safetensors")
        pieces = (folder / "vocab.txt").read_text("utf-8").splitlines()
        self.vocabulary = {piece: row for row, piece in enumerate(pieces)}
        self.layers = {
            name: weight.astype(np.float64)
            for name, weight in self.stored.items()
            if name.startswith(("encoder.", "embeddings.LayerNorm."))
        }

    def embed(self, texts: list[str]) -> np.ndarray:
        """Return a unit vector for each text, shape (texts, 384)."""
        vectors = np.stack([self.states(text).mean(axis=0) for text in texts])
        return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

    def states(self, text: str) -> np.ndarray:
        """Return the last hidden state of each word piece, shape (pieces, 384)."""
        rows = word_pieces(text, self.vocabulary)
        x = self._embedding("word")[rows].astype(np.float64)
        x += self._embedding("position")[: len(rows)]
        x += self._embedding("token_type")[0]
        x = self._layer_norm("embeddings.LayerNorm", x)
        for layer in range(LAYERS):
            name = f"encoder.layer.{layer}"
            mixed = self._attention(f"{name}.attention.self", x)
            mixed = self._linear(f"{name}.attention.output.dense", mixed)
            x = self._layer_norm(f"{name}.attention.output.LayerNorm", x + mixed)
            hidden = gelu(self._linear(f"{name}.intermediate.dense", x))
            hidden = self._linear(f"{name}.output.dense", hidden)
            x = self._layer_norm(f"{name}.output.LayerNorm", x + hidden)
        return x

    def _attention(self, name: str, x: np.ndarray) -> np.ndarray:
        query, key, value = (
            self._linear(f"{name}.{kind}", x).reshape(len(x), HEADS, -1).transpose(1, 0, 2)
            for kind in ("query", "key", "value")
        )  # (heads, pieces, 32)
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        return (weights @ value).transpose(1, 0, 2).reshape(x.shape)

    def _embedding(self, kind: str) -> np.ndarray:
        return self.stored[f"embeddings.{kind}_embeddings.weight"]

    def _linear(self, name: str, x: np.ndarray) -> np.ndarray:
        return x @ self.layers[f"{name}.weight"].T + self.layers[f"{name}.bias"]

    def _layer_norm(self, name: str, x: np.ndarray) -> np.ndarray:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-12)
        return scaled * self.layers[f"{name}.weight"] + self.layers[f"{name}.bias"]


def gelu(x: np.ndarray) -> np.ndarray:
    """Return x times the standard normal distribution function at x."""
    erf = np.frompyfunc(math.erf, 1, 1)
    return 0.5 * x * (1 + erf(x / math.sqrt(2)).astype(np.float64))
