"""Chapter 10: an encoder of names, changed, tested and judged."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from d2lmini._arrays import Array
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import rough

# A new kind of slip: no vowels

VOWELS = (0, 4, 8, 14, 20)


def _without_vowels(
    letters: Array,
    lengths: Array,
    *,
    vowels: Sequence[int] = VOWELS,
    first: int = 1,
    fill: int = -1,
    gaps: bool = False,
) -> Array:
    n = letters.shape[1]
    places = np.arange(n)
    kept = (places < lengths[:, None]) & (~np.isin(letters, vowels) | (places < first))
    if gaps:
        return np.where(kept, letters, fill)
    rows = [
        [*row[keep], *[fill] * (n - keep.sum())] for row, keep in zip(letters, kept, strict=True)
    ]
    return np.array(rows, dtype=letters.dtype).reshape(letters.shape)


def _spelt(*names: str, padding: str = "aebz") -> Case:
    """Return names as numbers, with letters behind them that do not count."""
    n = max(map(len, names))
    rows = [(name + padding * n)[:n] for name in names]
    letters = np.array([[ord(c) - ord("a") for c in row] for row in rows])
    return letters, np.array([len(name) for name in names])


register(
    Exercise(
        name="without_vowels",
        chapter=10,
        difficulty="easy",
        minutes=15,
        task="Write a new kind of slip: the vowels a, e, i, o, u are left out, as people do in "
        "short messages, but a first letter stays. letters (k, n) holds k names as numbers, a = 0 "
        "to z = 25, of which the first lengths[i] belong to name i. Return (k, n): the letters "
        "that are left, moved together, and -1 in all places behind them.",
        returns={"left": "(names, n)"},
        reference=_without_vowels,
        cases=lambda: [
            _spelt("bo"),
            _spelt("eve", "tom"),
            _spelt("aubrey", "li", "shaw"),
            _spelt("oooo", "b", "unique"),
            _spelt("zebra", "idaho", padding="q"),
        ],
        mistakes=(
            Mistake(
                "first-letter",
                "You left out a vowel that stands first. The first letter stays, whatever it is.",
                lambda letters, lengths: _without_vowels(letters, lengths, first=0),
            ),
            Mistake(
                "padding-read",
                "You read on behind the end of a name. Only its first lengths[i] letters count.",
                lambda letters, lengths: _without_vowels(
                    letters, np.full_like(lengths, letters.shape[1])
                ),
            ),
            Mistake(
                "gaps",
                "There are gaps where the vowels were. Move the letters that are left together.",
                lambda letters, lengths: _without_vowels(letters, lengths, gaps=True),
            ),
            Mistake(
                "y",
                "You took y for a vowel. The five vowels here are a, e, i, o and u.",
                lambda letters, lengths: _without_vowels(letters, lengths, vowels=(*VOWELS, 24)),
            ),
            Mistake(
                "zeros",
                "You filled the rest with 0, which is the letter a. Fill it with -1.",
                lambda letters, lengths: _without_vowels(letters, lengths, fill=0),
            ),
        ),
        hints=(
            "Decide for each place whether its letter is kept. Which two reasons are there to drop "
            "one, and which one to keep a vowel?",
            "Letter j of name i is kept if j < lengths[i] and it is no vowel or j = 0.",
            "np.isin(letters, [0, 4, 8, 14, 20]) tells the vowels. A loop over the names may put "
            "what is kept at the start of a row full of -1.",
        ),
        solution="""\
