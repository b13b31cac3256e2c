"""Chapter 3: masks, scores and attention."""

from typing import Any

import numpy as np

from d2lmini import masks
from d2lmini._arrays import Array
from d2lmini.attention import attention
from d2lmini.exercises.model import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import naive_softmax, slip, tables
from d2lmini.scores import additive_score
from d2lmini.weights import masked_softmax, softmax

# Causal mask


def _causal(num_queries: int, num_keys: int) -> Array:
    return masks.causal_mask(num_queries, num_keys, like=np.empty(0))


register(
    Exercise(
        name="causal_mask",
        chapter=3,
        difficulty="warm-up",
        minutes=5,
        task="Return a boolean mask (num_queries, num_keys), True where a query may attend. The "
        "queries are the last positions, so the last query sees every key.",
        returns={"mask": "(queries, keys)"},
        reference=_causal,
        cases=lambda: [(1, 2), (2, 3), (3, 2), (2, 5), (4, 4)],
        mistakes=(
            Mistake(
                "off-by-one",
                "Off by one diagonal: a query may also see its own position.",
                lambda num_queries, num_keys: np.tri(
                    num_queries, num_keys, num_keys - num_queries - 1, dtype=bool
                ),
            ),
            Mistake(
                "transposed",
                "Queries see the future and not the past: the triangle is on the wrong side.",
                lambda num_queries, num_keys: np.triu(
                    np.ones((num_queries, num_keys), dtype=bool), num_keys - num_queries
                ),
            ),
            Mistake(
                "top-left",
                "The queries are placed at the first positions. Right when there are as many "
                "queries as keys; but when fewer, the queries are the last positions, and the last "
                "one sees every key.",
                lambda num_queries, num_keys: np.tri(num_queries, num_keys, dtype=bool),
            ),
            Mistake(
                "polarity",
                "The mask is upside down: True means that the query may attend.",
                lambda num_queries, num_keys: ~_causal(num_queries, num_keys),
            ),
            Mistake(
                "numbers",
                "The numbers are right, but a mask is boolean in this book: True and False.",
                lambda num_queries, num_keys: _causal(num_queries, num_keys).astype(float),
            ),
            Mistake(
                "additive",
                "This is a mask to be added to the scores. A mask in this book is boolean, with "
                "True = may attend.",
                lambda num_queries, num_keys: np.where(
                    _causal(num_queries, num_keys), 0.0, -np.inf
                ),
            ),
        ),
        hints=(
            "Number all positions from the left. At which position stands the first query, if the "
            "last query stands at the last key?",
            "Query i stands at position i + (m − n). It may attend to key j if j ≤ i + (m − n).",
            "Compare np.arange(num_keys) with a column of positions, made by [:, None]; or look up "
            "what the argument k of np.tri does.",
        ),
        solution="""\
def causal_mask(num_queries, num_keys):
    position = np.arange(num_queries) + num_keys - num_queries
    return np.arange(num_keys) <= position[:, None]""",
    )
)


# Padding mask


def _visible(lengths: Array, num_keys: int) -> Array:
    return np.arange(num_keys) < lengths[:, None]


