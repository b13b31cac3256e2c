"""Other people's attention, under one name and one way to call it each.

``requirements-bench.txt`` names the packages; `make bench` installs them in ``.peers``, beside the
book's own environment.
"""

import importlib
import importlib.machinery
import sys
import types
from pathlib import Path
from unittest.mock import MagicMock

import numpy as np
import torch
from torch.nn import functional

PEERS = Path(__file__).parents[1] / ".peers"


def d2l():
    """Import d2l; what it needs for other chapters (gyms, pictures) is not there, nor used here."""
    missing = []
    while True:
        try:
            found = importlib.import_module("d2l.torch")
            break
        except ModuleNotFoundError as error:
            if error.name.startswith("d2l"):
                raise
            missing.append(error.name)
            sys.modules[error.name] = stand_in = MagicMock()
            stand_in.__spec__ = importlib.machinery.ModuleSpec(error.name, None)
    for name in missing:
        del sys.modules[name]
    return found


def naive(query, key, value, mask=None):
    """Compute the three lines that every tutorial shows."""
    scores = query @ key.mT / query.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1) @ value


def with_einsum(query, key, value):
    """Compute them as einops' users write them."""
    from einops import einsum

    scores = einsum(query, key, "b h i d, b h j d -> b h i j") * query.shape[-1] ** -0.5
    return einsum(scores.softmax(dim=-1), value, "b h i j, b h j d -> b h i d")


def naive_numpy(query, key, value):
    """Compute them on NumPy."""
    scores = query @ key.mT / np.float32(query.shape[-1] ** 0.5)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True) @ value


def load():
    """Return {name: function of query, key and value (batch, heads, n, d)}; d2l's module too."""
    if not (PEERS / "d2l").exists():
        sys.exit("error: the other libraries are not installed: run `make bench`")
    sys.path.append(str(PEERS))
    theirs = d2l()
    from x_transformers.attend import Attend

    d2l_attention = theirs.DotProductAttention(0.0).eval()
    plain, flash = Attend(flash=False), Attend(flash=True)

    def on_three_axes(query, key, value):  # d2l has no axis of heads
        return d2l_attention(*(x.flatten(0, 1) for x in (query, key, value))).unflatten(
            0, query.shape[:2]
        )

    functions = {
        "fused kernel": functional.scaled_dot_product_attention,
        "naive, three lines": naive,
        "einops": with_einsum,
        "d2l": on_three_axes,
        "x-transformers": lambda *qkv: plain(*qkv)[0],
        "x-transformers, flash": lambda *qkv: flash(*qkv)[0],
    }
    return types.SimpleNamespace(functions=functions, MultiHeadAttention=theirs.MultiHeadAttention)
