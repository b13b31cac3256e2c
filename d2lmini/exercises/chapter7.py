"""Chapter 7: reading the heads of a real model."""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from d2lmini._arrays import Array
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import rough
from d2lmini.heads import merge_heads


def _weights(layers: int, heads: int, n: int, seed: int, sharpness: float = 1.0) -> Array:
    """Draw causal weights, (layers, heads, n, n): each row sums to 1."""
    draw = np.random.default_rng(seed).integers(1, 9, (layers, heads, n, n)) ** sharpness
    causal = np.tril(draw.astype(float))
    return causal / causal.sum(axis=-1, keepdims=True)


# What followed the last time


def _followed(
    weights: Array, period: int, back: int = -1, rows: Callable[[int, int], range] | None = None
) -> Array:
    """Average what each query gives to the key `period + back` places before it."""
    n = weights.shape[-1]
    queries = np.array(rows(n, period) if rows else range(n - period, n))
    return weights[..., queries, queries - period - back].mean(axis=-1)


register(
    Exercise(
        name="followed_score",
        chapter=7,
        difficulty="medium",
        minutes=15,
        task="Measure how well each head looks up what followed the last time. The text ends with "
        "the same `period` pieces said twice, so weights (layers, heads, n, n) has queries in its "
        "last `period` rows whose piece was seen before. For each of them take the weight of the "
        "piece that followed then, and average. Return (layers, heads).",
        returns={"scores": "(layers, heads)"},
        reference=_followed,
        cases=lambda: [
            (_weights(1, 1, 5, 3), 2),
            (_weights(1, 2, 4, 0), 1),
            (_weights(2, 1, 7, 1), 3),
            (_weights(2, 3, 9, 2, 2.0), 4),
            (_weights(3, 2, 12, 4, 3.0), 5),
        ],
        mistakes=(
            Mistake(
                "same-piece",
                "You measured the weight of the same piece, one period ago. Wanted is the piece "
                "that came after it.",
                lambda weights, period: _followed(weights, period, back=0),
            ),
            Mistake(
                "preceded",
                "You went one place too far back, to the piece that stood before it. Wanted is the "
                "one that came after.",
                lambda weights, period: _followed(
                    weights, period, back=1, rows=lambda n, p: range(max(n - p, p + 1), n)
                ),
                also=(lambda weights, period: _followed(weights, period, back=1),),
            ),
            Mistake(
                "earlier-rows",
                "You averaged over every row that has a key so far back. Only the last `period` "
                "queries have a piece that was seen before.",
                lambda weights, period: _followed(
                    weights, period, rows=lambda n, p: range(p - 1, n)
                ),
                also=(
                    lambda weights, period: _followed(
                        weights, period, rows=lambda n, p: range(p, n)
                    ),
                ),
            ),
            Mistake(
                "key-asks",
                "Rows are queries and columns are keys. You read a column as the query.",
                lambda weights, period: _followed(weights.swapaxes(-1, -2), period),
            ),
            Mistake(
                "sum",
                "You added the weights up. A score that can be compared is their mean.",
                lambda weights, period: _followed(weights, period) * period,
            ),
        ),
        hints=(
            "Write down one case. With a period of 3, query 8 holds the piece that key 5 held. "
            "Where is the piece that followed it?",
            "The mean over i = n − period, …, n − 1 of α(i, i − period + 1).",
            "An index array for the queries and one for the keys, side by side, pick one weight "
            "for each pair; leave the first two axes to `...`.",
        ),
        solution="""\
def followed_score(weights, period):
    n = weights.shape[-1]
    query = np.arange(n - period, n)  # the second time
    followed = query - period + 1  # one after the first time
    return weights[..., query, followed].mean(axis=-1)""",
    )
)


# Which head looks one back


def _previous(weights: Array, first_row: int = 2, offset: int = -1) -> Array:
    return np.diagonal(weights, offset, -2, -1)[..., first_row + min(offset, 0) :].mean(axis=-1)


