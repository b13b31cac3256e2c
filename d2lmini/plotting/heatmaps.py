"""Attention weights as a grid of heatmaps that share one colour scale."""

import d2lmini.plotting._matplotlib  # noqa: F401

# isort: split

import difflib
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from d2lmini.plotting import _inputs as inputs
from d2lmini.plotting._describe import describe, minus, numbers_table, short, two
from d2lmini.plotting._heatmap_svg import heatmap_svg
from d2lmini.plotting._inputs import Bools, Floats
from d2lmini.plotting._layout import (
    BAR_GAP,
    BAR_WIDTH,
    LABEL,
    NUMBER,
    PAD,
    TICK,
    TITLE,
    Layout,
    Words,
    plan,
    text_width,
)
from d2lmini.plotting._picture import DARK, LIGHT, Palette, Picture
from d2lmini.plotting.shown import Shown
from d2lmini.plotting.theme import PNG_DPI, book_style

__all__ = ["show_heatmaps"]


def show_heatmaps(
    matrices: Any,
    xlabel: str,
    ylabel: str,
    titles: Sequence[Any] | None = None,
    figsize: tuple[float, float] | None = None,
    cmap: str | Colormap = "Reds",
    *,
    row_titles: Sequence[Any] | None = None,
    xticks: Sequence[Any] | None = None,
    yticks: Sequence[Any] | None = None,
    annot: bool | str = "auto",
    mask: Any = None,
    vmin: float | None = None,
    vmax: float | None = None,
    colorbar: bool = True,
    label: str | None = None,
    alt: str | None = None,
    show: bool = True,
) -> Shown:
    r"""Show a grid of matrices as heatmaps, all on one colour scale.

    The scale goes from 0 to 1 for weights. If no weight is above 0.2 it ends at the next of 0.01,
    0.02, 0.05, 0.1, 0.2, and the colour bar says so. With negative numbers it is symmetric about 0;
    with numbers above 1 it goes from 0 to the largest. Masked cells never count.

    .. math:: \text{colour}(w) = \text{cmap}\!\left(\frac{w - v_{\min}}{v_{\max} - v_{\min}}\right)

    Parameters
    ----------
    matrices : array, tensor or list, shape (rows, columns, queries, keys)
        The numbers. (columns, queries, keys) is one row of panels, (queries, keys) one panel.
        Any real type on any device, with or without gradients. NaN, -inf and the masked cells of a
        NumPy masked array are drawn as masked.
    xlabel, ylabel : str
        What the keys and the queries are; written once for all panels. As all text here, they are
        taken as they are: ``$`` starts no formula.
    titles : list of str, optional
        One per column, one per panel, or a list of rows.
    figsize : (float, float), optional
        The least width and height, in inches. Without it, the figure is at most 6.4 inches wide.
    cmap : str or matplotlib colour map
        One hue cannot show a sign: where numbers are negative, ``"Reds"`` gives way to
        ``"RdBu_r"``, with red above 0 and blue below. Other maps are used as given.
    row_titles : list of str, optional
        One per row of panels, at its left.
    xticks, yticks : list of str, optional
        One label per key, one per query, such as tokens. Spaces at their ends are made visible;
        labels are turned, or some left out, only where they do not fit.
    annot : "auto" or bool
        Whether to write the number into each cell; "auto" does for one or two small matrices.
    mask : boolean array or "causal", optional
        True = may attend; broadcasts to `matrices`. Masked cells are hatched, so they do not look
        like a weight of 0. "causal" lets the last query see every key.
    vmin, vmax : float, optional
        Ends of the colour scale. Numbers beyond get the colour of the end, and the bar says so.
    colorbar : bool
        Whether to draw the bar that explains the colours.
    label : str, optional
        What the colours stand for; written along the bar.
    alt : str, optional
        A description for those who do not see the picture; generated if not given.
    show : bool
        Whether to put the figure on the page now, if this runs in a notebook.

    Returns
    -------
    Shown
        With ``.figure``, ``.axes`` of shape (rows, columns), ``.alt`` and ``.savefig``.

    Warns
    -----
    RowSumWarning
        If the numbers look like weights (all from 0 to 1, and not only 0 and 1) and a row sums to
        neither 1 nor 0, more than rounding explains. It is drawn as it is. To turn it off, as for
        numbers that are no weights: ``warnings.simplefilter("ignore", RowSumWarning)``.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind, such as a mask that is not boolean.
    ValueError
        If `matrices` is not 2-D to 4-D, is empty, holds +inf or a number beyond 1e300; if a mask
        does not broadcast; if there are too few or too many titles or labels; if the panels do not
        fit side by side; if `vmin` is not below `vmax`.

    Notes
    -----
    Cells are square, except that a long thin matrix is stretched until its short side can be seen.
    Numbers that share a pixel, in a matrix of about a thousand keys or more, are averaged.
    The picture is drawn for a light page and for a dark one; a folded table with the numbers of one
    small panel follows it. The description names what is there: an identity, a uniform matrix, a
    causal mask, the strongest key of each query, keys that are equally strong.
    The argument order is that of ``d2l.show_heatmaps`` (Zhang et al., 2023).

    Examples
    --------
    >>> import numpy as np
    >>> shown = show_heatmaps(np.eye(10).reshape(1, 1, 10, 10), xlabel="Keys", ylabel="Queries")
    >>> print(shown.alt.replace(". ", ".\n"))
    Heatmap of 10 × 10 values (Queries × Keys), from 0 to 1.
    Identity: 1 on the diagonal, 0 elsewhere.
    >>> shown.axes.shape
    (1, 1)
    """
    values, allowed = inputs.read_matrices(matrices)
    visible = allowed & inputs.read_mask(mask, values.shape)
    rows, columns, queries, keys = values.shape
    seen = values[visible]
    if inputs.looks_like_weights(seen):
        rounding = min(max(0.02, 0.005 * keys), 0.1)  # two decimals are enough
        inputs.warn_of_sums(values, visible, "matrices", rounding)
    limits = inputs.scale_limits(seen, vmin, vmax)
    if annot is not True and annot is not False and annot != "auto":
        raise ValueError(f"annot must be True, False or 'auto'; got {annot!r}")
    alt = inputs.read_alt(alt)
    words = Words(
        shape=(rows, columns, queries, keys),
        xlabel=inputs.read_text(xlabel, "xlabel"),
        ylabel=inputs.read_text(ylabel, "ylabel"),
        titles=inputs.read_titles(titles, rows, columns),
        row_titles=inputs.read_row_titles(row_titles, rows),
        xticks=inputs.read_tokens(xticks, keys, "xticks", "key"),
        yticks=inputs.read_tokens(yticks, queries, "yticks", "query"),
        bar_ticks=_bar_ticks(limits, seen) if colorbar else [],
        bar_label="" if label is None else inputs.read_text(label, "label"),
    )
    few = rows * columns <= 2 and queries * keys <= 64
    numbers = _numbers(values, visible) if annot is True or (annot == "auto" and few) else None
    widest = max((text_width(text, NUMBER) for panel in numbers or [] for text in panel), default=0)

    with book_style():
        layout = plan(words, inputs.read_size(figsize), number_width=widest)
        if numbers is not None and widest + 0.04 > layout.cell[0]:
            if annot is True:
                raise ValueError(
                    f"annot=True needs cells {widest + 0.04:.2f} inches wide; {columns} x {keys} "
                    f"keys leave {layout.cell[0]:.2f}; give a larger figsize or annot=False"
                )
            numbers = None
        picture = Picture(
            values=values,
            visible=visible,
            numbers=numbers,
            norm=Normalize(*limits),
            cmap=_colour_map(cmap, signed=limits[0] < 0 < limits[1]),
            words=words,
        )
        figure, axes = _draw(picture, layout, LIGHT)

    shown = Shown(
        figure,
        axes,
        alt or describe(values, visible, words),
        lambda theme: heatmap_svg(picture, layout, DARK if theme == "dark" else LIGHT),
        numbers_table(values, visible, words),
    )
    if show:
        shown.show()
    return shown


