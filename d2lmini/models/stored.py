"""What two real models did, and parts of them: the data of chapter 7.

Nothing is downloaded. ``d2lmini/data/README.md`` says where each file comes from.
"""

import hashlib
import io
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from d2lmini._terminal import record

__all__ = [
    "Lookup",
    "LookupHead",
    "StoredReading",
    "Trials",
    "load_lookup",
    "load_readings",
    "load_trials",
]

SHA256 = {
    "minilm_layer.npz": "3285c7411c8e17e0e4a03eee5a6ed50fa8c38ca0502ee5ee19127540ca7a000b",
    "smollm_lookup.npz": "07bb0a80fce058ea59cc483e11c64e12628fa7f7e14d0748f98fa437dedc2d40",
    "smollm_controls.npz": "9726bba33babc6c45efd4ce10212283909ebd526ab059c715ca91c51a4b30179",
    "smollm_trials.npz": "86410d4a3228d94047fa221348e9bb274f0430b1dc978d9cceae2ec362c83b7d",
    "smollm_readings.npz": "ce3f37298d19abd729fd33fd848d4f1812d5bfdefb8f531dd8baf6a4f6e26531",
}
Array = NDArray[Any]


class StoredReading(NamedTuple):
    """What SmolLM2-135M did with a text.

    Attributes
    ----------
    pieces : tuple of n str
    weights : float32 array, shape (30, 9, n, n)
        Of each layer and head: row i tells how much piece i takes from each piece.
    next_pieces : tuple of (str, float)
        The five likeliest next pieces and their probabilities.
    """

    pieces: tuple[str, ...]
    weights: Array
    next_pieces: tuple[tuple[str, float], ...]

    def __repr__(self) -> str:
        return record(self)


class LookupHead(NamedTuple):
    """What goes into one head, and its matrices."""

    states: Array  # (18, 576), what the layers below have made of the pieces
    gain: Array  # (576,), of the normalisation before the head
    w_q: Array  # (576, 64)
    w_k: Array  # (576, 64)
    w_v: Array  # (576, 64)


class Lookup(NamedTuple):
    """One lookup in SmolLM2-135M, taken apart; see `load_lookup`.

    Attributes
    ----------
    text : str
    answer : str
    heads : dict of LookupHead
        Heads 17.1 and 19.7, as ``heads[16, 0]`` and ``heads[18, 6]``: layer and head, from 0.
    w_o : float64 array, shape (64, 576)
        The rows of W_O that belong to head 19.7.
    told : float64 array, shape (18, 576)
        What head 17.1 adds to the vector of each token.
    untold : float64 array, shape (18, 576)
        What comes into layer 19 when head 17.1 is taken out.
    last : float64 array, shape (31, 576)
        The vector of the last token: its embedding, and what each layer makes of it.
    norm : float64 array, shape (576,)
        The gain of the normalisation at the end of the model.
    words : tuple of str
    embedding : float64 array, shape (words, 576)
        Some tokens of the vocabulary and their embeddings.
    first_values : float64 array, shape (7, 30, 9)
        For each text of `load_readings`, the length of the first token's value in each head, as a
        share of the median of the others.
    without_one : float64 array, shape (30, 9)
        The probability of the answer when the output of one head is replaced by zeros.
    order : tuple of (layer, head)
        The twelve heads that look most at the answer in the last row, strongest first; counted
        from 0.
    without_others : float64 array, shape (10,)
        The probability without eight heads drawn from the layers of the first eight of `order`.
    """

    text: str
    answer: str
    heads: dict[tuple[int, int], LookupHead]
    w_o: Array
    told: Array
    untold: Array
    last: Array
    norm: Array
    words: tuple[str, ...]
    embedding: Array
    first_values: Array
    without_one: Array
    order: tuple[tuple[int, int], ...]
    without_others: Array


class Trials(NamedTuple):
    """The lookup tried with ten names, each in both orders of the facts; see `load_trials`.

    The first axis of an array is that of the texts, unless its name begins with ``fact`` or
    ``place``. Probabilities are those of the answer.

    Attributes
    ----------
    texts, answers : tuple of 20 str
    eight, loud : tuple of (layer, head)
        The heads that look at the answer of the first text, and eight that write as long vectors;
        counted from 0.
    alone : tuple of (layer, head)
        19.7, 17.1 and 2.1, each followed by the head of its layer that is nearest in loudness.
    without_looking, without_loud : float64 array, shape (20, 9)
        Without the first k of `eight`, or of `loud`.
    without_alone : float64 array, shape (20, 6)
    loudness : float64 array, shape (20, 2, 8)
        The lengths of the vectors that `eight` and `loud` add to the last token.
    patch : float64 array, shape (20, 2, 2)
        What head 19.7 gives to the answer's place; axes: its query with and without head 17.1, its
        keys with and without.
    lead : float64 array, shape (20, 181)
        What each of `parts` adds to the score of the answer's place in head 19.7, minus what it
        adds to the other places on average.
    written, rank : float64 array, shape (20, 8)
        What each of `eight` adds to the score of the answer directly, above the mean of the
        vocabulary, and how many of its 49,152 tokens get more.
    lens : float64 array, shape (20, 30)
        What the model would say after each layer, if it were the last.
    first : float64 array, shape (20,)
        What head 19.7 gives to the first token.
    place : int array, shape (20,)
        Where the answer occurs in the text.
    facts, fact_answers : tuple of 8 str
        Texts without a lookup, and what the model says.
    fact_chances : float64 array, shape (8, 3)
        How likely that is with all heads, without `eight`, without `loud`.
    place_texts : str array, shape (6, 2, 2)
        Two facts of one form: template, order of the facts, and which of the two is asked for, the
        earlier or the later.
    place_weights, place_chances : float64 array, shape (6, 2, 2, 2)
        What head 19.7 gives to the earlier and the later place, and how likely these tokens are.
    scores : dict of (tokens, float64 array of shape (181, n))
        By text: what each part adds to the score of each key, for the last query of head 19.7.
    parts : tuple of 181 str
        What wrote into the vectors below layer 19: the embedding, heads and networks.
    """

    texts: tuple[str, ...]
    answers: tuple[str, ...]
    eight: tuple[tuple[int, int], ...]
    loud: tuple[tuple[int, int], ...]
    alone: tuple[tuple[int, int], ...]
    without_looking: Array
    without_loud: Array
    without_alone: Array
    loudness: Array
    patch: Array
    lead: Array
    written: Array
    rank: Array
    lens: Array
    first: Array
    place: Array
    facts: tuple[str, ...]
    fact_answers: tuple[str, ...]
    fact_chances: Array
    place_texts: Array
    place_weights: Array
    place_chances: Array
    scores: dict[str, tuple[tuple[str, ...], Array]]
    parts: tuple[str, ...]

    def __repr__(self) -> str:
        return record(self)