def _best(scores: Array, start: int = 1) -> Array:
    return np.array(np.unravel_index(scores.argmax(), scores.shape)) + start


def _best_by_layer(scores: Array) -> Array:
    layer = scores.mean(axis=-1).argmax()
    return np.array([layer, scores[layer].argmax()]) + 1


def _one_back_cases() -> list[Case]:
    def case(*layers: list[list[float]]) -> Case:
        """Make heads that give the piece before what is listed, from the second row on."""
        before = np.array(layers)  # (layers, heads, n - 1)
        weights = np.zeros((*before.shape[:2], before.shape[2] + 1, before.shape[2] + 1))
        weights[:, :, 0, 0] = 1
        for i in range(1, weights.shape[-1]):
            weights[:, :, i, i - 1] = before[:, :, i - 1]
            weights[:, :, i, i] = 1 - before[:, :, i - 1]
        return (weights,)

    even = [[0.5, 0.6, 0.6, 0.6], [0.5, 0.55, 0.55, 0.55], [0.5, 0.5, 0.6, 0.5]]
    uneven = [[0.5, 0.1, 0.1, 0.1], [0.5, 0.9, 0.1, 0.1], [0.5, 0.7, 0.7, 0.6]]
    seldom = [[0.5, 0.1, 0.2, 0.1, 0.3, 0.2], [0.4, 0.1, 0.3, 0.2, 0.9, 0.95]]  # by its last rows
    return [
        case([[0.1, 0.8], [0.9, 0.3]]),
        case([[0.3, 0.2, 0.4]], [[0.2, 0.7, 0.5]], [[0.9, 0.3, 0.6]]),
        case(even, uneven),
        case(uneven, even),
        case([[0.5, 0.8, 0.1, 0.1, 0.8, 0.1], [0.6, 0.3, 0.3, 0.3, 0.3, 0.3]], seldom),
    ]


register(
    Exercise(
        name="looks_one_back",
        chapter=7,
        difficulty="medium",
        minutes=15,
        task="Find the head that looks most at the piece one before, by the mean of that weight "
        "over the rows. weights (layers, heads, n, n); leave out the first two rows, since the "
        "first piece has none before it and the second cannot be told from a head that rests on "
        "the first. Return an array (2,) with its layer and its number in the layer, both counted "
        "from 1.",
        returns={"head": "(2,)"},
        reference=lambda weights: _best(_previous(weights)),
        cases=_one_back_cases,
        mistakes=(
            Mistake(
                "from-0",
                "You counted from 0. The layer and the head of the text are counted from 1.",
                lambda weights: _best(_previous(weights), start=0),
            ),
            Mistake(
                "second-row",
                "The second row is in your mean. There a head that rests on the first piece looks "
                "like one that looks one back.",
                lambda weights: _best(_previous(weights, first_row=1)),
            ),
            Mistake(
                "itself",
                "You measured what a piece takes from itself. One before is a column to the left.",
                lambda weights: _best(_previous(weights, offset=0)),
            ),
            Mistake(
                "swapped",
                "The layer comes first, then the head.",
                lambda weights: _best(_previous(weights))[::-1].copy(),
            ),
            Mistake(
                "layer-first",
                "You chose the best layer and then its best head. The best of all heads may be in "
                "another layer.",
                lambda weights: _best_by_layer(_previous(weights)),
            ),
            Mistake(
                "largest-weight",
                "You took the head with the largest single weight one back. A head is judged by "
                "its mean.",
                lambda weights: _best(np.diagonal(weights, -1, -2, -1)[..., 1:].max(axis=-1)),
            ),
        ),
        hints=(
            "In the picture of such a head, where are the large weights? Make one number of them "
            "for each head, and then look for the largest.",
            "The mean over i = 2, …, n − 1 (from 0) of α(i, i − 1).",
            "np.diagonal with offset −1 and the last two axes gives α(i, i − 1) from i = 1 on. "
            "np.unravel_index turns the place that argmax gives into two numbers.",
        ),
        solution="""\
def looks_one_back(weights):
    before = np.diagonal(weights, -1, -2, -1)[..., 1:]  # from the third row on
    scores = before.mean(axis=-1)  # (layers, heads)
    return np.array(np.unravel_index(scores.argmax(), scores.shape)) + 1""",
    )
)


