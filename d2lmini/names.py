"""Names that are misspelt, and an encoder that has learned to find them (chapter 10)."""

from __future__ import annotations

import io
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2lmini._checks import whole_number
from d2lmini.attention import Attention
from d2lmini.heads import multi_head_attention
from d2lmini.masks import padding_mask
from d2lmini.positions import sinusoidal_positions
from d2lmini.retrieval import _strings

__all__ = ["KINDS", "TRAINED", "NameEncoder", "misspell"]

LETTERS = "abcdefghijklmnopqrstuvwxyz"
LONGEST = 64  # letters of a name that is read
HEADS = 4
BATCH = 256  # names that are encoded at once

# Spellings that sound alike, in either direction; ^ and $ are the edges of a name.
CONSONANTS = "ph f, c k, ck k, qu k, c s, s z, sch sh, sh ch, w v, x ks, tz ts, j g, dt$ t$"
VOWELS = "ie y, i y, i e, ie ee, ee ea, a e, a o, ou u, oo u, au o, ei ai, ay ey"
SILENT = "e$ $, gh g, th t, rh r, wh w, ah$ a$, ^kn ^n, ^wr ^r, mb$ m$, nd$ n$"
KEYBOARD = ("qwertyuiop", "asdfghjkl", "zxcvbnm")  # each row half a key to the right
NOT_DOUBLED = "aeiouyhjqvwx"

# What Unicode does not take apart into a letter and a mark.
FOLDED = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
)


def _alike(pairs: str) -> Callable[[str], list[str]]:
    both = [pair.split(" ") for pair in pairs.split(", ")]
    rules = [*both, *(pair[::-1] for pair in both)]

    def slips(name: str) -> list[str]:
        edged = f"^{name}$"
        return [
            (edged[:i] + new + edged[i + len(old) :]).strip("^$")
            for old, new in rules
            if old in edged
            for i in range(len(edged))
            if edged.startswith(old, i)
        ]

    return slips


def _doubled(name: str) -> list[str]:
    inner = [i for i in range(1, len(name)) if name[i] not in NOT_DOUBLED]
    return [
        name[:i] + name[i + 1 :] if name[i] == name[i - 1] else name[:i] + name[i] + name[i:]
        for i in inner
    ]


def _left_out(name: str) -> list[str]:
    return [name[:i] + name[i + 1 :] for i in range(len(name)) if len(name) > 1]


def _repeated(name: str) -> list[str]:
    return [name[:i] + name[i] + name[i:] for i in range(len(name))]


def _exchanged(name: str) -> list[str]:
    return [name[:i] + name[i + 1] + name[i] + name[i + 2 :] for i in range(len(name) - 1)]


def _neighbour(name: str) -> list[str]:
    return [
        name[:i] + near + name[i + 1 :]
        for i, letter in enumerate(name)
        for near in NEIGHBOURS.get(letter, "")
    ]


NEIGHBOURS = {
    letter: "".join(
        other
        for r, keys in enumerate(KEYBOARD)
        for c, other in enumerate(keys)
        if other != letter and abs(c - column + (r - row) / 2) + abs(r - row) / 2 <= 1
    )
    for row, keys_of_row in enumerate(KEYBOARD)
    for column, letter in enumerate(keys_of_row)
}
#: Each kind of slip, with a function that lists what a name may become by one of them: four kinds
#: of sounds, then four of fingers.
KINDS: dict[str, Callable[[str], list[str]]] = {
    "consonant": _alike(CONSONANTS),
    "vowel": _alike(VOWELS),
    "silent": _alike(SILENT),
    "doubled": _doubled,
    "left out": _left_out,
    "repeated": _repeated,
    "exchanged": _exchanged,
    "neighbour": _neighbour,
}


#: The kinds that the encoder was trained on. A neighbour on the keyboard is left for the test.
TRAINED = tuple(kind for kind in KINDS if kind != "neighbour")


