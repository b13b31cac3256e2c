"""Chapter 8: attention at scale."""

from collections.abc import Callable

import numpy as np

from d2lmini._arrays import Array
from d2lmini.attention import attention
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import naive_softmax, rough, tables
from d2lmini.linear import linear_attention
from d2lmini.weights import softmax

# The cost model of the cache


def _cache_bytes(
    tokens: int, layers: int, kv_heads: int, head_width: int, bytes_per_number: int
) -> int:
    return 2 * tokens * layers * kv_heads * head_width * bytes_per_number


register(
    Exercise(
        name="cache_bytes",
        chapter=8,
        difficulty="warm-up",
        minutes=5,
        task="How many bytes does a key-value cache take? It keeps, for each of tokens tokens, in "
        "each of layers layers and for each of kv_heads heads, a key and a value of head_width "
        "numbers each; a number takes bytes_per_number bytes. Return an int.",
        returns={"bytes": "()"},
        reference=_cache_bytes,
        cases=lambda: [
            (1, 1, 1, 1, 1),
            (5, 1, 1, 3, 2),
            (7, 2, 3, 5, 4),
            (2048, 30, 3, 64, 2),
        ],
        mistakes=(
            Mistake(
                "keys-only",
                "You counted the keys. Their values are kept too.",
                lambda tokens, layers, kv_heads, head_width, size: (
                    tokens * layers * kv_heads * head_width * size
                ),
            ),
            Mistake(
                "numbers-not-bytes",
                "You counted numbers. Each takes bytes_per_number bytes.",
                lambda tokens, layers, kv_heads, head_width, size: (
                    2 * tokens * layers * kv_heads * head_width
                ),
            ),
            Mistake(
                "one-layer",
                "You counted one layer. Each layer has keys and values of its own.",
                lambda tokens, layers, kv_heads, head_width, size: (
                    2 * tokens * kv_heads * head_width * size
                ),
            ),
            Mistake(
                "queries-kept",
                "You kept the queries as well. No later token looks for them.",
                lambda tokens, layers, kv_heads, head_width, size: (
                    3 * tokens * layers * kv_heads * head_width * size
                ),
            ),
            Mistake(
                "weights-kept",
                "You counted a table of tokens by tokens. The cache holds vectors, and grows by as "
                "much with each token.",
                lambda tokens, layers, kv_heads, head_width, size: (
                    tokens * tokens * layers * kv_heads * size
                ),
            ),
        ),
        hints=(
            "What does one token add, in one layer and one head? Two vectors.",
            "Everything multiplies: vectors, their width, heads, layers, tokens, bytes.",
            "With five ones the answer is 2: one number of a key and one of a value.",
        ),
        solution="""\
def my_cache_bytes(tokens, layers, kv_heads, head_width, bytes_per_number):
    numbers = 2 * kv_heads * head_width  # of one token in one layer
    return numbers * layers * tokens * bytes_per_number""",
    )
)


# Two partial softmaxes

Part = tuple[Array, Array, Array]


def _merge_parts(
    largest: Array,
    total: Array,
    mixed: Array,
    other_largest: Array,
    other_total: Array,
    other_mixed: Array,
) -> Part:
    new = np.maximum(largest, other_largest)
    fade, other_fade = np.exp(largest - new), np.exp(other_largest - new)
    return new, total * fade + other_total * other_fade, mixed * fade + other_mixed * other_fade


def _merge_slip(
    fades: Callable[[Array, Array], tuple[Array, ...]],
) -> Callable[..., Part]:
    def merge(m1: Array, s1: Array, o1: Array, m2: Array, s2: Array, o2: Array) -> Part:
        one, other = fades(m1, m2)
        return np.maximum(m1, m2), s1 * one + s2 * other, o1 * one + o2 * other

    return merge


def _true_fades(m1: Array, m2: Array) -> tuple[Array, Array]:
    new = np.maximum(m1, m2)
    return np.exp(m1 - new), np.exp(m2 - new)


