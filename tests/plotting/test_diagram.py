"""``Diagram``: things stand where they should, words beside lines, nothing is cut off."""

import itertools
import re

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, PathPatch, Rectangle

from d2lmini.plotting import COLORS, Diagram, Part, show_figure
from d2lmini.plotting.diagram import KINDS
from d2lmini.plotting.theme import PALETTES, RAMP, contrast, drawing_for, tint
from lettering.letters import SET_CAPITAL, lettered
from tests.plotting.reading import words


def drawn(draw):
    """Return what ``draw`` gives for the light page, and the figure."""
    kept = []

    @show_figure(canvas=True, alt="A drawing.", show=False, width=5.2, height=3.0)
    def figure(ax):
        kept.append(draw(Diagram(ax)))

    return kept[-1], figure


def extent(figure, number=0):
    """Return the room of a text in inches."""
    renderer = figure.figure.canvas.get_renderer()
    box = figure.axes[0, 0].texts[number].get_window_extent(renderer)
    return box.transformed(figure.figure.dpi_scale_trans.inverted())


def patches(figure, kind):
    return [patch for patch in figure.axes[0, 0].patches if isinstance(patch, kind)]


def test_a_box_is_as_large_as_its_words_and_knows_its_sides():
    small, figure = drawn(lambda d: d.box((1, 1), "q", kind="query"))
    large, other = drawn(lambda d: d.box((1, 1), "a longer word\nin two lines"))
    assert small.width < large.width and small.height < large.height
    assert small.left == (1 - small.width / 2, 1) and small.right == (1 + small.width / 2, 1)
    assert small.top == (1, 1 + small.height / 2) and small.bottom == (1, 1 - small.height / 2)
    room = extent(other)
    assert large.left[0] < room.x0 < room.x1 < large.right[0]
    assert large.bottom[1] < room.y0 < room.y1 < large.top[1]
    assert to_hex(patches(figure, FancyBboxPatch)[0].get_edgecolor()) == COLORS["query"]
    part = Part((2.0, 1.0), width=1.0, height=0.5)
    assert part.along("left", 2) == [(1.5, 1.125), (1.5, 0.875)]
    part, formula = drawn(lambda d: d.text((2, 1), r"keys $\mathbf{K}\in\mathbb{R}^{m}$"))
    assert extent(formula).width == pytest.approx(part.width, abs=0.05)


@pytest.mark.parametrize("theme", PALETTES)
def test_words_can_be_read_on_every_ground(theme):
    with drawing_for(theme):
        for kind in [*KINDS, "ink"]:
            ground = to_rgb(tint(COLORS[kind], 0.44 if kind == "weight" else 0.16))
            assert contrast(to_rgb(COLORS["ink"]), ground) >= 4.5, kind


def test_cells_bars_and_values_of_one_pitch_stand_in_rows():
    shares = [0.665, 0.245, 0.09]

    def draw(d):
        keys = d.cells((1, 1.5), ["(1, 0)", "(0, 1)", "(0, 0)"], kind="key", title="keys")
        return keys, d.bars((3, 1.5), shares), d.cells((2, 0.3), ["the", "cat"], down=False)

    (keys, bars, row), figure = drawn(draw)
    assert [k.center[1] for k in keys] == [b.center[1] for b in bars]
    assert all(a.bottom[1] > b.top[1] for a, b in itertools.pairwise(keys))
    assert {k.width for k in keys} == {keys.width}
    np.testing.assert_allclose([float(word) for word in words(figure)[4:7]], shares, atol=0.0051)
    lengths = [bar.get_width() for bar in patches(figure, Rectangle)]
    np.testing.assert_allclose(np.array(lengths[1::2]) / 0.9, shares)
    _, above = drawn(lambda d: d.bars((3, 1.5), [2.0, 1.0]))
    assert [bar.get_width() for bar in patches(above, Rectangle)][1::2] == [0.9, 0.45]
    assert row[0].right[0] < row[1].left[0] and row[0].center[1] == row[1].center[1] == 0.3
    assert row.left[0] == pytest.approx(row[0].left[0])


def test_a_matrix_has_a_cell_for_each_number_and_hatches_what_is_masked():
    given = {"values": [[1.0, 0.5], [0.0, 0.25]], "mask": [[1, 0], [1, 1]]}
    told = {"kind": "weight", "name": "weights", "shape": "(2, 2)"}
    matrix, figure = drawn(lambda d: d.matrix((2, 1), **given, **told))
    assert matrix[0][0].center[1] > matrix[1][0].center[1]
    assert matrix[0][0].center[0] < matrix[0][1].center[0]
    cells = patches(figure, Rectangle)
    (hatched,) = (cell for cell in cells if cell.get_hatch())
    corner = matrix[0][1].left[0], matrix[0][1].bottom[1]
    np.testing.assert_allclose(hatched.get_xy(), corner)
    fills = [to_hex(cell.get_facecolor()) for cell in cells if cell.get_fill()]
    assert {RAMP["light"][0], RAMP["light"][2]} < set(fills), "a weight has one colour everywhere"
    assert RAMP["light"][1] not in fills  # the masked one
    assert words(figure) == ["weights", "(2, 2)"]


