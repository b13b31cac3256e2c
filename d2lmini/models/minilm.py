"""The first layer of MiniLM, a real sentence encoder, for a few hundred words (chapter 7)."""

import difflib
import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2lmini._terminal import record
from d2lmini.attention import attention
from d2lmini.heads import merge_heads, split_heads
from d2lmini.models.stored import read_npz

__all__ = ["LayerReading", "MiniLMLayer"]

HEADS = 12
Array = NDArray[Any]


class LayerReading(NamedTuple):
    """What `MiniLMLayer.read` returns.

    Attributes
    ----------
    pieces : tuple of n str
        ``[CLS]``, the words, ``[SEP]``: the model was trained with these two around each sentence.
    weights : float64 array, shape (12, n, n)
        ``weights[10]`` belongs to head 1.11.
    before, after : float64 array, shape (n, 384)
        The vector of each piece before and after the layer.
    """

    pieces: tuple[str, ...]
    weights: Array
    before: Array
    after: Array

    def __repr__(self) -> str:
        return record(self)


class MiniLMLayer:
    """The first of the six layers of MiniLM-L6, with the embeddings of a few hundred words.

    Made by `MiniLMLayer.load`.

    Attributes
    ----------
    words : tuple of str
        What it can read.
    longest : int
        How many words a sentence may have.

    References
    ----------
    Wang et al., "MiniLM: deep self-attention distillation", 2020; Reimers and Gurevych,
    "Sentence-BERT", 2019.

    Examples
    --------
    >>> from d2lmini.models import MiniLMLayer
    >>> layer = MiniLMLayer.load()
    >>> pieces, weights, before, after = layer.read("i like to eat apple")
    >>> pieces
    ('[CLS]', 'i', 'like', 'to', 'eat', 'apple', '[SEP]')
    >>> weights[10, pieces.index("apple"), pieces.index("eat")].round(2)
    np.float64(0.82)
    """

    def __init__(self, words: tuple[str, ...], weights: Mapping[str, Array]) -> None:
        self.words = words[2:]  # without [CLS] and [SEP]
        self._row = {word: row for row, word in enumerate(words)}
        self._weights = weights
        self.longest = len(weights["position"]) - 2

    @classmethod
    def load(cls) -> "MiniLMLayer":
        """Read the layer that is stored with the library; ValueError if the file is damaged."""
        with read_npz("minilm_layer.npz") as file:
            weights = {name: file[name].astype(np.float64) for name in file if name != "words"}
            return cls(tuple(file["words"].tolist()), weights)

    def read(self, text: str, *, hide: str | None = None) -> LayerReading:
        """Run the layer on a sentence.

        Parameters
        ----------
        text : str
            Words of `words`; case and punctuation do not matter.
        hide : str, optional
            A word of the sentence that no query may see.

        Returns
        -------
        LayerReading

        Raises
        ------
        TypeError
            If `text` is not a string.
        ValueError
            If it has no word, a word that the layer does not know, or too many; or if `hide` is not
            in it.
        """
        pieces, before = self._embedded(text)
        if hide is not None and hide not in pieces:
            raise ValueError(f"hide={hide!r} is not among the pieces {pieces}")
        mask = np.array([[piece != hide for piece in pieces]])  # (1, n)
        output, weights = attention(*self._projected(before), mask=mask)
        h = self._norm("attention", before + self._linear("output", merge_heads(output)))
        after = self._norm("layer", h + self._linear("shrink", gelu(self._linear("widen", h))))
        return LayerReading(pieces, weights, before, after)

    def project(self, text: str) -> tuple[Array, Array, Array]:
        """Return what the heads of the layer compare and mix when they read a sentence.

        ``attention(*layer.project(text)).weights`` is ``layer.read(text).weights``.

        Parameters
        ----------
        text : str
            As for `read`.

        Returns
        -------
        query, key, value : float64 array, shape (12, n, 32)
            One of each for every head and piece.

        Raises
        ------
        TypeError, ValueError
            As from `read`.

        Examples
        --------
        >>> from d2lmini.models import MiniLMLayer
        >>> query, key, value = MiniLMLayer.load().project("i like to eat apple")
        >>> query.shape, key.shape, value.shape
        ((12, 7, 32), (12, 7, 32), (12, 7, 32))
        """
        _, before = self._embedded(text)
        return self._projected(before)

    def _embedded(self, text: str) -> tuple[tuple[str, ...], Array]:
        pieces = ("[CLS]", *self._split(text), "[SEP]")
        rows = [self._row[piece] for piece in pieces]
        x = self._weights["word"][rows] + self._weights["position"][: len(rows)]
        return pieces, self._norm("embeddings", x)  # (n, 384)

    def _projected(self, x: Array) -> tuple[Array, Array, Array]:
        query, key, value = (
            split_heads(self._linear(name, x), HEADS) for name in ("query", "key", "value")
        )  # (12, n, 32)
        return query, key, value

    def _linear(self, name: str, x: Array) -> Array:
        return x @ self._weights[f"{name}_weight"] + self._weights[f"{name}_bias"]

    def _norm(self, name: str, x: Array) -> Array:
        centred = x - x.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-12)
        return scaled * self._weights[f"{name}_gain"] + self._weights[f"{name}_shift"]

    def _split(self, text: str) -> list[str]:
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        words = re.findall(r"[^\W_]+", text.lower())
        if not words:
            raise ValueError("text has no word")
        if unknown := [word for word in words if word not in self.words]:
            raise ValueError(self._nearest(unknown[0]))
        if len(words) > self.longest:
            raise ValueError(
                f"the sentence has {len(words)} words; the stored layer has positions for "
                f"{self.longest}"
            )
        return words

    def _nearest(self, word: str) -> str:
        near = difflib.get_close_matches(word, self.words, n=3)
        hint = f"the nearest are {', '.join(near)}" if near else "nothing is like it"
        return (
            f"{word!r} is not among the {len(self.words)} stored words; {hint} (all are in .words)"
        )


def gelu(x: Array) -> Array:
    """Return x times the standard normal distribution function at x."""
    erf = np.frompyfunc(math.erf, 1, 1)
    return x * (1 + np.asarray(erf(x / math.sqrt(2)), np.float64)) / 2
