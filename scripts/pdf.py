"""Print the whole book to one PDF with Chromium: numbered, with an outline and tags for readers.

python scripts/pdf.py
"""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "_build"
PDF = BUILD / "pdf" / "queries-keys-and-values.pdf"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FOOTER = """<div style="font: 8pt sans-serif; width: 100%; text-align: center; color: #555">
<span class="pageNumber"></span></div>"""
MARGIN = {"top": "18mm", "bottom": "20mm", "left": "18mm", "right": "18mm"}


def find_browser() -> str:
    """Return the path of a Chromium, or stop with one line."""
    for found in filter(None, map(shutil.which, BROWSERS)):
        return found
    sys.exit(f"error: a PDF needs a browser: none of {', '.join(BROWSERS)} is installed")


def build_page(build: Path = BUILD) -> Path:
    """Put the whole book on one page; return its path."""
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "-W", "-n"]
    command += ["--keep-going", "--quiet", "--builder", "singlehtml"]
    command += ["--path-output", str(build.parent), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)
    folder = build / "singlehtml"
    page = folder / "book.html"
    # It is written for the folder above the one in which Sphinx puts it.
    shutil.copy(folder / "chapters" / "index.html", page)
    return page


def print_page(page: Path, pdf: Path, browser: str) -> None:
    """Print a page."""
    from playwright.sync_api import sync_playwright

    pdf.parent.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=browser)
        tab = chromium.new_page(color_scheme="light", reduced_motion="reduce")
        tab.goto(page.as_uri())
        tab.evaluate("document.querySelectorAll('img').forEach(i => i.loading = 'eager')")
        tab.evaluate("document.fonts.ready.then(() => null)")
        tab.wait_for_load_state("networkidle")
        tab.pdf(
            path=pdf,
            format="A4",
            margin=MARGIN,
            scale=0.85,
            print_background=True,
            display_header_footer=True,
            header_template="<span></span>",
            footer_template=FOOTER,
            outline=True,
            tagged=True,
        )
        chromium.close()


def main() -> None:
    """Build, print, and say where it is."""
    browser = find_browser()
    print_page(build_page(), PDF, browser)
    print(f"{PDF.relative_to(ROOT)}: {PDF.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
