"""Each page in Chromium: it loads alone and in silence, is light, and shuts nobody out."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.book.building import ROOT, pages_of

AXE = (Path(__file__).parent / "axe/axe.min.js").read_text("utf8")  # see axe/README.md
PAGES = [*pages_of(ROOT / "_toc.yml"), "search", "genindex"]
# Formulas are there twice: as MathML, which is read aloud but which axe does not read, and as a
# picture of it. Code has the same colours on every page: see test_code_can_be_read.
WHERE = "{exclude: [['.katex'], ['th:has(> p > .math:only-child)'], ['.highlight pre']]}"
CODE = "{include: [['.highlight pre']]}"
ALL_RULES = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']"
# Where the keyboard is: what it is called, and whether a reader sees that it is there.
FOCUS = """() => {
    const at = document.activeElement;
    const style = getComputedStyle(at), box = at.getBoundingClientRect();
    at.dataset.reached = '';
    const label = at.ariaLabel || at.labels?.[0]?.textContent || at.title || at.textContent;
    return {
        tag: at.tagName, name: (label || at.placeholder || '').trim(),
        seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
        shown: box.width > 0 && box.height > 0,
    };
}"""
MISSED = """
[...document.querySelectorAll(
    'a[href], button:enabled, textarea, input, summary, select, [tabindex="0"]')]
    .filter(e => e.type !== 'radio' || e.checked)  // the arrow keys lead to the others
    .filter(e => e.checkVisibility({visibilityProperty: true}) && !('reached' in e.dataset))
    .map(e => e.outerHTML.slice(0, 200))"""
FLAT = "document.querySelectorAll('.highlight pre').forEach(p => p.textContent += '')"
COLOURS = "{type: 'rule', values: ['color-contrast']}"
# How far what is seen moves by itself while the page loads and is scrolled through.
SHIFT = """shifted = 0;
new PerformanceObserver(list => {
    for (const one of list.getEntries()) if (!one.hadRecentInput) shifted += one.value;
}).observe({type: 'layout-shift', buffered: true})"""
each = pytest.mark.parametrize("page", PAGES)


def findings(tab, rules, where=WHERE) -> list[str]:
    """Return what axe finds on a page, and where."""
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(AXE)
    options = f"{{preload: false, resultTypes: ['violations'], runOnly: {rules}}}"
    found = tab.evaluate(f"axe.run({where}, {options})")["violations"]
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found
        for node in one["nodes"]
    ]


@each
def test_each_page(visit, address, page):
    seen = visit(page)
    assert seen.said == []
    assert seen.failed == []
    assert seen.hosts() == {urlsplit(address).netloc}
    assert all(answer.ok for answer in seen.responses)
    assert len(seen.responses) <= 30
    own = {path: size for path, size in seen.weights().items() if "/_images/" not in path}
    assert sum(own.values()) <= 240_000, own
    for scheme in ("light", "dark"):
        for width in (1280, 390):
            seen.tab.emulate_media(color_scheme=scheme)
            seen.tab.set_viewport_size({"width": width, "height": 900})
            seen.tab.wait_for_timeout(500)  # the theme makes what scrolls focusable after 300 ms
            assert seen.tab.evaluate("document.documentElement.dataset.theme") == scheme
            assert seen.tab.evaluate("document.documentElement.scrollWidth") <= width
            assert findings(seen.tab, ALL_RULES) == [], (scheme, width)
            seen.tab.evaluate(FLAT)  # axe walks even what it is told to leave out
    assert seen.said == []


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@each
def test_nothing_moves_by_itself(visit, page, scheme, width):
    tab = visit(page, width, scheme).tab
    tab.evaluate(SHIFT)
    for top in range(0, tab.evaluate("document.documentElement.scrollHeight"), 2500):
        tab.evaluate(f"scrollTo(0, {top})")
        tab.wait_for_timeout(20)
    tab.wait_for_timeout(200)
    assert tab.evaluate("shifted") < 0.01


@each
def test_nothing_is_wider_than_the_window(visit, page):
    """A window of 1280 pixels at 200 % has room for 640, at 400 % for 320."""
    tab = visit(page).tab
    tab.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    for width in (320, 390, 640, 800, 1000, 1200):
        tab.set_viewport_size({"width": width, "height": 900})
        assert tab.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("page", "width"), [*((page, 1280) for page in PAGES), (PAGES[3], 390)])
def test_the_keyboard_reaches_everything_and_shows_where_it_is(visit, page, width):
    tab = visit(page, width).tab
    names = []
    for _ in range(1000):
        tab.keyboard.press("Tab")
        at = tab.evaluate(FOCUS)
        if at["tag"] == "BODY":
            break
        assert at["name"] and at["seen"] and at["shown"], at
        names.append(at["name"])
    assert names[0] == "Skip to main content"
    assert tab.evaluate(MISSED) == []


def test_axe_finds_what_is_wrong(visit):
    tab = visit("search").tab
    tab.evaluate("document.querySelector('main').innerHTML += '<img src=\"x.png\">'")
    assert any("image-alt" in one for one in findings(tab, ALL_RULES))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_code_can_be_read(visit, scheme):
    """Look at each kind of word once: where there are thousands, axe takes minutes."""
    tab = visit(PAGES[2], scheme=scheme).tab
    kinds = tab.evaluate("""() => {
        const kinds = new Set();
        for (const word of document.querySelectorAll('.highlight span[class]')) {
            if (kinds.has(word.className)) word.remove();
            kinds.add(word.className);
        }
        return kinds.size;
    }""")
    assert kinds > 12
    assert findings(tab, COLOURS, CODE) == []
