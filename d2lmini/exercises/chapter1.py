"""Chapter 1: from a lookup to attention."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from d2lmini._arrays import Array
from d2lmini.attention import attention
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import naive_softmax, rough, slip, tables
from d2lmini.retrieval import TrigramEncoder
from d2lmini.scores import cosine_score, dot_product_score
from d2lmini.weights import softmax

# One-hot weights


def _one_hot(scores: Array) -> Array:
    return np.eye(scores.shape[-1])[scores.argmax(axis=-1)]


register(
    Exercise(
        name="one_hot",
        chapter=1,
        difficulty="warm-up",
        minutes=5,
        task="From scores (n, m), make the weights (n, m) of an exact lookup: 1 for the key with "
        "the largest score of each row (the first, if several are equal), 0 for the others.",
        returns={"weights": "(queries, keys)"},
        reference=_one_hot,
        cases=lambda: [
            tables([[0, 2]]),
            tables([[0, 2, 1], [5, 3, 4]]),
            tables([[1, 1, 0], [0, 3, 3]]),
            tables([[-1000, -1001], [-3, -2], [1000, 7]]),
            tables([[0.25, 0.75, 0.5, 0.7], [-0.1, -0.2, -0.15, -3.5]]),
            tables([[2.00004, 2.00007, 2.00001], [-1.50003, -1.50009, -1.50001]]),
        ],
        mistakes=(
            Mistake(
                "positions",
                "You returned where the largest scores are, not weights. Weights have one number "
                "for every key.",
                lambda scores: scores.argmax(axis=-1),
            ),
            Mistake(
                "axis",
                "You looked for the largest score in each column. A row holds the scores of one "
                "query.",
                lambda scores: np.eye(len(scores))[scores.argmax(axis=0)].T,
            ),
            Mistake(
                "ties",
                "Where two scores are equally large, both got weight 1, and the row sums to 2. "
                "An exact lookup returns one value.",
                lambda scores: (scores == scores.max(axis=-1, keepdims=True)) * 1.0,
            ),
            Mistake(
                "whole-matrix",
                "Only the largest score of the whole matrix got a 1. Every query needs an answer "
                "of its own.",
                lambda scores: (scores == scores.max()) * 1.0,
            ),
            Mistake(
                "largest-score",
                "You kept the largest scores themselves. As weights they must be 1.",
                lambda scores: _one_hot(scores) * scores,
            ),
        ),
        hints=(
            "For the scores 0, 2, 1 the weights are 0, 1, 0. Where is the largest score of a row?",
            "In each row, weight i is 1 if i = argmax of the row, and 0 otherwise.",
            "argmax(axis=-1) finds the positions. Which matrix has all one-hot vectors as its "
            "rows?",
        ),
        solution="""\
