"""The drawings of pages that are no notebooks: each is a function here, with its numbers computed.

They are drawn while the book is built, where a page says so:

    ```{drawing} idea
    The caption, if there is one.
    ```
"""

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
from matplotlib import rc_context
from matplotlib.patches import PathPatch
from matplotlib.path import Path as Outline

from d2lmini import attention, dot_product_score
from d2lmini.models import MiniLMLayer, load_readings
from d2lmini.plotting import COLORS, Diagram, show_figure, show_heatmaps
from d2lmini.plotting._dark_maps import dark_map, weight_map
from d2lmini.plotting.diagram import Part
from d2lmini.plotting.shown import Shown
from d2lmini.plotting.theme import hatch_color, tint

MEASURED = Path(__file__).parents[2] / "benchmarks" / "measured.json"
QUERY = np.array([[2.0, 1.0]])  # the lookup of the first page
KEYS = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
VALUES = np.array([[20.0], [10.0], [40.0]])
READS = (MEASURED,)  # the files that a drawing is made of


def idea() -> Shown:
    """Draw the lookup of the first page, from the query to the output."""
    output, weights = attention(QUERY, KEYS, VALUES, score=dot_product_score)
    scores = (QUERY @ KEYS.T)[0]
    rows = range(len(KEYS))
    alt = (
        "The query (2, 1) is compared with three keys, and each comparison is a score: "
        + "; ".join(
            f"key ({KEYS[i, 0]:.0f}, {KEYS[i, 1]:.0f}), score {scores[i]:.0f}, "
            f"weight {weights[0, i]:.3f}, value {VALUES[i, 0]:.0f}"
            for i in rows
        )
        + f". The values, mixed by the weights, give the output {output[0, 0]:.2f}."
    )

    @show_figure(canvas=True, width=4.6, height=2.45, alt=alt, show=False)
    def picture(ax):
        d = Diagram(ax)
        middle = 1.5
        query = d.cells((0.52, middle), ["(2, 1)"], kind="query", title="query")
        texts = [f"({key[0]:.0f}, {key[1]:.0f})" for key in KEYS]
        keys = d.cells((1.62, middle), texts, kind="key", title="keys")
        d.text((2.3, keys.top[1] + 0.17), "scores")
        for row, score in zip(keys, scores, strict=True):
            d.arrow(query.right, row.left, kind="query", line=0.9)
            d.text((2.3, row.center[1]), f"{score:.0f}")
        bars = d.bars((3.13, middle), weights[0], title="weights", decimals=3, length=0.55)
        texts = [f"{value:.0f}" for value in VALUES[:, 0]]
        values = d.cells((4.2, middle), texts, kind="value", title="values")
        for row, bar, value in zip(keys, bars, values, strict=True):
            d.arrow((2.42, row.center[1]), (bar.left[0], row.center[1]))
            d.arrow((bar.right[0], row.center[1]), value.left)
        result = d.box((4.2, 0.28), f"{output[0, 0]:.2f}", kind="output")
        d.text((result.left[0] - 0.1, 0.28), "output", kind="output", align="right")
        d.arrow(values.bottom, result.top, kind="value", line=3)
        for x, words in ((1.62, "1. compare"), (3.0, "2. normalise")):
            d.text((x, 0.72), words, kind="muted")
        d.text((4.1, 0.68), "3. mix", kind="muted", align="right")

    return picture


