"""How it is read: by keyboard, by search, in the dark, on paper, from a folder, without scripts."""

import sys

import pytest

from tests.book.building import ROOT

sys.path.append(str(ROOT / "_ext"))
from katexmath import render

FIRST, CHAPTER = "chapters/index", "chapters/03-scaled-dot-product"
FOCUS = "document.activeElement.textContent.trim()"


def test_the_skip_link_skips(visit):
    tab = visit(CHAPTER).tab
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    assert tab.url.endswith("#main-content")
    inside = "document.querySelector('main').contains(document.activeElement)"
    assert tab.evaluate(inside), tab.evaluate(FOCUS)


def test_a_folded_answer_opens_with_the_keyboard(visit):
    tab = visit(CHAPTER).tab
    answer = tab.locator("section > details").first
    assert answer.get_attribute("open") is None
    answer.locator("summary").focus()
    tab.keyboard.press("Enter")
    assert answer.get_attribute("open") is not None


def test_code_can_be_copied_with_the_keyboard(visit):
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


def test_a_cell_is_one_stop_of_the_keyboard_and_its_run_another(visit):
    """In the field of its code one edits and copies: the buttons for that are for a mouse."""
    tab = visit(CHAPTER, permissions=["clipboard-read"]).tab
    field = tab.locator(".live-code textarea:visible").first
    field.focus()
    for keys in ("Control+a", "Control+c", "Tab"):
        tab.keyboard.press(keys)
    assert tab.evaluate("navigator.clipboard.readText()") == field.input_value()
    assert tab.evaluate(FOCUS) == "Run"
    tab.keyboard.press("Tab")
    cell = field.evaluate_handle("field => field.closest('.cell')")
    assert not cell.evaluate("cell => cell.contains(document.activeElement)")


@pytest.mark.parametrize(
    "page", ["chapters/stuck", "chapters/troubleshooting", "chapters/api/heads"]
)
def test_a_page_opens_at_its_top_and_the_contents_at_the_page(visit, page):
    tab = visit(page).tab
    line = tab.locator(".book a.current").last.bounding_box()
    assert tab.evaluate("scrollY") == 0
    assert 0 <= line["y"] < 900


def test_the_keyboard_opens_and_closes_the_contents_on_a_phone(visit):
    tab = visit(CHAPTER, width=390).tab
    links = tab.locator("a.reference.internal:visible", has_text="Multi-Head Attention")
    assert links.count() == 0
    tab.locator("button.narrow").focus()
    tab.keyboard.press("Enter")
    links.first.wait_for()
    tab.keyboard.press("Escape")
    links.first.wait_for(state="hidden")
    assert "narrow" in tab.evaluate("document.activeElement.className")


def test_the_contents_of_a_page_close_when_one_is_chosen_on_a_phone(visit):
    tab = visit(CHAPTER, width=390, reduced_motion="reduce").tab
    tab.locator("button.narrow").click()
    link = tab.locator(".page-toc li li a").nth(3)
    place = link.get_attribute("href")
    link.click()
    assert tab.evaluate("document.querySelector('dialog[open]')") is None
    assert tab.url.endswith(place)
    assert tab.locator(place).bounding_box()["y"] < 300


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


def test_drawings_and_text_have_the_same_face(visit):
    tab = visit(CHAPTER).tab
    assert tab.evaluate(
        "document.fonts.check('16px Book') && document.fonts.check('600 16px Book')"
    )
    assert tab.evaluate("getComputedStyle(document.body).fontFamily").startswith("Book")
    address = tab.locator(".d2lmini-figure img.only-light").first.get_attribute("src")
    drawn = tab.evaluate("async (address) => (await fetch(address)).text()", address)
    assert "@font-face" in drawn and "data:font/woff2" in drawn


def test_a_bar_does_not_stay_where_a_window_is_low(visit):
    tab = visit(CHAPTER, width=320).tab
    tab.set_viewport_size({"width": 320, "height": 225})  # 1280 by 900 at 400 %
    tab.evaluate("scrollTo(0, 2000)")
    assert tab.locator(".bar").bounding_box()["y"] < 0


def test_bars_and_tints_stay_where_the_system_chooses_the_colours(visit):
    tab = visit(CHAPTER, forced_colors="active").tab
    drawn = "e => getComputedStyle(e).backgroundImage + getComputedStyle(e).backgroundColor"
    table = tab.locator(".d2lmini-trace").first
    bar = table.locator("td.d2lmini-bar").first.evaluate(drawn)
    grounds = {cell.evaluate(drawn) for cell in table.locator("td.d2lmini-more").all()}
    assert "gradient" in bar
    assert len(grounds) > 2  # as many as there are contributions of unlike size


def test_tints_of_words_stay_where_the_system_chooses_the_colours(visit):
    tab = visit("chapters/07-real-models", forced_colors="active").tab
    tab.locator("[data-explorable]").first.scroll_into_view_if_needed()
    words = tab.locator(".ex-pieces span")
    words.first.wait_for()
    grounds = [word.evaluate("e => getComputedStyle(e).backgroundColor") for word in words.all()]
    weights = [float(word.evaluate("e => e.style.getPropertyValue('--w')")) for word in words.all()]
    assert len(set(grounds)) > 2
    assert grounds[weights.index(max(weights))] != grounds[weights.index(min(weights))]


def test_search_finds_the_causal_mask(visit):
    tab = visit(FIRST).tab
    tab.keyboard.press("Control+k")
    tab.keyboard.type("causal mask")
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#search-results li a")
    found = tab.locator("#search-results li a").all_inner_texts()
    assert any("Scaled Dot-Product Attention" in title for title in found), found
    excerpts = " ".join(tab.locator("#search-results p.context").all_inner_texts())
    assert excerpts and "\\mathbf" not in excerpts
    tab.locator("#search-results li a").first.click()
    tab.wait_for_load_state()
    assert "chapters/" in tab.url