def one_hot(scores):
    best = scores.argmax(axis=-1)  # (n,)
    return np.eye(scores.shape[-1])[best]""",
    )
)


# Cosine scores


def _lengths(x: Array) -> Array:
    length = np.sqrt((x**2).sum(axis=-1, keepdims=True))
    return np.where(length > 0, length, 1.0)


register(
    Exercise(
        name="cosine_scores",
        chapter=1,
        difficulty="easy",
        minutes=10,
        task="Score every query (n, d) against every key (m, d) with the cosine of their angle. A "
        "vector of zeros scores 0. Return (n, m).",
        returns={"scores": "(queries, keys)"},
        reference=cosine_score,
        cases=lambda: [
            tables([[3, 4]], [[0, 2], [4, 3]]),
            tables([[1, 1, 1], [0, 3, 4]], [[1, 0, 0], [2, 2, 1], [0, 0, 5], [1, -1, 0]]),
            tables([[1, 2], [0, 0], [2, -1]], [[0, 0], [3, 4]]),
            tables([[0.01, 0.02], [-30, 0.5]], [[0.5, 0.25], [7, -70], [-0.001, 0]]),
            rough(1, (3, 2), (1, 2)),
            rough(2, (2, 4), (3, 4)),
        ],
        mistakes=(
            Mistake(
                "no-lengths",
                "These are dot products. Divide by both lengths: otherwise a long key wins merely "
                "because it is long.",
                lambda query, key: query @ key.T,
            ),
            Mistake(
                "keys-only",
                "Only the keys have been brought to length 1. The queries have a length too.",
                lambda query, key: query @ (key / _lengths(key)).T,
            ),
            Mistake(
                "queries-only",
                "Only the queries have been brought to length 1. The keys have a length too.",
                lambda query, key: query / _lengths(query) @ key.T,
            ),
            Mistake(
                "squared",
                "You divided by the squared lengths: a root is missing.",
                lambda query, key: query / _lengths(query) ** 2 @ (key / _lengths(key) ** 2).T,
                also=(
                    lambda query, key: (
                        query @ key.T / (query**2).sum(axis=-1)[:, None] / (key**2).sum(axis=-1)
                    ),
                ),
            ),
            Mistake(
                "transposed",
                "Your matrix is transposed: rows are queries, columns are keys.",
                lambda query, key: cosine_score(key, query),
            ),
            Mistake(
                "zero-vector",
                "Right for all other vectors. A vector of zeros has length 0, and 0 / 0 is nan; "
                "its score should be 0.",
                lambda query, key: (
                    query
                    @ key.T
                    / np.sqrt((query**2).sum(axis=-1)[:, None] * (key**2).sum(axis=-1))
                ),
            ),
        ),
        hints=(
            "Length does not count, only direction. Bring all vectors to length 1 first; then a "
            "dot product is the cosine.",
            "Try (3, 4) and (4, 3) by hand: both have length 5, and the cosine is 24/25. Which "
            "product of two matrices gives all dot products at once?",
            "np.linalg.norm takes axis=-1 and keepdims=True. By what could you divide a vector of "
            "zeros, so that it stays one?",
        ),
        solution="""\
