"""Finding one's way: the search, the contents beside a page, previews of words and works."""

from playwright.sync_api import expect

from tests.book.building import CHAPTERS

FIRST, CHAPTER = "chapters/index", "chapters/03-scaled-dot-product"
FOUND = "#search-dialog .found a"
MARKED = """[...CSS.highlights.get('found') ?? []].map(range => [
    range.startContainer.data.slice(range.startOffset, range.endOffset),
    range.startContainer.parentElement.closest('pre, .katex, nav, button') === null
        && range.startContainer.parentElement.closest('article') !== null])"""


def search(tab, words):
    """Type into the field that the keyboard opens."""
    tab.keyboard.press("Control+k")
    tab.keyboard.type(words)


def best(tab, selector=FOUND):
    """Return the title and the address of the first hit."""
    first = tab.locator(selector).first
    first.wait_for()
    return first.locator(".found-title").inner_text(), first.get_attribute("href")


FINDS = [  # what is typed, the page of the first hit, its title
    ("causal mask", CHAPTER, "Masks"),
    ("why divide by sqrt", CHAPTER, "Why divide by √d"),
    ("tiled_attention", "chapters/api/scale", "tiled_attention"),
    ("several heads", "chapters/05-multi-head-attention", "Multi-Head"),
]


def test_the_search_finds_sections_while_one_types(visit):
    tab = visit(FIRST).tab
    search(tab, "softmax")
    best(tab)
    for _ in range(2):
        tab.keyboard.press("ArrowDown")
    second = tab.locator(FOUND).nth(1).get_attribute("href")
    assert tab.evaluate("document.activeElement.getAttribute('href')") == second
    for _ in range(2):
        tab.keyboard.press("ArrowUp")
    assert tab.evaluate("document.activeElement.value") == "softmax"
    field, says = tab.locator("#search-dialog input"), tab.locator("#search-dialog .found-says")
    field.fill("softmx")
    tab.get_by_text("Nothing has “softmx” in it. Did you mean softmax?").wait_for()
    says.get_by_role("button").click()
    assert field.input_value() == "softmax"
    best(tab)
    assert "Did you mean" not in says.inner_text()
    field.fill("xqxqxq")
    tab.get_by_text("Nothing has “xqxqxq” in it.").wait_for()
    assert tab.locator(FOUND).count() == 0
    tab.keyboard.press("Escape")
    search(tab, "d_model")  # what is typed replaces the last word
    assert field.input_value() == "d_model"
    tab.locator("#search-dialog .context", has_text="d_model").first.wait_for()
    for words, page, title in FINDS:
        field.fill("")
        field.press_sequentially(words)
        tab.locator(FOUND, has_text=title).first.wait_for()
        name, address = best(tab)
        assert title in name and f"{page}.html" in address, words
    field.fill("sqrt d")
    tab.locator(FOUND, has_text="Why divide").first.click()  # a hit leads to its section
    tab.wait_for_url("**/03-scaled-dot-product.html*")
    expect(tab.locator("#why-divide-by-d")).to_be_in_viewport()


def test_the_page_of_the_search_has_all_of_it(visit):
    seen = visit(FIRST)
    tab = seen.tab
    search(tab, "causal mask")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/search.html*")
    best(tab, "#search-results .found a")
    assert tab.locator("main input[type=search]").input_value() == "causal mask"
    excerpts = " ".join(tab.locator("#search-results p.context").all_inner_texts())
    assert excerpts and "\\mathbf" not in excerpts
    tab.goto(tab.url.partition("?")[0] + "?q=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E")
    tab.locator(".found-says", has_text="<img").wait_for()
    assert tab.locator(".found-box img").count() == 0, "what is typed is never markup"
    assert seen.said == []


def test_it_searches_in_a_folder_and_marks_whole_words_until_one_says_so(visit, built):
    seen = visit(FIRST, base=built.as_uri() + "/")
    tab = seen.tab
    search(tab, "causal mask")
    assert "Masks" in best(tab)[0]
    tab.locator(FOUND).first.click()
    button = tab.locator(".unmark")
    button.wait_for()
    marks = tab.evaluate(MARKED)
    assert {word.lower() for word, _ in marks} == {"causal", "mask", "masks"}
    assert all(in_text for _, in_text in marks)
    assert button.inner_text() == f"Remove {len(marks)} marks"
    button.click()
    assert tab.evaluate(MARKED) == []
    expect(button).to_have_count(0)
    assert seen.said == []


def test_the_contents_follow_the_reader(visit):
    """The entry of a section is marked, and in the panel; exercises have one for all."""
    tab = visit(CHAPTERS[6], reduced_motion="reduce").tab
    here = tab.locator(".page-toc a[aria-current=true]")
    for link in tab.locator(".page-toc ul ul a:visible").all():
        place = link.get_attribute("href")
        section = tab.locator(place)
        section.evaluate("one => one.scrollIntoView({behavior: 'instant'})")
        expect(here).to_have_count(1)
        expect(here).to_be_in_viewport()
        if tab.evaluate("innerHeight + scrollY < document.documentElement.scrollHeight - 2"):
            marked = tab.locator(here.get_attribute("href"))
            assert marked.evaluate("(one, place) => !!one.closest(place)", place), place


TERM, WORK = "article a[href*='glossary.html#']", "article a[href*='bibliography.html#']"
OPEN = ".preview:popover-open"


def test_a_pointer_or_the_keyboard_shows_what_a_link_leads_to(visit):
    tab = visit(CHAPTER).tab
    for kind in (TERM, WORK):
        tab.locator(kind).first.hover()
        tab.locator(OPEN).wait_for()
        assert len(tab.locator(OPEN).inner_text()) > 20
        tab.locator(OPEN).hover()  # it stays while one reads it
        tab.wait_for_timeout(400)  # longer than it stays by itself
        assert tab.locator(OPEN).count() == 1
        tab.keyboard.press("Escape")
        expect(tab.locator(OPEN)).to_have_count(0)
    tab.mouse.move(0, 0)
    tab.locator(TERM).first.focus()
    tab.locator(OPEN).wait_for()
    said = tab.locator(OPEN).get_attribute("aria-label")
    expect(tab.locator(TERM).first).to_have_accessible_description(said)
    first = tab.evaluate("document.activeElement.href")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.href") != first
    tab.locator(TERM).first.focus()
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/glossary.html#*")


def test_a_first_tap_shows_it_and_a_second_follows(visit):
    tab = visit(CHAPTER, 390, has_touch=True).tab
    link = tab.locator(TERM).first
    link.tap()
    box = tab.locator(OPEN).bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    assert "glossary" not in tab.url
    link.tap()
    tab.wait_for_url("**/glossary.html#*")