register(
    Exercise(
        name="merge_parts",
        chapter=8,
        difficulty="easy",
        minutes=15,
        task="n queries have seen two sets of keys, each by itself. Of the first set there are "
        "largest (n, 1), the largest score a, total (n, 1), the sum of exp(a - largest), and mixed "
        "(n, d_v), the sum of exp(a - largest) times the value; of the second set the other three. "
        "Return the three as if it had been one set of keys.",
        returns={"largest": "(n, 1)", "total": "(n, 1)", "mixed": "(n, d_v)"},
        reference=_merge_parts,
        cases=lambda: [
            tables([[0]], [[1]], [[2]], [[0]], [[1]], [[5]]),
            tables([[1]], [[1.5]], [[3, 1]], [[0.25]], [[1]], [[5, -2]]),
            tables(
                [[0.5], [-2]],
                [[1.25], [1]],
                [[3, 1, 0], [1, 1, 2.5]],
                [[2], [-3.5]],
                [[1], [1.75]],
                [[0.5, -2, 1], [0, 4, 1]],
            ),
            tables(
                [[1000], [-1000], [3]],
                [[1], [2], [1.5]],
                [[4], [2], [1]],
                [[998], [-1002], [900]],
                [[1.5], [1], [2]],
                [[-3], [6], [8]],
            ),
            tables([[0.3]], [[1.2]], [[-3.4, 2.6]], [[-0.7]], [[1.1]], [[-1.3, -4.2]]),
            (
                *rough(2, (3, 1)),
                *rough(3, (3, 1), low=400),
                *rough(4, (3, 2)),
                *rough(5, (3, 1)),
                *rough(6, (3, 1), low=400),
                *rough(7, (3, 2)),
            ),
        ],
        mistakes=(
            Mistake(
                "added",
                "You added what was measured from two different largest scores. Measure both from "
                "the new one first.",
                _merge_slip(lambda m1, m2: (np.ones_like(m1), np.ones_like(m2))),
            ),
            Mistake(
                "one-faded",
                "You changed the first part only. The second may have the smaller scores.",
                _merge_slip(lambda m1, m2: (_true_fades(m1, m2)[0], np.ones_like(m2))),
            ),
            Mistake(
                "upside-down",
                "The factors are upside down: a part with a smaller largest score must fade, not "
                "grow.",
                _merge_slip(lambda m1, m2: tuple(1 / f for f in _true_fades(m1, m2))),
                also=(
                    _merge_slip(
                        lambda m1, m2: tuple(np.exp(np.maximum(m1, m2) - m) for m in (m1, m2))
                    ),
                ),
            ),
            Mistake(
                "total-not-faded",
                "The sum of the weights fades as the weighted sum of the values does.",
                lambda m1, s1, o1, m2, s2, o2: (
                    np.maximum(m1, m2),
                    s1 + s2,
                    o1 * _true_fades(m1, m2)[0] + o2 * _true_fades(m1, m2)[1],
                ),
            ),
            Mistake(
                "no-max",
                "Right for small scores. Going back to exp(a) itself overflows for large ones: use "
                "differences only.",
                lambda m1, s1, o1, m2, s2, o2: (
                    np.maximum(m1, m2),
                    (s1 * np.exp(m1) + s2 * np.exp(m2)) / np.exp(np.maximum(m1, m2)),
                    (o1 * np.exp(m1) + o2 * np.exp(m2)) / np.exp(np.maximum(m1, m2)),
                ),
            ),
            Mistake(
                "divided",
                "You divided by the sum. The three are kept undivided, so that more can be merged "
                "with them; only the very last step divides.",
                lambda m1, s1, o1, m2, s2, o2: (
                    np.maximum(m1, m2),
                    s1 * _true_fades(m1, m2)[0] + s2 * _true_fades(m1, m2)[1],
                    (o1 * _true_fades(m1, m2)[0] + o2 * _true_fades(m1, m2)[1])
                    / (s1 * _true_fades(m1, m2)[0] + s2 * _true_fades(m1, m2)[1]),
                ),
            ),
            Mistake(
                "one-maximum",
                "You took one largest score for all queries. Each query has its own.",
                lambda m1, s1, o1, m2, s2, o2: (
                    np.full_like(m1, max(m1.max(), m2.max())),
                    s1 * np.exp(m1 - max(m1.max(), m2.max()))
                    + s2 * np.exp(m2 - max(m1.max(), m2.max())),
                    o1 * np.exp(m1 - max(m1.max(), m2.max()))
                    + o2 * np.exp(m2 - max(m1.max(), m2.max())),
                ),
            ),
        ),
        hints=(
            "If both largest scores are equal, the sums may be added. Make them equal.",
            "Measured from M' instead of M, every weight of a part has one more factor, "
            "exp(M - M').",
            "np.maximum compares two arrays number by number. It gives M' for each query.",
        ),
        solution="""\
def merge_parts(largest, total, mixed, other_largest, other_total, other_mixed):
    new = np.maximum(largest, other_largest)  # (n, 1)
    fade, other_fade = np.exp(largest - new), np.exp(other_largest - new)
    return (new, total * fade + other_total * other_fade,
            mixed * fade + other_mixed * other_fade)""",
    )
)