def cosine_scores(query, key):
    def unit(x):
        length = np.linalg.norm(x, axis=-1, keepdims=True)
        return x / np.where(length > 0, length, 1.0)

    return unit(query) @ unit(key).T""",
    )
)


# Trigram vectors


def _grams(text: str, padded: bool = True, lower: bool = True) -> list[str]:
    text = text.lower() if lower else text
    text = f" {text} " if padded else text
    return [text[i : i + 3] for i in range(len(text) - 2)]


def _counts(
    texts: list[str], vocabulary: list[str], padded: bool = True, lower: bool = True
) -> Array:
    counted = [Counter(_grams(text, padded, lower)) for text in texts]
    return np.array([[float(grams[gram]) for gram in vocabulary] for grams in counted])


def _rows_of_length_1(counts: Array) -> Array:
    return counts / _lengths(counts)


def _trigram_vectors(texts: list[str], vocabulary: list[str]) -> Array:
    encode = TrigramEncoder(texts)
    column = dict(zip(encode.vocabulary, encode(texts).T, strict=True))
    absent = np.zeros(len(texts))
    return _rows_of_length_1(np.stack([column.get(gram, absent) for gram in vocabulary], axis=1))


register(
    Exercise(
        name="trigram_vectors",
        chapter=1,
        difficulty="medium",
        minutes=20,
        task="Turn k texts into vectors (k, v): count how often each of the v trigrams of the "
        "vocabulary occurs in the text, in lower case and with one space at both ends, and divide "
        "by the vector's length. A text without any known trigram gets zeros.",
        returns={"vectors": "(texts, trigrams)"},
        reference=_trigram_vectors,
        cases=lambda: [
            (["tie"], [" ti", "tie"]),
            (["anana", "Ann"], ["ana", " an", "nn ", "na "]),
            (["Mimi Mi", "xyz"], [" mi", "mim", "imi"]),
            (["it's  aaaaa", " on A-"], ["t's", "s  ", "  o", "aaa", "n a", "its"]),
            (["Oh-oh-oh-oh-oh, is"], ["h-o", "  o", "-oh", "s  ", "is ", "hoh"]),
            (["ha" * 300], ["hah", " ha"]),
        ],
        mistakes=(
            Mistake(
                "not-unit",
                "These are counts. Divide each vector by its length, or long texts get large "
                "scores.",
                _counts,
            ),
            Mistake(
                "no-padding",
                "The spaces are missing: with one at each end, the first and the last letters make "
                "trigrams of their own.",
                lambda texts, vocabulary: _rows_of_length_1(
                    _counts(texts, vocabulary, padded=False)
                ),
            ),
            Mistake(
                "case",
                "You treat upper and lower case as different letters. Make the text lower case "
                "first.",
                lambda texts, vocabulary: _rows_of_length_1(
                    _counts(texts, vocabulary, lower=False)
                ),
                also=(
                    lambda texts, vocabulary: (
                        (counts := _counts(texts, vocabulary, lower=False))
                        / np.linalg.norm(counts, axis=1, keepdims=True)
                    ),
                ),
            ),
            Mistake(
                "present-or-not",
                "You noted whether a trigram occurs. Count how often: “anana” has “ana” twice.",
                lambda texts, vocabulary: _rows_of_length_1(
                    np.minimum(_counts(texts, vocabulary), 1)
                ),
            ),
            Mistake(
                "no-overlap",
                "You counted with str.count, which skips pieces that overlap: “anana” has “ana” "
                "twice.",
                lambda texts, vocabulary: _rows_of_length_1(
                    np.array(
                        [
                            [float(f" {text.lower()} ".count(gram)) for gram in vocabulary]
                            for text in texts
                        ]
                    )
                ),
            ),
            Mistake(
                "sum",
                "You divided by the sum of the counts. The length of a vector is the root of the "
                "sum of squares; only with it is the dot product of equal texts 1.",
                lambda texts, vocabulary: (
                    (counts := _counts(texts, vocabulary))
                    / np.maximum(counts.sum(axis=1, keepdims=True), 1)
                ),
            ),
            Mistake(
                "no-known-trigram",
                "Right for all other texts. One without any known trigram has length 0, and 0 / 0 "
                "is nan; it should stay a vector of zeros.",
                lambda texts, vocabulary: (
                    (counts := _counts(texts, vocabulary))
                    / np.linalg.norm(counts, axis=1, keepdims=True)
                ),
            ),
        ),
        hints=(
            "The smallest case of the check is “tie” with the vocabulary “ ti”, “tie”. Write down "
            "the trigrams of “ tie ” by hand: “ ti”, “tie”, “ie ”. Which of them count?",
            "Entry (i, j) is the number of times trigram j occurs in text i, divided by the root "
            "of the sum of the squares of row i.",
            "A list has .count(). np.linalg.norm with axis=1 and keepdims=True gives the lengths; "
            "what must not be divided by?",
        ),
        solution="""\
