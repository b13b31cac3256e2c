"""The published book: what it has more than the one on this machine stands well in its pages."""

import subprocess
import sys

import pytest
from PIL import Image

from scripts import first_page
from tests.book import checks
from tests.book.building import CHAPTERS, ROOT, pages_of
from tests.browser.test_every_page import is_light_and_alone, shuts_nobody_out

PAGES = [*pages_of(ROOT / "_toc.yml"), "search", "genindex", "404"]
SHIFT = """() => new Promise(done => {
    let total = 0;
    new PerformanceObserver(list => list.getEntries().forEach(e => total += e.value))
        .observe({type: 'layout-shift', buffered: true});
    setTimeout(() => done(total), 300);
})"""
# What can be pressed over a page, and the pictures on it: what it is called and how large it is.
BUTTONS = """[...document.querySelectorAll('.bar :is(a, button)')]
    .filter(e => e.checkVisibility({visibilityProperty: true}))
    .map(e => {
        const sizes = [e, ...e.querySelectorAll('img')].map(part => {
            const box = part.getBoundingClientRect();
            return [box.width, box.height];
        });
        return {name: e.title || e.ariaLabel || e.textContent, sizes};
    })"""
ROW = "document.querySelector('.bar').getBoundingClientRect().height"


ONE_OF_EACH = [*CHAPTERS, PAGES[0], "chapters/api", *PAGES[-3:]]


@pytest.mark.parametrize("page", ONE_OF_EACH)
@pytest.mark.parametrize("width", [1280, 390])
def test_nothing_jumps(visit, published, page, width):
    """Not even without a single file of a font: the style sheet holds the faces."""
    tab = visit(page, width, base=published, fonts=False).tab
    assert tab.evaluate(SHIFT) < 0.01, "the limit that the book sets itself"


def test_no_page_holds_what_its_policy_forbids(published_site):
    """What a visit would see; of every page it is asked before it is published (`book/`)."""
    for page in ONE_OF_EACH:
        path = published_site / "book" / f"{page}.html"
        assert checks.forbidden_scripts(path) == [], page
        assert checks.loaded_from_elsewhere(path) == [], page
        assert checks.soup(path).title.get_text().count("Queries, Keys and Values") == 1, page


@pytest.mark.parametrize("page", [PAGES[0], CHAPTERS[2], "404"])
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_nobody_is_shut_out(visit, published, page, width, scheme):
    """It loads alone and in silence; the buttons of its row are low, and a finger hits them."""
    seen = visit(page, width, scheme, base=published)
    tab = seen.tab
    assert tab.evaluate(SHIFT) < 0.01, "the limit that the book sets itself"
    is_light_and_alone(seen, published)
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    assert tab.evaluate(ROW) <= 60
    buttons = tab.evaluate(BUTTONS)
    for button in buttons:
        target, *pictures = button["sizes"]
        assert min(target) >= 24, button
        assert all(max(picture) <= 24 for picture in pictures), button
    names = {button["name"] for button in buttons}
    if width == 390:  # a phone keeps what is done on a phone
        assert any(n.startswith("Search") for n in names)
        assert not {"Launch on Binder", "Launch on Colab", "Source repository"} & names, names
    tab.wait_for_timeout(300)  # what scrolls can be focused after as long
    shuts_nobody_out(tab, scheme, width)


@pytest.mark.usefixtures("chromium")
def test_the_picture_of_the_first_page_can_be_taken(published_site, tmp_path):
    page, picture = published_site / "book" / f"{PAGES[0]}.html", tmp_path / "page.png"
    command = [sys.executable, "-m", "scripts.first_page", str(page), str(picture)]
    subprocess.run(command, cwd=ROOT, check=True)  # a second driver in this process would not do
    for path in (picture, first_page.PICTURE):
        with Image.open(path) as image:
            assert image.size == first_page.SIZE
        assert 20_000 < path.stat().st_size <= 150_000