register(
    Exercise(
        name="padding_mask",
        chapter=3,
        difficulty="easy",
        minutes=10,
        task="Sequences of these lengths (batch,) are padded at the end to num_keys. Return a "
        "boolean mask (batch, 1, num_keys), True where a key is real. The 1 serves all queries.",
        returns={"mask": "(batch, 1, keys)"},
        reference=masks.padding_mask,
        cases=lambda: [
            (np.array([1]), 2),
            (np.array([2, 3]), 4),
            (np.array([3, 0, 1]), 3),
            (np.array([2, 2, 5, 1]), 5),
        ],
        mistakes=(
            Mistake(
                "no-query-axis",
                "(batch, keys) against scores (batch, queries, keys): broadcasting would take your "
                "sequences for queries. Insert an axis of length 1 for the queries.",
                _visible,
            ),
            Mistake(
                "queries-hidden",
                "This hides queries, not keys: the axis of length 1 must stand where the queries "
                "are, before the keys.",
                lambda lengths, num_keys: _visible(lengths, num_keys)[:, :, None],
            ),
            Mistake(
                "off-by-one",
                "One key too many is visible. A sequence of length 2 has the positions 0 and 1.",
                lambda lengths, num_keys: (np.arange(num_keys) <= lengths[:, None])[:, None],
            ),
            Mistake(
                "polarity",
                "The mask is upside down: True means that the key is real and may be attended.",
                lambda lengths, num_keys: ~_visible(lengths, num_keys)[:, None],
            ),
            Mistake(
                "padded-in-front",
                "You hid the first positions. Here the padding is at the end.",
                lambda lengths, num_keys: _visible(lengths, num_keys)[:, None, ::-1],
            ),
            Mistake(
                "one-length-for-all",
                "All sequences get the mask of the longest. Each has a length of its own.",
                lambda lengths, num_keys: _visible(np.full_like(lengths, max(lengths)), num_keys)[
                    :, None
                ],
            ),
        ),
        hints=(
            "For one sequence of length 2, padded to 4, the mask is True, True, False, False.",
            "Key j of sequence b is real if j < lengths[b]. The result says nothing about queries, "
            "so their axis has length 1.",
            "np.arange(num_keys) is compared with the lengths as an array of shape (batch, 1, 1).",
        ),
        solution="""\
def padding_mask(lengths, num_keys):
    return np.arange(num_keys) < lengths[:, None, None]""",
    )
)


# Masked softmax


def _no_key_is_nan(scores: Array, mask: Array) -> Array:
    result = masked_softmax(scores, mask)
    result[~mask.any(axis=-1)] = np.nan
    return result


def _without_shift(scores: Array, mask: Array) -> Array:
    return naive_softmax(np.where(mask, scores, -np.inf))


def _without_shift_but_no_key(scores: Array, mask: Array) -> Array:
    return np.where(mask.any(axis=-1, keepdims=True), _without_shift(scores, mask), 0.0)


def _repaired(scores: Array, mask: Array) -> Array:
    kept = softmax(scores) * mask
    return kept / kept.sum(axis=-1, keepdims=True)


def _masked_softmax_cases() -> list[Case]:
    return [
        (*tables([[1, 2, 0]]), np.array([[True, True, False]])),
        (*tables([[0, 1, 3], [2, 0, 1]]), np.array([[True, False, False], [False, True, True]])),
        (*tables([[1, 2, 1000], [3, 1, 0]]), np.array([[True, True, False], [False, True, True]])),
        (*tables([[-1000, -1001], [1, 1], [2, 0]]), np.array([[True, False]] * 3)),
        (*tables([[1, 2, 3], [1, 2, 3]]), np.array([[False, True, True], [False] * 3])),
    ]


