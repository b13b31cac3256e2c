"""Attention of one query as a ledger: a row for each key, a column for each step."""

import d2lmini.plotting._matplotlib  # noqa: F401

# isort: split

from collections.abc import Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from d2lmini._terminal import for_terminal, record
from d2lmini.plotting import _inputs as inputs
from d2lmini.plotting._describe import VERY_LARGE, true_minus, two_decimals
from d2lmini.plotting._inputs import Floats
from d2lmini.plotting._legible import isolated, quoted
from d2lmini.plotting._tables import table_style
from d2lmini.plotting._text import put_in_middle, shortened, text_width
from d2lmini.plotting.figures import draw_twice, sheet
from d2lmini.plotting.shown import Shown
from d2lmini.plotting.theme import COLORS, MAX_WIDTH, tint
from d2lmini.scores import dot_product_score, scaled_dot_product_score
from d2lmini.weights import masked_softmax

__all__ = ["AttentionTrace"]

TITLE, HEAD, CELL, SHAPE = 10.0, 9.0, 9.0, 7.0  # sizes of text, in points
EDGE, ROW = 0.1, 0.29  # inches
TOP = 1.2  # from the upper edge to the first row
LONGEST = 1.6  # inches; a longer label is cut
MOST_KEYS = 32  # that a drawing holds


class Step(NamedTuple):
    """One column of the ledger."""

    name: str
    formula: str
    shape: str

    def __repr__(self) -> str:
        return record(self)


class Places(NamedTuple):
    """Where the columns of a drawing begin or end, and how wide they are, in inches."""

    side: float  # right end of the labels
    column: float
    bar: float
    bar_length: float
    cells: float
    wide: float
    width: float