def trigram_vectors(texts, vocabulary):
    rows = []
    for text in texts:
        padded = f" {text.lower()} "
        pieces = [padded[i : i + 3] for i in range(len(padded) - 2)]
        rows.append([pieces.count(gram) for gram in vocabulary])
    counts = np.array(rows, dtype=float)  # (k, v)
    length = np.linalg.norm(counts, axis=1, keepdims=True)
    return counts / np.where(length > 0, length, 1.0)""",
    )
)


# A key for nobody


def _with_nobody(scores: Array, values: Array, nobody: float, temperature: float) -> Array:
    return _with_extra(scores, values, nobody, temperature, softmax)


def _with_extra(
    scores: Array, values: Array, nobody: float, temperature: float, softmax: Any
) -> Array:
    all_scores = np.hstack([scores, np.full((len(scores), 1), nobody)])
    all_values = np.vstack([values, np.zeros((1, values.shape[1]))])
    return softmax(all_scores / temperature) @ all_values


def _extra_last(scores: Array, nobody: float) -> Array:
    return np.hstack([scores, np.full((len(scores), 1), nobody)])


def _with_nobody_cases() -> list[Case]:
    return [
        (*tables([[1, 0]], [[10], [20]]), 0.5, 2.0),
        (*tables([[0, 1, 2], [3, 3, 0]], [[10, 0], [0, 5], [20, 1]]), 1.25, 0.5),
        (*tables([[0.9, 0.8, 0.1]], [[1, 0], [0, 1], [5, 5]]), 0.7, 0.001),
        (*tables([[-3.5, -3.6], [0.2, 0.15], [-0.1, -9]], [[1.5], [0.25]]), 0.1, 0.05),
        (*tables([[-900, -901, -900.5], [0.1, 0.4, 0]], [[1, 0.5], [2, 1], [4, 0]]), -900.2, 1.0),
        (*tables([[2, 0, -1]], [[-1.5], [4], [0.25]]), -3.0, 0.001),
        (*rough(3, (2, 4), (4, 3)), -0.4, 0.7),
    ]


register(
    Exercise(
        name="with_nobody",
        chapter=1,
        difficulty="medium",
        minutes=15,
        task="Answer n queries from their scores (n, m) and the values (m, d_v), but let the "
        "answer fade to zeros if nobody fits. Add one more key, for nobody: it has the score "
        "nobody with every query, and its value is zeros. The weights are the softmax of all m + 1 "
        "scores, divided by the temperature, which may be so low that exp overflows; subtracting "
        "the largest score of a row first changes no weight. Return (n, d_v).",
        returns={"answers": "(queries, d_v)"},
        reference=_with_nobody,
        cases=_with_nobody_cases,
        mistakes=(
            slip(
                "without-nobody",
                "The key for nobody takes no weight. Its exponential belongs into the sum by which "
                "all are divided, although its value is zeros; don't divide again without it.",
                lambda softmax: (
                    lambda scores, values, nobody, temperature: (
                        softmax(scores / temperature) @ values
                    )
                ),
            ),
            slip(
                "nobody-not-divided",
                "You divided the scores by the temperature, but not that of nobody.",
                lambda softmax: (
                    lambda scores, values, nobody, temperature: _with_extra(
                        scores / temperature, values, nobody, 1.0, softmax
                    )
                ),
            ),
            slip(
                "no-temperature",
                "The temperature has no effect. The scores are divided by it before exp is taken.",
                lambda softmax: (
                    lambda scores, values, nobody, temperature: _with_extra(
                        scores, values, nobody, 1.0, softmax
                    )
                ),
            ),
            slip(
                "limit",
                "You used the score of nobody as a limit: all or nothing. As one more key it lets "
                "the answer fade without a jump.",
                lambda softmax: (
                    lambda scores, values, nobody, temperature: np.where(
                        scores.max(axis=-1, keepdims=True) >= nobody,
                        softmax(scores / temperature) @ values,
                        0.0,
                    )
                ),
            ),
            slip(
                "mean-for-nobody",
                "You gave nobody the mean of the values. Its value is zeros.",
                lambda softmax: (
                    lambda scores, values, nobody, temperature: (
                        softmax(_extra_last(scores, nobody) / temperature)
                        @ np.vstack([values, values.mean(axis=0)])
                    )
                ),
            ),
            slip(
                "axis",
                "The softmax runs over the queries. Each query's weights, a row, must sum to 1.",
                lambda softmax: (
                    lambda scores, values, nobody, temperature: (
                        softmax(_extra_last(scores, nobody) / temperature, axis=0)[:, :-1] @ values
                    )
                ),
            ),
            Mistake(
                "no-max",
                "Right at high temperatures. At a low one the scores become so large that exp "
                "overflows: subtract the largest of each row first, that of nobody included.",
                lambda scores, values, nobody, temperature: _with_extra(
                    scores, values, nobody, temperature, naive_softmax
                ),
            ),
            Mistake(
                "one-max",
                "You subtracted the largest score of the whole matrix. In a row whose scores are "
                "far below it every exponential is 0. Each row has a largest score of its own.",
                lambda scores, values, nobody, temperature: (
                    naive_softmax(
                        (_extra_last(scores, nobody) - _extra_last(scores, nobody).max())
                        / temperature
                    )[:, :-1]
                    @ values
                ),
            ),
        ),
        hints=(
            "What does the table of keys and values look like once nobody has a row in it?",
            "The sum in the denominator has one more term, that of nobody. In the weighted sum its "
            "term is zero.",
            "Either append a column to the scores and a row of zeros to the values, or add one "
            "exponential to each row's sum; np.maximum finds the largest of both.",
        ),
        solution="""\
