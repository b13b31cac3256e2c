"""``show_figure``: drawn for two pages, described, the same on every run."""

import re

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from d2lmini.plotting import COLORS, show_figure
from d2lmini.plotting._svg import data_address
from d2lmini.plotting.theme import PALETTES


def plot(ax):
    ax.plot([0, 1, 2], [0, 1, 4], color=COLORS["value"], label="5 $ a day")
    ax.plot([0, 1, 2], [4, 1, 0], "--")
    ax.set(xlabel="time", ylabel="height", title="A <b>curve</b>")
    ax.legend()


def test_each_page_has_its_colours_and_what_the_user_has_set_changes_nothing():
    curve = show_figure(height=2.0, alt="A curve from 0 up to 4.")(plot)
    np.testing.assert_allclose(curve.figure.get_size_inches(), (5.2, 2.0))
    for theme, other in ("light", PALETTES["dark"]), ("dark", PALETTES["light"]):
        svg, palette = curve.svg(theme), PALETTES[theme]
        assert f"stroke: {palette['value']}" in svg
        assert f"fill: {palette['page']}" in svg and f"fill: {palette['ink']}" in svg
        assert not any(other[name] in svg for name in ("value", "ink", "grid", "page"))
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "pink", "lines.linewidth": 9}):
        before = dict(matplotlib.rcParams)
        again = show_figure(height=2.0, alt="A curve from 0 up to 4.")(plot)
        assert again.html() == curve.html() and dict(matplotlib.rcParams) == before
    svg = curve.svg()  # text is text, and ids are the same everywhere
    assert ">time</text>" in svg and ">A &lt;b&gt;curve&lt;/b&gt;</text>" in svg
    ids = re.findall(r' id="([^"]*)"', svg)
    assert sorted(ids) == [f"i{n}" for n in range(len(ids))]
    assert not re.findall(r'="[^"]*\d\.\d{3,}', svg.replace("matrix", ""))


def test_several_panels_in_reading_order_and_a_canvas_that_is_measured_in_inches():
    seen = []

    @show_figure(rows=2, columns=2, sharex=True, alt="Four panels.")
    def four(*axes):
        seen.append(axes)

    assert tuple(four.axes.flat) == seen[0]
    four.axes[0, 0].set_xlim(0, 7)
    assert four.axes[1, 0].get_xlim() == (0, 7)

    @show_figure(width=3, height=1.5, canvas=True, alt="A word.")
    def word(ax):
        ax.text(1, 0.5, "word")

    assert not word.axes[0, 0].axison
    place = re.search(r'x="(\S+)" y="(\S+)">word', word.svg())
    np.testing.assert_allclose(np.array(place.groups(), float), (72, 72), atol=0.01)


def test_a_phone_has_a_sheet_of_its_own_size():
    def draw(ax):
        ax.text(1, 0.5, "stacked" if ax.get_xlim()[1] < 4 else "side by side")

    shown = show_figure(canvas=True, width=5, height=2, phone=(3.6, 4), alt="A word.")(draw)
    assert ">side by side</text>" in shown.svg() and ">stacked</text>" in shown.narrow.svg("dark")
    assert data_address(shown.narrow.svg("dark").encode(), "image/svg+xml") in shown.html()


def test_an_error_inside_leaves_nothing_behind():
    with pytest.raises(ZeroDivisionError):
        show_figure(alt="Nothing.")(lambda ax: 1 / 0)
    plt.close("all")  # an open one would be drawn on, and none be made
    with pytest.raises(ValueError, match=r"such as ax.plot\(...\) instead of plt.plot"):
        show_figure(alt="A line.")(lambda ax: plt.plot([0, 1], [0, 1]))
    assert plt.get_fignums() == [] and dict(COLORS) == PALETTES["light"]
