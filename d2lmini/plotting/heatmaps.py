"""Attention weights as a grid of heatmaps that share one colour scale."""

import d2lmini.plotting._matplotlib  # noqa: F401

# isort: split

import difflib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import Colormap

from d2lmini.plotting import _inputs as inputs
from d2lmini.plotting._dark_maps import weight_map
from d2lmini.plotting._describe import (
    describe,
    numbers_table,
    three_digits,
    true_minus,
    two_decimals,
)
from d2lmini.plotting._heatmap_drawing import Picture, SteadyScale
from d2lmini.plotting._heatmap_layout import NUMBER, Words, fitting_layout
from d2lmini.plotting._inputs import Bools, Floats
from d2lmini.plotting._text import text_width
from d2lmini.plotting.figures import draw_twice
from d2lmini.plotting.shown import Shown
from d2lmini.plotting.theme import PHONE

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
        The least width and height, in inches. Without it, the figure is 5.4 inches wide at
        most, or 6.4 where that is too little.
    cmap : str or matplotlib colour map
        ``"Reds"`` is the ramp that weights have everywhere in the book. One hue cannot show a
        sign: where numbers are negative, it gives way to ``"RdBu_r"``, with red above 0 and blue
        below. Other maps are used as given.
    row_titles : list of str, optional
        One per row of panels, at its left.
    xticks, yticks : list of str, optional
        One label per key, one per query, such as tokens. Spaces at their ends are made visible;
        labels are turned, or some left out, only where they do not fit. Numbers are not turned.
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

    layout = fitting_layout(words, inputs.read_size(figsize), number_width=widest)
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
        scale=SteadyScale(*limits),
        cmap=_colour_map(cmap, signed=limits[0] < 0 < limits[1]),
        words=words,
        layout=layout,
        count=rows * columns,
    )
    alt = alt or describe(values, visible, words)
    more = numbers_table(values, visible, words)
    shown = draw_twice(picture.draw, picture.empty, alt, more)
    if layout.width > PHONE and (small := _wrapped(picture, widest)):
        shown.narrow = draw_twice(small.draw, small.empty, alt)
    if show:
        shown.show()
    return shown


def _wrapped(picture: Picture, number_width: float) -> Picture | None:
    """Return the picture for a phone: panels wrap; None if even one in a row does not fit."""
    words, count = picture.words, picture.count
    rows, columns, queries, keys = words.shape
    heads = words.row_titles or [""] * rows
    below = any(any(row) for row in words.titles[1:])  # or one stands over each column
    titles = [
        ", ".join(filter(None, (head, title)))
        for head, row in zip(heads, words.titles, strict=True)
        for title in (row if below else words.titles[0])
    ]
    for across in range(min(columns, 2), 0, -1):
        down = -(-count // across)
        spare = down * across - count
        padded = [*titles, *[""] * spare]
        folded = replace(
            words,
            shape=(down, across, queries, keys),
            titles=[padded[i : i + across] for i in range(0, len(padded), across)],
            row_titles=[],
        )
        if across == columns:
            folded = words
        try:
            layout = fitting_layout(folded, None, number_width=number_width, most=PHONE)
        except ValueError:  # the panels, or their words, are too wide
            continue
        fit = number_width + 0.04 <= layout.cell[0]
        return replace(
            picture,
            values=_rewrapped(picture.values, folded.shape),
            visible=_rewrapped(picture.visible, folded.shape),
            numbers=picture.numbers if fit else None,
            words=folded,
            layout=layout,
        )
    return None


def _rewrapped(panels: Any, shape: tuple[int, int, int, int]) -> Any:
    """Return panels in other rows and columns, the last row filled up with zeros."""
    flat = panels.reshape(-1, *shape[2:])
    spare = shape[0] * shape[1] - len(flat)
    return np.pad(flat, ((0, spare), (0, 0), (0, 0))).reshape(shape)


def _colour_map(cmap: Any, *, signed: bool) -> Colormap:
    if isinstance(cmap, Colormap):
        return cmap
    if not isinstance(cmap, str):
        raise TypeError(f"cmap must be a name or a matplotlib colour map; got {cmap!r}")
    if cmap not in matplotlib.colormaps:
        near = difflib.get_close_matches(cmap, list(matplotlib.colormaps), n=1) or ["Reds"]
        raise ValueError(f"cmap: there is no colour map {cmap!r}; did you mean {near[0]!r}?")
    if cmap == "Reds" and not signed:
        return weight_map("light")
    return matplotlib.colormaps["RdBu_r" if cmap == "Reds" else cmap]


def _numbers(values: Floats, visible: Bools) -> list[list[str]]:
    """Return the texts of the visible cells of each panel: two decimals, none for whole numbers."""
    seen = values[visible].round(6)
    decimals = 0 if np.array_equal(seen, seen.round()) else 2
    panels = zip(
        values.reshape(-1, *values.shape[2:]), visible.reshape(-1, *values.shape[2:]), strict=True
    )
    return [
        [
            two_decimals(value)
            if abs(value) >= 1e6
            else true_minus(f"{value:.{decimals if abs(value) < 100 else 0}f}")
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
    return [below + three_digits(low), three_digits((low + high) / 2), above + three_digits(high)]
