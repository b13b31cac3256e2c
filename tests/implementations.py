"""Every implementation of attention there is, one line each, for ``test_invariants.py``.

An implementation is called as ``function(query, key, value, mask=..., causal=...)`` with float64
arrays of d_q = d_k = 4 and d_v = 3, and returns its output, or output and weights. Beside it stands
``expected``, the same in plain loops. What it cannot do stands in ``lacks``:

mask, causal    it has no such argument
weights         it returns the output alone
everything      it is causal, always: a key that comes later is never seen
rectangles      it needs as many queries as keys
gradients       it cannot be differentiated
unordered       it knows where a key stands: the same keys in another order give something else
shifts          it counts from the first token: what stands before a text, though hidden, matters
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import oracles
from comparing import TORCH

from d2lmini import (
    additive_score,
    attention,
    bilinear_score,
    cosine_score,
    dot_product_score,
    gaussian_score,
    linear_attention,
    linformer_attention,
    lsh_attention,
    multi_head_attention,
    nadaraya_watson,
    rotary,
    scaled_dot_product_score,
    sinusoidal_positions,
    tiled_attention,
)

D, D_V = 4, 3  # length of queries and keys, and of values
CAN = {
    "mask", "causal", "weights", "everything", "rectangles", "gradients", "unordered", "shifts"
}  # fmt: skip


@dataclass(frozen=True)
class Implementation:
    name: str
    function: Callable[..., Any]
    expected: Callable[..., tuple[np.ndarray, np.ndarray]]
    kind: str  # numpy or torch
    lacks: frozenset[str] = frozenset()

    def __call__(self, query, key, value, *, mask=None, causal=False):
        """Run on NumPy arrays or tensors, and return output and weights (or None) of its kind."""
        query, key, value = (self.array(x) for x in (query, key, value))
        options = {} if mask is None else {"mask": self.array(mask)}
        if causal:
            options["causal"] = True
        result = self.function(query, key, value, **options)
        return result if isinstance(result, tuple) else (result, None)

    def can(self, *features):
        return self.lacks.isdisjoint(features)

    def array(self, x):
        if self.kind == "numpy":
            return x
        import torch

        return x if isinstance(x, torch.Tensor) else torch.as_tensor(x)


def implementation(
    name, function, expected=oracles.attention, *, kinds=("numpy", "torch"), lacks=""
):
    """Describe a function, on each kind of array that it takes and that is installed."""
    missing = frozenset(lacks.split())
    assert missing <= CAN, f"{name} lacks {missing - CAN}, which no invariant asks for"

    def in_loops(query, key, value, mask=None, causal=False):
        seen = {} if mask is None else {"mask": mask}
        return expected(query, key, value, **seen, **({"is_causal": True} if causal else {}))

    return [
        Implementation(
            f"{name} [{kind}]",
            function,
            in_loops,
            kind,
            missing | {"gradients"} if kind == "numpy" else missing,
        )
        for kind in kinds
        if kind == "numpy" or TORCH
    ]


def implement(*arguments, **options):
    """Let an implementation join the suite; the arguments are those of `implementation`."""
    IMPLEMENTATIONS.extend(implementation(*arguments, **options))


def numbers(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def like(x, array):
    """Return an array in the kind of x."""
    return array if isinstance(x, np.ndarray) else x.new_tensor(array)


# The same with several heads, in loops. `weighted_sum` is the matrix product, written out.


def project(x, weight, bias=0.0):
    return oracles.weighted_sum(oracles.floats(x), weight) + bias


def multi_head(query, key, value, weights, heads, kv_heads, biases=(0, 0, 0, 0), **seen):
    """Attend with each head by itself; a mask in `seen` has no head axis."""
    w_q, w_k, w_v, w_o = weights
    b_q, b_k, b_v, b_o = biases
    q, k, v = project(query, w_q, b_q), project(key, w_k, b_k), project(value, w_v, b_v)
    d_k, d_v = w_q.shape[1] // heads, w_v.shape[1] // kv_heads
    outputs, tables = [], []
    for head in range(heads):
        shared = head // (heads // kv_heads)
        output, table = oracles.attention(
            q[..., head * d_k : (head + 1) * d_k],
            k[..., shared * d_k : (shared + 1) * d_k],
            v[..., shared * d_v : (shared + 1) * d_v],
            **seen,
        )
        outputs.append(output)
        tables.append(np.broadcast_to(table, (*output.shape[:-1], table.shape[-1])))
    return project(np.concatenate(outputs, axis=-1), w_o, b_o), np.stack(tables, axis=-3)


# Parameters, in the order they are used.

BILINEAR = numbers(1, D, D)
ADDITIVE = numbers(2, D, 5), numbers(3, D, 5), numbers(4, 5)
HEADS = numbers(5, D, 6), numbers(6, D, 6), numbers(7, D_V, 4), numbers(8, 4, 5)  # 2 × 3, 2 × 2
GROUPED = numbers(5, D, 8), numbers(6, D, 4), numbers(7, D_V, 6), numbers(8, 12, 5)  # 4 × 2, 2 × 3

IMPLEMENTATIONS: list[Implementation] = []


def scored(score, *weights):
    """Return `attention` with this score."""

    def attend(query, key, value, **options):
        given = [like(query, w) for w in weights]
        return attention(query, key, value, score=lambda q, k: score(q, k, *given), **options)

    return attend


def loop_scored(score, *weights):
    return functools.partial(oracles.attention, score=lambda q, k: score(q, k, *weights))


def headed(weights, heads, kv_heads=None):
    """Return `multi_head_attention` with these weights."""

    def attend(query, key, value, **options):
        given = [like(query, w) for w in weights]
        return multi_head_attention(
            query, key, value, *given, num_heads=heads, num_kv_heads=kv_heads, **options
        )

    return attend


def loop_headed(weights, heads, kv_heads):
    return functools.partial(multi_head, weights=weights, heads=heads, kv_heads=kv_heads)


def loops(query, key, value, mask=True, causal=False):
    return oracles.attention(query, key, value, mask, causal)


implement("loops", loops, kinds=["numpy"])
implement("attention", attention)
implement("scaled by hand", scored(lambda q, k: scaled_dot_product_score(q, k, scale=0.5)))
for score, loop, *parameters in (
    (dot_product_score, oracles.dot_product),
    (cosine_score, oracles.cosine),
    (gaussian_score, oracles.gaussian),
    (bilinear_score, oracles.bilinear, BILINEAR),
    (additive_score, oracles.additive, *ADDITIVE),
):
    name = score.__name__.removesuffix("_score").replace("_", " ")
    implement(name, scored(score, *parameters), loop_scored(loop, *parameters))
for kernel in oracles.KERNELS:
    implement(
        f"nadaraya_watson, {kernel}",
        functools.partial(nadaraya_watson, kernel=kernel, width=3.0),
        functools.partial(oracles.nadaraya_watson, kernel=kernel, width=3.0),
        lacks="mask causal",
    )
implement("multi_head_attention", headed(HEADS, 2), loop_headed(HEADS, 2, 2))
implement("multi_head_attention, grouped", headed(GROUPED, 4, 2), loop_headed(GROUPED, 4, 2))

# With positions: the queries are the last tokens, as everywhere.


def starts(query, key):
    """Return the positions of the first query and of the first key."""
    n, m = query.shape[-2], key.shape[-2]
    return max(m - n, 0), max(n - m, 0)


def turned(query, key, value, **options):
    first, other = starts(query, key)
    return attention(rotary(query, start=first), rotary(key, start=other), value, **options)


def loop_turned(query, key, value, **seen):
    first, other = starts(query, key)
    return oracles.attention(loop_turn(query, first), loop_turn(key, other), value, **seen)


def loop_turn(x, start):
    result = np.empty(x.shape)
    for item in np.ndindex(x.shape[:-2]):
        result[item] = np.reshape(oracles.rotary(oracles.floats(x[item]), start, 10_000.0), (-1, D))
    return result


def waved(query, key, value, **options):
    length = max(query.shape[-2], key.shape[-2])
    waves = sinusoidal_positions(length, D, like=query)
    first, other = starts(query, key)
    return attention(query + waves[first:], key + waves[other:], value, **options)


def loop_waved(query, key, value, **seen):
    length = max(query.shape[-2], key.shape[-2])
    waves = np.array(oracles.sinusoidal_positions(length, D, 10_000.0)).reshape(length, D)
    query, key = (
        x + waves[start:]
        for x, start in zip(map(oracles.floats, (query, key)), starts(query, key), strict=True)
    )
    return oracles.attention(query, key, value, **seen)


implement("rotary", turned, loop_turned, lacks="unordered")
implement("sinusoidal_positions", waved, loop_waved, lacks="unordered shifts")

# The approximate ones, where they are exact.


def unmixed(query, key, value):
    """Return `linformer_attention` with as many mixtures as keys, each of one of them."""
    unit = like(query, np.eye(key.shape[-2]))
    return linformer_attention(query, key, value, unit, unit)


def in_one_bucket(query, key, value, **options):
    """Return `lsh_attention` that leaves nothing out; its keys are its queries."""
    return lsh_attention(query + 0 * key, value, num_buckets=1, seed=0, **options)


def loop_of_features(q, k):
    """Return the score whose softmax is what `linear_attention` computes: log φ(q)ᵀ φ(k)."""
    return math.log(
        oracles.dot_product(*([max(a, 0) + math.exp(min(a, 0)) for a in x] for x in (q, k)))
    )


def loop_of_one_bucket(query, key, value, is_causal=True):
    """Let a token look at others, by their direction, and at itself only where it is alone."""
    query = oracles.floats(query)
    lengths = np.sqrt((query**2).sum(axis=-1, keepdims=True))
    others = np.tri(query.shape[-2], k=-1, dtype=bool)
    others[:1, :1] = True
    return oracles.attention(query, query / lengths, value, others)


implement("tiled_attention", tiled_attention, lacks="weights")
implement("in tiles of 2", functools.partial(tiled_attention, block_size=2), lacks="weights")
implement("in tiles of 3", functools.partial(tiled_attention, block_size=3), lacks="weights")
implement("linformer_attention", unmixed, lacks="mask causal")
implement(
    "linear_attention",
    linear_attention,
    functools.partial(oracles.attention, score=loop_of_features),
    lacks="mask weights",
)
implement(
    "lsh_attention", in_one_bucket, loop_of_one_bucket, lacks="mask weights everything rectangles"
)

if TORCH:
    import torch

    from d2lmini import (
        AdditiveAttention,
        KeyValueCache,
        MultiHeadAttention,
        SelfAttention,
        ring_attention,
    )

    def filled(module):
        """Return the module in float64, with parameters of its own."""
        with torch.no_grad():
            for seed, parameter in enumerate(module.double().parameters()):
                parameter.copy_(torch.as_tensor(numbers(seed, *parameter.shape)))
        return module.requires_grad_(False)

    def loop_layer(layer):
        """Return the same as a layer with several heads, in loops."""
        linear = layer.w_q, layer.w_k, layer.w_v, layer.w_o
        return functools.partial(
            multi_head,
            weights=[x.weight.T.numpy() for x in linear],
            biases=[0 if x.bias is None else x.bias.numpy() for x in linear],
            heads=layer.num_heads,
            kv_heads=layer.num_kv_heads,
        )

    def without_weights(layer):
        def attend(*inputs, **options):
            output, weights = layer(*inputs, **options)
            assert weights is None
            return output

        return attend

    def on_one_batch(*inputs):
        batch = torch.broadcast_shapes(*(x.shape[:-2] for x in inputs))
        return [x.expand(*batch, *x.shape[-2:]) for x in inputs]

    def cached(layer, tokens, make_cache=KeyValueCache):
        """Return a causal layer that is given a few tokens at a time."""

        def attend(query, key, value, *, mask=None, causal):
            assert causal
            key, value = on_one_batch(key, value)  # which a cache asks for
            n, m = query.shape[-2], key.shape[-2]
            step = functools.partial(layer, causal=True, need_weights=True, cache=make_cache())
            seen = max(m - n, 0)  # the keys of earlier tokens, which ask nothing now
            before = key[..., :seen, :], value[..., :seen, :]
            pieces = [step(query[..., :0, :], *before)]
            for start in range(0, n, tokens):
                stop = min(start + tokens, n)
                upto = max(stop + m - n, 0)
                new = key[..., seen:upto, :], value[..., seen:upto, :]
                rows = None if mask is None else mask.expand(*mask.shape[:-2], n, m)
                rows = None if mask is None else rows[..., start:stop, :upto]
                pieces.append(step(query[..., start:stop, :], *new, mask=rows))
                seen = upto
            outputs, tables = zip(*pieces, strict=True)
            wide = [torch.nn.functional.pad(w, (0, m - w.shape[-1])) for w in tables]
            return torch.cat(outputs, dim=-2), torch.cat(wide, dim=-2)

        return attend

    def beside(module):
        own = module.project
        return (own.w_q, 0, D), (own.w_k, D, D), (own.w_v, 2 * D, D_V)

    def side_by_side(module):
        """Return `SelfAttention` of tokens that hold query, key and value side by side."""
        with torch.no_grad():
            for linear, first, size in beside(module):
                linear.weight[:, :first] = linear.weight[:, first + size :] = 0

        def attend(query, key, value, **options):
            return module(torch.cat(on_one_batch(query, key, value), dim=-1), **options)

        return attend

    def loop_self_attention(module):
        linear = beside(module)
        weights = [x.weight[:, first : first + size].T.numpy() for x, first, size in linear]
        biases = [x.bias.numpy() for x, _, _ in linear]

        def attend(query, key, value, **seen):
            inputs = zip((query, key, value), weights, biases, strict=True)
            return oracles.attention(*(project(x, w, b) for x, w, b in inputs), **seen)

        return attend

    def loop_additive(module):
        w_q, w_k, w_v = (linear.weight.T.numpy() for linear in (module.w_q, module.w_k, module.w_v))
        return loop_scored(oracles.additive, w_q, w_k, w_v[:, 0])

    def in_a_ring_of_one(*inputs, **options):
        """Return `ring_attention` of this process alone; ``test_distributed.py`` starts others."""
        if not torch.distributed.is_initialized():
            store = torch.distributed.HashStore()
            torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        return ring_attention(*inputs, **options)

    two = filled(MultiHeadAttention(4, 2, vdim=3))
    biased = filled(MultiHeadAttention(4, 2, vdim=3, bias=True))
    grouped = filled(MultiHeadAttention(4, 4, num_kv_heads=2, vdim=3))
    shared = filled(MultiHeadAttention(4, 4, num_kv_heads=1, vdim=3, bias=True))
    single = filled(SelfAttention(2 * D + D_V, 5, 6, bias=True))
    learned = filled(AdditiveAttention(D, D, 5))
    module = functools.partial(implement, kinds=["torch"])

    for name, layer in (
        ("MultiHeadAttention", two),
        ("with bias", biased),
        ("grouped heads", grouped),
    ):
        module(name, without_weights(layer), loop_layer(layer), lacks="weights")
        module(f"{name}, weights", functools.partial(layer, need_weights=True), loop_layer(layer))
    module("one kv head", without_weights(shared), loop_layer(shared), lacks="weights")
    module("cached by token", cached(biased, 1), loop_layer(biased), lacks="everything")
    module("cached in chunks", cached(two, 2), loop_layer(two), lacks="everything")
    module("cached, grouped", cached(grouped, 1), loop_layer(grouped), lacks="everything")
    module("SelfAttention", side_by_side(single), loop_self_attention(single), lacks="rectangles")
    module("ring_attention", in_a_ring_of_one, oracles.attention, lacks="mask weights")
    module("AdditiveAttention", learned, loop_additive(learned), lacks="causal")