register(
    Exercise(
        name="masked_softmax",
        chapter=3,
        difficulty="medium",
        minutes=15,
        task="Turn scores (n, m) into weights (n, m) that are 0 where the boolean mask (n, m) is "
        "False, each row summing to 1. A row with no True gets weights 0.",
        returns={"weights": "(queries, keys)"},
        reference=masked_softmax,
        cases=_masked_softmax_cases,
        mistakes=(
            Mistake(
                "polarity",
                "The mask is upside down: you hid the visible keys. Here True means the query may "
                "look.",
                lambda scores, mask: masked_softmax(scores, ~mask),
                also=(lambda scores, mask: _without_shift(scores, ~mask),),
            ),
            slip(
                "zeroed-scores",
                "You set hidden scores to 0, but exp(0) is 1: hidden keys still get weight.",
                lambda softmax: lambda scores, mask: softmax(np.where(mask, scores, 0.0)),
            ),
            slip(
                "after-softmax",
                "You set weights to 0 after the softmax, so the rows no longer sum to 1.",
                lambda softmax: lambda scores, mask: softmax(scores) * mask,
            ),
            slip(
                "ignored",
                "The mask is not used.",
                lambda softmax: lambda scores, mask: softmax(scores),
            ),
            Mistake(
                "no-key",
                "Right for every row with a visible key. Where there is none, the softmax "
                "divides 0 by 0; such a query should get weights 0.",
                _no_key_is_nan,
            ),
            Mistake(
                "no-max",
                "exp overflows for scores around 1000, or underflows to 0 for the whole row. "
                "Subtract the largest visible score of each row first.",
                _without_shift,
                also=(_without_shift_but_no_key,),
            ),
            Mistake(
                "repaired-late",
                "The hidden keys became 0 only after exp, and the rest was divided again. On paper "
                "that is right. But if a hidden key has by far the largest score, the visible "
                "weights are 0 already, and 0 / 0 is nan.",
                _repaired,
            ),
            Mistake(
                "no-key-uniform",
                "Right for every row with a visible key. Where there is none, a large negative "
                "number in place of −∞ gives all keys the same weight; such a query should get "
                "weights 0.",
                lambda scores, mask: softmax(np.where(mask, scores, -1e9)),
            ),
            Mistake(
                "no-keepdims",
                "The maxima or sums of the rows came out as (n,), which lies along the columns of "
                "a matrix. They must stay a column, (n, 1).",
                lambda scores, mask: (
                    (e := np.exp(np.where(mask, scores, -np.inf))) / e.sum(axis=-1)
                ),
            ),
        ),
        hints=(
            "A hidden key ends with weight exactly 0, and the others still sum to 1. Should the "
            "hiding happen before or after the division by the sum?",
            "exp(−∞) = 0, so a hidden key gets the score −∞. Then a row without any key is all −∞: "
            "what is −∞ − (−∞)?",
            "np.where(mask, scores, -np.inf) hides. mask.any(axis=-1, keepdims=True) tells the "
            "rows that have a key; treat the others separately.",
        ),
        solution="""\
def masked_softmax(scores, mask):
    has_key = mask.any(axis=-1, keepdims=True)  # (n, 1)
    hidden = np.where(mask, scores, -np.inf)
    largest = np.where(has_key, hidden.max(axis=-1, keepdims=True), 0.0)
    e = np.exp(hidden - largest)
    return e / np.where(has_key, e.sum(axis=-1, keepdims=True), 1.0)""",
    )
)


# Attention


def _attention_cases() -> list[Case]:
    return [
        tables([[1, 0]], [[1, 0], [1, 2]], [[0], [4]]),
        tables([[1, 0, 2, 1], [0, 1, 1, 0]], np.eye(3, 4) * 2, [[1, 0], [0, 3], [5, 1]]),
        tables([[1, 2], [0, 1], [3, 1]], [[1, 1], [0, 2]], [[1, 0, 2, 3], [4, 1, 0, 1]]),
        tables([[1000, 0, 1]], [[2, 0, 0], [-1, 2, 1]], [[3, 1], [2, 5]]),
    ]


