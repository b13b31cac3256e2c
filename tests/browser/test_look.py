"""How a chapter looks: text first, quiet code, one colour for a weight, a face that never moves."""

import time

import numpy as np
import pytest
from playwright.sync_api import expect

from d2lmini.plotting._dark_maps import weight_map
from tests.book.building import CHAPTERS
from tests.browser.conftest import lasting

# What a chapter looks like before its exercises, all but the right edges at rest, at 1280.
LOOK = """() => {
    const page = document.querySelector('.reading'), { left } = page.getBoundingClientRect();
    const end = document.querySelector('#exercises').getBoundingClientRect().top;
    const all = what => [...page.querySelectorAll(what)].filter(one => one.checkVisibility());
    const right = one => Math.round(one.getBoundingClientRect().right - left);
    const lines = new Set();
    const other = '.cell, .explorable, .exercise, .preview, .run, figure, .sidenote';
    for (const one of all(':is(p, li, h2, h3, dt, dd, .math, table)')) {
        if (one.closest(other)) continue;
        const { top, bottom } = one.getBoundingClientRect();
        for (let y = Math.floor(top); y < Math.min(bottom, end); y++) lines.add(y);
    }
    const names = all('summary').map(one => [one, one.getBoundingClientRect()]);
    const notes = names.filter(([, box]) => box.left > left + 640);
    notes.sort(([, a], [, b]) => a.top - b.top);
    const column = 'section > p, section > ul, section > .cell:not(.shows-figure), div.math, '
        + 'figcaption, .admonition, .explorable';
    return {
        text: lines.size,
        height: end - document.querySelector('.reading h1').getBoundingClientRect().top,
        bars: all('.live-tools, .live-status:not(:empty)').filter(one =>
            one.checkVisibility({ opacityProperty: true }) && one.getBoundingClientRect().top < end
            && !one.closest('details:not([open])')).length,
        folds: names.filter(([, box]) => box.top < end && box.left < left + 640).length,
        bold: names.filter(([one]) => getComputedStyle(one).fontWeight !== '400').length,
        before: all('.cell.folded.shows-figure').filter(cell => !(
            cell.querySelector('figcaption, .cell_output')
            .compareDocumentPosition(cell.querySelector('details.hide > summary')) & 4)).length,
        piled: notes.filter(([, box], i) => i && box.top < notes[i - 1][1].bottom - 1)
            .map(([one]) => one.textContent),
        edges: [...new Set(all(column).filter(one => !one.closest(
            'details, .exercise, .preview, .sidenote')).map(right))],
        widest: Math.max(...all('*').filter(one => !one.closest('.katex, .preview, details'))
            .map(right)),
    };
}"""


def test_the_chapters_are_text_first(visit):
    """Of all chapters together .364 was text, and 58 folds stood in the column of the text."""
    looks = []
    for chapter in CHAPTERS:
        tab = visit(chapter).tab
        tab.locator("[data-live]").first.wait_for(state="attached")
        look = tab.evaluate(LOOK)
        assert look["bars"] == look["bold"] == look["before"] == 0, (chapter, look)
        assert look["piled"] == [], chapter
        assert set(look["edges"]) <= {640, 920} and look["widest"] <= 920, (chapter, look)
        looks.append(look)
    text, height, folds = (sum(one[what] for one in looks) for what in ("text", "height", "folds"))
    assert text / height >= 0.35, f"{text / height:.3f} of the height is text"
    assert folds <= 70, f"{folds} lines of folds before the exercises: a test stands in the margin"