def with_nobody(scores, values, nobody, temperature):
    column = np.full((len(scores), 1), nobody)
    scaled = np.hstack([scores, column]) / temperature  # (n, m + 1)
    e = np.exp(scaled - scaled.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights[:, :-1] @ values  # the value of nobody is zeros""",
    )
)


# Who is asked for, or nobody


def _ask_or_nobody(query: Array, key: Array, value: Array, least: float) -> Array:
    scores = cosine_score(query, key)
    fits = scores.max(axis=-1, keepdims=True) >= least
    return np.where(fits, softmax(scores / 0.1) @ value, 0.0)


def _ask_or_nobody_by(fits: Callable[[Array, float], Array]) -> Callable[..., Array]:
    """Return the answer that asks something else of the scores."""

    def answer(query: Array, key: Array, value: Array, least: float) -> Array:
        scores = cosine_score(query, key)
        return np.where(fits(scores, least), softmax(scores / 0.1) @ value, 0.0)

    return answer


register(
    Exercise(
        name="ask_or_nobody",
        chapter=1,
        difficulty="medium",
        minutes=15,
        task="Answer the queries (n, d) from keys (m, d) and values (m, d_v) with the softmax of "
        "cosine scores at temperature 0.1. Where no score of a query reaches least, nobody fits: "
        "give that query zeros. Use cosine_score and softmax of d2lmini. Return (n, d_v).",
        returns={"answers": "(queries, d_v)"},
        reference=_ask_or_nobody,
        cases=lambda: [
            (*tables([[3, 4]], [[4, 3], [5, 0]], [[10.5], [20]]), 0.5),
            (*tables([[1, 0.5], [-1, 0.2]], [[2, 1], [3, 0], [1.5, 2]], [[4], [9], [1]]), 0.6),
            (
                *tables(
                    [[1, 1, 0.5], [0, -1, 0.3], [0.5, 0, 4]],
                    [[2, 2, 1], [-1, 0, 0.7]],
                    [[1, 0.5], [7, 3]],
                ),
                0.9,
            ),
            (*tables([[2, 1]], [[-1, -3], [-2, -0.5]], [[5, 1, 2], [3, 8, 1]]), -0.95),
            (*tables([[1, -2], [0.5, -3]], [[1, 1], [-1, 0.5]], [[2.5], [4]]), 0.8),
            (*tables([[1, 0], [0, 1]], [[2, 0], [1, 0]], [[3, 1], [6, 2]]), 1.0),
            (*rough(6, (2, 3), (1, 3), (1, 2)), -0.9),
            (*rough(17, (3, 2), (4, 2), (4, 2)), 0.7),
        ],
        mistakes=(
            Mistake(
                "by-weight",
                "You checked whether a weight is large enough. The weights of a query always sum "
                "to 1, so one of them may be large although nobody fits. Look at the scores.",
                _ask_or_nobody_by(
                    lambda scores, least: softmax(scores / 0.1).max(axis=-1, keepdims=True) >= least
                ),
            ),
            Mistake(
                "whole-matrix",
                "You looked for the best score among all queries. Each query must find somebody "
                "of its own.",
                _ask_or_nobody_by(lambda scores, least: scores.max() >= least),
            ),
            Mistake(
                "axis",
                "You looked for the best score in each column. A row holds the scores of one "
                "query.",
                lambda query, key, value, least: (
                    softmax(cosine_score(query, key) / 0.1)
                    @ np.where(cosine_score(query, key).max(axis=0)[:, None] >= least, value, 0.0)
                ),
            ),
            Mistake(
                "every-key",
                "You required every key to fit. One is enough.",
                _ask_or_nobody_by(
                    lambda scores, least: scores.min(axis=-1, keepdims=True) >= least
                ),
            ),
            Mistake(
                "keys-dropped",
                "You left out each key that does not reach the limit. The limit is for the best "
                "key only; once somebody fits, all of them are mixed.",
                lambda query, key, value, least: (
                    np.where(
                        cosine_score(query, key) >= least,
                        softmax(cosine_score(query, key) / 0.1),
                        0.0,
                    )
                    @ value
                ),
            ),
            Mistake(
                "reversed",
                "You have it the wrong way round: the queries that nobody fits are the ones that "
                "got an answer.",
                _ask_or_nobody_by(lambda scores, least: scores.max(axis=-1, keepdims=True) < least),
            ),
            Mistake(
                "strictly",
                "Right, except when a score equals the limit: that counts as reaching it.",
                _ask_or_nobody_by(lambda scores, least: scores.max(axis=-1, keepdims=True) > least),
            ),
            Mistake(
                "no-temperature",
                "The scores go into the softmax as they are. Divide them by the temperature, 0.1.",
                lambda query, key, value, least: np.where(
                    cosine_score(query, key).max(axis=-1, keepdims=True) >= least,
                    softmax(cosine_score(query, key)) @ value,
                    0.0,
                ),
            ),
            Mistake(
                "always-answers",
                "Every query gets an answer, also where no score reaches the limit.",
                lambda query, key, value, least: softmax(cosine_score(query, key) / 0.1) @ value,
            ),
        ),
        hints=(
            "Which number tells that nobody fits: the largest weight of a row, or its largest "
            "score?",
            "Compute the answer of every query as usual. Then replace it by zeros in the rows "
            "whose largest score is below the limit.",
            "max(axis=-1, keepdims=True) has shape (n, 1), so np.where can choose whole rows of "
            "the answers (n, d_v).",
        ),
        solution="""\
def ask_or_nobody(query, key, value, least):
    from d2lmini import cosine_score, softmax

    scores = cosine_score(query, key)  # (n, m)
    answers = softmax(scores / 0.1) @ value  # (n, d_v)
    fits = scores.max(axis=-1, keepdims=True) >= least  # (n, 1)
    return np.where(fits, answers, 0.0)""",
    )
)


