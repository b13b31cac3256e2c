"""Where everything in a grid of heatmaps goes, in inches, from the measured width of its text."""

import math
from contextlib import suppress
from dataclasses import dataclass, replace

from d2lmini.plotting._text import (
    LINE,
    Size,
    block_height,
    block_width,
    points,
    shortened,
    text_width,
    wrap,
)
from d2lmini.plotting.theme import COLUMN, CSS_DPI, MAX_WIDTH, PNG_DPI

TICK, LABEL = Size(8.0, "xtick.labelsize"), Size(9.0, "axes.labelsize")
TITLE, NUMBER = Size(9.5, "axes.titlesize"), Size(8.0, "font.size")
EDGE = 0.05  # around the figure
PAD = 0.05  # between things that belong together
BAR_GAP, BAR_WIDTH = 0.14, 0.085
LONGEST = 2.0  # a longer tick label is cut
NAMED_CELL = 22 / PNG_DPI  # the smallest cell that can have its own tick label
NARROWEST = 0.12  # a panel below this is a smear
WIDEST_CELL = 0.66  # a larger cell says no more


@dataclass(frozen=True)
class Ticks:
    """Positions that get a label, the labels, and their angle."""

    positions: list[int]
    texts: list[str]
    angle: int = 0

    def longest(self) -> float:
        """Width of the widest label, in inches."""
        return max(text_width(text, TICK) for text in self.texts)


@dataclass(frozen=True)
class Words:
    """All the text around a grid of panels with ``rows`` x ``columns`` x ``queries`` x ``keys``."""

    shape: tuple[int, int, int, int]
    xlabel: str
    ylabel: str
    titles: list[list[str]]  # one per panel
    row_titles: list[str]
    xticks: list[str] | None
    yticks: list[str] | None
    bar_ticks: list[str]  # none: no colour bar
    bar_label: str


@dataclass(frozen=True)
class Layout:
    """Sizes and places in inches; ``left`` and ``top`` are the distances to the grid."""

    cell: tuple[float, float]  # width, height
    panel: tuple[float, float]
    gap: tuple[float, float]
    grid: tuple[float, float]
    left: float
    top: float
    width: float
    height: float
    xticks: Ticks
    yticks: Ticks
    xlabel: str
    ylabel: str
    titles: list[list[str]]
    title_size: Size
    row_titles: list[str]
    row_title_x: float  # distance of the row titles to the grid
    ylabel_x: float
    xlabel_y: float
    bar_label: str
    bar_label_x: float

    def box(self, row: int, column: int) -> tuple[float, float, float, float]:
        """Left, bottom, width and height of a panel, as fractions of the figure."""
        x = self.left + column * (self.panel[0] + self.gap[0])
        y = self.top + row * (self.panel[1] + self.gap[1])
        return self.fractions(x, y, *self.panel)

    def fractions(
        self, x: float, y: float, width: float, height: float
    ) -> tuple[float, float, float, float]:
        """Turn inches from the top left corner into fractions from the bottom left one."""
        across, up = self.width, self.height
        return x / across, 1 - (y + height) / up, width / across, height / up


def number_ticks(count: int, cell: float, *, across: bool) -> Ticks:
    """Count the cells 0, 1, 2 …, in round steps where they would touch."""
    room = 1.7 * points(TICK) / 72
    if across:
        room = max(room, text_width(str(count - 1), TICK) + 0.05)
    steps = (m * 10**e for e in range(9) for m in (1, 2, 5))
    step = next(s for s in steps if s * cell >= room or s >= count)
    positions = list(range(0, count, step))
    return Ticks(positions, [str(i) for i in positions])


def token_ticks(tokens: list[str], cell: float, *, across: bool) -> Ticks:
    """Label the cells; turn the labels, or leave some out, only where they do not fit.

    Numbers are never turned: what stands between two of them is known.
    """
    texts = [shortened(token, LONGEST, TICK) for token in tokens]
    angle, room = 0, 1.03 * points(TICK) / 72
    if across:
        widest = max(text_width(text, TICK) for text in texts)
        if widest <= cell - 0.04:
            room = 0.0
        elif all(text.isdecimal() for text in texts):
            room = widest + 0.05
        else:
            angle = 45 if cell >= 0.2 else 90
    step = max(1, math.ceil(room / cell - 1e-9))
    return Ticks(list(range(0, len(texts), step)), texts[::step], angle)


