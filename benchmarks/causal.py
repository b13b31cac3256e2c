"""A long causal sequence: `MultiHeadAttention` beside its projections and PyTorch's own kernel.

Run it as ``python benchmarks/causal.py [tokens]``. It prints the time and the memory of
``MultiHeadAttention(64, 1)(x, causal=True)`` as a ratio to the four projections and
``scaled_dot_product_attention(..., is_causal=True)``. A mask in memory, one number for each pair of
tokens, would take many times what the layer needs.

CPU seconds, one thread, medians of interleaved runs in one process; memory is the growth of the
peak of a process of its own.
"""

import os
import resource
import statistics
import subprocess
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"

import torch
from torch.nn.functional import scaled_dot_product_attention

from d2lmini import MultiHeadAttention

BARS = {"time": 1.2, "memory": 1.5}  # at most this ratio
TOKENS = 16_384
RUNS = 5


def ours(layer, x):
    """Attend as a user writes it."""
    return layer(x, causal=True).output


def kernel(layer, x):
    """Attend with the same projections and PyTorch's kernel alone."""
    q, k, v = (w(x)[:, None] for w in (layer.w_q, layer.w_k, layer.w_v))  # (1, 1, n, 64)
    return layer.w_o(scaled_dot_product_attention(q, k, v, is_causal=True)[:, 0])


FUNCTIONS = {function.__name__: function for function in (ours, kernel)}


def seconds(layer, x):
    """Return the median time of each, run in turn."""
    taken = {name: [] for name in FUNCTIONS}
    for _ in range(RUNS):
        for name, function in FUNCTIONS.items():
            start = time.process_time()
            function(layer, x)
            taken[name].append(time.process_time() - start)
    return {name: statistics.median(each) for name, each in taken.items()}


def growth(name, layer, x):
    """Return by how many MB one call raises the peak memory of this process."""
    FUNCTIONS[name](layer, x[:, :64])  # what the first call loads is not counted
    ballast = torch.ones(int(peak() * 2**20) // 4)  # what an import took and gave back hides none
    before = peak()
    FUNCTIONS[name](layer, x)
    del ballast
    return peak() - before


def peak():
    """Return the highest memory so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    """Print both ratios."""
    tokens = int(sys.argv[1]) if len(sys.argv) > 1 else TOKENS
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layer, x = MultiHeadAttention(64, 1).eval(), torch.randn(1, tokens, 64)
    with torch.no_grad():
        if len(sys.argv) > 2:  # a process of its own: see below
            print(growth(sys.argv[2], layer, x))
            return
        torch.testing.assert_close(ours(layer, x[:, :99]), kernel(layer, x[:, :99]))
        child = [sys.executable, __file__, str(tokens)]
        megabytes = {
            name: float(subprocess.run([*child, name], capture_output=True, check=True).stdout)
            for name in FUNCTIONS
        }
        for what, found in (("time", seconds(layer, x)), ("memory", megabytes)):
            unit = "s" if what == "time" else "MB"
            ratio = found["ours"] / found["kernel"]
            print(
                f"{what}: {found['ours']:.2f} {unit}, the kernel {found['kernel']:.2f} {unit}: "
                f"{ratio:.2f} × (bar {BARS[what]})"
            )


if __name__ == "__main__":
    main()
