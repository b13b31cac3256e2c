"""Take chapters/_static/first-page.png, the picture of the book's first page in the README.

make book, then python -m scripts.first_page
"""

import io
import sys
import threading
from pathlib import Path

from PIL import Image

from scripts import serve
from scripts.pdf import needed_browser

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "_build" / "html" / "chapters" / "index.html"
PICTURE = ROOT / "chapters" / "_static" / "first-page.png"
WINDOW = {"width": 1280, "height": 800}
SIZE = 1200, 750


def take(page: Path = PAGE, picture: Path = PICTURE) -> None:
    """Draw the top of a page in light colours, at twice its size, and store it smaller."""
    from playwright.sync_api import sync_playwright

    if not page.exists():
        sys.exit(f"error: there is no {page}: run `make book`")
    # A page from a folder has neither its own letters nor what moves.
    with serve.server(page.parents[1], port=0) as web, sync_playwright() as driver:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        browser = driver.chromium.launch(executable_path=needed_browser())
        tab = browser.new_page(
            viewport=WINDOW,
            device_scale_factor=2,
            color_scheme="light",
            reduced_motion="reduce",
        )
        tab.goto(f"http://127.0.0.1:{web.server_port}/chapters/{page.name}")
        tab.evaluate("document.fonts.ready.then(() => null)")
        tab.locator(".explorable[data-state=ready]").first.wait_for()
        large = Image.open(io.BytesIO(tab.screenshot())).convert("RGB")
        browser.close()
        web.shutdown()
    small = large.resize(SIZE, Image.Resampling.LANCZOS)
    # A quarter of the bytes, and each of the few colours of a page stays what it is.
    few = small.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(picture, optimize=True)


if __name__ == "__main__":
    take(*map(Path, sys.argv[1:]))