PARTS = (
    "embedding",
    *(
        name
        for layer in range(1, 19)
        for name in (*(f"{layer}.{head}" for head in range(1, 10)), f"network {layer}")
    ),
)
ARRAYS = (
    "w_o",
    "told",
    "untold",
    "last",
    "norm",
    "embedding",
    "first_values",
    "without_one",
    "without_others",
)


def load_readings() -> dict[str, StoredReading]:
    """Return what SmolLM2-135M did with seven texts, by text.

    The same comes from ``SmolLM.load().read(text)``, for any text, where the model is installed.

    Raises
    ------
    ValueError
        If the stored file is damaged.

    Examples
    --------
    >>> readings = load_readings()
    >>> pieces, weights, next_pieces = readings["The capital of France is"]
    >>> pieces
    ('The', ' capital', ' of', ' France', ' is')
    >>> weights.shape, next_pieces[0][0]
    ((30, 9, 5, 5), ' Paris')
    """
    with read_npz("smollm_readings.npz") as file:
        return {
            text: StoredReading(
                tuple(file[f"pieces_{i}"].tolist()),
                file[f"weights_{i}"].astype(np.float32),
                tuple(zip(file[f"next_{i}"].tolist(), file[f"chance_{i}"].tolist(), strict=True)),
            )
            for i, text in enumerate(file["texts"].tolist())
        }


def load_lookup() -> Lookup:
    """Return the two heads with which SmolLM2-135M looks up "by", and what happens without heads.

    Raises
    ------
    ValueError
        If the stored file is damaged.

    Examples
    --------
    >>> lookup = load_lookup()
    >>> lookup.text, lookup.answer
    ('Zed Quimby likes tea. Mo Larkin likes milk. Zed Quim', 'by')
    >>> lookup.heads[18, 6].w_q.shape
    (576, 64)
    """
    with read_npz("smollm_lookup.npz") as file:
        heads = {
            (layer, head): LookupHead(
                *(
                    file[f"{name}_{layer + 1}_{head + 1}"].astype(np.float64)
                    for name in LookupHead._fields
                )
            )
            for layer, head in _heads(file["heads"])
        }
        return Lookup(
            text=str(file["text"]),
            answer=str(file["answer"]),
            heads=heads,
            words=tuple(file["words"].tolist()),
            order=_heads(file["order"]),
            **{name: file[name].astype(np.float64) for name in ARRAYS},
        )


def load_trials() -> Trials:
    """Return what SmolLM2-135M did with ten invented names in both orders, and what controls say.

    Raises
    ------
    ValueError
        If the stored file is damaged.

    Examples
    --------
    >>> trials = load_trials()
    >>> trials.texts[1], trials.answers[1]
    ('Mo Larkin likes milk. Zed Quimby likes tea. Zed Quim', 'by')
    >>> trials.lead.shape, len(trials.parts)
    ((20, 181), 181)
    """
    with read_npz("smollm_trials.npz") as file:
        stored: dict[str, Any] = {}
        for name in set(Trials._fields) & set(file):
            array = file[name]
            if array.dtype.kind == "U":
                stored[name] = array if array.ndim > 1 else tuple(array.tolist())
            elif array.dtype == np.int8:
                stored[name] = _heads(array)
            else:
                stored[name] = array.astype(np.float64)
        scores = {
            text: (tuple(file[f"tokens_{i}"].tolist()), file[f"scores_{i}"].astype(np.float64))
            for i, text in enumerate(file["shown"].tolist())
        }
        stored["place"] = stored["place"].astype(int)
        return Trials(**stored, scores=scores, parts=PARTS)


def _heads(pairs: Array) -> tuple[tuple[int, int], ...]:
    return tuple((layer - 1, head - 1) for layer, head in pairs.tolist())  # the files count from 1


def read_npz(name: str) -> Any:
    """Open a file of ``d2lmini/data`` if it is what it should be; ValueError else."""
    content = (files("d2lmini") / "data" / name).read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise ValueError(
            f"d2lmini/data/{name} is damaged: its sha256 is {found}, not {SHA256[name]}; install "
            "d2lmini again"
        )
    return np.load(io.BytesIO(content))
