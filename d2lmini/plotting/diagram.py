"""Drawings of the mechanism: boxes, cells, bars, matrices, vectors, and arrows between them."""

import d2lmini.plotting._matplotlib  # noqa: F401

# isort: split

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cbook import is_math_text
from matplotlib.colors import to_hex
from matplotlib.patches import Arc, FancyArrowPatch, FancyBboxPatch, PathPatch, Rectangle
from matplotlib.path import Path as Outline

from d2lmini.plotting._dark_maps import weight_map
from d2lmini.plotting._legible import legible
from d2lmini.plotting._text import put_in_middle, text_width
from d2lmini.plotting.theme import COLORS, hatch_color, page_theme, tint

__all__ = ["Diagram", "Part"]

Point: TypeAlias = tuple[float, float]
Kind: TypeAlias = Literal["query", "key", "value", "output", "weight", "muted"] | None
Side: TypeAlias = Literal["left", "right", "top", "bottom"]

SIDES = ("left", "right", "top", "bottom")
KINDS = ("query", "key", "value", "output", "weight", "muted")
TEXT, SMALL = 11.0, 10.5  # sizes of text, in points
LINE = 1.3 / 72  # inches from line to line for each point of size
PITCH, CELL = 0.4, 0.34  # inches from cell to cell in a column, and a cell's height
ROUND = 0.06  # inches: radius of a corner
SPACE = 0.07  # inches between a thing and the words about it
THICK = 2.0  # points: a thicker line has no head
GROUND = 0.1  # the share of its colour in the ground of a box
FLOW = 0.55  # the share of its colour in what flows


@dataclass(frozen=True)
class Part:
    """Something drawn: where it is, and what it is made of.

    Attributes
    ----------
    center, left, right, top, bottom : (float, float)
        Its middle and the middles of its sides, in inches: where arrows start and end.
    width, height : float
        In inches.
    parts : tuple of Part
        The cells of a column, the rows of a matrix; ``part[i]`` is one of them.
    """

    center: Point
    width: float
    height: float
    parts: "tuple[Part, ...]" = ()

    @property
    def left(self) -> Point:
        """The middle of the left side."""
        return self.center[0] - self.width / 2, self.center[1]

    @property
    def right(self) -> Point:
        """The middle of the right side."""
        return self.center[0] + self.width / 2, self.center[1]

    @property
    def top(self) -> Point:
        """The middle of the upper side."""
        return self.center[0], self.center[1] + self.height / 2

    @property
    def bottom(self) -> Point:
        """The middle of the lower side."""
        return self.center[0], self.center[1] - self.height / 2

    def along(self, side: Side, count: int) -> list[Point]:
        """Return places spread evenly over a side, for arrows that would meet in one point.

        Parameters
        ----------
        side : "left", "right", "top" or "bottom"
            Which side.
        count : int
            How many places.

        Returns
        -------
        list of (float, float)
            From left to right, or from the top down.

        Examples
        --------
        >>> from d2lmini.plotting import Part
        >>> Part((2.0, 1.0), width=1.0, height=0.5).along("top", 2)
        [(1.75, 1.25), (2.25, 1.25)]
        """
        if side not in SIDES:
            raise ValueError(f"side must be one of {', '.join(SIDES)}; got {side!r}")
        if count < 1:
            raise ValueError(f"count must be at least 1; got {count}")
        down = side in ("left", "right")
        step = (self.height if down else self.width) / count
        return _spread(getattr(self, side), count, step, down=down)

    def __getitem__(self, position: int) -> "Part":
        """Return one of the parts."""
        return self.parts[position]

    def __len__(self) -> int:
        return len(self.parts)

    def __iter__(self) -> "Iterator[Part]":
        return iter(self.parts)

    def __bool__(self) -> bool:
        return True