register(
    Exercise(
        name="attention",
        chapter=3,
        difficulty="medium",
        minutes=20,
        task="Scaled dot-product attention of queries (n, d) with keys (m, d) and values (m, d_v). "
        "Return the output (n, d_v).",
        returns={"output": "(queries, d_v)"},
        reference=lambda query, key, value: attention(query, key, value).output,
        cases=_attention_cases,
        mistakes=(
            slip(
                "no-scale",
                "The scores are not divided by √d.",
                lambda softmax: lambda query, key, value: softmax(query @ key.T) @ value,
            ),
            slip(
                "scale-d",
                "You divided by d. The scale is its square root: that is how large a dot product "
                "of d terms typically is.",
                lambda softmax: (
                    lambda query, key, value: softmax(query @ key.T / key.shape[-1]) @ value
                ),
            ),
            slip(
                "scale-late",
                "You scaled the weights, after the softmax, so they no longer sum to 1. Scale the "
                "scores, before it.",
                lambda softmax: (
                    lambda query, key, value: (
                        softmax(query @ key.T) / np.sqrt(key.shape[-1]) @ value
                    )
                ),
            ),
            slip(
                "scale-values",
                "You took d from the values. The d in √d is the length of a query and of a key, "
                "because their dot product has d terms.",
                lambda softmax: (
                    lambda query, key, value: (
                        softmax(query @ key.T / np.sqrt(value.shape[-1])) @ value
                    )
                ),
            ),
            slip(
                "scale-keys",
                "You divided by the root of the number of keys. The d in √d is the length of one "
                "key.",
                lambda softmax: (
                    lambda query, key, value: softmax(query @ key.T / np.sqrt(len(key))) @ value
                ),
            ),
            slip(
                "scale-queries",
                "You divided by the root of the number of queries. The d in √d is the length of "
                "one query.",
                lambda softmax: (
                    lambda query, key, value: softmax(query @ key.T / np.sqrt(len(query))) @ value
                ),
            ),
            slip(
                "axis",
                "The softmax runs over the queries. It must run over the keys, so that each "
                "query's weights sum to 1.",
                lambda softmax: (
                    lambda query, key, value: (
                        softmax(query @ key.T / np.sqrt(key.shape[-1]), axis=0) @ value
                    )
                ),
            ),
            Mistake(
                "no-softmax",
                "The scores go straight to the values: the softmax is missing.",
                lambda query, key, value: query @ key.T / np.sqrt(key.shape[-1]) @ value,
            ),
            slip(
                "not-transposed",
                "The keys are not transposed. Each score is the dot product of a query with a key, "
                "that is with a row of the keys.",
                lambda softmax: (
                    lambda query, key, value: softmax(query @ key / np.sqrt(key.shape[-1])) @ value
                ),
            ),
            Mistake(
                "no-max",
                "Right for small scores. exp overflows for large ones: subtract the largest score "
                "of each row in the softmax.",
                lambda query, key, value: (
                    naive_softmax(query @ key.T / np.sqrt(key.shape[-1])) @ value
                ),
            ),
        ),
        hints=(
            "Three steps: compare every query with every key, turn each row of scores into "
            "weights, average the values.",
            "The output is softmax(Q Kᵀ / √d) V, where d is the length of a key.",
            "Q Kᵀ has shape (n, m). The softmax runs over its last axis. The length of a key is "
            "key.shape[-1].",
        ),
        solution="""\
def attention(query, key, value):
    scores = query @ key.T / np.sqrt(key.shape[-1])  # (n, m)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value""",
    )
)


# Tokens as columns


def _columns(query: Array, key: Array, value: Array) -> Array:
    return attention(query.T, key.T, value.T).output.T


def _attention_columns_cases() -> list[Case]:
    return [
        tables([[1], [0]], [[1, 0, 1], [0, 2, 1]], [[1, 2, 6]]),
        tables([[1, 0], [2, 1], [0, 1], [1, 1]], np.eye(4, 3) * 2, [[1, 0, 4], [0, 3, 1]]),
        tables(np.eye(3, 4) * 3, [[1, 0], [0, 2], [1, 1]], [[1, 5]]),
        tables([[1000], [1]], [[1, -1, 0], [0, 0, 1]], [[1, 5, 2], [0, 2, 2]]),
    ]


register(
    Exercise(
        name="attention_columns",
        chapter=3,
        difficulty="medium",
        minutes=15,
        task="Scaled dot-product attention for matrices that hold a token in each column, as some "
        "papers do: query (d, n), key (d, m), value (d_v, m). Return the output (d_v, n).",
        returns={"output": "(d_v, queries)"},
        reference=_columns,
        cases=_attention_columns_cases,
        mistakes=(
            slip(
                "axis",
                "The scores are (keys, queries) here, and your softmax runs over the queries. It "
                "must run over the keys.",
                lambda softmax: (
                    lambda query, key, value: value @ softmax(key.T @ query / np.sqrt(len(key)))
                ),
            ),
            Mistake(
                "rows-returned",
                "The output has a token in each row. In this layout it is the transpose, a token "
                "in each column.",
                lambda query, key, value: _columns(query, key, value).T,
            ),
            slip(
                "scale-tokens",
                "You divided by the root of the number of keys. In this layout the last axis "
                "counts tokens; the length d of a key is the first.",
                lambda softmax: (
                    lambda query, key, value: (
                        value @ softmax(key.T @ query / np.sqrt(key.shape[-1]), axis=0)
                    )
                ),
            ),
            slip(
                "no-scale",
                "The scores are not divided by √d.",
                lambda softmax: lambda query, key, value: value @ softmax(key.T @ query, axis=0),
            ),
        ),
        hints=(
            "Nothing new is computed: the transpose of everything you know. Where are the keys in "
            "the scores Kᵀ Q?",
            "The output is V softmax(Kᵀ Q / √d), with a softmax over each column. Its weights are "
            "(m, n).",
            "Use axis=0 in max and sum. The length d is key.shape[0]. Or transpose all three, "
            "attend as usual, and transpose the result.",
        ),
        solution="""\
def attention_columns(query, key, value):
    scores = key.T @ query / np.sqrt(key.shape[0])  # (m, n)
    e = np.exp(scores - scores.max(axis=0))
    return value @ (e / e.sum(axis=0))""",
    )
)


