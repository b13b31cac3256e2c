"""Sums along a sequence in 16 bits: constant values come back as that constant, however many.

A sum of ones in float16 stalls at 2,048 and overflows at 65,504; in bfloat16 it stalls at 256.
"""

import functools

import numpy as np
import pytest
from comparing import TORCH, needs_torch

import d2lmini as d
from d2lmini import attention

EPS = {"float16": 2**-10, "bfloat16": 2**-7}
UNITS = 4  # of the dtype: weights of 1/m are rounded, then the sum
KINDS = [("numpy", "float16")] + ([("torch", "float16"), ("torch", "bfloat16")] if TORCH else [])
LENGTHS = {"float16": (300, 5000, 70_000), "bfloat16": (300, 5000)}  # behind each of those limits
BEHIND = {"float16": 2100, "bfloat16": 300}  # where a stalled sum shows, if the work is its square


def like(x, numbers):
    """Return numbers in the kind and dtype of x."""
    if isinstance(x, np.ndarray):
        return np.asarray(numbers, dtype=x.dtype)
    import torch

    return torch.as_tensor(np.asarray(numbers, dtype=np.float32)).to(x.dtype)


def scored(score, *shapes):
    """Return `attention` with a score, which has weights of ones in these shapes."""

    def attend(query, key, value, **options):
        own = [like(query, np.ones(shape) / 4) for shape in shapes]
        return attention(query, key, value, score=lambda q, k: score(q, k, *own), **options)

    return attend


def linformer(query, key, value):
    """Mix all keys, and all values, to two means; 1/m would be lost in 16 bits, so in two steps."""
    m = key.shape[-2]
    share = np.zeros((2, m))
    share[0, : 2 ** int(np.log2(m))] = 2.0 ** -int(np.log2(m))
    share[1, -64:] = 1 / 64
    return d.linformer_attention(query, key, value, like(query, share), like(query, share))


def heads(query, key, value, **options):
    unit = like(query, np.eye(4))
    wide = like(query, np.eye(value.shape[-1]))
    return d.multi_head_attention(query, key, value, unit, unit, wide, wide, num_heads=2, **options)


def by_softmax(function):
    def attend(query, key, value):
        return function((query * 0.5) @ key.mT) @ value

    return attend


def stored(query, key, value):
    """Ask a `KeyValueStore` whose encoder knows the vectors of keys and queries by their names."""
    names = [f"key {i}" for i in range(len(key))]
    questions = [f"query {i}" for i in range(len(query))]
    vector_of = {"key 0": key, "query 0": query}
    return d.KeyValueStore(names, value).attend(questions, encode=lambda texts: vector_of[texts[0]])


def ones_and(x):
    return like(x, np.ones((*x.shape[:-1], 1))) + 0 * x[..., :1]


def in_a_ring(query, key, value, **options):
    """Attend in a ring of this process alone, which merges pieces of the keys."""
    import torch

    if not torch.distributed.is_initialized():
        store = torch.distributed.HashStore()
        torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
    return d.ring_attention(query, key, value, **options)


def squares(x):
    return x * x + 0.5


ANY = {  # of few queries and many keys
    "attention": attention,
    "dot_product_score": scored(d.dot_product_score),
    "cosine_score": scored(d.cosine_score),
    "gaussian_score": scored(d.gaussian_score),
    "bilinear_score": scored(d.bilinear_score, (4, 4)),
    "additive_score": scored(d.additive_score, (4, 3), (4, 3), (3,)),
    "tiled_attention": d.tiled_attention,
    "in tiles": functools.partial(d.tiled_attention, block_size=512),
    "linear_attention": d.linear_attention,
    "linear_attention, ones": functools.partial(d.linear_attention, feature_map=ones_and),
    "linear_attention, squares": functools.partial(d.linear_attention, feature_map=squares),
    "multi_head_attention": heads,
}
NOT_CAUSAL = {
    "linformer_attention": linformer,
    "softmax": by_softmax(d.softmax),
    "masked_softmax": by_softmax(d.masked_softmax),
    "KeyValueStore": stored,
} | {
    f"nadaraya_watson, {kernel}": functools.partial(d.nadaraya_watson, kernel=kernel, width=50)
    for kernel in ("gaussian", "boxcar", "triangular", "epanechnikov")
}
CASES = [(name, causal) for causal in (False, True) for name in (ANY, ANY | NOT_CAUSAL)[not causal]]


