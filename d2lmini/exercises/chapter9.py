"""Chapter 9: broken code to repair, run against what must hold."""

from collections.abc import Callable
from typing import Any

import numpy as np

from d2lmini._arrays import Array
from d2lmini.attention import attention
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import rough, tables
from d2lmini.heads import merge_heads, split_heads
from d2lmini.masks import padding_mask, sliding_window_mask
from d2lmini.weights import masked_softmax, softmax

# Padding


def _padded(query: Array, key: Array, value: Array, lengths: Array) -> Array:
    mask = padding_mask(lengths, key.shape[1])
    return attention(query, key, value, mask=mask).output


def _scores(query: Array, key: Array) -> Array:
    return query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])


def _queries_hidden(query: Array, key: Array, value: Array, lengths: Array) -> Array:
    sees = np.arange(query.shape[1])[:, None] < lengths[:, None, None]  # (batch, n, 1)
    return np.where(sees, softmax(_scores(query, key)), 0.0) @ value


def _queries_masked(query: Array, key: Array, value: Array, lengths: Array) -> Array:
    sees = np.arange(query.shape[1])[:, None] < lengths[:, None, None]
    return masked_softmax(_scores(query, key), np.broadcast_to(sees, _shape(query, key))) @ value


def _shape(query: Array, key: Array) -> tuple[int, int, int]:
    return len(query), query.shape[1], key.shape[1]


def _sees(key: Array, lengths: Array) -> Array:
    return np.arange(key.shape[1]) < lengths[:, None, None]  # (batch, 1, m)


def _filled(fill: float) -> Callable[..., Array]:
    def answer(query: Array, key: Array, value: Array, lengths: Array) -> Array:
        return softmax(np.where(_sees(key, lengths), _scores(query, key), fill)) @ value

    return answer