WEIGHTS = (0, 0.25, 0.5, 0.75, 1)
# The same weights in each form in which a page shows them, and the colour of words on them.
SAMPLES = """weights => {
    const rows = {
        explorable: w => `<svg><rect class="ex-square" style="--w:${w}"/></svg>`,
        atlas: w => `<i class="ex-on atlas-probe" style="--w:${w}"></i>`,
        grid: w => `<table class="ex-grid-table"><tr><td role="gridcell" style="--w:${w}">`,
        chip: w => `<p class="ex-pieces"><span style="--w:${w}">a</span></p>`,
        table: w => `<div class="d2lmini-table d2lmini-explorer"><table><tr>
            <th></th><td class="d2lmini-more" style="--w:${w}">1</td></tr></table></div>`,
        ledger: w => `<div class="d2lmini-table d2lmini-trace"><table><tr>
            <th></th><td class="d2lmini-bar" style="--w:${w}">1</td></tr></table></div>`,
    };
    const pen = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
    const rgb = colour => {
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    return Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, weights.map(w => {
        const box = document.createElement('div');
        box.className = 'ex-drawing';
        box.innerHTML = row(w);
        document.querySelector('.reading').append(box);
        const style = getComputedStyle(box.querySelector('[style]'));
        return [name === 'explorable' ? style.fill : style.backgroundColor,
            'table ledger'.includes(name) ? style.webkitTextFillColor : style.color].map(rgb);
    })]));
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_weight_has_the_colour_of_heatmaps_wherever_it_is_drawn(visit, scheme):
    """On a phone: ledgers have bars on a desk."""
    found = visit(CHAPTERS[2], 390, scheme).tab.evaluate(SAMPLES, WEIGHTS)
    wanted = np.round(255 * weight_map(scheme)(np.array(WEIGHTS, float))[:, :3])
    below, above = ((0, 255), (255, 0))[scheme == "dark"]
    for name, row in found.items():
        grounds, words = np.moveaxis(row, 1, 0)
        np.testing.assert_allclose(grounds, wanted, atol=3, err_msg=f"{name}, {scheme}")
        if name not in ("explorable", "atlas"):  # whose words stand beside
            np.testing.assert_allclose(words[:, 0], [below] * 4 + [above], atol=2, err_msg=name)


def test_the_buttons_of_a_cell_are_seen_by_pointer_and_keyboard(visit):
    tab = visit(CHAPTERS[0]).tab
    cell = tab.locator(".reading > section > section > .cell[data-live]:not(.folded)").first
    tools = cell.locator(".live-tools")
    expect(tools).to_have_css("opacity", "0")
    cell.hover()
    expect(tools).to_have_css("opacity", "1")
    tab.mouse.move(0, 0)
    expect(tools).to_have_css("opacity", "0")
    cell.locator("textarea").focus()
    expect(tools).to_have_css("opacity", "1")


# Code, or the name of a fold, that a button lies on.
COVERED = """() => [...document.querySelectorAll('.live-tools')].flatMap(tools => {
    const cell = tools.closest('.cell'), words = new Range(), box = tools.getBoundingClientRect();
    const lines = [...cell.querySelectorAll('details.hide > summary, .cell_input pre')]
        .filter(one => one.checkVisibility()).flatMap(one => {
            words.selectNodeContents(one);
            return [...words.getClientRects()];
        });
    return lines.filter(line => line.right > box.left + 1
        && line.left < box.right - 1 && line.bottom > box.top + 2 && line.top < box.bottom - 2)
        .map(() => words.toString());
})"""


@pytest.mark.parametrize("width", [1280, 390])
def test_the_buttons_of_a_cell_hide_none_of_its_code(visit, width):
    """Under a finger they are seen with their code."""
    tab = visit(CHAPTERS[1], width=width, has_touch=width == 390, is_mobile=width == 390).tab
    tab.locator("[data-live]").first.wait_for(state="attached")
    assert tab.locator(".cell:not(.folded) .live-tools").count() > 5
    folds = tab.locator(".cell.folded[data-live] > details.hide:not([open])")
    if width == 390:
        tools = tab.locator(".cell.folded[data-live]:has(> details.hide) > .live-bar > .live-tools")
        assert folds.count() and not any(one.is_visible() for one in tools.all())
        folds.evaluate_all("all => all.forEach(one => { one.open = true; })")
        shown = tab.locator(".live-tools").evaluate_all(
            "all => all.map(one => getComputedStyle(one).display + getComputedStyle(one).opacity)"
        )
        assert set(shown) == {"flex1"}
    assert lasting(tab, COVERED) == []


# What moves, and of which faces the first picture of the page was.
LATE = """window.moves = [];
const watch = (type, act) => new PerformanceObserver(list => list.getEntries().forEach(act))
    .observe({ type, buffered: true });
