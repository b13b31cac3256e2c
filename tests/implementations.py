"""Implementations of attention, one line each, for ``test_invariants.py``.

An implementation is called as ``function(query, key, value, mask=..., causal=...)`` with float64
arrays of d_q = d_k = 4 and d_v = 3, and returns its output, or output and weights. Beside it stands
``expected``, the same in plain loops. What it cannot do stands in ``lacks``:

mask, causal    it has no such argument
weights         it returns the output alone
gradients       it cannot be differentiated
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
    multi_head_attention,
    nadaraya_watson,
    tiled_attention,
)

D, D_V = 4, 3  # length of queries and keys, and of values


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

    def in_loops(query, key, value, mask=None, causal=False):
        seen = {} if mask is None else {"mask": mask}
        return expected(query, key, value, **seen, **({"is_causal": True} if causal else {}))

    missing = {"numpy": f"{lacks} gradients", "torch": lacks}
    return [
        Implementation(
            f"{name} [{kind}]", function, in_loops, kind, frozenset(missing[kind].split())
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


implement("attention", attention)
for score, loop, *parameters in (
    (dot_product_score, oracles.dot_product),
    (cosine_score, oracles.cosine),
    (gaussian_score, oracles.gaussian),
    (bilinear_score, oracles.bilinear, BILINEAR),
    (additive_score, oracles.additive, *ADDITIVE),
):
    name = score.__name__.removesuffix("_score").replace("_", " ")
    implement(name, scored(score, *parameters), loop_scored(loop, *parameters))


def grouped(query, key, value, **options):
    weights = [like(query, w) for w in GROUPED]
    return multi_head_attention(query, key, value, *weights, num_heads=4, num_kv_heads=2, **options)


in_loops = functools.partial(multi_head, weights=GROUPED, heads=4, kv_heads=2)
implement("multi_head_attention", grouped, in_loops)


for kernel in oracles.KERNELS:
    at_width = {"kernel": kernel, "width": 3.0}
    smooth = functools.partial(nadaraya_watson, **at_width)
    loop = functools.partial(oracles.nadaraya_watson, **at_width)
    implement(f"nadaraya_watson, {kernel}", smooth, loop, lacks="mask causal")


# The approximate ones, where they are exact.


def unmixed(query, key, value):
    """Return `linformer_attention` with as many mixtures as keys, each of one of them."""
    unit = like(query, np.eye(key.shape[-2]))
    return linformer_attention(query, key, value, unit, unit)


def loop_of_features(q, k):
    """Return the score whose softmax is what `linear_attention` computes: log φ(q)ᵀ φ(k)."""
    features = ([max(a, 0) + math.exp(min(a, 0)) for a in x] for x in (q, k))
    return math.log(oracles.dot_product(*features))


in_features = functools.partial(oracles.attention, score=loop_of_features)
implement("linformer_attention", unmixed, lacks="mask causal")
implement("linear_attention", linear_attention, in_features, lacks="mask weights")
implement("tiled_attention", tiled_attention, lacks="weights")
implement("in tiles of 2", functools.partial(tiled_attention, block_size=2), lacks="weights")
if TORCH:
    import torch

    from d2lmini import AdditiveAttention

    learned = AdditiveAttention(D, D, 5).double().requires_grad_(False)
    for seed, parameter in enumerate(learned.parameters()):
        parameter.copy_(torch.as_tensor(numbers(seed, *parameter.shape)))
    w_q, w_k, w_v = (x.weight.T.numpy() for x in (learned.w_q, learned.w_k, learned.w_v))
    loop_learned = loop_scored(oracles.additive, w_q, w_k, w_v[:, 0])
    implement("AdditiveAttention", learned, loop_learned, kinds=["torch"], lacks="causal")