# A cache with a window


def _keep_window(
    cached_key: Array, cached_value: Array, key: Array, value: Array, window: int
) -> tuple[Array, Array]:
    keys, values = np.concatenate([cached_key, key]), np.concatenate([cached_value, value])
    return keys[max(len(keys) - window, 0) :], values[max(len(values) - window, 0) :]


def _counting(first: float, *size: int) -> Array:
    return first + np.arange(float(np.prod(size))).reshape(size) / 4


def _window_case(cached: int, new: int, window: int, d: int = 2, d_v: int = 3) -> Case:
    return (
        _counting(0.5, cached, d),
        _counting(-9, cached, d_v),
        _counting(100, new, d),
        _counting(200, new, d_v),
        window,
    )


register(
    Exercise(
        name="keep_window",
        chapter=8,
        difficulty="easy",
        minutes=10,
        task="A cache with a window. Earlier tokens left cached_key (c, d) and cached_value "
        "(c, d_v); new tokens bring key (t, d) and value (t, d_v). Append them, and keep the "
        "newest window positions, or all if there are no more. Return both.",
        returns={"keys": "(kept, d)", "values": "(kept, d_v)"},
        reference=_keep_window,
        cases=lambda: [
            _window_case(1, 1, 1, 1, 1),
            _window_case(2, 1, 2),
            _window_case(1, 1, 4),
            _window_case(0, 2, 3),
            _window_case(3, 2, 4),
            _window_case(5, 1, 3),
            _window_case(2, 5, 3, 4, 1),
            _window_case(6, 2, 7),
            (*rough(9, (2, 3), (2, 4), (3, 3), (3, 4)), 4),
        ],
        views=True,
        mistakes=(
            Mistake(
                "oldest-kept",
                "You kept the oldest positions. A new token looks at its neighbours, so the newest "
                "stay.",
                lambda cached_key, cached_value, key, value, window: (
                    np.concatenate([cached_key, key])[:window],
                    np.concatenate([cached_value, value])[:window],
                ),
            ),
            Mistake(
                "nothing-dropped",
                "The cache grows without end. Keep `window` positions at most.",
                lambda cached_key, cached_value, key, value, window: (
                    np.concatenate([cached_key, key]),
                    np.concatenate([cached_value, value]),
                ),
            ),
            Mistake(
                "in-front",
                "The new positions were put before the earlier ones. A cache is in the order of "
                "the tokens.",
                lambda cached_key, cached_value, key, value, window: (
                    np.concatenate([key, cached_key])[-window:],
                    np.concatenate([value, cached_value])[-window:],
                ),
                also=(
                    lambda cached_key, cached_value, key, value, window: (
                        np.concatenate([key, cached_key])[:window],
                        np.concatenate([value, cached_value])[:window],
                    ),
                ),
            ),
            Mistake(
                "one-too-many",
                "You kept window positions beside the new ones. The window counts them all.",
                lambda cached_key, cached_value, key, value, window: (
                    np.concatenate([cached_key[max(len(cached_key) - window, 0) :], key]),
                    np.concatenate([cached_value[max(len(cached_key) - window, 0) :], value]),
                ),
            ),
            Mistake(
                "one-dropped",
                "One position is dropped for each call, and several may be new. Count from the end "
                "of what has been joined.",
                lambda cached_key, cached_value, key, value, window: (
                    np.concatenate([cached_key, key])[len(cached_key) + len(key) > window :],
                    np.concatenate([cached_value, value])[len(cached_key) + len(key) > window :],
                ),
            ),
            Mistake(
                "keys-only",
                "You cut the keys and not the values. Each key has its value at the same place.",
                lambda cached_key, cached_value, key, value, window: (
                    np.concatenate([cached_key, key])[-window:],
                    np.concatenate([cached_value, value]),
                ),
            ),
        ),
        hints=(
            "Join first, cut afterwards. What is left if there are fewer positions than that?",
            "Of m positions those from m - window on stay; none is dropped if that is negative.",
            "A slice that begins at -window does both: x[-3:] of two rows is both rows.",
        ),
        solution="""\
def keep_window(cached_key, cached_value, key, value, window):
    keys = np.concatenate([cached_key, key])
    values = np.concatenate([cached_value, value])
    return keys[-window:], values[-window:]""",
    )
)