# What one entry changes


def _change_without(query: Array, key: Array, value: Array) -> Array:
    def output(kept: Array) -> Array:
        return attention(query[None], key[kept], value[kept], score=dot_product_score).output[0]

    everyone = np.full(len(key), True)
    changes = [output(everyone) - output(np.arange(len(key)) != i) for i in range(len(key))]
    return np.array([np.sqrt((change**2).sum()) for change in changes])


def _weights(query: Array, key: Array) -> Array:
    return softmax(key @ query)


register(
    Exercise(
        name="change_without",
        chapter=1,
        difficulty="medium",
        minutes=20,
        task="Does a large weight mean that an entry matters? Take the entries out of the store, "
        "one at a time, and measure how far the output of attention (with dot_product_score) "
        "moves. The query is one vector (d,), keys are (m, d), values (m, d_v). Return the m "
        "lengths of these moves, (m,). Use attention of d2lmini.",
        returns={"moves": "(keys,)"},
        reference=_change_without,
        cases=lambda: [
            tables([1], [[0.5], [0.1]], [[3], [5]]),
            tables([1, 0.5], [[1, 0], [0.3, 2], [0, 0.1]], [[4], [-1], [2.5]]),
            tables([0.5, -1, 2], [[1, 0, 1], [0, 1, 0.5], [2, 2, 1]], [[1, 7], [0, 2], [-3, 2]]),
            tables([-1, 1], [[0, 2], [1, 0], [2, 2], [0.5, 1]], [[6], [6], [6], [1.5]]),
            rough(4, (3,), (4, 3), (4, 2)),
            tables([40, -30], [[20, 2], [21, 3], [-30, -10]], [[1], [-2], [4]]),
        ],
        mistakes=(
            Mistake(
                "weights",
                "These are the weights. They say how much of an entry is in the output, not how "
                "much the output would move without it.",
                lambda query, key, value: _weights(query, key),
            ),
            Mistake(
                "value-zeroed",
                "You put zeros in the place of the value. Then its weight is still there, pulling "
                "the output to 0; without the entry the others share its weight.",
                lambda query, key, value: np.array(
                    [
                        np.linalg.norm(w * v)
                        for w, v in zip(_weights(query, key), value, strict=True)
                    ]
                ),
            ),
            Mistake(
                "key-zeroed",
                "You put zeros in the place of the key. Such a key has score 0, which is a score "
                "like any other: the entry is still read.",
                lambda query, key, value: np.array(
                    [
                        np.linalg.norm(
                            (
                                _weights(query, key)
                                - _weights(
                                    query, np.where(np.eye(len(key))[i][:, None] == 1, 0, key)
                                )
                            )
                            @ value
                        )
                        for i in range(len(key))
                    ]
                ),
            ),
            Mistake(
                "signed",
                "A move has a length, which is never negative. Take the root of the sum of its "
                "squares.",
                lambda query, key, value: np.array(
                    [
                        (
                            _weights(query, key) @ value
                            - _weights(query, np.delete(key, i, 0)) @ np.delete(value, i, 0)
                        ).sum()
                        for i in range(len(key))
                    ]
                ),
                also=(
                    lambda query, key, value: np.array(
                        [
                            (
                                _weights(query, np.delete(key, i, 0)) @ np.delete(value, i, 0)
                                - _weights(query, key) @ value
                            ).sum()
                            for i in range(len(key))
                        ]
                    ),
                ),
            ),
            Mistake(
                "squared",
                "These are the squares of the lengths.",
                lambda query, key, value: _change_without(query, key, value) ** 2,
            ),
            Mistake(
                "outputs",
                "These are the lengths of the outputs without the entry. Compare each with the "
                "output of the whole store.",
                lambda query, key, value: np.array(
                    [
                        np.linalg.norm(
                            _weights(query, np.delete(key, i, 0)) @ np.delete(value, i, 0)
                        )
                        for i in range(len(key))
                    ]
                ),
            ),
        ),
        hints=(
            "Two stores: the whole one, and the one without entry i. Ask both the same question.",
            "The i-th number is ‖o − oᵢ‖, where oᵢ is the output of attention over all keys and "
            "values but the i-th.",
            "np.delete(key, i, axis=0) leaves out a row. attention wants a matrix of queries: "
            "query[None] has shape (1, d).",
        ),
        solution="""\
def change_without(query, key, value):
    from d2lmini import attention, dot_product_score

    def output(key, value):
        return attention(query[None], key, value, score=dot_product_score).output[0]

    moves = []
    for i in range(len(key)):
        without = output(np.delete(key, i, axis=0), np.delete(value, i, axis=0))
        moves.append(np.linalg.norm(output(key, value) - without))
    return np.array(moves)""",
    )
)


