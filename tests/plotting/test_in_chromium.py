"""The pictures as a reader sees them: light, dark, narrow, without scripts, with the keyboard."""

import io
import itertools

import matplotlib.image
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from d2lmini import masked_softmax
from d2lmini.plotting import AttentionExplorer, AttentionTrace
from d2lmini.plotting.theme import PALETTES, contrast
from tests.plotting.reading import heatmaps, random_weights

pytest.importorskip("playwright")  # with which the fixture `chromium` comes

LIGHT, DARK = (255, 255, 255), (18, 18, 18)
SCORES = np.random.default_rng(5).normal(size=(4, 5)) * 3
SQUARE = SCORES[:, :4]  # the queries are the keys as well
TOKENS, KEYS = ["a", "<b>", "c", "d"], list("vwxyz")


@pytest.fixture
def page(chromium):
    """Return a function that opens HTML in a window of its own."""
    windows = []

    def opened(body, *, scheme="light", root="", around="", width=900, **settings):
        windows.append(
            chromium.new_context(
                color_scheme=scheme,
                viewport={"width": width, "height": 700},
                device_scale_factor=2,
                **settings,
            )
        )
        page = windows[-1].new_page()
        page.set_content(f"<!DOCTYPE html><html {root}><body {around}>{body}</body></html>")
        return page

    yield opened
    for window in windows:
        window.close()


def has_ground(page, color):
    """See that the image is the drawing for this ground, and covers the other one."""
    shot = matplotlib.image.imread(io.BytesIO(page.locator("img").screenshot()))[..., :3] * 255
    for corner in (3, -3):
        np.testing.assert_allclose(shot[corner, corner], color, atol=1.5)


@pytest.fixture(scope="module")
def tokens():
    return heatmaps(random_weights(4, 4), xticks=TOKENS, yticks=TOKENS, mask="causal")


def host(ground, ink, **more):
    """Imitate a page that gives its ground and its words these colours."""
    return {"around": f'style="background:{ground};color:{ink}" {more.pop("names", "")}', **more}


VSCODE = 'class="{0}" data-vscode-theme-kind="{0}"'
HOSTS = {
    # This book, JupyterLab, Colab and VS Code, with the colours of their words.
    "book": (host("#fff", "#1f2329", root='data-theme="light"', scheme="dark"), LIGHT),
    "book dark": (host("#121212", "#ced6dd", root='data-theme="dark"'), DARK),
    "lab dark": (host("#111", "#fff", names='data-jp-theme-light="false"'), DARK),
    "colab dark": (host("#383838", "#d4d4d4", root='theme="dark"'), DARK),
    "code contrast": (host("#000", "#fff", names=VSCODE.format("vscode-high-contrast")), DARK),
    # Hosts that nobody has heard of, and such as say one thing and show another.
    "solarized dark": (host("#002b36", "#93a1a1"), DARK),
    "coloured words, dark": (host("#000", "#00ff00"), DARK),
    "forced dark": (host("#fff", "#000", forced_colors="active", scheme="dark"), DARK),
    "says nothing": ({"scheme": "dark"}, LIGHT),  # black words on white, whatever the system is
    "called dark": (host("#fff", "#333", root='data-theme="dark"', scheme="dark"), LIGHT),
    "says dark and colours nothing": ({"root": 'data-theme="dark"'}, DARK),
    "without scripts": (host("#121212", "#ced6dd", java_script_enabled=False), DARK),
}


# The colours of elements as the browser writes them into a picture: the ground and the words.
PAIRS = """all => { const paint = document.createElement("canvas").getContext("2d");
    const page = getComputedStyle(document.body).backgroundColor;
    const rgb = (...colors) => { for (const color of colors) {
        paint.fillStyle = color; paint.fillRect(0, 0, 1, 1); }
      return [...paint.getImageData(0, 0, 1, 1).data].slice(0, 3).map(x => x / 255); };
    return all.map(e => getComputedStyle(e)).map(style =>
      [rgb(page, style.backgroundColor), rgb(style.webkitTextFillColor)]); }"""


@pytest.mark.parametrize(("settings", "ground"), HOSTS.values(), ids=HOSTS)
def test_the_drawing_is_that_of_what_the_page_shows(page, tokens, settings, ground):
    table = AttentionExplorer(SCORES, TOKENS, KEYS)._repr_html_()
    window = page(tokens.html() + table, **settings)
    has_ground(window, ground)
    assert window.get_by_role("img", name=tokens.alt, exact=True).count() == 1
    if {"forced_colors", "java_script_enabled"}.isdisjoint(settings):  # and so are tables
        palette = PALETTES["light" if ground == LIGHT else "dark"]
        for place, name in ("tbody th", "query"), ("thead th:last-child", "key"):
            seen = window.locator(f".d2lmini-explorer {place}").evaluate_all(PAIRS)[0][1]
            np.testing.assert_allclose(seen, to_rgb(palette[name]), atol=0.005)


