"""A heatmap on a light page and on a dark one: cells, contrast, size, the same bytes."""

import base64
import io
import itertools
import re
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from d2lmini.plotting import show_heatmaps
from d2lmini.plotting.theme import PALETTES, RAMP, contrast
from tests.plotting.reading import heatmaps, random_weights, texts

SVG = "{http://www.w3.org/2000/svg}"
PNG = "data:image/png;base64,"


def images(svg):
    """Return the panels, then the bar, as 8-bit colours."""
    found = []
    for image in ElementTree.fromstring(svg).iter(f"{SVG}image"):
        (address,) = (value for value in image.attrib.values() if value.startswith(PNG))
        data = base64.b64decode(address.removeprefix(PNG))
        found.append((matplotlib.image.imread(io.BytesIO(data)) * 255).round().astype(int))
    return found


FIGURES = {
    "tokens": {"matrices": random_weights(5, 5), "xticks": list("abcde"), "label": "w"},
    "heads": {
        "matrices": random_weights(2, 4, 12, 12),
        "titles": [f"Head {i}" for i in range(1, 5)],
        "row_titles": ["Layer 1", "Layer 2"],
        "mask": "causal",
    },
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_drawing_holds_what_it_shows_and_no_more(name):
    figure = heatmaps(**FIGURES[name])
    drawings = {theme: figure.svg(theme) for theme in PALETTES}
    svg, shown = drawings["light"], images(drawings["light"])
    # A panel is one picture with a pixel for each cell; and there is the bar.
    assert len(shown) == figure.axes.size + 1 == svg.count("image-rendering:pixelated")
    for ax, colors in zip(figure.axes.flat, shown, strict=False):
        (image,) = ax.images
        values = image.get_array()
        expected = (image.cmap(image.norm(values)) * 255).round().astype(int)[..., :3]
        seen = ~np.ma.getmaskarray(values)
        assert colors.shape == (*values.shape, 3 if seen.all() else 4)
        assert seen.all() or (colors[..., 3] == 0).sum() == (~seen).sum()
        ways = colors[..., :3], colors[::-1, :, :3]  # matplotlib may store it upside down
        assert min(abs(expected - way)[seen].max(initial=0) for way in ways) <= 1
    # Masked cells are hatched, and only they.
    masked = any(np.ma.getmaskarray(ax.images[0].get_array()).any() for ax in figure.axes.flat)
    assert all(("<pattern" in one) == masked for one in drawings.values())
    # The dark drawing has dark ground and light words.
    for theme, there in ("light", PALETTES["dark"]), ("dark", PALETTES["light"]):
        here = PALETTES[theme]
        assert all(f"fill: {here[name]}" in drawings[theme] for name in ("page", "ink"))
        assert not any(there[name] in drawings[theme] for name in ("ink", "query", "key"))
    limit = 130_000 if name == "heads" else 60_000  # two drawings for a page and two for a phone
    assert len(figure.html()) <= limit


def test_a_cell_stands_beside_its_names_and_the_bar_says_what_its_colour_is():
    shown = heatmaps([[1.0, 0.0], [0.0, 0.0]], xticks=["x", "y"], yticks=["a", "b"], annot=False)
    places = {text: (box.x0 + box.x1, box.y0 + box.y1) for text, box, _ in texts(shown)}
    picture = matplotlib.image.imread(io.BytesIO(shown.png()))  # two pixels for each
    pale, strong = (to_rgb(RAMP["light"][end]) for end in (0, 2))
    for row, column in itertools.product("ab", "xy"):
        pixel = picture[-round(places[row][1]), round(places[column][0]) + 9, :3]
        np.testing.assert_allclose(pixel, strong if row + column == "ax" else pale, atol=0.03)
    bar = shown.figure.axes[-1].get_window_extent()
    for label, expected in ("0", pale), ("1", strong):
        inner = np.clip(places[label][1], 2 * bar.y0 + 3, 2 * bar.y1 - 3)
        pixel = picture[-round(inner), round(bar.x0 + bar.x1), :3]
        np.testing.assert_allclose(pixel, expected, atol=0.05)


def test_queries_and_keys_wear_their_colours_and_nothing_else_does():
    svg = heatmaps(random_weights(2, 2), xticks=["a", "b"], annot=False).svg()
    for word, name in {"Keys": "key", "a": "key", "Queries": "query", "0": "query"}.items():
        assert re.search(rf"<text[^>]*fill: {PALETTES['light'][name]}[^>]*>{word}</text>", svg)
    plain = show_heatmaps(np.eye(2), "Position", "Feature", show=False).svg()
    assert not any(PALETTES["light"][name] in plain for name in ("key", "query"))


@pytest.mark.parametrize("cmap", ["Reds", "RdBu_r"])
def test_numbers_in_cells_can_be_read_on_both_pages(cmap):
    values = np.concatenate([np.linspace(0, 1, 60), [0.001, 0.002, 0.003, 0.004]]).reshape(8, 8)
    shown = heatmaps(values, cmap=cmap)
    image = shown.axes[0, 0].images[0]
    first = 255 * np.array(image.cmap(image.norm(values[0, :1]))[0, :3])
    for theme in PALETTES:
        svg = shown.svg(theme)
        colors = images(svg)[0][..., :3]
        if theme == "light":
            turned = abs(colors[0, 0] - first).max() > 1  # stored upside down, on both pages
        inks = re.findall(r"<text([^>]*)>\d\.\d\d</text>", svg)
        assert len(inks) == 64
        grounds = (colors[::-1] if turned else colors).reshape(-1, 3) / 255
        if cmap == "Reds":  # a weight of 0 and of 1
            ends = [to_rgb(color) for color in RAMP[theme][::2]]
            np.testing.assert_allclose(grounds[[0, 59]], ends, atol=0.01)
        for ground, style in zip(grounds, inks, strict=True):
            assert "opacity" not in style
            ink = re.search(r"fill: (#\w+)", style)
            assert contrast(to_rgb(ink[1] if ink else "#000000"), tuple(ground)) >= 4.5


@pytest.mark.parametrize("reduce, value", [("mean", -0.5), ("max", -1.0)])
def test_of_what_shares_a_pixel_masked_cells_do_not_count(reduce, value):
    values = np.full((2000, 2000), 1e-3)
    values[::2] = -1.0  # the largest size, with its sign
    values[:, 1000:] = np.nan
    shown = heatmaps(values, annot=False, reduce=reduce)
    colors = images(shown.svg())[0]
    height, width = colors.shape[:2]
    image = shown.axes[0, 0].images[0]
    expected = 255 * np.array(image.cmap(image.norm(value))[:3])
    np.testing.assert_allclose(colors[height // 2, width // 4, :3], expected, atol=12)
    assert height < 2000 and colors[height // 2, 3 * width // 4, 3] == 0


def test_the_last_bits_of_a_number_change_nothing():
    values = np.array([[0.125, 0.5, 0.375], [0.25, 0.005, 0.745]])
    noisy = values * (1 + np.array([[1, -1, 1], [-1, 1, -1]]) * 1e-9)
    assert heatmaps(values).html() == heatmaps(noisy).html()
