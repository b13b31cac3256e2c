"""How a chapter looks: quiet code, two right edges, one face that comes without moving anything.

What is asked of every chapter `test_every_page.py` asks, in its one visit of the page.
"""

import re
import time

import numpy as np
import pytest
from playwright.sync_api import expect

from d2lmini.plotting import show_heatmaps
from d2lmini.plotting._dark_maps import weight_map
from tests.book.building import CHAPTERS

# How much of the height before the exercises is text that somebody wrote.
PROSE = """() => {
    const end = document.querySelector('#exercises').getBoundingClientRect().top;
    const words = '.reading :is(p, li, h2, h3, dt, dd, .math, table)';
    const lines = new Set();
    for (const one of document.querySelectorAll(words)) {
        const other = one.closest('.cell, .explorable, .exercise, .preview, .run, figure');
        if (other || !one.checkVisibility()) continue;
        const { top, bottom } = one.getBoundingClientRect();
        for (let y = Math.floor(top); y < Math.min(bottom, end); y++) lines.add(y);
    }
    return [lines.size, end - document.querySelector('.reading h1').getBoundingClientRect().top];
}"""
BARS = """[...document.querySelectorAll('.live-tools, .live-status:not(:empty)')]
    .filter(e => e.checkVisibility({ opacityProperty: true }) && !e.closest('details:not([open])'))
    .filter(e => !e.closest('.cell').querySelector('.d2l-check'))
    .map(e => e.closest('.cell').id)"""
EDGES = """() => {
    const page = document.querySelector('.reading'), { left } = page.getBoundingClientRect();
    const text = 'section > p, section > ul, section > .cell:not(.shows-figure), div.math, '
        + 'figcaption, .exercise, .admonition, .explorable';
    const right = e => Math.round(e.getBoundingClientRect().right - left);
    const seen = (e) => e.checkVisibility() && !e.closest('details, .exercise .cell, .preview');
    const all = selector => [...page.querySelectorAll(selector)].filter(seen);
    return {
        text: [...new Set(all(text).filter(e => !e.matches('.exercise *')).map(right))],
        most: Math.max(...all('.reading *').filter(e => !e.closest('.katex')).map(right)),
    };
}"""


def text_has_one_right_edge(tab) -> None:
    """And nothing passes the other one."""
    edges = tab.evaluate(EDGES)
    assert set(edges["text"]) <= {640}, edges
    assert edges["most"] <= 920, edges


def is_quiet(tab) -> None:
    """At rest only cells with the card of a check have buttons."""
    tab.locator("[data-live]").first.wait_for(state="attached")
    assert tab.evaluate(BARS) == []


# Names of folds in the column of the text; those beside it interrupt nobody.
FOLDS = """() => {
    const page = document.querySelector('.reading').getBoundingClientRect();
    const end = document.querySelector('#exercises').getBoundingClientRect().top;
    return [...document.querySelectorAll('.reading summary')].filter(one => {
        const { left, top } = one.getBoundingClientRect();
        return one.checkVisibility() && top < end && left < page.left + 640;
    }).length;
}"""


def test_the_chapters_are_text_first(visit):
    """Of all chapters together .358 was text, and 58 folds stood in the column (176 in all)."""
    text = height = folds = 0
    for chapter in CHAPTERS:
        tab = visit(chapter).tab
        tab.locator("[data-live]").first.wait_for(state="attached")
        more = tab.evaluate(PROSE)
        text, height, folds = text + more[0], height + more[1], folds + tab.evaluate(FOLDS)
    assert text / height >= 0.35, f"{text / height:.3f} of the height is text"
    assert folds <= 70, f"{folds} lines of folds before the exercises: a test stands in the margin"


def test_the_buttons_of_a_cell_are_seen_by_pointer_and_keyboard(visit):
    tab = visit(CHAPTERS[0]).tab
    tab.locator("[data-live]").first.wait_for(state="attached")
    cell = tab.locator(".reading > section > section > .cell[data-live]:not(.folded)").first
    tools = cell.locator(".live-tools")
    expect(tools).to_have_css("opacity", "0")
    cell.hover()
    expect(tools).to_have_css("opacity", "1")
    tab.mouse.move(0, 0)
    expect(tools).to_have_css("opacity", "0")
    cell.locator("textarea").focus()
    expect(tools).to_have_css("opacity", "1")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.textContent") == "Run"


# Code that a button lies on, where it is not folded.
HIDDEN = """() => [...document.querySelectorAll('.cell:not(.folded) .live-tools')]
    .flatMap(tools => {
    const box = tools.getBoundingClientRect(), code = new Range();
    code.selectNodeContents(tools.closest('.cell').querySelector('pre'));
    return [...code.getClientRects()].filter(line => line.right > box.left + 1
        && line.left < box.right - 1 && line.bottom > box.top + 2 && line.top < box.bottom - 2)
        .map(() => code.toString());
})"""