def test_a_drawing_turns_with_its_page_and_paper_is_light(page, tokens):
    """A reader changes the theme while the page is open."""
    window = page(tokens.html(), **host("#fff", "#222"))
    has_ground(window, LIGHT)
    window.evaluate("document.body.style.cssText = 'background:#000;color:#ddd'")
    has_ground(window, DARK)
    window.emulate_media(media="print")
    has_ground(window, LIGHT)


def table(page):
    """Return the weights that the page shows, NaN where a cell is masked."""
    cells = page.locator("tbody td").all_inner_texts()
    return np.array([np.nan if text == "–" else float(text) for text in cells]).reshape(4, 4)


@pytest.fixture
def explorer(page):
    return page(AttentionExplorer(SQUARE, TOKENS, dimension=4)._repr_html_())


def test_the_script_changes_nothing_by_itself_and_computes_as_python_does(page, explorer):
    html = AttentionExplorer(SQUARE, TOKENS, dimension=4)._repr_html_()
    still = page(html, java_script_enabled=False)
    assert still.locator("input").count() == 0 and explorer.locator("input").count() == 3
    np.testing.assert_array_equal(table(still), table(explorer))
    causal = np.tri(4, dtype=bool)
    for power, scaled, masked in itertools.product((-1, 0.35), *[(True, False)] * 2):
        explorer.get_by_label("temperature").fill(str(power))
        explorer.get_by_label("divide by √4").set_checked(scaled)
        explorer.get_by_label("causal mask").set_checked(masked)
        divisor = 10**power * (2 if scaled else 1)
        mask = causal if masked else np.ones((4, 4), bool)
        again, found = AttentionExplorer(SQUARE / divisor, TOKENS, mask=mask), table(explorer)
        np.testing.assert_array_equal(np.isfinite(found), mask)
        expected = masked_softmax(SQUARE / divisor, mask)[mask]
        np.testing.assert_allclose(found[mask], expected, atol=0.00501)
        assert explorer.locator(".d2lmini-remark").inner_text() == again.remark


def test_it_is_used_with_the_keyboard_alone(explorer):
    slider, remark = explorer.get_by_label("temperature"), explorer.locator(".d2lmini-remark")
    explorer.keyboard.press("Tab")  # the table, which can be scrolled
    explorer.keyboard.press("Tab")
    assert explorer.evaluate("document.activeElement.type") == "range"
    explorer.keyboard.press("Home")
    assert remark.inner_text().endswith("and gradients vanish.")
    heard = explorer.get_by_role("status")
    assert heard.text_content() == "", "seen at once, and heard when the reader rests"
    heard.filter(has_text="gradients vanish").wait_for(state="attached")
    assert slider.get_attribute("aria-valuetext") == "0.10"
    explorer.keyboard.press("Tab")
    explorer.keyboard.press("Tab")
    explorer.keyboard.press("Space")
    assert np.isnan(table(explorer)[0]).sum() == 3


def test_several_on_one_page_and_the_script_twice(page):
    """And keys of their own have no order that a causal mask could mean."""
    one = AttentionExplorer(SCORES, TOKENS, KEYS, dimension=4)._repr_html_()
    window = page(one + AttentionExplorer(np.eye(2), ["p", "q"])._repr_html_())
    first, last = window.locator(".d2lmini-explorer").all()
    assert first.locator("input").count() == last.locator("input").count() == 2
    last.get_by_label("temperature").fill("1")
    weights = masked_softmax(SCORES / 2)
    assert window.locator("tbody td").first.inner_text() == f"{weights[0, 0]:.2f}"


@pytest.mark.parametrize(("ground", "ink"), [("#ffffff", "#1f2329"), ("#121212", "#ced6dd")])
def test_words_in_tables_can_be_read(page, ground, ink):
    trace = AttentionTrace([2.0, 1], SCORES[:, :2], SCORES[:, 2:], mask=np.arange(4) < 3)
    shares = np.linspace(0.02, 0.98, 16)  # the whole ramp
    ramp = AttentionExplorer(np.log([shares, 1 - shares]).T, range(16), ["a", "b"])
    masked = AttentionExplorer(SQUARE, TOKENS, mask="causal")
    body = trace._repr_html_() + ramp._repr_html_() + masked._repr_html_()
    window = page(body, **host(ground, ink))
    pairs = window.locator("th, td, small, p").evaluate_all(PAIRS)
    assert min(contrast(tuple(one), tuple(other)) for one, other in pairs) >= 4.5
