"""Tell browsers what a page may load and run: its own files, and the scripts written in it.

Each page carries a Content-Security-Policy. A script inside the page is allowed by its hash, so one
that somebody else put there does not run. Styles may stand in the page, since formulas and
highlighted code are drawn with them.
"""

import base64
import hashlib
import re
from pathlib import Path

INLINE = re.compile(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", re.DOTALL)
DATA = re.compile(r'<script[^>]*type="application/(ld\+)?json"')
RULES = "default-src 'self'", "style-src 'self' 'unsafe-inline'", "img-src 'self' data:"
RULES += "font-src 'self' data:", "object-src 'none'", "base-uri 'none'", "form-action 'self'"
HEAD = re.compile(r'<meta charset="utf-8" ?/?>')


def policy(page: str) -> str:
    """Return the policy of a page that has these scripts in it."""
    hashes = {
        f"'sha256-{base64.b64encode(hashlib.sha256(found[1].encode()).digest()).decode()}'"
        for found in INLINE.finditer(page)
        if not DATA.match(found[0])
    }
    return "; ".join([*RULES, " ".join(["script-src 'self'", *sorted(hashes)])])


def write(app, out: Path) -> None:
    """Write its policy into each page, before anything that it governs."""
    for path in out.rglob("*.html"):
        page = path.read_text("utf8")
        if "Content-Security-Policy" not in page:
            meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(page)}" />'
            path.write_text(HEAD.sub(rf"\g<0>\n    {meta}", page, count=1), "utf8")
