"""Chapter 5: several heads."""

from collections.abc import Callable
from typing import Any

import numpy as np

from d2lmini import heads as multihead
from d2lmini._arrays import Array, namespace
from d2lmini.attention import attention
from d2lmini.exercises.definition import Case, Exercise, Mistake, register
from d2lmini.exercises.slips import naive_softmax, rough, slip, tables
from d2lmini.exercises.torch_modules import call_with_the_weights_of


def _counting(*size: int) -> Array:
    return np.arange(float(np.prod(size))).reshape(size)


# Split one product into queries, keys and values


def _fused(x: Array, num_heads: int) -> Array:
    return np.asarray(x.reshape(len(x), 3, num_heads, -1).transpose(1, 2, 0, 3))


register(
    Exercise(
        name="split_heads",
        chapter=5,
        difficulty="easy",
        minutes=10,
        task="Cut one product into the queries, keys and values of all heads. Each row of x (n, "
        "3·h·d) holds the queries of num_heads = h heads one after the other, d components each, "
        "then the keys in the same order, then the values. Return (3, h, n, d).",
        returns={"heads": "(query key value, heads, tokens, d)"},
        reference=_fused,
        cases=lambda: [
            (_counting(1, 12), 2),
            (_counting(2, 6), 2),
            (_counting(4, 12), 2),
            (_counting(2, 36), 4),
            (_counting(5, 18) / 4 - 2.3, 3),
            (_counting(4, 6) / 8 - 0.6, 1),
            (*rough(1, (4, 18)), 2),
        ],
        views=True,
        mistakes=(
            Mistake(
                "no-transpose",
                "You reshaped to (n, 3, heads, d) and stopped: the tokens must move behind the "
                "heads.",
                lambda x, num_heads: x.reshape(len(x), 3, num_heads, -1),
            ),
            Mistake(
                "reshape-only",
                "The shape is right and the contents are mixed: a reshape straight to (3, heads, "
                "n, d) cuts across tokens. Cut the last axis first, then move the tokens.",
                lambda x, num_heads: x.reshape(3, num_heads, len(x), -1),
            ),
            Mistake(
                "interleaved",
                "You gave each head every h-th component. A head owns a block of neighbouring "
                "components.",
                lambda x, num_heads: x.reshape(len(x), 3, -1, num_heads).transpose(1, 3, 0, 2),
            ),
            Mistake(
                "head-by-head",
                "You took the row to hold one head after the other, each with its query, key and "
                "value. Here all queries come first, then all keys, then all values.",
                lambda x, num_heads: x.reshape(len(x), num_heads, 3, -1).transpose(2, 1, 0, 3),
            ),
            Mistake(
                "too-far",
                "You swapped tokens and components as well: a vector stays the last axis.",
                lambda x, num_heads: _fused(x, num_heads).swapaxes(-1, -2),
            ),
        ),
        hints=(
            "Write down one row for two heads of two components: q₁ q₁ q₂ q₂ k₁ k₁ …. What are its "
            "twelve numbers cut into first?",
            "The last axis becomes three, from the largest block to the smallest. Then the axis of "
            "the tokens has to move to its place.",
            "Test it on np.arange: the row of token 0 is 0, 1, 2, …, so you can see where each "
            "number has gone.",
        ),
        solution="""\
def my_split_heads(x, num_heads):
    parts = x.reshape(len(x), 3, num_heads, -1)  # (n, 3, h, d)
    return parts.transpose(1, 2, 0, 3)""",
    )
)


# Keep some of the heads


def _kept(w_q: Array, w_o: Array, num_heads: int, kept: list[int]) -> tuple[Array, Array]:
    columns = np.split(w_q, num_heads, axis=1)
    rows = np.split(w_o, num_heads)
    return np.hstack([columns[i] for i in kept]), np.vstack([rows[i] for i in kept])


def _every_hth(w_q: Array, w_o: Array, num_heads: int, kept: list[int]) -> tuple[Array, Array]:
    columns = np.hstack([w_q[:, i::num_heads] for i in kept])
    return columns, np.vstack([w_o[i::num_heads] for i in kept])


