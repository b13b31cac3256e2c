"""Measure the built pages with Lighthouse, as a slow phone and as a desktop computer see them.

Build the book, then run ``python -m benchmarks.lighthouse``; it needs Chromium and Node, and takes
Lighthouse from npm. Nothing is cached, text is sent compressed, as a web server does. Lighthouse
computes a slow phone from what it sees here, so a busy machine makes every page look slower: run it
alone.

Prints the scores of each page, out of 100, and what it sent; ends with status 1 below a bar.
"""

import functools
import gzip
import http.server
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

from scripts.browser import find_browser

HTML = Path(__file__).resolve().parents[1] / "_build" / "html"
LIGHTHOUSE = ["npx", "--yes", "lighthouse@12.8.2"]
CHROMIUM = find_browser()
QUIET = "--headless --no-sandbox --disable-background-networking --disable-component-update"
BARS = {
    "phone": {"performance": 90, "accessibility": 100, "best-practices": 100, "seo": 100},
    "desktop": {"performance": 100, "accessibility": 100, "best-practices": 100, "seo": 100},
}


class Compressing(http.server.SimpleHTTPRequestHandler):
    """Serve files with text compressed."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        """Send a file, whole."""
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            return self.send_error(404)
        kind, body = self.guess_type(str(path)), path.read_bytes()
        self.send_response(200)
        if not kind.startswith(("image/png", "font")):
            body = gzip.compress(body)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        self.end_headers()
        self.wfile.write(body)
        return None


def measure(address: str, device: str) -> dict:
    """Return what Lighthouse says of a page."""
    command = [*LIGHTHOUSE, address, "--quiet", "--output=json", f"--chrome-flags={QUIET}"]
    if device == "desktop":
        command.append("--preset=desktop")
    environment = {**os.environ, "CHROME_PATH": CHROMIUM}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def main() -> int:
    """Measure the first page and every chapter."""
    pages = [
        "chapters/index",
        *sorted(f"chapters/{p.stem}" for p in HTML.glob("chapters/[0-9]*.html")),
    ]
    handler = functools.partial(Compressing, directory=str(HTML))
    missed = 0
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        for page in pages:
            for device, bars in BARS.items():
                said = measure(f"http://127.0.0.1:{web.server_port}/{page}.html", device)
                scores = {k: round(100 * v["score"]) for k, v in said["categories"].items()}
                below = {name: bar for name, bar in bars.items() if scores[name] < bar}
                missed += bool(below)
                sent = said["audits"]["total-byte-weight"]["numericValue"] / 1000
                shift = said["audits"]["cumulative-layout-shift"]["numericValue"]
                print(
                    f"{page:38} {device:8}",
                    *(f"{name} {score:3}" for name, score in scores.items()),
                    f"{sent:4.0f} kB, layout shift {shift:.3f}",
                    f"below {below}" if below else "",
                    flush=True,
                )
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main())
