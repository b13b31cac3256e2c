"""Chapter 8: attention at scale."""

from collections.abc import Callable

import numpy as np

from d2lmini._arrays import Array
from d2lmini.attention import attention
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import rough, tables
from d2lmini.linear import linear_attention

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
        whole=True,
        cases=lambda: [
            (1, 1, 1, 1, 1),
            (5, 1, 1, 3, 2),
            (7, 2, 3, 5, 4),
            (2048, 30, 3, 64, 2),
            (131_072, 80, 8, 128, 2),
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
                "one-head",
                "You counted one head. Each key-value head has keys and values of its own.",
                lambda tokens, layers, kv_heads, head_width, size: (
                    2 * tokens * layers * head_width * size
                ),
            ),
            Mistake(
                "one-token",
                "You counted one token. The cache keeps all of them.",
                lambda tokens, layers, kv_heads, head_width, size: (
                    2 * layers * kv_heads * head_width * size
                ),
            ),
            Mistake(
                "one-component",
                "You counted one number for each key. It has head_width.",
                lambda tokens, layers, kv_heads, head_width, size: (
                    2 * tokens * layers * kv_heads * size
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


# Two outputs of kernels

Pair = tuple[Array, Array]


def _merge_outputs(output: Array, log_total: Array, other: Array, other_log_total: Array) -> Pair:
    new = np.logaddexp(log_total, other_log_total)
    return output * np.exp(log_total - new) + other * np.exp(other_log_total - new), new


def _weighed(shares: Callable[[Array, Array], Pair]) -> Callable[..., Pair]:
    def merge(o1: Array, l1: Array, o2: Array, l2: Array) -> Pair:
        one, other = shares(l1, l2)
        return o1 * one + o2 * other, np.logaddexp(l1, l2)

    return merge


def _shares(l1: Array, l2: Array) -> Pair:
    new = np.logaddexp(l1, l2)
    return np.exp(l1 - new), np.exp(l2 - new)


def _kept_largest(largest: Callable[[Array, Array], Array]) -> Callable[..., Pair]:
    def merge(o1: Array, l1: Array, o2: Array, l2: Array) -> Pair:
        new = largest(l1, l2)
        return o1 * np.exp(l1 - new) + o2 * np.exp(l2 - new), new

    return merge


def _directly(o1: Array, l1: Array, o2: Array, l2: Array) -> Pair:
    one, other = np.exp(l1), np.exp(l2)
    return (o1 * one + o2 * other) / (one + other), np.log(one + other)


register(
    Exercise(
        name="merge_outputs",
        chapter=8,
        difficulty="medium",
        minutes=20,
        task="Two kernels have attended to two sets of keys, neither of which is empty, for the "
        "same n queries. Each returns "
        "its output (n, d_v), already divided, and log_total (n, 1), the logarithm of the sum of "
        "exp(score). Return both as if one kernel had seen all keys.",
        returns={"output": "(n, d_v)", "log_total": "(n, 1)"},
        reference=_merge_outputs,
        cases=lambda: [
            tables([[2]], [[0]], [[5]], [[0]]),
            tables([[3, 1]], [[1]], [[5, -2]], [[0.25]]),
            tables(
                [[3, 1, 0], [1, 1, 2.5]],
                [[0.5], [-2]],
                [[0.5, -2, 1], [0, 4, 1]],
                [[2], [-3.5]],
            ),
            tables(
                [[4], [2], [1]], [[1000], [-1000], [3]], [[-3], [6], [8]], [[998], [-1002], [900]]
            ),
            (*rough(2, (3, 2)), *rough(3, (3, 1)), *rough(4, (3, 2)), *rough(5, (3, 1))),
        ],
        mistakes=(
            Mistake(
                "mean",
                "You took the mean of the outputs. The part with the larger sum counts for more.",
                _weighed(lambda l1, l2: (np.full_like(l1, 0.5), np.full_like(l2, 0.5))),
            ),
            Mistake(
                "added",
                "You added the outputs. Each was divided by its own sum, so give each its share of "
                "the whole sum.",
                _weighed(lambda l1, l2: (np.ones_like(l1), np.ones_like(l2))),
            ),
            Mistake(
                "logarithms-as-shares",
                "You weighted by the logarithms. The sums themselves are the weights.",
                lambda o1, l1, o2, l2: (
                    (o1 * l1 + o2 * l2) / np.where(l1 + l2 == 0, 1, l1 + l2),
                    np.logaddexp(l1, l2),
                ),
            ),
            Mistake(
                "overflow",
                "Right for small scores. exp overflows for large ones: use differences only.",
                _directly,
            ),
            Mistake(
                "swapped",
                "You gave each output the share of the other.",
                _weighed(lambda l1, l2: _shares(l2, l1)),
            ),
            Mistake(
                "one-fades",
                "You gave only one of the outputs its share. Both are smaller parts of the whole.",
                _weighed(lambda l1, l2: (np.ones_like(l1), _shares(l1, l2)[1])),
                also=(_weighed(lambda l1, l2: (_shares(l1, l2)[0], np.ones_like(l2))),),
            ),
            Mistake(
                "one-logarithm",
                "You returned the logarithm of one part. The new one is of both sums together.",
                lambda o1, l1, o2, l2: (_merge_outputs(o1, l1, o2, l2)[0], l1),
                also=(lambda o1, l1, o2, l2: (_merge_outputs(o1, l1, o2, l2)[0], l2),),
            ),
            Mistake(
                "no-logarithm",
                "You returned the sum of the exponentials. Return its logarithm.",
                lambda o1, l1, o2, l2: (
                    _merge_outputs(o1, l1, o2, l2)[0],
                    np.exp(l1) + np.exp(l2),
                ),
            ),
            Mistake(
                "largest",
                "You kept the larger logarithm. The sums are added, and then comes the logarithm.",
                lambda o1, l1, o2, l2: (_merge_outputs(o1, l1, o2, l2)[0], np.maximum(l1, l2)),
                also=(_kept_largest(np.maximum), _kept_largest(max)),
            ),
            Mistake(
                "larger-wins",
                "You took the output of the part with the larger sum. The other counts too, for "
                "its share.",
                lambda o1, l1, o2, l2: (np.where(l1 >= l2, o1, o2), np.logaddexp(l1, l2)),
                also=(lambda o1, l1, o2, l2: (np.where(l1 >= l2, o1, o2), np.maximum(l1, l2)),),
            ),
            Mistake(
                "shift-forgotten",
                "The output is right. In the logarithm the number is missing that you subtracted "
                "before exp.",
                lambda o1, l1, o2, l2: (
                    _merge_outputs(o1, l1, o2, l2)[0],
                    np.log1p(np.exp(-np.abs(l1 - l2))),
                ),
            ),
            Mistake(
                "logarithms-added",
                "You added the logarithms, which multiplies the sums.",
                lambda o1, l1, o2, l2: (_merge_outputs(o1, l1, o2, l2)[0], l1 + l2),
            ),
            Mistake(
                "not-shares",
                "Your two factors do not sum to 1, so a mean of equal outputs is not that output.",
                _weighed(
                    lambda l1, l2: (
                        np.exp(l1 - np.maximum(l1, l2)),
                        np.exp(l2 - np.maximum(l1, l2)),
                    )
                ),
            ),
        ),
        hints=(
            "How much of the whole sum of exponentials does each part have? Its output counts for "
            "that share.",
            "The new logarithm is log(exp(a) + exp(b)), and the share of the first part is "
            "exp(a − new).",
            "np.logaddexp(a, b) computes that logarithm without overflowing.",
        ),
        solution="""\
def merge_outputs(output, log_total, other_output, other_log_total):
    new = np.logaddexp(log_total, other_log_total)  # (n, 1)
    share, other_share = np.exp(log_total - new), np.exp(other_log_total - new)
    return output * share + other_output * other_share, new""",
    )
)


# A cache with a window and sinks


def _kept(
    keep: Callable[[Array, int, int], Array], *, keep_values: bool = True, in_front: bool = False
) -> Callable[..., Pair]:
    """Join what was there and what is new, and keep some of it."""

    def answer(
        cached_key: Array, cached_value: Array, key: Array, value: Array, window: int, sinks: int
    ) -> Pair:
        pairs = [(cached_key, key), (cached_value, value)]
        keys, values = (np.concatenate(pair[:: -1 if in_front else 1]) for pair in pairs)
        return keep(keys, window, sinks), keep(values, window, sinks) if keep_values else values

    return answer


def _cut_first(
    cached_key: Array, cached_value: Array, key: Array, value: Array, window: int, sinks: int
) -> list[Array]:
    room = window - len(key)
    return [
        np.concatenate([old[:sinks], old[sinks:][-room:], new])
        for old, new in ((cached_key, key), (cached_value, value))
    ]


def _window_and_sinks(x: Array, window: int, sinks: int) -> Array:
    return np.concatenate([x[:sinks], x[max(sinks, len(x) - window) :]])


def _unless_all_fit(keep: Callable[[Array, int, int], Array]) -> Callable[..., Pair]:
    return _kept(lambda x, window, sinks: x if len(x) <= window + sinks else keep(x, window, sinks))


def _all_new(
    cached_key: Array, cached_value: Array, key: Array, value: Array, window: int, sinks: int
) -> list[Array]:
    return [
        np.concatenate([_window_and_sinks(old, max(window - len(new), 0), sinks), new])
        for old, new in ((cached_key, key), (cached_value, value))
    ]


def _cut_alone(
    cached_key: Array, cached_value: Array, key: Array, value: Array, window: int, sinks: int
) -> list[Array]:
    return [
        np.concatenate([_window_and_sinks(old, window, sinks), new])
        for old, new in ((cached_key, key), (cached_value, value))
    ]


def _counting(first: float, *size: int) -> Array:
    return first + np.arange(float(np.prod(size))).reshape(size) / 4


def _window_case(cached: int, new: int, window: int, sinks: int, d: int = 2, d_v: int = 3) -> Case:
    return (
        _counting(0.5, cached, d),
        _counting(-9, cached, d_v),
        _counting(100, new, d),
        _counting(200, new, d_v),
        window,
        sinks,
    )


register(
    Exercise(
        name="keep_window",
        chapter=8,
        difficulty="easy",
        minutes=15,
        task="Write a cache with a window and sinks. Earlier tokens left cached_key (c, d) and "
        "cached_value (c, d_v); new tokens bring key (t, d) and value (t, d_v). Append them, and "
        "keep the first sinks positions and the newest window positions after them (window is at "
        "least 1), or all if there are no more. Return both.",
        returns={"keys": "(kept, d)", "values": "(kept, d_v)"},
        reference=_kept(_window_and_sinks),
        cases=lambda: [
            _window_case(2, 1, 1, 1, 1, 1),
            _window_case(2, 1, 2, 0),
            _window_case(1, 1, 4, 1),
            _window_case(0, 2, 3, 2),
            _window_case(3, 2, 4, 2),
            _window_case(5, 1, 3, 1),
            _window_case(2, 5, 3, 1, 4, 1),
            _window_case(6, 3, 6, 2),
            _window_case(4, 4, 7, 3),
            _window_case(0, 6, 2, 1),
            (*rough(9, (2, 3), (2, 4), (3, 3), (3, 4)), 4, 1),
        ],
        views=True,
        mistakes=(
            Mistake(
                "no-sinks",
                "You kept the newest only. The first positions stay as well: models rest on them.",
                _kept(lambda x, window, sinks: x[-window:]),
                also=(_unless_all_fit(lambda x, window, sinks: x[-window:]),),
            ),
            Mistake(
                "sinks-counted",
                "You kept window positions in all. The sinks come on top of them.",
                _kept(lambda x, window, sinks: _window_and_sinks(x, max(window - sinks, 0), sinks)),
                also=(
                    _unless_all_fit(
                        lambda x, window, sinks: np.concatenate(
                            [x[:sinks], x[len(x) - window + sinks :]]
                        )
                    ),
                    _kept(
                        lambda x, window, sinks: np.concatenate(
                            [x[:sinks], x[sinks:][-(window - sinks) :]]
                        )
                    ),
                ),
            ),
            Mistake(
                "twice",
                "Right while more than window positions are old. With fewer, a position is both "
                "first and newest, and you kept it twice.",
                _kept(lambda x, window, sinks: np.concatenate([x[:sinks], x[-window:]])),
            ),
            Mistake(
                "oldest-kept",
                "You kept the oldest positions. A new token looks at its neighbours, so the newest "
                "stay.",
                _kept(lambda x, window, sinks: x[: window + sinks]),
                also=(_unless_all_fit(lambda x, window, sinks: x[: window + sinks]),),
            ),
            Mistake(
                "nothing-dropped",
                "The cache grows without end. Keep `sinks` and `window` positions at most.",
                _kept(lambda x, window, sinks: x),
            ),
            Mistake(
                "first-whole",
                "You kept all that came to an empty cache, which may be more than fits.",
                lambda k, v, key, value, window, sinks: (
                    _kept(_window_and_sinks)(k, v, key, value, window, sinks)
                    if len(k)
                    else (key, value)
                ),
            ),
            Mistake(
                "no-room",
                "You cut the old positions to the room that the new ones leave. With no room "
                "left, [-0:] keeps all of them; join first, and cut afterwards.",
                _cut_first,
            ),
            Mistake(
                "in-front",
                "The new positions were put before the earlier ones. A cache is in the order of "
                "the tokens.",
                _kept(_window_and_sinks, in_front=True),
            ),
            Mistake(
                "one-too-few",
                "You kept one position too few: the newest `window` stay, besides the sinks.",
                _kept(lambda x, window, sinks: _window_and_sinks(x, window - 1, sinks)),
                also=(
                    _unless_all_fit(
                        lambda x, window, sinks: _window_and_sinks(x, window - 1, sinks)
                    ),
                ),
            ),
            Mistake(
                "one-too-many",
                "You kept one position too many: the newest `window` stay, besides the sinks.",
                _kept(lambda x, window, sinks: _window_and_sinks(x, window + 1, sinks)),
                also=(
                    _unless_all_fit(
                        lambda x, window, sinks: _window_and_sinks(x, window + 1, sinks)
                    ),
                ),
            ),
            Mistake(
                "one-sink-too-many",
                "You kept one position too many in front: the first `sinks` stay.",
                _kept(lambda x, window, sinks: _window_and_sinks(x, window, sinks + 1)),
                also=(
                    _unless_all_fit(
                        lambda x, window, sinks: _window_and_sinks(x, window, sinks + 1)
                    ),
                ),
            ),
            Mistake(
                "sinks-last",
                "You put the sinks behind the window. They are the oldest positions, so they come "
                "first.",
                _kept(lambda x, window, sinks: np.concatenate([x[-window:], x[:sinks]])),
                also=(
                    _unless_all_fit(
                        lambda x, window, sinks: np.concatenate([x[-window:], x[:sinks]])
                    ),
                ),
            ),
            Mistake(
                "new-whole",
                "You kept all that is new. Of the new positions too only the newest `window` stay.",
                _cut_alone,
                also=(_all_new,),
            ),
            Mistake(
                "exchanged",
                "You exchanged keys and values. Return the keys first.",
                lambda *case: _kept(_window_and_sinks)(*case)[::-1],
            ),
            Mistake(
                "new-dropped",
                "You kept what was there and left out what is new.",
                lambda k, v, key, value, window, sinks: _kept(_window_and_sinks)(
                    k, v, key[:0], value[:0], window, sinks
                ),
            ),
            Mistake(
                "old-dropped",
                "You kept what is new and left out what was there.",
                lambda k, v, key, value, window, sinks: _kept(_window_and_sinks)(
                    k[:0], v[:0], key, value, window, sinks
                ),
            ),
            Mistake(
                "keys-only",
                "You cut the keys and not the values. Each key has its value at the same place.",
                _kept(_window_and_sinks, keep_values=False),
            ),
        ),
        hints=(
            "Join first, cut afterwards: the first sinks positions, and the end of the others.",
            "Of m positions those from m - window on stay, but none of the sinks a second time.",
            "Cut the sinks off first, and take the newest of the rest with a slice that counts "
            "from the end. np.concatenate puts the two together.",
        ),
        solution="""\
def keep_window(cached_key, cached_value, key, value, window, sinks):
    kept = []
    for pair in (cached_key, key), (cached_value, value):
        joined = np.concatenate(pair)
        kept.append(np.concatenate([joined[:sinks], joined[sinks:][-window:]]))
    return tuple(kept)""",
    )
)


# Causal attention in tiles, without those that nobody may see

Tiled = tuple[Array, int]


def _tiles(n: int, block: int) -> int:
    count = -(-n // block)
    return count * (count + 1) // 2


def _causal_tiles(query: Array, key: Array, value: Array, block_size: int) -> Tiled:
    output = attention(query, key, value, causal=True).output
    return output, _tiles(len(query), block_size)


def _tile_cases() -> list[Case]:
    def case(n: int, d: int, d_v: int, block: int, size: float = 1) -> Case:
        rng = np.random.default_rng(n)
        query, key, value = (rng.integers(-4, 5, (n, w)) / 4 for w in (d, d, d_v))
        return size * query, size * key, value + 0.3, block

    return [
        (*tables([[1], [0.5]], [[2], [1]], [[1.5], [4]]), 1),
        case(4, 3, 2, 2),
        case(5, 4, 1, 2, 2),
        case(7, 2, 3, 3, 3),
        case(3, 1, 2, 8, 2),
        case(6, 4, 2, 4, 50),
        case(300, 2, 1, 128),
        (
            *tables(
                [[-1], [-16384], [-8192]],
                [[2], [2 + 2**-15], [2 - 2**-16]],
                [[1.5], [-4], [0.3]],
            ),
            2,
        ),
    ]


def _seen_as(
    sees: Callable[[Array, Array, int], Array],
    tiles: Callable[[int, int], int] = _tiles,
    scale: Callable[[int], float] = lambda d: d**-0.5,
) -> Callable[..., Tiled]:
    """Return causal attention where ``sees(i, j, block)`` says what is seen."""

    def attend(query: Array, key: Array, value: Array, block_size: int) -> Tiled:
        n = len(query)
        rows, columns = np.arange(n)[:, None], np.arange(n)
        mask = np.broadcast_to(sees(rows, columns, block_size), (n, n))
        scaled = query * (scale(key.shape[-1]) * key.shape[-1] ** 0.5)
        return attention(scaled, key, value, mask=mask).output, tiles(n, block_size)

    return attend


def _causal(i: Array, j: Array, block: int) -> Array:
    return j <= i


def _not_faded(total_fades: bool, mixed_fades: bool) -> Callable[..., Tiled]:
    """Return causal attention that merges the tiles of each query, and forgets to let one fade."""

    def attend(query: Array, key: Array, value: Array, block_size: int) -> Tiled:
        output = np.zeros((len(query), value.shape[-1]))
        for i in range(len(query)):
            total, mixed, largest = 0.0, np.zeros(value.shape[-1]), -np.inf
            for start in range(0, i + 1, block_size):
                stop = min(start + block_size, i + 1)
                scores = key[start:stop] @ query[i] / np.sqrt(key.shape[-1])
                new = max(largest, scores.max())
                e, fade = np.exp(scores - new), np.exp(largest - new)
                total = total * (fade if total_fades else 1) + e.sum()
                mixed = mixed * (fade if mixed_fades else 1) + e @ value[start:stop]
                largest = new
            output[i] = mixed / total
        return output, _tiles(len(query), block_size)

    return attend


def _edges_twice(query: Array, key: Array, value: Array, block_size: int) -> Tiled:
    j = np.arange(len(key))
    twice = np.where((j % block_size == 0) & (j > 0), np.log(2), 0.0)
    output = attention(query, key, value, causal=True, bias=twice).output
    return output, _tiles(len(query), block_size)


def _whole_blocks(query: Array, key: Array, value: Array, block_size: int) -> Tiled:
    output, blocks = attention(query, key, value, causal=True).output, len(query) // block_size
    kept = [output[i * block_size : (i + 1) * block_size] for i in range(blocks)]
    return np.concatenate(kept), blocks * (blocks + 1) // 2


def _undivided(query: Array, key: Array, value: Array, block_size: int) -> Tiled:
    scores = query @ key.T / np.sqrt(key.shape[-1])
    scores = np.where(np.tri(len(query)) > 0, scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e @ value, _tiles(len(query), block_size)


def _overflowing(query: Array, key: Array, value: Array, block_size: int) -> Tiled:
    scores = query @ key.T / np.sqrt(key.shape[-1])
    e = np.exp(scores) * np.tri(len(query))
    return e / e.sum(axis=-1, keepdims=True) @ value, _tiles(len(query), block_size)


register(
    Exercise(
        name="tiled_attention",
        chapter=8,
        difficulty="hard",
        minutes=30,
        task="Causal attention in tiles: query, key (n, d), value (n, d_v). Cut queries and keys "
        "into blocks of block_size (the last may be shorter), and merge the tiles of a block "
        "of queries. Skip the tiles that nobody may see. Return the output (n, d_v) and how many "
        "tiles were computed.",
        returns={"output": "(n, d_v)", "tiles": "()"},
        reference=_causal_tiles,
        cases=_tile_cases,
        mistakes=(
            Mistake(
                "nothing-skipped",
                "The output is right, but you computed every tile. Those whose first key comes "
                "after the last query can be skipped.",
                _seen_as(_causal, tiles=lambda n, block: (-(-n // block)) ** 2),
            ),
            Mistake(
                "one-tile-too-many",
                "The output is right, but in each row of tiles you computed one that nobody may "
                "see.",
                _seen_as(
                    _causal,
                    tiles=lambda n, block: _tiles(n, block) + -(-n // block) - 1,
                ),
            ),
            Mistake(
                "diagonal-open",
                "You skipped the tiles above the diagonal, but on it a query still sees later keys "
                "of its own block.",
                _seen_as(lambda i, j, block: j // block <= i // block),
            ),
            Mistake(
                "not-causal",
                "Every query sees all keys.",
                _seen_as(lambda i, j, block: j >= 0, tiles=lambda n, block: (-(-n // block)) ** 2),
                also=(_seen_as(lambda i, j, block: j >= 0),),
            ),
            Mistake(
                "edges-twice",
                "The first key of a block is counted in the block before, too. A slice ends before "
                "its second number.",
                _edges_twice,
            ),
            Mistake(
                "rest-left-out",
                "You left out the queries at the end that fill no whole block. The last may be "
                "shorter.",
                _whole_blocks,
            ),
            Mistake(
                "not-itself",
                "A query does not see its own key, which comes no later than itself.",
                _seen_as(lambda i, j, block: j < i),
            ),
            Mistake(
                "not-faded",
                "What came before stays as it was when a larger score turns up. It must fade by "
                "exp(old largest - new largest).",
                _not_faded(False, False),
            ),
            Mistake(
                "total-not-faded",
                "You let the mixed values fade when a larger score turns up, but not the total.",
                _not_faded(False, True),
            ),
            Mistake(
                "mixed-not-faded",
                "You let the total fade when a larger score turns up, but not the mixed values.",
                _not_faded(True, False),
            ),
            Mistake(
                "not-divided",
                "You did not divide by the total at the end.",
                _undivided,
            ),
            Mistake(
                "no-scale",
                "The scores are not divided by √d.",
                _seen_as(_causal, scale=lambda d: 1.0),
            ),
            Mistake(
                "scale-d",
                "You divided by d. It is the square root of d.",
                _seen_as(_causal, scale=lambda d: 1 / d),
            ),
            Mistake(
                "no-max",
                "Right for small scores. exp overflows for large ones: that is why the largest "
                "score is kept.",
                _overflowing,
            ),
        ),
        hints=(
            "Two loops: over the blocks of queries, and inside over the blocks of keys up to the "
            "same one. Inside is one step of merging.",
            "Only on the diagonal does a tile need a mask: key j is hidden from query i if j > i. "
            "Hidden scores are −∞, whose exponential is 0.",
            "For each block of queries begin with np.full((n, 1), -np.inf) and two sums of 0. "
            "range(0, n, block_size) gives the beginnings.",
        ),
        solution="""\
def my_tiled_attention(query, key, value, block_size):
    outputs, tiles, places = [], 0, np.arange(len(key))
    for first in range(0, len(query), block_size):
        q, rows = query[first : first + block_size], places[first : first + block_size, None]
        n, d_v = len(q), value.shape[-1]
        largest, total, mixed = np.full((n, 1), -np.inf), np.zeros((n, 1)), np.zeros((n, d_v))
        for start in range(0, first + 1, block_size):
            block = slice(start, start + block_size)
            scores = q @ key[block].T / np.sqrt(key.shape[-1])
            scores = np.where(places[block] <= rows, scores, -np.inf)  # (n, block)
            new = np.maximum(largest, scores.max(axis=-1, keepdims=True))
            e, fade = np.exp(scores - new), np.exp(largest - new)
            total = total * fade + e.sum(axis=-1, keepdims=True)
            mixed = mixed * fade + e @ value[block]
            largest, tiles = new, tiles + 1
        outputs.append(mixed / total)
    return np.concatenate(outputs), tiles""",
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


def _one_side(*, query_too: bool) -> Callable[..., Array]:
    def attend(query: Array, key: Array, value: Array) -> Array:
        q, k = (_features(query), key) if query_too else (query, _features(key))
        weights = q @ k.T * np.tri(len(query))
        with np.errstate(all="ignore"):
            return weights @ value / weights.sum(axis=-1, keepdims=True)

    return attend


def _linear_cases() -> list[Case]:
    rng = np.random.default_rng(8)
    cases: list[Case] = [tables([[1], [0.5]], [[-1], [2]], [[3], [0.5]])]
    for n, d, d_v, size in (3, 2, 1, 1.0), (1, 3, 2, 0.5), (5, 2, 4, 1.5), (6, 4, 3, 3.0):
        shapes = (n, d), (n, d), (n, d_v)
        query, key, value = (size * rng.integers(-4, 5, shape) / 4 for shape in shapes)
        cases.append((query, key, value + 0.2))
    cases.append(tables([[800, -1], [-2, 3]], [[1, -2], [900, 0.5]], [[3, -1], [0.5, 2]]))
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
                "keys-only",
                "You took the features of the keys, but not of the queries.",
                _one_side(query_too=False),
            ),
            Mistake(
                "queries-only",
                "You took the features of the queries, but not of the keys.",
                _one_side(query_too=True),
            ),
            Mistake(
                "no-features",
                "You used queries and keys as they are, so weights may be negative. Take the "
                "features of both.",
                _recurrent_slip(features=lambda x: x),
            ),
            Mistake(
                "exp",
                "You used exp for all numbers. Where x is positive the features are x + 1.",
                _recurrent_slip(features=np.exp),
            ),
            Mistake(
                "relu",
                "You took 0 for the features of all negative numbers, so nothing may be left to "
                "divide by. They are exp(x).",
                _recurrent_slip(features=lambda x: np.maximum(x, 0)),
                also=(_recurrent_slip(features=lambda x: np.where(x > 0, x + 1, 0)),),
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
