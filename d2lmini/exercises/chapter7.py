"""Chapter 7: ask a real model who told its heads, and what they write."""

from collections.abc import Callable

import numpy as np

from d2lmini._arrays import Array
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import naive_softmax, rough
from d2lmini.weights import softmax

# Which head told it?


def _told(parts: Array, query: Array) -> Array:
    return parts @ query / len(query) ** 0.5  # (p, n)


def _leads(told: Array, place: int) -> Array:
    return told[:, place] - np.delete(told, place, axis=1).mean(axis=1)


register(
    Exercise(
        name="who_told",
        chapter=7,
        difficulty="medium",
        minutes=20,
        task="Find out which part wrote that a query should look at one place. A key is a sum of p "
        "parts: parts (p, n, d) holds what each part adds to each of n keys. query (d,) is "
        "compared with the keys by the scaled dot product. The lead of a key is its score minus "
        "the mean score of all other keys. Return (p,), what each part adds to the lead of the "
        "key at `place`.",
        returns={"leads": "(parts,)"},
        reference=lambda parts, query, place: _leads(_told(parts, query), place),
        cases=lambda: [
            (*rough(1, (1, 2, 2), (2,)), 1),
            (*rough(5, (2, 3, 1), (1,)), 1),
            (*rough(2, (2, 3, 4), (4,)), 0),
            (*rough(3, (3, 4, 2), (2,)), 3),
            (*rough(4, (5, 6, 3), (3,)), 2),
        ],
        mistakes=(
            Mistake(
                "no-scale",
                "You compared by the plain dot product. The scores of attention are divided by the "
                "root of d.",
                lambda parts, query, place: _leads(parts @ query, place),
            ),
            Mistake(
                "no-comparison",
                "You returned what each part adds to one score. A part that adds as much to every "
                "key does not tell the query where to look, so subtract what the other keys got.",
                lambda parts, query, place: _told(parts, query)[:, place],
            ),
            Mistake(
                "itself-in-the-mean",
                "You took the mean over all keys. The key at `place` should not be compared with "
                "itself.",
                lambda parts, query, place: (
                    _told(parts, query)[:, place] - _told(parts, query).mean(axis=1)
                ),
            ),
            Mistake(
                "best-rival",
                "You subtracted the largest of the other scores, part by part. A sum of such "
                "numbers is not the lead of the whole: the largest is another key in each part.",
                lambda parts, query, place: (
                    _told(parts, query)[:, place]
                    - np.delete(_told(parts, query), place, axis=1).max(axis=1)
                ),
            ),
            Mistake(
                "weights",
                "You applied a softmax to each part. Weights of parts do not add up to the weights "
                "of the whole; scores do.",
                lambda parts, query, place: _leads(softmax(_told(parts, query)), place),
                also=(
                    lambda parts, query, place: softmax(_told(parts, query))[:, place],
                    lambda parts, query, place: _leads(naive_softmax(_told(parts, query)), place),
                ),
            ),
            Mistake(
                "the-whole",
                "You added the parts up. We want the lead of each.",
                lambda parts, query, place: _leads(_told(parts, query), place).sum(),
            ),
        ),
        hints=(
            "The score is linear in the key. What is the score of a sum of two keys?",
            "Part i adds (kᵢⱼ · q) / √d to the score of key j.",
            "parts @ query has shape (p, n); np.delete leaves one column out.",
        ),
        solution="""\
def who_told(parts, query, place):
    scores = parts @ query / np.sqrt(len(query))  # (p, n)
    others = np.delete(scores, place, axis=1)
    return scores[:, place] - others.mean(axis=1)""",
    )
)


# The logit lens


def _read(states: Array, gain: Array, embedding: Array, centred: bool = False) -> Array:
    if centred:
        states = states - states.mean(axis=-1, keepdims=True)
    size = np.sqrt((states**2).mean(axis=-1, keepdims=True))
    return (states / size * gain) @ embedding.T


