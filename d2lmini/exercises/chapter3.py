"""Chapter 3: masks, scores and attention."""

from collections.abc import Callable
from typing import Any

import numpy as np

from d2lmini import masks
from d2lmini._arrays import Array
from d2lmini.attention import attention
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import naive_softmax, rough, slip, tables
from d2lmini.scores import additive_score
from d2lmini.weights import masked_softmax, softmax

# Causal mask


def _causal(num_queries: int, num_keys: int) -> Array:
    return masks.causal_mask(num_queries, num_keys, like=np.empty(0))


def _or_as_numbers(id: str, says: str, fn: Callable[[int, int], Array]) -> Mistake:
    """Make a Mistake in a mask, whether it came as True and False or as 1 and 0."""
    return Mistake(id, says, fn, also=(lambda *sizes: fn(*sizes).astype(float),))


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
        cases=lambda: [(1, 2), (2, 3), (3, 2), (2, 5), (4, 4), (3, 1), (2, 300)],
        mistakes=(
            _or_as_numbers(
                "off-by-one",
                "Off by one diagonal: a query may also see its own position.",
                lambda num_queries, num_keys: np.tri(
                    num_queries, num_keys, num_keys - num_queries - 1, dtype=bool
                ),
            ),
            _or_as_numbers(
                "transposed",
                "Queries see the future and not the past: the triangle is on the wrong side.",
                lambda num_queries, num_keys: np.triu(
                    np.ones((num_queries, num_keys), dtype=bool), num_keys - num_queries
                ),
            ),
            _or_as_numbers(
                "top-left",
                "The queries are placed at the first positions. Right when there are as many "
                "queries as keys; but when fewer, the queries are the last positions, and the last "
                "one sees every key.",
                lambda num_queries, num_keys: np.tri(num_queries, num_keys, dtype=bool),
            ),
            _or_as_numbers(
                "top-left-polarity",
                "Two slips: the mask is upside down, as True means that the query may attend; and "
                "the queries are placed at the first positions instead of the last.",
                lambda num_queries, num_keys: ~np.tri(num_queries, num_keys, dtype=bool),
            ),
            _or_as_numbers(
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
            "Number all positions from the left. At which position is the first query, if the "
            "last query is at the last key?",
            "Write the two rows for 2 queries and 5 keys by hand. By how much are the positions of "
            "the queries shifted?",
            "Compare np.arange(num_keys) with a column of positions, made by [:, None]; or look up "
            "what the argument k of np.tri does.",
        ),
        solution="""\
def my_causal_mask(num_queries, num_keys):
    position = np.arange(num_queries) + num_keys - num_queries
    return np.arange(num_keys) <= position[:, None]""",
    )
)


# Look at the others


def _others(x: Array) -> Array:
    return attention(x, x, x, mask=~np.eye(len(x), dtype=bool)).output


def _others_slip(
    hide: Callable[[Array], Array] = lambda s: np.where(np.eye(len(s)) > 0, -np.inf, s),
    root: Callable[[Array], float] = lambda x: np.sqrt(x.shape[1]),
    axis: int = -1,
    after: Callable[[Array], Array] = lambda w: w,
) -> Callable[[Any], Callable[..., Array]]:
    """Return what `slip` wants: attention to the others with one step replaced."""

    def make(softmax: Any) -> Callable[..., Array]:
        def attend(x: Array) -> Array:
            if len(x) == 1:
                return np.zeros_like(x)
            return after(softmax(hide(x @ x.T / root(x)), axis=axis)) @ x

        return attend

    return make


def _without_care(x: Array) -> Array:
    scores = np.where(np.eye(len(x)) > 0, -np.inf, x @ x.T / np.sqrt(x.shape[1]))
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ x


def _others_cases() -> list[Case]:
    return [
        tables([[1.5], [-0.5]]),
        tables([[1, 0.5, -1], [2, -1, 0.3]]),
        tables([[1, 0, 2], [0.5, 1, 1], [2, -1, 0.25], [0, 1.5, -1]]),
        tables([[1.5, -2, 0.5]]),
        tables([[40, 1], [30.5, -2], [-28, 3.25]]),
        tables([[0.5], [-1.25], [2], [0.75]]),
        tables([[200], [-300]]),
        rough(9, (3, 2)),
    ]


