"""How it is read: by keyboard, in the dark, on paper, from a folder, without scripts."""

import pytest
from playwright.sync_api import expect

from tests.book.building import CHAPTERS

FIRST, CHAPTER = "chapters/index", "chapters/03-scaled-dot-product"
FOCUS = "document.activeElement.textContent.trim()"
THEME = "document.documentElement.dataset.theme"
LOADED = "document.fonts.check('16px KaTeX_Main')"


def test_the_keyboard_alone(visit):
    """Skip to the text; a cell is one stop and its Run another; a folded answer opens."""
    tab = visit(CHAPTER, permissions=["clipboard-read"]).tab
    for key in ("Tab", "Enter", "Tab"):
        tab.keyboard.press(key)
    assert tab.url.endswith("#main-content")
    inside = "document.querySelector('main').contains(document.activeElement)"
    assert tab.evaluate(inside), tab.evaluate(FOCUS)
    field = tab.locator(".live-code textarea:visible").first
    field.focus()  # in it one edits and copies: the buttons for that are for a mouse
    for keys in ("Control+a", "Control+c", "Tab"):
        tab.keyboard.press(keys)
    assert tab.evaluate("navigator.clipboard.readText()") == field.input_value()
    assert tab.evaluate(FOCUS) == "Run"
    tab.keyboard.press("Tab")
    cell = field.evaluate_handle("field => field.closest('.cell')")
    assert not cell.evaluate("cell => cell.contains(document.activeElement)")
    answer = tab.locator("section > details").first
    assert answer.get_attribute("open") is None
    answer.locator("summary").focus()
    tab.keyboard.press("Enter")
    assert answer.get_attribute("open") is not None


def test_code_is_copied_with_the_keyboard_and_nothing_moves_for_those_who_ask_for_it(visit):
    tab = visit(FIRST, reduced_motion="reduce", permissions=["clipboard-read"]).tab
    block = tab.locator("div.highlight:visible", has=tab.locator("button.copybtn")).first
    button = block.locator("button.copybtn")
    button.focus()
    expect(button).to_have_css("opacity", "1")
    tab.keyboard.press("Enter")
    lines = block.locator("pre").first.text_content().strip().split("\n")
    typed = [line[4:] for line in lines if not line or line.startswith((">>>", "..."))]
    assert tab.evaluate("navigator.clipboard.readText()").split("\n") == typed
    longest = """Math.max(...[...document.querySelectorAll('*')].map(
        e => Math.max(parseFloat(getComputedStyle(e).transitionDuration),
                      parseFloat(getComputedStyle(e).animationDuration))))"""
    assert tab.evaluate(longest) == 0
    assert tab.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_on_a_phone(visit):
    """The contents open and close, by keyboard and by choosing."""
    tab = visit(CHAPTER, width=390, reduced_motion="reduce").tab
    links = tab.locator("a.reference.internal:visible", has_text="Multi-Head Attention")
    assert links.count() == 0
    tab.locator("button.narrow").focus()
    tab.keyboard.press("Enter")
    links.first.wait_for()
    tab.keyboard.press("Escape")
    links.first.wait_for(state="hidden")
    assert "narrow" in tab.evaluate("document.activeElement.className")
    tab.locator("button.narrow").click()
    link = tab.locator(".page-toc li li a").nth(3)
    place = link.get_attribute("href")
    link.click()
    links.first.wait_for(state="hidden")
    assert tab.url.endswith(place)
    expect(tab.locator(place)).to_be_in_viewport()


# How strongly each text stands out from what is behind it, and how light that is, from 0 to 1. Ink
# is `color`, or `fill` of words that are drawn.
CONTRASTS = """([selector, ink = "color"]) => {
    const pixel = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
    const light = colours => {
        pixel.fillStyle = "white";
        for (const colour of ["white", ...colours]) {
            pixel.fillStyle = colour;
            pixel.fillRect(0, 0, 1, 1);
        }
        const [r, g, b] = [...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3).map(
            part => (part /= 255) <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    return [...document.querySelectorAll(selector)].filter(e => e.checkVisibility()).map(e => {
        const behind = [];
        for (let over = e; over; over = over.parentElement)
            behind.unshift(getComputedStyle(over).backgroundColor);
        const ground = light(behind), text = light([...behind, getComputedStyle(e)[ink]]);
        const ratio = (Math.max(ground, text) + 0.05) / (Math.min(ground, text) + 0.05);
        return [e.textContent.slice(0, 40), ratio, ground];
    });
}"""
TEXTS = (
    "main :is(h1, h2, h3, p, li), main .admonition-title, main p a.reference",
    "main div.highlight span, main div.cell_output pre",
    "main :is(.query, .key, .value, .output-word)",
    CELLS := "main :is(td, th)",
)


