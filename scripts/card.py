"""Draw chapters/_static/card.png, the picture of the book that the README and other sites show.

python scripts/card.py
"""

import sys
from pathlib import Path

import matplotlib
import numpy as np

from d2lmini import attention, dot_product_score
from d2lmini.plotting.theme import COLORS

matplotlib.use("agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

PICTURE = Path(__file__).resolve().parents[1] / "chapters" / "_static" / "card.png"
WIDTH, HEIGHT, DPI = 1200, 630, 100  # what other sites expect
QUERY = np.array([[2.0, 1.0]])  # the lookup of the first page
KEYS = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
VALUES = np.array([[20.0], [10.0], [40.0]])


def draw() -> Figure:
    """Return the picture: the title, and the lookup of the first page."""
    output, weights = attention(QUERY, KEYS, VALUES, score=dot_product_score)
    figure = plt.figure(figsize=(WIDTH / DPI, HEIGHT / DPI), dpi=DPI, facecolor=COLORS["page"])

    def write(x, y, text, color="ink", size=25, **how):
        figure.text(x / WIDTH, y / HEIGHT, text, color=COLORS[color], size=size, **how)

    write(70, 520, "Queries, Keys and Values", size=44, weight="bold")
    write(72, 455, "Attention, from a database lookup to a Transformer head", "muted", size=24)
    for x, name in ((72, "key"), (250, "weight"), (690, "value")):
        write(x, 370, name, name, size=20)
    write(72, 75, f"query ({QUERY[0, 0]:.0f}, {QUERY[0, 1]:.0f})", "query", weight="bold")
    write(690, 75, f"output {output[0, 0]:.2f}", "output", weight="bold")
    for row, (key, weight, value) in enumerate(zip(KEYS, weights[0], VALUES[:, 0], strict=True)):
        y = 305 - 70 * row
        write(72, y, f"({key[0]:.0f}, {key[1]:.0f})", "key")
        bar = Rectangle(
            (250 / WIDTH, (y - 6) / HEIGHT),
            400 * weight / WIDTH,
            34 / HEIGHT,
            color=COLORS["weight"],
            transform=figure.transFigure,
        )
        figure.add_artist(bar)
        write(262 + 400 * weight, y, f"{weight:.3f}", size=20)
        write(690, y, f"{value:.0f}", "value")
    return figure


def main(path: Path = PICTURE) -> None:
    """Write the picture, the same bytes every time."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        draw().savefig(path, metadata={"Software": None})
    plt.close("all")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