@pytest.mark.parametrize("width", [1280, 820, 390])
def test_the_buttons_of_a_cell_hide_none_of_its_code(visit, width):
    tab = visit(CHAPTERS[0], width=width, has_touch=width == 390, is_mobile=width == 390).tab
    tab.locator("[data-live]").first.wait_for(state="attached")
    assert tab.locator(".cell:not(.folded) .live-tools").count() > 5
    assert tab.evaluate(HIDDEN) == []


# The names of folds that a button lies on.
COVERED = """() => [...document.querySelectorAll('.cell.folded .live-tools')].flatMap(tools => {
    const name = tools.closest(".cell").querySelector("summary");
    const box = tools.getBoundingClientRect();
    const letters = new Range();
    letters.selectNodeContents(name);
    return [...letters.getClientRects()].some(line => line.right > box.left && line.left < box.right
        && line.bottom > box.top && line.top < box.bottom) ? [name.textContent] : [];
})"""


def test_under_a_finger_the_buttons_are_seen_with_their_code_and_lie_on_no_name(visit):
    tab = visit(CHAPTERS[1], width=390).tab
    tab.locator("[data-live]").first.wait_for(state="attached")
    folds = tab.locator(".cell.folded[data-live] > details.hide:not([open])")
    tools = tab.locator(".cell.folded[data-live]:has(> details.hide) > .live-bar > .live-tools")
    assert folds.count() and not any(one.is_visible() for one in tools.all())
    folds.evaluate_all("all => all.forEach(one => { one.open = true; })")
    shown = tab.locator(".live-tools").evaluate_all(
        "all => all.map(one => getComputedStyle(one).display + getComputedStyle(one).opacity)"
    )
    assert set(shown) == {"flex1"}
    assert tab.evaluate(COVERED) == []


# Notes in the margin of which one lies on another.
ON_ANOTHER = """() => {
    const notes = [...document.querySelectorAll('.reading details > summary')]
        .filter(one => one.checkVisibility()).map(one => [one, one.getBoundingClientRect()])
        .filter(([, box]) => box.left > 900).sort(([, a], [, b]) => a.top - b.top);
    return notes.filter(([, box], i) => i && box.top < notes[i - 1][1].bottom - 1)
        .map(([one]) => one.textContent);
}"""


def test_notes_in_the_margin_do_not_lie_on_one_another(visit):
    for number in (0, 3, 5):  # in these chapters some follow one another
        tab = visit(CHAPTERS[number], width=1280).tab
        assert tab.evaluate(ON_ANOTHER) == [], CHAPTERS[number]


def test_the_code_of_a_figure_comes_after_its_caption_and_is_quiet(visit):
    tab = visit(CHAPTERS[4]).tab
    after = tab.locator(".cell.folded.shows-figure").evaluate_all(
        "all => all.map(cell => !!(cell.querySelector('figcaption, .cell_output')"
        ".compareDocumentPosition(cell.querySelector('details.hide > summary')) & 4))"
    )
    assert after and all(after)
    weights = tab.locator("details > summary").evaluate_all(
        "all => all.map(one => getComputedStyle(one).fontWeight)"
    )
    assert set(weights) == {"400"}


# What a line of code is broken at, if not at a blank. A word that is longer than a line has to be.
BROKEN = """() => {
    const broken = [];
    for (const line of document.querySelectorAll('.cell_input pre > i')) {
        if (!line.checkVisibility()) continue;
        const texts = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
        const room = line.getBoundingClientRect().width - 40;
        const words = /\\w+(?:\\.\\d\\w*)?/g;
        for (let node; (node = texts.nextNode());) for (const word of node.data.matchAll(words)) {
            const range = new Range();
            range.setStart(node, word.index);
            range.setEnd(node, word.index + word[0].length);
            const parts = [...range.getClientRects()];
            const lines = new Set(parts.map(p => Math.round(p.top))).size;
            if (lines > 1 && parts[0].width < room) broken.push(word[0]);
        }
    }
    return broken;
}"""


def code_hangs(tab) -> None:
    """A line that is broken is not broken inside a name, and what follows is indented."""
    assert tab.evaluate(BROKEN) == []
    line = tab.locator(".cell_input pre:visible > i:not([style])").first
    assert line.evaluate("e => parseFloat(getComputedStyle(e).textIndent)") < -10


# How much has moved, and of which faces the first picture of the page was.
LATE = """window.moved = 0;
const watch = (type, act) => new PerformanceObserver(list => list.getEntries().forEach(act))
    .observe({ type, buffered: true });
watch('layout-shift', one => window.moved += one.value);
watch('paint', () => window.first ??= [...document.fonts]
    .filter(one => /^"?Book/.test(one.family)).map(one => [one.family, one.status]));"""


