"""One Chromium for all tests of a process. A pytest plugin, loaded by the conftest at the root."""

import pytest
from playwright.sync_api import sync_playwright

from scripts.browser import find_browser


@pytest.fixture(scope="session")
def chromium():
    """Return a browser with nothing in it."""
    path = find_browser()
    if path is None:
        pytest.skip("there is no Chromium on this machine")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path)
        yield browser
        browser.close()
