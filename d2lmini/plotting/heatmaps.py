"""Attention weights as a grid of heatmaps that share one colour scale."""

import d2lmini.plotting._matplotlib  # noqa: F401

# isort: split

import difflib
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import matplotlib
import numpy as np
from matplotlib.axes import Axes
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
from d2lmini.plotting._heatmap_drawing import Picture, SteadyLogScale, SteadyScale
from d2lmini.plotting._heatmap_layout import NUMBER, Words, fitting_layout
from d2lmini.plotting._inputs import Bools, Floats
from d2lmini.plotting._panels import Mean, read_panels
from d2lmini.plotting._text import read_face, text_width
from d2lmini.plotting.figures import draw_twice
from d2lmini.plotting.shown import Shown
from d2lmini.plotting.theme import PHONE, drawing_in

__all__ = ["show_heatmaps"]

EXACT = 1e-6  # inches
LOG_RANGE = 1e4  # how far a logarithmic scale goes down


def show_heatmaps(
    matrices: Any,
    queries: str | Sequence[Any] | None = None,
    keys: str | Sequence[Any] | None = None,
    titles: Sequence[Any] | None = None,
    figsize: tuple[float, float] | None = None,
    cmap: str | Colormap = "Reds",
    *,
    item: int | None = None,
    mean: Mean | None = None,
    row_titles: Sequence[Any] | None = None,
    xlabel: str | None = None,
    ylabel: str | None = None,
    xticks: Sequence[Any] | None = None,
    yticks: Sequence[Any] | None = None,
    annot: bool | str = "auto",
    mask: Any = None,
    vmin: float | None = None,
    vmax: float | None = None,
    norm: Literal["linear", "log"] = "linear",
    reduce: Literal["max", "mean"] = "max",
    colorbar: bool = True,
    label: str | None = None,
    font: Any = None,
    alt: str | None = None,
    ax: Axes | None = None,
    show: bool = True,
) -> Shown:
    r"""Show a grid of matrices as heatmaps, all on one colour scale.

    The scale goes from 0 to 1 for weights. If no weight is above 0.2 it ends at the next of 0.01,
    0.02, 0.05, 0.1, 0.2, and the colour bar says so. With negative numbers it is symmetric about 0;
    with numbers above 1 it goes from 0 to the largest. Masked cells never count.

    .. math:: \text{colour}(w) = \text{cmap}\!\left(\frac{w - v_{\min}}{v_{\max} - v_{\min}}\right)

    Parameters
    ----------
    matrices : array, tensor, list or AttentionRecord, shape (rows, columns, queries, keys)
        The numbers. (columns, queries, keys) is one row of panels, (queries, keys) one panel.
        Any real type on any device, with or without gradients. NaN, -inf and the masked cells of a
        NumPy masked array are drawn as masked. What `record_attention` yields, or a tuple of
        (batch, heads, queries, keys) as models return it, gives a row for each layer and a column
        for each head, counted from 0.
    queries, keys : list of str, optional
        One label per query, one per key, such as tokens; `queries` serve both sides if they are as
        many. Spaces at their ends are made visible; labels are turned, or some left out, only where
        they do not fit. Numbers are not turned. (Strings in these two places are `xlabel` and
        `ylabel`, in the order of ``d2l.show_heatmaps``.)
    titles : list of str, optional
        One per column, one per panel, or a list of rows.
    figsize : (float, float), optional
        The width and height, in inches, to which the numbers in cells give way; the figure is
        larger only if the panels would not be seen, or with ``annot=True``. Without it, the figure
        is 5.4 inches wide at most, or 6.4 where that is too little.
    cmap : str or matplotlib colour map
        ``"Reds"`` is the ramp that weights have everywhere in the book. One hue cannot show a
        sign: where numbers are negative, it gives way to ``"RdBu_r"``, with red above 0 and blue
        below. Other maps are used as given.
    row_titles : list of str, optional
        One per row of panels, at its left.
    item : int, optional
        Which item of the batch, in a record, (layers, batch, heads, queries, keys) or
        (batch, heads, queries, keys). It has to be given for a batch of several layers.
    mean : "heads", "layers" or "both", optional
        Average the rows of panels, which are layers, or the columns, which are heads.
    xlabel, ylabel : str, optional
        What the keys and the queries are, "Keys" and "Queries" unless given; written once for all
        panels. As all text here, they are taken as they are: ``$`` starts no formula.
    xticks, yticks : list of str, optional
        Other names for `keys` and `queries`.
    annot : "auto" or bool
        Whether to write the number into each cell; "auto" does for one or two small matrices.
    mask : boolean array or "causal", optional
        True = may attend; broadcasts to `matrices`. Masked cells are hatched, so they do not look
        like a weight of 0. "causal" lets the last query see every key.
    vmin, vmax : float, optional
        Ends of the colour scale. Numbers beyond get the colour of the end, and the bar says so.
    norm : "linear" or "log"
        "log" tells small weights apart: down to the smallest, or 1/10,000 of the largest.
    reduce : "max" or "mean"
        What is drawn where several numbers share a pixel, in a matrix of about a thousand keys or
        more: the one of largest size, or their average.
    colorbar : bool
        Whether to draw the bar that explains the colours.
    label : str, optional
        What the colours stand for; written along the bar.
    font : str, list of str or rcParams, optional
        A face that has all characters of the tokens, such as ``"Noto Sans CJK JP"``, or several; or
        ``matplotlib.rcParams``, for the family and the sizes that you have set: of numbers
        (``font.size``), tokens (``xtick.labelsize``), axes (``axes.labelsize``) and titles.
    alt : str, optional
        A description for those who do not see the picture; generated if not given.
    ax : matplotlib.axes.Axes, optional
        Draw the one panel there, in a figure of your own, without a bar.
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
        If `matrices` is not 2-D to 5-D, is empty, holds +inf or a number beyond 1e300; if a mask
        does not broadcast; if there are too few or too many titles or labels; if the panels do not
        fit side by side; if `vmin` is not below `vmax`.

    Notes
    -----
    Cells are square, except that a long thin matrix is stretched until its short side can be seen.
    The picture is drawn for a light page and for a dark one; folded tables with the numbers of a
    few small panels follow it. The description names what is there: an identity, a uniform matrix,
    a causal mask, the strongest key of each query, keys that are equally strong.
    The argument order is that of ``d2l.show_heatmaps`` (Zhang et al., 2023).

    Examples
    --------
    >>> import numpy as np
    >>> shown = show_heatmaps([[0.9, 0.1], [0.4, 0.6]], ["the", "cat"])
    >>> print(shown.alt.replace(". ", ".\n"))
    Heatmap of 2 × 2 values (Queries × Keys), from 0.1 to 0.9.
    Strongest key per query: “the” → “the” (0.90), “cat” → “cat” (0.60).
    >>> attentions = (np.full((1, 4, 3, 3), 1 / 3),) * 2          # two layers, as a model returns
    >>> show_heatmaps(attentions, ["a", "b", "c"]).axes.shape
    (2, 4)
    """
    names = (
        "yticks" if yticks is not None else "queries",
        "xticks" if xticks is not None else "keys",
    )
    xlabel, xticks = _side(queries, xlabel, keys, xticks, ("keys", "xlabel", "xticks"), "Keys")
    ylabel, yticks = _side(
        keys, ylabel, queries, yticks, ("queries", "ylabel", "yticks"), "Queries"
    )
    panels = read_panels(matrices, item, mean)
    values = panels.values
    visible = panels.visible & inputs.read_mask(mask, values.shape)
    rows, columns, n, m = values.shape
    seen = values[visible]
    if inputs.looks_like_weights(seen):
        rounding = min(max(0.02, 0.005 * m), 0.1)  # two decimals are enough
        inputs.warn_of_sums(values, visible, "matrices", rounding)
    limits = inputs.scale_limits(seen, vmin, vmax)
    scale = _scale(norm, limits, seen, vmin)
    if reduce not in ("max", "mean"):
        raise ValueError(f"reduce must be 'max' or 'mean'; got {reduce!r}")
    if annot is not True and annot is not False and annot != "auto":
        raise ValueError(f"annot must be True, False or 'auto'; got {annot!r}")
    alt = inputs.read_alt(alt)
    if xticks is None and names[0] == "queries" and n == m:
        xticks = yticks  # as in self-attention
    ylabels, xlabels = inputs.read_sides(yticks, xticks, (n, m), names)
    words = Words(
        shape=(rows, columns, n, m),
        xlabel=inputs.read_text(xlabel, "xlabel"),
        ylabel=inputs.read_text(ylabel, "ylabel"),
        titles=inputs.read_titles(panels.titles if titles is None else titles, rows, columns),
        row_titles=inputs.read_row_titles(
            panels.row_titles if row_titles is None else row_titles, rows
        ),
        xticks=xlabels,
        yticks=ylabels,
        bar_ticks=_bar_ticks(scale, seen) if colorbar and ax is None else [],
        bar_label="" if label is None else inputs.read_text(label, "label"),
    )
    few = rows * columns <= 2 and n * m <= 64
    numbers = _numbers(values, visible) if annot is True or (annot == "auto" and few) else None
    with drawing_in(read_face(font)):
        written = [text for panel in numbers or [] for text in panel]
        widest = max((text_width(text, NUMBER) for text in written), default=0)
        size = inputs.read_size(figsize) if ax is None else _size_of(ax, rows * columns)
        layout = fitting_layout(words, size, number_width=widest)
        if (
            size
            and annot == "auto"
            and (layout.width > size[0] + EXACT or layout.height > size[1] + EXACT)
        ):
            layout = fitting_layout(words, size)  # numbers give way to the size that was asked for
        if numbers is not None and widest + 0.04 > layout.cell[0]:
            if annot is True:
                raise ValueError(
                    f"annot=True needs cells {widest + 0.04:.2f} inches wide; {columns} x {m} "
                    f"keys leave {layout.cell[0]:.2f}; give a larger figsize or annot=False"
                )
            numbers = None
        picture = Picture(
            values=values,
            visible=visible,
            numbers=numbers,
            scale=scale,
            cmap=_colour_map(cmap, signed=limits[0] < 0 < limits[1]),
            words=words,
            layout=layout,
            count=rows * columns,
            reduce=reduce,
        )
        alt = alt or describe(values, visible, words)
        if ax is not None:
            picture.draw_on(ax)
            return Shown.around(ax, alt)
        more = numbers_table(values, visible, words)

        def narrow() -> Shown | None:
            small = _wrapped(picture, widest) if layout.width > PHONE else None
            return draw_twice(small.draw, small.empty, alt) if small else None

        shown = draw_twice(picture.draw, picture.empty, alt, more, narrow)
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


