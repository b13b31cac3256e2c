"""The five colours can be told apart by everyone, and other figures look like the book."""

import itertools
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from d2lmini.plotting import COLORS, theme, use_theme
from d2lmini.plotting._dark_maps import dark_map, from_oklab, to_oklab
from d2lmini.plotting.shown import DARK_HOSTS, KNOWS_WORDS, LIGHT_WORDS, SHARE, SHARE_IF_SAID
from d2lmini.plotting.theme import PALETTES

MEANINGS = ["query", "key", "value", "output", "weight"]

# Machado, Oliveira and Fernandes (2009), severity 1.0, for linear RGB.
VISION = {
    "normal": np.eye(3),
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.011820, 0.042940, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.303900],
    ],
}


def linear(rgb):
    rgb = np.asarray(rgb)
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def oklab(rgb):
    """Ottosson (2020): a space where distances are about as large as they look."""
    lms = np.cbrt(
        [
            [0.4122214708, 0.5363325363, 0.0514459929],
            [0.2119034982, 0.6806995451, 0.1073969566],
            [0.0883024619, 0.2817188376, 0.6299787005],
        ]
        @ rgb
    )
    return [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ] @ lms


def page_contrast(color, page="#ffffff"):
    pair = sorted(linear(to_rgb(c)) @ [0.2126, 0.7152, 0.0722] for c in (color, page))
    return (pair[1] + 0.05) / (pair[0] + 0.05)


TEXTS = [*MEANINGS, "ink", "muted"]
PAGES = [("light", "#ffffff"), ("dark", "#121212"), ("dark", "#1a1e24")]  # the last: a code editor


def seen_by(vision, color):
    """Return a colour in OKLab, as somebody sees it."""
    return np.array(oklab(np.clip(VISION[vision] @ linear(to_rgb(color)), 0, 1)))


def test_the_mapping_is_small_and_frozen_and_gives_the_colour_of_the_page_that_is_drawn_for():
    assert list(COLORS) == [*TEXTS, "grid", "page"]
    assert len(COLORS) == len(PALETTES["dark"]) == 9 and "query" in repr(COLORS)
    for frozen in (COLORS, PALETTES["light"]):
        with pytest.raises(TypeError):
            frozen["query"] = "red"
    with pytest.raises(KeyError, match="no colour 'quary'; there are query, key"):
        COLORS["quary"]
    assert dict(COLORS) == PALETTES["light"]
    with theme.drawing_for("dark"):
        assert dict(COLORS) == PALETTES["dark"]
        with theme.drawing_for("light"):
            assert COLORS["key"] == PALETTES["light"]["key"]
        assert COLORS["key"] == PALETTES["dark"]["key"]
    with pytest.raises(ZeroDivisionError), theme.drawing_for("dark"):
        _ = 1 / 0
    assert dict(COLORS) == PALETTES["light"]


@pytest.mark.parametrize("name", PALETTES)
def test_colours_can_be_read_on_their_page_and_told_apart_by_everyone(name):
    palette = PALETTES[name]
    assert palette["page"] == dict(PAGES[:2])[name]
    assert 1.1 < page_contrast(palette["grid"], palette["page"]) < 1.6, "the grid is quiet"
    for color in TEXTS:
        for _, page in (page for page in PAGES if page[0] == name):
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


NAMED = {"quiet": "muted", "track": "grid", "ground": "page"}


def test_tables_have_the_same_colours_and_know_the_same_hosts():
    css = (Path(theme.__file__).parent / "tables.css").read_text("utf8")
    rules = re.findall(r"([^{}]*)\{([^{}]*--key:[^}]*)\}", css)
    assert len(rules) == 4  # light; by the words; dark as the page says; dark as the system says
    for (selector, rule), share in zip(rules, [0, None, 1, 1], strict=True):
        for end in (0, 1) if share is None else (share,):
            colors = dict(re.findall(r"--(\w+): ([^;]+);", rule))
            for other in ("line", "share"):
                colors.pop(other, None)
            assert len(colors) == 13
            for variable, color in colors.items():
                if share is None:
                    parts = re.findall(r"calc\((\d+) ([+-]) (\d+)\*var\(--share\)\)", color)
                    levels = [int(a) + end * int(f"{sign}{b}") for a, sign, b in parts]
                    color = "#{:02x}{:02x}{:02x}".format(*levels)
                page = ("light", "dark")[end]
                ramp = {"w0": theme.RAMP[page][0], "w5": theme.RAMP[page][1]}
                words = ["#000000", "#ffffff"] if page == "light" else ["#ffffff", "#000000"]
                ramp |= {"below": words[0], "above": words[1], "hatch": theme.HATCH[page]}
                known = ramp | dict(PALETTES[page])
                assert to_hex(color) == known[NAMED.get(variable, variable)], selector
        if share is not None:
            assert theme.RAMP[page][2] == PALETTES[page]["weight"], "the ramp ends in it"
    assert f"(var(--w) - {theme.TURN})".replace("0.", ".") in css, "where words turn"
    for known in DARK_HOSTS:
        assert f"{known} .d2lmini-table" in rules[2][0]
        assert f"{known} .d2lmini-table" in css.partition("@supports not")[0]
    for expression in (LIGHT_WORDS, SHARE, SHARE_IF_SAID, KNOWS_WORDS):
        assert expression.replace(" ", "") in css.replace(" ", "")