register(
    Exercise(
        name="logit_lens",
        chapter=7,
        difficulty="medium",
        minutes=15,
        task="Read a model's unfinished vectors as if they were its last. states (layers, d) holds "
        "the vector of one token after each layer. Bring each to root mean square 1, multiply by "
        "gain (d,), compare it with every row of embedding (words, d) by the dot product, and turn "
        "the scores of each layer into probabilities. Return (layers, words).",
        returns={"probabilities": "(layers, words)"},
        reference=lambda states, gain, embedding: softmax(_read(states, gain, embedding)),
        cases=lambda: [
            rough(1, (1, 2), (2,), (2, 2)),
            rough(5, (3, 1), (1,), (4, 1)),
            rough(2, (2, 3), (3,), (4, 3)),
            rough(3, (4, 5), (5,), (3, 5)),
            tuple(x / 9 for x in rough(4, (3, 4), (4,), (5, 4))),
            tuple(30 * x for x in rough(6, (3, 2), (2,), (4, 2))),
        ],
        mistakes=(
            Mistake(
                "not-normalised",
                "You compared the vectors as they are. They grow from layer to layer, and the "
                "model normalises them before it reads its answer off.",
                lambda states, gain, embedding: softmax((states * gain) @ embedding.T),
            ),
            Mistake(
                "no-gain",
                "You left the gain out. The normalisation multiplies each component by a number "
                "that was learned.",
                lambda states, gain, embedding: softmax(
                    _read(states, np.ones_like(gain), embedding)
                ),
            ),
            Mistake(
                "mean-subtracted",
                "You subtracted the mean, as the normalisation of chapter 6 does. This model only "
                "divides by the root mean square.",
                lambda states, gain, embedding: softmax(_read(states, gain, embedding, True)),
            ),
            Mistake(
                "spread",
                "You divided by the standard deviation, which leaves the mean out. The root mean "
                "square is of the numbers as they are.",
                lambda states, gain, embedding: softmax(
                    (states / states.std(axis=-1, keepdims=True) * gain) @ embedding.T
                ),
            ),
            Mistake(
                "mean-size",
                "You divided by the mean of the sizes. The root mean square is the root of the "
                "mean of the squares.",
                lambda states, gain, embedding: softmax(
                    (states / np.abs(states).mean(axis=-1, keepdims=True) * gain) @ embedding.T
                ),
            ),
            Mistake(
                "gain-first",
                "You multiplied by the gain before you brought the vectors to size. It comes "
                "afterwards.",
                lambda states, gain, embedding: softmax(
                    _read(states * gain, np.ones_like(gain), embedding)
                ),
                also=(
                    lambda states, gain, embedding: softmax(_read(states * gain, gain, embedding)),
                ),
            ),
            Mistake(
                "unit-length",
                "You brought the vectors to length 1. A root mean square of 1 is a length of the "
                "root of d. (Scores divided by the root of d come to the same.)",
                lambda states, gain, embedding: softmax(
                    _read(states, gain, embedding) / len(gain) ** 0.5
                ),
            ),
            Mistake(
                "over-layers",
                "Your softmax runs over the layers. The words of one layer compete.",
                lambda states, gain, embedding: softmax(_read(states, gain, embedding), axis=0),
            ),
            Mistake(
                "scores",
                "You returned the scores. Turn those of each layer into probabilities.",
                _read,
            ),
            Mistake(
                "one-size",
                "You divided all layers by one number. Each vector has a root mean square of its "
                "own.",
                lambda states, gain, embedding: softmax(
                    (states / np.sqrt((states**2).mean()) * gain) @ embedding.T
                ),
            ),
        ),
        hints=(
            "The end of the model, applied too early: what are its three steps?",
            "softmax of (x / rms(x) ⊙ gain) · Eᵀ, row by row.",
            "keepdims=True keeps the root mean square of each row beside its row.",
        ),
        solution="""\
def logit_lens(states, gain, embedding):
    size = np.sqrt((states**2).mean(axis=-1, keepdims=True))
    scores = (states / size * gain) @ embedding.T  # (layers, words)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)""",
    )
)


# What a resting head hands on


def _handed(weights: Array, value: Array) -> Array:
    return weights[:, -1] * np.linalg.norm(value, axis=-1)  # (h, n)


def _from_first(handed: Array) -> Array:
    return handed[:, 0] / handed.sum(axis=1)