def test_formulas_are_drawn(visit):
    tab = visit(CHAPTER).tab
    assert tab.locator(".katex-html").count() > 50
    family = "getComputedStyle(document.querySelector('.katex-html')).fontFamily"
    assert "KaTeX_Main" in tab.evaluate(family)
    assert tab.evaluate("document.fonts.check('16px KaTeX_Main')")
    box = tab.locator(".math-scroll .katex-html").first.bounding_box()
    assert box["width"] > 50 and box["height"] > 20


LONG = {
    "a sum": "+".join(f"x_{{{i}}}" for i in range(1, 61)),
    "a fraction": rf"\frac{{{'x' * 300}}}{{y}}",
}


def test_a_formula_of_300_letters_can_be_read_on_a_phone(visit):
    tab = visit(CHAPTER, width=390).tab
    for kind, tex in LONG.items():
        tab.locator(".math-scroll").first.evaluate(
            "(box, drawn) => { box.innerHTML = drawn }", render(tex, display=True)
        )
        scrolls, says_so = tab.locator(".math-scroll").first.evaluate(
            "box => [box.scrollWidth > box.clientWidth + 1,"
            " getComputedStyle(box).backgroundAttachment.includes('local')]"
        )
        assert scrolls == (kind == "a fraction")  # a sum breaks at its signs
        assert says_so
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390


def test_no_line_begins_with_the_mark_after_a_formula(visit):
    tab = visit("chapters/02-softmax-weighting", width=390).tab
    lost = """[...document.querySelectorAll('.with-mark')].filter(held => {
        const [part, mark] = [...held.children].map(e => e.getBoundingClientRect());
        return held.checkVisibility() && mark.left < part.right - 1;
    }).map(held => held.closest('p, li, td')?.innerText)"""
    assert tab.locator(".with-mark").count() > 20
    assert tab.evaluate(lost) == []


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
    theme = "document.documentElement.dataset.theme"
    ground = "getComputedStyle(document.body).backgroundColor"
    assert tab.evaluate(theme) == "dark"
    dark = tab.evaluate(ground)
    while tab.evaluate("document.documentElement.dataset.mode") != "light":
        tab.locator(".theme-switch-button").press("Enter")
    assert tab.evaluate(theme) == "light"
    assert tab.evaluate(ground) != dark
    tab.reload()
    assert tab.evaluate(theme) == "light"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_without_javascript_it_still_reads(visit, scheme):
    tab = visit(CHAPTER, scheme=scheme, java_script_enabled=False).tab
    assert tab.locator("article h1").is_visible()
    assert tab.locator(".katex-html").first.is_visible()
    tab.locator("section > details summary").first.click()
    assert tab.locator("section > details > *").nth(1).is_visible()
    assert not tab.locator(".theme-switch-button").is_visible()


def test_it_reads_from_a_folder(visit, built):
    seen = visit(CHAPTER, base=built.as_uri() + "/")
    assert seen.said == []
    assert seen.tab.evaluate("document.fonts.check('16px KaTeX_Main')")
    assert seen.tab.evaluate("document.documentElement.dataset.theme") == "light"  # scripts run
    assert seen.tab.locator("article h1").is_visible()


def test_the_slider_moves_what_is_read_from_a_folder(visit, built):
    seen = visit(CHAPTER, base=built.as_uri() + "/")
    explorer = seen.tab.locator(".d2lmini-explorer").first
    before = explorer.locator("tbody").inner_text()
    explorer.get_by_label("temperature").focus()
    seen.tab.keyboard.press("End")
    assert explorer.locator("tbody").inner_text() != before
    assert seen.said == []


def test_lines_are_not_too_long(visit):
    """Count the letters that fit: an average line of plain text holds at most 75."""
    tab = visit(CHAPTER).tab
    widest = tab.evaluate("""() => {
        const ruler = document.createElement('span');
        ruler.textContent = 'the quick brown fox jumps over a lazy dog '.repeat(3);
        ruler.style.cssText = 'position: absolute; white-space: pre';
        const text = [...document.querySelectorAll('article section > p')];
        text[0].append(ruler);
        const letter = ruler.getBoundingClientRect().width / ruler.textContent.length;
        ruler.remove();
        return Math.max(...text.map(p => p.getBoundingClientRect().width)) / letter;
    }""")
    assert 50 <= widest <= 76


def test_nothing_moves_for_those_who_ask_for_it(visit):
    tab = visit(FIRST, reduced_motion="reduce").tab
    longest = """Math.max(...[...document.querySelectorAll('*')].map(
        e => Math.max(parseFloat(getComputedStyle(e).transitionDuration),
                      parseFloat(getComputedStyle(e).animationDuration))))"""
    assert tab.evaluate(longest) == 0
    assert tab.evaluate("getComputedStyle(document.documentElement).scrollBehavior") == "auto"


def test_on_paper_there_is_only_the_text(visit):
    tab = visit(CHAPTER, scheme="dark").tab
    tab.emulate_media(media="print")
    for gone in (
        ".book",
        ".bar",
        ".prev-next-area",
    ):
        assert not tab.locator(gone).first.is_visible(), gone
    assert [title.is_visible() for title in tab.locator("main h1").all()].count(True) == 1
    answer = tab.locator("section > details").first
    assert (
        answer.bounding_box()["height"] > 1.8 * answer.locator("summary").bounding_box()["height"]
    )
    assert tab.pdf()[:5] == b"%PDF-"