def dark(name):
    return dark_map(matplotlib.colormaps[name])


@pytest.mark.parametrize("name", ["Reds", "Blues", "Greens", "Greys", "Purples"])
def test_a_dark_map_gets_lighter_from_just_above_the_page(name):
    colors = dark(name)(np.linspace(0, 1, 200))[:, :3]
    for vision in VISION:
        lightness = np.array([seen_by(vision, color)[0] for color in colors])
        assert (np.diff(lightness) > -1e-4).all() and lightness[-1] - lightness[0] > 0.45, vision
    assert 1.05 < page_contrast(colors[0], "#121212") < 1.35
    assert page_contrast(colors[-1], "#121212") > 7


def test_a_dark_map_keeps_its_hue_and_stays_within_what_a_screen_shows():
    tone = to_oklab(matplotlib.colormaps["Reds"](0.85)[:3])[1:]
    for color in dark("Reds")(np.linspace(0.2, 1, 9))[:, :3]:
        hue = to_oklab(color)[1:]
        assert hue @ tone / np.linalg.norm(hue) / np.linalg.norm(tone) > 0.99
        assert color.min() >= 0 and color.max() <= 1


def test_a_dark_map_of_two_hues_is_darkest_in_the_middle_and_a_dark_one_stays_as_it_is():
    lightness = to_oklab(dark("RdBu_r")(np.linspace(0, 1, 101))[:, :3])[:, 0]
    assert lightness.argmin() in (50, 51) and min(lightness[0], lightness[-1]) > 0.7
    blue, red = dark("RdBu_r")(0.05), dark("RdBu_r")(0.95)
    assert blue[2] > blue[0] and red[0] > red[2]
    for name in ("viridis", "magma", "cividis"):
        assert dark(name) == matplotlib.colormaps[name]


def test_oklab_and_contrast_are_those_of_their_definitions():
    rgb = np.random.default_rng(0).random((50, 3))
    np.testing.assert_allclose(from_oklab(to_oklab(rgb)), rgb, atol=1e-6)
    for color in rgb[:5]:
        np.testing.assert_allclose(to_oklab(color), oklab(linear(color)), atol=1e-9)
    assert theme.contrast((0, 0, 0), (1, 1, 1)) == pytest.approx(21)
    for name in MEANINGS:
        found = theme.contrast(to_rgb(COLORS[name]), (1.0, 1.0, 1.0))
        assert found == pytest.approx(page_contrast(COLORS[name]))


def test_what_a_user_has_set_stays():
    own = {"lines.linewidth": 40, "savefig.dpi": 300, "font.size": 17}
    own |= {"axes.prop_cycle": matplotlib.cycler(color=["k", "r"])}
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(own)
        for _ in range(2):
            use_theme()
            assert {name: matplotlib.rcParams[name] for name in own} == own
            assert matplotlib.rcParams["grid.color"] == COLORS["grid"]  # what they have not set


def test_use_theme_makes_figures_of_the_book():
    with matplotlib.rc_context():
        use_theme()
        cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()
        figure = Figure()
        ax = figure.subplots()
        (line,) = ax.plot([0, 1e6], [0, 1e-6])
        ax.set(xlabel="a label", ylabel="another label", title="a title")
        FigureCanvasAgg(figure).draw()
    width, height = figure.get_size_inches()
    assert width <= 6.4 and figure.dpi == 96
    assert not ax.spines["top"].get_visible() and not ax.spines["right"].get_visible()
    grid = ax.xaxis.get_gridlines()[0]
    assert grid.get_visible() and grid.get_color() == COLORS["grid"]
    assert line.get_linewidth() < 3 and to_rgb(ax.get_facecolor()) == (1, 1, 1)
    phone = 358 / (width * 96)  # 390 pixels without the margins of a page
    sizes = [label.get_fontsize() for label in ax.get_xticklabels()]
    assert min(sizes) / 72 * 96 * phone > 9
    box = figure.get_tightbbox()  # nothing is cut
    assert box.x0 >= 0 and box.y0 >= 0 and box.x1 <= width and box.y1 <= height
    # The colours of a cycle have no meaning and differ in lightness.
    assert list(cycle) == ["color"]
    assert not set(cycle["color"]) & {COLORS[name] for name in MEANINGS}
    with theme.drawing_for("dark"):
        greys = theme._greys()
    for colors, page, steps in (cycle["color"], "#ffffff", 1.5), (greys, "#121212", 1.4):
        contrasts = sorted(page_contrast(color, page) for color in colors)
        assert contrasts[0] >= 3 and all(b / a > steps for a, b in itertools.pairwise(contrasts))