def _draw(picture: Picture, layout: Layout, palette: Palette) -> tuple[Figure, Any]:
    """Draw the picture in the colours of a page; call it inside ``book_style()``."""
    figure = Figure(figsize=(layout.width, layout.height), facecolor=palette.page)
    FigureCanvasAgg(figure)
    rows, columns, _, _ = picture.words.shape
    axes = np.empty((rows, columns), dtype=object)
    for row, column in np.ndindex(rows, columns):
        ax = axes[row, column] = figure.add_axes(layout.box(row, column))
        _draw_panel(ax, picture, layout, palette, row, column)
        _draw_ticks(ax, layout, palette, left=column == 0, bottom=row == rows - 1)
    _draw_labels(figure, layout, palette)
    if picture.words.bar_ticks:
        _draw_bar(figure, picture, layout, palette)
    return figure, axes


def _draw_panel(
    ax: Axes, picture: Picture, layout: Layout, palette: Palette, row: int, column: int
) -> None:
    values, visible = picture.values[row, column], picture.visible[row, column]
    queries, keys = values.shape
    cell = min(layout.cell)
    ax.imshow(
        np.ma.array(values, mask=~visible),
        cmap=picture.cmap,
        norm=picture.norm,
        # Numbers that share a pixel are averaged; none is dropped.
        interpolation="none" if cell >= 1 / PNG_DPI else "antialiased",
        interpolation_stage="data",
        aspect="auto",
    )
    ax.set_facecolor("none")
    ax.spines[:].set_visible(False)
    if cell >= 0.08:
        lines = [((k - 0.5, -0.5), (k - 0.5, queries - 0.5)) for k in range(1, keys)]
        lines += [((-0.5, q - 0.5), (keys - 0.5, q - 0.5)) for q in range(1, queries)]
        if lines:
            ends = [end for line in lines for end in line]
            path = Path(ends, [Path.MOVETO, Path.LINETO] * len(lines))
            width = min(max(3 * cell, 0.3), 0.9)
            ax.add_artist(PathPatch(path, fill=False, edgecolor=palette.page, linewidth=width))
    if not visible.all():
        ax.add_artist(
            PathPatch(
                _outline(~visible),
                facecolor=palette.masked,
                edgecolor=palette.hatch,
                linewidth=0,
                hatch="/////" if cell >= 0.2 else "//////",
            )
        )
    if picture.numbers is not None:
        texts = picture.numbers[row * picture.words.shape[1] + column]
        colors = picture.number_colors(values[visible], palette.table(picture.cmap))
        for (q, k), text, color in zip(np.argwhere(visible), texts, colors, strict=True):
            ax.text(
                k,
                q,
                text,
                ha="center",
                va="center_baseline",
                fontsize=NUMBER,
                color=color,
                parse_math=False,
            )
    title = layout.titles[row][column]
    if title:
        ax.set_title(
            title,
            fontsize=layout.title_size,
            color=palette.ink,
            pad=PAD * 72,
            y=1.0,
            parse_math=False,
        )