class Diagram:
    r"""A drawing of boxes, cells, bars, matrices and vectors in the book's five colours.

    It draws on the axes that `show_figure` gives for a canvas: places are in inches from the lower
    left corner, and what would not fit on the sheet is an error. Each thing has a kind, which gives
    its colour: "query", "key", "value", "output", "weight", "muted", or None for the colour of
    text. What is drawn is returned as a `Part`, so that arrows can lead to it.

    Words are 11 points high; between two ``$`` stands a formula, such as ``$\mathbf{q}$``.

    Parameters
    ----------
    ax : matplotlib.axes.Axes
        An empty sheet that is measured in inches.

    Examples
    --------
    >>> from d2lmini.plotting import Diagram, show_figure
    >>> @show_figure(canvas=True, width=3.4, height=1.3, alt="The query meets two keys.")
    ... def meeting(ax):
    ...     d = Diagram(ax)
    ...     query = d.box((0.7, 0.6), "query")
    ...     keys = d.cells((2.8, 0.6), ["(1, 0)", "(0, 1)"], kind="key", title="keys")
    ...     for key in keys:
    ...         d.arrow(query.right, key.left)
    >>> meeting
    The query meets two keys.
    """

    def __init__(self, ax: Axes) -> None:
        if not isinstance(ax, Axes):
            raise TypeError(f"a Diagram is drawn on axes; got {type(ax).__name__}")
        self.ax = ax
        self._plane: tuple[Point, float] | None = None

    # ------------------------------------------------------------------------------- boxes, cells

    def box(
        self,
        center: Point,
        text: str = "",
        *,
        kind: Kind = None,
        width: float | None = None,
        height: float | None = None,
        size: float = TEXT,
    ) -> Part:
        """Draw a box around words.

        Parameters
        ----------
        center : (float, float)
            Its middle, in inches.
        text : str
            One line or several.
        kind : str, optional
            Gives the colour.
        width, height : float, optional
            In inches; as large as the words need, if left out.
        size : float
            Of the words, in points.

        Returns
        -------
        Part
        """
        words = _words(text)
        part = Part(
            (float(center[0]), float(center[1])),
            _width(words, size) + 0.28 if width is None else width,
            max(CELL, _height(words, size) + 0.14) if height is None else height,
        )
        color = _color(kind)
        share = GROUND if kind not in (None, "muted") else 0.03
        edge = color if kind else COLORS["muted"]
        self._rounded(part, tint(color, share), edge, repr(text))
        self._put(part.center, words, color=COLORS["ink"], size=size)
        return part

    def cells(
        self,
        center: Point,
        texts: Sequence[str],
        *,
        kind: Kind = None,
        title: str = "",
        down: bool = True,
        width: float | None = None,
        pitch: float | None = None,
    ) -> Part:
        """Draw a column of boxes of one size, or a row of them.

        Parameters
        ----------
        center : (float, float)
            The middle of all of them, in inches, without the title.
        texts : list of str
            The words in each.
        kind : str, optional
            Gives the colour.
        title : str
            Stands above, in the colour of the kind.
        down : bool
            Whether they stand below one another.
        width : float, optional
            Of one box, in inches.
        pitch : float, optional
            From the middle of one box to the next; 0.4 in a column, a little more than the width
            in a row.

        Returns
        -------
        Part
            With one part for each box.
        """
        words = [_words(text) for text in texts]
        if not words:
            raise ValueError("texts is empty; give the words of at least one box")
        width = max(_width(each, TEXT) for each in words) + 0.24 if width is None else width
        tall = max(CELL, *(_height(each, TEXT) + 0.1 for each in words))
        step = pitch or (tall + PITCH - CELL if down else width + 0.07)
        middles = _spread(center, len(words), step, down=down)
        boxes = tuple(
            self.box(at, text, kind=kind, width=width, height=tall)
            for at, text in zip(middles, texts, strict=True)
        )
        length = (len(words) - 1) * step
        whole = Part(
            center, width if down else length + width, length + tall if down else tall, boxes
        )
        self._title(whole, title, kind)
        return whole

    def bars(
        self,
        center: Point,
        values: Sequence[float],
        *,
        title: str = "",
        length: float = 0.9,
        decimals: int = 2,
    ) -> Part:
        """Draw weights as horizontal bars below one another, with their numbers at their ends.

        A bar of full length is 1, or the largest value above 1. Bars stand beside the boxes of
        `cells`.

        Parameters
        ----------
        center : (float, float)
            The middle of bars and numbers together, in inches.
        values : list of float
            None below 0.
        title : str
            Stands above.
        length : float
            Of the longest possible bar, in inches.
        decimals : int
            Of the numbers.

        Returns
        -------
        Part
            With one part for each bar, its number included.
        """
        numbers = [float(value) for value in values]
        if not numbers or not all(math.isfinite(x) and x >= 0 for x in numbers):
            raise ValueError(f"values must be at least 0, and at least one; got {numbers}")
        texts = [f"{x:.{decimals}f}" for x in numbers]
        room = SPACE + max(_width(text, TEXT) for text in texts)
        left, thick = center[0] - (length + room) / 2, 0.17
        scale = max(1.0, *numbers)
        rows = []
        for i, (x, y) in enumerate(_spread(center, len(numbers), PITCH, down=True)):
            self._inside(left, left + length + room, y - thick / 2, y + thick / 2, "bars")
            self._block((left - 0.01, y - thick / 2), 0.01, thick, COLORS["muted"])  # where 0 is
            wide = length * numbers[i] / scale
            if wide > 0:
                self._block((left, y - thick / 2), wide, thick, COLORS["weight"])
            ink = COLORS["ink" if float(texts[i]) else "muted"]
            self._put((left + wide + SPACE, y), texts[i], color=ink, size=TEXT, align="left")
            rows.append(Part((x, y), length + room, CELL))
        tall = (len(rows) - 1) * PITCH + CELL
        whole = Part(center, length + room, tall, tuple(rows))
        self._title(whole, title, "weight")
        return whole

    def matrix(
        self,
        center: Point,
        *,
        rows: int | None = None,
        columns: int | None = None,
        kind: Kind = None,
        name: str = "",
        shape: str = "",
        values: Any = None,
        mask: Any = None,
        cell: float | Point = 0.22,
    ) -> Part:
        """Draw a grid of cells: pale, or the stronger the larger its value.

        Parameters
        ----------
        center : (float, float)
            The middle of the cells, in inches, without the words around them.
        rows, columns : int, optional
            How many; may be left out where `values` or `mask` says it.
        kind : str, optional
            Gives the colour.
        name, shape : str
            What stands above, in the colour of the kind, and below.
        values : array, shape (rows, columns), optional
            None below 0; the largest, at least 1, has the strongest colour. Weights have the
            colours of a heatmap.
        mask : boolean array, shape (rows, columns), optional
            Cells where it is False are hatched and have no colour.
        cell : float or (float, float), optional
            Width and height of a cell, in inches; 0.22 unless given.

        Returns
        -------
        Part
            With one part for each row, and in it one for each cell.
        """
        table = None if values is None else np.atleast_2d(np.asarray(values, dtype=float))
        size = self._size(rows, columns, table, mask)
        wide, tall = cell if isinstance(cell, tuple) else (cell, cell)
        if table is not None and not (np.isfinite(table).all() and (table >= 0).all()):
            raise ValueError("values must be finite and at least 0")
        may = np.ones(size, bool) if mask is None else np.asarray(mask, dtype=bool)
        largest = 1.0 if table is None else max(1.0, float(table.max()))
        color = _color(kind)
        whole_width, whole_height = size[1] * wide, size[0] * tall
        left, top = center[0] - whole_width / 2, center[1] + whole_height / 2
        self._inside(left, left + whole_width, top - whole_height, top, f"matrix {name}")
        lines = []
        for i in range(size[0]):
            row = []
            for j in range(size[1]):
                if not may[i, j]:
                    ground = tint(COLORS["ink"], 0.03)
                elif table is not None and kind == "weight":
                    ground = to_hex(weight_map(page_theme())(table[i, j] / largest))
                else:
                    share = 0.16 if table is None else 0.04 + 0.4 * table[i, j] / largest
                    ground = tint(color, share)
                corner = (left + j * wide, top - (i + 1) * tall)
                hatch = None if may[i, j] else "////"
                self._cell(corner, wide, tall, ground, color, hatch)
                row.append(Part((corner[0] + wide / 2, corner[1] + tall / 2), wide, tall))
            lines.append(Part((center[0], row[0].center[1]), whole_width, tall, tuple(row)))
        whole = Part(center, whole_width, whole_height, tuple(lines))
        self._title(whole, name, kind)
        if shape:
            y = whole.bottom[1] - SPACE - _height(_words(shape), SMALL) / 2
            self._put((center[0], y), _words(shape), color=COLORS["muted"], size=SMALL)
        return whole

    @staticmethod
    def _size(rows: int | None, columns: int | None, *tables: Any) -> tuple[int, int]:
        """Return how many rows and columns a matrix has, by all that is known of it."""
        sizes = {np.shape(np.atleast_2d(table)) for table in tables if table is not None}
        if rows is not None and columns is not None:
            sizes.add((rows, columns))
        if len(sizes) != 1:
            told = " and ".join(map(str, sorted(sizes))) or "none"
            raise ValueError(f"a matrix needs one shape (rows, columns); got {told}")
        (size,) = sizes
        if len(size) != 2 or min(size) < 1:
            raise ValueError(f"a matrix has at least one row and one column; got {size}")
        return int(size[0]), int(size[1])

    # ---------------------------------------------------------------------------- words and lines

    def text(
        self,
        place: Point,
        text: str,
        *,
        kind: Kind = None,
        size: float = TEXT,
        align: Literal["left", "center", "right"] = "center",
        bold: bool = False,
    ) -> Part:
        """Write words, in the colour of a kind.

        Parameters
        ----------
        place : (float, float)
            The middle of the words, or of their left or right side, in inches.
        text : str
            One line or several.
        kind : str, optional
            Gives the colour.
        size : float
            In points.
        align : "left", "center" or "right"
            Which of them stands at the place.
        bold : bool
            Whether in heavy letters.

        Returns
        -------
        Part
            The room that the words take.
        """
        return self._put(place, _words(text), color=_color(kind), size=size, align=align, bold=bold)

    def arrow(
        self,
        start: Point,
        end: Point,
        *,
        label: str = "",
        kind: Kind = None,
        bend: float = 0.0,
        side: Literal["left", "right"] | None = None,
        dashed: bool = False,
        line: float = 1.2,
    ) -> None:
        """Draw an arrow that ends a little before what it points to, or a thick line to it.

        Parameters
        ----------
        start, end : (float, float)
            Such as ``box.right`` and ``other.left``.
        label : str
            Stands beside the middle, never on the line.
        kind : str, optional
            Gives the colour.
        bend : float
            How far the arrow leaves the straight line, as a share of its length: to the right of
            its way above 0, to the left below.
        side : "left" or "right", optional
            Of the way: where the label stands. Without it, outside of the bend, above a straight
            arrow, and to the right of an upright one.
        dashed : bool
            Whether the line is dashed.
        line : float
            How thick the line is, in points: such as 0.6 + 3 * weight. Above 2 it is a line that
            begins and ends at both things and has no head.
        """
        dx, dy = end[0] - start[0], end[1] - start[1]
        way = math.hypot(dx, dy)
        if way < 0.05:
            raise ValueError(f"an arrow needs some way to go; got {start} to {end}")
        if not 0 < line <= 6:
            raise ValueError(f"line must be above 0 and at most 6 points; got {line}")
        color = _color(kind) if kind else tint(COLORS["ink"], 0.75)
        thick = line > THICK
        arrow = FancyArrowPatch(
            start,
            end,
            arrowstyle="-" if thick else "-|>,head_length=4.5,head_width=2.2",
            mutation_scale=max(0.8, (1 + line / 1.2) / 2),
            connectionstyle=f"arc3,rad={bend}",
            shrinkA=0 if thick else 3,
            shrinkB=0 if thick else 3,
            linewidth=line,
            capstyle="butt",
            color=color,
            joinstyle="miter",
            linestyle=(0, (3, 2)) if dashed else "-",
        )
        self.ax.add_patch(arrow)
        if not label:
            return
        words = _words(label)
        right = dy / way, -dx / way  # to the right of the way
        if side is None:
            outside = bend > 0 or (bend == 0 and (right[1] > 1e-9 or (right[0] > 0.999)))
            side = "right" if outside else "left"
        normal = right if side == "right" else (-right[0], -right[1])
        bulge = max(0.0, (bend if side == "right" else -bend) * way / 2)
        self._put_beside(_between(start, end), normal, bulge + 0.05, words, _color(kind), SMALL)

    def flow(self, start: Point, end: Point, *, thick: float, kind: Kind = "value") -> None:
        """Draw a band that leaves to the right or left and arrives so: a value on its way.

        It has no head. Where several arrive, one above another, their thicknesses add up.

        Parameters
        ----------
        start, end : (float, float)
            The middles of its two ends, in inches, not above one another.
        thick : float
            In inches, such as 0.2 * weight.
        kind : str
            Gives the colour.
        """
        if start[0] == end[0] or not thick > 0:
            raise ValueError(
                f"a flow needs a way to the side and some thickness; got {start} to "
                f"{end}, {thick:g} thick"
            )
        third = (end[0] - start[0]) / 3
        way = [start, (start[0] + third, start[1]), (end[0] - third, end[1]), end]
        color = tint(_color(kind), FLOW)
        self.ax.add_patch(  # a line of that width, thick across its way everywhere
            PathPatch(
                Outline(way, [Outline.MOVETO, *[Outline.CURVE4] * 3]),
                fill=False,
                edgecolor=color,
                linewidth=72 * thick,
                capstyle="butt",
            )
        )

    def bracket(
        self, start: Point, end: Point, label: str = "", *, kind: Kind = None, depth: float = 0.08
    ) -> None:
        """Draw a square bracket along a line, open to the left of the way, with words outside.

        Parameters
        ----------
        start, end : (float, float)
            Its ends, in inches.
        label : str
            Stands at the right of the way from start to end.
        kind : str, optional
            Gives the colour.
        depth : float
            Of the bracket, in inches.
        """
        dx, dy = end[0] - start[0], end[1] - start[1]
        way = math.hypot(dx, dy)
        right = dy / way, -dx / way
        corners = [(x + depth * right[0], y + depth * right[1]) for x, y in (start, end)]
        xs, ys = zip(start, *corners, end, strict=True)
        color = _color(kind) if kind else COLORS["muted"]
        self.ax.plot(xs, ys, color=color, linewidth=1.1, solid_joinstyle="round")
        if label:
            gap, color = depth + SPACE, _color(kind)
            self._put_beside(_between(start, end), right, gap, _words(label), color, SMALL)

    # -------------------------------------------------------------------------- vectors in a plane

    def plane(
        self,
        origin: Point,
        scale: float,
        *,
        x: tuple[int, int] = (0, 3),
        y: tuple[int, int] = (0, 2),
    ) -> None:
        """Draw a grid for the vectors that follow.

        Parameters
        ----------
        origin : (float, float)
            Where (0, 0) lies, in inches.
        scale : float
            How many inches 1 is.
        x, y : (int, int)
            How far the grid reaches.
        """
        self._plane = origin, scale
        corners = self._at((x[0], y[0])), self._at((x[1], y[1]))
        self._inside(corners[0][0], corners[1][0], corners[0][1], corners[1][1], "plane")
        for limits, others, upright in ((x, y, True), (y, x, False)):
            for at in range(limits[0], limits[1] + 1):
                ends = [(at, other) if upright else (other, at) for other in others]
                xs, ys = zip(*(self._at(end) for end in ends), strict=True)
                axis = at == 0
                color = COLORS["muted"] if axis else COLORS["grid"]
                self.ax.plot(xs, ys, color=color, linewidth=0.9 if axis else 0.7, zorder=0.5)

    def vector(self, start: Point, end: Point, *, kind: Kind = None) -> Point:
        """Draw a vector as an arrow in the plane.

        Parameters
        ----------
        start, end : (float, float)
            In the plane's own numbers: (0, 0) to the components of the vector.
        kind : str, optional
            Gives the colour.

        Returns
        -------
        (float, float)
            Where the head is, in inches.
        """
        head = self._at(end)
        arrow = FancyArrowPatch(
            self._at(start),
            head,
            arrowstyle="-|>,head_length=6,head_width=2.8",
            mutation_scale=1,
            shrinkA=0,
            shrinkB=0,
            linewidth=1.8,
            color=_color(kind),
            joinstyle="miter",
            zorder=3,
        )
        self.ax.add_patch(arrow)
        return head

    def angle(self, first: Point, second: Point, *, label: str = "", radius: float = 0.35) -> None:
        """Draw the angle between two vectors that start at (0, 0).

        Parameters
        ----------
        first, second : (float, float)
            The vectors, in the plane's own numbers.
        label : str
            Stands outside the arc.
        radius : float
            Of the arc, in inches.
        """
        (x, y), _ = self._on_plane()
        turn = sorted(math.degrees(math.atan2(v[1], v[0])) for v in (first, second))
        if turn[1] - turn[0] > 180:
            turn = [turn[1], turn[0] + 360]
        color = COLORS["muted"]
        arc = Arc(
            (x, y), 2 * radius, 2 * radius, theta1=turn[0], theta2=turn[1], color=color, zorder=2
        )
        arc.set_linewidth(1.1)
        self.ax.add_patch(arc)
        if label:
            middle = math.radians(sum(turn) / 2)
            along, ink = (math.cos(middle), math.sin(middle)), COLORS["ink"]
            self._put_beside((x, y), along, radius + 0.03, _words(label), ink, TEXT)

    def _on_plane(self) -> tuple[Point, float]:
        if self._plane is None:
            raise ValueError("there is no plane yet; call plane(origin, scale) first")
        return self._plane

    def _at(self, place: Point) -> Point:
        """Return where a place of the plane lies, in inches."""
        (x, y), scale = self._on_plane()
        return x + scale * place[0], y + scale * place[1]

    # ------------------------------------------------------------------------------------- pieces

    def _title(self, part: Part, title: str, kind: Kind) -> None:
        """Write a title above a part."""
        if title:
            words = _words(title)
            y = part.top[1] + SPACE + _height(words, TEXT) / 2
            self._put((part.center[0], y), words, color=_color(kind), size=TEXT)

    def _put(
        self,
        place: Point,
        words: str,
        *,
        color: str,
        size: float,
        align: str = "center",
        bold: bool = False,
    ) -> Part:
        """Write words that have passed the gate, and return the room that they take."""
        wide, tall = _width(words, size, bold=bold), _height(words, size)
        middle = place[0] + {"left": wide / 2, "center": 0.0, "right": -wide / 2}[align]
        part = Part((middle, place[1]), wide, tall)
        if words:
            what = repr(words)
            self._inside(part.left[0], part.right[0], part.bottom[1], part.top[1], what)
            style: dict[str, Any] = {"fontweight": "bold"} if bold else {}
            lines = words.split("\n")
            for line, (x, y) in zip(
                lines, _spread(place, len(lines), LINE * size, down=True), strict=True
            ):
                style |= {"size": size, "align": align, "color": color, "zorder": 4}
                put_in_middle(self.ax, x, y, line, **style)
        return part

    def _put_beside(
        self, place: Point, way: Point, gap: float, words: str, color: str, size: float
    ) -> None:
        """Write words that begin at a distance from a place, on the way, of length 1, from it."""
        half = abs(way[0]) * _width(words, size) / 2 + abs(way[1]) * _height(words, size) / 2
        at = place[0] + way[0] * (gap + half), place[1] + way[1] * (gap + half)
        self._put(at, words, color=color, size=size)

    def _rounded(self, part: Part, ground: str, edge: str, what: str) -> None:
        left, low = part.left[0], part.bottom[1]
        self._inside(left, left + part.width, low, low + part.height, what)
        style = f"round,pad=0,rounding_size={ROUND}"
        self.ax.add_patch(
            FancyBboxPatch(
                (left, low),
                part.width,
                part.height,
                boxstyle=style,
                facecolor=ground,
                edgecolor=edge,
                linewidth=1.1,
            )
        )

    def _block(self, corner: Point, width: float, height: float, color: str) -> None:
        self.ax.add_patch(Rectangle(corner, width, height, facecolor=color, linewidth=0))

    def _cell(
        self,
        corner: Point,
        width: float,
        height: float,
        ground: str,
        color: str,
        hatch: str | None,
    ) -> None:
        if hatch:
            lines = hatch_color()
            with matplotlib.rc_context({"hatch.color": lines}):  # older versions take the edge's
                style: dict[str, Any] = {"hatch": hatch, "edgecolor": lines, "linewidth": 0}
                self.ax.add_patch(Rectangle(corner, width, height, facecolor=ground, **style))
        fill: dict[str, Any] = {"fill": False} if hatch else {"facecolor": ground}
        edge = tint(color, 0.65)
        self.ax.add_patch(Rectangle(corner, width, height, edgecolor=edge, linewidth=0.8, **fill))

    def _inside(self, left: float, right: float, low: float, high: float, what: str) -> None:
        """Refuse what would be cut off by the edge of the sheet."""
        (x0, x1), (y0, y1) = sorted(self.ax.get_xlim()), sorted(self.ax.get_ylim())
        if left < x0 - 0.01 or right > x1 + 0.01 or low < y0 - 0.01 or high > y1 + 0.01:
            raise ValueError(
                f"{what} does not fit on the sheet of {x1 - x0:g} x {y1 - y0:g} inches: it reaches "
                f"from ({left:.2f}, {low:.2f}) to ({right:.2f}, {high:.2f})"
            )


def _color(kind: Kind) -> str:
    if kind is None:
        return COLORS["ink"]
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, or None; got {kind!r}")
    return COLORS[kind]


def _words(text: str) -> str:
    """Return words that can be drawn."""
    if not isinstance(text, str):
        raise TypeError(f"words must be a string; got {type(text).__name__}")
    return legible(text, keep="\n")


def _between(start: Point, end: Point) -> Point:
    """Return the middle of a line."""
    return (start[0] + end[0]) / 2, (start[1] + end[1]) / 2


def _spread(center: Point, count: int, step: float, *, down: bool) -> list[Point]:
    """Return the middles of things that stand in a column or a row."""
    shifts = [step * (i - (count - 1) / 2) for i in range(count)]
    x, y = center
    return [(x, y - shift) if down else (x + shift, y) for shift in shifts]


def _width(words: str, size: float, *, bold: bool = False) -> float:
    """Return the width of the widest line, formulas included, in inches."""
    return max(
        text_width(line, size, bold=bold, formula=bool(is_math_text(line)))
        for line in words.split("\n")
    )


def _height(words: str, size: float) -> float:
    """Return the height of all lines, in inches."""
    return (words.count("\n") + 1) * size * LINE if words else 0.0