register(
    Exercise(
        name="attend_to_others",
        chapter=3,
        difficulty="medium",
        minutes=15,
        task="Self-attention (scaled dot product) of a sentence x (n, d) in which no word may look "
        "at itself. A sentence of one word has nobody else to look at: its output is zeros. "
        "Return (n, d).",
        returns={"output": "(words, d)"},
        reference=_others,
        cases=_others_cases,
        mistakes=(
            slip(
                "itself-too",
                "Every word still looks at itself, and mostly finds itself. Hide the diagonal.",
                _others_slip(hide=lambda s: s),
            ),
            slip(
                "zeroed-scores",
                "A score of 0 hides nothing, since its exponential is 1. Hidden scores become −∞.",
                _others_slip(hide=lambda s: np.where(np.eye(len(s)) > 0, 0.0, s)),
            ),
            slip(
                "after-softmax",
                "You set the weights to 0 after the softmax, so the others no longer sum to 1.",
                _others_slip(hide=lambda s: s, after=lambda w: w * (1 - np.eye(len(w)))),
            ),
            slip(
                "repaired-late",
                "Masking after the softmax and dividing again is right on paper. With large "
                "scores the visible weights are rounded to 0 first. Hide before the softmax.",
                _others_slip(
                    hide=lambda s: s,
                    after=lambda w: (v := w * (1 - np.eye(len(w)))) / v.sum(axis=-1, keepdims=True),
                ),
            ),
            slip(
                "repaired-twice",
                "Masking after the softmax and dividing again is right on paper. With large "
                "scores the visible weights are rounded to 0 first, and so is your output. Hide "
                "before the softmax.",
                _others_slip(
                    hide=lambda s: s,
                    after=lambda w: np.nan_to_num(
                        (v := w * (1 - np.eye(len(w)))) / v.sum(axis=-1, keepdims=True)
                    ),
                ),
            ),
            slip(
                "upside-down",
                "The mask is upside down: each word looks at itself alone, so nothing changes.",
                _others_slip(hide=lambda s: np.where(np.eye(len(s)) > 0, s, -np.inf)),
            ),
            slip(
                "first-hidden",
                "You hid the first word from everybody. What is hidden differs from row to row.",
                _others_slip(hide=lambda s: np.where(np.arange(len(s)) == 0, -np.inf, s)),
            ),
            slip(
                "no-scale",
                "The scores are not divided by √d.",
                _others_slip(root=lambda x: 1.0),
            ),
            slip(
                "scale-words",
                "You divided by the root of the number of words. d counts the components of one.",
                _others_slip(root=lambda x: float(np.sqrt(len(x)))),
            ),
            slip(
                "axis",
                "The softmax runs over the queries. It must run over the keys, along each row.",
                _others_slip(axis=0),
            ),
            Mistake(
                "no-key",
                "Right as long as there is somebody else. A single word may see no key, and 0 / 0 "
                "is nan: its output should be zeros.",
                _without_care,
            ),
        ),
        hints=(
            "Write the mask of a sentence of three words as a table first: who may attend to whom?",
            "A hidden key gets the score −∞ before the softmax. One row may have nothing but "
            "hidden keys.",
            "d2lmini's attention takes such a mask and knows what to do with an empty row; without "
            "it, look at the row's sum before you divide.",
        ),
        solution="""\
def attend_to_others(x):
    scores = x @ x.T / np.sqrt(x.shape[1])  # (n, n)
    np.fill_diagonal(scores, -np.inf)
    if len(x) == 1:
        return np.zeros_like(x)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ x""",
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


def _zeroed(
    scores: Array, mask: Array, largest: Any = 0.0, repair: Callable[[Array], Array] = np.asarray
) -> Array:
    """Set exponentials to 0, after subtracting what may be the largest of the wrong keys."""
    e = np.exp(scores - largest) * mask
    return e / repair(e.sum(axis=-1, keepdims=True))


def _tiny(total: Array) -> Array:
    return total + 1e-12


def _one_for_none(total: Array) -> Array:
    return np.where(total == 0, 1.0, total)


def _row_maximum(repair: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    return lambda scores, mask: _zeroed(scores, mask, scores.max(-1, keepdims=True), repair)


def _one_maximum(repair: Callable[[Array], Array]) -> Callable[[Array, Array], Array]:
    def answer(scores: Array, mask: Array) -> Array:
        hidden = np.where(mask, scores, -np.inf)
        e = np.exp(hidden - hidden.max())
        return e / repair(e.sum(axis=-1, keepdims=True))

    return answer


def _masked_softmax_cases() -> list[Case]:
    return [
        (*tables([[1, 2, 0]]), np.array([[True, True, False]])),
        (*tables([[0, 1, 3], [2, 0, 1]]), np.array([[True, False, False], [False, True, True]])),
        (*tables([[1, 2, 1000], [3, 1, 0]]), np.array([[True, True, False], [False, True, True]])),
        (
            *tables([[-1000, -1001], [0.3, -1.6], [2.7, 0.4]]),
            np.array([[True, True], [True, False], [True, True]]),
        ),
        (*tables([[-0.4, 1000, 998.5]]), np.array([[False, True, True]])),
        (*tables([[1, 2, 3], [1.5, 2, 3]]), np.array([[False, True, True], [False] * 3])),
        (*tables([[0.7], [-3.2], [1.1]]), np.array([[True], [False], [True]])),
        (*tables([[-900, -901.5, 0.25]]), np.array([[True, True, False]])),
        (*tables([[-20000.5, -20001.25, -3]]), np.array([[True, True, False]])),
        (*rough(1, (3, 4)), rough(2, (3, 4))[0] > -1),
    ]


register(
    Exercise(
        name="masked_softmax",
        chapter=3,
        difficulty="medium",
        minutes=20,
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
                also=(
                    lambda scores, mask: _without_shift(scores, ~mask),
                    lambda scores, mask: softmax(scores + mask * -1e9),
                    lambda scores, mask: softmax(np.where(mask, -1e9, scores)),
                ),
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
                also=(
                    _without_shift_but_no_key,
                    _zeroed,
                    lambda scores, mask: _zeroed(scores, mask, repair=_tiny),
                    lambda scores, mask: _zeroed(scores, mask, repair=_one_for_none),
                ),
            ),
            Mistake(
                "hidden-maximum",
                "The largest score was taken over all keys. If a hidden key has it, and by far, "
                "every visible exponential is rounded to 0. Only visible scores may count.",
                _row_maximum(_tiny),
                also=(_row_maximum(_one_for_none),),
            ),
            Mistake(
                "one-maximum",
                "One largest score was subtracted from all rows. A row whose scores lie far below "
                "it ends as all zeros: each row needs a maximum of its own.",
                _one_maximum(np.asarray),
                also=(
                    _one_maximum(_tiny),
                    _one_maximum(_one_for_none),
                    lambda scores, mask: np.nan_to_num(_one_maximum(np.asarray)(scores, mask)),
                ),
            ),
            Mistake(
                "one-hidden-maximum",
                "The largest score of the whole table was taken, hidden ones among them. Each row "
                "needs a maximum of its own, and only visible scores may count.",
                lambda scores, mask: _zeroed(scores, mask, scores.max(), _tiny),
                also=(
                    lambda scores, mask: _zeroed(scores, mask, scores.max(), _one_for_none),
                    lambda scores, mask: _zeroed(scores, mask, scores.max()),
                ),
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
                "no-key-shifted",
                "Right for every row with a visible key. Where there is none, the same large "
                "number was taken from every score, which the softmax does not notice; such a "
                "query should get weights 0.",
                lambda scores, mask: softmax(scores + np.where(mask, 0.0, -1e9)),
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
            "exp(−∞) = 0, so a hidden key gets the score −∞. As in every softmax, subtract the "
            "largest score of the row before exp, so that 1000 does not overflow; but ask which "
            "keys may take part in that maximum, and what happens if a hidden one has it.",
            "np.where puts −∞ where a key is hidden, and a maximum of what it returns is one of "
            "visible scores. In a row without any key, −∞ − (−∞) is nan: find these rows by the "
            "mask, and treat them separately.",
        ),
        solution="""\
def my_masked_softmax(scores, mask):
    has_key = mask.any(axis=-1, keepdims=True)  # (n, 1)
    hidden = np.where(mask, scores, -np.inf)
    largest = np.where(has_key, hidden.max(axis=-1, keepdims=True), 0.0)
    e = np.exp(hidden - largest)
    return e / np.where(has_key, e.sum(axis=-1, keepdims=True), 1.0)""",
    )
)


# Attention with a bias


def _scaled(query: Array, key: Array) -> Array:
    return query @ key.T / np.sqrt(key.shape[-1])


def _softmax_of_one_maximum(scores: Array) -> Array:
    return naive_softmax(scores - scores.max())


def _exponentials(scores: Array) -> Array:
    return np.exp(scores - scores.max(axis=-1, keepdims=True))


def _biased(change: Callable[[Any, Array, Array, Array], Any]) -> Any:
    """Return what `slip` wants: the change gets a softmax, the scaled scores, bias and values."""
    return lambda softmax: (
        lambda query, key, value, bias: change(softmax, _scaled(query, key), bias, value)
    )


def _scaled_by(root: Callable[[Array, Array, Array], float]) -> Any:
    """Return what `slip` wants: attention with this divisor of the dot products."""
    return lambda softmax: (
        lambda query, key, value, bias: (
            softmax(query @ key.T / root(query, key, value) + bias) @ value
        )
    )


def _attention_cases() -> list[Case]:
    hides = -np.inf
    return [
        tables([[1, 0]], [[1, 0], [1, 2]], [[0], [4]], [[0, -1]]),
        tables(
            [[1, 0, 2, 1], [0, 1, 1, 0]],
            np.eye(3, 4) * 2,
            [[1, 0], [0, 3], [5, 1]],
            [[0, hides, hides], [1, 0, hides]],
        ),
        tables(
            [[1, 2], [0, 1], [3, 1]],
            [[1, 1], [0, 2]],
            [[1, 0, 2, 3], [4, 1, 0, 1]],
            [[0, -0.5], [-0.5, 0], [-1, -0.5]],
        ),
        tables([[1000, 0, 1]], [[2, 0, 0], [-1, 2, 1]], [[3, 1], [2, 5]], [[0.5, 1]]),
        tables(
            [[0.5, -1.25, 0.4], [900.5, 2.1, 0.3], [-900.5, 0.4, 1.6]],
            [[1.5, 0.2, -0.6], [1.7, 1.1, 0.9], [1.4, 0.6, 0.1], [1.2, -0.4, 0.5]],
            [[0.25, -1.5], [-2.75, 0.4], [1.6, 3.3], [0.1, 0.7]],
            [[-0.25, 0, -0.5, -0.75], [-1.5, 0, 0.5, -2], [0, 1.25, 0.75, -1]],
        ),
        tables([[0.5], [-1.5], [2.5], [0.1], [-0.3]], [[0.75]], [[-0.25, 1.5, 4]], [[0.5]] * 5),
        tables(
            [[0.75], [-1.25]],
            [[1.5], [-0.4], [2.25]],
            [[0.3, 2], [-1.6, 0.5], [4, 1.1]],
            [[-1.75, 0.25, 3.5], [0.6, -0.3, 0.2]],
        ),
        rough(3, (3, 5), (4, 5), (4, 2), (3, 4)),
    ]


register(
    Exercise(
        name="attention",
        chapter=3,
        difficulty="medium",
        minutes=20,
        task="Attention of queries (n, d) with keys (m, d) and values (m, d_v) that looks at "
        "content and at place: bias (n, m) is added to the scaled dot products. A bias of −∞ hides "
        "a key; every query sees at least one. Return the output (n, d_v).",
        returns={"output": "(queries, d_v)"},
        reference=lambda query, key, value, bias: attention(query, key, value, bias=bias).output,
        cases=_attention_cases,
        mistakes=(
            slip(
                "ignored",
                "The bias is not used.",
                _biased(lambda softmax, scaled, bias, value: softmax(scaled) @ value),
            ),
            slip(
                "bias-scaled",
                "You divided the bias by √d as well. It is added to the scaled scores as it is.",
                lambda softmax: (
                    lambda query, key, value, bias: (
                        softmax((query @ key.T + bias) / np.sqrt(key.shape[-1])) @ value
                    )
                ),
            ),
            slip(
                "bias-subtracted",
                "You subtracted the bias. It is added, so that −∞ hides a key.",
                _biased(lambda softmax, scaled, bias, value: softmax(scaled - bias) @ value),
            ),
            slip(
                "bias-late",
                "You let the bias act after the softmax, so the weights no longer sum to 1. It "
                "belongs to the scores.",
                _biased(
                    lambda softmax, scaled, bias, value: softmax(scaled) * np.exp(bias) @ value
                ),
            ),
            slip(
                "no-scale",
                "The scores are not divided by √d.",
                _scaled_by(lambda query, key, value: 1),
            ),
            slip(
                "scale-d",
                "You divided by d. The scale is its square root: that is how large a dot product "
                "of d terms typically is.",
                _scaled_by(lambda query, key, value: key.shape[-1]),
            ),
            slip(
                "scale-late",
                "You scaled the weights, after the softmax, so they no longer sum to 1. Scale the "
                "scores, before it.",
                lambda softmax: (
                    lambda query, key, value, bias: (
                        softmax(query @ key.T + bias) / np.sqrt(key.shape[-1]) @ value
                    )
                ),
            ),
            slip(
                "scale-values",
                "You took d from the values. The d in √d is the length of a query and of a key, "
                "because their dot product has d terms.",
                _scaled_by(lambda query, key, value: np.sqrt(value.shape[-1])),
            ),
            slip(
                "scale-keys",
                "You divided by the root of the number of keys. The d in √d is the length of one "
                "key.",
                _scaled_by(lambda query, key, value: np.sqrt(len(key))),
            ),
            slip(
                "scale-queries",
                "You divided by the root of the number of queries. The d in √d is the length of "
                "one query.",
                _scaled_by(lambda query, key, value: np.sqrt(len(query))),
            ),
            slip(
                "axis",
                "The softmax runs over the queries. It must run over the keys, so that each "
                "query's weights sum to 1.",
                _biased(
                    lambda softmax, scaled, bias, value: softmax(scaled + bias, axis=0) @ value
                ),
            ),
            Mistake(
                "no-softmax",
                "The scores go straight to the values: the softmax is missing.",
                lambda query, key, value, bias: (_scaled(query, key) + bias) @ value,
            ),
            slip(
                "not-transposed",
                "The keys are not transposed. Each score is the dot product of a query with a key, "
                "that is with a row of the keys.",
                lambda softmax: (
                    lambda query, key, value, bias: (
                        softmax(query @ key / np.sqrt(key.shape[-1]) + bias) @ value
                    )
                ),
            ),
            Mistake(
                "one-maximum",
                "One largest score was subtracted from all rows. A row whose scores lie far below "
                "it ends as 0 / 0: each row needs a maximum of its own.",
                lambda query, key, value, bias: (
                    _softmax_of_one_maximum(_scaled(query, key) + bias) @ value
                ),
            ),
            Mistake(
                "whole-matrix",
                "All rows were divided by the sum of the whole matrix. The weights of each query, "
                "a row, must sum to 1.",
                lambda query, key, value, bias: (
                    (e := _exponentials(_scaled(query, key) + bias)) / e.sum() @ value
                ),
            ),
            Mistake(
                "no-keepdims",
                "The sums of the rows came out as (n,), which lies along the columns of a matrix. "
                "They must stay a column, (n, 1).",
                lambda query, key, value, bias: (
                    (e := _exponentials(_scaled(query, key) + bias)) / e.sum(axis=-1) @ value
                ),
            ),
            Mistake(
                "no-max",
                "Right for small scores. exp overflows for large ones: subtract the largest score "
                "of each row in the softmax.",
                lambda query, key, value, bias: naive_softmax(_scaled(query, key) + bias) @ value,
            ),
        ),
        hints=(
            "What would a bias of 0 everywhere have to give? And one of −∞ for all keys but one?",
            "Dividing by √d, adding the bias, the softmax: in which order, if a bias of −∞ has to "
            "leave a key no weight, and a bias of 1 to be worth 1 of what the softmax gets?",
            "A row with hidden keys has a largest score too, that of a visible key. Test your "
            "function on one query and two keys that you can compute on paper.",
        ),
        solution="""\
def my_attention(query, key, value, bias):
    scores = query @ key.T / np.sqrt(key.shape[-1]) + bias  # (n, m)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = e / e.sum(axis=-1, keepdims=True)
    return weights @ value""",
    )
)


# Additive score


def _hidden(query: Array, key: Array, w_1: Array, w_2: Array) -> Array:
    return (query @ w_1)[:, None, :] + (key @ w_2)[None, :, :]  # (n, m, d_h)


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
        tables(
            [[0.4, -1.3], [0.7, 0.2]],
            [[-0.6, 0.5, 1.4], [0.3, -0.2, 0.1], [1.1, 0.8, -0.9]],
            [[0.5], [-0.3]],
            [[0.2], [0.9], [-0.4]],
            [1.7],
        ),
        rough(4, (2, 3), (3, 2), (3, 4), (2, 4), (4,)),
    ]


def _with(activation: Any) -> Any:
    return lambda query, key, w_1, w_2, w: activation(_hidden(query, key, w_1, w_2)) @ w


register(
    Exercise(
        name="additive_score",
        chapter=3,
        difficulty="hard",
        minutes=30,
        task="Return the additive score (n, m) of every query (n, d_q) with every key (m, d_k), "
        "for the parameters w_1 (d_q, d_h), w_2 (d_k, d_h) and w (d_h,).",
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
                "The tanh comes after the sum with w. It belongs inside: each hidden number "
                "passes through it.",
                lambda query, key, w_1, w_2, w: np.tanh(_hidden(query, key, w_1, w_2) @ w),
            ),
            Mistake(
                "tanh-early",
                "The tanh was taken of the query's part and of the key's part, one by one. Add the "
                "two first.",
                lambda query, key, w_1, w_2, w: (
                    (np.tanh(query @ w_1)[:, None, :] + np.tanh(key @ w_2)[None, :, :]) @ w
                ),
            ),
            Mistake(
                "no-w",
                "w is not used: the hidden numbers are added up as they are.",
                lambda query, key, w_1, w_2, w: np.tanh(_hidden(query, key, w_1, w_2)).sum(-1),
            ),
            Mistake(
                "transposed",
                "Your matrix is transposed: rows are queries, columns are keys.",
                lambda query, key, w_1, w_2, w: additive_score(query, key, w_1, w_2, w).T,
            ),
            Mistake(
                "row-by-row",
                "Query i was added to key i only. Every query meets every key: the two need axes "
                "of their own, (n, 1, d_h) and (1, m, d_h).",
                lambda query, key, w_1, w_2, w: np.tanh(query @ w_1 + key @ w_2) @ w,
            ),
            Mistake(
                "same-axis",
                "You put both new axes in the same place, so queries and keys still share one "
                "axis. "
                "They need axes of their own, (n, 1, d_h) and (1, m, d_h).",
                lambda query, key, w_1, w_2, w: (
                    np.tanh((query @ w_1)[:, None] + (key @ w_2)[:, None]) @ w
                ),
                also=(
                    lambda query, key, w_1, w_2, w: (
                        np.tanh((query @ w_1)[None] + (key @ w_2)[None]) @ w
                    ),
                ),
            ),
            Mistake(
                "multiplied",
                "Query and key were multiplied. This score is called additive because the two are "
                "added before the tanh.",
                lambda query, key, w_1, w_2, w: (
                    np.tanh(query @ w_1)[:, None, :] * np.tanh(key @ w_2)[None, :, :] @ w
                ),
                also=(
                    lambda query, key, w_1, w_2, w: (
                        np.tanh((query @ w_1)[:, None, :] * (key @ w_2)[None, :, :]) @ w
                    ),
                ),
            ),
            Mistake(
                "sigmoid",
                "You used the logistic function. The additive score takes tanh.",
                _with(lambda hidden: 1 / (1 + np.exp(-hidden))),
            ),
        ),
        hints=(
            "Take one query and one key first: two vectors of length d_h, added, passed through "
            "tanh, and multiplied by w. Then do it for all pairs.",
            "a(q, k) = w · tanh(W₁ᵀ q + W₂ᵀ k). Project all queries (n, d_h) and all keys (m, d_h) "
            "once; the sum of all pairs has shape (n, m, d_h).",
            "A new axis in both adds all pairs of rows. A matrix product with a vector sums over "
            "the last axis.",
        ),
        solution="""\
def my_additive_score(query, key, w_1, w_2, w):
    hidden = (query @ w_1)[:, None, :] + (key @ w_2)[None, :, :]  # (n, m, d_h)
    return np.tanh(hidden) @ w""",
    )
)
