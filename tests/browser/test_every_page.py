"""Each page in Chromium: it loads alone and in silence, is light, and shuts nobody out."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.book.building import CHAPTERS, ROOT, pages_of
from tests.browser.conftest import lasting

AXE = (Path(__file__).parent / "axe/axe.min.js").read_text("utf8")  # see axe/README.md
PAGES = [*pages_of(ROOT / "_toc.yml"), "search", "genindex"]
# Formulas are there twice: as MathML, which is read aloud but which axe does not read, and as a
# picture of it. Code has the same colours on every page: see test_code_can_be_read. Both are most
# of what is on a page, and what axe would spend its time on.
PLAINER = """kept => {
    const others = what => [...document.querySelectorAll(what)].filter(e => !e.closest(kept));
    others('.katex').forEach(formula => formula.replaceWith('x'));
    others('.highlight pre').forEach(code => code.textContent = code.textContent);
}"""
CODE = ".highlight pre"
ALL_RULES = "['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']"
FIRST_STOP = "Skip to main content"
# Where the keyboard is: what it is called, and whether a reader sees that it is there.
FOCUS = """() => {
    const at = document.activeElement;
    const style = getComputedStyle(at), box = at.getBoundingClientRect();
    at.dataset.reached = '';
    const label = at.ariaLabel || at.labels?.[0]?.textContent || at.title || at.textContent;
    return {
        name: (label || at.placeholder || '').trim(),
        seen: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
        shown: box.width > 0 && box.height > 0,
    };
}"""
# On a phone editors come when the page is laid out.
ALL_EDITORS = """new Promise(done => {
    const cells = [...document.querySelectorAll('[data-live]')];
    const look = () => cells.every(cell => cell.querySelector('textarea')) ? done()
        : setTimeout(look, 50);
    look();
})"""
MISSED = """
[...document.querySelectorAll(
    'a[href], button:enabled, textarea, input, summary, select, [tabindex="0"]')]
    .filter(e => e.type !== 'radio' || e.checked)  // the arrow keys lead to the others
    .filter(e => !e.closest('.beside'))  // what a link of the text leads to, once more
    // in an editor one edits and copies without the buttons of its cell
    .filter(e => e.tabIndex >= 0 || !e.closest('.cell').querySelector('textarea[data-reached]'))
    .filter(e => e.checkVisibility({visibilityProperty: true}) && !('reached' in e.dataset))
    .map(e => e.outerHTML.slice(0, 200))"""
# When all that is seen to change has changed: what is folded never does.
SHOWN = """Promise.allSettled(document.getAnimations()
    .filter(one => one.effect.target.checkVisibility()).map(one => one.finished)).then(() => 0)"""
COLOURS = "{type: 'rule', values: ['color-contrast']}"
ALL_BUT_COLOURS = f"{ALL_RULES}, rules: {{'color-contrast': {{enabled: false}}}}"
# How far what is seen moves by itself while one reads to the end. A busy machine draws a page in
# pieces: a word that ends a line may then still go to the next one, which counts as .010.
MOST_SHIFT = 0.02
SHIFT = """async () => {
    let shifted = 0;
    const add = list => list.forEach(one => shifted += one.hadRecentInput ? 0 : one.value);
    const watch = new PerformanceObserver(list => add(list.getEntries()));
    watch.observe({type: 'layout-shift', buffered: true});
    for (let top = 0; top < document.documentElement.scrollHeight; top += 2500) {
        scrollTo(0, top);
        for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
    }
    await new Promise(done => setTimeout(done, 200));
    add(watch.takeRecords());
    return shifted;
}"""
# What scrolls, and the keyboard does not reach: the script of a page looks at it when it is idle.
UNREACHED = """[...document.querySelectorAll('article :is(pre, .output, .table-box)')].filter(
    e => e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX === 'auto'
        && e.checkVisibility() && e.tabIndex < 0).map(e => e.outerHTML.slice(0, 200))"""
# What scrolls sideways, and may not: at this width, or because no shadow says so. The first line of
# an exercise is as long as its arguments.
BEYOND = """width => [...document.querySelectorAll('html, article *')].filter(e => {
    if (e.scrollWidth <= e.clientWidth + !e.matches('html')) return false;
    const { overflowX, backgroundAttachment } = getComputedStyle(e);
    return e.matches('html') || e.clientWidth > 40 && ['auto', 'scroll'].includes(overflowX)
        && e.checkVisibility({visibilityProperty: true, opacityProperty: true})
        && (!backgroundAttachment.includes('local')
            || width >= 1280 && !e.innerText.includes('@check')
            || width < 768 && e.closest('.highlight:not(.cell_output .highlight)')
            || width === 390 && e.closest('.math, .cell_output pre'));
}).map(e => `${e.tagName} ${e.className} ${e.innerText.slice(0, 80)}`)"""
# Words of drawings, measured where the page draws them: those of another size than the wanted ones,
# and those that a side of their drawing cuts.
WORDS_OF_DRAWINGS = """async (wanted) => {
    const found = [];
    for (const image of document.querySelectorAll('article .d2lmini-figure img')) {
        if (!image.checkVisibility()) continue;
        image.loading = 'eager';  // one far from where the page stood has no source yet
        await image.decode();
        const holder = document.createElement('div'), box = image.getBoundingClientRect();
        holder.style = `position: absolute; left: 0; top: 0; width: ${box.width}px`;
        const drawn = await (await fetch(image.currentSrc)).text();
        // the policy of a page lets no drawing bring a face: its own is the same
        holder.innerHTML = drawn.replace(/<style>.*?<\\/style>/s, '');
        const svg = holder.querySelector('svg');
        svg.setAttribute('width', box.width);
        svg.setAttribute('height', box.height);
        document.body.append(holder);
        svg.querySelectorAll('text, tspan').forEach(word => word.style.fontFamily = 'Book');
        const sheet = svg.getBoundingClientRect();
        for (const word of svg.querySelectorAll('text')) {
            const {left, right} = word.getBoundingClientRect(), at = word.getScreenCTM();
            const beyond = Math.max(sheet.left - left, right - sheet.right);
            // above and below the letters of a line, which may be turned, there is room
            const cut = beyond > (at.b ? .3 * (right - left) : 1) ? ' is cut' : '';
            for (const part of word.querySelector('tspan') ? word.children : [word]) {
                const size = parseFloat(getComputedStyle(part).fontSize) * Math.hypot(at.a, at.b);
                if (cut || wanted.every(one => Math.abs(one - size) > .2)) found.push(
                    `${size.toFixed(1)} ${part.textContent}${cut} in ${image.alt.slice(0, 60)}`);
            }
        }
        holder.remove();
    }
    return found;
}"""
# Drawings that leave much of their column (at most 640 wide) empty, or are higher than a screen.
BAD_DRAWINGS = """() => [...document.querySelectorAll('article .d2lmini-figure img')]
    .filter(image => image.checkVisibility())
    .map(image => [image.getBoundingClientRect(),
        Math.min(640, image.closest('.d2lmini-figure').clientWidth), image.alt])
    .filter(([box, column]) => box.width < .7 * column
        || box.height > (innerWidth < 640 ? 800 : 700))
    .map(([box, column, alt]) => `${box.width} x ${box.height} in ${column}: ${alt}`)"""
# 640 and 320: 1280 at 200 % and at 400 %; from one change of the layout to the next it only widens
WIDTHS = (1280, 1024, 768, 640, 320)
# What a page may send: a slow phone takes two seconds for so much, and each request is a way there
# and back. The longest chapter sends 190,000 bytes, and asks 33 times, pictures included.
MOST_BYTES, MOST_REQUESTS = 240_000, 36
# Pixels of the words of a drawing: what one reads beside a text of 20 or 18, and not smaller than a
# phone can show. Words that stand out are 17/14 of it, results 30/14, indices .85 (see
# lettering/letters.py).
WORDS = {1280: 14, 390: 12}
# One page of each kind: the first, a chapter, words, tables, the reference, search.
KINDS = [PAGES[0], CHAPTERS[1], *map("chapters/".__add__, ("notation", "glossary"))]
KINDS += ["chapters/api/scores", "search"]
VIEWS = {1280: "light", 390: "dark"}


def visits(pages, *, weekly):
    """Return pages as a computer and as a phone show them; some of them only once a week."""
    views = [(page, width, scheme) for page in pages for width, scheme in VIEWS.items()]
    marks = [pytest.mark.weekly if weekly(page, width) else () for page, width, _ in views]
    params = [pytest.param(*view, marks=mark) for view, mark in zip(views, marks, strict=True)]
    return pytest.mark.parametrize(("page", "width", "scheme"), params)


def findings(tab, rules, within="") -> list[str]:
    """Return what axe finds on a page, or within a part of it, and where."""
    if not tab.evaluate("'axe' in window"):
        tab.evaluate(AXE)
    tab.evaluate(PLAINER, within or ":not(*)")
    where = f"{{include: [['{within}']]}}" if within else f"{{exclude: [['{CODE}']]}}"
    options = f"{{preload: false, resultTypes: ['violations'], runOnly: {rules}}}"
    found = tab.evaluate(f"axe.run({where}, {options})")["violations"]
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found
        for node in one["nodes"]
    ]


@visits(PAGES, weekly=lambda page, width: width == 390 and page not in {*KINDS, *CHAPTERS})
def test_each_page(visit, address, page, width, scheme):
    """All that is asked of a page in one visit; the steps are in the order of their traces."""
    seen = visit(page, width, scheme)
    tab = seen.tab
    assert tab.evaluate(SHIFT) < MOST_SHIFT, "something moves by itself while the page is read"
    is_light_and_alone(seen, address)
    assert tab.evaluate("document.documentElement.dataset.theme") == scheme
    sizes = [WORDS[width] * one for one in (1, 17 / 14, 30 / 14, 0.85)]
    said = "the build sets words anew: see lettering/letters.py, and make room where they are cut"
    assert tab.evaluate(WORDS_OF_DRAWINGS, sizes) == [], said
    assert tab.evaluate(BAD_DRAWINGS) == []
    if width == 390:
        assert lasting(tab, BEYOND, width) == []
    else:
        nothing_is_beyond_an_edge(tab)
    if page in KINDS:
        can_be_used_by_all(tab, scheme, width)
    assert seen.said == []


@visits([page for page in PAGES if page not in KINDS], weekly=lambda page, width: True)
def test_each_other_page_can_be_used_by_all(visit, page, width, scheme):
    can_be_used_by_all(visit(page, width, scheme).tab, scheme, width)


def can_be_used_by_all(tab, scheme, width) -> None:
    """With the keyboard, and by those for whom axe looks."""
    tab.set_viewport_size({"width": width, "height": 900})
    if width == 1280 or tab.url.endswith(f"{PAGES[3]}.html"):
        the_keyboard_reaches_everything(tab)
    tab.evaluate("scrollTo(0, 0)")  # where no button that leads there covers anything
    assert lasting(tab, UNREACHED) == []
    shuts_nobody_out(tab, scheme, width)


def is_light_and_alone(seen, address) -> None:
    """It loads its own files, few of them, and says nothing."""
    assert seen.said == []
    assert seen.failed == []
    assert seen.hosts() == {urlsplit(address).netloc}
    assert all(answer.ok for answer in seen.responses)
    assert len(seen.responses) <= MOST_REQUESTS, "see MOST_BYTES"
    own = {path: size for path, size in seen.weights().items() if "/_images/" not in path}
    assert sum(own.values()) <= MOST_BYTES, f"see MOST_BYTES: {own}"


def the_keyboard_reaches_everything(tab) -> None:
    """Tab goes to all that can be used, and shows where it is."""
    tab.evaluate(ALL_EDITORS)
    tab.evaluate("scrollTo(0, 0)")
    tab.evaluate(f"path = []; addEventListener('focusin', () => path.push(({FOCUS})()))")
    path = []
    while len(path) < 1000 and [at["name"] for at in path].count(FIRST_STOP) < 2:  # round again
        for _ in range(25):
            tab.keyboard.press("Tab")
        path = tab.evaluate("path")
    assert all(at["name"] and at["seen"] and at["shown"] for at in path), path
    assert path[0]["name"] == FIRST_STOP
    assert tab.evaluate(MISSED) == []


def nothing_is_beyond_an_edge(tab) -> None:
    """The page scrolls down only; from 1280 on nothing else scrolls, and code breaks below 768."""
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 900})
        assert lasting(tab, BEYOND, width) == []
    tab.evaluate("document.querySelectorAll('details').forEach(fold => fold.open = true)")
    beyond = "document.documentElement.scrollWidth > innerWidth"
    assert not lasting(tab, beyond), "with all folds open"
    tab.evaluate("document.querySelectorAll('article details').forEach(f => f.open = false)")


def shuts_nobody_out(tab, scheme, width) -> None:
    """Nothing for axe to say; in the other theme only colours differ, on a phone only of tables."""
    whole = width == 1280 or tab.locator("article .d2lmini-table").count() > 0
    assert findings(tab, ALL_RULES if whole else ALL_BUT_COLOURS) == []
    if whole:
        other = {"light": "dark", "dark": "light"}[scheme]
        tab.emulate_media(color_scheme=other)
        tab.locator(f"html[data-theme={other}]").wait_for(state="attached")
        tab.evaluate(SHOWN)
        assert findings(tab, COLOURS) == [], other


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
    tab.evaluate("document.querySelector('article').innerHTML += '<img src=\"x.png\">'")
    assert any("image-alt" in one for one in findings(tab, ALL_RULES)), "it finds what is wrong"
