"""The five colours can be told apart by everyone, and other figures look like the book."""

import itertools

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from d2lmini.plotting import COLORS, theme, use_theme
from d2lmini.plotting._dark_maps import dark_map, to_oklab
from d2lmini.plotting.shown import LIGHT_WORDS
from d2lmini.plotting.theme import PALETTES

MEANINGS = ["query", "key", "value", "output", "weight"]

# Machado, Oliveira and Fernandes (2009), severity 1.0, for linear RGB, row by row.
VISION = {
    "normal": "1 0 0 0 1 0 0 0 1",
    "protanopia": ".152286 1.052583 -.204868 .114503 .786281 .099216 -.003882 -.048116 1.051998",
    "deuteranopia": ".367322 .860646 -.227968 .280085 .672501 .047413 -.01182 .04294 .968881",
    "tritanopia": "1.255528 -.076749 -.178779 -.078411 .930809 .147602 .004733 .691367 .3039",
}


def linear(rgb):
    rgb = np.asarray(rgb)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def page_contrast(color, page="#ffffff"):
    pair = sorted(linear(to_rgb(c)) @ [0.2126, 0.7152, 0.0722] for c in (color, page))
    return (pair[1] + 0.05) / (pair[0] + 0.05)


TEXTS = [*MEANINGS, "ink", "muted"]
PAGES = {"light": ["#ffffff"], "dark": ["#121212", "#1a1e24"]}  # the last: a code editor


def seen_by(vision, color):
    """Return a colour in OKLab, as somebody sees it."""
    matrix = np.array(VISION[vision].split(), float).reshape(3, 3)
    light = np.clip(matrix @ linear(to_rgb(color)), 0, 1)
    return to_oklab(np.where(light <= 0.0031308, 12.92 * light, 1.055 * light ** (1 / 2.4) - 0.055))


def test_the_mapping_is_frozen_and_gives_the_colour_of_the_page_that_is_drawn_for():
    with pytest.raises(KeyError, match="no colour 'quary'; there are query, key"):
        COLORS["quary"]
    with theme.drawing_for("dark"):
        assert dict(COLORS) == PALETTES["dark"]
    assert dict(COLORS) == PALETTES["light"]


@pytest.mark.parametrize("name", PALETTES)
def test_colours_can_be_read_on_their_page_and_told_apart_by_everyone(name):
    palette = PALETTES[name]
    assert palette["page"] == PAGES[name][0]
    assert 1.1 < page_contrast(palette["grid"], palette["page"]) < 1.6, "the grid is quiet"
    for color in TEXTS:
        for page in PAGES[name]:
            assert page_contrast(palette[color], page) >= 4.5, f"{color} on {page}"
        # Words in any of them tell which page it is, as the style computes it.
        r, g, b = (255 * channel for channel in to_rgb(palette[color]))
        light = eval(LIGHT_WORDS, {}, {"r": r, "g": g, "b": b})
        assert abs(light) > 5 and (light > 0) == (name == "dark"), color
    for vision in VISION:
        for pair in itertools.combinations(MEANINGS, 2):
            one, other = (seen_by(vision, palette[color]) for color in pair)
            assert np.linalg.norm(one - other) > 0.1, (vision, pair)  # 0.02 can just be seen
        ink, muted = (seen_by(vision, palette[grey]) for grey in ("ink", "muted"))
        assert abs(ink[0] - muted[0]) > 0.15, "curves of no meaning differ in lightness"


def dark(name):
    return dark_map(matplotlib.colormaps[name])


@pytest.mark.parametrize("name", ["Reds", "Greys"])
def test_a_dark_map_gets_lighter_from_just_above_the_page(name):
    colors = dark(name)(np.linspace(0, 1, 200))[:, :3]
    for vision in VISION:
        lightness = np.array([seen_by(vision, color)[0] for color in colors])
        assert (np.diff(lightness) > -1e-4).all() and lightness[-1] - lightness[0] > 0.45, vision
    assert 1.05 < page_contrast(colors[0], "#121212") < 1.35
    assert page_contrast(colors[-1], "#121212") > 7


def test_a_dark_map_of_two_hues_is_darkest_in_the_middle():
    colors = dark("RdBu_r")(np.linspace(0, 1, 101))[:, :3]
    assert to_oklab(colors)[:, 0].argmin() in (50, 51)
    assert colors[5, 2] > colors[5, 0] and colors[95, 0] > colors[95, 2], "blue, then red"


def test_use_theme_makes_figures_of_the_book():
    with matplotlib.rc_context({"savefig.dpi": 300}):
        use_theme()
        use_theme()
        assert matplotlib.rcParams["savefig.dpi"] == 300, "what a user has set stays"
        cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()
        figure = Figure()
        ax = figure.subplots()
        (line,) = ax.plot([0, 1e6], [0, 1e-6])
        ax.set(xlabel="a label", ylabel="another label", title="a title")
        FigureCanvasAgg(figure).draw()
    assert figure.get_size_inches()[0] <= 6.4
    assert not ax.spines["top"].get_visible() and not ax.spines["right"].get_visible()
    grid = ax.xaxis.get_gridlines()[0]
    assert grid.get_visible() and grid.get_color() == COLORS["grid"]
    assert line.get_linewidth() < 3 and to_rgb(ax.get_facecolor()) == (1, 1, 1)
    phone = 358 / figure.bbox.width  # 390 pixels without the margins of a page
    assert ax.get_xticklabels()[0].get_fontsize() / 72 * 96 * phone > 9
    assert theme.contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    # The colours of a cycle have no meaning and differ in lightness.
    assert not set(cycle["color"]) & {COLORS[name] for name in MEANINGS}
    contrasts = sorted(page_contrast(color) for color in cycle["color"])
    assert contrasts[0] >= 3 and all(b / a > 1.5 for a, b in itertools.pairwise(contrasts))
