"""The published book: what it has more than the one on this machine stands well in its pages."""

import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from PIL import Image

from scripts import first_page
from tests.book.building import ROOT, pages_of
from tests.browser.test_every_page import ALL_RULES, findings

PAGES = [*pages_of(ROOT / "_toc.yml"), "search", "genindex", "404"]
CHAPTERS = [page for page in PAGES if page.startswith("chapters/0")]
LOOKED_AT = [PAGES[0], CHAPTERS[2], "404"]
SHIFT = """() => new Promise(done => {
    let total = 0;
    new PerformanceObserver(list => list.getEntries().forEach(e => total += e.value))
        .observe({type: 'layout-shift', buffered: true});
    setTimeout(() => done(total), 300);
})"""
# What can be pressed over a page, and the pictures on it: what it is called and how large it is.
BUTTONS = """[...document.querySelectorAll('.bd-header-article :is(a, button)')]
    .filter(e => e.checkVisibility({visibilityProperty: true}))
    .map(e => {
        const sizes = [e, ...e.querySelectorAll('img')].map(part => {
            const box = part.getBoundingClientRect();
            return [box.width, box.height];
        });
        return {name: e.title || e.ariaLabel, sizes};
    })"""
ROW = "document.querySelector('.bd-header-article').getBoundingClientRect().height"


@pytest.mark.parametrize("page", PAGES)
def test_each_page_loads_alone_and_in_silence(visit, published, page):
    seen = visit(page, base=published)
    assert seen.said == []
    assert seen.failed == []
    assert seen.hosts() == {urlsplit(published).netloc}
    assert all(answer.ok for answer in seen.responses)
    assert len(seen.responses) <= 30
    own = {path: size for path, size in seen.weights().items() if "/_images/" not in path}
    assert sum(own.values()) <= 240_000, own
    assert seen.tab.title().count("Queries, Keys and Values") == 1


@pytest.mark.parametrize("page", LOOKED_AT)
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_shut_out(visit, published, page, width, scheme):
    tab = visit(page, width, scheme, base=published).tab
    tab.wait_for_timeout(500)  # the theme makes what scrolls focusable after 300 ms
    assert findings(tab, ALL_RULES) == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("page", CHAPTERS)
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_jumps_while_a_chapter_loads(visit, published, page, width):
    assert visit(page, width, base=published).tab.evaluate(SHIFT) < 0.01


@pytest.mark.parametrize("page", LOOKED_AT)
@pytest.mark.parametrize("width", [1280, 390])
def test_the_row_of_buttons(visit, published, page, width):
    """One low row, of buttons that a finger can hit and pictures that are no larger than words."""
    tab = visit(page, width, base=published).tab
    assert tab.evaluate(ROW) <= 60
    for button in tab.evaluate(BUTTONS):
        target, *pictures = button["sizes"]
        assert min(target) >= 24, button
        assert all(max(picture) <= 24 for picture in pictures), button


def test_a_phone_keeps_what_is_done_on_a_phone(visit, published):
    tab = visit(CHAPTERS[2], 390, base=published).tab
    names = [button["name"] for button in tab.evaluate(BUTTONS)]
    assert "Search" in names and "Color mode" in names
    assert not {"Launch on Binder", "Launch on Colab", "Source repository"} & set(names), names


@pytest.mark.usefixtures("chromium")
def test_the_picture_of_the_first_page_can_be_taken(published_site, tmp_path):
    page, picture = published_site / "book" / f"{PAGES[0]}.html", tmp_path / "page.png"
    command = [sys.executable, "-m", "scripts.first_page", str(page), str(picture)]
    subprocess.run(command, cwd=ROOT, check=True)  # a second driver in this process would not do
    for path in (picture, first_page.PICTURE):
        with Image.open(path) as image:
            assert image.size == first_page.SIZE
        assert 20_000 < path.stat().st_size <= 150_000