def _rest_cases() -> list[Case]:
    def case(seed: int, h: int, n: int, d: int, quiet: float) -> Case:
        weights, value = (abs(x) + 0.1 for x in rough(seed, (h, n, n), (h, n, d)))
        weights = np.tril(weights)
        signs = np.sign(rough(seed + 50, (h, n, d))[0])
        value[:, 0] *= quiet
        return weights / weights.sum(axis=-1, keepdims=True), value * signs

    return [case(1, 1, 2, 1, 0.1), case(2, 2, 3, 2, 0.2), case(3, 3, 4, 3, 2), case(4, 2, 5, 4, 1)]


register(
    Exercise(
        name="share_of_first",
        chapter=7,
        difficulty="easy",
        minutes=15,
        task="Measure how much of what the last token receives comes from the first. weights "
        "(h, n, n) and value (h, n, d) belong to h heads. What key j hands to a query is its "
        "weight times the length of its value. Return (h,): for the last query of each head, what "
        "the first key hands over, divided by the sum over all keys.",
        returns={"shares": "(heads,)"},
        reference=lambda weights, value: _from_first(_handed(weights, value)),
        cases=_rest_cases,
        mistakes=(
            Mistake(
                "weight-alone",
                "You returned the weight of the first key. A large weight on a short value hands "
                "over little.",
                lambda weights, value: weights[:, -1, 0],
            ),
            Mistake(
                "first-query",
                "You read the first row, which can only look at itself. The last query is the last "
                "row.",
                lambda weights, value: _from_first(weights[:, 0] * np.linalg.norm(value, axis=-1)),
            ),
            Mistake(
                "squares",
                "You squared the lengths. A length is the root of the sum of squares.",
                lambda weights, value: _from_first(weights[:, -1] * (value**2).sum(axis=-1)),
            ),
            Mistake(
                "not-divided",
                "You returned what the first key hands over. Divide it by the sum over all keys.",
                lambda weights, value: _handed(weights, value)[:, 0],
            ),
            Mistake(
                "length-of-the-sum",
                "You divided by the length of the output. There the values may cancel, so the "
                "shares would not sum to 1.",
                lambda weights, value: (
                    _handed(weights, value)[:, 0]
                    / np.linalg.norm((weights @ value)[:, -1], axis=-1)
                ),
            ),
            Mistake(
                "all-queries",
                "You averaged over all queries. We want the last one.",
                lambda weights, value: (
                    (weights * np.linalg.norm(value, axis=-1)[:, None])[..., 0]
                    / (weights * np.linalg.norm(value, axis=-1)[:, None]).sum(axis=-1)
                ).mean(axis=-1),
            ),
        ),
        hints=(
            "Two numbers for each key: how much it is looked at, and how much it has to give.",
            "αₙ₁‖v₁‖ / Σⱼ αₙⱼ‖vⱼ‖.",
            "np.linalg.norm over the last axis of value gives (h, n), the shape of weights[:, -1].",
        ),
        solution="""\
def share_of_first(weights, value):
    handed = weights[:, -1] * np.linalg.norm(value, axis=-1)  # (h, n)
    return handed[:, 0] / handed.sum(axis=1)""",
    )
)


# A control that is as loud


def _controls(
    loudness: Array,
    taken: Array,
    *,
    free_taken: bool = False,
    free_later: bool = False,
    again: bool = False,
    key: Callable[[float, float], float] = lambda one, other: abs(one - other),
    only_itself: bool = False,
) -> Array:
    known = free_taken or free_later or only_itself
    used = set() if known else {(int(layer), int(head)) for layer, head in taken}
    chosen = []
    for layer, head in taken:
        used |= {(int(layer), int(head))} if free_later else set()
        used |= {(int(layer), int(head))} if only_itself else set()
        free = [at for at in np.ndindex(loudness.shape) if at not in used]
        best = min(free, key=lambda at: key(loudness[at], loudness[layer, head]))
        chosen.append(best)
        used -= {(int(layer), int(head))} if only_itself else set()
        if not again:
            used.add(best)
    return np.array(chosen)


def _controls_by_layer(loudness: Array, taken: Array) -> Array:
    used = {(int(layer), int(head)) for layer, head in taken}
    chosen = []
    for layer, head in taken:
        free = [(layer, h) for h in range(loudness.shape[1]) if (layer, h) not in used]
        free = free or [at for at in np.ndindex(loudness.shape) if at not in used]
        chosen.append(min(free, key=lambda at: abs(loudness[at] - loudness[layer, head])))
        used.add(chosen[-1])
    return np.array(chosen)


