"""Figures of any kind, drawn once for a light page and once for a dark one."""

import d2lmini.plotting._matplotlib  # noqa: F401

# isort: split

import inspect
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.cbook import is_math_text
from matplotlib.figure import Figure
from matplotlib.text import Text

from d2lmini.plotting._inputs import read_alt
from d2lmini.plotting._legible import legible
from d2lmini.plotting.shown import Shown
from d2lmini.plotting.theme import PALETTES, book_style, drawing_for

__all__ = ["show_figure"]


def show_figure(
    *,
    alt: str,
    width: float = 5.2,
    height: float = 3.0,
    rows: int = 1,
    columns: int = 1,
    sharex: bool = False,
    sharey: bool = False,
    width_ratios: Sequence[float] | None = None,
    height_ratios: Sequence[float] | None = None,
    canvas: bool = False,
    phone: tuple[float, float] | None = None,
    show: bool = True,
) -> Callable[[Callable[..., Any]], Shown]:
    """Show what a function draws, for a light page and for a dark one.

    It stands above the function, as a decorator, and turns it into the finished figure. The
    function is called twice, with empty axes; what it does besides drawing should be done before.
    Colours are looked up inside it, as ``COLORS["value"]``, since they differ from page to page;
    lines, bars and points are grey until they are given one.

    Parameters
    ----------
    alt : str
        The description for those who do not see the picture: what it shows, with its numbers.
    width, height : float
        In inches. A page of the book shows a figure from 5.1 on as wide as its text, one of 7.37
        that has a size for a phone as wide as text and margin, and a phone all; words have the
        size of all words in figures there, so what is close together here may meet.
    rows, columns : int
        How many panels. The function gets one `matplotlib.axes.Axes` for each, in reading order.
    sharex, sharey : bool
        Whether the panels share the limits of an axis, and its labels.
    width_ratios, height_ratios : list of float, optional
        How wide the columns and how high the rows are, relative to each other.
    canvas : bool
        Whether to draw on an empty sheet instead of axes: the one panel fills the figure, has no
        frame, and is measured in inches from the lower left corner. For diagrams.
    phone : (float, float), optional
        Width and height for a page on a phone, where panels stand below one another. The function
        is called for it too; of a canvas, ``ax.get_xlim()[1]`` is how wide the sheet is.
    show : bool
        Whether to put the figure on the page now, if this runs in a notebook.

    Returns
    -------
    function
        That takes the drawing function and returns a `Shown`, with ``.figure``, ``.axes`` of shape
        (rows, columns), ``.alt`` and ``.savefig``.

    Raises
    ------
    TypeError
        If `alt` is missing or no string, or the function does not take one argument for each panel.
    ValueError
        If `alt` is empty; if a size is not positive; if a canvas is to have several panels; if
        the function draws with ``matplotlib.pyplot``, which knows nothing of the axes that it is
        given.

    Examples
    --------
    >>> from d2lmini.plotting import COLORS, show_figure
    >>> @show_figure(height=2.0, alt="A line from 0 up to 1.")
    ... def rise(ax):
    ...     ax.plot([0, 1], [0, 1], color=COLORS["output"])
    >>> rise
    A line from 0 up to 1.
    """
    if isinstance(alt, str) and not alt.strip():
        raise ValueError("alt is empty; say what the picture shows, for those who do not see it")
    described = read_alt(alt)
    if described is None:
        raise TypeError("alt must be a string; got NoneType")
    of_phone = zip(("width of phone", "height of phone"), phone or (), strict=bool(phone))
    for name, size in (("width", width), ("height", height), *of_phone):
        if not (math.isfinite(size) and 0 < size <= 100):
            raise ValueError(f"{name} must lie between 0 and 100 inches; got {size:g}")
    for name, count in (("rows", rows), ("columns", columns)):
        if count < 1:
            raise ValueError(f"{name} must be at least 1; got {count}")
    if canvas and rows * columns > 1:
        raise ValueError(f"a canvas is one panel; got {rows} rows and {columns} columns")

    def empty(
        size: tuple[float, float] = (width, height), *, stacked: bool = False
    ) -> tuple[Figure, np.ndarray[Any, Any]]:
        if canvas:
            return sheet(*size)
        figure = Figure(figsize=size)
        FigureCanvasAgg(figure)
        return figure, figure.subplots(
            rows * columns if stacked else rows,
            1 if stacked else columns,
            squeeze=False,
            sharex=sharex,
            sharey=sharey,
            width_ratios=None if stacked else width_ratios,
            height_ratios=None if stacked else height_ratios,
        )

    def decorate(draw: Callable[..., Any]) -> Shown:
        _check_arguments(draw, rows * columns)

        def narrow() -> Shown | None:
            if not phone:
                return None
            return draw_twice(draw, lambda: empty(phone, stacked=True), described)

        shown = draw_twice(draw, empty, described, narrow=narrow)
        for theme in PALETTES:  # at once: what the function looks up may be another thing later
            for one in filter(None, (shown, shown.narrow)):
                one.svg(theme)
        if show:
            shown.show()
        return shown

    return decorate


