"""What is to be drawn of a grid of heatmaps, and the colours of the page that it is drawn for."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.colors import Colormap, Normalize

from d2lmini.plotting._inputs import Bools, Floats
from d2lmini.plotting._layout import Words
from d2lmini.plotting._night import night
from d2lmini.plotting.theme import PALETTES, contrast, luminance

READABLE = 4.5  # WCAG 2: contrast of text


@dataclass(frozen=True)
class Palette:
    """The colours of a page: its ground, its text, and what a masked cell is made of."""

    page: str
    ink: str
    masked: str
    hatch: str

    def map_for(self, cmap: Colormap) -> Colormap:
        """Return the colour map as it is drawn on this page."""
        return night(cmap, self.page) if self is DARK else cmap

    def table(self, cmap: Colormap) -> Any:
        """Return the 256 colours from one end of the map to the other, 8 bits, (256, 3)."""
        colors = self.map_for(cmap)((np.arange(256) + 0.5) / 256)
        return (colors[:, :3] * 255).round().astype(np.uint8)


LIGHT = Palette(
    PALETTES["light"]["page"], PALETTES["light"]["ink"], masked="#f7f8f9", hatch="#c9ced5"
)
DARK = Palette(PALETTES["dark"]["page"], PALETTES["dark"]["ink"], masked="#181c21", hatch="#3c424b")


@dataclass(frozen=True)
class Picture:
    """All that is to be drawn."""

    values: Floats  # (rows, columns, queries, keys)
    visible: Bools  # the same shape: neither masked nor NaN nor -inf
    numbers: list[list[str]] | None  # one text per visible cell in each panel, in reading order
    norm: Normalize
    cmap: Colormap
    words: Words

    def shares(self, values: Any) -> Any:
        """Return where on the scale values lie, 0 to 1, without what differs in the last bits."""
        low, high = float(self.norm.vmin or 0.0), float(self.norm.vmax or 0.0)
        return np.round((np.asarray(values) - low) / (high - low), 6).clip(0, 1)

    def number_colors(self, values: Any, table: Any) -> list[tuple[float, float, float]]:
        """Return the colour of the text on each cell, given the map's colours; zeros are dimmed."""
        steps = np.minimum((self.shares(values) * 256).astype(int), 255)
        return [
            readable_on(tuple(table[step] / 255), dimmed=abs(value) < 0.005)
            for step, value in zip(steps.tolist(), values.tolist(), strict=True)
        ]


@lru_cache(maxsize=1024)
def readable_on(ground: tuple[float, ...], *, dimmed: bool) -> tuple[float, float, float]:
    """Black or white, whichever stands out more; or the greyest text that can be read."""
    best = (0.0, 0.0, 0.0) if luminance(ground) > 0.179 else (1.0, 1.0, 1.0)
    if dimmed:
        for share in (0.6, 0.5, 0.4, 0.3, 0.2, 0.1):
            red, green, blue = (
                share * g + (1 - share) * b for g, b in zip(ground[:3], best, strict=True)
            )
            if contrast((red, green, blue), ground) >= READABLE + 0.1:
                return red, green, blue
    return best