def without_vowels(letters, lengths):
    place = np.arange(letters.shape[1])
    vowel = np.isin(letters, [0, 4, 8, 14, 20]) & (place > 0)
    kept = (place < lengths[:, None]) & ~vowel
    result = np.full_like(letters, -1)
    for i, row in enumerate(letters):
        result[i, : kept[i].sum()] = row[kept[i]]
    return result""",
    )
)


# A pool without the learned query


def _unit(x: Array) -> Array:
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return x / np.where(length > 0, length, 1.0)


def _means(states: Array, lengths: Array) -> Array:
    there = np.arange(states.shape[1]) < lengths[:, None]  # (k, n)
    return (states * there[..., None]).sum(axis=1) / np.maximum(lengths, 1)[:, None]


def _last(states: Array, lengths: Array) -> Array:
    rows = states[np.arange(len(states)), np.maximum(lengths, 1) - 1]
    return _unit(rows * (lengths > 0)[:, None])


def _largest(states: Array, lengths: Array) -> Array:
    there = np.arange(states.shape[1]) < lengths[:, None]
    largest = np.where(there[..., None], states, -np.inf).max(axis=1)
    return _unit(np.where(lengths[:, None] > 0, largest, 0.0))


def _nan_means(states: Array, lengths: Array) -> Array:
    there = np.arange(states.shape[1]) < lengths[:, None]
    total = (states * there[..., None]).sum(axis=1)
    return total / np.linalg.norm(total, axis=-1, keepdims=True)


register(
    Exercise(
        name="mean_pool",
        chapter=10,
        difficulty="easy",
        minutes=10,
        task="Pool without a learned query: the mean of what the letters have become, divided by "
        "its length. states (k, n, d) holds the vectors of the letters, of which the first "
        "lengths[i] belong to name i, and the others are padding. Return unit vectors (k, d), and "
        "0 for a name without letters.",
        returns={"vectors": "(names, d)"},
        reference=lambda states, lengths: _unit(_means(states, lengths)),
        cases=lambda: [
            (np.array([[[3.0, 4.0], [1.0, 0.0]]]), np.array([1])),
            (*rough(0, (2, 3, 2)), np.array([3, 2])),
            (*rough(1, (3, 4, 3)), np.array([4, 1, 2])),
            (*rough(2, (3, 2, 4)), np.array([2, 0, 1])),
            (1e3 * rough(3, (2, 4, 1))[0], np.array([3, 4])),
            (rough(4, (2, 3, 2))[0] / 100, np.array([2, 3])),
        ],
        mistakes=(
            Mistake(
                "padding-counted",
                "The padding is in your mean. Only the first lengths[i] vectors belong to a name.",
                lambda states, lengths: _unit(states.mean(axis=1)),
            ),
            Mistake(
                "not-unit",
                "This is the mean. Divide it by its length, or long vectors win whatever is asked.",
                _means,
            ),
            Mistake(
                "each-letter-unit",
                "You brought the vector of each letter to length 1. Take the mean first.",
                lambda states, lengths: _means(_unit(states), lengths),
                also=(lambda states, lengths: _unit(_means(_unit(states), lengths)),),
            ),
            Mistake(
                "last",
                "You took the last letter's vector alone. The mean is over all letters.",
                _last,
            ),
            Mistake(
                "largest",
                "You took the largest number of each component. The task asks for the mean.",
                _largest,
            ),
            Mistake(
                "nan",
                "Right for every name with letters. Without any the mean has length 0, and 0 / 0 "
                "is nan, where it should be 0.",
                _nan_means,
            ),
        ),
        hints=(
            "A mean is a sum with equal weights. Which weight does a padded place have?",
            "Sum x(i, j) over j < lengths[i], then divide by the Euclidean length of the sum. (The "
            "number of letters cancels.)",
            "np.arange(n) < lengths[:, None] is a mask (k, n); with [..., None] it multiplies the "
            "states. np.where(length > 0, length, 1) is safe to divide by.",
        ),
        solution="""\