WAYS = [(4, 1.5), (3.5, 2.4), (2.6, 2.6), (2.6, 0.4), (1.2, 1.5), (1, 0.5)]


@pytest.mark.parametrize("side", [None, "left", "right"])
@pytest.mark.parametrize("bend", [0, 0.3, -0.3])
def test_a_label_is_never_on_its_line(bend, side):
    start, t = (2.6, 1.5), np.linspace(0, 1, 60)[:, None]
    about = {"label": "compare", "bend": bend, "side": side}
    _, figure = drawn(lambda d: [d.arrow(start, end, **about) for end in WAYS])
    for number, arrow in enumerate(patches(figure, FancyArrowPatch)):
        room = extent(figure, number)
        a, b, c = arrow.get_path().vertices[:3]  # a curve of the second degree, in inches
        path = (1 - t) ** 2 * a + 2 * t * (1 - t) * b + t**2 * c
        inside = (path > (room.x0, room.y0)) & (path < (room.x1, room.y1))
        assert not inside.all(axis=1).any()
        middle = np.array([(room.x0 + room.x1) / 2, (room.y0 + room.y1) / 2])
        assert np.linalg.norm(path - middle, axis=1).min() < 0.75


def test_an_arrow_touches_neither_end_and_a_thick_one_has_no_head_and_touches_both():
    lines = [0.6, 2, 6]
    _, figure = drawn(lambda d: [d.arrow((1, 1), (3, 1), line=line) for line in lines])
    for arrow, line in zip(patches(figure, FancyArrowPatch), lines, strict=True):
        tip = arrow.get_path().vertices[:-1, 0]
        assert arrow.get_linewidth() == line
        if line > 2:
            np.testing.assert_allclose([*arrow.get_path().vertices[[0, -1], 0]], [1, 3], atol=1e-9)
            continue
        assert tip.min() > 1.02 and tip.max() < 2.98
        assert 2 * arrow.get_arrowstyle().head_width * arrow.get_mutation_scale() > line


@pytest.mark.parametrize("words", ["0.99", "le", "petit", "H\nH", "up\nHo\nby"])
def test_capitals_and_digits_are_in_the_middle_of_a_box_whatever_hangs_below(words):
    """Also where a page sets the words anew, in another size."""
    part, figure = drawn(lambda d: d.box((2, 1.5), words))
    for svg, capital in (
        (figure.svg(), 0.73),
        (lettered(figure.svg().encode(), 640, 14).decode(), SET_CAPITAL),
    ):
        lines = [float(y) for y in re.findall(r'<text [^>]* y="([\d.]+)"', svg)]
        size = float(re.search(r"font-size: ([\d.]+)px", svg)[1])
        np.testing.assert_allclose(np.diff(lines), 1.3 * size, atol=0.05)
        middle = np.mean(lines) - capital * size / 2
        assert len(lines) == words.count("\n") + 1
        assert abs(middle - 72 * (3 - part.center[1])) < 0.15, "points, of a sheet 3 inches high"


def test_flows_are_as_thick_as_they_are_told_and_lie_on_one_another():
    def draw(d):
        for y, arrives, thick in ((2.5, 1.6, 0.2), (0.5, 1.45, 0.1)):
            d.flow((1, y), (3, arrives), thick=thick)

    _, figure = drawn(draw)
    bands = patches(figure, PathPatch)
    assert [band.get_linewidth() for band in bands] == pytest.approx([72 * 0.2, 72 * 0.1])
    for band, ends in zip(bands, ([(1, 2.5), (3, 1.6)], [(1, 0.5), (3, 1.45)]), strict=True):
        way = band.get_path().vertices
        np.testing.assert_allclose(way[[0, -1]], ends)
        np.testing.assert_allclose(way[[1, -2], 1], way[[0, -1], 1])  # it leaves and arrives level
        assert band.get_capstyle() == "butt", "it ends where the next begins"


def test_vectors_stand_in_their_plane_and_a_bracket_has_its_words_outside():
    def draw(d):
        d.plane((0.5, 0.5), 0.8, x=(0, 3), y=(0, 2))
        return d.vector((0, 0), (2, 1), kind="query")

    head, _ = drawn(draw)
    np.testing.assert_allclose(head, (2.1, 1.3))
    _, figure = drawn(lambda d: d.bracket((1, 1), (2, 1), "three tokens"))
    line = figure.axes[0, 0].lines[0].get_xydata()
    assert line[:, 1].min() > extent(figure).y1
