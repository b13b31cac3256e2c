"""The drawing that is written by hand shows what matplotlib's shows: cells, words, places."""

import base64
import io
import re
from collections import Counter
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from d2lmini.plotting._layout import text_width
from d2lmini.plotting._picture import DARK, LIGHT
from d2lmini.plotting._svg import number, png, tidy
from tests.plotting.reading import heatmaps, pixels, random_weights, texts

SVG = "{http://www.w3.org/2000/svg}"
PNG = "data:image/png;base64,"
TOKENS = ["the", "cat", "<b>&", "on", "$mat$"]

FIGURES = {
    "tokens": {"matrices": random_weights(5, 5), "xticks": TOKENS, "yticks": TOKENS, "label": "w"},
    "heads": {
        "matrices": random_weights(2, 4, 12, 12),
        "titles": [f"Head {i}" for i in range(1, 5)],
        "row_titles": ["Layer 1", "Layer 2"],
        "mask": "causal",
    },
    "turned": {
        "matrices": random_weights(1, 2, 12, 12),
        "xticks": [f"token {i}" for i in range(12)],
        "yticks": [f"token {i}" for i in range(12)],
        "titles": ["before", "after learning, which takes a while and then some more"],
    },
    "upright": {"matrices": random_weights(40, 40), "xticks": ["a token"] * 40},
    "long and thin": {"matrices": random_weights(200, 2), "label": "attention weight"},
    "flat": {"matrices": random_weights(2, 200)},
    "large": {"matrices": random_weights(300, 300), "mask": "causal"},
    "signed": {"matrices": random_weights(6, 6) * 700 - 300},
    "all masked": {"matrices": np.full((2, 3), np.nan)},
}


@pytest.fixture(scope="module", params=FIGURES.values(), ids=FIGURES)
def figure(request):
    return heatmaps(**request.param)


def read(svg):
    return ElementTree.fromstring(svg)


def svg_words(svg):
    """Return each text with the middle of its line, its angle and its colour, in pixels."""
    found = []
    root = read(svg)
    moved = {}
    for group in root.iter(f"{SVG}g"):
        if place := group.get("transform"):
            moved |= dict.fromkeys(group, tuple(map(float, re.findall(r"-?[\d.]+", place))))
    for text in root.iter(f"{SVG}text"):
        lines = ["".join(line.itertext()) for line in text] or [text.text or ""]
        size = float(text.get("font-size"))
        width = max(text_width(line, size * 0.75) for line in lines) * 96
        x, y = float(text.get("x", 0)), float(text.get("y", 0))
        x += {"end": -width / 2, "start": width / 2}.get(text.get("text-anchor", "start"), 0)
        y += 1.2 * size * (len(lines) - 1) / 2 - 0.26 * size
        turn = 0
        if place := text.get("transform"):
            left, top, turn = map(float, re.findall(r"-?[\d.]+", place))
            angle = np.radians(turn)
            x, y = (
                left + x * np.cos(angle) - y * np.sin(angle),
                top + x * np.sin(angle) + y * np.cos(angle),
            )
        dx, dy = moved.get(text, (0, 0))
        found.append(("\n".join(lines), x + dx, y + dy, -turn, text.get("fill")))
    return found


def images(svg):
    """Return the panels and the bar as 8-bit colours."""
    found = []
    for image in read(svg).iter(f"{SVG}image"):
        data = base64.b64decode(image.get("href").removeprefix(PNG))
        found.append((matplotlib.image.imread(io.BytesIO(data)) * 255).round().astype(int))
    return found


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_same_words_in_the_same_places(figure, theme):
    ours = svg_words(figure.svg(theme))
    theirs = texts(figure)
    assert Counter(text for text, *_ in ours) == Counter(text for text, _, _ in theirs)
    height = figure.figure.bbox.height
    left = list(ours)
    for text, box, artist in theirs:
        x, y = (box.x0 + box.x1) / 2, height - (box.y0 + box.y1) / 2
        near = min(
            (word for word in left if word[0] == text),
            key=lambda word: abs(word[1] - x) + abs(word[2] - y),
        )
        left.remove(near)
        assert near[3] == artist.get_rotation()
        assert abs(near[1] - x) < 3.2 and abs(near[2] - y) < 3.2, (text, near, x, y)