def sheet(
    width: float, height: float, *, down: bool = False
) -> tuple[Figure, np.ndarray[Any, Any]]:
    """Return a figure with one panel that fills it and is measured in inches."""
    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("none")
    FigureCanvasAgg(figure)
    ylim = (height, 0) if down else (0, height)
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=ylim)
    ax.axis("off")
    return figure, np.array([[ax]], dtype=object)


def draw_twice(
    draw: Callable[..., Any],
    empty: Callable[[], tuple[Figure, np.ndarray[Any, Any]]],
    alt: str,
    more: str = "",
    narrow: Callable[[], Shown | None] = lambda: None,
) -> Shown:
    """Draw on empty axes for each page; ``draw`` gets one of them for each panel.

    The dark page, and a phone, are drawn for when they are asked for: ``draw`` has to do the same
    then.
    """

    def drawn(theme: str) -> tuple[Figure, np.ndarray[Any, Any]]:
        with drawing_for(theme), book_style(axes=True):
            figure, axes = empty()
            before = _pyplot_figures()
            draw(*axes.flat)
            if added := set(_pyplot_figures()) - set(before):
                for number in added:
                    sys.modules["matplotlib.pyplot"].close(number)
                raise ValueError(
                    "the function made a figure with matplotlib.pyplot; draw on the axes that it "
                    "is given, such as ax.plot(...) instead of plt.plot(...)"
                )
            _make_legible(figure)
        return figure, axes

    return Shown(drawn, alt, more, narrow)


def _make_legible(figure: Figure) -> None:
    """Send the words of a figure through the gate, formulas apart; tick labels are words too."""
    axes: list[Any] = figure.findobj(Axis)
    for axis in axes:
        places = axis.get_majorticklocs()
        words = axis.get_major_formatter().format_ticks(places)
        passed = [word if is_math_text(word) else legible(word, keep="\n") for word in words]
        if passed != words:
            axis.set_ticks(places, labels=passed)
    texts: list[Any] = figure.findobj(Text)
    for text in texts:
        told = text.get_text()
        if (gated := legible(told, keep="\n")) != told and not is_math_text(told):
            text.set_text(gated)


def _pyplot_figures() -> list[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return list(pyplot.get_fignums()) if pyplot else []


def _check_arguments(draw: Any, panels: int) -> None:
    if not callable(draw):
        raise TypeError(f"show_figure stands above a function that draws; got {draw!r}")
    try:
        inspect.signature(draw).bind(*range(panels))
    except TypeError:
        takes = len(inspect.signature(draw).parameters)
        raise TypeError(
            f"the function takes {takes} arguments for {panels} "
            f"panel{'s' if panels > 1 else ''}; give it one for each, or *axes"
        ) from None
