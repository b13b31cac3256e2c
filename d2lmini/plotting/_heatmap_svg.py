"""The same heatmaps as SVG, written by hand: a panel is one small picture with a pixel a cell.

Drawing with matplotlib's own SVG writer takes ten times as long and as many bytes.
"""

import math
from typing import Any

import numpy as np
from matplotlib.colors import to_hex

from d2lmini.plotting._inputs import Bools, Floats
from d2lmini.plotting._layout import BAR_GAP, BAR_WIDTH, LABEL, NUMBER, PAD, TICK, TITLE, Layout
from d2lmini.plotting._picture import Palette, Picture
from d2lmini.plotting._svg import data_address, document, number, png, words
from d2lmini.plotting.theme import CSS_DPI, PNG_DPI

ASCENT, MIDDLE, DIGITS = 0.76, 0.26, 0.36  # of the size of a text: above its baseline


def heatmap_svg(picture: Picture, layout: Layout, palette: Palette) -> str:
    """Draw the picture in the colours of a page."""
    rows, columns, queries, keys = picture.words.shape
    masks: dict[bytes, str] = {}
    shapes: list[str] = []
    parts: list[str] = []
    table = palette.table(picture.cmap)
    cell = min(layout.cell)
    width, height = (number(side * CSS_DPI) for side in layout.panel)
    lines = _lines(layout, queries, keys) if cell >= 0.08 else ""
    if lines:
        thick = number(min(max(3 * cell, 0.3), 0.9) * CSS_DPI / 72)
        shapes.append(
            f'<path id="l" d="{lines}" fill="none" stroke="{palette.page}" stroke-width="{thick}"/>'
        )
    sharp = "pixelated" if cell >= 2 / CSS_DPI else "auto"  # smaller ones are averaged, not dropped
    for row, column in np.ndindex(rows, columns):
        x = (layout.left + column * (layout.panel[0] + layout.gap[0])) * CSS_DPI
        y = (layout.top + row * (layout.panel[1] + layout.gap[1])) * CSS_DPI
        visible = picture.visible[row, column]
        colors = cell_colors(picture.values[row, column], visible, picture, table, cell)
        inside = [
            f'<image width="{width}" height="{height}" preserveAspectRatio="none" '
            f'style="image-rendering:{sharp}" href="{data_address(png(colors), "image/png")}"/>'
        ]
        if lines:
            inside.append('<use href="#l"/>')
        if not visible.all():
            key = visible.tobytes()
            if key not in masks:
                masks[key] = f"k{len(masks)}"
                shapes.append(f'<path id="{masks[key]}" d="{_outline(~visible, layout)}"/>')
            name = masks[key]
            inside.append(f'<use href="#{name}" fill="{palette.masked}"/>')
            inside.append(f'<use href="#{name}" fill="url(#m)"/>')
        if picture.numbers is not None:
            texts = picture.numbers[row * columns + column]
            inside += _numbers(picture, layout, table, row, column, texts)
        parts.append(f'<g transform="translate({number(x)} {number(y)})">{"".join(inside)}</g>')
        if title := layout.titles[row][column]:
            up = PAD * 72 + 1.2 * layout.title_size * title.count("\n")
            middle = x + layout.panel[0] * CSS_DPI / 2
            parts.append(words(title, middle, y, layout.title_size, palette.ink, drop=-up))
        parts += _ticks(layout, palette, x, y, left=column == 0, bottom=row == rows - 1)
    if masks:
        step = "3.6" if cell < 0.2 else "4.3"
        shapes.append(
            f'<pattern id="m" width="{step}" height="{step}" patternUnits="userSpaceOnUse" '
            'patternTransform="rotate(45)">'
            f'<path d="M1.8 0V5" stroke="{palette.hatch}" stroke-width=".8"/></pattern>'
        )
    parts += _labels(layout, palette)
    if picture.words.bar_ticks:
        parts += _bar(picture, layout, palette)
    if shapes:
        parts.insert(0, f"<defs>{''.join(shapes)}</defs>")
    return document(layout.width, layout.height, palette.page, parts)


def cell_colors(values: Floats, visible: Bools, picture: Picture, table: Any, cell: float) -> Any:
    """Return one 8-bit colour per cell, (queries, keys, 3), or 4 where some are not visible."""
    values = np.where(visible, values, np.nan)
    step = math.floor(1 / PNG_DPI / cell + 1e-9)
    if step >= 2:  # finer than a screen can show: average blocks of cells
        queries, keys = (math.ceil(n / step) for n in values.shape)
        padded = np.full((queries * step, keys * step), np.nan)
        padded[: values.shape[0], : values.shape[1]] = values
        blocks = padded.reshape(queries, step, keys, step)
        seen = np.isfinite(blocks)
        count = seen.sum((1, 3))
        total = np.where(seen, blocks, 0.0).sum((1, 3))
        values = np.where(count > 0, total / np.maximum(count, 1), np.nan)
        visible = count > 0
    shares = picture.shares(np.where(visible, values, 0.0))
    index = np.minimum((shares * 256).astype(int), 255)
    colors = table[index]
    if visible.all():
        return colors
    return np.concatenate([colors, np.where(visible, 255, 0)[..., None].astype(np.uint8)], axis=-1)