def mean_pool(states, lengths):
    there = np.arange(states.shape[1]) < lengths[:, None]  # (k, n)
    total = (states * there[..., None]).sum(axis=1)  # (k, d)
    length = np.linalg.norm(total, axis=-1, keepdims=True)
    return total / np.where(length > 0, length, 1.0)""",
    )
)


# A threshold for "nobody"


def _wrong(threshold: float, scores: Array, inside: Array) -> float:
    return float(((scores >= threshold) != inside).sum())


def _rates(threshold: float, scores: Array, inside: Array) -> float:
    """Add two rates, as the chapter does."""
    missed, answered = scores[inside] < threshold, scores[~inside] >= threshold
    return float(sum(wrong.sum() / max(1, wrong.size) for wrong in (missed, answered)))


def _on_a_grid(
    count: Callable[[float, Array, Array], float],
) -> Callable[[Array, Array, Array, Array], tuple[float, float]]:
    def chosen(
        scores: Array, inside: Array, other_scores: Array, other_inside: Array
    ) -> tuple[float, float]:
        tried = np.linspace(0, 1, 101)
        wrong = [count(t, scores, inside) for t in tried]
        return _judged(float(tried[np.argmin(wrong)]), other_scores, other_inside)

    return chosen


def _threshold(
    scores: Array,
    inside: Array,
    count: Callable[[float, Array, Array], float] = _wrong,
    largest: bool = False,
) -> float:
    tried = np.sort(scores)
    wrong = np.array([count(t, scores, inside) for t in tried])
    at = len(wrong) - 1 - wrong[::-1].argmin() if largest else wrong.argmin()
    return float(tried[at])


def _judged(threshold: float, scores: Array, inside: Array) -> tuple[float, float]:
    return threshold, _wrong(threshold, scores, inside) / scores.size


def _chosen(
    scores: Array, inside: Array, other_scores: Array, other_inside: Array, **how: Any
) -> tuple[float, float]:
    return _judged(_threshold(scores, inside, **how), other_scores, other_inside)


def _peeked(
    scores: Array, inside: Array, other_scores: Array, other_inside: Array
) -> tuple[float, float]:
    return _judged(_threshold(other_scores, other_inside), other_scores, other_inside)


def _of_the_others(
    scores: Array, inside: Array, other_scores: Array, other_inside: Array
) -> tuple[float, float]:
    tried = np.sort(scores)
    wrong = [_wrong(t, other_scores, other_inside) for t in tried]
    return _judged(float(tried[np.argmin(wrong)]), other_scores, other_inside)


def _between(
    scores: Array, inside: Array, other_scores: Array, other_inside: Array
) -> tuple[float, float]:
    tried = np.sort(scores)
    tried = (tried[1:] + tried[:-1]) / 2 if tried.size > 1 else tried
    wrong = [_wrong(t, scores, inside) for t in tried]
    return _judged(float(tried[np.argmin(wrong)]), other_scores, other_inside)


def _edge(
    of: Callable[[Array, Array], float],
) -> Callable[[Array, Array, Array, Array], tuple[float, float]]:
    return lambda scores, inside, other_scores, other_inside: _judged(
        of(scores, inside), other_scores, other_inside
    )


def _halfway(
    scores: Array, inside: Array, other_scores: Array, other_inside: Array
) -> tuple[float, float]:
    middle = (scores[inside].mean() + scores[~inside].mean()) / 2
    return _judged(middle, other_scores, other_inside)


def _not_judged(
    scores: Array, inside: Array, other_scores: Array, other_inside: Array
) -> tuple[float, float]:
    return _judged(_threshold(scores, inside), scores, inside)


def _counted(
    scores: Array, inside: Array, other_scores: Array, other_inside: Array
) -> tuple[float, float]:
    threshold = _threshold(scores, inside)
    return threshold, _wrong(threshold, other_scores, other_inside)


def _with(**how: Any) -> Callable[..., tuple[float, float]]:
    return lambda scores, inside, other_scores, other_inside: _chosen(
        scores, inside, other_scores, other_inside, **how
    )


def _threshold_cases() -> list[Case]:
    def case(known: list[float], strangers: list[float]) -> tuple[Array, Array]:
        scores = np.array([*known, *strangers])
        order = np.argsort(np.sin(7 * np.arange(scores.size)))
        return scores[order], (np.arange(scores.size) < len(known))[order]

    return [
        (*case([0.7], []), *case([], [0.6])),
        (*case([0.9], [0.4]), *case([0.8, 0.95], [0.3])),
        (*case([0.9], [0.4, 0.95]), *case([0.8, 0.5], [0.92])),
        (*case([0.91, 0.62], [0.35, 0.7, 0.2]), *case([0.62, 0.5], [0.1, 0.66])),
        (*case([0.3, 0.4, 0.75, 0.8], [0.6]), *case([0.55, 0.7, 0.35], [0.4])),
        (*case([0.2, 0.82, 0.95], [0.4, 0.5, 0.64]), *case([0.25, 0.9], [0.3, 0.7, 0.85])),
        (*case([-0.2, 0.1], [-0.6, -1.2, 0.05]), *case([-0.15, 0.3], [-0.3, -0.9])),
        (*case([1.85, 1.4, 1.52], [1.2, -0.5, 1.6]), *case([1.3, 1.66], [0.9, -2])),
    ]


register(
    Exercise(
        name="nobody_threshold",
        chapter=10,
        difficulty="medium",
        minutes=20,
        task="Choose a threshold for “nobody”, and judge it. scores (n,) are the best scores of n "
        "queries, and inside (n,) tells of each whether its name is in the store. A query is "
        "answered if its score is at least the threshold; it should be if its name is inside. Of "
        "these n scores take as threshold the one with the fewest wrong decisions, the smallest if "
        "there are several. (Count decisions, and add no rates.) Return it, and "
        "the share of wrong decisions that it makes on other_scores (m,) with other_inside (m,).",
        returns={"threshold": "()", "wrong": "()"},
        reference=_chosen,
        cases=_threshold_cases,
        mistakes=(
            Mistake(
                "peeked",
                "You chose the threshold on the scores that judge it. Choose it on the first "
                "scores alone, or the judgement flatters it.",
                _peeked,
                also=(_of_the_others,),
            ),
            Mistake(
                "not-judged",
                "You judged the threshold on the scores that it was chosen on. Use the other ones.",
                _not_judged,
            ),
            Mistake(
                "halfway",
                "You took the middle between the two means. The task asks for the score with the "
                "fewest wrong decisions.",
                _halfway,
            ),
            Mistake(
                "between",
                "You tried numbers between the scores. The threshold is one of the scores.",
                _between,
                also=(_on_a_grid(_wrong),),
            ),
            Mistake(
                "rates",
                "You added two rates, as the chapter does. Here each wrong decision counts the "
                "same, a name's or a stranger's, and the threshold is one of the scores.",
                _with(count=_rates),
                also=(_on_a_grid(_rates),),
            ),
            Mistake(
                "edge",
                "You took the smallest score of a name that is inside, or the largest of a "
                "stranger. The task asks for the score with the fewest wrong decisions.",
                _edge(lambda s, inside: s[inside].min() if inside.any() else s.max()),
                also=(_edge(lambda s, inside: s[~inside].max() if (~inside).any() else s.min()),),
            ),
            Mistake(
                "counted",
                "You returned the number of wrong decisions. A share is divided by how many there "
                "were in all.",
                _counted,
            ),
            Mistake(
                "largest",
                "Several scores do equally well, and you took the largest of them.",
                _with(largest=True),
            ),
            Mistake(
                "most-wrong",
                "Your threshold has the most wrong decisions. Names in the store should be "
                "answered, and strangers should not.",
                _with(count=lambda t, scores, inside: -_wrong(t, scores, inside)),
            ),
            Mistake(
                "strangers-only",
                "You counted only the strangers that are answered. A name in the store that is "
                "turned away is a wrong decision too.",
                _with(count=lambda t, scores, inside: float(((scores >= t) & ~inside).sum())),
            ),
            Mistake(
                "smallest",
                "Your threshold is always the smallest score, as it is if only the names count "
                "that are turned away. A stranger that is answered is a wrong decision too.",
                _with(count=lambda t, scores, inside: float(((scores < t) & inside).sum())),
            ),
        ),
        hints=(
            "For one threshold, what are the two ways to decide wrongly? Write a function that "
            "counts them, and use it twice.",
            "A decision is wrong where score ≥ t and inside disagree. Try t = each score, in "
            "rising order.",
            "(scores >= t) != inside marks the wrong decisions. argmin gives the first of the "
            "best.",
        ),
        solution="""\
