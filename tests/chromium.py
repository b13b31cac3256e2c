"""One Chromium for all tests of a process. A pytest plugin, loaded by the conftest at the root."""

import asyncio
from contextlib import contextmanager

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


@contextmanager
def loop_of_their_own(item):
    """Between its calls Playwright leaves its loop marked as running: others could start none."""
    loop = asyncio._get_running_loop()
    hide = loop is not None and "chromium" not in getattr(item, "fixturenames", ())
    if hide:
        asyncio._set_running_loop(None)
    try:
        yield
    finally:
        if hide:
            asyncio._set_running_loop(loop)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    """What a test is given may start a loop."""
    with loop_of_their_own(item):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """And the test itself."""
    with loop_of_their_own(item):
        return (yield)
