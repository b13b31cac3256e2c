"""How it is read: by keyboard, in the dark, on paper, from a folder, without scripts."""

import sys

import pytest

from tests.book.building import ROOT

sys.path.append(str(ROOT / "_ext"))
from katexmath import render

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
    assert float(button.evaluate("b => getComputedStyle(b).opacity")) > 0.9
    tab.keyboard.press("Enter")
    copied = tab.evaluate("navigator.clipboard.readText()")
    lines = block.locator("pre").first.text_content().strip().split("\n")
    typed = [line[4:] for line in lines if not line or line.startswith((">>>", "..."))]
    assert copied.split("\n") == typed
    longest = """Math.max(...[...document.querySelectorAll('*')].map(
        e => Math.max(parseFloat(getComputedStyle(e).transitionDuration),
                      parseFloat(getComputedStyle(e).animationDuration))))"""
    assert tab.evaluate(longest) == 0
    assert tab.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


@pytest.mark.parametrize(
    "page", ["chapters/stuck", "chapters/troubleshooting", "chapters/api/heads"]
)
def test_a_page_opens_at_its_top_and_the_contents_at_the_page(visit, page):
    tab = visit(page).tab
    assert tab.evaluate("scrollY") == 0
    assert 0 <= tab.locator(".book a.current").last.bounding_box()["y"] < 900


LONG = {
    "a sum": "+".join(f"x_{{{i}}}" for i in range(1, 61)),
    "a fraction": rf"\frac{{{'x' * 300}}}{{y}}",
}


def test_on_a_phone(visit):
    """The contents open and close, by keyboard and by choosing; a long formula can be read."""
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
    assert tab.locator(place).bounding_box()["y"] < 300
    formula = tab.locator(".math-scroll").first
    for kind, tex in LONG.items():
        formula.evaluate("(box, drawn) => { box.innerHTML = drawn }", render(tex, display=True))
        scrolls, says_so = formula.evaluate(
            "box => [box.scrollWidth > box.clientWidth + 1,"
            " getComputedStyle(box).backgroundAttachment.includes('local')]"
        )
        assert scrolls == (kind == "a fraction")  # a sum breaks at its signs
        assert says_so
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    tab.set_viewport_size({"width": 320, "height": 225})  # 1280 by 900 at 400 %
    tab.evaluate("scrollTo(0, 2000)")
    assert tab.locator(".bar").bounding_box()["y"] < 0, "a bar does not stay in a low window"


def test_code_that_is_wider_than_a_phone_breaks_at_its_blanks(visit):
    tab = visit("chapters/01-database-analogy", width=390).tab
    solution = tab.locator("details.d2l-fold:has(.highlight)", has_text="trigram_vectors")
    tab.locator("section.exercise", has=solution).locator(".opens").click()
    solution.locator("summary").press("Enter")
    code = solution.locator("pre")
    assert code.evaluate("pre => pre.scrollWidth <= pre.clientWidth")
    lines = code.text_content().rstrip().count("\n") + 1
    height = (
        "pre => pre.getBoundingClientRect().height / parseFloat(getComputedStyle(pre).lineHeight)"
    )
    assert code.evaluate(height) > lines + 1  # some are broken


def test_no_line_begins_with_the_mark_after_a_formula(visit):
    tab = visit("chapters/02-softmax-weighting", width=390).tab
    lost = """[...document.querySelectorAll('.with-mark')].filter(held => {
        const [part, mark] = [...held.children].map(e => e.getBoundingClientRect());
        return held.checkVisibility() && mark.left < part.right - 1;
    }).map(held => held.closest('p, li, td')?.innerText)"""
    assert tab.locator(".with-mark").count() > 20
    assert tab.evaluate(lost) == []


def test_bars_and_tints_stay_where_the_system_chooses_the_colours(visit):
    tab = visit(CHAPTER, forced_colors="active").tab
    drawn = "e => getComputedStyle(e).backgroundImage + getComputedStyle(e).backgroundColor"
    table = tab.locator(".d2lmini-trace").first
    grounds = {cell.evaluate(drawn) for cell in table.locator("td.d2lmini-more").all()}
    assert "gradient" in table.locator("td.d2lmini-bar").first.evaluate(drawn)
    assert len(grounds) > 2  # as many as there are contributions of unlike size
    tab = visit("chapters/07-real-models", forced_colors="active").tab
    tab.locator("[data-explorable]").first.scroll_into_view_if_needed()
    words = tab.locator(".ex-pieces span")
    words.first.wait_for()
    grounds = [word.evaluate("e => getComputedStyle(e).backgroundColor") for word in words.all()]
    weights = [float(word.evaluate("e => e.style.getPropertyValue('--w')")) for word in words.all()]
    assert len(set(grounds)) > 2
    assert grounds[weights.index(max(weights))] != grounds[weights.index(min(weights))]


# How many letters of plain text fit into a line.
LETTERS = """() => {
    const ruler = document.createElement('span');
    ruler.textContent = 'the quick brown fox jumps over a lazy dog '.repeat(3);
    ruler.style.cssText = 'position: absolute; white-space: pre';
    const text = [...document.querySelectorAll('article section > p')];
    text[0].append(ruler);
    const letter = ruler.getBoundingClientRect().width / ruler.textContent.length;
    ruler.remove();
    return Math.max(...text.map(p => p.getBoundingClientRect().width)) / letter;
}"""


def test_how_it_is_set_on_the_screen_and_on_paper(visit):
    """Text and drawings have one face, formulas theirs; lines are short; paper has the text."""
    tab = visit(CHAPTER, scheme="dark").tab
    for face in ("16px Book", "600 16px Book"):
        assert tab.evaluate(f"document.fonts.check('{face}')")
    assert tab.evaluate("getComputedStyle(document.body).fontFamily").startswith("Book")
    address = tab.locator(".d2lmini-figure img.only-light").first.get_attribute("src")
    drawn = tab.evaluate("async (address) => (await fetch(address)).text()", address)
    assert "@font-face" in drawn and "data:font/woff2" in drawn
    assert tab.locator(".katex-html").count() > 50 and tab.evaluate(LOADED)
    family = "getComputedStyle(document.querySelector('.katex-html')).fontFamily"
    assert "KaTeX_Main" in tab.evaluate(family)
    box = tab.locator(".math-scroll .katex-html").first.bounding_box()
    assert box["width"] > 50 and box["height"] > 20
    assert 50 <= tab.evaluate(LETTERS) <= 76
    tab.emulate_media(media="print")
    for gone in (".book", ".bar", ".prev-next-area"):
        assert not tab.locator(gone).first.is_visible(), gone
    assert [title.is_visible() for title in tab.locator("main h1").all()].count(True) == 1
    answer = tab.locator("section > details").first
    summary = answer.locator("summary").bounding_box()
    assert answer.bounding_box()["height"] > 1.8 * summary["height"]
    assert tab.pdf()[:5] == b"%PDF-"


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


@pytest.mark.parametrize("page", ["chapters/notation", CHAPTER])
def test_every_word_of_a_formula_is_drawn_with_a_font_of_the_book(visit, page):
    """No letter was left out of the font that is asked for it: another font would draw it."""
    tab = visit(page).tab
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


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_without_javascript_it_still_reads(visit, scheme):
    tab = visit(CHAPTER, scheme=scheme, java_script_enabled=False).tab
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
    assert explorer.locator("tbody").inner_text() != before
    assert seen.said == []