# Heads that rest


def _resting(
    weights: Array,
    first_row: int = 1,
    least: float = 0.5,
    kept: Callable[[Array], Array] = lambda weights: weights[..., 0],
) -> Array:
    return (kept(weights)[..., first_row:].mean(axis=-1) > least).mean(axis=-1)


def _resting_cases() -> list[Case]:
    def case(layers: int, heads: int, n: int, shares: list[float]) -> Case:
        weights = _weights(layers, heads, n, heads)
        for at, share in zip(np.ndindex(layers, heads), shares, strict=True):
            weights[at][1:] *= 1 - share
            weights[at][1:, 0] += share
        return (weights,)

    return [
        case(1, 2, 2, [0.7, 0]),
        case(2, 3, 4, [0.7, 0.1, 0, 0.6, 0.9, 0.15]),
        case(3, 2, 6, [0, 0.2, 0.7, 0.3, 0.8, 0.6]),
        case(2, 4, 3, [0, 0, 0, 0, 0.5, 0.25, 0.1, 0]),
        case(3, 2, 4, [0.9, 0.8, 0.1, 0, 0.7, 0.2]),
    ]


register(
    Exercise(
        name="resting_heads",
        chapter=7,
        difficulty="easy",
        minutes=10,
        task="Which part of each layer's heads rests on the first piece? A head rests if its "
        "queries, all but the first, give the first key more than half on average. weights "
        "(layers, heads, n, n). Return (layers,), the share of each layer's heads that rest.",
        returns={"share": "(layers,)"},
        reference=_resting,
        cases=_resting_cases,
        mistakes=(
            Mistake(
                "first-row",
                "The first query is in your mean. It sees only itself, so it gives the first key 1 "
                "in every head.",
                lambda weights: _resting(weights, first_row=0),
            ),
            Mistake(
                "row-not-column",
                "You took the first row. What all queries give to the first key is the first "
                "column.",
                lambda weights: _resting(weights, first_row=0, kept=lambda w: w[..., 0, :]),
                also=(lambda weights: _resting(weights, kept=lambda w: w[..., 0, :]),),
            ),
            Mistake(
                "mean-weight",
                "You averaged the weights of a layer's heads. Asked is how many of them are above "
                "one half.",
                lambda weights: weights[:, :, 1:, 0].mean(axis=(1, 2)),
            ),
            Mistake(
                "each-query",
                "You counted queries above one half. First average over a head's queries, then "
                "count heads.",
                lambda weights: (weights[:, :, 1:, 0] > 0.5).mean(axis=(1, 2)),
            ),
            Mistake(
                "counted",
                "You counted the heads. A share is the count divided by the number of heads.",
                lambda weights: _resting(weights) * weights.shape[1],
            ),
        ),
        hints=(
            "One number for each head first, then one for each layer.",
            "Head (l, h) rests if the mean over i = 1, …, n − 1 of α(i, 0) is above 1/2.",
            "weights[..., 1:, 0].mean(axis=-1) > 0.5 is an array of True and False, and the mean "
            "of those is a share.",
        ),
        solution="""\
def resting_heads(weights):
    on_first = weights[..., 1:, 0].mean(axis=-1)  # (layers, heads)
    return (on_first > 0.5).mean(axis=-1)""",
    )
)


# A layer without some of its heads


def _without(heads: Array, w_o: Array, off: Collection[int], first: int = 1) -> Array:
    kept = heads.copy()
    kept[[head - first for head in off]] = 0
    return merge_heads(kept) @ w_o