register(
    Exercise(
        name="keep_heads",
        chapter=5,
        difficulty="easy",
        minutes=10,
        task="Make a smaller layer out of some of its heads. w_q (d_model, h·d_k) and w_o (h·d_v, "
        "d_model) belong to num_heads = h heads, and kept is a list of k of them, counted from 0, "
        "in the order of the new layer. Return its w_q (d_model, k·d_k) and w_o "
        "(k·d_v, d_model).",
        returns={"w_q": "(d_model, k·d_k)", "w_o": "(k·d_v, d_model)"},
        reference=_kept,
        cases=lambda: [
            (_counting(1, 2), _counting(2, 1) + 5, 2, [1]),
            (_counting(2, 4), _counting(6, 2), 2, [0]),
            (_counting(3, 6), -_counting(9, 3), 3, [2, 0]),
            (_counting(2, 8) / 4 - 1.3, _counting(4, 2) / 8 - 0.6, 4, [3, 1, 2]),
            (*rough(5, (4, 9), (6, 4)), 3, [2, 1]),
        ],
        views=True,
        mistakes=(
            Mistake(
                "interleaved",
                "You gave each head every h-th column and row. A head owns a block of neighbours.",
                _every_hth,
            ),
            Mistake(
                "order",
                "You kept the right heads, in the old order. The new layer has the order of kept.",
                lambda w_q, w_o, num_heads, kept: _kept(w_q, w_o, num_heads, sorted(kept)),
            ),
            Mistake(
                "dropped",
                "You dropped the heads that were to be kept.",
                lambda w_q, w_o, num_heads, kept: _kept(
                    w_q, w_o, num_heads, [i for i in range(num_heads) if i not in kept]
                ),
            ),
            Mistake(
                "w-o-whole",
                "You cut w_q and left w_o as it was. Each head also owns rows of w_o.",
                lambda w_q, w_o, num_heads, kept: (_kept(w_q, w_o, num_heads, kept)[0], w_o.copy()),
            ),
            Mistake(
                "first-heads",
                "You kept the first heads. Which ones are kept is what the list says.",
                lambda w_q, w_o, num_heads, kept: _kept(
                    w_q, w_o, num_heads, list(range(len(kept)))
                ),
            ),
        ),
        hints=(
            "Which columns of w_q make the queries of head 2, and which rows of w_o does its "
            "answer meet?",
            "Head i, counted from 0, owns the columns i·d_k to (i + 1)·d_k of w_q and the rows "
            "i·d_v to (i + 1)·d_v of w_o. The two widths may differ.",
            "If the heads have an axis of their own, a list can pick from it, in any order. Then "
            "the axis has to go again.",
        ),
        solution="""\
def keep_heads(w_q, w_o, num_heads, kept):
    d_model = len(w_q)
    columns = w_q.reshape(d_model, num_heads, -1)[:, kept]  # (d_model, k, d_k)
    rows = w_o.reshape(num_heads, -1, d_model)[kept]  # (k, d_v, d_model)
    return columns.reshape(d_model, -1), rows.reshape(-1, d_model)""",
    )
)


# Grouped heads

