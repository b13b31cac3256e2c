"""Finding one's way: the search, the contents beside a page, previews of words and works."""

import pytest

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
    ("sqrt d", CHAPTER, "Why divide by √d"),
    ("√d", CHAPTER, "Why divide by √d"),
    ("why divide by sqrt", CHAPTER, "Why divide by √d"),
    ("tiled_attention", "chapters/api/scale", "tiled_attention"),
    ("temperature", "chapters/02-softmax-weighting", "Temperature"),
    ("several heads", "chapters/05-multi-head-attention", "Multi-Head"),
]
MEANS = {"atention": "attention", "softmx": "softmax", "causl mask": "causal mask"}


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
    for wrong, right in MEANS.items():
        field.fill(wrong)
        tab.get_by_text(f"Nothing has “{wrong}” in it. Did you mean {right}?").wait_for()
        says.get_by_role("button").click()
        assert field.input_value() == right
        best(tab)
        assert "Did you mean" not in says.inner_text()
    field.fill("xqxqxq")
    tab.get_by_text("Nothing has “xqxqxq” in it.").wait_for()
    assert tab.locator(FOUND).count() == 0
    tab.keyboard.press("Escape")
    search(tab, "d_model")  # what is typed replaces the last word
    assert field.input_value() == "d_model"
    found = tab.locator("#search-dialog .context", has_text="d_model")
    found.first.wait_for()
    assert "d_ model" not in tab.locator("#search-dialog .found").inner_text()
    for words, page, title in FINDS:
        field.fill("")
        field.press_sequentially(words)
        tab.locator(FOUND, has_text=title).first.wait_for()
        name, address = best(tab)
        assert title in name and f"{page}.html" in address, words
        assert "#" in address or title == "Multi-Head"  # the title of the page itself
    field.fill("sqrt d")
    tab.locator(FOUND, has_text="Why divide").first.click()  # a hit leads to its section
    tab.wait_for_url("**/03-scaled-dot-product.html*")
    top = tab.locator("#why-divide-by-d").bounding_box()["y"]
    assert -20 <= top < 200


def test_the_page_of_the_search_has_all_of_it(visit):
    seen = visit(FIRST)
    tab = seen.tab
    search(tab, "causal mask")
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/search.html*")
    best(tab, "#search-results .found a")
    assert tab.locator("main input[type=search]").input_value() == "causal mask"
    found = tab.locator("#search-results li a").all_inner_texts()
    assert any("Scaled Dot-Product Attention" in title for title in found), found
    excerpts = " ".join(tab.locator("#search-results p.context").all_inner_texts())
    assert excerpts and "\\mathbf" not in excerpts
    tab.goto(tab.url.replace("causal", "softmax").replace("+mask", "").replace("%20mask", ""))
    best(tab, "#search-results .found a")
    assert tab.locator("#search-results .found li").count() > 20
    tab.goto(tab.url.partition("?")[0] + "?q=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E")
    tab.locator(".found-says", has_text="<img").wait_for()
    assert tab.locator(".found-box img").count() == 0, "what is typed is never markup"
    assert seen.said == []


def test_it_searches_in_a_folder(visit, built):
    seen = visit(FIRST, base=built.as_uri() + "/")
    search(seen.tab, "causal mask")
    assert "Masks" in best(seen.tab)[0]
    seen.tab.locator(FOUND).first.click()
    seen.tab.locator(".unmark").click()
    assert seen.tab.evaluate(MARKED) == []
    assert seen.said == []


def test_whole_words_of_the_text_are_marked_until_one_says_so(visit):
    tab = visit(f"{CHAPTER}.html?q=causal+mask&x=").tab  # `visit` adds .html
    marks = tab.evaluate(MARKED)
    assert {word.lower() for word, _ in marks} == {"causal", "mask", "masks"}
    assert all(in_text for _, in_text in marks)
    button = tab.locator(".unmark")
    assert button.inner_text() == f"Remove {len(marks)} marks"
    assert button.bounding_box()["height"] >= 24
    button.click()
    assert tab.evaluate(MARKED) == []
    assert button.count() == 0 and "q=" not in tab.url
    tab.goto(f"{tab.url.partition('?')[0]}?q=d")  # a single letter is not marked
    tab.locator("article h1").wait_for()
    assert tab.evaluate(MARKED) == [] and button.count() == 0


@pytest.mark.parametrize("page", [CHAPTERS[0], CHAPTERS[6]])  # the script is that of every page
def test_the_contents_follow_the_reader(visit, page):
    """At each section its own entry is marked, and it is in the panel, exercises included."""
    tab = visit(page, reduced_motion="reduce").tab
    wrong = tab.evaluate("""async () => {
        const wrong = [];
        const links = [...document.querySelectorAll('.page-toc a')]
            .filter(a => a.checkVisibility());
        for (const section of document.querySelectorAll('article section section')) {
            section.scrollIntoView({behavior: 'instant'});
            await new Promise(requestAnimationFrame);
            await new Promise(done => setTimeout(done, 60));
            const atEnd = innerHeight + scrollY >= document.documentElement.scrollHeight - 2;
            let own = section;
            while (own && !links.some(a => a.hash === '#' + own.id)) own = own.parentElement;
            const here = [...document.querySelectorAll('.page-toc a[aria-current=true]')];
            const box = here[0]?.getBoundingClientRect();
            const seen = box && box.top >= 0 && box.bottom <= innerHeight;
            const last = here[0] && document.querySelector(here[0].hash);
            // a section may begin with one of its own, right below its heading
            const right = last && (last === own || own?.contains(last)
                && last.getBoundingClientRect().top <= innerHeight / 4);
            if (!atEnd && (here.length !== 1 || !right || !seen))
                wrong.push([section.id, here.map(a => a.hash), box?.top]);
        }
        return wrong;
    }""")
    assert wrong == []


TERM, WORK = "article a[href*='glossary.html#']", "article a[href*='bibliography.html#']"
OPEN = ".preview:popover-open"


def test_a_pointer_or_the_keyboard_shows_what_a_link_leads_to(visit):
    tab = visit(CHAPTER).tab
    for kind in (TERM, WORK):
        tab.locator(kind).first.hover()
        tab.locator(OPEN).wait_for()
        assert len(tab.locator(OPEN).inner_text()) > 20
        tab.locator(OPEN).hover()  # it stays while one reads it
        tab.wait_for_timeout(400)
        assert tab.locator(OPEN).count() == 1
        tab.keyboard.press("Escape")
        assert tab.locator(OPEN).count() == 0
    tab.mouse.move(0, 0)
    # only code can be copied: a number has no button, which would be one more stop
    assert tab.locator("article .copybtn").count() > 10
    assert tab.locator(".cell_output .copybtn").count() == 0
    tab.locator(TERM).first.focus()
    tab.locator(OPEN).wait_for()
    first = tab.evaluate("document.activeElement.href")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.href") != first
    tab.locator(TERM).first.focus()
    tab.keyboard.press("Enter")
    tab.wait_for_url("**/glossary.html#*")


@pytest.mark.parametrize("width", [390, 1024])
def test_a_first_tap_shows_it_and_a_second_follows(visit, width):
    tab = visit(CHAPTER, width, has_touch=True).tab
    link = tab.locator(TERM).first
    link.tap()
    box = tab.locator(OPEN).bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert "glossary" not in tab.url
    link.tap()
    tab.wait_for_url("**/glossary.html#*")