def nobody_threshold(scores, inside, other_scores, other_inside):
    tried = np.sort(scores)
    wrong = [((scores >= t) != inside).sum() for t in tried]
    threshold = tried[np.argmin(wrong)]
    return threshold, ((other_scores >= threshold) != other_inside).mean()""",
    )
)


# A head taken out, with its control


def _beyond_control(
    whole: float,
    without: Array,
    middle: Callable[[Array], float] = np.median,
    others: Callable[[Array, int, int], Array] = lambda lost, i, j: np.delete(lost[i], j),
) -> Array:
    lost = whole - without
    return np.array(
        [
            [lost[i, j] - middle(others(lost, i, j)) for j in range(lost.shape[1])]
            for i in range(len(lost))
        ]
    )


register(
    Exercise(
        name="beyond_control",
        chapter=10,
        difficulty="medium",
        minutes=15,
        task="Judge heads by what is lost without them, and by a control. whole is the share of "
        "names found with all heads, without (layers, heads) the share found when one head is "
        "taken out. What is lost without a head proves little if any other head is missed as "
        "much. Return (layers, heads): what is lost without a head, minus the median of what is "
        "lost without one of the other heads of its layer.",
        returns={"effect": "(layers, heads)"},
        reference=_beyond_control,
        cases=lambda: [
            (0.9, np.array([[0.5, 0.8]])),
            (0.95, np.array([[0.9, 0.4, 0.85], [0.95, 0.93, 0.6]])),
            (0.875, np.array([[0.85, 0.3, 0.8, 0.71], [0.85, 0.86, 0.9, 0.42]])),
            (0.7, np.array([[0.75, 0.1, 0.2], [0.65, 0.3, 0.7], [0.72, 0.71, 0.05]])),
        ],
        mistakes=(
            Mistake(
                "no-control",
                "This is what is lost without each head. Subtract the control: the median of the "
                "other heads of the layer.",
                lambda whole, without: whole - without,
            ),
            Mistake(
                "itself",
                "A head is its own control in your answer. Take the median of the other heads.",
                lambda whole, without: _beyond_control(
                    whole, without, others=lambda lost, i, j: lost[i]
                ),
            ),
            Mistake(
                "all-layers",
                "Your control has heads of all layers. A head is compared with those of its layer.",
                lambda whole, without: _beyond_control(
                    whole,
                    without,
                    others=lambda lost, i, j: np.delete(lost, i * lost.shape[1] + j),
                ),
            ),
            Mistake(
                "mean",
                "You took the mean of the other heads. One odd head moves it; the median stays.",
                lambda whole, without: _beyond_control(whole, without, middle=np.mean),
            ),
            Mistake(
                "sign",
                "The sign is turned: a head without which less is found has a positive effect.",
                lambda whole, without: -_beyond_control(whole, without),
            ),
        ),
        hints=(
            "First compute what is lost without each head. Which heads of the table are fair to "
            "compare one head with?",
            "effect(l, h) = lost(l, h) − median over g ≠ h of lost(l, g).",
            "np.delete(row, h) is a row without its entry h.",
        ),
        solution="""\
