"""A reader whose browser stores nothing loses the choice of colours, and nothing else.

yvanvds/DataBeheer#29, metabase#10970: every access to the storage can throw.
"""

import pytest
from playwright.sync_api import expect

from tests.browser.test_reading import FIRST

BLOCKED = """for (const name of ["localStorage", "sessionStorage"])
    Object.defineProperty(window, name, {
        configurable: true, get() { throw new DOMException("denied", "SecurityError"); } });"""
FULL = """Storage.prototype.setItem = () => {
    throw new DOMException("no room", "QuotaExceededError"); };"""


@pytest.mark.parametrize("script", [BLOCKED, FULL, ""], ids=["blocked", "full", "free"])
def test_where_nothing_can_be_stored_all_works(visit, address, script):
    seen = visit(FIRST)
    tab = seen.tab
    tab.context.add_init_script(script)
    tab.reload()
    themes = set()
    for _ in range(3):
        tab.locator("button.theme-switch-button").first.click()
        themes.add(tab.evaluate("document.documentElement.dataset.theme"))
    assert themes == {"light", "dark"}
    tab.keyboard.press("Control+k")
    tab.locator("dialog[open] input[type=search]").wait_for()
    tab.goto(f"{address}search.html?q=causal+mask")
    tab.locator("#search-results li a").nth(2).wait_for()
    tab.goto(f"{address}chapters/01-database-analogy.html")
    tab.locator(".live-code textarea:visible").first.fill("1 + 1")
    kept = "until you leave the page" if script else "kept on this device"
    expect(tab.locator(".live-kept")).to_contain_text(kept)
    assert seen.said == []
