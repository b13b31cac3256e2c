"""``Diagram``: things stand where they should, words beside lines, nothing is cut off."""

import itertools
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from d2lmini.plotting import COLORS, Diagram, show_figure
from d2lmini.plotting.diagram import KINDS
from d2lmini.plotting.theme import PALETTES, contrast, drawing_for, tint


def drawn(draw, **kwargs):
    """Return what ``draw`` gives for the light page, and the figure."""
    kept = []
    size = {"width": 5.2, "height": 3.0} | kwargs

    @show_figure(canvas=True, alt="A drawing.", show=False, **size)
    def figure(ax):
        kept.append(draw(Diagram(ax)))

    return kept[-1], figure


def extent(text, figure):
    """Return the room of a text in inches."""
    renderer = figure.figure.canvas.get_renderer()
    box = text.get_window_extent(renderer)
    return box.transformed(figure.figure.dpi_scale_trans.inverted())


def patches(figure, kind):
    return [patch for patch in figure.axes[0, 0].patches if isinstance(patch, kind)]


def test_a_box_is_as_large_as_its_words_and_knows_its_sides():
    small, figure = drawn(lambda d: d.box((1, 1), "q", kind="query"))
    large, other = drawn(lambda d: d.box((1, 1), "a longer word\nin two lines"))
    assert small.width < large.width and small.height < large.height
    assert small.left == (1 - small.width / 2, 1) and small.right == (1 + small.width / 2, 1)
    assert small.top == (1, 1 + small.height / 2) and small.bottom == (1, 1 - small.height / 2)
    room = extent(other.axes[0, 0].texts[0], other)
    assert large.left[0] < room.x0 < room.x1 < large.right[0]
    assert large.bottom[1] < room.y0 < room.y1 < large.top[1]
    (patch,) = patches(figure, FancyBboxPatch)
    assert to_hex(patch.get_edgecolor()) == COLORS["query"]
    fixed, _ = drawn(lambda d: d.box((1, 1), "q", width=1.5, height=0.7))
    assert (fixed.width, fixed.height) == (1.5, 0.7)


def test_a_formula_is_measured_as_it_is_drawn():
    part, figure = drawn(lambda d: d.text((2, 1), r"keys $\mathbf{K}\in\mathbb{R}^{m}$"))
    assert extent(figure.axes[0, 0].texts[0], figure).width == pytest.approx(part.width, abs=0.05)


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("kind", [*KINDS, None])
def test_words_can_be_read_on_every_ground(kind, theme):
    with drawing_for(theme):
        ink = to_rgb(COLORS["ink"])
        color = COLORS[kind or "ink"]
        for share in (0.1, 0.16):
            assert contrast(ink, to_rgb(tint(color, share))) >= 4.5
        if kind == "weight":
            assert contrast(ink, to_rgb(tint(color, 0.44))) >= 4.5


def test_cells_bars_and_values_of_one_pitch_stand_in_rows():
    def draw(d):
        keys = d.cells((1, 1.5), ["(1, 0)", "(0, 1)", "(0, 0)"], kind="key", title="keys")
        return keys, d.bars((3, 1.5), [0.665, 0.245, 0.09])

    (keys, bars), figure = drawn(draw)
    assert len(keys) == len(bars) == 3
    assert [k.center[1] for k in keys] == [b.center[1] for b in bars]
    assert all(a.bottom[1] > b.top[1] for a, b in itertools.pairwise(keys))
    assert {k.width for k in keys} == {keys.width}
    texts = [text.get_text() for text in figure.axes[0, 0].texts]
    assert texts[-3:] == ["0.67", "0.24", "0.09"] or texts[-3:] == ["0.66", "0.24", "0.09"]
    lengths = [bar.get_width() for bar in patches(figure, Rectangle)]
    np.testing.assert_allclose(np.array(lengths[1::2]) / 0.9, [0.665, 0.245, 0.09])


def test_a_row_of_cells_goes_to_the_right():
    row, _ = drawn(lambda d: d.cells((2, 1), ["the", "cat"], down=False))
    assert row[0].right[0] < row[1].left[0] and row[0].center[1] == row[1].center[1] == 1
    assert row.left[0] == pytest.approx(row[0].left[0])


def test_a_matrix_has_a_cell_for_each_number_and_hatches_what_is_masked():
    values = [[1.0, 0.5], [0.0, 0.25]]

    def draw(d):
        return d.matrix((2, 1), values=values, mask=[[1, 0], [1, 1]], kind="weight",
                        name="weights", shape="(2, 2)")  # fmt: skip

    matrix, figure = drawn(draw)
    assert len(matrix) == 2 and len(matrix[0]) == 2
    assert matrix[0][0].center[1] > matrix[1][0].center[1]
    assert matrix[0][0].center[0] < matrix[0][1].center[0]
    cells = patches(figure, Rectangle)
    assert [cell.get_hatch() for cell in cells].count("////") == 1
    fills = [to_hex(cell.get_facecolor()) for cell in cells if cell.get_fill()]
    assert fills[0] == tint(COLORS["weight"], 0.44) and tint(COLORS["weight"], 0.04) in fills
    assert tint(COLORS["weight"], 0.24) not in fills  # the masked one
    texts = [text.get_text() for text in figure.axes[0, 0].texts]
    assert texts == ["weights", "(2, 2)"]