def measure(words: Words, cell: tuple[float, float]) -> Layout:
    """Lay out the grid around cells of a given width and height."""
    rows, columns, queries, keys = words.shape
    panel = _down(keys * cell[0]), _down(queries * cell[1])  # on whole pixels: all look the same
    xticks = (
        token_ticks(words.xticks, cell[0], across=True)
        if words.xticks
        else number_ticks(keys, cell[0], across=True)
    )
    yticks = (
        token_ticks(words.yticks, cell[1], across=False)
        if words.yticks
        else number_ticks(queries, cell[1], across=False)
    )

    # Titles: as wide as their panel, or wrapped; a long word pushes the panels apart a little.
    title_size = TITLE if columns <= 6 else TICK
    gap_x = min(0.12, max(0.04, 0.96 / columns)) if columns > 1 else 0.0
    room = panel[0] + gap_x - 0.06 if columns > 1 else max(panel[0], 3.2)
    longest = max(room, min(0.7, 4 / columns))
    titles = [[wrap(title, room, title_size, longest) for title in row] for row in words.titles]
    widest = max(block_width(title, title_size) for row in titles for title in row)
    if columns > 1:
        gap_x = max(gap_x, widest - panel[0] + 0.08)
    gap_x = _up(gap_x)
    tallest = [max(block_height(title, title_size) for title in row) for row in titles]
    inner = max(tallest[1:], default=0.0)
    gap_y = _up((0.12 if rows > 1 else 0.0) + (inner + PAD if inner else 0.0))
    grid = (
        columns * panel[0] + (columns - 1) * gap_x,
        rows * panel[1] + (rows - 1) * gap_y,
    )

    # To the left: tick labels, row titles, the label. Below: tick labels, the label.
    row_titles = [wrap(title, panel[1] + gap_y, TITLE) for title in words.row_titles]
    ylabel = wrap(words.ylabel, max(grid[1], 1.0), LABEL)
    xlabel = wrap(words.xlabel, max(grid[0], 2.4), LABEL)
    row_title_x = PAD + yticks.longest()
    beside = PAD
    if row_titles:
        row_title_x += PAD + max(block_height(title, TITLE) for title in row_titles)
    elif words.yticks and not all(name.isdecimal() for name in words.yticks):
        beside += PAD  # else the label and a long name next to it are read as one
    ylabel_x = row_title_x + (beside + block_height(ylabel, LABEL) if ylabel else 0.0)
    turn = math.radians(xticks.angle)
    line = points(TICK) * LINE
    xlabel_y = PAD + xticks.longest() * math.sin(turn) + line * math.cos(turn)
    below = xlabel_y + (PAD / 2 + block_height(xlabel, LABEL) if xlabel else 0.0)

    # To the right: the bar, its numbers, its label.
    bar_label_x, right, bar_label = 0.0, 0.0, ""
    if words.bar_ticks:
        bar_label = wrap(words.bar_label, max(grid[1], 1.0), TICK)
        numbers = max(text_width(text, TICK) for text in words.bar_ticks)
        bar_label_x = BAR_GAP + BAR_WIDTH + PAD + numbers
        right = bar_label_x
        if bar_label:
            bar_label_x += PAD + block_height(bar_label, TICK)
            right = bar_label_x

    # What is longer than the grid sticks out at both ends.
    label_out = (block_width(xlabel, LABEL) - grid[0]) / 2
    title_out = (widest - panel[0]) / 2
    last = xticks.positions[-1] + 0.5, xticks.texts[-1]
    tick_out = text_width(last[1], TICK) / 2 - (keys - last[0]) * cell[0]
    tilt_out = max(
        text_width(text, TICK) * math.cos(turn) - (position + 0.5) * cell[0]
        for position, text in zip(xticks.positions, xticks.texts, strict=True)
    )
    left = _up(EDGE + max(ylabel_x, label_out, title_out, tilt_out if xticks.angle == 45 else 0.0))
    right = EDGE + max(right, label_out, title_out, 0.0 if xticks.angle else tick_out)
    tall = [block_width(ylabel, LABEL), block_width(bar_label, TICK)]
    label_up = (max(tall) - grid[1]) / 2
    row_up = max((block_width(title, TITLE) - panel[1]) / 2 for title in row_titles or [""])
    first_title = tallest[0] + PAD if tallest[0] else 0.0
    top = _up(EDGE + max(first_title, line / 2, label_up, row_up))
    bottom = EDGE + max(below, label_up, row_up)

    return Layout(
        cell=cell,
        panel=panel,
        gap=(gap_x, gap_y),
        grid=grid,
        left=left,
        top=top,
        width=_up(left + grid[0] + right, CSS_DPI),
        height=_up(top + grid[1] + bottom, CSS_DPI),
        xticks=xticks,
        yticks=yticks,
        xlabel=xlabel,
        ylabel=ylabel,
        titles=titles,
        title_size=title_size,
        row_titles=row_titles,
        row_title_x=row_title_x,
        ylabel_x=ylabel_x,
        xlabel_y=xlabel_y,
        bar_label=bar_label,
        bar_label_x=bar_label_x,
    )


