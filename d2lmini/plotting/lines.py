"""Attention weights as lines from queries to keys."""

import d2lmini.plotting._matplotlib  # noqa: F401

# isort: split

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from d2lmini._checks import position
from d2lmini.plotting import _inputs as inputs
from d2lmini.plotting._describe import describe_panel, true_minus
from d2lmini.plotting._inputs import Bools, Floats, RowSumWarning
from d2lmini.plotting._legible import quoted
from d2lmini.plotting._panels import read_panels
from d2lmini.plotting._text import (
    LINE,
    Size,
    points,
    put_in_middle,
    read_face,
    shortened,
    text_width,
)
from d2lmini.plotting.figures import draw_twice, sheet
from d2lmini.plotting.shown import Shown
from d2lmini.plotting.theme import COLORS, drawing_in

__all__ = ["RowSumWarning", "show_attention_lines"]

FAINTEST = 0.02  # weights below this are not drawn
MOST = 64  # tokens on one side
TOKEN, HEAD = Size(10.0, "xtick.labelsize"), Size(9.0, "axes.labelsize")
NUMBER = Size(9.5, "font.size")
LONGEST = 1.9  # inches; a longer token is cut
ROW, GAP, EDGE = 0.34, 0.1, 0.08  # inches
WIDE, SHORTEST = 4.2, 1.7  # inches: a figure, and its lines where the tokens are long
LEAST = 0.5  # inches of lines in a figure of a size that was asked for


def show_attention_lines(
    weights: Any,
    queries: Sequence[Any],
    keys: Sequence[Any] | None = None,
    *,
    query: int | None = None,
    item: int | None = None,
    figsize: tuple[float, float] | None = None,
    font: Any = None,
    alt: str | None = None,
    show: bool = True,
) -> Shown:
    """Show one matrix of attention weights as lines: queries at the left, keys at the right.

    The wider and stronger a line, the larger the weight: so much of the key's value goes to who
    asked, in the colour of values. Weights below 0.02 have no line.

    Parameters
    ----------
    weights : array, tensor or list, shape (queries, keys)
        Each row sums to 1, or to 0 for a query with no key. NaN and -inf count as masked.
    queries, keys : list of str
        The tokens. Without `keys`, the queries are the keys as well, as in self-attention.
    query : int, optional
        The position of one query to single out: the lines of the others fade, and the weights of
        this one are written beside the keys.
    item : int, optional
        Which item of a batch, where `weights` is a record or has a batch axis.
    figsize : (float, float), optional
        The width and height in inches. Without it, both follow from the tokens.
    font : str, list of str or rcParams, optional
        A face that has all characters of the tokens, or your settings: see `show_heatmaps`.
    alt : str, optional
        A description for those who do not see the picture; generated if not given.
    show : bool
        Whether to put the figure on the page now, if this runs in a notebook.

    Returns
    -------
    Shown
        With ``.figure``, ``.axes`` of shape (1, 1), ``.alt`` and ``.savefig``.

    Warns
    -----
    RowSumWarning
        If a row does not sum to 1. The lines are drawn as they are. To turn it off:
        ``warnings.simplefilter("ignore", RowSumWarning)``.

    Raises
    ------
    TypeError
        If an argument is of the wrong kind.
    ValueError
        If `weights` is not one matrix, holds negative numbers or numbers above 1, or has more than
        64 rows or columns; if the labels are too few or too many; if there is no such query; if
        the words do not fit into `figsize`.

    Examples
    --------
    >>> shown = show_attention_lines([[0.9, 0.1], [0.4, 0.6]], ["the", "cat"], query=1)
    >>> shown.alt
    'Attention as lines from 2 queries to 2 keys. Query “cat” has weights: “the” 0.40, “cat” 0.60.'
    """
    values, visible, *_ = read_panels(weights, item, name="weights")
    if values.shape[:2] != (1, 1):
        recorded = hasattr(weights, "unseen")
        shape = values.shape if recorded else np.shape(weights)
        at = [0] * (len(shape) - 2)
        if item is not None and not recorded:
            at[-2] = item
        one = f"weights.stack({item or 0})" if recorded else "weights"
        raise ValueError(
            f"weights must be one matrix, (queries, keys); got shape {shape}; give one head, such "
            f"as {one}{''.join(f'[{i}]' for i in at)}"
            + (", and no item" if item is not None else "")
        )
    values, visible = values[0, 0], visible[0, 0]
    n, m = values.shape
    if max(n, m) > MOST:
        raise ValueError(
            f"weights has {n} queries and {m} keys; more than {MOST} lines end in a blur; "
            "show a part, or use show_heatmaps"
        )
    seen = values[visible]
    if seen.size and (seen.min() < -1e-6 or seen.max() > 1.005):
        raise ValueError(
            "weights must lie between 0 and 1; got "
            f"{seen.min():.3g} to {seen.max():.3g}; are these scores, before the softmax?"
        )
    sides = inputs.read_sides(queries, queries if keys is None else keys, (n, m))
    left, right = (tokens or [] for tokens in sides)
    if query is not None:
        query = position("query", query, n)
    size = inputs.read_size(figsize)
    alt = inputs.read_alt(alt)
    shares = np.where(visible, values, 0.0).clip(0, 1).round(6)
    inputs.warn_of_sums(shares, visible, "weights")

    with drawing_in(read_face(font)):
        shown_left, shown_right = (
            [shortened(token, LONGEST, TOKEN) for token in side] for side in (left, right)
        )
        wide = [max(text_width(t, TOKEN) for t in side) for side in (shown_left, shown_right)]
        wide = [
            max(w, text_width(name, HEAD))
            for w, name in zip(wide, ("queries", "keys"), strict=True)
        ]
        numbers = text_width("0.00", NUMBER) + GAP if query is not None else 0.0
        beside = 2 * (EDGE + GAP) + sum(wide) + numbers
        count = max(n, m) + 1  # rows of words
        line = points(TOKEN) * LINE
        row = max(ROW, line)
        width, height = size or (max(WIDE, beside + SHORTEST), count * row + EDGE)
        if size:
            least = beside + LEAST, count * line + EDGE
            if width < least[0] or height < least[1]:
                wider, higher = (math.ceil(inches * 10) / 10 for inches in least)
                raise ValueError(
                    f"figsize ({width:g}, {height:g}) is too small for {count - 1} tokens; give at "
                    f"least ({wider:g}, {higher:g}), or smaller words by font=rcParams"
                )
            row = (height - EDGE) / count
        head = row / 2 + min(EDGE, row - line)
        x = EDGE + wide[0] + GAP, EDGE + wide[0] + GAP + width - beside

        def draw(ax: Axes) -> None:
            rows = [_places(n, count - 1, row), _places(m, count - 1, row)]
            _draw_lines(ax, shares, x, rows, query)
            _write(ax, shown_left, (x[0] - GAP, head), rows[0], "query", "right", chosen=query)
            _write(ax, shown_right, (x[1] + GAP, head), rows[1], "key", "left")
            if query is not None:
                for key, y in enumerate(rows[1]):
                    text = f"{shares[query, key]:.2f}" if visible[query, key] else "–"
                    strong = shares[query, key] >= FAINTEST
                    color = COLORS["ink" if strong else "muted"]
                    size = points(NUMBER)
                    put_in_middle(ax, width - EDGE, y, text, size=size, align="right", color=color)

        shown = draw_twice(
            draw,
            lambda: sheet(width, height, down=True),
            alt or _describe(values, visible, left, right, query),
        )
    if show:
        shown.show()
    return shown