def test_the_same_colours_in_the_same_cells(figure):
    panels = images(figure.svg())
    assert len(panels) == figure.axes.size + 1  # and the bar
    for ax, colors in zip(figure.axes.flat, panels, strict=False):
        (image,) = ax.images
        values = image.get_array()
        if colors.shape[:2] != values.shape:
            assert max(values.shape) > 200
            continue
        expected = (image.cmap(image.norm(values)) * 255).round().astype(int)
        seen = ~np.ma.getmaskarray(values)
        assert abs(expected[..., :3] - colors[..., :3])[seen].max(initial=0) <= 2
        if seen.all():
            assert colors.shape[2] == 3
        else:
            np.testing.assert_array_equal(colors[..., 3], np.where(seen, 255, 0))


def test_a_panel_lies_where_it_lies_in_the_other_drawing(figure):
    height = figure.figure.bbox.height
    places = re.findall(r'<g transform="translate\((\S+) (\S+)\)">', figure.svg())
    for ax, place in zip(figure.axes.flat, places, strict=True):
        box = ax.get_window_extent()
        np.testing.assert_allclose(np.array(place, float), (box.x0, height - box.y1), atol=0.02)


def test_a_masked_cell_is_hatched_and_equal_masks_are_written_once():
    svg = heatmaps(random_weights(2, 2, 3, 3), mask="causal").svg()
    assert svg.count('<path id="k0"') == 1 and 'id="k1"' not in svg
    assert svg.count('href="#k0" fill="url(#m)"') == 4
    shape = re.search(r'id="k0" d="([^"]*)"', svg)[1]
    assert shape.count("z") == 2  # a run of two, a run of one
    assert "url(#m)" not in heatmaps(random_weights(3, 3)).svg()


def test_two_masks_are_two_shapes():
    values = random_weights(2, 3, 3)
    values[0, 0, 1] = values[1, 2, 0] = np.nan
    svg = heatmaps(values).svg()
    assert 'id="k0"' in svg and 'id="k1"' in svg


def test_ids_name_one_thing_each(figure):
    ids = re.findall(r' id="([^"]*)"', figure.svg())
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)(\w+)', figure.svg())) == set(ids)


def test_the_dark_drawing_has_dark_ground_and_light_words(figure):
    light, dark = figure.svg("light"), figure.svg("dark")
    assert f'fill="{LIGHT.page}"/>' in light and f'fill="{DARK.page}"/>' in dark
    assert LIGHT.ink in light and LIGHT.ink not in dark
    assert DARK.ink in dark and "#ffffff" not in dark.lower().split("<g ")[0]


def test_numbers_in_dark_cells_can_be_read():
    values = np.concatenate([np.linspace(0, 1, 60), [0.001, 0.002, 0.003, 0.004]]).reshape(8, 8)
    for theme in ("light", "dark"):
        svg = heatmaps(values).svg(theme)
        grounds = images(svg)[0].reshape(-1, 3) / 255
        inside = svg.split('<g transform="translate')[1].split("</g>")[0]
        inks = re.findall(r'<text [^>]*fill="(#\w+)"', inside)
        for ground, ink in zip(grounds, inks, strict=True):
            pair = sorted(luminance(color) for color in (ground, to_rgb(ink)))
            assert (pair[1] + 0.05) / (pair[0] + 0.05) >= 4.5