def misspell(
    name: str, *, rng: np.random.Generator, slips: int = 1, kinds: Sequence[str] | None = None
) -> str:
    """Return a name as somebody may write it who has only heard it, or types in a hurry.

    The kind of each slip is drawn from `kinds`, and then one of the slips of that kind. No slip
    undoes another: what comes out is not `name`, but it may be another name.

    Parameters
    ----------
    name : str
        In lower case; letters other than a to z stay as they are.
    rng : numpy.random.Generator
    slips : int
        How many, one after the other.
    kinds : sequence of str, optional
        Some of the names in ``d2lmini.names.KINDS``, which are all that there are. Sounds:
        "consonant" (ph for f), "vowel" (ie for y), "silent" (a letter that is not heard),
        "doubled" (nn for n, or n for nn). Fingers: "left out", "repeated" (typed twice),
        "exchanged" (with the next letter), "neighbour" (on the keyboard).

    Returns
    -------
    str

    Raises
    ------
    TypeError
        If an argument is of another kind.
    ValueError
        If there is no kind of that name, `slips` is negative, or no slip of these kinds fits the
        name; an empty name has none.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> [misspell("fisher", rng=rng, kinds=["vowel"]) for _ in range(2)]
    ['fishar', 'fishir']
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a string, got {type(name).__name__}: {name!r:.60}")
    if not isinstance(rng, np.random.Generator):
        raise TypeError(
            f"rng must be a generator of NumPy, got {type(rng).__name__}; "
            "write np.random.default_rng(0)"
        )
    slips = whole_number("slips", slips, at_least=0)
    chosen = list(KINDS) if kinds is None else _strings("kinds", kinds)
    if not chosen:
        raise ValueError("kinds is empty; leave it out to draw from all kinds")
    for kind in chosen:
        if kind not in KINDS:
            raise ValueError(f"no kind of slip is called {kind!r}; there are {', '.join(KINDS)}")
    if slips and not name:
        raise ValueError("name is empty, and no slip fits it")
    now = name
    for _ in range(slips):
        for kind in rng.permutation(chosen):
            found = [slip for slip in KINDS[kind](now) if slip not in (name, now, "")]
            if found:
                now = found[rng.integers(len(found))]
                break
        else:
            raise ValueError(f"no slip of the kinds {', '.join(chosen)} fits {now!r}")
    return now


class NameReading(NamedTuple):
    """What `NameEncoder.read` returns."""

    letters: str  # the n letters that are read
    weights: NDArray[np.float64]  # (layers, heads, n, n): each letter asks all letters
    pooled: NDArray[np.float64]  # (heads, n): the learned question asks all letters
    vector: NDArray[np.float64]  # (d,), of length 1


class NameEncoder:
    """Turn names into unit vectors such that a misspelt name is near the right one.

    A small Transformer reads a name letter by letter; a learned query then collects what the
    letters have become. It computes in NumPy what ``d2lmini.models.NameModel`` does in PyTorch.
    Capitals and accents are folded, apostrophes and dots are left out. A name of several words
    becomes the sum of their vectors, brought to length 1, so that their order does not matter. A
    name without letters becomes 0, as a query without keys gets 0.

    Parameters
    ----------
    weights : mapping of str to array
        The numbers of a `NameModel`, by the names in its ``state_dict()``.

    Attributes
    ----------
    weights : dict of str to array
        The same in float64.

    Raises
    ------
    ValueError
        If one of the weights is missing.

    References
    ----------
    Vaswani et al., "Attention is all you need", 2017; for the loss that it has learned from,
    Sohn, "Improved deep metric learning with multi-class N-pair loss objective", 2016.

    Examples
    --------
    >>> from d2lmini import KeyValueStore, NameEncoder
    >>> store = KeyValueStore(["Fischer", "Pfister", "Foster"], [1.0, 2.0, 3.0])
    >>> answer = store.attend("phisher", encode=NameEncoder.load(), temperature=0.07)
    >>> int(answer.weights.argmax())
    0
    """

    def __init__(self, weights: Mapping[str, object]) -> None:
        self.weights = {name: np.asarray(w, dtype=np.float64) for name, w in weights.items()}
        layers = {name.split(".")[1] for name in self.weights if name.startswith("blocks.")}
        self.num_layers = len(layers)
        missing = sorted(_needed(self.num_layers) - set(self.weights))
        if missing:
            raise ValueError(f"weights has no {missing[0]!r}; give the state_dict() of a NameModel")

    @classmethod
    def load(cls) -> NameEncoder:
        """Return the encoder that chapter 10 trains, from 5,000 last names.

        Examples
        --------
        >>> NameEncoder.load()(["Müller", "mueller"]).shape
        (2, 64)
        """
        file = (files("d2lmini") / "data" / "name_encoder.npz").read_bytes()
        with np.load(io.BytesIO(file)) as stored:
            return cls(dict(stored))

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Encode k names as an array (k, d) of rows of length 1.

        Raises
        ------
        TypeError
            If `texts` is not a sequence of strings.
        ValueError
            If a name has letters of another script, digits, or a word of more than 64 letters.
        """
        words = [_words(text) for text in _strings("texts", texts)]
        different = sorted({word for name in words for word in name}, key=len)
        width = self.weights["question"].size
        vector_of: dict[str, NDArray[np.float64]] = {}
        for start in range(0, len(different), BATCH):  # of nearly one length
            batch = different[start : start + BATCH]
            vector_of.update(zip(batch, self._run(batch)[0], strict=True))
        vectors = np.zeros((len(words), width))
        for row, name in zip(vectors, words, strict=True):
            row += sum((vector_of[word] for word in name), np.zeros(width))
        return _unit(vectors)

    def read(self, name: str) -> NameReading:
        """Read a name of one word, and keep where its letters looked.

        Parameters
        ----------
        name : str

        Returns
        -------
        NameReading
            ``letters``, the n that were read; ``weights`` (layers, heads, n, n); ``pooled``
            (heads, n), the weights of the learned query; and the ``vector`` (d,).

        Raises
        ------
        TypeError, ValueError
            As for a call, or if there are several words or no letters.

        Examples
        --------
        >>> NameEncoder.load().read("O'Brien").letters
        'obrien'
        """
        (letters,) = single_words("names", [name])
        if not letters:
            raise ValueError(f"the name {name!r} has no letters to read")
        vectors, weights = self._run([letters])
        n = len(letters)
        *layers, pooled = (w[0, :, :, :n] for w in weights)
        return NameReading(letters, np.stack(layers)[:, :, :n], pooled[:, 0], vectors[0])

    def _run(self, names: list[str]) -> tuple[NDArray[np.float64], list[NDArray[np.float64]]]:
        w = self.weights
        table = w["letters.weight"]  # (26, d)
        tokens = letter_numbers(names)  # (k, n)
        n = tokens.shape[1]
        mask = padding_mask(np.array([len(name) for name in names]), n)  # (k, 1, n)
        x = table[tokens] + sinusoidal_positions(n, table.shape[1], like=table)  # (k, n, d)
        looked = []
        for layer in range(self.num_layers):
            at = f"blocks.{layer}."
            collected, weights = self._attend(f"{at}attend", h := _norm(x), h, mask)
            x = x + collected
            hidden = np.maximum(_norm(x) @ w[at + "widen.weight"].T + w[at + "widen.bias"], 0)
            x = x + hidden @ w[at + "narrow.weight"].T + w[at + "narrow.bias"]
            looked.append(weights)
        question = np.broadcast_to(w["question"], (len(names), 1, table.shape[1]))
        pooled, weights = self._attend("pool", question, x, mask)
        return _unit(pooled[:, 0]), [*looked, weights]  # (k, d)

    def _attend(
        self,
        name: str,
        query: NDArray[np.float64],
        key: NDArray[np.float64],
        mask: NDArray[np.bool_],
    ) -> Attention[NDArray[np.float64]]:
        matrices = (self.weights[f"{name}.w_{each}.weight"].T for each in "qkvo")
        return multi_head_attention(query, key, key, *matrices, num_heads=HEADS, mask=mask)