class AttentionTrace:
    r"""One query's attention, step by step: score, scale, mask, softmax, weigh.

    .. math::
        \mathbf{o} = \sum_{i=1}^{m} \alpha_i \mathbf{v}_i, \qquad
        \alpha = \operatorname{softmax}\left(\frac{\mathbf{K}\mathbf{q}}{\sqrt{d}}\right)

    In a notebook it shows itself as a table with one row per key and one column per step; printed,
    it is the same table as text; `plot` draws it. The rows of the last column add up to the output.

    Parameters
    ----------
    query : array, tensor or list, shape (d,)
        Any real type on any device, as for the others.
    key : shape (m, d)
    value : shape (m, d_v) or (m,)
    mask : boolean array, shape (m,), optional
        True = may attend.
    keys : list of str, optional
        A name for each key, such as its token; `labels` is another name for it.
    name : str, optional
        What the query is called.
    components : list of str, optional
        A name for each of the d_v components of a value.

    Attributes
    ----------
    scores, scaled, masked, weights : arrays of float64, shape (m,)
    weighted : array of float64, shape (m, d_v)
    output : array of float64, shape (d_v,)
        0 if the mask leaves no key.
    alt : str
        All numbers in sentences.

    Raises
    ------
    TypeError
        If the mask is not boolean, or an array does not hold real numbers.
    ValueError
        If the shapes do not fit, if there is no key, or if a number is not finite.

    Notes
    -----
    Scaled dot-product attention: Vaswani et al. (2017), equation 1.

    Examples
    --------
    >>> trace = AttentionTrace([2, 0], [[1, 0], [0, 1]], [[10, 0], [0, 10]], keys=["cat", "mat"])
    >>> trace
    Attention of one query over 2 keys
    key     score   scale    mask  softmax   weigh
             q·kᵢ     ÷√2                    αᵢvᵢ
    cat      2.00    1.41    1.41     0.80    8.04    0.00
    mat      0.00    0.00    0.00     0.20    0.00    1.96
    output = column sums                      8.04    1.96
    """

    def __init__(
        self,
        query: Any,
        key: Any,
        value: Any,
        *,
        mask: Any = None,
        labels: Sequence[Any] | None = None,
        keys: Sequence[Any] | None = None,
        name: str | None = None,
        components: Sequence[Any] | None = None,
    ) -> None:
        q, k, v = (
            inputs.read_numbers(array, argument)
            for array, argument in ((query, "query"), (key, "key"), (value, "value"))
        )
        if q.ndim == 2 and len(q) == 1:
            q = q[0]
        if q.ndim != 1:
            raise ValueError(f"query must be one query, (d,); got shape {q.shape}")
        if k.ndim != 2 or not len(k):
            raise ValueError(f"key must have shape (m, d) with at least one key; got {k.shape}")
        if k.shape[1] != len(q):
            raise ValueError(f"query has {len(q)} components and key has {k.shape[1]}")
        v = v[:, None] if v.ndim == 1 else v
        if v.ndim != 2 or len(v) != len(k):
            raise ValueError(
                f"value must have one row for each of the {len(k)} keys; got shape {v.shape}"
            )
        m = len(k)
        may = inputs.read_mask(mask, (1, m), "scores")[0] if np.ndim(mask) != 2 else _row(mask, m)
        if keys is not None and labels is not None:
            raise TypeError("keys and labels are two names for the same thing; give one of them")
        called = ("keys", keys) if labels is None else ("labels", labels)
        self.labels = inputs.read_tokens(called[1], m, called[0], "key") or list(map(str, range(m)))
        self._short = [shortened(label, LONGEST, CELL) for label in self.labels]
        self.name = None if name is None else inputs.visible_token(inputs.read_text(name, "name"))
        self.components = inputs.read_tokens(components, v.shape[1], "components", "component")
        self.scores: Floats = dot_product_score(q[None], k)[0]
        self.scaled: Floats = scaled_dot_product_score(q[None], k)[0]
        self.masked: Floats = np.where(may, self.scaled, -np.inf)
        self.weights: Floats = masked_softmax(self.scaled, may)
        self.weighted: Floats = self.weights[:, None] * v
        self.output: Floats = self.weighted.sum(axis=0)
        self._may = may
        self._dimension = len(q)

    @property
    def _steps(self) -> list[Step]:
        m, width = self.weighted.shape
        each = f"({m},)"
        return [
            Step("score", "q·kᵢ", each),
            Step("scale", f"÷√{self._dimension}", each),
            Step("mask", "hide" if not self._may.all() else "none", each),
            Step("softmax", "eˣ / Σeˣ", f"{each}, sums to 1"),
            Step("weigh", "αᵢvᵢ", f"({m}, {width}) → ({width},)"),
        ]

    @property
    def _heading(self) -> str:
        m = len(self.labels)
        who = quoted(self.name) if self.name else "one query"
        return f"Attention of {who} over {m} key{'s' if m > 1 else ''}"

    def _rows(self) -> list[list[str]]:
        """Return the numbers as text: score, scale, mask, softmax, then the weighted value."""
        columns = [self.scores, self.scaled, self.masked, self.weights, *self.weighted.T]
        return [[_number(column[i]) for column in columns] for i in range(len(self.labels))]

    @property
    def alt(self) -> str:
        """All numbers in sentences."""
        said = [f"{self._heading}."]
        for label, row, may in zip(self.labels, self._rows(), self._may, strict=True):
            seen = f"scaled {row[1]}, weight {row[3]}" if may else "masked, weight 0"
            said.append(f"{quoted(label)}: score {row[0]}, {seen}, adds {self._parts(row[4:])}.")
        said.append(f"Output: {self._parts(list(map(_number, self.output)))}.")
        return " ".join(said)

    def _parts(self, numbers: list[str]) -> str:
        """Write the components of one vector, named if they have names."""
        if not self.components:
            return f"({', '.join(numbers)})"
        pairs = zip(self.components, numbers, strict=True)
        return f"({', '.join(f'{isolated(name)} {number}' for name, number in pairs)})"

    def __repr__(self) -> str:
        """Return the table as text."""
        side = max(4, *(len(label) for label in self.labels)) + 1
        heads = ["score", "scale", "mask", "softmax", "weigh"]
        forms = ["q·kᵢ", f"÷√{self._dimension}", "", "", "αᵢvᵢ"]
        wide = [8, 8, 8, 9, 8]
        lines = [
            self._heading,
            f"{'key':{side}}" + "".join(f"{h:>{w}}" for h, w in zip(heads, wide, strict=True)),
            " " * side + "".join(f"{f:>{w}}" for f, w in zip(forms, wide, strict=True)),
        ]
        if self.components:
            names = "".join(f"{name[:7]:>8}" for name in self.components)
            lines.append(" " * (side + sum(wide[:4])) + names)
        for label, row in zip(self.labels, self._rows(), strict=True):
            cells = [f"{x:>{w}}" for x, w in zip(row, wide[:4] + [8] * (len(row) - 4), strict=True)]
            lines.append(f"{label:{side}}" + "".join(cells))
        sums = "".join(f"{_number(x):>8}" for x in self.output)
        lines.append(f"{'output = column sums':{side + 33}}{sums}")
        return for_terminal("\n".join(line.rstrip() for line in lines))

    def _repr_html_(self) -> str:
        """Return the table for a notebook and a page."""
        width = self.weighted.shape[1]
        heads = []
        for i, step in enumerate(self._steps):
            span = f' colspan="{width}"' if i == 4 and width > 1 else ""
            heads.append(
                f'<th scope="col{"group" if span else ""}"{span}>{step.name}'
                f"<br><small>{escape(step.formula)}</small><br><small>{step.shape}</small></th>"
            )
        largest = max(float(abs(self.weighted).max()), 1e-9)
        body = []
        for i, (label, row) in enumerate(zip(self.labels, self._rows(), strict=True)):
            cells = [f"<td>{x}</td>" for x in row[:3]]
            share = _in_hundredths(self.weights[i])
            cells.append(f'<td class="d2lmini-bar" style="--w:{share}">{row[3]}</td>')
            for x, text in zip(self.weighted[i], row[4:], strict=True):
                side = "less" if x < 0 else "more"
                tint = _in_hundredths(abs(x) / largest)
                cells.append(f'<td class="d2lmini-{side}" style="--w:{tint}">{text}</td>')
            off = "" if self._may[i] else ' class="d2lmini-off"'
            head = f'<th scope="row">{escape(label)}</th>'
            body.append(f"<tr{off}>{head}{''.join(cells)}</tr>")
        sums = "".join(f"<td>{_number(x)}</td>" for x in self.output)
        names = "".join(f'<th scope="col">{escape(name)}</th>' for name in self.components or [])
        names = f"<tr>{'<td></td>' * 5}{names}</tr>" if names else ""
        return (
            f'<div class="d2lmini-table d2lmini-trace">{table_style()}'
            '<div class="d2lmini-scroll" tabindex="0" role="group" aria-label="Ledger">'
            f"<table><caption>{escape(self._heading)}</caption>"
            f'<thead><tr><th scope="col">key</th>{"".join(heads)}</tr>{names}</thead>'
            f"<tbody>{''.join(body)}</tbody>"
            f'<tfoot><tr><th scope="row" colspan="5">output = Σ αᵢvᵢ</th>'
            f"{sums}</tr></tfoot></table></div></div>"
        )

    def plot(self, *, show: bool = True) -> Shown:
        """Draw the ledger.

        Parameters
        ----------
        show : bool
            Whether to put the figure on the page now, if this runs in a notebook.

        Returns
        -------
        Shown
            With ``.figure``, ``.axes``, ``.alt`` and ``.savefig``.

        Raises
        ------
        ValueError
            If there are more than 32 keys, or the values have too many components for a page.
        """
        m, components = self.weighted.shape
        if m > MOST_KEYS:
            raise ValueError(
                f"a drawing holds {MOST_KEYS} keys; got {m}; trace a part, or print the trace"
            )
        place = self._places(roomy=True)
        if place.width > MAX_WIDTH:
            place = self._places(roomy=False)
        if place.width > MAX_WIDTH:
            raise ValueError(
                f"{components} components and these labels need {place.width:.1f} inches, and a "
                f"page has {MAX_WIDTH}; trace fewer, such as value[:, :3], or print the trace"
            )
        width = place.width
        top = TOP + (0.2 if self.components else 0)
        height = top + (m + 1.25) * ROW

        def draw(ax: Axes) -> None:
            self._draw_heads(ax, place)
            _line(ax, EDGE, width - EDGE, top - 0.16)
            for j, name in enumerate(self.components or []):
                middle, short = (
                    place.cells + (j + 0.5) * place.wide,
                    shortened(name, place.wide, SHAPE),
                )
                _write(ax, middle, 1.11, short, "value", "center", size=SHAPE)
            for i, row in enumerate(self._rows()):
                self._draw_row(ax, place, i, row, top + (i + 0.25) * ROW)
            y = top + (m + 0.55) * ROW
            _line(ax, place.cells, place.cells + components * place.wide, y - 0.2)
            _write(ax, place.cells - 0.13, y, "output = Σ αᵢvᵢ", "output", "right")
            for j, x in enumerate(self.output):
                middle = place.cells + (j + 0.5) * place.wide
                _write(ax, middle, y, _number(x), "output", "center", fontweight="bold")

        shown = draw_twice(draw, lambda: sheet(width, height, down=True), self.alt)
        if show:
            shown.show()
        return shown

    def _places(self, *, roomy: bool) -> Places:
        """Lay out the columns from the width of what stands in them."""
        longest = max(text_width(text, CELL) for row in self._rows() for text in row)
        totals = [text_width(_number(x), CELL) * 1.15 for x in self.output]  # they are bold
        column = max(0.66 if roomy else 0.5, longest + (0.2 if roomy else 0.12))
        wide = max(0.56 if roomy else 0.44, max(longest, *totals) + (0.14 if roomy else 0.1))
        bar_length = 0.8 if roomy else 0.5
        side = EDGE + max(text_width(label, CELL) for label in [*self._short, "key"])
        bar = side + 3 * column + (0.25 if roomy else 0.15)
        cells = bar + bar_length + (0.55 if roomy else 0.48)
        steps = [text_width(self._steps[4].shape, SHAPE), len(self.output) * wide]
        width = max(cells + max(steps), EDGE + text_width(self._heading, TITLE)) + EDGE
        return Places(side, column, bar, bar_length, cells, wide, width)

    def _draw_heads(self, ax: Axes, place: Places) -> None:
        _write(ax, EDGE, 0.2, self._heading, "ink", "left", size=TITLE)
        _write(ax, place.side, 0.53, "key", "key", "right", fontweight="bold")
        middles = [(place.side + (i + 1) * place.column, "right") for i in range(3)]
        middles.append((place.bar + (place.bar_length + 0.4) / 2, "center"))
        middles.append((place.cells + place.wide * len(self.output) / 2, "center"))
        colors = ["ink", "ink", "ink", "ink", "value"]
        for step, (x, where), color in zip(self._steps, middles, colors, strict=True):
            if where == "center":  # a narrow column under a wide heading
                half = text_width(step.shape, SHAPE) / 2
                x = min(x, place.width - EDGE - half)
            _write(ax, x, 0.53, step.name, color, where, size=HEAD, fontweight="bold")
            _write(ax, x, 0.73, step.formula, "ink", where, size=HEAD)
            _write(ax, x, 0.91, step.shape, "muted", where, size=SHAPE)

    def _draw_row(self, ax: Axes, place: Places, i: int, row: list[str], y: float) -> None:
        off = not self._may[i]
        ink = "muted" if off else "ink"
        _write(ax, place.side, y, self._short[i], "muted" if off else "key", "right")
        for j, text in enumerate(row[:3]):
            _write(ax, place.side + (j + 1) * place.column, y, text, ink, "right")
        for share, color in ((1.0, "grid"), (_in_hundredths(self.weights[i]), "weight")):
            _box(ax, place.bar, y, place.bar_length * share, 0.19, COLORS[color])
        _write(ax, place.bar + place.bar_length + 0.4, y, row[3], ink, "right")
        largest = max(float(abs(self.weighted).max()), 1e-9)
        for j, (x, text) in enumerate(zip(self.weighted[i], row[4:], strict=True)):
            left = place.cells + j * place.wide
            _box(
                ax,
                left + 0.02,
                y,
                place.wide - 0.04,
                ROW - 0.05,
                _ground(_in_hundredths(x / largest)),
            )
            _write(ax, left + place.wide / 2, y, text, ink, "center")