def fitting_layout(
    words: Words,
    figsize: tuple[float, float] | None,
    *,
    number_width: float = 0.0,
    most: float = MAX_WIDTH,
) -> Layout:
    """Find the cell size: square, as large as the page or the figure allows, on whole pixels.

    A long thin matrix is stretched until its short side can be seen. ``number_width`` is the width
    of the widest number to be written into a cell, ``most`` that of the page.

    Raises
    ------
    ValueError
        If the panels do not fit side by side.
    """
    if most > COLUMN and figsize is None:
        with suppress(ValueError):
            layout = fitting_layout(words, None, number_width=number_width, most=COLUMN)
            if not _leaves_names_out(words, layout):
                return layout
    rows, columns, queries, keys = words.shape
    shortest = min(0.3, 3.6 / columns)

    def laid_out(side: float) -> Layout:
        side = _down(side) if side >= 6 / PNG_DPI else side
        return measure(words, (max(side, shortest / keys), max(side, shortest / queries)))

    roomy = number_width + 0.18 if number_width else 0.0
    if figsize is None:
        named = NAMED_CELL if words.xticks or words.yticks else 0.0
        side = max(_wanted_side(*words.shape), named, roomy)
        limits = _down(most, CSS_DPI), math.inf
    else:
        side = min(figsize[0] / (columns * keys), figsize[1] / (rows * queries))
        limits = figsize
    layout = laid_out(side)
    for _ in range(8):  # the room that the text takes depends on the cells, and they on it
        over = max(
            (layout.width - limits[0]) / (columns * keys),
            (layout.height - limits[1]) / (rows * queries),
        )
        if over <= 1e-9:
            break
        whole = _down(side) if side >= 6 / PNG_DPI else side  # as laid out: each round counts
        side = max(whole - over, 1e-3)
        layout = laid_out(side)
    if figsize is not None:  # a minimum: what is in the figure may need more
        smallest = max(NARROWEST / max(queries, keys), number_width)
        if side < smallest:
            layout = laid_out(smallest)
    if layout.panel[0] < NARROWEST or (figsize is None and layout.width > most):
        panels = "columns of panels do" if columns > 1 else "column of panels does"
        raise ValueError(
            f"matrices: {columns} {panels} not fit side by side in {limits[0]:.3g} "
            f"inches; show fewer, such as matrices[:, :{max(1, columns // 2)}], give shorter "
            "titles and tick labels, or a larger figsize"
        )
    if figsize is None:
        return layout
    wider, higher = max(figsize[0] - layout.width, 0.0), max(figsize[1] - layout.height, 0.0)
    return replace(
        layout,
        width=layout.width + wider,
        height=layout.height + higher,
        left=layout.left + _down(wider / 2),
        top=layout.top + _down(higher / 2),
    )


def _leaves_names_out(words: Words, layout: Layout) -> bool:
    """Tell whether a little more width could give more cells their name.

    A number is known from its neighbours.
    """
    named = [(words.xticks, layout.xticks), (words.yticks, layout.yticks)]
    return any(
        names
        and len(ticks.texts) < len(names)
        and len(names) * NAMED_CELL <= MAX_WIDTH
        and not all(name.isdecimal() for name in names)
        for names, ticks in named
    )


def _wanted_side(rows: int, columns: int, queries: int, keys: int) -> float:
    """Return the side of a cell on a page with room enough: panels that fill the page's width.

    A single column of panels is lower than a screen, unless its cells would get too small.
    """
    length = max(queries, keys)
    if columns > 1:
        panel = {2: 2.5, 3: 2.0, 4: 1.55}.get(columns, 1.35)
        return min(panel / length, WIDEST_CELL)
    least = min(max(2.2, 0.035 * length), 4.8)  # many tokens get a larger panel
    return min(4.6 / keys, max(3.5 / (rows * queries), least / length), WIDEST_CELL)


def _up(inches: float, dpi: int = PNG_DPI) -> float:
    """Round up to a whole pixel."""
    return math.ceil(inches * dpi - 1e-6) / dpi


def _down(inches: float, dpi: int = PNG_DPI) -> float:
    """Round down to a whole pixel."""
    return math.floor(inches * dpi + 1e-6) / dpi
