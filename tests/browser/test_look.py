"""How a chapter looks: quiet code, a face that comes without moving anything."""

import time

import pytest
from playwright.sync_api import expect

from tests.book.building import CHAPTERS
from tests.browser.conftest import lasting


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
    words.selectNodeContents(cell.querySelector(cell.matches('.folded') ? 'summary' : 'pre'));
    return [...words.getClientRects()].filter(line => line.right > box.left + 1
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


# How much has moved, and of which faces the first picture of the page was.
LATE = """window.moved = 0;
const watch = (type, act) => new PerformanceObserver(list => list.getEntries().forEach(act))
    .observe({ type, buffered: true });
watch('layout-shift', one => window.moved += one.value);
watch('paint', () => window.first ??= [...document.fonts]
    .filter(one => /^"?Book/.test(one.family)).map(one => [one.family, one.status]));"""


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
        assert tab.evaluate("window.moved") <= 0.01


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
