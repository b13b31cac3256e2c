"""A heatmap on a light page and on a dark one: cells, contrast, size, the same bytes."""

import base64
import io
import re
from xml.etree import ElementTree

import matplotlib.image
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from d2lmini.plotting._svg import number, png, tidy
from d2lmini.plotting.theme import PALETTES, contrast
from tests.plotting.reading import heatmaps, random_weights

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


def upright(colors):
    """Return an image as it is seen; matplotlib may store it upside down."""
    return colors[::-1]


FIGURES = {
    "tokens": {"matrices": random_weights(5, 5), "xticks": list("abcde"), "label": "w"},
    "heads": {
        "matrices": random_weights(2, 4, 12, 12),
        "titles": [f"Head {i}" for i in range(1, 5)],
        "row_titles": ["Layer 1", "Layer 2"],
        "mask": "causal",
    },
    "signed": {"matrices": random_weights(6, 6) * 700 - 300},
    "all masked": {"matrices": np.full((2, 3), np.nan)},
}


@pytest.fixture(scope="module", params=FIGURES.values(), ids=FIGURES)
def figure(request):
    return heatmaps(**request.param)


def test_a_panel_is_one_picture_with_a_pixel_for_each_cell(figure):
    panels = images(figure.svg())
    assert len(panels) == figure.axes.size + 1  # and the bar
    assert figure.svg().count("image-rendering:pixelated") == len(panels)
    for ax, colors in zip(figure.axes.flat, panels, strict=False):
        (image,) = ax.images
        values = image.get_array()
        expected = (image.cmap(image.norm(values)) * 255).round().astype(int)
        seen = ~np.ma.getmaskarray(values)
        assert colors.shape[:2] == values.shape
        ways = [
            abs(expected[..., :3] - way[..., :3])[seen].max(initial=0)
            for way in (colors, upright(colors))
        ]
        assert min(ways) <= 1
        assert colors.shape[2] == (3 if seen.all() else 4)


def test_masked_cells_are_hatched_and_only_they(figure):
    masked = any(np.ma.getmaskarray(ax.images[0].get_array()).any() for ax in figure.axes.flat)
    for theme in PALETTES:
        assert ("<pattern" in figure.svg(theme)) == masked


def test_ids_name_one_thing_each(figure):
    ids = re.findall(r' id="([^"]*)"', figure.svg())
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'(?:href="#|url\(#)(\w+)', figure.svg())) == set(ids)


def test_the_dark_drawing_has_dark_ground_and_light_words(figure):
    light, dark = PALETTES["light"], PALETTES["dark"]
    for theme, here, there in (("light", light, dark), ("dark", dark, light)):
        svg = figure.svg(theme)
        assert f"fill: {here['page']}" in svg and f"fill: {here['ink']}" in svg
        assert not any(there[name] in svg for name in ("ink", "query", "key"))


def test_queries_and_keys_wear_their_colours_and_nothing_else_does():
    shown = heatmaps(random_weights(2, 2), xticks=["a", "b"], annot=False)
    svg = shown.svg()
    for word, name in {"Keys": "key", "a": "key", "Queries": "query", "0": "query"}.items():
        assert re.search(rf"<text[^>]*fill: {PALETTES['light'][name]}[^>]*>{word}</text>", svg)
    from d2lmini.plotting import show_heatmaps

    plain = show_heatmaps(np.eye(2), "Position", "Feature", show=False).svg()
    assert not any(PALETTES["light"][name] in plain for name in ("key", "query"))


def test_numbers_in_cells_can_be_read_on_both_pages():
    values = np.concatenate([np.linspace(0, 1, 60), [0.001, 0.002, 0.003, 0.004]]).reshape(8, 8)
    shown = heatmaps(values)
    for theme in PALETTES:
        svg = shown.svg(theme)
        colors = images(svg)[0][..., :3]
        inks = re.findall(r"<text([^>]*)>\d\.\d\d</text>", svg)
        assert len(inks) == 64
        lightest = colors.sum(axis=-1)
        first, last = lightest[0].sum(), lightest[-1].sum()
        if (first < last) == (theme == "light"):
            colors = upright(colors)  # the first row has the smallest numbers, the last the largest
        for ground, style in zip(colors.reshape(-1, 3) / 255, inks, strict=True):
            ink = re.search(r"fill: (#\w+)", style)
            assert contrast(to_rgb(ink[1] if ink else "#000000"), tuple(ground)) >= 4.5


@pytest.mark.parametrize("reduce, share", [("mean", 0.5), ("max", 1.0)])
def test_of_what_shares_a_pixel_masked_cells_do_not_count(reduce, share):
    values = np.zeros((2000, 2000))
    values[::2] = 1.0
    values[:, 1000:] = np.nan
    shown = heatmaps(values, annot=False, reduce=reduce)
    colors = images(shown.svg())[0]
    assert colors.shape[0] < 2000
    middle = heatmaps([[0.5]]).axes[0, 0].images[0]
    expected = (np.array(middle.cmap(share)[:3]) * 255).round()
    height, width = colors.shape[:2]
    np.testing.assert_allclose(colors[height // 2, width // 4, :3], expected, atol=12)
    assert colors[height // 2, 3 * width // 4, 3] == 0


def test_the_last_bits_of_a_number_change_nothing():
    values = np.array([[0.125, 0.5, 0.375], [0.25, 0.005, 0.745]])
    noisy = values * (1 + np.array([[1, -1, 1], [-1, 1, -1]]) * 1e-9)
    assert heatmaps(values).html() == heatmaps(noisy).html()


def test_size_of_eight_heads():
    shown = heatmaps(**FIGURES["heads"])
    for theme in PALETTES:
        assert len(base64.b64encode(shown.svg(theme).encode())) <= 40_000, (
            "a notebook holds each figure four times; a third more than today is room enough"
        )
    assert len(shown.html()) <= 130_000, "two drawings for a page and two for a phone"


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