def _side(
    first: Any,
    title: str | None,
    tokens: Any,
    ticks: Any,
    names: tuple[str, str, str],
    default: str,
) -> tuple[Any, Any]:
    """Return the title and the labels of one side, from the old names and the new.

    `first` stands where ``d2l.show_heatmaps`` has the title: a string there is one.
    """
    side, xlabel, xticks = names
    if isinstance(first, str):
        if title is not None:
            raise TypeError(f"{xlabel} is given twice: {first!r} and {title!r}")
        title = first
    tokens = None if isinstance(tokens, str) else tokens
    if tokens is not None and ticks is not None:
        raise TypeError(f"{side} and {xticks} are two names for the same labels; give one of them")
    return default if title is None else title, tokens if ticks is None else ticks


def _size_of(ax: Axes, panels: int) -> tuple[float, float]:
    if panels > 1:
        raise ValueError(f"ax takes one panel, and there are {panels}; give one, such as x[0, 0]")
    box = ax.get_position()
    figure = ax.get_figure(root=True)
    assert figure is not None
    width, height = figure.get_size_inches()
    return float(box.width * width), float(box.height * height)


def _scale(
    norm: str, limits: tuple[float, float], seen: Floats, vmin: float | None
) -> SteadyScale | SteadyLogScale:
    if norm == "linear":
        return SteadyScale(*limits)
    if norm != "log":
        raise ValueError(f"norm must be 'linear' or 'log'; got {norm!r}")
    low, high = limits
    if low < 0 or (vmin is not None and vmin <= 0):
        raise ValueError(f"norm='log' needs numbers of at least 0, and vmin above 0; got {low:.3g}")
    if vmin is None:
        positive = seen[seen > 0]
        low = max(float(positive.min(initial=high)), high / LOG_RANGE)
        low = low if low < high else high / LOG_RANGE
    return SteadyLogScale(low, high)


def _bar_ticks(scale: SteadyScale | SteadyLogScale, seen: Floats) -> list[str]:
    """Return the texts of the lowest, middle and highest tick, with a sign if numbers lie beyond.

    >>> _bar_ticks(SteadyScale(0.0, 0.5), np.array([0.1, 0.7]))
    ['0', '0.25', '≥ 0.5']
    """
    low, high = float(scale.vmin or 0.0), float(scale.vmax or 0.0)
    log = isinstance(scale, SteadyLogScale)
    middle = math.sqrt(low * high) if log else (low + high) / 2
    slack = 0.0 if log else 0.005 * (high - low)
    below = "≤ " if seen.size and seen.min() < low - slack else ""
    above = "≥ " if seen.size and seen.max() > high + 0.005 * (high - low) else ""
    return [below + three_digits(low), three_digits(middle), above + three_digits(high)]
