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
TEXTAREA = ".live-code textarea:visible"


@pytest.mark.parametrize("script", [BLOCKED, FULL, ""], ids=["blocked", "full", "in a frame"])
def test_where_nothing_can_be_stored_all_works(chromium, address, script):
    """In a frame of another site, too."""
    said = []

    def opened(page, width=1280):
        tab = context.new_page()
        tab.set_viewport_size({"width": width, "height": 900})
        tab.on("pageerror", lambda error: said.append(str(error)))
        if script:
            tab.goto(address + page)
            return tab, tab.main_frame
        tab.set_content(FRAME.format(address + page))
        tab.frames[1].wait_for_load_state()
        return tab, tab.frames[1]

    context = chromium.new_context()
    context.add_init_script(script)
    tab, page = opened(f"{FIRST}.html")
    theme = "document.documentElement.dataset.theme"
    themes = {page.evaluate(theme)}
    for _ in range(3):
        page.locator("button.theme-switch-button").first.click()
        themes.add(page.evaluate(theme))
    assert themes == {"light", "dark"}
    page.locator("main").first.click(position={"x": 5, "y": 5})
    tab.keyboard.press("Control+k")
    page.locator("dialog[open] input[type=search]").wait_for()
    _, page = opened(f"{FIRST}.html", width=390)
    page.locator("button.narrow").click()
    page.locator(".book:popover-open a", has_text="Multi-Head Attention").first.wait_for()
    _, page = opened("search.html?q=causal+mask")
    page.wait_for_selector("#search-results li a")
    assert page.locator("#search-results li a").count() > 2
    _, page = opened("chapters/01-database-analogy.html")
    if script:  # in a frame without an origin no cell runs
        page.locator(TEXTAREA).first.fill("1 + 1")
        assert "until you leave the page" in page.locator(".live-kept").inner_text()
    context.close()
    # A frame without an origin may not fetch the excerpts of what was found.
    assert [line for line in said if line != "Failed to fetch"] == []


def test_a_live_cell_says_that_its_code_is_kept(visit):
    tab = visit("chapters/01-database-analogy").tab
    tab.locator(TEXTAREA).first.fill("1 + 1")
    assert "kept on this device" in tab.locator(".live-kept").inner_text()
