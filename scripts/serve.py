"""Show the book on this machine alone, and build it again when one of its files changes.

Ctrl-C stops. A page that is open in a browser shows the new build when it is loaded again:
sphinx-autobuild would do that too, by a script that the policy of our pages forbids.
"""

import functools
import os
import re
import subprocess
import sys
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HTML = ROOT / "_build" / "html"
PORT = 8000
MADE = re.compile(r"\..*|_build|__pycache__")  # folders in which nothing is a source
JUPYTER_BOOK = Path(sys.executable).with_name("jupyter-book")
BUILD = [str(JUPYTER_BOOK), "build", "-n", "--keep-going", "--quiet", "."]


class QuietHandler(SimpleHTTPRequestHandler):
    """Serve files without a line for each of them, and never from a browser's cache."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def end_headers(self) -> None:
        """Let a reload show the newest build."""
        self.send_header("Cache-Control", "no-store")
        super().end_headers()


def server(html: Path = HTML, port: int = PORT) -> ThreadingHTTPServer:
    """Return a server that only this machine can reach; any free port if that one is taken."""
    handler = functools.partial(QuietHandler, directory=str(html))
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), handler)
    except OSError:
        return ThreadingHTTPServer(("127.0.0.1", 0), handler)


def snapshot(root: Path = ROOT) -> dict[Path, int]:
    """Return the time of the last change of every source file."""
    seen = {}
    for folder, inner, files in os.walk(root):
        inner[:] = [name for name in inner if not MADE.fullmatch(name)]
        for name in files:
            path = Path(folder, name)
            seen[path] = path.stat().st_mtime_ns
    return seen


def build() -> None:
    """Build the book; whatever is wrong with it is printed, and nothing else."""
    print("building ...", flush=True)
    done = subprocess.run(BUILD, cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
    print("built" if done.returncode == 0 else "the build failed", flush=True)


def main() -> None:
    """Build, serve and watch until Ctrl-C."""
    seen = snapshot()
    build()
    with server() as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        print(f"http://127.0.0.1:{web.server_port}/ shows the book; Ctrl-C stops", flush=True)
        while True:
            time.sleep(0.5)
            if (now := snapshot()) != seen:
                seen = now
                build()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print()