def _without_tokens(heads: Array, w_o: Array, off: Collection[int]) -> Array:
    kept = heads.copy()
    kept[:, [head - 1 for head in off if head <= heads.shape[1]]] = 0
    return merge_heads(kept) @ w_o


def _only(heads: Array, w_o: Array, off: Collection[int]) -> Array:
    others = [head for head in range(1, len(heads) + 1) if head not in off]
    return _without(heads, w_o, others)


def _without_rows(heads: Array, w_o: Array, off: Collection[int]) -> Array:
    w_o = w_o.copy()
    w_o[[head - 1 for head in off]] = 0
    return merge_heads(heads) @ w_o


def _averaged(heads: Array, w_o: Array, off: Collection[int]) -> Array:
    kept = heads.copy()
    at = [head - 1 for head in off]
    kept[at] = kept[at].mean(axis=1, keepdims=True)
    return merge_heads(kept) @ w_o


def _rescaled(heads: Array, w_o: Array, off: Collection[int]) -> Array:
    return _without(heads, w_o, off) * (len(heads) / max(len(heads) - len(off), 1))


def _without_cases() -> list[Case]:
    def case(h: int, n: int, d: int, d_model: int, off: list[int]) -> Case:
        rng = np.random.default_rng(h + n)
        heads = rng.integers(-9, 10, (h, n, d)) / 4
        return heads, rng.integers(-9, 10, (h * d, d_model)) / 8, off

    return [
        case(2, 1, 1, 2, [1]),
        case(3, 2, 2, 4, [2]),
        case(4, 3, 2, 5, [1, 4]),
        case(3, 4, 1, 2, []),
        case(2, 5, 3, 4, [2]),
        (*rough(1, (2, 3, 2), (4, 1)), [2]),
        (*rough(2, (3, 2, 2), (6, 3)), [1, 3]),
    ]


def _slip(id: str, says: str, fn: Callable[..., Any], *also: Callable[..., Any]) -> Mistake:
    return Mistake(id, says, fn, also=also)


register(
    Exercise(
        name="without_heads",
        chapter=7,
        difficulty="easy",
        minutes=10,
        task="Take heads out of a layer. heads (h, n, d) holds what each head returns, w_o "
        "(h·d, d_model) mixes them, and off is a list of heads, counted from 1, whose output shall "
        "be zero. Return the output of the layer, (n, d_model). Use merge_heads of d2lmini.",
        returns={"output": "(tokens, d_model)"},
        reference=_without,
        cases=_without_cases,
        mistakes=(
            _slip(
                "from-0",
                "You took the heads as counted from 0. Head 1 stands at index 0.",
                lambda heads, w_o, off: _without(heads, w_o, [o % len(heads) for o in off], 0),
                lambda heads, w_o, off: _without(heads, w_o, off, 0),
            ),
            _slip(
                "tokens",
                "You silenced tokens. The heads are the first axis.",
                _without_tokens,
            ),
            _slip(
                "only-these",
                "You kept the heads that were to be taken out, and silenced the others.",
                _only,
            ),
            _slip(
                "rows-of-w-o",
                "You set single rows of w_o to zero. A head owns d of them.",
                _without_rows,
            ),
            _slip(
                "mean",
                "You replaced the output by its mean over the tokens. That is another way to take "
                "a head out, and a good one, but zeros were asked for.",
                _averaged,
            ),
            _slip(
                "rescaled",
                "You made up for the missing heads. The others stay as they are.",
                _rescaled,
            ),
        ),
        hints=(
            "The output of a layer is a sum over heads. What does a head add whose output is zero?",
            "With headᵢ = 0 for each i in off, the output is [head₁, …, head_h] W_O.",
            "Copy heads before you write into it, and subtract 1 from each number in off.",
        ),
        solution="""\
def without_heads(heads, w_o, off):
    from d2lmini import merge_heads

    kept = heads.copy()
    kept[[head - 1 for head in off]] = 0
    return merge_heads(kept) @ w_o""",
    )
)