def _places(count: int, rows: int, row: float) -> list[float]:
    """Return the heights of tokens, in the middle where the other side has more."""
    first = row * (1.5 + (rows - count) / 2)
    return [first + row * i for i in range(count)]


def _draw_lines(
    ax: Axes,
    shares: Floats,
    x: tuple[float, float],
    rows: list[list[float]],
    query: int | None,
) -> None:
    """Draw an S-shaped line for each weight, the strongest last."""
    steps = np.linspace(0, 1, 33)
    ease = 3 * steps**2 - 2 * steps**3
    # Equal weights in reading order, whatever the last bits are.
    order = sorted(np.ndindex(*shares.shape), key=lambda at: (at[0] == query, float(shares[at])))
    for q, k in order:
        share = float(shares[q, k])
        if share < FAINTEST:
            continue
        strong = query is None or q == query
        ax.plot(
            x[0] + (x[1] - x[0]) * steps,
            rows[0][q] + (rows[1][k] - rows[0][q]) * ease,
            linewidth=0.5 + 5 * share,
            solid_capstyle="butt",
            color=COLORS["value" if strong else "muted"],
            alpha=round(0.18 + 0.72 * share, 3) if strong else 0.15,
        )


def _write(
    ax: Axes,
    tokens: list[str],
    at: tuple[float, float],
    rows: list[float],
    color: str,
    side: Any,
    chosen: int | None = None,
) -> None:
    """Write the tokens of one side under what they are."""
    style: dict[str, Any] = {"align": side, "parse_math": False}
    head = {"query": "queries", "key": "keys"}[color]
    put_in_middle(ax, *at, head, size=points(HEAD), color=COLORS[color], style="italic", **style)
    for i, (token, y) in enumerate(zip(tokens, rows, strict=True)):
        quiet = chosen is not None and i != chosen
        put_in_middle(
            ax,
            at[0],
            y,
            token,
            size=points(TOKEN),
            color=COLORS["muted" if quiet else color],
            fontweight="bold" if i == chosen else "normal",
            **style,
        )


def _describe(
    values: Floats, visible: Bools, queries: list[str], keys: list[str], query: int | None
) -> str:
    n, m = values.shape
    what = f"Attention as lines from {n} queries to {m} keys."
    if query is None:
        said = describe_panel(values, visible, queries, keys)
        return f"{what} {said[0].upper()}{said[1:]}."
    named = [
        f"{quoted(key)} {true_minus(f'{value:.2f}')}" if seen else f"{quoted(key)} masked"
        for key, value, seen in zip(keys, values[query].round(6), visible[query], strict=True)
    ]
    return f"{what} Query {quoted(queries[query])} has weights: {', '.join(named)}."