@pytest.mark.parametrize("scripts", [True, False])
def test_on_paper(visit, scripts):
    """It is white; figures are drawn for paper; what only a screen can do is left out."""

    def printed(page):
        tab = visit(page, scheme="dark", java_script_enabled=scripts).tab
        tab.emulate_media(media="print")
        return tab

    for page in ("chapters/notation", CHAPTERS[1]):  # which have all kinds of text
        tab = printed(page)
        found = [(of, *one) for of in TEXTS for one in tab.evaluate(CONTRASTS, [of])]
        assert len(found) > 50
        for kind, text, ratio, ground in found:  # cells of tables have colours of their own
            assert ratio >= 4.5 and (kind == CELLS or ground > 0.75), (kind, text, ratio, ground)
    shown = "images => images.map(image => image.checkVisibility())"
    light, dark = (tab.locator(f"main img.only-{theme}") for theme in ("light", "dark"))
    assert light.count() == dark.count() > 3
    assert all(light.evaluate_all(shown)) and not any(dark.evaluate_all(shown))
    tab = printed(CHAPTERS[0])
    text = tab.locator("main").inner_text()
    for gone in ("Show code", "Hide code", "Show the numbers", "not attempted yet"):
        assert gone not in text
    assert not tab.locator(":is(.book, .bar, main button.copybtn):visible").count()
    assert "best = scores.argmax" in text  # a solution
    drawing, checking = (
        tab.locator(f"main .cell{kind} > details.hide pre").evaluate_all(shown)
        for kind in (".shows-figure", ".tag_hide-cell")
    )
    assert drawing and not any(drawing), "a page of what draws a figure"
    assert checking and all(checking), "a reader of paper sees what tests the text"


# One word of formulas for each font and each letter: no need to ask for one twice.
WORDS_OF_FORMULAS = """() => {
    const seen = new Set();
    for (const word of document.querySelectorAll('.katex-html span')) {
        const text = [...word.childNodes].filter(e => e.nodeType === 3).map(e => e.data).join('');
        if (!text.replace(/[\\s\\u200b]/g, '')) continue;
        const style = getComputedStyle(word);
        const font = style.fontFamily + style.fontWeight + style.fontStyle + text;
        if (!seen.has(font)) word.dataset.word = seen.size;
        seen.add(font);
    }
}"""


def test_every_word_of_a_formula_is_drawn_with_a_font_of_the_book(visit):
    """No letter was left out of the font that is asked for it: another font would draw it."""
    tab = visit("chapters/notation").tab
    assert tab.evaluate("getComputedStyle(document.body).fontFamily").startswith("Book")
    assert tab.evaluate(LOADED)
    tab.evaluate(WORDS_OF_FORMULAS)
    tools = tab.context.new_cdp_session(tab)
    for part in ("DOM", "CSS"):
        tools.send(f"{part}.enable")
    root = tools.send("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
    words = tools.send("DOM.querySelectorAll", {"nodeId": root, "selector": "[data-word]"})
    fonts = [
        font
        for node in words["nodeIds"]
        for font in tools.send("CSS.getPlatformFontsForNode", {"nodeId": node})["fonts"]
    ]
    assert len(fonts) > 30
    assert [font for font in fonts if not font["isCustomFont"]] == []


def test_the_reader_chooses_light_or_dark_and_it_stays(visit):
    tab = visit(FIRST, scheme="dark").tab
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = tab.evaluate(ground)
    assert tab.evaluate(THEME) == "dark"
    for wanted, theme in (("light", "light"), ("dark", "dark")):  # dark is also that of the system
        while tab.evaluate("document.documentElement.dataset.mode") != wanted:
            tab.locator(".theme-switch-button").press("Enter")
        assert (tab.evaluate(ground) == dark) == (wanted == "dark")
        tab.emulate_media(color_scheme="light" if wanted == "dark" else "dark")
        tab.reload()
        assert tab.evaluate(THEME) == theme


def test_without_javascript_it_still_reads(visit):
    tab = visit(CHAPTER, scheme="dark", java_script_enabled=False).tab
    assert tab.locator("article h1").is_visible()
    assert tab.locator(".katex-html").first.is_visible()
    tab.locator("section > details summary").first.click()
    assert tab.locator("section > details > *").nth(1).is_visible()
    assert not tab.locator(".theme-switch-button").is_visible()


def test_it_reads_from_a_folder_and_its_slider_moves(visit, built):
    seen = visit(CHAPTER, base=built.as_uri() + "/")
    assert seen.tab.evaluate(LOADED) and seen.tab.evaluate(THEME) == "light"  # scripts run
    assert seen.tab.locator("article h1").is_visible()
    explorer = seen.tab.locator(".d2lmini-explorer").first
    before = explorer.locator("tbody").inner_text()
    explorer.get_by_label("temperature").focus()
    seen.tab.keyboard.press("End")
    expect(explorer.locator("tbody")).not_to_have_text(before, use_inner_text=True)
    assert seen.said == []