def beyond_control(whole, without):
    lost = whole - without  # (layers, heads)
    beyond = np.empty(lost.shape)
    for layer, row in enumerate(lost):
        for head in range(len(row)):
            beyond[layer, head] = row[head] - np.median(np.delete(row, head))
    return beyond""",
    )
)


# Which invariants does a broken encoder keep?


@dataclass(frozen=True)
class ToyEncoder:
    """A small encoder of names that may be broken in one way or several."""

    broken: tuple[str, ...] = ()

    def __call__(self, names: list[str]) -> Array:
        """Turn k names into vectors (k, 26)."""
        n = max(map(len, names))
        vectors = np.zeros((len(names), 26))
        for row, name in zip(vectors, names, strict=True):
            for place, letter in enumerate(name):
                row[ord(letter) - ord("a")] += 1 if "order" in self.broken else 0.8**place
            if "padding" in self.broken:
                row[0] += 0.3 * (n - len(name))  # what was padded is read as an a
        if "company" in self.broken:
            vectors -= 0.5 * vectors.mean(axis=0)
        return vectors if "length" in self.broken else _unit(vectors)

    def __repr__(self) -> str:
        """Do not give away what is broken."""
        return "an encoder"


_Encode = Callable[[list[str]], Array]


def _size(x: Array) -> Array:
    return np.linalg.norm(x, axis=-1)


def _alone(encode: _Encode, names: list[str]) -> Array:
    return np.concatenate([encode([name]) for name in names])


def _measured(
    encode: _Encode,
    names: list[str],
    *,
    alone: Callable[[_Encode, list[str]], Array] = _alone,
    turned: Callable[[_Encode, list[str]], Array] | None = None,
    size: Callable[[Array], Array] = _size,
) -> Array:
    together = encode([*names])
    reverse = turned(encode, names) if turned else encode([name[::-1] for name in names])
    return np.stack(
        [
            size(together - alone(encode, names)),
            size(together - reverse),
            np.abs(size(together) - 1),
        ],
        axis=1,
    )


register(
    Exercise(
        name="invariants_measured",
        chapter=10,
        difficulty="hard",
        minutes=25,
        task="Test an encoder that somebody else has written. encode(a list of k names) gives "
        "(k, d). Return (k, 3), three numbers for each name: how far its vector is from the one "
        "that it gets alone in a list; how far its vector moves if the letters of every name in "
        "the list are reversed; and how far its length is from 1. A distance is the length of the "
        "difference.",
        returns={"measured": "(names, 3)"},
        reference=_measured,
        cases=lambda: [
            (ToyEncoder(), ["mo"]),
            (ToyEncoder(), ["li", "garcia"]),
            (ToyEncoder(("padding",)), ["li", "ortega", "shaw"]),
            (ToyEncoder(("order",)), ["zest", "mo"]),
            (ToyEncoder(("length",)), ["garcia", "lee", "shaw"]),
            (ToyEncoder(("company",)), ["mo", "li", "featherstone"]),
            (ToyEncoder(("padding", "length", "company")), ["ng", "alvarez", "king", "bo"]),
        ],
        mistakes=(
            Mistake(
                "never-alone",
                "You compared a list with itself. Give the encoder each name in a list of its own: "
                "then nothing is padded, and there is no company.",
                lambda encode, names: _measured(
                    encode, names, alone=lambda encode, names: encode([*names])
                ),
            ),
            Mistake(
                "list-reversed",
                "You reversed the list. Reverse the letters of each name.",
                lambda encode, names: _measured(
                    encode, names, turned=lambda encode, names: encode(names[::-1])
                ),
            ),
            Mistake(
                "reversed-alone",
                "You reversed the letters and encoded each name alone, so that two things changed "
                "at once. Keep the company the same.",
                lambda encode, names: _measured(
                    encode,
                    names,
                    turned=lambda encode, names: _alone(encode, [name[::-1] for name in names]),
                ),
            ),
            Mistake(
                "squared",
                "These are squares. A length is the root of the sum of squares.",
                lambda encode, names: _measured(encode, names, size=lambda x: (x**2).sum(axis=-1)),
            ),
            Mistake(
                "largest",
                "You took the largest difference of a component. A distance is the length of the "
                "whole difference.",
                lambda encode, names: _measured(
                    encode, names, size=lambda x: np.abs(x).max(axis=-1)
                ),
            ),
        ),
        hints=(
            "Each of the three needs the vectors of the whole list. What do you give the encoder "
            "besides, to compare with?",
            "‖e(name in the list) − e(name alone)‖, ‖e(name) − e(eman)‖, and |‖e(name)‖ − 1|.",
            "encode([name])[0] is a name alone, name[::-1] is reversed, and np.linalg.norm with "
            "axis=-1 gives lengths. np.stack with axis=1 puts three columns side by side.",
        ),
        solution="""\
def invariants_measured(encode, names):
    together = encode(names)  # (k, d)
    alone = np.array([encode([name])[0] for name in names])
    reverse = encode([name[::-1] for name in names])
    size = np.linalg.norm(together, axis=-1)
    return np.stack([np.linalg.norm(together - alone, axis=-1),
                     np.linalg.norm(together - reverse, axis=-1),
                     abs(size - 1)], axis=1)""",
    )
)