def atlas() -> Shown:
    """Draw all heads of the language model of chapter 7 on one sentence, a small square each."""
    reading = load_readings()["Zed Quimby likes tea. Mo Larkin likes milk. Zed Quim"]
    n, later = len(reading.pieces), np.arange(2, len(reading.pieces))
    one_back = reading.weights[:, :, later, later - 1].mean(axis=-1)
    on_first = reading.weights[:, :, later, 0].mean(axis=-1)
    few = ", ".join(str(i + 1) for i in np.flatnonzero(~(on_first > 0.5).any(axis=1)))
    alt = (
        "A wall of 270 small squares, a column for each of 30 layers and in it 9 heads. In each, "
        "the tokens that ask run downwards, and the tokens that are asked to the right. "
        f"{(on_first > 0.5).sum()} have a line at their left edge: they give the "
        f"first token more than half, none of them in the layers {few}. "
        f"{(one_back > 0.5).sum()} have a diagonal: they look one token back. Head 19.7 has a dark "
        "cell in its last row, where im looks at by."
    )
    drawn = (20 * reading.weights).round() / 20  # as fine as so small cells tell
    padded = np.full((30, 9, n + 1, n + 1), np.nan)
    padded[:, :, :n, :n] = np.where(np.tri(n) > 0, drawn, np.nan)
    desk, phone, left = (9.583, 3.13), (3.646, 10.2), 0.65  # as wide as they are shown

    @show_figure(canvas=True, width=desk[0], height=desk[1], phone=phone, alt=alt, show=False)
    def picture(ax):
        d, (wide, tall) = Diagram(ax), (ax.get_xlim()[1], ax.get_ylim()[1])
        down = wide > phone[0]  # the heads of a layer stand below each other, else side by side
        wall = padded.swapaxes(0, 1) if down else padded
        rows, columns = wall.shape[:2]
        side, top = (wide - left) / columns, tall - (0 if down else 0.23)
        place, seen = (left, wide, top - rows * side, top), side * n / (n + 1)
        cmap = dark_map(weight_map("light")) if COLORS["page"] != "#ffffff" else weight_map("light")
        wall = wall.swapaxes(1, 2).reshape(rows * (n + 1), columns * (n + 1))
        ax.imshow(wall, cmap=cmap, vmin=0, vmax=1, interpolation="none", extent=place)
        ax.set(xlim=(0, wide), ylim=(0, tall))
        corners = [(left + side * j, top - side * i) for i in range(rows) for j in range(columns)]
        squares = Outline.make_compound_path(
            *(
                Outline([(x, y), (x + seen, y), (x + seen, y - seen), (x, y - seen), (x, y)])
                for x, y in corners
            )
        )
        with rc_context({"hatch.color": hatch_color()}):  # is seen through what is masked
            hatched = PathPatch(squares, facecolor="none", linewidth=0, hatch="//////", zorder=-1)
            ax.add_patch(hatched)
        across, below = ("layer", "head") if down else ("head", "layer")
        for j in (0, *range(4, 30, 5)) if down else range(9):
            x, y = left + side * j + seen / 2, top - rows * side - 0.08 if down else top + 0.1
            d.text((x, y), f"{across} 1" if j == 0 else str(j + 1), kind="muted")
        for i in range(rows):
            words = f"{below} 1" if i == 0 else str(i + 1)
            d.text((left - 0.07, top - side * i - seen / 2), words, kind="muted", align="right")
        if down:
            d.text((left, 0.1), "nearest to the words", kind="muted", align="left")
            d.text((wide, 0.1), "nearest to the answer", kind="muted", align="right")

    return picture


def sentence() -> Shown:
    """Draw the head of MiniLM's first layer from which a sentence of the reader's own starts."""
    pieces, weights = MiniLMLayer.load().read("i like to eat apple")[:2]
    return show_heatmaps(weights[10], pieces, figsize=(4.2, 3.4), show=False)


