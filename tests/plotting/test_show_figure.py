"""``show_figure``: drawn for two pages, described, the same on every run."""

import hashlib
import re

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from d2lmini.plotting import COLORS, show_figure
from d2lmini.plotting._svg import data_address
from d2lmini.plotting.theme import PALETTES
from tests.plotting.test_shown import run_python


def plot(ax):
    ax.plot([0, 1, 2], [0, 1, 4], color=COLORS["value"], label="5 $ a day")
    ax.plot([0, 1, 2], [4, 1, 0], "--")
    ax.set(xlabel="time", ylabel="height", title="A <b>curve</b>")
    ax.legend()


def test_each_page_has_its_colours_and_what_the_user_has_set_changes_nothing():
    curve = show_figure(height=2.0, alt="A curve from 0 up to 4.")(plot)
    assert curve.alt == repr(curve) == "A curve from 0 up to 4."
    assert curve.axes.shape == (1, 1)
    np.testing.assert_allclose(curve.figure.get_size_inches(), (5.2, 2.0))
    (ax,) = curve.axes.flat
    assert to_hex(ax.lines[0].get_color()) == PALETTES["light"]["value"]
    assert ax.get_xlabel() == "time"
    for theme, other in ("light", PALETTES["dark"]), ("dark", PALETTES["light"]):
        svg, palette = curve.svg(theme), PALETTES[theme]
        assert f"stroke: {palette['value']}" in svg
        assert f"fill: {palette['page']}" in svg and f"fill: {palette['ink']}" in svg
        assert not any(other[name] in svg for name in ("value", "ink", "grid", "page"))
    assert dict(COLORS) == PALETTES["light"]
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "pink", "lines.linewidth": 9}):
        before = dict(matplotlib.rcParams)
        again = show_figure(height=2.0, alt="A curve from 0 up to 4.")(plot)
        assert again.html() == curve.html() and dict(matplotlib.rcParams) == before
    # Text is text, and nothing is stamped.
    svg = curve.svg()
    assert ">time</text>" in svg and ">A &lt;b&gt;curve&lt;/b&gt;</text>" in svg
    assert "Verdana" in svg and not re.search(r"20\d\d-\d\d|Matplotlib|<metadata|<!--", svg)
    ids = re.findall(r' id="([^"]*)"', svg)
    assert sorted(ids) == [f"i{n}" for n in range(len(ids))]
    assert not re.findall(r'="[^"]*\d\.\d{3,}', svg.replace("matrix", ""))


CODE = """
import hashlib, numpy as np
from d2lmini.plotting import COLORS, show_figure
NOISE = 0.0
@show_figure(columns=2, width=6, sharey=True, alt="Two curves.")
def curves(left, right):
    x = np.linspace(0, 3, 50)
    left.plot(x, np.sin(x) * (1 + NOISE), "o-", color=COLORS["query"])
    right.fill_between(x, np.cos(x) + NOISE, color=COLORS["key"], alpha=0.3, hatch="//")
"""


def test_the_same_bytes_in_another_process_and_without_the_last_bits():
    printed = run_python(CODE + "print(hashlib.sha256(curves.html().encode()).hexdigest())")
    for noise in ("0.0", "1e-12"):
        scope = {}
        exec(CODE.replace("0.0", noise, 1), scope)
        assert printed == hashlib.sha256(scope["curves"].html().encode()).hexdigest()


def test_several_panels_in_reading_order_and_a_canvas_that_is_measured_in_inches():
    seen = []

    @show_figure(rows=2, columns=2, sharex=True, height_ratios=(3, 1), alt="Four panels.")
    def four(*axes):
        seen.append(axes)

    assert len(seen) == 2 and four.axes.shape == (2, 2)
    assert tuple(four.axes.flat) == seen[0]
    four.axes[0, 0].set_xlim(0, 7)
    assert four.axes[1, 0].get_xlim() == (0, 7)
    assert [*four.axes[0, 0].get_subplotspec().get_gridspec().get_height_ratios()] == [3, 1]

    @show_figure(width=3, height=1.5, canvas=True, alt="A word.")
    def word(ax):
        ax.text(1, 0.5, "word")

    (ax,) = word.axes.flat
    assert ax.get_xlim() == (0, 3) and ax.get_ylim() == (0, 1.5) and not ax.axison
    assert ax.get_position().bounds == (0, 0, 1, 1)
    place = re.search(r'x="(\S+)" y="(\S+)">word', word.svg())
    np.testing.assert_allclose(np.array(place.groups(), float), (72, 72), atol=0.01)


def test_a_phone_has_a_sheet_of_its_own_size_drawn_for_both_pages():
    def draw(ax):
        ax.text(1, 0.5, "stacked" if ax.get_xlim()[1] < 4 else "side by side", color=COLORS["ink"])

    shown = show_figure(canvas=True, width=5, height=2, phone=(3.6, 4), alt="A word.")(draw)
    assert shown.axes[0, 0].texts[0].get_text() == "side by side"
    small = shown.narrow
    np.testing.assert_allclose(small.figure.get_size_inches(), (3.6, 4))
    for theme in PALETTES:
        drawing = small.svg(theme)
        assert ">stacked</text>" in drawing and f"fill: {PALETTES[theme]['ink']}" in drawing
        assert data_address(drawing.encode(), "image/svg+xml") in shown.html()
    assert show_figure(canvas=True, width=5, height=2, alt="A word.")(draw).narrow is None
    with pytest.raises(ValueError, match="phone is the size of a canvas; give canvas=True"):
        show_figure(phone=(3.6, 4), alt="A word.")
    with pytest.raises(ValueError, match="height of phone must lie between 0 and 100 inches"):
        show_figure(canvas=True, phone=(3.6, 0), alt="A word.")


def test_an_error_inside_leaves_nothing_behind():
    with pytest.raises(ZeroDivisionError):
        show_figure(alt="Nothing.")(lambda ax: 1 / 0)
    plt.close("all")  # an open one would be drawn on, and none be made
    with pytest.raises(ValueError, match=r"such as ax.plot\(...\) instead of plt.plot"):
        show_figure(alt="A line.")(lambda ax: plt.plot([0, 1], [0, 1]))
    assert plt.get_fignums() == [] and dict(COLORS) == PALETTES["light"]
