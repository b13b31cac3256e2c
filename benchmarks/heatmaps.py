"""Time ``show_heatmaps`` against the usual way to plot heads: one ``imshow`` for each panel.

Run it as ``python benchmarks/heatmaps.py``. It draws 8 x 12 heads, of 16 x 16 and of 128 x 128
weights. Ours makes all that a notebook keeps (HTML with a light and a dark drawing, PNG, words);
the other makes one PNG. The other is `d2l.torch.show_heatmaps` where ``d2l`` is installed, and
besides it the same plot written out here: subplots with shared axes, ``imshow``, one colour bar.

CPU seconds, one thread, medians of interleaved runs in one process.
"""

import importlib.util
import io
import os
import statistics
import time

os.environ["OMP_NUM_THREADS"] = "1"

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np

from d2lmini.plotting import show_heatmaps

BARS = {16: 1.0, 128: 1.0}  # at most this share of the other's time
RUNS = 3
TITLES = [f"Head {i}" for i in range(1, 13)]


def ours(weights):
    """Draw all formats."""
    data, _ = show_heatmaps(weights, "Keys", "Queries", TITLES, show=False)._repr_mimebundle_()
    assert set(data) == {"text/html", "image/png", "text/plain"}


def usual(weights):
    """Draw one PNG, as most tutorials do."""
    rows, columns = weights.shape[:2]
    figure, axes = plt.subplots(
        rows, columns, figsize=(15, 10), sharex=True, sharey=True, squeeze=False
    )
    for i, row in enumerate(weights):
        for j, matrix in enumerate(row):
            ax = axes[i, j]
            image = ax.imshow(matrix, cmap="Reds")
            if i == rows - 1:
                ax.set_xlabel("Keys")
            if j == 0:
                ax.set_ylabel("Queries")
            ax.set_title(TITLES[j])
    figure.colorbar(image, ax=axes, shrink=0.6)
    figure.savefig(io.BytesIO(), format="png")
    plt.close(figure)


def the_library(weights):
    """Draw one PNG with d2l itself."""
    import torch
    from d2l import torch as d2l

    d2l.show_heatmaps(torch.from_numpy(weights), "Keys", "Queries", TITLES, figsize=(15, 10))
    plt.gcf().savefig(io.BytesIO(), format="png")
    plt.close("all")


def measure(functions, weights):
    """Return the median CPU seconds of each function."""
    seconds = {function: [] for function in functions}
    for function in functions:
        function(weights)  # warm up
    for _ in range(RUNS):
        for function in functions:
            start = time.process_time()
            function(weights)
            seconds[function].append(time.process_time() - start)
    return {function: statistics.median(times) for function, times in seconds.items()}


def main():
    """Print a table."""
    others = [usual]
    if importlib.util.find_spec("d2l"):
        others.append(the_library)
    print(f"{'panels':22}{'plotter':24}{'CPU s':>7}{'ours / it':>11}{'bar':>6}")
    for size, bar in BARS.items():
        exp = np.exp(np.random.default_rng(0).normal(0, 2, (8, 12, size, size)))
        weights = exp / exp.sum(-1, keepdims=True)
        found = measure([ours, *others], weights)
        name = f"8 x 12 of {size} x {size}"
        print(f"{name:22}{'d2lmini, all formats':24}{found[ours]:7.2f}")
        for other in others:
            label = "subplots + imshow, PNG" if other is usual else "d2l, PNG"
            ratio = found[ours] / found[other]
            print(f"{'':22}{label:24}{found[other]:7.2f}{ratio:11.2f}{bar:6.2f}")


if __name__ == "__main__":
    main()