def block() -> Shown:
    """Draw where attention stands in a Transformer."""
    alt = (
        "A Transformer, read from the bottom up. Tokens become embeddings, to which positions are "
        "added. Then comes a block, repeated N times: the input is normalised, multi-head "
        "attention mixes the tokens, and its output is added to the input; the sum is normalised, "
        "a feed-forward layer works on each token alone, and its output is added again. The last "
        "step gives a score to every word that could come next."
    )

    @show_figure(canvas=True, width=4.4, height=5.4, alt=alt, show=False)
    def picture(ax):
        d = Diagram(ax)
        x, side, ink = 2.2, 3.65, tint(COLORS["ink"], 0.75)  # the colour of arrows
        d.text((x, 0.2), "tokens: i like to eat …")
        embedding = step(d, x, 0.75, "embedding + position")
        first = step(d, x, 1.55, "normalise", kind="muted")
        attend = step(d, x, 2.1, "multi-head attention")
        plus = d.box((x, 2.65), "+", width=0.4)
        second = step(d, x, 3.4, "normalise", kind="muted")
        forward = step(d, x, 3.95, "feed-forward layer")
        again = d.box((x, 4.5), "+", width=0.4)
        d.text((x, 5.2), "scores for the next token")
        parts = [embedding, first, attend, plus, second, forward, again]
        d.arrow((x, 0.3), embedding.bottom)
        for below, above in pairwise(parts):
            d.arrow(below.top, above.bottom)
        d.arrow(again.top, (x, 5.09))
        for start, end in ((1.12, plus), (2.97, again)):
            corner = (side, end.center[1])
            d.ax.plot([x, side, side], [start, start, corner[1]], color=ink, linewidth=1.2)
            d.arrow((side + 0.04, corner[1]), end.right, label="is added", side="right")
        d.bracket((0.75, 4.75), (0.75, 1.2), "N\ntimes")

    return picture


def step(d: Diagram, x: float, y: float, text: str, kind=None) -> Part:
    """Draw one step of a Transformer."""
    return d.box((x, y), text, kind=kind, width=2.3)


def measured() -> Shown:
    """Draw how the time grows with the tokens, as `make bench` has found it."""
    found = json.loads(MEASURED.read_text("utf8"))
    lengths, seconds = found["lengths"], found["seconds"]
    looks = {
        "attention": ("-o", "ink", "bottom"),
        "tiled_attention": ("--s", "ink", "top"),
        "linear_attention": ("-.^", "muted", "top"),
    }
    growth = {
        name: math.log(row[-1] / row[0]) / math.log(lengths[-1] / lengths[0])
        for name, row in seconds.items()
    }
    alt = f"Seconds against tokens, from {lengths[0]} to {lengths[-1]:,}. " + " ".join(
        f"{name} takes {row[0]:.2g} s at first and {row[-1]:.2g} s at last, so it grows as the "
        f"tokens to the power of {growth[name]:.1f}."
        for name, row in seconds.items()
    )

    @show_figure(width=5.2, height=3.4, alt=alt, show=False)
    def picture(ax):
        for name, (style, grey, side) in looks.items():
            ax.loglog(lengths, seconds[name], style, color=COLORS[grey])
            words = f"{name},\npower {growth[name]:.1f}"
            ax.text(1.2 * lengths[-1], seconds[name][-1], words, color=COLORS[grey], va=side)
        ax.set(xlabel="tokens", xlim=(0.85 * lengths[0], 3.4 * lengths[-1]))
        ax.set_ylim(top=3 * seconds["attention"][-1])
        ax.set_xticks(lengths, [f"{n:,}" for n in lengths])
        ax.set_yticks([1e-3, 1e-2, 1e-1], ["1 ms", "10 ms", "100 ms"])
        ax.minorticks_off()

    return picture


def heads() -> Shown:
    """Draw four heads of chapter 7's model, as the recipe with all heads does."""
    reading = load_readings()["Paris is in France. Rome is in"]
    return show_heatmaps(
        reading.weights[17:19, 6:8],
        reading.pieces,
        titles=[f"head {head}" for head in range(6, 8)],
        row_titles=["layer 17", "layer 18"],
        mask="causal",
        figsize=(5, 4.6),
        show=False,
    )


def steps() -> Shown:
    """Draw a head that reads a prompt of five tokens at once, and then one token at a time."""
    reading = load_readings()["Paris is in France. Rome is in"]
    weights = reading.weights[17, 8].astype(float)
    computed = np.tri(len(weights), dtype=bool)
    computed[:5, :5] = True
    return show_heatmaps(
        weights, reading.pieces, mask=computed, annot=False, figsize=(4.6, 3.7), show=False
    )