register(
    Exercise(
        name="share_heads",
        chapter=5,
        difficulty="easy",
        minutes=10,
        task="Grouped heads: x (batch, g, m, d) holds the keys of g key-value heads. Give each of "
        "num_heads = h query heads its keys: heads 0 to h/g − 1 share the first, the next h/g the "
        "second, and so on. Return (batch, h, m, d).",
        returns={"keys": "(batch, heads, keys, d)"},
        reference=lambda x, num_heads: multihead._share_heads(namespace(x=x), x, num_heads),
        cases=lambda: [
            (_counting(1, 1, 1, 2), 2),
            (_counting(1, 2, 1, 1), 4),
            (_counting(2, 2, 3, 2), 6),
            (_counting(1, 3, 2, 1), 3),
            (*rough(3, (3, 2, 1, 3)), 4),
        ],
        views=True,
        mistakes=(
            Mistake(
                "in-turn",
                "The key-value heads take turns: 0, 1, 0, 1. Neighbouring query heads share one: "
                "0, 0, 1, 1.",
                lambda x, num_heads: np.tile(x, (1, num_heads // x.shape[1], 1, 1)),
            ),
            Mistake(
                "tokens-repeated",
                "You repeated the keys of each head. Repeat the heads, axis 1.",
                lambda x, num_heads: x.repeat(num_heads // x.shape[1], axis=2),
            ),
            Mistake(
                "too-often",
                "You repeated each key-value head h times. h is the number of query heads; there "
                "are h/g in each group.",
                lambda x, num_heads: x.repeat(num_heads, axis=1),
            ),
            Mistake(
                "first-only",
                "All query heads got the first key-value head. That is multi-query attention, and "
                "right for g = 1 only.",
                lambda x, num_heads: x[:, :1].repeat(num_heads, axis=1),
            ),
        ),
        hints=(
            "Four query heads and two key-value heads: which of the two does query head 1 use, and "
            "which query head 2?",
            "Write under the query heads 0 to 3 which key-value head each uses: 0, 0, … How many "
            "stand side by side, for any h and g?",
            "np.repeat and np.tile differ in exactly this order; try both on [0, 1].",
        ),
        solution="""\
def my_share_heads(x, num_heads):
    group = num_heads // x.shape[1]
    return np.repeat(x, group, axis=1)""",
    )
)


# One step of decoding


def _decode_step(
    query: Array, key: Array, value: Array, cached_key: Array, cached_value: Array
) -> tuple[Array, Array, Array]:
    keys = np.concatenate([cached_key, key])
    values = np.concatenate([cached_value, value])
    return attention(query, keys, values).output, keys, values


def _decode_step_cases() -> list[Case]:
    return [
        tables([[1]], [[2]], [[10]], [[1]], [[20]]),
        tables([[1, 2]], [[0, 1]], [[5, 0, 1]], [[1, 1], [2, 0]], [[1, 2, 0], [0, 3, 3]]),
        tables(
            [[3, 0, 1, 2]],
            [[1, 0, 0, 0]],
            [[2, 4]],
            [[0, 1, 0, 1], [5, 0, 0, 1], [0, 0, 2, 0]],
            [[1, 0], [0, 1], [3, 3]],
        ),
        tables([[1000, 0]], [[2, 1]], [[1]], [[-1, 0], [2, 0]], [[4], [7]]),
        tables([[50, 0]], [[-30, 1]], [[-3]], [[30, 0], [29.99, 2]], [[1], [2.5]]),
        rough(4, (1, 3), (1, 3), (1, 2), (4, 3), (4, 2)),
        rough(8, (1, 3), (1, 3), (1, 2), (2, 3), (2, 2)),
        tables([[50]], [[-30]], [[2]], [[25], [-28]], [[1.5], [-4]]),
    ]


def _decode_slip(scores: Callable[[Array, Array], Array]) -> Callable[[Any], Callable[..., Any]]:
    def make(softmax: Any) -> Callable[..., Any]:
        def step(
            query: Array, key: Array, value: Array, cached_key: Array, cached_value: Array
        ) -> tuple[Array, Array, Array]:
            keys = np.concatenate([cached_key, key])
            values = np.concatenate([cached_value, value])
            return softmax(scores(query, keys)) @ values, keys, values

        return step

    return make


register(
    Exercise(
        name="decode_step",
        chapter=5,
        difficulty="medium",
        minutes=20,
        task="One step of decoding with a cache. A new token brings query (1, d), key (1, d) and "
        "value (1, d_v); the earlier tokens left cached_key (m, d) and cached_value (m, d_v). The "
        "new token sees them and itself. Return its output (1, d_v) and both grown caches, "
        "(m + 1, d) and (m + 1, d_v).",
        returns={"output": "(1, d_v)", "keys": "(m + 1, d)", "values": "(m + 1, d_v)"},
        reference=_decode_step,
        cases=_decode_step_cases,
        mistakes=(
            slip(
                "itself-not-seen",
                "The new token does not see itself: add its key and value to the cache before you "
                "attend.",
                lambda softmax: (
                    lambda query, key, value, cached_key, cached_value: (
                        softmax(query @ cached_key.T / np.sqrt(key.shape[-1])) @ cached_value,
                        np.concatenate([cached_key, key]),
                        np.concatenate([cached_value, value]),
                    )
                ),
            ),
            Mistake(
                "cache-not-seen",
                "The new token sees only itself. The earlier tokens are in the cache.",
                lambda query, key, value, cached_key, cached_value: (
                    value + 0,
                    np.concatenate([cached_key, key]),
                    np.concatenate([cached_value, value]),
                ),
            ),
            Mistake(
                "in-front",
                "You put the new key and value before the earlier ones. The output does not care, "
                "but a cache is in the order of the tokens.",
                lambda query, key, value, cached_key, cached_value: (
                    _decode_step(query, key, value, cached_key, cached_value)[0],
                    np.concatenate([key, cached_key]),
                    np.concatenate([value, cached_value]),
                ),
            ),
            slip(
                "no-scale",
                "The scores are not divided by √d.",
                _decode_slip(lambda query, keys: query @ keys.T),
            ),
            slip(
                "scale-keys",
                "You divided by the root of the number of keys. The d in √d is the length of one "
                "key.",
                _decode_slip(lambda query, keys: query @ keys.T / np.sqrt(len(keys))),
            ),
            slip(
                "scale-cache",
                "You divided by the root of the number of cached keys. The d in √d is the length "
                "of one key.",
                _decode_slip(lambda query, keys: query @ keys.T / np.sqrt(len(keys) - 1)),
            ),
            Mistake(
                "equal-weights",
                "All values count the same in your output. Each counts for the weight of its key.",
                lambda query, key, value, cached_key, cached_value: (
                    np.concatenate([cached_value, value]).mean(axis=0, keepdims=True),
                    np.concatenate([cached_key, key]),
                    np.concatenate([cached_value, value]),
                ),
            ),
            Mistake(
                "query-cached",
                "You put the query into the cache. Later tokens look for keys, so the key stays.",
                lambda query, key, value, cached_key, cached_value: _decode_step(
                    query, query, value, cached_key, cached_value
                ),
            ),
            Mistake(
                "no-max",
                "Right for small scores. exp overflows for large ones: subtract the largest first.",
                _decode_slip(lambda query, keys: query @ keys.T / np.sqrt(keys.shape[-1]))(
                    naive_softmax
                ),
            ),
        ),
        hints=(
            "First let the caches grow, then attend as always. Why is no causal mask needed?",
            "With K = [cached keys; key] and V = [cached values; value], the output is "
            "softmax(q Kᵀ / √d) V.",
            "np.concatenate joins a list of arrays along axis 0 and makes a new array, so that the "
            "old caches stay as they are.",
        ),
        solution="""\
def decode_step(query, key, value, cached_key, cached_value):
    keys = np.concatenate([cached_key, key])  # (m + 1, d)
    values = np.concatenate([cached_value, value])  # (m + 1, d_v)
    scores = query @ keys.T / np.sqrt(keys.shape[-1])
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ values, keys, values""",
    )
)


# Heads that share keys and values


def _multi_head(x: Array, w_q: Array, w_k: Array, w_v: Array, w_o: Array, num_heads: int) -> Array:
    return multihead.multi_head_attention(x, x, x, w_q, w_k, w_v, w_o, num_heads=num_heads).output


def _grouped(
    x: Array, w_q: Array, w_k: Array, w_v: Array, w_o: Array, num_heads: int, num_kv_heads: int
) -> Array:
    return multihead.multi_head_attention(
        x, x, x, w_q, w_k, w_v, w_o, num_heads=num_heads, num_kv_heads=num_kv_heads
    ).output


def _share(x: Array, num_heads: int) -> Array:
    return np.repeat(x, num_heads // len(x), axis=0)


def _split(x: Array, num_heads: int) -> Array:
    return x.reshape(len(x), num_heads, -1).swapaxes(0, 1)  # (h, n, d)


def _merge(x: Array) -> Array:
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


def _grouped_slip(
    share: Callable[[Array, int], Array] = _share,
    split: Callable[[Array, int], Array] = _split,
    merge: Callable[[Array], Array] = _merge,
    root_of: Callable[[Array, int], int] = lambda w_q, num_heads: w_q.shape[-1] // num_heads,
    axis: int = -1,
    mix: Callable[[Array, Array], Array] = lambda merged, w_o: merged @ w_o,
    model: bool = False,
) -> Callable[[Any], Callable[..., Array]]:
    """Return what `slip` wants: grouped heads with one step replaced."""

    def make(softmax: Any) -> Callable[..., Array]:
        def attend(
            x: Array,
            w_q: Array,
            w_k: Array,
            w_v: Array,
            w_o: Array,
            num_heads: int,
            num_kv_heads: int,
        ) -> Array:
            query = split(x @ w_q, num_heads)
            key, value = (share(split(x @ w, num_kv_heads), num_heads) for w in (w_k, w_v))
            root = len(w_q) if model else root_of(w_q, num_heads)
            scores = query @ key.swapaxes(-1, -2) / np.sqrt(root)
            return mix(merge(softmax(scores, axis=axis) @ value), w_o)

        return attend

    return make


def _multi_head_cases() -> list[Case]:
    def case(n: int, d_model: int, d_k: int, d_v: int, heads: int, size: float = 1) -> Case:
        rng = np.random.default_rng(n)
        sizes = (n, d_model), *[(d_model, heads * d_k)] * 2, (d_model, heads * d_v)
        x, w_q, w_k, w_v = (rng.integers(-1, 2, s).astype(float) for s in sizes)
        w_o = rng.integers(-1, 2, (heads * d_v, d_model)).astype(float)
        return size * x, w_q, w_k, w_v, w_o, heads

    return [
        case(2, 2, 2, 1, 2),
        case(3, 5, 1, 2, 2, 0.7),
        case(4, 2, 3, 1, 3, 0.35),
        case(1, 3, 2, 4, 1, 0.3),
        case(5, 4, 2, 3, 2, 40),
        (*rough(5, (17, 1), (1, 4), (1, 4), (1, 2), (2, 1)), 2),
        (*rough(6, (3, 4), (4, 6), (4, 6), (4, 4), (4, 4)), 2),
    ]


def _grouped_cases() -> list[Case]:
    def case(
        n: int, d_model: int, d_k: int, d_v: int, heads: int, shared: int, size: float = 1
    ) -> Case:
        rng = np.random.default_rng(n)
        key_sizes = (d_model, shared * d_k), (d_model, shared * d_v)
        sizes = (n, d_model), (d_model, heads * d_k), *key_sizes
        x, w_q, w_k, w_v = (rng.integers(-1, 2, s).astype(float) for s in sizes)
        w_o = rng.integers(-1, 2, (heads * d_v, d_model)).astype(float)
        return size * x, w_q, w_k, w_v, w_o, heads, shared

    return [
        case(2, 2, 2, 1, 2, 1),
        case(3, 5, 1, 2, 4, 2, 0.7),
        case(4, 2, 3, 1, 3, 1, 0.35),
        case(1, 3, 2, 4, 2, 2, 0.3),
        case(5, 4, 2, 3, 4, 2, 40),
        (*rough(5, (17, 1), (1, 4), (1, 2), (1, 1), (2, 1)), 2, 1),
        (*rough(6, (3, 4), (4, 12), (4, 6), (4, 4), (8, 4)), 4, 2),
    ]


register(
    Exercise(
        name="grouped_attention",
        chapter=5,
        difficulty="hard",
        minutes=30,
        task="Self-attention of x (n, d_model) with num_heads = h query heads that share "
        "num_kv_heads = g key-value heads: the first h/g query heads use the first, and so on. "
        "w_q is (d_model, h·d_k), w_k (d_model, g·d_k), w_v (d_model, g·d_v), w_o (h·d_v, "
        "d_model). Return (n, d_model).",
        returns={"output": "(tokens, d_model)"},
        reference=_grouped,
        cases=_grouped_cases,
        mistakes=(
            slip(
                "scale-all-heads",
                "You divided by the root of the width of all heads together. Each head compares "
                "vectors of length d_k.",
                _grouped_slip(root_of=lambda w_q, num_heads: w_q.shape[-1]),
            ),
            slip(
                "scale-model",
                "You divided by √d_model. What is compared has d_k components, one head's part of "
                "the projection.",
                _grouped_slip(model=True),
            ),
            slip(
                "both-reshapes",
                "Split and merge are reshapes without a swap of axes. Shape and causality look "
                "right, but each head holds only some of the tokens.",
                _grouped_slip(
                    split=lambda x, num_heads: x.reshape(num_heads, len(x), -1),
                    merge=lambda x: x.reshape(x.shape[1], -1),
                ),
            ),
            slip(
                "taking-turns",
                "The key-value heads take turns: 0, 1, 0, 1. Neighbouring query heads share one: "
                "0, 0, 1, 1.",
                _grouped_slip(share=lambda x, num_heads: np.tile(x, (num_heads // len(x), 1, 1))),
            ),
            slip(
                "first-for-all",
                "You gave all query heads the first key-value head. Each group has one of its own.",
                _grouped_slip(share=lambda x, num_heads: x[:1]),
            ),
            slip(
                "no-scale",
                "The scores are not divided by √d_k.",
                _grouped_slip(root_of=lambda w_q, num_heads: 1),
            ),
            slip(
                "no-w_o",
                "The heads were put side by side and left there: w_o, which mixes them, is "
                "missing.",
                _grouped_slip(mix=lambda merged, w_o: merged),
            ),
            slip(
                "reshape-only",
                "Splitting by a reshape straight to (heads, n, d) cuts across tokens. Cut the last "
                "axis first, then swap two axes.",
                _grouped_slip(split=lambda x, num_heads: x.reshape(num_heads, len(x), -1)),
            ),
            slip(
                "not-transposed-back",
                "The heads were merged by a reshape alone. Move the tokens back to the front "
                "first.",
                _grouped_slip(merge=lambda x: x.reshape(x.shape[1], -1)),
            ),
            slip(
                "interleaved",
                "Each head took every h-th column of the projections. A head owns a block of "
                "neighbouring columns.",
                _grouped_slip(
                    split=lambda x, num_heads: x.reshape(len(x), -1, num_heads).transpose(2, 0, 1)
                ),
            ),
            slip(
                "axis",
                "The softmax runs over the queries. It must run over the keys, the last axis.",
                _grouped_slip(axis=-2),
            ),
            slip(
                "softmax-over-heads",
                "The softmax runs over the heads. It must run over the keys, the last axis.",
                _grouped_slip(axis=0),
            ),
            Mistake(
                "no-max",
                "Right for small scores. exp overflows for large ones: subtract the largest of "
                "each row first.",
                _grouped_slip()(naive_softmax),
            ),
        ),
        hints=(
            "How many heads do the queries have, and how many the keys? What has to happen before "
            "they can be compared?",
            "headᵢ = softmax(Qᵢ Kⱼᵀ / √d_k) Vⱼ with j = i // (h / g), counted from 0, and the "
            "output is [head₁, …, head_h] W_O.",
            "Split queries by h, keys and values by g. In (heads, n, d) np.repeat along axis 0 "
            "gives neighbours the same head.",
        ),
        solution="""\
def grouped_attention(x, w_q, w_k, w_v, w_o, num_heads, num_kv_heads):
    def split(x, heads):  # (n, heads·d) -> (heads, n, d)
        return x.reshape(len(x), heads, -1).swapaxes(0, 1)

    shared = num_heads // num_kv_heads
    query = split(x @ w_q, num_heads)  # (h, n, d_k)
    key = np.repeat(split(x @ w_k, num_kv_heads), shared, axis=0)  # (h, n, d_k)
    value = np.repeat(split(x @ w_v, num_kv_heads), shared, axis=0)  # (h, n, d_v)
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(key.shape[-1])  # (h, n, n)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    heads = e / e.sum(axis=-1, keepdims=True) @ value  # (h, n, d_v)
    return heads.swapaxes(0, 1).reshape(len(x), -1) @ w_o""",
    )
)


# What a head is worth


def _importance(
    removed: Callable[[Array, int, int], Array],
) -> Callable[..., Array]:
    """Measure the moves of the output when ``removed`` has changed the rows of w_o."""

    def moves(x: Array, w_q: Array, w_k: Array, w_v: Array, w_o: Array, num_heads: int) -> Array:
        whole = _multi_head(x, w_q, w_k, w_v, w_o, num_heads)
        found = []
        for i in range(num_heads):
            without = _multi_head(x, w_q, w_k, w_v, removed(w_o, i, num_heads), num_heads)
            found.append(np.sqrt(((whole - without) ** 2).sum(axis=-1)).mean())
        return np.array(found)

    return moves


def _block(w_o: Array, i: int, num_heads: int) -> Array:
    rows = np.arange(len(w_o)) // (len(w_o) // num_heads)
    return np.where((rows == i)[:, None], 0.0, w_o)


register(
    Exercise(
        name="head_importance",
        chapter=5,
        difficulty="medium",
        minutes=20,
        task="How much does each head matter? Take the heads out one at a time, by zeros in the "
        "rows of w_o that belong to the head, and measure how far the output (n, d_model) of "
        "self-attention moves: the mean over the tokens of the length of the move. Use "
        "multi_head_attention of d2lmini. Return (num_heads,).",
        returns={"moves": "(heads,)"},
        reference=_importance(_block),
        cases=_multi_head_cases,
        mistakes=(
            Mistake(
                "every-hth-row",
                "You took every h-th row of w_o. The rows of a head are neighbours: joined, the "
                "heads stand one behind the other.",
                _importance(
                    lambda w_o, i, num_heads: np.where(
                        (np.arange(len(w_o)) % num_heads == i)[:, None], 0.0, w_o
                    )
                ),
            ),
            Mistake(
                "columns",
                "You put zeros into columns of w_o. A column makes one component of the output "
                "from all heads; a head owns rows.",
                _importance(
                    lambda w_o, i, num_heads: np.where(
                        np.arange(w_o.shape[1]) // max(w_o.shape[1] // num_heads, 1) == i, 0.0, w_o
                    )
                ),
            ),
            Mistake(
                "one-row",
                "You took out row i of w_o. A head owns d_v rows.",
                _importance(
                    lambda w_o, i, num_heads: np.where(
                        (np.arange(len(w_o)) == i)[:, None], 0.0, w_o
                    )
                ),
            ),
            Mistake(
                "only-this-one",
                "You kept this head and took out all the others.",
                _importance(lambda w_o, i, num_heads: w_o - _block(w_o, i, num_heads)),
            ),
            Mistake(
                "squared",
                "These are means of squares. The length of a move is the root of the sum of its "
                "squares.",
                lambda x, w_q, w_k, w_v, w_o, num_heads: np.array(
                    [
                        (
                            _multi_head(
                                x, w_q, w_k, w_v, w_o - _block(w_o, i, num_heads), num_heads
                            )
                            ** 2
                        )
                        .sum(axis=-1)
                        .mean()
                        for i in range(num_heads)
                    ]
                ),
            ),
            Mistake(
                "whole-matrix",
                "You took one length for the moves of all tokens together. Measure each token's, "
                "then take the mean.",
                lambda x, w_q, w_k, w_v, w_o, num_heads: np.array(
                    [
                        np.linalg.norm(
                            _multi_head(
                                x, w_q, w_k, w_v, w_o - _block(w_o, i, num_heads), num_heads
                            )
                        )
                        for i in range(num_heads)
                    ]
                ),
            ),
        ),
        hints=(
            "The output is a sum over heads. What is missing from it when the rows of one head "
            "are zero?",
            "Head i owns the rows i·d_v to (i + 1)·d_v of w_o, where d_v = len(w_o) / h. Move i "
            "is the mean over the tokens of ‖o − o without head i‖.",
            "Copy w_o before you put zeros into it. np.linalg.norm with axis=-1 gives a length "
            "for each token.",
        ),
        solution="""\
def head_importance(x, w_q, w_k, w_v, w_o, num_heads):
    from d2lmini import multi_head_attention

    def output(w_o):
        return multi_head_attention(x, x, x, w_q, w_k, w_v, w_o, num_heads=num_heads).output

    d_v = len(w_o) // num_heads
    moves = []
    for i in range(num_heads):
        without = w_o.copy()
        without[i * d_v : (i + 1) * d_v] = 0
        moves.append(np.linalg.norm(output(w_o) - output(without), axis=-1).mean())
    return np.array(moves)""",
    )
)


# As a module


def _many_heads(
    attend: Callable[..., Any],
    *,
    bias: bool = False,
    split: str = "",
    merge: str = "",
    mix: bool = True,
) -> Callable[[int, int], Any]:
    """Return what builds a module of several heads that does `attend(query, key, value)`."""

    def build(d_model: int, num_heads: int) -> Any:
        from d2lmini._torch import Tensor, nn

        class Heads(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.w_q = nn.Linear(d_model, d_model, bias=bias)
                self.w_k = nn.Linear(d_model, d_model, bias=bias)
                self.w_v = nn.Linear(d_model, d_model, bias=bias)
                self.w_o = nn.Linear(d_model, d_model, bias=bias)

            def forward(self, x: Tensor) -> Tensor:
                batch, n, _ = x.shape
                query, key, value = (
                    p.reshape(batch, num_heads, n, -1)
                    if split == "reshape only"
                    else multihead.split_heads(p, num_heads)
                    for p in (self.w_q(x), self.w_k(x), self.w_v(x))
                )
                heads = attend(query, key, value)
                merged: Tensor = (
                    heads.reshape(batch, n, -1)
                    if merge == "reshape only"
                    else multihead.merge_heads(heads)
                )
                return self.w_o(merged) if mix else merged

        return Heads()

    return build


def _right(query: Any, key: Any, value: Any) -> Any:
    return attention(query, key, value, causal=True).output


def _scores(query: Any, key: Any) -> Any:
    return query @ key.mT / key.shape[-1] ** 0.5


def _hidden(scores: Any, diagonal: int = 0, *, upper: bool = False) -> Any:
    """Hide what lies above a diagonal, or, by mistake, what lies below it."""
    ones = scores.detach().new_ones(scores.shape[-2:])
    seen = ones.triu(diagonal) if upper else ones.tril(diagonal)
    return scores.masked_fill(seen == 0, float("-inf"))


def _many_heads_cases() -> list[Case]:
    def x(*size: int) -> Array:
        return np.random.default_rng(9).integers(-2, 3, size).astype(np.float32)

    return [
        (2, 2, x(1, 2, 2)),
        (4, 2, 0.7 * x(2, 3, 4)),
        (6, 3, 0.4 * x(4, 1, 6)),
        (3, 1, 0.3 * x(1, 4, 3)),
        (6, 3, 20 * x(1, 5, 6)),
        (2, 1, 100 * np.array([[[4, -1], [2, 3]], [[-3, -3], [3, 0]]], dtype=np.float32)),
        (4, 2, rough(7, (2, 2, 4))[0].astype(np.float32)),
    ]


_reference_heads = _many_heads(_right)

register(
    Exercise(
        name="CausalHeads",
        chapter=5,
        difficulty="hard",
        minutes=30,
        task="Causal multi-head self-attention as a module: no token sees a later one. Its "
        "parameters are four nn.Linear without bias from d_model to d_model, called w_q, w_k, "
        "w_v and w_o. forward(x) takes (batch, n, d_model) and returns the same shape.",
        returns={"output": "(batch, tokens, d_model)"},
        reference=_reference_heads,
        cases=_many_heads_cases,
        call=call_with_the_weights_of(_reference_heads),
        needs_torch=True,
        mistakes=(
            Mistake(
                "bias",
                "The layers have biases. nn.Linear adds one unless it is told not to.",
                _many_heads(_right, bias=True),
            ),
            Mistake(
                "not-causal",
                "No mask is used: each token sees the later ones too.",
                _many_heads(lambda query, key, value: attention(query, key, value).output),
            ),
            Mistake(
                "transposed",
                "The triangle is on the wrong side: each token sees itself and the later ones. "
                "Rows are queries, so what a query may see lies on and below the diagonal.",
                _many_heads(
                    lambda query, key, value: (
                        _hidden(_scores(query, key), upper=True).softmax(-1) @ value
                    )
                ),
            ),
            Mistake(
                "off-by-one",
                "Off by one diagonal: a token may also see itself.",
                _many_heads(
                    lambda query, key, value: _hidden(_scores(query, key), -1).softmax(-1) @ value
                ),
                also=(
                    _many_heads(
                        lambda query, key, value: (
                            _hidden(_scores(query, key), -1).softmax(-1).nan_to_num() @ value
                        )
                    ),
                ),
            ),
            Mistake(
                "after-softmax",
                "The weights of later tokens were set to 0 after the softmax, so the rows no "
                "longer sum to 1. Hide their scores before it.",
                _many_heads(
                    lambda query, key, value: _scores(query, key).softmax(-1).tril() @ value
                ),
            ),
            Mistake(
                "zeroed-scores",
                "The scores of later tokens were set to 0, but exp(0) is 1. Hide them with -inf.",
                _many_heads(
                    lambda query, key, value: _scores(query, key).tril().softmax(-1) @ value
                ),
            ),
            Mistake(
                "scale-all-heads",
                "You divided by √d_model. Each head compares vectors of length d_model / "
                "num_heads.",
                _many_heads(
                    lambda query, key, value: (
                        _hidden(_scores(query, key) / key.shape[-3] ** 0.5).softmax(-1) @ value
                    )
                ),
            ),
            Mistake(
                "no-scale",
                "The scores are not divided by the root of the length of a head's keys.",
                _many_heads(lambda query, key, value: _hidden(query @ key.mT).softmax(-1) @ value),
            ),
            Mistake(
                "reshape-only",
                "Splitting by a reshape straight to (batch, heads, n, d) cuts across tokens. Cut "
                "the last axis first, then swap two axes.",
                _many_heads(_right, split="reshape only"),
            ),
            Mistake(
                "not-transposed-back",
                "The heads were merged by a reshape alone. Swap heads and tokens back first.",
                _many_heads(_right, merge="reshape only"),
            ),
            Mistake(
                "both-reshapes",
                "Split and merge are reshapes without a swap of axes. The shape is right, but "
                "each head holds only some of the tokens.",
                _many_heads(_right, split="reshape only", merge="reshape only"),
            ),
            Mistake(
                "no-w_o",
                "w_o is made and not used: it mixes the heads at the end.",
                _many_heads(_right, mix=False),
            ),
            Mistake(
                "softmax-over-heads",
                "The softmax runs over the heads, dim 1 of scores (batch, heads, n, n). It must "
                "run over the keys, the last one.",
                _many_heads(
                    lambda query, key, value: _hidden(_scores(query, key)).softmax(1) @ value
                ),
            ),
        ),
        hints=(
            "The layer of this chapter needs one more step. Where must the later tokens be hidden, "
            "before the softmax or after it?",
            "Split each projection to (batch, heads, n, d). The scores are (batch, heads, n, n), "
            "and query i may see key j if j ≤ i. Hidden scores become −∞. Merge at the end, and "
            "pass the result through w_o.",
            "tril() keeps the lower triangle of a matrix, and masked_fill writes a number where a "
            "mask is True. Is it True where a key may be seen, or where it is hidden?",
        ),
        solution="""\
import torch
from torch import nn


class CausalHeads(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)

    def split(self, x):  # (batch, n, d_model) -> (batch, heads, n, d)
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)

    def forward(self, x):
        query, key, value = (self.split(w(x)) for w in (self.w_q, self.w_k, self.w_v))
        scores = query @ key.mT / key.shape[-1] ** 0.5  # (batch, heads, n, n)
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()  # (n, n)
        weights = scores.masked_fill(~mask, float("-inf")).softmax(dim=-1)
        return self.w_o((weights @ value).transpose(1, 2).flatten(-2))""",
    )
)
