"""Sums along a sequence in 16 bits: constant values come back as that constant, however many.

A sum of ones in float16 stalls at 2,048 and overflows at 65,504; in bfloat16 it stalls at 256.
"""

import functools

import numpy as np
import pytest
from comparing import TORCH, needs_torch, output_of

import d2lmini as d

EPS = {"float16": 2**-10, "bfloat16": 2**-7}
UNITS = 4  # of the dtype: weights of 1/m are rounded, then the sum
KINDS = [("numpy", "float16")] + ([("torch", "float16"), ("torch", "bfloat16")] if TORCH else [])
LENGTH = {"float16": 70_000, "bfloat16": 5000}  # behind each of those limits


def maker(kind, dtype):
    if kind == "numpy":
        return functools.partial(np.asarray, dtype=dtype)
    import torch

    return lambda numbers: torch.as_tensor(numbers).to(getattr(torch, dtype))


ANY = {  # of few queries and many keys
    "attention": d.attention,
    "tiled_attention": d.tiled_attention,
    "in tiles": functools.partial(d.tiled_attention, block_size=512),
    "linear_attention": d.linear_attention,
    "nadaraya_watson": functools.partial(d.nadaraya_watson, kernel="boxcar", width=50),
}


def constant_comes_back(attend, kind, dtype, n, m, **options):
    array, rng = maker(kind, dtype), np.random.default_rng(m)
    for size, constant in ((0.0, 3.0), (1.0, -0.75)):
        query, key = (array(size * rng.standard_normal((length, 4))) for length in (n, m))
        value = array(np.full((m, 2), constant))
        output = output_of(attend(query, key, value, **options))
        assert output.dtype == value.dtype
        far = np.abs(np.array(output.tolist()) - constant).max() / abs(constant) / EPS[dtype]
        assert far <= UNITS, f"{far:.3g} units of {dtype} off for {m} keys of size {size}"


@pytest.mark.parametrize("kind, dtype", KINDS)
@pytest.mark.parametrize("name", ANY)
def test_few_queries(name, kind, dtype):
    for causal in ({}, {"causal": True}) if name != "nadaraya_watson" else ({},):
        constant_comes_back(ANY[name], kind, dtype, 3, LENGTH[dtype], **causal)


@needs_torch
@pytest.mark.parametrize("dtype", EPS)
def test_the_modules(dtype):
    import torch

    layer, additive = d.MultiHeadAttention(4, 2, vdim=2), d.AdditiveAttention(4, 4, 3)
    one = torch.eye(4)
    with torch.no_grad():
        layer.w_v.weight[:] = one[:, :2] + one[:, 2:]  # (c, c) to (c, c, c, c)
        layer.w_o.weight[:] = one
        layer, additive = (x.to(getattr(torch, dtype)) for x in (layer, additive))
        constant_comes_back(additive, "torch", dtype, 3, LENGTH[dtype])
        for weights, causal in ((False, False), (False, True), (True, True)):
            attend = functools.partial(layer, need_weights=weights, causal=causal)
            constant_comes_back(attend, "torch", dtype, 3, LENGTH[dtype])