@pytest.mark.parametrize("bend", [0, 0.3, -0.3])
@pytest.mark.parametrize(
    "end", [(4, 1.5), (3.5, 2.4), (2.6, 2.6), (2.6, 0.4), (1.2, 1.5), (1, 0.5)]
)
@pytest.mark.parametrize("side", [None, "left", "right"])
def test_a_label_is_never_on_its_line(end, bend, side):
    start = (2.6, 1.5)
    _, figure = drawn(lambda d: d.arrow(start, end, label="compare", bend=bend, side=side))
    (arrow,) = patches(figure, FancyArrowPatch)
    room = extent(figure.axes[0, 0].texts[0], figure)
    t = np.linspace(0, 1, 60)[:, None]
    a, b, c = arrow.get_path().vertices[:3]  # a curve of the second degree, in inches
    path = (1 - t) ** 2 * a + 2 * t * (1 - t) * b + t**2 * c
    inside = (path > (room.x0, room.y0)) & (path < (room.x1, room.y1))
    assert not inside.all(axis=1).any()
    middle = np.array([(room.x0 + room.x1) / 2, (room.y0 + room.y1) / 2])
    assert np.linalg.norm(path - middle, axis=1).min() < 0.75


def test_an_arrow_touches_neither_end():
    _, figure = drawn(lambda d: d.arrow((1, 1), (3, 1)))
    (arrow,) = patches(figure, FancyArrowPatch)
    tip = arrow.get_path().vertices[:-1, 0]
    assert tip.min() > 1.02 and tip.max() < 2.98


@pytest.mark.parametrize("line", [0.6, 1.2, 3, 6])
def test_an_arrow_is_as_wide_as_it_is_told_and_its_head_is_wider(line):
    _, figure = drawn(lambda d: d.arrow((1, 1), (3, 1), line=line))
    (arrow,) = patches(figure, FancyArrowPatch)
    style = arrow.get_arrowstyle()
    assert arrow.get_linewidth() == line
    assert 2 * style.head_width * arrow.get_mutation_scale() > line


def test_vectors_stand_in_their_plane():
    def draw(d):
        d.plane((0.5, 0.5), 0.8, x=(0, 3), y=(0, 2))
        d.angle((2, 1), (1, 2), label="θ")
        return d.vector((0, 0), (2, 1), kind="query")

    head, figure = drawn(draw)
    np.testing.assert_allclose(head, (2.1, 1.3))
    (theta,) = figure.axes[0, 0].texts
    np.testing.assert_allclose(*(np.array(theta.get_position()) - 0.5))  # on the diagonal


def test_a_bracket_has_its_words_outside():
    _, figure = drawn(lambda d: d.bracket((1, 1), (2, 1), "three tokens"))
    line = figure.axes[0, 0].lines[0].get_xydata()
    assert line[:, 1].min() > extent(figure.axes[0, 0].texts[0], figure).y1


def test_foreign_words_pass_the_gate_and_each_page_has_its_colours():
    _, figure = drawn(lambda d: d.box((1, 1), "\x1b <b>\u200b & ", kind="value"))
    for theme in PALETTES:
        svg = figure.svg(theme)
        ET.fromstring(svg)
        assert r"\x1b &lt;b&gt;\u200b &amp;" in svg and PALETTES[theme]["value"] in svg


TWO = {"rows": 2, "columns": 2, "values": [[1, 2]]}
BAD = {
    "no such kind": (lambda d: d.box((1, 1), "q", kind="quary"), "kind must be one of query, key"),
    "off the sheet": (lambda d: d.box((5.1, 1), "query"), "'query' does not fit on the sheet"),
    "words off the sheet": (lambda d: d.text((0.1, 1), "words"), "'words' does not fit"),
    "a title off the sheet": (lambda d: d.cells((1, 2.7), ["a"], title="keys"), "'keys' does not"),
    "no way": (lambda d: d.arrow((1, 1), (1, 1)), "an arrow needs some way to go"),
    "no line": (lambda d: d.arrow((1, 1), (3, 1), line=0), "line must be above 0"),
    "no boxes": (lambda d: d.cells((1, 1), []), "texts is empty"),
    "a bar below 0": (lambda d: d.bars((1, 1), [0.5, -0.1]), "values must be at least 0"),
    "no bars": (lambda d: d.bars((1, 1), []), "values must be at least 0, and at least one"),
    "no shape": (lambda d: d.matrix((1, 1)), "needs one shape .*; got none"),
    "two shapes": (lambda d: d.matrix((1, 1), **TWO), "needs one shape"),
    "empty": (lambda d: d.matrix((1, 1), rows=0, columns=2), "at least one row"),
    "a number below 0": (lambda d: d.matrix((1, 1), values=[[-1]]), "values must be finite and at"),
    "no plane": (lambda d: d.vector((0, 0), (1, 1)), "there is no plane yet"),
}  # fmt: skip


@pytest.mark.parametrize(("draw", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_told_in_words(draw, message):
    with pytest.raises(ValueError, match=message):
        drawn(draw)


def test_words_are_strings_and_axes_are_axes():
    with pytest.raises(TypeError, match="words must be a string; got int"):
        drawn(lambda d: d.text((1, 1), 3))
    with pytest.raises(TypeError, match="drawn on axes; got str"):
        Diagram("axes")