# Additive score


def _hidden(query: Array, key: Array, w_q: Array, w_k: Array) -> Array:
    return (query @ w_q)[:, None, :] + (key @ w_k)[None, :, :]  # (n, m, h)


def _additive_score_cases() -> list[Case]:
    return [
        tables([[1]], [[0, 1], [1, 1]], [[1, 0]], [[1, 0], [0, 2]], [1, 3]),
        tables(
            [[1, 0, 1], [0, 1, 1]],
            [[1], [2], [-1], [0]],
            [[1, 0], [0, -1], [1, 1]],
            [[2, 1]],
            [1, -2],
        ),
        tables(
            [[1, 2], [0, 1], [1, 0]],
            [[1, 0], [0, 3]],
            np.eye(2, 3),
            [[0, 1, 1], [1, 0, -1]],
            [2, 1, 1],
        ),
    ]


def _with(activation: Any) -> Any:
    return lambda query, key, w_q, w_k, w_v: activation(_hidden(query, key, w_q, w_k)) @ w_v


register(
    Exercise(
        name="additive_score",
        chapter=3,
        difficulty="hard",
        minutes=30,
        task="The additive score of every query (n, d_q) with every key (m, d_k), for weights w_q "
        "(d_q, h), w_k (d_k, h) and w_v (h,). Return (n, m).",
        returns={"scores": "(queries, keys)"},
        reference=additive_score,
        cases=_additive_score_cases,
        mistakes=(
            Mistake(
                "no-tanh",
                "The tanh is missing. Without it a query would add the same number to all its "
                "scores, and the softmax would not notice the query at all.",
                _with(lambda hidden: hidden),
            ),
            Mistake(
                "tanh-late",
                "The tanh comes after the sum with w_v. It belongs inside: each hidden number "
                "passes through it.",
                lambda query, key, w_q, w_k, w_v: np.tanh(_hidden(query, key, w_q, w_k) @ w_v),
            ),
            Mistake(
                "tanh-early",
                "The tanh was taken of the query's part and of the key's part, one by one. Add the "
                "two first.",
                lambda query, key, w_q, w_k, w_v: (
                    (np.tanh(query @ w_q)[:, None, :] + np.tanh(key @ w_k)[None, :, :]) @ w_v
                ),
            ),
            Mistake(
                "no-w_v",
                "w_v is not used: the hidden numbers are added up as they are.",
                lambda query, key, w_q, w_k, w_v: np.tanh(_hidden(query, key, w_q, w_k)).sum(-1),
            ),
            Mistake(
                "transposed",
                "The table lies on its side: rows are queries, columns are keys.",
                lambda query, key, w_q, w_k, w_v: additive_score(query, key, w_q, w_k, w_v).T,
            ),
            Mistake(
                "sigmoid",
                "You used the logistic function. The additive score takes tanh.",
                _with(lambda hidden: 1 / (1 + np.exp(-hidden))),
            ),
        ),
        hints=(
            "Take one query and one key first: two vectors of length h, added, passed through "
            "tanh, and weighed with w_v. Then do it for all pairs.",
            "a(q, k) = w_v · tanh(W_qᵀ q + W_kᵀ k). Project all queries (n, h) and all keys (m, h) "
            "once; the sum of all pairs has shape (n, m, h).",
            "x[:, None, :] + y[None, :, :] adds all pairs of rows. A matrix product with a vector, "
            "@ w_v, sums over the last axis.",
        ),
        solution="""\
def additive_score(query, key, w_q, w_k, w_v):
    hidden = (query @ w_q)[:, None, :] + (key @ w_k)[None, :, :]  # (n, m, h)
    return np.tanh(hidden) @ w_v""",
    )
)