def _control_cases() -> list[Case]:
    def case(seed: int, layers: int, heads: int, taken: list[list[int]]) -> Case:
        order = np.random.default_rng(seed).permutation(layers * heads)
        loudness = ((order + 1) ** 1.5).reshape(layers, heads)  # no two gaps are equal
        return loudness, np.array(taken)

    return [
        case(3, 1, 4, [[0, 3]]),
        (np.array([[2.46, 9.3], [2.54, 2.61]]), np.array([[1, 0]])),
        case(2, 2, 3, [[1, 0], [0, 1]]),
        case(3, 3, 4, [[2, 1], [0, 3], [1, 1]]),
        case(7, 4, 3, [[3, 2], [3, 1], [0, 0], [2, 2]]),
        case(9, 2, 6, [[0, 5], [1, 3], [1, 4]]),
        (np.array([[1.0, 1.1, 5.0], [5.1, 5.2, 5.35]]), np.array([[0, 0], [0, 2], [1, 1]])),
        (np.array([[1.0, 1.2, 3.0, 9.0, 4.5]]), np.array([[0, 0], [0, 1]])),
        (np.array([[2.0, 1.0, 1.0004, 0.9997]]), np.array([[0, 1]])),
    ]


register(
    Exercise(
        name="fair_control",
        chapter=7,
        difficulty="medium",
        minutes=20,
        task="Choose a control that is as loud as what it controls. loudness (layers, heads) says "
        "how long the vector is that each head writes, taken (k, 2) lists the layer and head of k "
        "heads that are taken out, both counted from 0. For each of these in turn choose the head, "
        "of any layer, whose loudness is nearest to it, among those that are neither taken out nor "
        "chosen before. Return (k, 2).",
        returns={"control": "(heads, 2)"},
        reference=_controls,
        cases=_control_cases,
        mistakes=(
            Mistake(
                "itself",
                "Heads that are taken out are among your controls: the nearest to a head is the "
                "head itself.",
                lambda loudness, taken: _controls(loudness, taken, free_taken=True),
                also=(
                    lambda loudness, taken: _controls(loudness, taken, free_taken=True, again=True),
                ),
            ),
            Mistake(
                "taken-later",
                "You left out the heads that you had come to. All that are taken out must be "
                "left out from the beginning.",
                lambda loudness, taken: _controls(loudness, taken, free_later=True),
            ),
            Mistake(
                "twice",
                "You chose a head twice. The control would take out fewer heads than the "
                "experiment.",
                lambda loudness, taken: _controls(loudness, taken, again=True),
            ),
            Mistake(
                "loudest",
                "You chose the loudest heads. Then the control is louder than what it controls.",
                lambda loudness, taken: _controls(loudness, taken, key=lambda one, other: -one),
            ),
            Mistake(
                "quietest",
                "You chose the quietest heads, as the smallest difference does that keeps its "
                "sign. Nearest is the smallest difference without its sign.",
                lambda loudness, taken: _controls(loudness, taken, key=lambda one, other: one),
            ),
            Mistake(
                "only-itself",
                "You left out the head itself, but other heads that are taken out are among your "
                "controls.",
                lambda loudness, taken: _controls(loudness, taken, only_itself=True),
            ),
            Mistake(
                "same-layer",
                "You looked in the same layer alone. Another layer may hold a head that is nearer.",
                _controls_by_layer,
            ),
            Mistake(
                "swapped",
                "The layer comes first, then the head.",
                lambda loudness, taken: _controls(loudness, taken)[:, ::-1].copy(),
            ),
        ),
        hints=(
            "Keep a set of heads that are no longer free. What is in it at the start?",
            "Of all free (l, h), take the one whose loudness differs least.",
            "np.ndindex(loudness.shape) counts through all heads, and min takes a key function.",
        ),
        solution="""\
def fair_control(loudness, taken):
    used, chosen = {tuple(head) for head in taken}, []
    for head in taken:
        free = [at for at in np.ndindex(loudness.shape) if at not in used]
        gap = {at: abs(loudness[at] - loudness[tuple(head)]) for at in free}
        chosen.append(min(gap, key=gap.get))
        used.add(chosen[-1])
    return np.array(chosen)""",
    )
)