# Where most moved while the faces were files of their own: up to .23.
@pytest.mark.parametrize(("chapter", "width"), [(2, 390), (4, 390), (6, 390), (6, 1280), (10, 390)])
def test_late_fonts_move_nothing_and_every_text_has_its_face_from_the_first(
    chromium, address, chapter, width
):
    """Files are held back for a second and a half; the style sheet holds what text is set in."""
    context = chromium.new_context(viewport={"width": width, "height": 900})
    tab = context.new_page()
    tab.add_init_script(LATE)

    def hold(route):
        time.sleep(1.5)
        route.continue_()

    tab.route("**/*.woff2", hold)
    tab.goto(f"{address}{CHAPTERS[chapter - 1]}.html")
    tab.evaluate("document.fonts.ready.then(() => new Promise(done => setTimeout(done, 500)))")
    first = tab.evaluate("window.first")
    assert len(first) == 4 and all(status == "loaded" for _, status in first), first
    assert tab.evaluate("window.moved") <= 0.01
    context.close()


WEIGHTS = (0, 0.25, 0.5, 0.75, 1)
# The same weights in each form in which a page shows them; the heatmap is read from its picture.
SAMPLES = """async ([weights, heatmap, places]) => {
    const rows = {
        explorable: w => `<svg class="a"><rect class="ex-square" style="--w:${w}"/></svg>`,
        grid: w => `<table class="ex-grid-table"><tr><td role="gridcell" style="--w:${w}">`,
        chip: w => `<p class="ex-pieces"><span style="--w:${w}">a</span></p>`,
        table: w => `<div class="d2lmini-table d2lmini-explorer"><table><tr>
            <th></th><td class="d2lmini-more" style="--w:${w}">1</td></tr></table></div>`,
        ledger: w => `<div class="d2lmini-table d2lmini-trace"><table><tr>
            <th></th><td class="d2lmini-bar" style="--w:${w}">1</td></tr></table></div>`,
        atlas: w => `<i class="ex-on atlas-probe" style="--w:${w}"></i>`,
    };
    const pen = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const rgb = colour => {
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const found = {}, page = document.querySelector('.reading');
    for (const [name, row] of Object.entries(rows)) found[name] = weights.map(w => {
        const box = document.createElement('div');
        box.className = 'ex-drawing';
        box.innerHTML = row(w);
        page.append(box);
        const style = getComputedStyle(box.querySelector('[style]'));
        const ground = name === 'explorable' ? style.fill : style.backgroundColor;
        const words = name === 'explorable' || name === 'atlas' ? null
            : rgb(name === 'table' || name === 'ledger' ? style.webkitTextFillColor : style.color);
        const pair = { ground: rgb(ground), words };
        box.remove();
        return pair;
    });
    const image = new Image();
    image.src = heatmap;
    await image.decode();
    const canvas = new OffscreenCanvas(image.naturalWidth, image.naturalHeight);
    const drawn = canvas.getContext('2d');
    drawn.drawImage(image, 0, 0);
    found.heatmap = places.map(([x, y]) => ({ words: null, ground: [...drawn.getImageData(
        Math.round(x * canvas.width), Math.round(y * canvas.height), 1, 1).data].slice(0, 3) }));
    return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_weight_has_one_colour_wherever_it_is_drawn(visit, scheme):
    """In heatmaps, explorables, grids, chips, tables, ledgers and the atlas; words turn once."""
    shares = [np.multiply(100, WEIGHTS)]  # as numbers they need not sum to 1
    shown = show_heatmaps(shares, "Column", "Row", annot=False, colorbar=False, show=False)
    dark, light, *_ = re.findall(r"data:image/svg\+xml;base64,[\w+/=]+", shown.html())
    (ax,) = shown.axes.ravel()
    box = ax.get_position()
    places = [[box.x0 + box.width * (i + 0.5) / 5, 1 - box.y0 - box.height / 2] for i in range(5)]
    tab = visit(CHAPTERS[2], width=390, scheme=scheme).tab
    found = tab.evaluate(SAMPLES, [WEIGHTS, {"light": light, "dark": dark}[scheme], places])
    wanted = np.round(255 * weight_map(scheme)(np.array(WEIGHTS, float))[:, :3])
    for name, row in found.items():
        drawn = np.array([one["ground"] for one in row])
        np.testing.assert_allclose(drawn, wanted, atol=3, err_msg=f"{name}, {scheme}")
        below, above = ((0, 255), (255, 0))[scheme == "dark"]
        if row[0]["words"]:
            words = [one["words"][0] for one in row]
            np.testing.assert_allclose(words, [below] * 4 + [above], atol=2, err_msg=name)


def test_on_a_phone_an_exercise_is_a_line_until_it_is_opened(visit):
    tab = visit(CHAPTERS[4], width=390).tab
    exercises = tab.locator("section.exercise")
    heights = exercises.evaluate_all("all => all.map(one => one.offsetHeight)")
    assert len(heights) >= 6 and max(heights) <= 100, heights
    button = exercises.first.get_by_role("button", name="The exercise")
    assert button.get_attribute("aria-expanded") == "false"
    button.click()
    assert button.get_attribute("aria-expanded") == "true"
    assert exercises.first.locator("> p").first.is_visible()
    name = exercises.nth(2).get_attribute("id")
    tab.evaluate(f"location.hash = '#{name}'")
    expect(exercises.nth(2).locator("> p").first).to_be_visible()
    wide = visit(CHAPTERS[4]).tab.locator("section.exercise > p").first
    assert wide.is_visible()
