"""Find a Chromium or Chrome where it usually is."""

import os
import shutil
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"%ProgramFiles%\Google\Chrome\Application\chrome.exe",
    r"%ProgramFiles(x86)%\Google\Chrome\Application\chrome.exe",
    r"%LocalAppData%\Google\Chrome\Application\chrome.exe",
)


def find_browser() -> str | None:
    """Return the path of a browser: on PATH, at its usual place, or the one of Playwright."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    for place in map(os.path.expandvars, PLACES):
        if Path(place).exists():
            return place
    return _of_playwright()


def _of_playwright() -> str | None:
    """Return the browser that `playwright install chromium` has brought, if it is there."""
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return None
    with sync_playwright() as driver:
        path = driver.chromium.executable_path
    return path if Path(path).exists() else None