def luminance(rgb):
    rgb = np.asarray(rgb)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_what_shares_a_pixel_is_averaged_and_masked_cells_do_not_count():
    values = np.zeros((2000, 2000))
    values[::2] = 1.0
    values[:, 1000:] = np.nan
    values[0, 1000:] = 0.25
    colors = images(heatmaps(values, annot=False).svg())[0]
    assert colors.shape[0] < 2000
    middle = heatmaps([[0.5]]).axes[0, 0].images[0]
    expected = (np.array(middle.cmap(0.5)[:3]) * 255).round()
    np.testing.assert_allclose(colors[5, 5, :3], expected, atol=1)
    assert colors[5, -1, 3] == 0 and colors[0, -1, 3] == 255


def test_the_last_bits_of_a_number_change_nothing():
    values = np.array([[0.125, 0.5, 0.375], [0.25, 0.005, 0.745]])
    noisy = values * (1 + np.array([[1, -1, 1], [-1, 1, -1]]) * 1e-9)
    assert heatmaps(values).html() == heatmaps(noisy).html()


def test_size_of_eight_heads():
    shown = heatmaps(**FIGURES["heads"])
    for theme in ("light", "dark"):
        assert len(base64.b64encode(shown.svg(theme).encode())) <= 40_000
    assert len(shown.html()) <= 80_000


def test_an_unknown_theme_is_refused():
    with pytest.raises(ValueError, match="theme must be 'light' or 'dark'; got 'night'"):
        heatmaps(np.eye(2)).svg("night")


# --------------------------------------------------------------------------------------- parts


@pytest.mark.parametrize("shape", [(1, 1, 3), (5, 7, 3), (3, 2, 4), (90, 70, 3)])
def test_a_picture_comes_back_as_it_was(shape):
    colors = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    back = matplotlib.image.imread(io.BytesIO(png(colors)))
    np.testing.assert_array_equal((back * 255).round().astype(int), colors)


def test_a_small_picture_holds_the_same_bytes_whatever_compresses_it():
    data = png(np.zeros((4, 4, 3), np.uint8))
    length = 4 * (4 * 3 + 1)
    assert b"\x01" + length.to_bytes(2, "little") in data  # one stored block: nothing to choose


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "2"),
        (0.126, "0.13"),
        (-0.001, "0"),
        (12.5, "12.5"),
        (1.005, "1"),
        (3.1049999999, "3.1"),
    ],
)
def test_lengths_have_two_decimals(value, text):
    assert number(value) == text
    assert number(value + 1e-12) == number(value - 1e-12)


def test_what_matplotlib_writes_is_shortened_and_its_words_are_kept():
    svg = (
        '<?xml version="1.0"?><svg a="1" viewBox="0 0 9 9"><metadata>now</metadata><!-- text -->'
        '<defs><path id="pf3" d="M 1.23456 2"/></defs><g id="unused"> '
        '<use href="#pf3" style="font-family: \'DejaVu Sans\'"/> '
        '<text transform="rotate(-0 1 2)">3.14159 and 2</text></g>'
        '<image transform="matrix(0.001 0 0 0.002 0 0)"/></svg>'
    )
    found = tidy(svg, 1, 2)
    assert 'width="96" height="192" viewBox="0 0 9 9"' in found
    assert "now" not in found and "unused" not in found and "pf3" not in found
    assert '<path id="i0" d="M 1.23 2"/>' in found and 'href="#i0"' in found
    assert "<text>3.14159 and 2</text>" in found and "Verdana" in found
    assert "matrix(0.001 0 0 0.002 0 0)" in found


def test_the_light_drawing_looks_like_the_png():
    shown = heatmaps(np.eye(3), annot=False)
    panel = pixels(shown, shown.axes[0, 0])
    colors = images(shown.svg())[0]
    for q, k in np.ndindex(3, 3):
        height, width = panel.shape[0] // 3, panel.shape[1] // 3
        middle = panel[q * height + height // 2, k * width + width // 2]
        np.testing.assert_allclose(middle, colors[q, k], atol=1)
