"""Write name_encoder.npz, a trained encoder of names, and name_trials.npz, how three of them did.

Needs PyTorch and RapidFuzz, whose distances are the ones to compare with:

    python -m pip install --no-deps rapidfuzz==3.14.6

Three encoders are trained, seeds 0 to 2, four times as long as chapter 10 trains its own; that
takes about eight minutes of one thread. The first is stored, in float16.
Another processor or another PyTorch rounds otherwise, and hundreds of steps make that visible. So
`--check` compares what the encoders find, and not their numbers.
"""

import io

import numpy as np
from _shared import folder, npz, run

from d2lmini import NameEncoder, TrigramEncoder, load_names, misspell
from d2lmini.names import HEADS, KINDS, TRAINED

folder("rapidfuzz", install="--no-deps rapidfuzz==3.14.6")
import torch  # noqa: E402
from rapidfuzz import distance, process  # noqa: E402

from d2lmini.models import train_names  # noqa: E402

SEEDS, STEPS = range(3), 2600
LEARNED, HELD_OUT = load_names()
EDITS = {
    "Levenshtein": distance.Levenshtein.normalized_similarity,
    "Damerau": distance.DamerauLevenshtein.normalized_similarity,
    "Jaro-Winkler": distance.JaroWinkler.similarity,
}
METHODS = ("learned", "trigrams", *EDITS)
ASKED = ("1 slip", "2 slips", "3 slips", *KINDS)
PLACES = ("before", "itself", "after", "first", "last")  # where a letter may look
PARTS = ("blocks.0.attend", "blocks.1.attend", "pool")


def asked(what: str, seed: int) -> tuple[np.ndarray, list[str]]:
    """Return the rows of the names that can be misspelt so, and what they become."""
    rng = np.random.default_rng(1000 + seed)
    slips, kinds = (1, [what]) if what in KINDS else (int(what[0]), TRAINED)
    able = [
        row
        for row, name in enumerate(HELD_OUT)
        if any(slip != name for kind in kinds for slip in KINDS[kind](name))
    ]
    names = [misspell(HELD_OUT[row], rng=rng, slips=slips, kinds=kinds) for row in able]
    return np.array(able), names


def share(scores: np.ndarray, right: np.ndarray) -> float:
    """Return the share of rows whose best column is the right one; those that tie share a place."""
    best = scores >= scores.max(axis=-1, keepdims=True) - 1e-9
    return float((best[np.arange(len(right)), right] / best.sum(axis=-1)).mean())


def found(encoder: NameEncoder, what: str, seed: int) -> list[float]:
    """Return the share found by each method."""
    right, names = asked(what, seed)
    scores = [encode(names) @ encode(HELD_OUT).T for encode in (encoder, TrigramEncoder(HELD_OUT))]
    for similarity in EDITS.values():
        scores.append(process.cdist(names, HELD_OUT, scorer=similarity, dtype=np.float64))
    return [share(table, right) for table in scores]


def looks(encoder: NameEncoder) -> np.ndarray:
    """Return what a letter gives, on average, to some places: (layers, heads, places)."""
    total, count = 0.0, 0
    for name in HELD_OUT:
        weights = encoder.read(name).weights[:, :, 1:-1]  # (layers, heads, n - 2, n)
        inner = np.arange(1, weights.shape[-1] - 1)
        at = [inner - 1, inner, inner + 1, 0 * inner, 0 * inner + weights.shape[-1] - 1]
        taken = [weights[:, :, np.arange(len(inner)), columns].sum(axis=-1) for columns in at]
        total, count = total + np.stack(taken, axis=-1), count + len(inner)
    return total / count


def without(encoder: NameEncoder, part: str, head: int) -> NameEncoder:
    """Return the encoder without what one head hands over."""
    name = f"{part}.w_o.weight"
    w_o = encoder.weights[name].copy()  # (out, in)
    size = w_o.shape[1] // HEADS
    w_o[:, head * size : (head + 1) * size] = 0
    return NameEncoder({**encoder.weights, name: w_o})


def build() -> dict[str, bytes]:
    """Return the content of each file by its name."""
    torch.set_num_threads(1)
    trials: dict[str, list] = {"found": [], "looks": [], "without": []}
    for seed in SEEDS:
        weights = train_names(seed, LEARNED, steps=STEPS).state_dict()
        if seed == 0:
            weights = {name: w.numpy().astype(np.float16) for name, w in weights.items()}
            stored = npz(**weights)
        encoder = NameEncoder(weights)
        table = [found(encoder, what, seed) for what in ASKED]
        trials["found"].append(np.transpose(table))  # (methods, asked)
        trials["looks"].append(looks(encoder))
        right, names = asked("2 slips", seed)
        heads = [[without(encoder, part, head) for head in range(HEADS)] for part in PARTS]
        lost = [[share(e(names) @ e(HELD_OUT).T, right) for e in row] for row in heads]
        trials["without"].append(lost)
        print(seed, np.round(trials["found"][-1][0], 3), flush=True)
    rounded = {name: np.round(rows, 4) for name, rows in trials.items()}
    labels = {"methods": METHODS, "asked": ASKED, "places": PLACES}
    return {
        "name_encoder.npz": stored,
        "name_trials.npz": npz(**{k: np.array(v) for k, v in labels.items()}, **rounded),
    }


def same(name: str, old: bytes, new: bytes) -> bool:
    """Tell whether two encoders find as many names, and two tables of trials nearly agree."""
    if name == "name_encoder.npz":
        encoders = [NameEncoder(dict(np.load(io.BytesIO(file)))) for file in (old, new)]
        shares = [[found(e, what, 0)[0] for what in ASKED] for e in encoders]
        return np.allclose(*shares, atol=0.03)
    tables = [np.load(io.BytesIO(file))["found"] for file in (old, new)]
    return np.allclose(*tables, atol=0.03)  # 30 of 1,000 names


if __name__ == "__main__":
    run(build, __doc__, same)
