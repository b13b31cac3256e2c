"""`attention` and `MultiHeadAttention` beside PyTorch's fused kernel and its own layer.

Run it as ``python benchmarks/attention.py [S M L]``. Each line is one size and one task: the median
of each contestant as a ratio to the first one, which is PyTorch's kernel (for a layer: the four
projections and the kernel), and the bar, if there is one, that ours should stay under.

CPU seconds, one thread, medians of interleaved runs in one process. Only the ratios say something:
on a busy machine all of them take longer.
"""

import math
import os
import statistics
import sys
import time

os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
import torch
from torch.nn.functional import scaled_dot_product_attention

from d2lmini import MultiHeadAttention, attention

SIZES = {"S": (1, 8, 128, 64), "M": (4, 8, 512, 64), "L": (1, 8, 2048, 64)}  # batch, heads, n, d
RUNS = {"S": 61, "M": 9, "L": 5}
BARS = {  # the highest ratio for (task, size); the layer with weights is to be ahead of PyTorch's
    ("forward", "M"): 1.8,
    ("NumPy", "L"): 3.0,
    ("masked, forward and backward", "M"): 2.2,
    **{("layer", size): 1.05 for size in SIZES},
}


def medians(contestants, runs):
    """Return the median time of each, run in turn."""
    taken = {name: [] for name in contestants}
    for run in range(runs + 1):
        for name, function in contestants.items():
            start = time.process_time()
            function()
            if run:  # the first loads what the others find
                taken[name].append(time.process_time() - start)
    return {name: statistics.median(each) for name, each in taken.items()}


def naive(query, key, value, mask=None):
    """Attend in three lines, as a first course on the subject does."""
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return torch.softmax(scores, dim=-1) @ value


def learning(attend, leaves, upstream):
    """Return a function that goes forward and backward once."""

    def step():
        attend(*leaves).backward(upstream)
        for x in leaves:
            x.grad = None

    return step


def functions(shape):
    """Yield each task of `attention` with its contestants, the measure first."""
    q, k, v = (torch.randn(shape) for _ in range(3))
    mask = torch.ones(shape[-2], shape[-2], dtype=torch.bool)
    mask[:, -10:] = False
    arrays = [x.numpy() for x in (q, k, v)]

    def kernel():
        return scaled_dot_product_attention(q, k, v)

    yield (
        "forward",
        {
            "kernel": kernel,
            "ours": lambda: attention(q, k, v),
            "masked": lambda: attention(q, k, v, mask=mask),
            "naive": lambda: naive(q, k, v),
        },
    )
    yield "NumPy", {"kernel": kernel, "ours": lambda: attention(*arrays)}
    leaves, upstream = [x.clone().requires_grad_() for x in (q, k, v)], torch.randn(shape)
    contestants = {
        "kernel": lambda *qkv: scaled_dot_product_attention(*qkv, attn_mask=mask),
        "ours": lambda *qkv: attention(*qkv, mask=mask).output,
        "naive": lambda *qkv: naive(*qkv, mask),
    }
    yield (
        "masked, forward and backward",
        {name: learning(attend, leaves, upstream) for name, attend in contestants.items()},
    )


def layers(shape):
    """Yield each task of `MultiHeadAttention` with its contestants, the measure first."""
    batch, heads, n, d = shape
    theirs = torch.nn.MultiheadAttention(heads * d, heads, batch_first=True).eval()
    ours, x = MultiHeadAttention.from_torch(theirs), torch.randn(batch, n, heads * d)

    def kernel():
        q, k, v = (
            w(x).unflatten(-1, (heads, d)).swapaxes(1, 2) for w in (ours.w_q, ours.w_k, ours.w_v)
        )
        return ours.w_o(scaled_dot_product_attention(q, k, v).swapaxes(1, 2).flatten(-2))

    yield (
        "layer",
        {
            "kernel": kernel,
            "ours": lambda: ours(x),
            "PyTorch's": lambda: theirs(x, x, x, need_weights=False),
        },
    )
    yield (
        "layer with weights",
        {
            "kernel": kernel,
            "ours": lambda: ours(x, need_weights=True),
            "PyTorch's": lambda: theirs(x, x, x, average_attn_weights=False),
        },
    )


def small():
    """Print the microseconds of a small masked call, the quickest of many, ours and naive."""
    arrays, mask = [np.ones((1, 4, 8), dtype=np.float32) for _ in range(3)], np.eye(4) > 0
    tensors, visible = [torch.from_numpy(x) for x in arrays], torch.from_numpy(mask)
    for name, function in {
        "NumPy (bar 45)": lambda: attention(*arrays, mask=mask),
        "PyTorch (bar 60)": lambda: attention(*tensors, mask=visible),
        "naive PyTorch": lambda: naive(*tensors, visible),
    }.items():
        best = math.inf
        for _ in range(30):
            start = time.process_time()
            for _ in range(100):
                function()
            best = min(best, time.process_time() - start)
        print(f"small, masked: {name}: {1e4 * best:.0f} microseconds")


def main():
    """Print the ratios of each task."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    for size in sys.argv[1:] or SIZES:
        for tasks in (functions(SIZES[size]), layers(SIZES[size])):
            for task, contestants in tasks:
                with torch.set_grad_enabled("backward" in task):
                    taken = medians(contestants, RUNS[size])
                first, *others = taken
                ratios = "  ".join(f"{name} {taken[name] / taken[first]:.2f}" for name in others)
                bar = BARS.get((task, size))
                print(f"{size} {task}: {ratios}" + (f"  (bar {bar})" if bar else ""), flush=True)
    with torch.no_grad():
        small()


if __name__ == "__main__":
    main()