watch('layout-shift', one => window.moves.push(one));
watch('paint', () => window.first ??= [...document.fonts]
    .filter(one => /^"?Book/.test(one.family)).map(one => [one.family, one.status]));"""
# How much moves once the whole page is there.
MOVED = """const {domInteractive} = performance.getEntriesByType('navigation')[0];
moves.reduce((sum, one) => sum + (one.startTime > domInteractive) * one.value, 0)"""


@pytest.mark.parametrize(("chapter", "width"), [(2, 390), (6, 1280)])  # where most moved once: .23
def test_late_fonts_move_nothing_and_every_text_has_its_face_from_the_first(
    chromium, address, chapter, width
):
    """Files are held back for a second and a half; the style sheet holds what text is set in."""
    with chromium.new_context(viewport={"width": width, "height": 900}) as context:
        tab = context.new_page()
        tab.add_init_script(LATE)
        tab.route("**/*.woff2", lambda route: (time.sleep(1.5), route.continue_()))
        tab.goto(f"{address}{CHAPTERS[chapter - 1]}.html")
        tab.evaluate("document.fonts.ready.then(() => new Promise(done => setTimeout(done, 500)))")
        first = tab.evaluate("window.first")
        assert len(first) == 4 and all(status == "loaded" for _, status in first), first
        assert tab.evaluate(MOVED) <= 0.01


def test_on_a_phone_an_exercise_is_a_line_until_it_is_opened(visit):
    tab = visit(CHAPTERS[4], width=390).tab
    exercises = tab.locator("section.exercise")
    heights = exercises.evaluate_all("all => all.map(one => one.offsetHeight)")
    assert len(heights) >= 6 and max(heights) <= 100, heights
    button = exercises.first.get_by_role("button", name="The exercise", expanded=False)
    button.click()
    expect(button).to_have_count(0)
    expect(exercises.first.locator("> p").first).to_be_visible()
    name = exercises.nth(2).get_attribute("id")
    tab.evaluate(f"location.hash = '#{name}'")
    expect(exercises.nth(2).locator("> p").first).to_be_visible()
    wide = visit(CHAPTERS[4]).tab.locator("section.exercise > p").first
    assert wide.is_visible()


# What is wrong with how lines of code are broken, letter by letter: each line as its rows.
TORN = """() => {
    const wrong = [], at = new Range();
    document.querySelectorAll('details').forEach(fold => { fold.open = true; });
    document.querySelectorAll('.shut').forEach(one => one.classList.remove('shut'));
    const code = '.highlight:not(.cell_output .highlight:not(.d2l-fold .highlight)) > pre > i';
    for (const line of document.querySelectorAll(code)) {
        const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT), rows = [];
        const says = what => wrong.push(`${what}: ${rows.map(row => row.text).join(' | ')}`);
        while (walk.nextNode()) [...walk.currentNode.data].forEach((letter, i) => {
            if (letter === '\\n') return;
            at.setStart(walk.currentNode, i), at.setEnd(walk.currentNode, i + 1);
            const { top, left } = at.getBoundingClientRect();
            if (!rows.length || top - rows.at(-1).top > 8) rows.push({ top, text: '' });
            const row = rows.at(-1);
            row.text += letter;
            row.remark ??= !!walk.currentNode.parentElement.closest('.c1');
            if (letter.trim()) row.left ??= left;
        });
        if (!line.textContent.trim()) continue;
        if (rows.some(row => row.left === undefined)) says('an empty row');
        const edge = line.parentElement.getBoundingClientRect().left;
        if (rows[0].left > edge + 12.5 * 7.8) says('deep');
        rows.slice(1).forEach((row, i) => {
            const [end, start] = [rows[i].text.split(' ').at(-1), row.text.split(' ')[0]];
            if (row.left < rows[0].left + 4) says('left of its beginning');
            if (/[-\\w]$/.test(end) && /^\\w/.test(start)) says('a name or a number is torn');
            const short = (end + start).length <= 34;
            if (/[[({]$/.test(end) && !row.remark && short) says('after a bracket');
            const remark = line.querySelector('.c1')?.textContent.length;
            if (row.remark && rows[i].remark && remark <= 32) says('a comment is torn');
        });
    }
    return wrong;
}"""


@pytest.mark.parametrize("chapter", [1, 6])  # the deepest lines, and the longest names
def test_on_a_phone_code_is_broken_between_words_and_hangs(visit, chapter):
    tab = visit(CHAPTERS[chapter - 1], width=390).tab
    assert tab.evaluate(TORN) == []
    tab.evaluate("document.querySelectorAll('pre i').forEach(i => i.style.removeProperty('--p'))")
    assert any(one.startswith("deep") for one in tab.evaluate(TORN)), "as the source is indented"


# What stands beside the text: its words, its box, and whether it is a note of ours.
BESIDE = """() => {
    const edge = document.querySelector('.reading').getBoundingClientRect().left + 650;
    return [...document.querySelectorAll('.reading :is(summary, img, svg, table, .beside)')]
        .filter(one => one.checkVisibility({visibilityProperty: true}))
        .map(one => [one, one.getBoundingClientRect()]).filter(([, box]) => box.right > edge)
        .map(([one, { top, bottom }]) => [one.innerText, top, bottom, one.matches('.beside')]);
}"""


def test_works_are_named_beside_their_lines_where_nothing_else_stands(visit):
    tab = visit(CHAPTERS[5]).tab
    tab.locator(".beside.placed").first.wait_for()
    seen = tab.evaluate(BESIDE)
    notes = [one for one in seen if one[3]]
    assert len(notes) >= 3 and any("RoFormer" in note[0] for note in notes)
    for note in notes:
        others = [one for one in seen if one != note]
        assert not [one for one in others if one[1] < note[2] and note[1] < one[2]], note
    assert tab.locator(".beside:not([aria-hidden=true])").count() == 0, "the text has the link"
    tab.set_viewport_size({"width": 1100, "height": 900})
    assert not any(note.is_visible() for note in tab.locator(".beside").all())
