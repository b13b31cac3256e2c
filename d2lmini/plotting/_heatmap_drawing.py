"""A grid of heatmaps drawn with matplotlib, in the colours of the page that is drawn for."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.ticker import NullLocator

from d2lmini.plotting._dark_maps import dark_map
from d2lmini.plotting._heatmap_layout import (
    BAR_GAP,
    BAR_WIDTH,
    LABEL,
    NUMBER,
    PAD,
    TICK,
    TITLE,
    Layout,
    Words,
)
from d2lmini.plotting._inputs import Bools, Floats
from d2lmini.plotting._text import points, put_in_middle
from d2lmini.plotting.theme import COLORS, PALETTES, PNG_DPI, contrast, hatch_color, luminance

READABLE = 4.5  # WCAG 2: contrast of text
GAPS_FROM = 0.08  # inches: smaller cells have no lines between them


class SteadyScale(Normalize):
    """A colour scale that gives one colour to numbers that differ in their last bits only."""

    def __call__(self, value: Any, clip: bool | None = None) -> Any:
        """Return where on the scale values lie, 0 to 1."""
        return np.ma.round(super().__call__(value, clip), 6)  # type: ignore[no-untyped-call]


class SteadyLogScale(LogNorm):
    """The same with equal steps for equal factors; 0 has the colour of the low end."""

    def __call__(self, value: Any, clip: bool | None = None) -> Any:
        """Return where on the scale values lie, 0 to 1."""
        raised = np.ma.maximum(value, self.vmin or 0.0)
        return np.ma.round(super().__call__(raised, clip), 6)  # type: ignore[no-untyped-call]


@dataclass(frozen=True)
class Picture:
    """All that is to be drawn."""

    values: Floats  # (rows, columns, queries, keys)
    visible: Bools  # the same shape: neither masked nor NaN nor -inf
    numbers: list[list[str]] | None  # one text per visible cell in each panel, in reading order
    scale: Normalize
    cmap: Colormap
    words: Words
    layout: Layout
    count: int  # of panels; the last row of wrapped ones may have fewer
    reduce: str  # "max" or "mean": of the numbers that share a pixel

    def empty(self) -> tuple[Figure, Any]:
        """Return a figure with one empty panel for each matrix."""
        layout = self.layout
        figure = Figure(figsize=(layout.width, layout.height))
        figure.set_layout_engine("none")
        FigureCanvasAgg(figure)
        rows, columns, _, _ = self.words.shape
        axes = np.empty((rows, columns), dtype=object)
        for row, column in np.ndindex(rows, columns):
            axes[row, column] = figure.add_axes(layout.box(row, column), frameon=False)
        return figure, axes

    def draw(self, *panels: Axes) -> None:
        """Fill the panels, and write what stands around them."""
        columns = self.words.shape[1]
        cmap = dark_map(self.cmap) if COLORS["page"] != PALETTES["light"]["page"] else self.cmap
        for ax in panels[self.count :]:
            ax.set_axis_off()
        for i, ax in enumerate(panels[: self.count]):
            row, column = divmod(i, columns)
            _draw_cells(ax, self, cmap, row, column)
            _write_ticks(ax, self, left=column == 0, bottom=i + columns >= self.count)
        figure = cast("Figure", panels[0].figure)
        _write_labels(figure, self)
        if self.words.bar_ticks:
            _draw_bar(figure, self, cmap)

    def draw_on(self, ax: Axes) -> None:
        """Draw the one panel into a figure that somebody else has made."""
        _draw_cells(ax, self, self.cmap, 0, 0)
        _write_ticks(ax, self, left=True, bottom=True)
        ax.set_xlabel(self.layout.xlabel, color=axis_color(self.layout.xlabel), parse_math=False)
        ax.set_ylabel(self.layout.ylabel, color=axis_color(self.layout.ylabel), parse_math=False)


def _draw_cells(ax: Axes, picture: Picture, cmap: Colormap, row: int, column: int) -> None:
    """Draw one matrix and write its title; what is masked lets the hatched ground be seen."""
    values, visible = picture.values[row, column], picture.visible[row, column]
    layout, (queries, keys) = picture.layout, values.shape
    cell = min(layout.cell)
    if not visible.all():
        _draw_hatch(ax, keys, queries, "/////" if cell >= 0.2 else "//////")
    shared = cell < 1 / PNG_DPI
    numbers = np.ma.array(values, mask=~visible)
    if shared and picture.reduce == "max":
        numbers, shared = _largest(numbers, layout.cell), False
    ax.imshow(
        numbers,
        cmap=cmap,
        norm=picture.scale,
        # Numbers that share a pixel are averaged; none is dropped.
        interpolation="antialiased" if shared else "none",
        interpolation_stage="data",
        aspect="auto",
        extent=(-0.5, keys - 0.5, queries - 0.5, -0.5),
    )
    ax.grid(visible=False)
    if cell >= GAPS_FROM and values.size > 1:
        width = min(max(3 * cell, 0.3), 0.9)
        gaps = _gaps(queries, keys)
        ax.add_artist(PathPatch(gaps, fill=False, edgecolor=COLORS["page"], linewidth=width))
    if picture.numbers is not None:
        texts = picture.numbers[row * picture.words.shape[1] + column]
        _write_numbers(ax, picture, cmap, values, visible, texts)
    if title := layout.titles[row][column]:
        style: dict[str, Any] = {"fontsize": points(layout.title_size), "pad": PAD * 72, "y": 1.0}
        ax.set_title(title, parse_math=False, **style)


def _largest(numbers: Any, cell: tuple[float, float]) -> Any:
    """Return the number of largest size in each block of cells that shares a pixel."""
    for axis, side in ((1, cell[0]), (0, cell[1])):
        block = math.ceil(1 / PNG_DPI / side - 1e-9)
        starts = np.arange(0, numbers.shape[axis], block)
        high = np.fmax.reduceat(numbers.filled(np.nan), starts, axis=axis)
        low = np.fmin.reduceat(numbers.filled(np.nan), starts, axis=axis)
        numbers = np.ma.masked_invalid(np.where(abs(low) > abs(high), low, high))
    return numbers


def _draw_hatch(ax: Axes, keys: int, queries: int, hatch: str) -> None:
    """Draw the ground that is seen through masked cells."""
    import matplotlib

    lines = hatch_color()
    with matplotlib.rc_context({"hatch.color": lines}):  # older versions take the edge's
        ground = Rectangle(
            (-0.5, -0.5),
            keys,
            queries,
            facecolor="none",
            edgecolor=lines,
            linewidth=0,
            hatch=hatch,
        )
    ground.set_zorder(-1)
    ax.add_artist(ground)


@lru_cache(maxsize=16)
def _gaps(queries: int, keys: int) -> Path:
    """Return the lines between the cells."""
    lines = [((k - 0.5, -0.5), (k - 0.5, queries - 0.5)) for k in range(1, keys)]
    lines += [((-0.5, q - 0.5), (keys - 0.5, q - 0.5)) for q in range(1, queries)]
    ends = [end for line in lines for end in line]
    return Path(ends, [Path.MOVETO, Path.LINETO] * len(lines))


def _write_numbers(
    ax: Axes, picture: Picture, cmap: Colormap, values: Floats, visible: Bools, texts: list[str]
) -> None:
    """Write a number into each visible cell, dimmed where it is 0."""
    grounds = cmap(np.asarray(picture.scale(values[visible])))[:, :3].round(6)
    for (query, key), text, ground in zip(np.argwhere(visible), texts, grounds, strict=True):
        color = readable_on(tuple(ground.tolist()), dimmed=abs(values[query, key]) < 0.005)
        put_in_middle(ax, key, query, text, size=points(NUMBER), color=color, parse_math=False)


@lru_cache(maxsize=1024)
def readable_on(ground: tuple[float, ...], *, dimmed: bool) -> tuple[float, float, float]:
    """Black or white, whichever stands out more; or the greyest text that can be read."""
    best = (0.0, 0.0, 0.0) if luminance(ground) > 0.179 else (1.0, 1.0, 1.0)
    if dimmed:
        for share in (0.6, 0.5, 0.4, 0.3, 0.2, 0.1):
            red, green, blue = (
                share * g + (1 - share) * b for g, b in zip(ground, best, strict=True)
            )
            if contrast((red, green, blue), ground) >= READABLE + 0.1:
                return red, green, blue
    return best


def axis_color(label: str) -> str:
    """Return the colour of queries or of keys, where a label speaks of them.

    >>> axis_color("Keys") == COLORS["key"], axis_color("Position") == COLORS["ink"]
    (True, True)
    """
    said = label.lower()
    return COLORS["query" if "quer" in said else "key" if "key" in said else "ink"]


def _write_ticks(ax: Axes, picture: Picture, *, left: bool, bottom: bool) -> None:
    """Label the ticks of the outer panels; a tick is a label without a mark."""
    if not (left or bottom):
        ax.set_axis_off()
    layout, words = picture.layout, picture.words
    style: dict[str, Any] = {"length": 0, "pad": PAD * 72, "labelsize": points(TICK)}
    if bottom:
        angle = layout.xticks.angle
        tilted: dict[str, Any] = {"ha": "right", "rotation_mode": "anchor"} if angle == 45 else {}
        ax.tick_params(axis="x", labelcolor=axis_color(words.xlabel), **style)
        turned = tilted | {"rotation": angle, "parse_math": False}
        ax.set_xticks(layout.xticks.positions, labels=layout.xticks.texts, **turned)
    else:
        ax.xaxis.set_major_locator(NullLocator())
    if left:
        ax.tick_params(axis="y", labelcolor=axis_color(words.ylabel), **style)
        ax.set_yticks(layout.yticks.positions, labels=layout.yticks.texts, parse_math=False)
    else:
        ax.yaxis.set_major_locator(NullLocator())


def _write_labels(figure: Figure, picture: Picture) -> None:
    """Write the axis labels once, centred on the grid, and the row titles."""
    layout = picture.layout
    width, height = layout.width, layout.height
    turned: dict[str, Any] = {
        "parse_math": False,
        "rotation": 90,
        "va": "center",
        "ha": "left",
        "multialignment": "center",
    }
    middle = 1 - (layout.top + layout.grid[1] / 2) / height
    if layout.xlabel:
        x = (layout.left + layout.grid[0] / 2) / width
        y = 1 - (layout.top + layout.grid[1] + layout.xlabel_y + PAD / 2) / height
        style: dict[str, Any] = {"va": "top", "ha": "center", "parse_math": False}
        color = axis_color(layout.xlabel)
        figure.supxlabel(layout.xlabel, x=x, y=y, color=color, fontsize=points(LABEL), **style)
    if layout.ylabel:
        x = (layout.left - layout.ylabel_x) / width
        color = axis_color(layout.ylabel)
        figure.supylabel(
            layout.ylabel, x=x, y=middle, color=color, fontsize=points(LABEL), **turned
        )
    for row, title in enumerate(layout.row_titles):
        x = (layout.left - layout.row_title_x) / width
        y = layout.top + row * (layout.panel[1] + layout.gap[1]) + layout.panel[1] / 2
        figure.text(x, 1 - y / height, title, fontsize=points(TITLE), **turned)


def _draw_bar(figure: Figure, picture: Picture, cmap: Colormap) -> None:
    """Draw the colour scale as a thin bar, as tall as the grid."""
    layout = picture.layout
    x = layout.left + layout.grid[0] + BAR_GAP
    place = layout.fractions(x, layout.top, BAR_WIDTH, layout.grid[1])
    ax = figure.add_axes(place, frameon=False)
    low, high = float(picture.scale.vmin or 0.0), float(picture.scale.vmax or 0.0)
    if isinstance(picture.scale, LogNorm):
        low, high = math.log10(low), math.log10(high)
        steps = np.logspace(high, low, 128)
    else:
        steps = np.linspace(high, low, 128)
    ax.imshow(
        steps[:, None],
        cmap=cmap,
        norm=picture.scale,
        interpolation="none",
        aspect="auto",
        extent=(0, 1, low, high),
    )
    ax.grid(visible=False)
    ax.xaxis.set_visible(False)
    ax.yaxis.tick_right()
    ax.tick_params(length=0, pad=PAD * 72, labelsize=points(TICK))
    ax.set_yticks([low, (low + high) / 2, high], labels=picture.words.bar_ticks, parse_math=False)
    if layout.bar_label:
        figure.text(
            (layout.left + layout.grid[0] + layout.bar_label_x) / layout.width,
            1 - (layout.top + layout.grid[1] / 2) / layout.height,
            layout.bar_label,
            rotation=90,
            ha="right",
            va="center",
            multialignment="center",
            fontsize=points(TICK),
            parse_math=False,
        )
