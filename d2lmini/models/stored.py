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

__all__ = ["Lookup", "LookupHead", "StoredReading", "load_lookup", "load_readings"]

SHA256 = {
    "minilm_layer.npz": "3285c7411c8e17e0e4a03eee5a6ed50fa8c38ca0502ee5ee19127540ca7a000b",
    "smollm_lookup.npz": "863c71c43e8de25ce80e43b74ad0859884a001ff53e81249352db00a5c0cf0b2",
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
        Heads 17.1 and 19.7, as ``heads[17, 1]`` and ``heads[19, 7]``.
    without_one : float64 array, shape (30, 9)
        The probability of the answer when the output of one head is replaced by zeros.
    order : tuple of (layer, head)
        The twelve heads that look most at the answer in the last row, strongest first.
    without_first : float64 array, shape (13,)
        Entry k is the probability of the answer without the first k heads of `order`.
    without_others : float64 array, shape (10,)
        The same without eight heads drawn from the same layers that are not in `order`, ten draws.
    unaided : float64 array, shape (18,)
        The last row of weights of head 19.7 when head 17.1 is taken out.
    """

    text: str
    answer: str
    heads: dict[tuple[int, int], LookupHead]
    without_one: Array
    order: tuple[tuple[int, int], ...]
    without_first: Array
    without_others: Array
    unaided: Array


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
    >>> lookup.heads[19, 7].w_q.shape
    (576, 64)
    """
    with read_npz("smollm_lookup.npz") as file:
        heads = {
            (layer, head): LookupHead(
                *(file[f"{name}_{layer}_{head}"].astype(np.float64) for name in LookupHead._fields)
            )
            for layer, head in file["heads"].tolist()
        }
        return Lookup(
            text=str(file["text"]),
            answer=str(file["answer"]),
            heads=heads,
            order=tuple((layer, head) for layer, head in file["order"].tolist()),
            **{
                name: file[name].astype(np.float64)
                for name in ("without_one", "without_first", "without_others", "unaided")
            },
        )


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
