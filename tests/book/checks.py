"""What is looked for on a built page; each function returns what is wrong."""

import re
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

RAW = re.compile(
    r"\$\$|\\[(\[]|\\\\|\\(frac|sum|mathbf|text|sqrt|top|operatorname|begin)\b"  # TeX
    r"|\{(cite|numref|eq|ref|term|doc|math)(:\w+)?\}"  # MyST
)


@cache
def soup(path: Path) -> BeautifulSoup:
    return BeautifulSoup(path.read_text("utf8"), "html.parser")


@cache
def anchors(path: Path) -> set[str]:
    return {tag["id"] for tag in soup(path).find_all(id=True)}


def letters(*texts: str) -> Counter[str]:
    """Return the letters and digits of texts; a bold one is its letter."""
    return Counter(filter(str.isalnum, unicodedata.normalize("NFKC", "".join(texts))))


def broken_links(path: Path) -> list[str]:
    """Return links and sources that lead to no file, or to no anchor in it."""
    broken = []
    for tag in soup(path).find_all(["a", "link", "script", "img", "source"]):
        url = tag.get("href") or tag.get("src")
        parts = urlsplit(url or "#")
        if parts.scheme or parts.netloc or url in (None, "", "#"):
            continue
        target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
        anchor = unquote(parts.fragment)
        if not target.is_file() or (anchor and anchor not in anchors(target)):
            broken.append(url)
    return broken


def raw_markup(path: Path) -> list[str]:
    """Return TeX and MyST that a reader would see as it was typed, and marks of failed markup."""
    article = soup(path).article
    failed = [str(tag) for tag in article.select(".katex-error, .system-message, .problematic")]
    typed = {id(tag) for tag in article(["pre", "code", "script", "style", "annotation"])}
    said = (text for text in article.strings if not typed & {id(up) for up in text.parents})
    return failed + [match.group() for match in RAW.finditer("".join(said))]