def _needed(num_layers: int) -> set[str]:
    blocks = [f"blocks.{layer}." for layer in range(num_layers)]
    attends = ["pool", *(block + "attend" for block in blocks)]
    return {
        "letters.weight",
        "question",
        *(f"{name}.w_{each}.weight" for name in attends for each in "qkvo"),
        *(f"{block}{one}.{part}" for block in blocks for one in ("widen", "narrow")
          for part in ("weight", "bias")),
    }  # fmt: skip


def _norm(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring each vector to mean 0 and variance 1."""
    x = x - x.mean(axis=-1, keepdims=True)
    normed: NDArray[np.float64] = x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)
    return normed


def _unit(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Bring each vector to length 1, but leave 0 as it is."""
    lengths = np.linalg.norm(x, axis=-1, keepdims=True)
    unit: NDArray[np.float64] = x / np.where(lengths > 0, lengths, 1.0)
    return unit


def single_words(argument: str, names: Sequence[str]) -> list[str]:
    """Return the letters of names of one word each, or say what cannot be read."""
    found = [_words(name) for name in _strings(argument, names)]
    for name, words in zip(names, found, strict=True):
        if len(words) > 1:
            raise ValueError(f"the name {name!r:.60} has {len(words)} words; give one at a time")
    return [words[0] if words else "" for words in found]


def letter_numbers(names: Sequence[str]) -> NDArray[np.int64]:
    """Return the letters of k folded names as numbers from 0, (k, n), with n at least 1."""
    n = max([1, *map(len, names)])
    rows = [[LETTERS.index(c) for c in name.ljust(n, "a")] for name in names]
    return np.array(rows, dtype=np.int64).reshape(len(names), n)


def _words(text: str) -> list[str]:
    """Return the words of a name, in letters from a to z."""
    return [word for part in text.replace("-", " ").split() if (word := _fold(part))]


def _fold(text: str) -> str:
    """Return the letters of a word from a to z, or say what cannot be read."""
    apart = unicodedata.normalize("NFKD", text.casefold().translate(FOLDED))
    letters = "".join(c for c in apart if c.isalnum())
    for c in letters:
        if c not in LETTERS:
            raise ValueError(
                f"the name {text!r:.60} has {c!r} in it, and the encoder has learned the letters "
                "a to z; write it with these"
            )
    if len(letters) > LONGEST:
        raise ValueError(
            f"the word {text!r:.40} has {len(letters)} letters, and at most {LONGEST} are read; "
            "is it one name?"
        )
    return letters