def _lines(layout: Layout, queries: int, keys: int) -> str:
    """Return the gaps between cells as one path."""
    width, height = (side * CSS_DPI for side in layout.panel)
    across, down = width / keys, height / queries
    upright = [f"M{number(k * across)} 0V{number(height)}" for k in range(1, keys)]
    flat = [f"M0 {number(q * down)}H{number(width)}" for q in range(1, queries)]
    return "".join(upright + flat)


def _outline(cells: Bools, layout: Layout) -> str:
    """Return one rectangle around each run of cells in a row; equal rows below are one with it."""
    queries, keys = cells.shape
    across, down = layout.panel[0] * CSS_DPI / keys, layout.panel[1] * CSS_DPI / queries
    path, first = [], 0
    for row in range(queries):
        if row + 1 < queries and (cells[row + 1] == cells[row]).all():
            continue
        edges = np.flatnonzero(np.diff(np.concatenate([[False], cells[row], [False]]).astype(int)))
        top, bottom = number(first * down), number((row + 1) * down)
        for start, end in edges.reshape(-1, 2):
            left, right = number(start * across), number(end * across)
            path.append(f"M{left} {top}H{right}V{bottom}H{left}z")
        first = row + 1
    return "".join(path)


def _numbers(
    picture: Picture, layout: Layout, table: Any, row: int, column: int, texts: list[str]
) -> list[str]:
    values, visible = picture.values[row, column], picture.visible[row, column]
    across, down = (side * CSS_DPI for side in layout.cell)
    colors = map(to_hex, picture.number_colors(values[visible], table))
    found = []
    for (q, k), text, color in zip(np.argwhere(visible), texts, colors, strict=True):
        place = ((k + 0.5) * across, (q + 0.5) * down)
        found.append(words(text, *place, NUMBER, color, drop=DIGITS * NUMBER))
    return found


def _ticks(
    layout: Layout, palette: Palette, x: float, y: float, *, left: bool, bottom: bool
) -> list[str]:
    across, down = (side * CSS_DPI for side in layout.cell)
    below = y + (layout.panel[1] + PAD) * CSS_DPI
    found = []
    if bottom:
        angle = layout.xticks.angle
        for position, text in zip(layout.xticks.positions, layout.xticks.texts, strict=True):
            at = x + (position + 0.5) * across
            drop = (ASCENT if angle != 90 else MIDDLE) * TICK
            anchor = "end" if angle else "middle"
            found.append(
                words(text, at, below, TICK, palette.ink, anchor=anchor, turn=angle, drop=drop)
            )
    if left:
        at = x - PAD * CSS_DPI
        for position, text in zip(layout.yticks.positions, layout.yticks.texts, strict=True):
            line = y + (position + 0.5) * down
            found.append(words(text, at, line, TICK, palette.ink, anchor="end", drop=MIDDLE * TICK))
    return found


def _labels(layout: Layout, palette: Palette) -> list[str]:
    """Write the axis labels once, and the row titles."""
    found = []
    middle = (layout.top + layout.grid[1] / 2) * CSS_DPI
    if layout.xlabel:
        x = (layout.left + layout.grid[0] / 2) * CSS_DPI
        y = (layout.top + layout.grid[1] + layout.xlabel_y + PAD / 2) * CSS_DPI
        found.append(words(layout.xlabel, x, y, LABEL, palette.ink, drop=ASCENT * LABEL))
    if layout.ylabel:
        x = (layout.left - layout.ylabel_x) * CSS_DPI
        found.append(
            words(layout.ylabel, x, middle, LABEL, palette.ink, turn=90, drop=ASCENT * LABEL)
        )
    for row, title in enumerate(layout.row_titles):
        x = (layout.left - layout.row_title_x) * CSS_DPI
        y = layout.top + row * (layout.panel[1] + layout.gap[1]) + layout.panel[1] / 2
        found.append(words(title, x, y * CSS_DPI, TITLE, palette.ink, turn=90, drop=ASCENT * TITLE))
    return found


def _bar(picture: Picture, layout: Layout, palette: Palette) -> list[str]:
    """Draw the colour scale as a thin bar, as tall as the grid."""
    x = (layout.left + layout.grid[0] + BAR_GAP) * CSS_DPI
    y, height = layout.top * CSS_DPI, layout.grid[1] * CSS_DPI
    scale = palette.table(picture.cmap)[::-2][:, None]
    found = [
        f'<image x="{number(x)}" y="{number(y)}" width="{number(BAR_WIDTH * CSS_DPI)}" '
        f'height="{number(height)}" preserveAspectRatio="none" style="image-rendering:pixelated" '
        f'href="{data_address(png(scale), "image/png")}"/>'
    ]
    at = x + (BAR_WIDTH + PAD) * CSS_DPI
    for share, text in zip((1.0, 0.5, 0.0), picture.words.bar_ticks, strict=True):
        line = y + share * height
        found.append(words(text, at, line, TICK, palette.ink, anchor="start", drop=MIDDLE * TICK))
    if layout.bar_label:
        lines = layout.bar_label.count("\n") + 1
        at = (layout.left + layout.grid[0] + layout.bar_label_x) * CSS_DPI
        at -= (lines - 1) * 1.2 * TICK * CSS_DPI / 72 + (1 - ASCENT) * TICK * CSS_DPI / 72
        middle = y + height / 2
        found.append(words(layout.bar_label, at, middle, TICK, palette.ink, turn=90))
    return found