def _row(mask: Any, m: int) -> Any:
    """Return a mask of shape (1, m) as (m,)."""
    read = inputs.read_mask(mask, np.broadcast_shapes(np.shape(mask), (1, m)))
    if len(read) != 1:
        raise ValueError(f"mask must have shape ({m},), for one query; got {np.shape(mask)}")
    return read[0]


def _number(value: float) -> str:
    """Write a number with two decimals, none if it is large."""
    if np.isneginf(value):
        return "−∞"
    if abs(value) >= VERY_LARGE:
        return two_decimals(value)
    return true_minus(f"{round(float(value), 6):.{2 if abs(value) < 1000 else 0}f}")


def _in_hundredths(share: float) -> float:
    """Round a length, without what differs in the last bits."""
    return round(round(float(share), 6), 2) + 0.0


def _ground(share: float) -> str:
    """Return a ground for a number: red above 0, grey below, the page at 0."""
    return tint(COLORS["weight" if share > 0 else "muted"], 0.42 * abs(share) + 0.03)


def _write(ax: Axes, x: float, y: float, text: str, color: str, where: str, **style: Any) -> None:
    usual: dict[str, Any] = {"size": CELL, "parse_math": False}
    put_in_middle(ax, x, y, text, color=COLORS[color], align=where, **usual | style)


def _line(ax: Axes, left: float, right: float, y: float) -> None:
    ax.plot([left, right], [y, y], color=COLORS["muted"], linewidth=0.8)


def _box(ax: Axes, left: float, middle: float, width: float, height: float, color: str) -> None:
    place = (left, middle - height / 2)
    ax.add_patch(Rectangle(place, width, height, facecolor=color, linewidth=0))
