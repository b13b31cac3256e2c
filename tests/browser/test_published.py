"""The published book: what it has more than the one on this machine stands well in its pages."""

import subprocess
import sys

import pytest
from PIL import Image

from scripts import first_page
from tests.book import checks
from tests.book.building import CHAPTERS, ROOT, pages_of
from tests.browser.test_every_page import is_light_and_alone, shuts_nobody_out

FIRST = pages_of(ROOT / "_toc.yml")[0]
SHIFT = """() => new Promise(done => {
    let total = 0;
    new PerformanceObserver(list => list.getEntries().forEach(e => total += e.value))
        .observe({type: 'layout-shift', buffered: true});
    setTimeout(() => done(total), 300);
})"""
# What can be pressed over a page, and the pictures on it: what it is called and how large it is.
BUTTONS = """[...document.querySelectorAll('.bar :is(a, button)')]
    .filter(e => e.checkVisibility({visibilityProperty: true}))
    .map(e => [e.title || e.ariaLabel || e.textContent, ...[e, ...e.querySelectorAll('img')]
        .map(part => part.getBoundingClientRect()).map(box => [box.width, box.height])])"""
ROW = "document.querySelector('.bar').getBoundingClientRect().height"


@pytest.mark.parametrize("page", [*CHAPTERS, FIRST, "chapters/api", "search", "genindex", "404"])
def test_nothing_jumps(visit, published, page):
    """Not even without a single file of a font: the style sheet holds the faces."""
    for width in (1280, 390):
        tab = visit(page, width, base=published, fonts=False).tab
        assert tab.evaluate(SHIFT) < 0.01, "the limit that the book sets itself"


@pytest.mark.parametrize("page", [FIRST, CHAPTERS[2], "404"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_nobody_is_shut_out(visit, published, published_site, page, width, scheme):
    """It loads alone and in silence; the buttons of its row are low, and a finger hits them."""
    seen = visit(page, width, scheme, base=published)
    tab = seen.tab
    assert tab.evaluate(SHIFT) < 0.01, "the limit that the book sets itself"
    is_light_and_alone(seen, published)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(ROW) <= 60
    buttons = tab.evaluate(BUTTONS)
    for name, target, *pictures in buttons:
        assert min(target) >= 24, name
        assert all(max(picture) <= 24 for picture in pictures), name
    names = {name for name, *_ in buttons}
    if width == 390:  # a phone keeps what is done on a phone
        assert any(name.startswith("Search") for name in names)
        assert not {"Launch on Binder", "Launch on Colab", "Source repository"} & names, names
        path = published_site / "book" / f"{page}.html"  # of all that no visit would see
        assert checks.forbidden_scripts(path) == checks.loaded_from_elsewhere(path) == []
        assert tab.title().count("Queries, Keys and Values") == 1
    tab.wait_for_timeout(300)  # what scrolls can be focused after as long
    shuts_nobody_out(tab, scheme, width)


@pytest.mark.usefixtures("chromium")
def test_the_picture_of_the_first_page_can_be_taken(published_site, tmp_path):
    page, picture = published_site / "book" / f"{FIRST}.html", tmp_path / "page.png"
    command = [sys.executable, "-m", "scripts.first_page", str(page), str(picture)]
    subprocess.run(command, cwd=ROOT, check=True)  # a second driver in this process would not do
    for path in (picture, first_page.PICTURE):
        with Image.open(path) as image:
            assert image.size == first_page.SIZE
        assert 20_000 < path.stat().st_size <= 150_000