def _outline(cells: Bools) -> Path:
    """Return one rectangle around each run of cells in a row."""
    vertices: list[tuple[float, float]] = []
    codes: list[Any] = []
    for y, row in enumerate(cells):
        edges = np.flatnonzero(np.diff(np.concatenate([[False], row, [False]]).astype(int)))
        for start, end in edges.reshape(-1, 2) - 0.5:
            low, high = y - 0.5, y + 0.5
            vertices += [(start, low), (end, low), (end, high), (start, high), (start, low)]
            codes += [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    return Path(vertices, codes)


def _draw_ticks(ax: Axes, layout: Layout, palette: Palette, *, left: bool, bottom: bool) -> None:
    """Label the ticks of the outer panels; a tick is a label without a mark."""
    ax.tick_params(
        length=0, pad=PAD * 72, labelsize=TICK, labelcolor=palette.ink, bottom=False, left=False
    )
    if bottom:
        angle = layout.xticks.angle
        tilted: dict[str, Any] = {"ha": "right", "rotation_mode": "anchor"} if angle == 45 else {}
        ax.set_xticks(
            layout.xticks.positions,
            labels=layout.xticks.texts,
            rotation=angle,
            parse_math=False,
            **tilted,
        )
    else:
        ax.set_xticks([])
    if left:
        ax.set_yticks(layout.yticks.positions, labels=layout.yticks.texts, parse_math=False)
    else:
        ax.set_yticks([])


def _draw_labels(figure: Figure, layout: Layout, palette: Palette) -> None:
    """Write the axis labels once, centred on the grid, and the row titles."""
    width, height = layout.width, layout.height
    style: dict[str, Any] = {"color": palette.ink, "parse_math": False, "ha": "center"}
    turned: dict[str, Any] = style | {
        "rotation": 90,
        "va": "center",
        "ha": "left",
        "multialignment": "center",
    }
    middle = 1 - (layout.top + layout.grid[1] / 2) / height
    if layout.xlabel:
        x = (layout.left + layout.grid[0] / 2) / width
        y = 1 - (layout.top + layout.grid[1] + layout.xlabel_y + PAD / 2) / height
        figure.supxlabel(layout.xlabel, x=x, y=y, va="top", fontsize=LABEL, **style)
    if layout.ylabel:
        x = (layout.left - layout.ylabel_x) / width
        figure.supylabel(layout.ylabel, x=x, y=middle, fontsize=LABEL, **turned)
    for row, title in enumerate(layout.row_titles):
        x = (layout.left - layout.row_title_x) / width
        y = layout.top + row * (layout.panel[1] + layout.gap[1]) + layout.panel[1] / 2
        figure.text(x, 1 - y / height, title, fontsize=TITLE, **turned)


def _draw_bar(figure: Figure, picture: Picture, layout: Layout, palette: Palette) -> None:
    """Draw the colour scale as a thin bar, as tall as the grid."""
    x = layout.left + layout.grid[0] + BAR_GAP
    ax = figure.add_axes(layout.fractions(x, layout.top, BAR_WIDTH, layout.grid[1]))
    low, high = float(picture.norm.vmin or 0.0), float(picture.norm.vmax or 0.0)
    ax.imshow(
        np.linspace(high, low, 256)[:, None],
        cmap=picture.cmap,
        norm=picture.norm,
        interpolation="none",
        aspect="auto",
        extent=(0, 1, low, high),
    )
    ax.spines[:].set_visible(False)
    ax.set_xticks([])
    ax.yaxis.tick_right()
    ax.tick_params(length=0, pad=PAD * 72, labelsize=TICK, labelcolor=palette.ink)
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
            fontsize=TICK,
            color=palette.ink,
            parse_math=False,
        )


