"""A reader whose browser stores nothing loses the choice of colours, and nothing else.

yvanvds/DataBeheer#29, metabase#10970: every access to the storage can throw.
"""

import pytest

from tests.browser.test_reading import FIRST

BLOCKED = """for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(window, name, {
        configurable: true, get() { throw new DOMException("denied", "SecurityError"); } });"""
FULL = """Storage.prototype.setItem = () => {
    throw new DOMException("no room", "QuotaExceededError"); };"""
FRAME = '<iframe sandbox="allow-scripts" style="width: 100%; height: 95vh" src="{}"></iframe>'


@pytest.fixture(params=["blocked", "full", "in a frame of another site"])
def reader(request, chromium, address):
    """Return a function that opens a page where nothing can be stored, and what went wrong."""
    contexts, said = [], []

    def opened(page, width=1280):
        context = chromium.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        tab = context.new_page()
        tab.on("pageerror", lambda error: said.append(str(error)))
        if request.param.startswith("in a frame"):
            tab.set_content(FRAME.format(address + page))
            frame = tab.frames[1]
            frame.wait_for_load_state()
            return tab, frame
        context.add_init_script(BLOCKED if request.param == "blocked" else FULL)
        tab.goto(address + page)
        return tab, tab.main_frame

    yield opened
    for context in contexts:
        context.close()
    # A frame without an origin may not fetch the excerpts of what was found.
    assert [line for line in said if line != "Failed to fetch"] == []


def test_the_keyboard_opens_the_search(reader):
    tab, page = reader(f"{FIRST}.html")
    page.locator("main").first.click(position={"x": 5, "y": 5})
    tab.keyboard.press("Control+k")
    page.locator("dialog[open] input[type=search]").wait_for()


def test_the_search_finds(reader):
    _, page = reader("search.html?q=causal+mask")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li a").count() > 2


def test_the_contents_open_on_a_phone(reader):
    _, page = reader(f"{FIRST}.html", width=390)
    page.locator("button.narrow").click()
    page.locator(".book:popover-open a", has_text="Multi-Head Attention").first.wait_for()


def test_light_and_dark_can_be_chosen(reader):
    _, page = reader(f"{FIRST}.html")
    theme = "document.documentElement.dataset.theme"
    first = page.evaluate(theme)
    for _ in range(3):
        page.locator("button.theme-switch-button").first.click()
        if page.evaluate(theme) != first:
            return
    raise AssertionError("the colours stay as they are")


def test_a_live_cell_says_that_nothing_is_kept(reader):
    _, page = reader("chapters/01-database-analogy.html")
    if page.url.startswith("http") and page.evaluate("origin") == "null":
        return  # in a frame without an origin no cell runs
    page.locator(".live-code textarea:visible").first.fill("1 + 1")
    assert "until you leave the page" in page.locator(".live-kept").inner_text()


def test_a_live_cell_says_that_its_code_is_kept(visit):
    tab = visit("chapters/01-database-analogy").tab
    tab.locator(".live-code textarea:visible").first.fill("1 + 1")
    assert "kept on this device" in tab.locator(".live-kept").inner_text()


def test_a_browser_that_stores_remembers_the_choice(visit):
    tab = visit(FIRST).tab
    for _ in range(3):
        tab.locator("button.theme-switch-button").first.click()
        if tab.evaluate("document.documentElement.dataset.mode") == "dark":
            break
    tab.reload()
    assert tab.evaluate("document.documentElement.dataset.theme") == "dark"