# Tiles of keys


def _attention(query: Array, key: Array, value: Array, block_size: int) -> Array:
    return attention(query, key, value).output


def _tile_cases() -> list[Case]:
    def case(n: int, m: int, d: int, d_v: int, block: int, size: float = 1) -> Case:
        rng = np.random.default_rng(m)
        shapes = (n, d), (m, d), (m, d_v)
        query, key, value = (rng.integers(-4, 5, shape) / 4 for shape in shapes)
        return size * query, size * key, value + 0.3, block

    return [
        (*tables([[1, 0]], [[2, 0], [0, 1]], [[1.5], [4]]), 1),
        case(2, 4, 3, 2, 2),
        case(3, 5, 4, 1, 2, 2),
        case(1, 7, 2, 3, 3, 3),
        case(4, 3, 1, 2, 8, 2),
        case(3, 6, 4, 2, 4, 50),
        (
            *tables(
                [[-1024], [-512]], [[2], [2.0009765625], [1.99951171875]], [[1.5], [-4], [0.3]]
            ),
            2,
        ),
    ]


def _in_tiles(
    fade: Callable[[Array, Array], Array] = lambda largest, new: np.exp(largest - new),
    root: Callable[[int], float] = lambda d: float(np.sqrt(d)),
    stop: Callable[[int, int], int] = lambda m, block: m,
    divide: bool = True,
) -> Callable[..., Array]:
    """Return tiled attention with one step replaced."""

    def attend(query: Array, key: Array, value: Array, block_size: int) -> Array:
        largest = np.full((len(query), 1), -np.inf)
        total, mixed = np.zeros((len(query), 1)), np.zeros((len(query), value.shape[-1]))
        for start in range(0, stop(len(key), block_size), block_size):
            end = min(start + block_size, stop(len(key), block_size))
            scores = query @ key[start:end].T / root(key.shape[-1])
            new = np.maximum(largest, scores.max(axis=-1, keepdims=True))
            e, f = np.exp(scores - new), fade(largest, new)
            total = total * f + e.sum(axis=-1, keepdims=True)
            mixed = mixed * f + e @ value[start:end]
            largest = new
        return mixed / total if divide else mixed

    return attend


def _mean_of_tiles(query: Array, key: Array, value: Array, block_size: int) -> Array:
    outputs = [
        attention(query, key[i : i + block_size], value[i : i + block_size]).output
        for i in range(0, len(key), block_size)
    ]
    return np.mean(outputs, axis=0)


