"""Ask for every page elsewhere that the built book links to; say which are gone.

python scripts/links.py
"""

import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urldefrag

from bs4 import BeautifulSoup

HTML = Path(__file__).resolve().parents[1] / "_build" / "html"
TRIES = 3
PAUSE = 5.0  # seconds before the next try
TIMEOUT = 30.0
GONE = (404, 410)  # other answers (403, 429) say that a program is not welcome


def external_links(html: Path) -> dict[str, str]:
    """Return each address elsewhere with a page that links to it."""
    links = {}
    for path in sorted(html.rglob("*.html")):
        for tag in BeautifulSoup(path.read_text("utf8"), "html.parser").find_all("a", href=True):
            if tag["href"].startswith(("http://", "https://")):
                links.setdefault(urldefrag(tag["href"]).url, path.name)
    return links


def fault(url: str, pause: float = PAUSE) -> str:
    """Say what is wrong with an address; an empty string if nothing is."""
    request = urllib.request.Request(url, headers={"User-Agent": "Mozilla/5.0 (link check)"})
    said = ""
    for attempt in range(TRIES):
        if attempt:
            time.sleep(pause)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT):
                return ""
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code not in GONE:
                return ""
            said = f"{error.code} {error.reason}"
        except OSError as error:
            said = str(error)
    return said


def main() -> int:
    """Print what is broken; return the exit status."""
    links = external_links(HTML)
    if not links:
        sys.exit("error: no links: build the book first (make book)")
    with ThreadPoolExecutor(4) as pool:
        broken = {
            url: said for url, said in zip(links, pool.map(fault, links), strict=True) if said
        }
    for url, said in broken.items():
        print(f"{links[url]}: {url}: {said}")
    print(f"{len(links)} links, {len(broken)} broken")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main())
