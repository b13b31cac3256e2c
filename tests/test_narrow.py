"""Sums along a sequence in 16 bits: constant values come back as that constant, however many.

A sum of ones in float16 stalls at 2,048 and overflows at 65,504; in bfloat16 it stalls at 256.
"""

import functools

import numpy as np
import pytest
from comparing import TORCH

import d2lmini as d
from d2lmini import attention

EPS = {"float16": 2**-10, "bfloat16": 2**-7}
UNITS = 4  # of the dtype: weights of 1/m are rounded, then the sum
KINDS = [("numpy", "float16")] + ([("torch", "float16"), ("torch", "bfloat16")] if TORCH else [])
LENGTHS = 64, 1024, 5000, 70_000


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


ANY = {  # of few queries and many keys
    "attention": attention,
    **{
        name: scored(getattr(d, name))
        for name in ("dot_product_score", "cosine_score", "gaussian_score")
    },
    "bilinear_score": scored(d.bilinear_score, (4, 4)),
    "additive_score": scored(d.additive_score, (4, 3), (4, 3), (3,)),
    "tiled_attention": d.tiled_attention,
    "in tiles": functools.partial(d.tiled_attention, block_size=512),
    "linear_attention": d.linear_attention,
    "linear_attention, ones": functools.partial(d.linear_attention, feature_map=ones_and),
    "linear_attention, squares": functools.partial(
        d.linear_attention, feature_map=lambda x: x * x + 0.5
    ),
    "multi_head_attention": heads,
}
NOT_CAUSAL = {
    "linformer_attention": linformer,
    "softmax": by_softmax(d.softmax),
    "masked_softmax": by_softmax(d.masked_softmax),
    "KeyValueStore": stored,
    **{
        f"nadaraya_watson, {kernel}": functools.partial(d.nadaraya_watson, kernel=kernel, width=50)
        for kernel in ("gaussian", "boxcar", "triangular", "epanechnikov")
    },
}
CASES = [(name, f, causal) for name, f in ANY.items() for causal in (False, True)]
CASES += [(name, f, False) for name, f in NOT_CAUSAL.items()]


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


@pytest.mark.parametrize("m", LENGTHS)
@pytest.mark.parametrize("kind, dtype", KINDS)
@pytest.mark.parametrize(
    "name, attend, causal", CASES, ids=lambda x: x if isinstance(x, str) else ""
)
def test_few_queries(name, attend, causal, kind, dtype, m):
    options = {"causal": True} if causal else {}
    constant_comes_back(attend, kind, dtype, 3, m, **options)


@pytest.mark.parametrize("kind, dtype", KINDS)
@pytest.mark.parametrize("causal", [False, True])
def test_as_many_queries_as_keys(kind, dtype, causal):
    """Chunks of 2,500 keys for hashing; the recurrence has no such limit."""
    hashed = functools.partial(d.lsh_attention, num_buckets=4, seed=0)
    constant_comes_back(
        lambda q, k, v, **options: hashed(q, v, **options), kind, dtype, 5000, 5000, causal=causal
    )
    for m in LENGTHS:
        constant_comes_back(d.linear_attention, kind, dtype, m, m, causal=causal)


if TORCH:
    import torch

    @pytest.mark.parametrize("m", LENGTHS)
    @pytest.mark.parametrize("dtype", EPS)
    @pytest.mark.parametrize("need_weights", [False, True])
    def test_the_modules(dtype, m, need_weights):
        layer = d.MultiHeadAttention(4, 2, vdim=2)
        additive = d.AdditiveAttention(4, 4, 3)
        with torch.no_grad():
            layer.w_v.weight[:] = (
                torch.eye(4)[:, :2] + torch.eye(4)[:, 2:]
            )  # (c, c) to (c, c, c, c)
            layer.w_o.weight[:] = torch.eye(4)
        layer, additive = (x.to(getattr(torch, dtype)) for x in (layer, additive))
        with torch.no_grad():
            attend = functools.partial(layer, need_weights=need_weights)
            for causal in (False, True):
                constant_comes_back(attend, "torch", dtype, 3, m, causal=causal)
            constant_comes_back(additive, "torch", dtype, 3, m)
            cache = d.KeyValueCache()

            def cached(query, key, value):
                cache.key = cache.value = None
                attend(query[:0], key[:-1], value[:-1], cache=cache)
                return attend(query, key[-1:], value[-1:], cache=cache)

            constant_comes_back(cached, "torch", dtype, 3, m)

    def alone(query, key, value, **options):
        """Attend in a ring of this process alone, which merges pieces of the keys."""
        if not torch.distributed.is_initialized():
            store = torch.distributed.HashStore()
            torch.distributed.init_process_group("gloo", store=store, rank=0, world_size=1)
        return d.ring_attention(query, key, value, **options)

    @pytest.mark.parametrize("m", LENGTHS)
    @pytest.mark.parametrize("dtype", EPS)
    def test_a_ring(dtype, m):
        for causal in (False, True):
            constant_comes_back(alone, "torch", dtype, 3, m, causal=causal)

    @pytest.mark.parametrize("m", [n for n in LENGTHS if n < 10_000])  # its weights are n by n
    @pytest.mark.parametrize("dtype", EPS)
    def test_self_attention(dtype, m):
        layer = d.SelfAttention(6, 4, 2).to(getattr(torch, dtype))

        def attend(query, key, value, **options):
            return layer(torch.cat([key, value], dim=-1), **options)

        with torch.no_grad():
            layer.project.w_v.weight[:] = torch.eye(6)[4:]  # the last two components
            for causal in (False, True):
                constant_comes_back(attend, "torch", dtype, m, m, causal=causal)