register(
    Exercise(
        name="tiled_attention",
        chapter=8,
        difficulty="medium",
        minutes=25,
        task="Attention in tiles: query (n, d), key (m, d), value (m, d_v). Take block_size keys "
        "at a time (the last block may be shorter) and keep, for each query, the largest score, "
        "the sum of the weights and the weighted sum so far. Return the output (n, d_v), divided "
        "at the end.",
        returns={"output": "(n, d_v)"},
        reference=_attention,
        cases=_tile_cases,
        mistakes=(
            Mistake(
                "not-faded",
                "What came before stays as it was when a larger score turns up. It must fade by "
                "exp(old largest - new largest).",
                _in_tiles(fade=lambda largest, new: np.where(np.isinf(largest), 0.0, 1.0)),
            ),
            Mistake(
                "mean-of-blocks",
                "You averaged the outputs of the blocks. One with large scores counts for more.",
                _mean_of_tiles,
            ),
            Mistake(
                "last-block",
                "The keys of the last, shorter block are missing.",
                _in_tiles(stop=lambda m, block: m - m % block if m >= block else m),
            ),
            Mistake(
                "no-scale",
                "The scores are not divided by √d.",
                _in_tiles(root=lambda d: 1.0),
            ),
            Mistake(
                "scale-d",
                "You divided by d. It is the square root of d.",
                _in_tiles(root=float),
            ),
            Mistake(
                "not-divided",
                "The weighted sum is not divided by the sum of the weights in the end.",
                _in_tiles(divide=False),
            ),
            Mistake(
                "no-max",
                "Right for small scores. exp overflows for large ones: that is why the largest "
                "score is kept.",
                lambda query, key, value, block_size: (
                    naive_softmax(query @ key.T / np.sqrt(key.shape[-1])) @ value
                ),
            ),
            Mistake(
                "softmax-over-queries",
                "The weights sum to 1 over the queries. They must do so over the keys.",
                lambda query, key, value, block_size: (
                    softmax(query @ key.T / np.sqrt(key.shape[-1]), axis=0) @ value
                ),
            ),
        ),
        hints=(
            "A loop over the blocks, and in it one step of merging: what came before, and this "
            "block.",
            "Begin with a largest score of -inf and two sums of 0, for each query. exp(-inf) is 0, "
            "so the first block takes their place.",
            "np.full((n, 1), -np.inf) makes the first; range(0, m, block_size) the beginnings.",
        ),
        solution="""\
def my_tiled_attention(query, key, value, block_size):
    n, m, d_v = len(query), len(key), value.shape[-1]
    largest, total, mixed = np.full((n, 1), -np.inf), np.zeros((n, 1)), np.zeros((n, d_v))
    for start in range(0, m, block_size):
        block = slice(start, start + block_size)
        scores = query @ key[block].T / np.sqrt(key.shape[-1])  # (n, block)
        new = np.maximum(largest, scores.max(axis=-1, keepdims=True))
        e, fade = np.exp(scores - new), np.exp(largest - new)
        total = total * fade + e.sum(axis=-1, keepdims=True)
        mixed = mixed * fade + e @ value[block]
        largest = new
    return mixed / total""",
    )
)


# Linear attention as a recurrence


def _recurrence(query: Array, key: Array, value: Array) -> Array:
    return linear_attention(query, key, value, causal=True)


def _features(x: Array) -> Array:
    return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))


def _recurrent_slip(
    features: Callable[[Array], Array] = _features,
    seen: Callable[[int], Array] = lambda n: np.tri(n),
    divide: Callable[[Array, Array], Array] = lambda mixed, total: mixed / total,
) -> Callable[..., Array]:
    def attend(query: Array, key: Array, value: Array) -> Array:
        weights = features(query) @ features(key).T
        shown = weights * seen(len(query))
        with np.errstate(all="ignore"):
            return divide(shown @ value, shown.sum(axis=-1, keepdims=True))

    return attend