# Learning from a click


def _click_gradient(scores: Array, clicked: int, temperature: float) -> Array:
    return (softmax(scores / temperature) - np.eye(len(scores))[clicked]) / temperature


def _click_gradient_cases() -> list[Case]:
    return [
        (*tables([1, 0]), 0, 2.0),
        (*tables([0.5, 1, 0.2]), 2, 0.5),
        (*tables([0, 3, 1, 1]), 1, 4.0),
        (*tables([0.9, 0.1, 0.4, -0.3]), 1, 0.25),
        (*tables([-2, -0.5, -1.25]), 0, 0.5),
        (*rough(5, (5,)), 3, 0.9),
    ]


register(
    Exercise(
        name="click_gradient",
        chapter=1,
        difficulty="hard",
        minutes=30,
        task="A search has scores (m,), and the user clicked on one of the m results. The loss is "
        "−ln of that result's weight, softmax(scores / temperature)[clicked]. Return the slope of "
        "the loss along each score, (m,), as a formula, not by small steps.",
        returns={"slopes": "(keys,)"},
        reference=_click_gradient,
        cases=_click_gradient_cases,
        mistakes=(
            Mistake(
                "sign",
                "The sign is reversed: this is the slope of ln α. The loss is −ln α, and it falls "
                "when the clicked score rises.",
                lambda scores, clicked, temperature: -_click_gradient(scores, clicked, temperature),
            ),
            slip(
                "no-temperature-outside",
                "A factor is missing. The scores are divided by the temperature before the "
                "softmax, so by the chain rule the slopes are too.",
                lambda softmax: (
                    lambda scores, clicked, temperature: (
                        softmax(scores / temperature) - np.eye(len(scores))[clicked]
                    )
                ),
            ),
            slip(
                "no-temperature",
                "The temperature is not used.",
                lambda softmax: (
                    lambda scores, clicked, temperature: (
                        softmax(scores) - np.eye(len(scores))[clicked]
                    )
                ),
            ),
            slip(
                "weights-only",
                "These are the slopes of the logarithm of the sum. The clicked score occurs once "
                "more in the loss, on its own.",
                lambda softmax: (
                    lambda scores, clicked, temperature: softmax(scores / temperature) / temperature
                ),
            ),
            slip(
                "of-the-weight",
                "These are the slopes of the weight (with a minus). The loss is its logarithm, "
                "whose slope is that of the weight divided by the weight.",
                lambda softmax: (
                    lambda scores, clicked, temperature: (
                        softmax(scores / temperature)[clicked]
                        * (softmax(scores / temperature) - np.eye(len(scores))[clicked])
                        / temperature
                    )
                ),
            ),
            Mistake(
                "of-the-weight-itself",
                "These are the slopes of the weight. The loss is minus its logarithm, whose slope "
                "is that of the weight divided by the weight, with a minus.",
                lambda scores, clicked, temperature: (
                    -softmax(scores / temperature)[clicked]
                    * _click_gradient(scores, clicked, temperature)
                ),
            ),
            Mistake(
                "largest",
                "You took the largest score for the one that was clicked.",
                lambda scores, clicked, temperature: _click_gradient(
                    scores, int(scores.argmax()), temperature
                ),
            ),
            Mistake(
                "clicked-only",
                "Only the clicked score has a slope here. The others raise the sum in the "
                "denominator, so the loss rises with them.",
                lambda scores, clicked, temperature: (
                    np.eye(len(scores))[clicked] * _click_gradient(scores, clicked, temperature)
                ),
                also=(
                    lambda scores, clicked, temperature: _click_gradient(
                        scores, clicked, temperature
                    )[clicked],
                ),
            ),
            slip(
                "times-temperature",
                "You multiplied by the temperature at the end. A low temperature makes the "
                "differences larger and so the slopes: divide.",
                lambda softmax: (
                    lambda scores, clicked, temperature: (
                        (softmax(scores / temperature) - np.eye(len(scores))[clicked]) * temperature
                    )
                ),
            ),
        ),
        hints=(
            "Raising the clicked score lowers the loss, raising any other raises it. And adding "
            "the same number to all scores changes nothing, so the slopes sum to 0.",
            "With z = scores / T, the loss is ln Σⱼ exp(zⱼ) − z_clicked. The slope of the first "
            "term along zᵢ is the weight αᵢ. Then use the chain rule for zᵢ = aᵢ / T.",
            "Write down the slopes of both terms along zᵢ, once for the clicked i and once for "
            "another. What does the chain rule add?",
        ),
        solution="""\
def click_gradient(scores, clicked, temperature):
    scaled = scores / temperature
    e = np.exp(scaled)
    slopes = e / e.sum()
    slopes[clicked] -= 1
    return slopes / temperature""",
    )
)