def _colour_map(cmap: Any, *, signed: bool) -> Colormap:
    if isinstance(cmap, Colormap):
        return cmap
    if not isinstance(cmap, str):
        raise TypeError(f"cmap must be a name or a matplotlib colour map; got {cmap!r}")
    if cmap not in matplotlib.colormaps:
        near = difflib.get_close_matches(cmap, list(matplotlib.colormaps), n=1) or ["Reds"]
        raise ValueError(f"cmap: there is no colour map {cmap!r}; did you mean {near[0]!r}?")
    return matplotlib.colormaps["RdBu_r" if signed and cmap == "Reds" else cmap]


def _numbers(values: Floats, visible: Bools) -> list[list[str]]:
    """Return the texts of the visible cells of each panel: two decimals, none for whole numbers."""
    seen = values[visible].round(6)
    decimals = 0 if np.array_equal(seen, seen.round()) else 2
    panels = zip(
        values.reshape(-1, *values.shape[2:]), visible.reshape(-1, *values.shape[2:]), strict=True
    )
    return [
        [
            two(value)
            if abs(value) >= 1e6
            else minus(f"{value:.{decimals if abs(value) < 100 else 0}f}")
            for value in panel[shown].round(6)
        ]
        for panel, shown in panels
    ]


def _bar_ticks(limits: tuple[float, float], seen: Floats) -> list[str]:
    """Return the texts of the lowest, middle and highest tick, with a sign if numbers lie beyond.

    >>> _bar_ticks((0.0, 0.5), np.array([0.1, 0.7]))
    ['0', '0.25', '≥ 0.5']
    """
    low, high = limits
    below = "≤ " if seen.size and seen.min() < low - 0.005 * (high - low) else ""
    above = "≥ " if seen.size and seen.max() > high + 0.005 * (high - low) else ""
    return [below + short(low), short((low + high) / 2), above + short(high)]