def _linear_cases() -> list[Case]:
    rng = np.random.default_rng(8)
    cases: list[Case] = [tables([[1], [0.5]], [[-1], [2]], [[3], [0.5]])]
    for n, d, d_v, size in (3, 2, 1, 1.0), (1, 3, 2, 0.5), (5, 2, 4, 1.5), (6, 4, 3, 9.0):
        shapes = (n, d), (n, d), (n, d_v)
        query, key, value = (size * rng.integers(-4, 5, shape) / 4 for shape in shapes)
        cases.append((query, key, value + 0.2))
    return cases


register(
    Exercise(
        name="linear_attention",
        chapter=8,
        difficulty="hard",
        minutes=30,
        task="Causal linear attention as a recurrence: query, key (n, d), value (n, d_v). The "
        "features of x are x + 1 where x > 0 and exp(x) elsewhere. Keep two sums over the tokens "
        "so far, of the features of the key times the value, (d, d_v), and of the features of the "
        "key, (d,). Token t adds its own first, and its output is what the features of its query "
        "read from the first sum, divided by what they read from the second. Return (n, d_v).",
        returns={"output": "(n, d_v)"},
        reference=_recurrence,
        cases=_linear_cases,
        mistakes=(
            Mistake(
                "itself-not-seen",
                "A token reads before it adds its own key and value. It sees itself, too.",
                _recurrent_slip(seen=lambda n: np.tri(n, k=-1)),
                also=(
                    _recurrent_slip(
                        seen=lambda n: np.tri(n, k=-1),
                        divide=lambda mixed, total: np.where(total > 0, mixed / total, 0),
                    ),
                ),
            ),
            Mistake(
                "not-causal",
                "Every token sees all. Read after each token, not at the end.",
                _recurrent_slip(seen=lambda n: np.ones((n, n))),
            ),
            Mistake(
                "backwards",
                "Each token sees those that come later. The sums begin with the first token.",
                _recurrent_slip(seen=lambda n: np.tri(n).T),
            ),
            Mistake(
                "no-normaliser",
                "What was read is not divided by the sum of the weights.",
                _recurrent_slip(divide=lambda mixed, total: mixed),
            ),
            Mistake(
                "divided-by-count",
                "You divided by the number of tokens. The weights are not equal: divide by their "
                "sum.",
                _recurrent_slip(
                    divide=lambda mixed, total: mixed / np.arange(1, len(mixed) + 1)[:, None]
                ),
            ),
            Mistake(
                "no-plus-one",
                "The features of a positive x are x + 1, not x: otherwise they jump at 0.",
                _recurrent_slip(features=lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)))),
            ),
            Mistake(
                "minus-one",
                "You used exp(x) - 1 below 0, which is negative. A weight cannot be negative.",
                _recurrent_slip(
                    features=lambda x: np.where(x > 0, x, np.exp(np.minimum(x, 0)) - 1)
                ),
            ),
            Mistake(
                "softmax",
                "That is causal attention with a softmax. Here a weight is a product of features.",
                lambda query, key, value: attention(query, key, value, causal=True).output,
            ),
        ),
        hints=(
            "Two things are carried from token to token, and neither grows. What does one key with "
            "its value add to the first?",
            "S ← S + φ(k) vᵀ and z ← z + φ(k); token t reads φ(q)ᵀ S / φ(q)ᵀ z.",
            "np.outer makes a matrix of two vectors. np.where evaluates both branches, so keep exp "
            "from large numbers with np.minimum(x, 0).",
        ),
        solution="""\
def my_linear_attention(query, key, value):
    def features(x):
        return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))

    state, normaliser = np.zeros((key.shape[-1], value.shape[-1])), np.zeros(key.shape[-1])
    output = np.zeros(value.shape)
    for t in range(len(query)):
        state = state + np.outer(features(key[t]), value[t])  # (d, d_v)
        normaliser = normaliser + features(key[t])  # (d,)
        asked = features(query[t])
        output[t] = asked @ state / (asked @ normaliser)
    return output""",
    )
)
