"""Real Chromium on the built book, served from this machine."""

import gzip
import threading
import time
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import pytest

from scripts import serve

# Fonts, and on a phone the sections that are laid out one by one.
SETTLED = """document.fonts.ready.then(() => new Promise(done => {
    const later = () => [...document.querySelectorAll('.reading > section section')]
        .some(one => getComputedStyle(one).contentVisibility === 'auto');
    const look = () => later() ? setTimeout(look, 50) : done();
    look();
}))"""


@pytest.fixture(scope="session")
def address(built):
    """Return where the book is served."""
    with serve.server(built, port=0) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}/"
        web.shutdown()


@pytest.fixture(scope="session")
def published(published_site):
    """Return where the published book is served."""
    with serve.server(published_site, port=0) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{web.server_port}/book/"
        web.shutdown()


def lasting(part, script, given=None):
    """Return what a script finds on a page, or a part of it, unless it is gone in five seconds."""
    end = time.monotonic() + 5
    while (found := part.evaluate(script, given)) and time.monotonic() < end:
        time.sleep(0.05)
    return found


@dataclass
class Visit:
    """A page in a browser, what it said, and what it asked for."""

    tab: object
    said: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    responses: list = field(default_factory=list)

    def hosts(self) -> set[str]:
        return {urlsplit(answer.url).netloc for answer in self.responses}

    def weights(self) -> dict[str, int]:
        """Return how much was sent for each address; a server compresses text, so text is."""
        sizes = {}
        for answer in self.responses:
            path, body = urlsplit(answer.url).path, answer.body()
            packed = path.endswith((".woff2", ".png"))
            sizes[path] = len(body) if packed else len(gzip.compress(body, mtime=0))
        return sizes


@pytest.fixture
def visit(chromium, address):
    """Return a function that opens a page as somebody who has never been there."""
    contexts = []

    def open_page(page, width=1280, scheme="light", base=address, **options) -> Visit:
        size = {"width": width, "height": 900}
        context = chromium.new_context(viewport=size, color_scheme=scheme, **options)
        contexts.append(context)
        seen = Visit(context.new_page())
        # "log" is what the theme tells its own authors
        seen.tab.on("console", lambda m: m.type != "log" and seen.said.append(m.text))
        seen.tab.on("pageerror", lambda error: seen.said.append(str(error)))
        seen.tab.on("requestfailed", lambda request: seen.failed.append(request.url))
        seen.tab.on("response", lambda answer: seen.responses.append(answer))
        seen.tab.goto(f"{base}{page}.html")
        seen.tab.evaluate(SETTLED)
        return seen

    yield open_page
    for context in contexts:
        context.close()