def _shown_and_filled(query: Array, key: Array, value: Array, lengths: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return softmax(np.where(_sees(key, lengths), -np.inf, _scores(query, key))) @ value


def _nan_without_keys(query: Array, key: Array, value: Array, lengths: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return _filled(-np.inf)(query, key, value, lengths)


def _rows_filled(fill: float) -> Callable[..., Array]:
    """Fill whole rows, as the code of the task does: they become the mean of all keys."""

    def answer(query: Array, key: Array, value: Array, lengths: Array) -> Array:
        sees = np.arange(query.shape[1])[:, None] < lengths[:, None, None]
        return softmax(np.where(sees, _scores(query, key), fill)) @ value

    return answer


def _both_hidden(query: Array, key: Array, value: Array, lengths: Array) -> Array:
    sees = np.arange(query.shape[1])[:, None] < lengths[:, None, None]
    return attention(query, key, value, mask=_sees(key, lengths) & sees).output


def _added(query: Array, key: Array, value: Array, lengths: Array) -> Array:
    return softmax(_scores(query, key) - 1e6 * ~_sees(key, lengths)) @ value


def _filled_but_empty_is_zero(query: Array, key: Array, value: Array, lengths: Array) -> Array:
    return _filled(-1e6)(query, key, value, lengths) * (lengths > 0)[:, None, None]


def _renormalised_rows(nothing: float) -> Callable[..., Array]:
    def answer(query: Array, key: Array, value: Array, lengths: Array) -> Array:
        weights = softmax(_scores(query, key)) * _sees(key, lengths)
        total = weights.sum(axis=-1, keepdims=True)
        return np.where(total > 0, weights / np.where(total > 0, total, 1), nothing) @ value

    return answer


def _scores_multiplied(query: Array, key: Array, value: Array, lengths: Array) -> Array:
    return softmax(_scores(query, key) * _sees(key, lengths)) @ value


def _unscaled(query: Array, key: Array, value: Array, lengths: Array) -> Array:
    return _padded(query * np.sqrt(query.shape[-1]), key, value, lengths)


def _padded_cases() -> list[Case]:
    query, key, value = tables([[[0.5, 1]]], [[[1, 0], [0, 1.5]]], [[[1.2], [3]]])
    rng = np.random.default_rng(0)
    many = tuple(rng.normal(size=size).round(2) for size in ((3, 2, 2), (3, 4, 2), (3, 4, 3)))
    changed_key, changed_value = many[1].copy(), many[2].copy()
    changed_key[1, 2:], changed_value[1, 2:] = 900.0, -70.0  # what item 2 must not see
    low = np.full((1, 3, 1), 1e5), np.array([[[-31.0], [-33], [0.0]]]), np.eye(3)[None]
    return [
        (query, key, value, np.array([1])),
        (*many, np.array([4, 2, 1])),
        (many[0], changed_key, changed_value, np.array([4, 2, 1])),
        (*many, np.array([3, 0, 2])),
        (*low, np.array([2])),
        (*rough(4, (2, 1, 2), (2, 3, 2), (2, 3, 1)), np.array([0, 0])),
        (*rough(5, (1, 1, 2), (1, 300, 2), (1, 300, 1)), np.array([290])),
        (*rough(2, (2, 3, 3), (2, 4, 3), (2, 4, 2)), np.array([2, 4])),
    ]


register(
    Exercise(
        name="padded_attention",
        chapter=9,
        difficulty="easy",
        minutes=15,
        task="Scaled dot-product attention of query (batch, n, d), key (batch, m, d) and value "
        "(batch, m, d_v). Of item b only the first lengths[b] keys are words, the others are "
        "padding that no query may see. Return the output (batch, n, d_v), with 0 for an item "
        "without words.",
        returns={"output": "(batch, queries, d_v)"},
        reference=_padded,
        cases=_padded_cases,
        mistakes=(
            Mistake(
                "queries-hidden",
                "This is still the reported mistake: the padding hides rows, which are queries. "
                "What must not be seen are keys, and keys are columns of the scores.",
                _queries_masked,
                also=(
                    _queries_hidden,
                    _rows_filled(-1e4),
                    _rows_filled(-1e6),
                    _rows_filled(-1e9),
                    _rows_filled(-np.inf),
                ),
            ),
            Mistake(
                "queries-too",
                "The padded keys are hidden, but so are the last queries. The lengths speak of "
                "keys only, and every query is answered.",
                _both_hidden,
            ),
            Mistake(
                "after-softmax",
                "The padding hands nothing over, but it took part in the softmax, so the weights "
                "of the rest no longer sum to 1.",
                lambda query, key, value, lengths: (
                    softmax(_scores(query, key)) * _sees(key, lengths) @ value
                ),
            ),
            Mistake(
                "one-too-many",
                "The first padded key is still seen: the words of item b are keys 0 to "
                "lengths[b] − 1.",
                lambda query, key, value, lengths: _padded(
                    query, key, value, np.minimum(lengths + 1, key.shape[1])
                ),
            ),
            Mistake(
                "renormalised",
                "The padding is hidden after the softmax, and the rows are made to sum to 1 again. "
                "If the padding had all the weight, only 0 is left to share out. Hide the scores.",
                _renormalised_rows(0.0),
                also=(_renormalised_rows(np.nan),),
            ),
            Mistake(
                "score-zero",
                "The scores of the padding were set to 0, but exp(0) is 1. Hide them with −∞.",
                _scores_multiplied,
            ),
            Mistake(
                "one-too-few",
                "The last word of each item is hidden: the words of item b are keys 0 to "
                "lengths[b] − 1.",
                lambda query, key, value, lengths: _padded(
                    query, key, value, np.maximum(lengths - 1, 0)
                ),
            ),
            Mistake(
                "first-length",
                "Every item uses the length of the first.",
                lambda query, key, value, lengths: _padded(
                    query, key, value, np.full_like(lengths, lengths[0])
                ),
            ),
            Mistake(
                "padding-first",
                "The words are taken from the end: the padding stands behind the words.",
                lambda query, key, value, lengths: (
                    attention(query, key, value, mask=_sees(key, lengths)[..., ::-1]).output
                ),
            ),
            Mistake(
                "no-scale",
                "The scores are not divided by the root of the width of the keys.",
                _unscaled,
            ),
            Mistake(
                "upside-down",
                "The mask is upside down: the words are hidden and the padding is seen.",
                lambda query, key, value, lengths: (
                    attention(query, key, value, mask=~padding_mask(lengths, key.shape[1])).output
                ),
                also=(_shown_and_filled,),
            ),
            Mistake(
                "nan",
                "Right for every item with a word. Without any, the softmax divides 0 by 0, and "
                "the output should be 0.",
                _nan_without_keys,
            ),
            Mistake(
                "fill",
                "A large negative number stands in for −∞. An item without words gets the mean of "
                "its padding, and a score that is lower still loses against the padding.",
                _filled(-1e6),
                also=(_filled(-1e9), _filled(-1e4), _added),
            ),
            Mistake(
                "fill-loses",
                "Right, also without words, unless a score is lower than the number that stands in "
                "for −∞. Then the padding wins.",
                _filled_but_empty_is_zero,
            ),
            Mistake(
                "ignored",
                "The lengths are not used.",
                lambda query, key, value, lengths: attention(query, key, value).output,
            ),
        ),
        hints=(
            "The scores have shape (batch, n, m). Along which axis does the padding lie, and what "
            "shape must a rule about it have to serve every query of its item?",
            "Key j of item b is a word if j < lengths[b]. As an array that is (batch, 1, m), and "
            "what is hidden gets the score −∞ before the softmax.",
            "padding_mask(lengths, m) of d2lmini has that shape, and attention takes it as mask. "
            "By hand, compare np.arange(m) with the lengths, which need two more axes.",
        ),
        solution="""\
def padded_attention(query, key, value, lengths):
    from d2lmini import attention

    sees = np.arange(key.shape[1]) < lengths[:, None, None]  # (batch, 1, m)
    return attention(query, key, value, mask=sees).output""",
    )
)


# A window that slides


def _window(num_queries: int, num_keys: int, window: int) -> Array:
    like = np.empty(0)
    mask: Array = sliding_window_mask(num_queries, num_keys, window=window, like=like)
    return mask


def _band(shift: int = 0, width: int = 0, corner: int = 1) -> Callable[..., Array]:
    def answer(num_queries: int, num_keys: int, window: int) -> Array:
        start = corner * (num_keys - num_queries) + shift
        last = np.tri(num_queries, num_keys, start, dtype=bool)
        return last & ~np.tri(num_queries, num_keys, start - window - width, dtype=bool)

    return answer


def _far(num_queries: int, num_keys: int) -> Array:
    """How far each key lies before its query; negative if it comes later."""
    here = np.arange(num_queries)[:, None] + num_keys - num_queries
    return here - np.arange(num_keys)


def _edges(newest: int, oldest: int) -> Callable[..., Array]:
    """Each of the two edges from the right corner (1), the top left (0) or the sign wrong (-1)."""

    def answer(num_queries: int, num_keys: int, window: int) -> Array:
        shift = num_keys - num_queries
        last = np.tri(num_queries, num_keys, newest * shift, dtype=bool)
        return last & ~np.tri(num_queries, num_keys, oldest * shift - window, dtype=bool)

    return answer


register(
    Exercise(
        name="window_mask",
        chapter=9,
        difficulty="medium",
        minutes=15,
        task="The mask (num_queries, num_keys) of a causal window: each query sees the newest "
        "window keys up to its own position, itself among them. The last query stands at the last "
        "key, so that a token that is written alone sees what it would see in the whole text.",
        returns={"mask": "(queries, keys)"},
        reference=_window,
        cases=lambda: [
            (1, 3, 1),
            (2, 2, 1),
            (3, 5, 2),
            (1, 4, 3),
            (4, 4, 3),
            (2, 6, 9),
            (5, 5, 1),
            (4, 2, 3),
            (2, 300, 200),
        ],
        mistakes=(
            Mistake(
                "top-left",
                "This is still the mistake of the task: the band begins at the top left corner. "
                "Count from the last query and the last key.",
                _band(corner=0),
            ),
            Mistake(
                "old-edge",
                "The newest key is right, but the old edge of the window is still counted from the "
                "top left corner.",
                _edges(1, 0),
            ),
            Mistake(
                "new-edge",
                "The old edge of the window is right, but the newest key is still counted from the "
                "top left corner.",
                _edges(0, 1),
            ),
            Mistake(
                "wrong-sign",
                "The band is moved to the wrong side: with more keys than queries it lies further "
                "right.",
                _edges(-1, -1),
            ),
            Mistake(
                "one-too-many",
                "The window holds one key too many: the query's own position counts.",
                _band(width=1),
            ),
            Mistake(
                "one-too-few",
                "The query does not see itself, which counts as one of the window.",
                _band(shift=-1, width=-1),
                also=(_band(shift=-1),),
            ),
            Mistake(
                "narrow",
                "The window is one key too short. It holds window keys, with the query's own.",
                _band(width=-1),
            ),
            Mistake(
                "two-sided",
                "The window reaches to both sides. Later keys are hidden.",
                lambda num_queries, num_keys, window: abs(_far(num_queries, num_keys)) < window,
            ),
            Mistake(
                "ahead",
                "The window looks ahead: each query sees itself and what comes after.",
                lambda num_queries, num_keys, window: (
                    (_far(num_queries, num_keys) <= 0) & (_far(num_queries, num_keys) > -window)
                ),
            ),
            Mistake(
                "not-causal",
                "Old keys are hidden, but later ones are seen.",
                lambda num_queries, num_keys, window: _far(num_queries, num_keys) < window,
            ),
            Mistake(
                "joined-by-or",
                "Every key is seen, as if one of the two conditions were enough. A key must "
                "satisfy both.",
                lambda num_queries, num_keys, window: np.ones((num_queries, num_keys), dtype=bool),
            ),
            Mistake(
                "one-row",
                "Every query sees the newest keys of all. Each has its own position, where its "
                "window ends.",
                lambda num_queries, num_keys, window: np.tile(
                    np.arange(num_keys) >= num_keys - window, (num_queries, 1)
                ),
            ),
            Mistake(
                "the-future",
                "Each query sees the key after its own.",
                _band(shift=1, width=1),
                also=(_band(shift=1),),
            ),
            Mistake(
                "no-window",
                "The rule is causal, but has no window: old keys are to be hidden.",
                lambda num_queries, num_keys, window: np.tri(
                    num_queries, num_keys, num_keys - num_queries, dtype=bool
                ),
            ),
            Mistake(
                "upside-down",
                "The mask is upside down: True means that the query may look.",
                lambda *sizes: ~_window(*sizes),
            ),
        ),
        hints=(
            "Draw the mask for 2 queries, 4 keys and a window of 2. Where does the last row end?",
            "Query i stands at position i + num_keys − num_queries. It sees key j if j is not "
            "later than that, and less than window before it.",
            "With np.arange as a column of positions and a row of keys, two comparisons joined by "
            "& are the mask.",
        ),
        solution="""\
def window_mask(num_queries, num_keys, window):
    here = np.arange(num_queries)[:, None] + num_keys - num_queries  # (n, 1)
    key = np.arange(num_keys)
    return (key <= here) & (key > here - window)""",
    )
)


# Dropout


def _dropped(query: Array, key: Array, value: Array, kept: Array, training: bool) -> Any:
    weights = softmax(_scores(query, key))
    return (2 * weights * kept if training else weights) @ value, weights


def _dropped_otherwise(answer: Callable[[Array, Array, bool], tuple[Array, Array]]) -> Any:
    def whole(query: Array, key: Array, value: Array, kept: Array, training: bool) -> Any:
        used, returned = answer(softmax(_scores(query, key)), kept, training)
        return used @ value, returned

    return whole


def _renormalised(weights: Array, kept: Array, training: bool) -> tuple[Array, Array]:
    used = weights * kept if training else weights
    return used / np.maximum(used.sum(axis=-1, keepdims=True), 1e-300), weights


def _dropped_cases() -> list[Case]:
    small = tables([[0.5, 1]], [[1, 0], [0, 1.5]], [[1.2], [3]])
    rng = np.random.default_rng(1)
    large = tuple(rng.normal(size=size).round(2) for size in ((3, 2), (4, 2), (4, 3)))
    kept = np.array([[1, 0, 1, 1], [0, 0, 0, 0], [0, 1, 1, 0]], dtype=bool)
    huge = tables(
        [[30, -20], [-40, 10]], [[25, 30], [-30, 20], [24, 31]], [[1, 3], [-2, 4], [5, 0]]
    )
    return [
        (*small, np.array([[True, False]]), False),
        (*small, np.array([[True, False]]), True),
        (*large, kept, True),
        (*large, kept, False),
        (*huge, kept[:2, :3], True),  # scores beyond what exp can hold
        (*rough(3, (2, 3), (1, 3), (1, 2)), np.array([[True], [True]]), True),
    ]


register(
    Exercise(
        name="dropped_attention",
        chapter=9,
        difficulty="medium",
        minutes=15,
        task="Attention of query (n, d), key (m, d) and value (m, d_v) with a dropout of one half. "
        "The random choices have already been made: kept (n, m) is True where a weight stays. "
        "While training, those that stay are doubled and the others are 0; otherwise nothing is "
        "dropped. Return the output (n, d_v) and the weights (n, m) before dropout.",
        returns={"output": "(queries, d_v)", "weights": "(queries, keys)"},
        reference=_dropped,
        cases=_dropped_cases,
        mistakes=(
            Mistake(
                "after-dropout",
                "The weights that you return are those after dropout, so that their rows do not "
                "sum to 1. Return what the softmax gave.",
                _dropped_otherwise(
                    lambda w, kept, training: (2 * w * kept, 2 * w * kept) if training else (w, w)
                ),
                also=(
                    _dropped_otherwise(
                        lambda w, kept, training: (2 * w * kept, w * kept) if training else (w, w)
                    ),
                    _dropped_otherwise(
                        lambda w, kept, training: (2 * w * kept if training else w, w * kept)
                    ),
                    _dropped_otherwise(
                        lambda w, kept, training: (2 * w * kept if training else w, 2 * w * kept)
                    ),
                ),
            ),
            Mistake(
                "both",
                "Both mistakes are still there. Ask which weights a reader should be shown, and "
                "what may happen outside training.",
                _dropped_otherwise(lambda w, kept, training: (2 * w * kept, 2 * w * kept)),
            ),
            Mistake(
                "always",
                "Weights are dropped outside training as well, so that a finished model casts dice "
                "at each answer.",
                _dropped_otherwise(lambda w, kept, training: (2 * w * kept, w)),
            ),
            Mistake(
                "never",
                "Nothing is dropped, in training either.",
                _dropped_otherwise(lambda w, kept, training: (w, w)),
            ),
            Mistake(
                "not-doubled",
                "The weights that stay are not doubled, so the output is half as large in training "
                "as afterwards.",
                _dropped_otherwise(lambda w, kept, training: (w * kept if training else w, w)),
            ),
            Mistake(
                "doubled-in-use",
                "Outside training nothing is dropped, so nothing is doubled.",
                _dropped_otherwise(lambda w, kept, training: (w * kept if training else 2 * w, w)),
                also=(
                    _dropped_otherwise(
                        lambda w, kept, training: (2 * w * kept if training else 2 * w, w)
                    ),
                ),
            ),
            Mistake(
                "halved-in-use",
                "The weights are halved outside training, which some programs do instead of "
                "doubling. Here those that stay are doubled in training.",
                _dropped_otherwise(lambda w, kept, training: (w * kept if training else w / 2, w)),
                also=(
                    _dropped_otherwise(
                        lambda w, kept, training: (2 * w * kept if training else w / 2, w)
                    ),
                ),
            ),
            Mistake(
                "halved",
                "The weights that stay are halved. So that the sum is the same on average, they "
                "are doubled.",
                _dropped_otherwise(lambda w, kept, training: (w * kept / 2 if training else w, w)),
            ),
            Mistake(
                "divided-by-what-stayed",
                "You divided by the share that stayed in this draw. The factor is 2, whatever was "
                "drawn.",
                _dropped_otherwise(
                    lambda w, kept, training: (w * kept / kept.mean() if training else w, w)
                ),
                also=(
                    _dropped_otherwise(
                        lambda w, kept, training: (
                            w * kept / np.maximum(kept.mean(axis=1, keepdims=True), 1e-9)
                            if training
                            else w,
                            w,
                        )
                    ),
                ),
            ),
            Mistake(
                "kept-dropped",
                "The wrong weights are dropped: kept is True where a weight stays.",
                _dropped_otherwise(lambda w, kept, training: (2 * w * ~kept if training else w, w)),
            ),
            Mistake(
                "summed-to-one",
                "The weights that stay were made to sum to 1 again. Dropout doubles them, whatever "
                "they sum to then.",
                _dropped_otherwise(_renormalised),
                also=(_dropped_otherwise(lambda *case: (_renormalised(*case)[0],) * 2),),
            ),
            Mistake(
                "no-scale",
                "The scores are not divided by the root of the width of the keys.",
                lambda query, key, value, kept, training: _dropped(
                    query * np.sqrt(query.shape[-1]), key, value, kept, training
                ),
            ),
            Mistake(
                "swapped",
                "Training and use are the wrong way round.",
                _dropped_otherwise(lambda w, kept, training: (w if training else 2 * w * kept, w)),
            ),
        ),
        hints=(
            "There are two kinds of weights in training: those that mix the values, and those that "
            "you show to others.",
            "While training, the values are mixed with 2 · weights · kept, otherwise with the "
            "weights. What is returned beside the output is the same in both cases.",
            "attention of d2lmini gives the weights. Multiply with kept only if training, and mix "
            "with @.",
        ),
        solution="""\
def dropped_attention(query, key, value, kept, training):
    from d2lmini import attention

    weights = attention(query, key, value).weights
    used = 2 * weights * kept if training else weights
    return used @ value, weights""",
    )
)


# A test that finds what nine tests miss


def _right(
    query: Array,
    key: Array,
    value: Array,
    mask: Array | None = None,
    causal: bool = False,
    heads: int = 1,
) -> tuple[Array, Array]:
    q, k, v = (split_heads(x, heads) for x in (query, key, value))
    if mask is not None and mask.ndim == 3:
        mask = mask[:, None]
    output, weights = attention(q, k, v, mask=mask, causal=causal)
    return merge_heads(output), weights


def _in_another_order(query: Array, key: Array, value: Array, **rule: Any) -> tuple[Array, Array]:
    """Right as well, and rounded otherwise."""
    output, weights = _right(query, key, value / 3, **rule)
    return output * 3, weights


def _short_sighted(
    query: Array, key: Array, value: Array, mask: Array | None = None, **rule: Any
) -> tuple[Array, Array]:
    mask = None if mask is None else mask[..., -8:]
    return _right(query, key[:, -8:], value[:, -8:], mask, **rule)


def _one_mask_for_all(
    query: Array, key: Array, value: Array, mask: Array | None = None, **rule: Any
) -> tuple[Array, Array]:
    if mask is not None and mask.ndim == 4:
        mask = mask[:, 0]
    return _right(query, key, value, mask, **rule)


def _coarse(query: Array, key: Array, value: Array, **rule: Any) -> tuple[Array, Array]:
    if query.dtype == np.float32:
        query = query.astype(np.float16)
    return _right(query, key, value, **rule)


_ATTENTIONS: dict[str, Callable[..., tuple[Array, Array]]] = {
    "short_sighted": _short_sighted,
    "one_mask_for_all": _one_mask_for_all,
    "coarse": _coarse,
    "a right one": _right,
    "a right one, rounded otherwise": _in_another_order,
}


def _same(
    attend: Callable[..., tuple[Array, Array]],
    arrays: list[Array],
    close: float = 1e-4,
    **rule: Any,
) -> bool:
    return np.allclose(attend(*arrays, **rule)[0], _right(*arrays, **rule)[0], close, close)


def _long(attend: Callable[..., Any], close: float = 1e-4) -> bool:
    rng = np.random.default_rng(0)
    return _same(attend, [rng.normal(size=(2, 20, 6)) for _ in range(3)], close)


def _per_head(attend: Callable[..., Any]) -> bool:
    rng = np.random.default_rng(1)
    mask = rng.random((2, 3, 4, 5)) < 0.5
    mask[..., 0] = True
    arrays = [rng.normal(size=size) for size in ((2, 4, 6), (2, 5, 6), (2, 5, 9))]
    return _same(attend, arrays, mask=mask, heads=3)


def _single(attend: Callable[..., Any]) -> bool:
    rng = np.random.default_rng(2)
    return _same(attend, [rng.normal(size=(1, 4, 6)).astype(np.float32) for _ in range(3)])


def _all_of(*tests: Callable[..., bool]) -> Callable[..., bool]:
    return lambda attend: all(test(attend) for test in tests)


register(
    Exercise(
        name="finds_no_fault",
        chapter=9,
        difficulty="hard",
        minutes=30,
        task="Return True if attend is right, and False if it has one of the three slips above. "
        "It is called as attend(query, key, value, mask=None, causal=False, heads=1) with arrays "
        "(batch, n, heads · d), and returns output and weights. A right one may round otherwise "
        "than d2lmini.",
        returns={"right": "()"},
        reference=_all_of(_long, _per_head, _single),
        cases=lambda: [(name,) for name in _ATTENTIONS],
        call=lambda answer, name: answer(_ATTENTIONS[name]),
        mistakes=(
            Mistake(
                "no-test",
                "You let everything pass. Call attend, and compare its output with one that is "
                "right.",
                lambda attend: True,
            ),
            Mistake(
                "no-mercy",
                "You reject everything, the right ones as well.",
                lambda attend: False,
            ),
            Mistake(
                "short-texts",
                "You found two, and short_sighted got away: your texts are shorter than its "
                "window of 8 keys.",
                _all_of(_per_head, _single),
            ),
            Mistake(
                "equal-heads",
                "You found two, and one_mask_for_all got away. Give each head a mask of its own, "
                "of shape (batch, heads, n, m).",
                _all_of(_long, _single),
            ),
            Mistake(
                "one-precision",
                "You found two, and coarse got away: it only shows in float32.",
                _all_of(_long, _per_head),
            ),
            Mistake(
                "long-only",
                "You found short_sighted only. Masks and precisions need a test of their own.",
                _long,
            ),
            Mistake(
                "heads-only",
                "You found one_mask_for_all only. Long texts and other precisions need a test of "
                "their own.",
                _per_head,
            ),
            Mistake(
                "float32-only",
                "You found coarse only. Long texts and masks need a test of their own.",
                _single,
            ),
            Mistake(
                "too-strict",
                "You rejected a right one that adds in another order. Numbers of a computer are "
                "rounded, so ask whether they are close.",
                lambda attend: _all_of(_long, _per_head, _single)(attend) and _long(attend, 0.0),
            ),
        ),
        hints=(
            "The nine use at most 6 keys, masks without an axis for the heads, and numbers of 64 "
            "and 16 bits. What do the three need to show themselves?",
            "Compare attend with a right one on three inputs: a text of 20 tokens, a mask "
            "(batch, heads, n, m) that differs between the heads, and arrays in float32.",
            "attention of d2lmini, with split_heads and merge_heads, is a right one. np.allclose "
            "with a tolerance of 1e-4 tells float32 from half precision.",
        ),
        solution="""\
def finds_no_fault(attend):
    from d2lmini import attention, merge_heads, split_heads

    rng, right = np.random.default_rng(0), True
    for tokens, mask, dtype in (
        (20, None, float),  # a long text
        (5, rng.random((2, 3, 5, 5)) < 0.6, float),  # a mask for each head
        (5, None, np.float32),
    ):
        q, k, v = rng.normal(size=(3, 2, tokens, 6)).astype(dtype)
        heads = [split_heads(x, 3) for x in (q, k, v)]
        expected = merge_heads(attention(*heads, mask=mask).output)
        output, _ = attend(q, k, v, mask=mask, heads=3)
        right = right and np.allclose(output, expected, rtol=1e-4, atol=1e-4)
    return right""",
    )
)