def constant_comes_back(attend, kind, dtype, n, m, **options):
    if kind == "numpy":
        empty = np.empty(0, dtype=dtype)
    else:
        import torch

        empty = torch.empty(0, dtype=getattr(torch, dtype))
    rng = np.random.default_rng(m)
    for size, constant in ((0.0, 3.0), (1.0, -0.75)):
        query, key = (like(empty, size * rng.standard_normal((length, 4))) for length in (n, m))
        result = attend(query, key, like(empty, np.full((m, 2), constant)), **options)
        output = result[0] if isinstance(result, tuple) else result
        assert output.dtype == empty.dtype
        found = np.array(output.tolist())
        far = np.abs(found - constant).max() / abs(constant) / EPS[dtype]
        assert far <= UNITS, f"{far:.3g} units of {dtype} off for {m} keys of size {size}"


@pytest.mark.parametrize("kind, dtype", KINDS)
@pytest.mark.parametrize("name, causal", CASES)
def test_few_queries(name, causal, kind, dtype):
    attend = (ANY | NOT_CAUSAL)[name]
    for m in LENGTHS[dtype]:
        constant_comes_back(attend, kind, dtype, 3, m, **({"causal": True} if causal else {}))


@pytest.mark.parametrize("kind, dtype", KINDS)
@pytest.mark.parametrize("causal", [False, True])
def test_as_many_queries_as_keys(kind, dtype, causal):

    def hashed(query, key, value, **options):  # in two chunks of these keys
        return d.lsh_attention(query, value, num_buckets=4, seed=0, **options)

    n = 2 * BEHIND[dtype]
    constant_comes_back(hashed, kind, dtype, n, n, causal=causal)
    for m in LENGTHS[dtype]:
        constant_comes_back(d.linear_attention, kind, dtype, m, m, causal=causal)


@needs_torch
@pytest.mark.parametrize(("dtype", "m"), [(dtype, m) for dtype in EPS for m in LENGTHS[dtype]])
def test_the_modules(dtype, m):
    import torch

    layer, additive = d.MultiHeadAttention(4, 2, vdim=2), d.AdditiveAttention(4, 4, 3)
    alone = d.SelfAttention(6, 4, 2)
    one = torch.eye(6)
    with torch.no_grad():
        layer.w_v.weight[:] = one[:4, :2] + one[:4, 2:4]  # (c, c) to (c, c, c, c)
        layer.w_o.weight[:] = one[:4, :4]
        alone.project.w_v.weight[:] = one[4:]  # the last two components
        layer, additive, alone = (x.to(getattr(torch, dtype)) for x in (layer, additive, alone))
        constant_comes_back(additive, "torch", dtype, 3, m)
        cache = d.KeyValueCache()

        def on_itself(query, key, value, **options):
            return alone(torch.cat([key, value], dim=-1), **options)

        for causal in False, True:
            constant_comes_back(in_a_ring, "torch", dtype, 3, m, causal=causal)
            if m == LENGTHS[dtype][0]:
                n = BEHIND[dtype]
                constant_comes_back(on_itself, "torch", dtype, n, n, causal=causal)
        for need_weights in False, True:
            attend = functools.partial(layer, need_weights=need_weights)

            def cached(query, key, value, attend=attend):
                cache.key = cache.value = None
                attend(query[:0], key[:-1], value[:-1], cache=cache)
                return attend(query, key[-1:], value[-1:], cache=cache)

            constant_comes_back(cached, "torch", dtype, 3, m)
            for causal in False, True:
                constant_comes_back(attend, "torch", dtype, 3, m, causal=causal)
