"""``show_figure``: drawn for two pages, described, the same on every run."""

import re

import numpy as np
import pytest
from matplotlib.colors import to_hex

from d2lmini.plotting import COLORS, show_figure
from d2lmini.plotting.theme import PALETTES
from tests.plotting.test_shown import run_python


@pytest.fixture(scope="module")
def curve():
    @show_figure(height=2.0, alt="A curve from 0 up to 4.")
    def curve(ax):
        ax.plot([0, 1, 2], [0, 1, 4], color=COLORS["value"], label="5 $ a day")
        ax.plot([0, 1, 2], [4, 1, 0], "--")
        ax.set(xlabel="time", ylabel="height", title="A <b>curve</b>")
        ax.legend()

    return curve


def test_each_page_has_its_colours(curve):
    for theme, palette in PALETTES.items():
        svg = curve.svg(theme)
        assert f"stroke: {palette['value']}" in svg
        assert f"fill: {palette['page']}" in svg and f"fill: {palette['ink']}" in svg
        other = PALETTES["dark" if theme == "light" else "light"]
        assert not any(other[name] in svg for name in ("value", "ink", "grid", "page"))
    assert dict(COLORS) == PALETTES["light"]


def test_the_figure_is_the_light_one(curve):
    assert curve.alt == repr(curve) == "A curve from 0 up to 4."
    assert curve.axes.shape == (1, 1)
    np.testing.assert_allclose(curve.figure.get_size_inches(), (5.2, 2.0))
    assert to_hex(curve.axes[0, 0].lines[0].get_color()) == PALETTES["light"]["value"]
    assert curve.axes[0, 0].get_xlabel() == "time"


def test_text_is_text_and_nothing_is_stamped(curve):
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
    scope = {}
    exec(CODE, scope)
    shown = scope["curves"]
    printed = run_python(CODE + "print(hashlib.sha256(curves.html().encode()).hexdigest())")
    noisy = {}
    exec(CODE.replace("0.0", "1e-12", 1), noisy)
    import hashlib

    assert printed == hashlib.sha256(shown.html().encode()).hexdigest()
    assert noisy["curves"].html() == shown.html()


def test_several_panels_in_reading_order():
    seen = []

    @show_figure(rows=2, columns=2, sharex=True, height_ratios=(3, 1), alt="Four panels.")
    def four(*axes):
        seen.append(axes)

    assert len(seen) == 2 and four.axes.shape == (2, 2)
    assert tuple(four.axes.flat) == seen[0]
    four.axes[0, 0].set_xlim(0, 7)
    assert four.axes[1, 0].get_xlim() == (0, 7)
    heights = [ax.get_subplotspec().get_gridspec().get_height_ratios() for ax in four.axes[:, 0]]
    assert list(heights[0]) == [3, 1]


def test_a_canvas_is_measured_in_inches():
    @show_figure(width=3, height=1.5, canvas=True, alt="A word.")
    def word(ax):
        ax.text(1, 0.5, "word")

    ax = word.axes[0, 0]
    assert ax.get_xlim() == (0, 3) and ax.get_ylim() == (0, 1.5) and not ax.axison
    assert ax.get_position().bounds == (0, 0, 1, 1)
    place = re.search(r'x="(\S+)" y="(\S+)">word', word.svg())
    np.testing.assert_allclose(np.array(place.groups(), float), (72, 72), atol=0.01)


def test_settings_of_the_user_change_nothing(curve):
    import matplotlib

    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "pink", "lines.linewidth": 9}):
        before = dict(matplotlib.rcParams)

        @show_figure(height=2.0, alt="A curve from 0 up to 4.")
        def again(ax):
            ax.plot([0, 1, 2], [0, 1, 4], color=COLORS["value"], label="5 $ a day")
            ax.plot([0, 1, 2], [4, 1, 0], "--")
            ax.set(xlabel="time", ylabel="height", title="A <b>curve</b>")
            ax.legend()

        assert again.html() == curve.html()
        assert dict(matplotlib.rcParams) == before


def test_an_error_inside_leaves_nothing_behind():
    with pytest.raises(ZeroDivisionError):

        @show_figure(alt="Nothing.")
        def broken(ax):
            _ = 1 / 0

    assert dict(COLORS) == PALETTES["light"]


BAD = {
    "no words": ({"alt": " "}, ValueError, "alt is empty; say what the picture shows"),
    "words of no kind": ({"alt": None}, TypeError, "alt must be a string; got NoneType"),
    "no width": ({"width": 0}, ValueError, "width must lie between 0 and 100 inches; got 0"),
    "no height": ({"height": float("nan")}, ValueError, "height must lie .* got nan"),
    "no rows": ({"rows": 0}, ValueError, "rows must be at least 1; got 0"),
    "a canvas of panels": (
        {"canvas": True, "rows": 2},
        ValueError,
        "a canvas is one panel; got 2 rows and 1 columns",
    ),
    "panels": ({"columns": 2}, TypeError, r"takes 1 arguments for 2 panels; give it one for each"),
}


@pytest.mark.parametrize(("kwargs", "error", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_told_in_words(kwargs, error, message):
    with pytest.raises(error, match=message):
        show_figure(**{"alt": "A line."} | kwargs)(lambda ax: None)


def test_a_description_is_required():
    with pytest.raises(TypeError, match="alt"):
        show_figure()(lambda ax: None)


def test_it_stands_above_a_function():
    with pytest.raises(TypeError, match="stands above a function that draws; got 3"):
        show_figure(alt="A line.")(3)


def test_pyplot_is_refused():
    import matplotlib.pyplot as plt

    plt.close("all")  # an open one would be drawn on, and none be made
    before = plt.get_fignums()
    with pytest.raises(ValueError, match=r"such as ax.plot\(...\) instead of plt.plot"):

        @show_figure(alt="A line.")
        def line(ax):
            plt.plot([0, 1], [0, 1])

    assert plt.get_fignums() == before
