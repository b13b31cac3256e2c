"""Looking things up: a key-value store with exact and soft lookup (chapter 1)."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from d2lmini._arrays import A, Array, check_real, floating, is_torch, namespace, nearest_in_dtype
from d2lmini._checks import positive_number
from d2lmini._types import readable
from d2lmini.attention import Attention, attention
from d2lmini.scores import dot_product_score

__all__ = ["KeyValueStore", "TrigramEncoder"]


class KeyValueStore:
    """Pairs of keys and values that can be looked up exactly or softly.

    ``store[key]`` is a database lookup: the value of the equal key, or an error. ``attend`` is a
    soft lookup: every value, weighted by how well its key matches.

    Parameters
    ----------
    keys : sequence of str
        m different keys.
    values : array or sequence, shape (m,) or (m, d_v)
        One number, or one vector of numbers, for each key.

    Raises
    ------
    TypeError
        If a key is not a string, or the values are not numbers.
    ValueError
        If keys and values differ in number, or a key comes twice.

    Examples
    --------
    >>> store = KeyValueStore(["Alice", "Bruno"], [32.0, 58.0])
    >>> store["Bruno"]
    58.0
    >>> "Alicia" in store, len(store), list(store)
    (False, 2, ['Alice', 'Bruno'])
    >>> store["Alicia"]
    Traceback (most recent call last):
        ...
    KeyError: "no key 'Alicia' among 2 keys; the nearest: 'Alice'"
    >>> encode = TrigramEncoder(["Alice", "Bruno"])
    >>> output, weights = store.attend("Alicia", encode=encode, temperature=0.5)
    >>> weights.round(2), round(float(output), 1)
    (array([0.82, 0.18]), 36.6)
    """

    def __init__(self, keys: Sequence[str], values: Array | Sequence[object]) -> None:
        self._keys = _strings("keys", keys)
        self._values = _numbers(values)
        if self._values.ndim not in (1, 2):
            raise ValueError(
                f"values must be numbers (m,) or vectors (m, d_v), got shape "
                f"{tuple(self._values.shape)}"
            )
        if len(self._keys) != self._values.shape[0]:
            raise ValueError(
                f"each key needs one value, got {len(self._keys)} keys and "
                f"{self._values.shape[0]} values"
            )
        self._row = {key: row for row, key in enumerate(self._keys)}
        if len(self._row) < len(self._keys):
            twice = next(k for row, k in enumerate(self._keys) if self._row[k] != row)
            raise ValueError(
                f"keys must differ, got {twice!r} more than once; keep one value for each key"
            )

    def __getitem__(self, key: str) -> Array:
        """Return the value of the equal key; a KeyError names the nearest keys."""
        if not isinstance(key, str):
            raise TypeError(f"keys are strings, got {type(key).__name__}: {key!r}")
        if key not in self:
            raise KeyError(self._missing(key))
        value = self._values[self._row[key]]
        return value.item() if value.ndim == 0 else _copy(value)

    def __contains__(self, key: object) -> bool:
        """Tell whether a key is equal to `key`."""
        return isinstance(key, str) and key in self._row

    def __iter__(self) -> Iterator[str]:
        """Go through the keys, in the order given."""
        return iter(self._keys)

    def __len__(self) -> int:
        """Count the pairs."""
        return len(self._keys)

    def __repr__(self) -> str:
        """Say how many keys there are and what the values look like."""
        return f"KeyValueStore({len(self)} keys, values of shape {tuple(self._values.shape)})"

    @readable
    def attend(
        self,
        query: str | Sequence[str],
        *,
        encode: Callable[[list[str]], A],
        score: Callable[[A, A], A] = dot_product_score,
        temperature: float = 1.0,
    ) -> Attention[A]:
        r"""Answer with a mixture of all values, the best-matching keys weighing most.

        .. math::
            \text{output} &= \sum_i \alpha_i v_i \\
            \alpha &= \operatorname{softmax}\big(a(q, k) / T\big)

        Parameters
        ----------
        query : str, or a sequence of n str
        encode : callable
            Turns a list of k strings into an array of vectors, shape (k, d): see `TrigramEncoder`.
        score : callable
            ``score(query, key)`` compares encoded queries (n, d) with encoded keys (m, d).
        temperature : float
            T > 0, the unit in which scores are measured. Small: nearly the best match alone.
            Large: nearly the plain mean.

        Returns
        -------
        Attention
            For one string: ``output`` is one value and ``weights`` has shape (m,). For n strings
            there is a leading axis n. An empty store answers 0.

        Raises
        ------
        TypeError
            If a query is not a string, or `encode` returns something that is not an array of the
            kind (NumPy, PyTorch) of the values.
        ValueError
            If `encode` returns another shape than (k, d), or `temperature` is not positive.
        """
        temperature = positive_number("temperature", temperature)
        for name, function in (("encode", encode), ("score", score)):
            if not callable(function):
                raise TypeError(f"{name} must be a function, got {type(function).__name__}")
        single = isinstance(query, str)
        texts = [query] if isinstance(query, str) else _strings("queries", query)
        queries, keys = (_encoded(encode, x) for x in (texts, self._keys))
        vector_values = self._values.ndim == 2
        output, weights = attention(
            queries,
            keys,
            self._values if vector_values else self._values[:, None],
            score=lambda q, k: _in_units_of(temperature, _scores(score, q, k)),
        )
        output = output if vector_values else output[:, 0]
        return Attention(output[0], weights[0]) if single else Attention(output, weights)

    def _missing(self, key: str) -> str:
        if not self._keys:
            return f"no key {key!r}: the store is empty"
        folded = {k.casefold(): k for k in reversed(self._keys)}
        near = difflib.get_close_matches(key.casefold(), folded, n=3, cutoff=0.5)
        near = near or difflib.get_close_matches(key.casefold(), folded, n=1, cutoff=0.0)
        names = ", ".join(repr(folded[k]) for k in near)
        return f"no key {key!r} among {len(self)} keys; the nearest: {names}"


class TrigramEncoder:
    """Turn texts into unit vectors of letter 3-gram counts.

    Texts are lower-cased and padded with one space at each end (accents are joined to their
    letters: Unicode's form NFC); each dimension counts one 3-gram of `texts`. Two texts have a dot
    product near 1 if they share most of their 3-grams, 0 if none.

    Parameters
    ----------
    texts : sequence of str
        The vocabulary: 3-grams that occur in none of them are ignored later.

    Attributes
    ----------
    vocabulary : tuple of str
        The v different 3-grams, sorted.

    Raises
    ------
    TypeError
        If `texts` is not a sequence of strings.

    References
    ----------
    Shannon, "A mathematical theory of communication", 1948 (letter n-grams).

    Examples
    --------
    >>> encode = TrigramEncoder(["tide", "time"])
    >>> encode.vocabulary
    (' ti', 'de ', 'ide', 'ime', 'me ', 'tid', 'tim')
    >>> encode(["tide", "Tim", "xyz"]).round(2)
    array([[0.5 , 0.5 , 0.5 , 0.  , 0.  , 0.5 , 0.  ],
           [0.71, 0.  , 0.  , 0.  , 0.  , 0.  , 0.71],
           [0.  , 0.  , 0.  , 0.  , 0.  , 0.  , 0.  ]])
    """

    def __init__(self, texts: Sequence[str]) -> None:
        found = {gram for text in _strings("texts", texts) for gram in _trigrams(text)}
        self.vocabulary = tuple(sorted(found))
        self._column = {gram: i for i, gram in enumerate(self.vocabulary)}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """Encode k texts as a float64 array (k, v) of rows of norm 1 (0 if no 3-gram is known)."""
        strings = _strings("texts", texts)
        counts = np.zeros((len(strings), len(self.vocabulary)))
        for row, text in enumerate(strings):
            for gram in _trigrams(text):
                if gram in self._column:
                    counts[row, self._column[gram]] += 1
        norms = np.linalg.norm(counts, axis=1, keepdims=True)
        return counts / np.where(norms > 0, norms, 1.0)


def _trigrams(text: str) -> list[str]:
    padded = f" {unicodedata.normalize('NFC', text.lower())} "
    return [padded[i : i + 3] for i in range(len(padded) - 2)]


def _strings(name: str, texts: Sequence[str]) -> list[str]:
    """Return the strings as a list, or say what else was given."""
    kind = type(texts).__name__
    if isinstance(texts, str | bytes):
        one = "string" if isinstance(texts, str) else kind
        item = name.removesuffix("s").replace("querie", "query")
        raise TypeError(f"{name} must be a list of strings, got one {one}; write [{item}]")
    if isinstance(texts, set | frozenset):
        raise TypeError(f"{name} must be in an order, got a {kind}; write sorted({name})")
    if not isinstance(texts, Iterable):
        raise TypeError(f"{name} must be a sequence of strings, got {kind}")
    strings = list(texts)
    for text in strings:
        if not isinstance(text, str):
            raise TypeError(f"{name} must be strings, got {type(text).__name__}: {text!r}")
    return strings


def _scores(score: Callable[[Array, Array], Array], query: Array, key: Array) -> Array:
    """Return what `score` says, if it is an array that can be divided by a temperature."""
    scores = score(query, key)
    namespace(query=query, **{"score(query, key)": scores})
    return scores


def _in_units_of(temperature: float, scores: Array) -> Array:
    """Return scores / T up to a constant, such that the best of each row is 0 at any T."""
    xp, scores = floating(**{"score(query, key)": scores})
    if scores.ndim == 0 or scores.shape[-1] == 0:
        return scores
    best = xp.max(scores, axis=-1, keepdims=True)
    best = xp.where(best == -xp.inf, 0.0, best)  # of a row where every key is hidden
    return (scores - best) / nearest_in_dtype(xp, temperature, scores.dtype)


def _numbers(values: Array | Sequence[object]) -> Array:
    """Copy the values, as an array of numbers."""
    if hasattr(values, "dtype"):
        xp = namespace(values=values)  # no np.ma, whose mask would be lost
    if is_torch(values):
        check_real(xp, "values", values)
        return values.clone()
    try:
        if isinstance(values, set | frozenset | Mapping | bytes | bytearray):
            raise TypeError("a set has no order, a mapping has keys of its own, bytes are text")
        numbers = np.array(values if hasattr(values, "dtype") else list(values))
    except (RuntimeError, TypeError, ValueError):  # rows of different lengths, or no numbers
        numbers = np.array(None)
    if numbers.dtype.kind not in "buif":
        raise TypeError(
            "values must be one real number for each key, or vectors of one length; got "
            f"{type(values).__name__}: {values!r:.60}"
        )
    return numbers


def _copy(value: Array) -> Array:
    return value.clone() if is_torch(value) else value.copy()


def _encoded(encode: Callable[[list[str]], Array], texts: list[str]) -> Array:
    vectors = encode(list(texts))  # a copy: the store's own keys are not to be changed
    namespace(**{"encode(texts)": vectors})
    if vectors.ndim != 2 or vectors.shape[0] != len(texts):
        raise ValueError(
            f"encode must return one vector for each of {len(texts)} strings, shape "
            f"({len(texts)}, d), got {tuple(vectors.shape)}"
        )
    return vectors
