"""Print the whole book to one PDF with Chromium: a title page, contents, an outline and tags.

python -m scripts.pdf
"""

import io
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from pypdf import PdfReader

from scripts.browser import find_browser
from scripts.paper import bind

if TYPE_CHECKING:
    from playwright.sync_api import Browser

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"
PDF = BUILD / "pdf" / "queries-keys-and-values.pdf"
FILL = """pages => document.querySelectorAll("[data-page]").forEach(
    place => { place.textContent = pages[place.dataset.page] })"""


def needed_browser() -> str:
    """Return the path of a browser, or stop with one line."""
    return find_browser() or sys.exit(
        "error: a PDF needs a browser: install Chromium or Chrome, or `playwright install chromium`"
    )


def build_page(build: Path = BUILD) -> Path:
    """Put the whole book on one page, bound by `paper.py`; return its path."""
    folder = build / "singlehtml"
    shutil.rmtree(folder, ignore_errors=True)  # Sphinx replaces no style that is there
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "-W", "-n"]
    command += ["--keep-going", "--quiet", "--builder", "singlehtml"]
    command += ["--path-output", str(build.parent), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    return bind(folder, ROOT)


def page_numbers(pdf: bytes) -> dict[str, int]:
    """Return the page of each place that a link leads to, counted from 1."""
    reader = PdfReader(io.BytesIO(pdf))
    return {
        unquote(name.removeprefix("/")): reader.get_destination_page_number(place) + 1
        for name, place in reader.named_destinations.items()
    }


def print_page(page: Path, pdf: Path, chromium: "Browser") -> None:
    """Print a page twice: the second time it knows on which page each place is."""
    pdf.parent.mkdir(parents=True, exist_ok=True)
    context = chromium.new_context(color_scheme="light", reduced_motion="reduce")
    tab = context.new_page()
    tab.goto(page.as_uri())
    tab.evaluate("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
    tab.evaluate("document.fonts.ready.then(() => null)")
    tab.wait_for_load_state("networkidle")
    numbers = page_numbers(tab.pdf(prefer_css_page_size=True))
    tab.evaluate(FILL, numbers)
    how = {"print_background": True, "outline": True, "tagged": True}
    content = tab.pdf(prefer_css_page_size=True, **how)
    context.close()
    if page_numbers(content) != numbers:
        sys.exit("error: the page numbers in the contents moved what they number")
    pdf.write_bytes(content)


def main() -> None:
    """Build, print, and say where it is."""
    from playwright.sync_api import sync_playwright

    path = needed_browser()
    page = build_page()
    with sync_playwright() as driver:
        print_page(page, PDF, driver.chromium.launch(executable_path=path))
    print(f"{PDF.relative_to(ROOT)}: {PDF.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
