"""What is looked for on a built page; each function returns what is wrong."""

import base64
import hashlib
import re
import unicodedata
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from bs4 import BeautifulSoup

from scripts import notebooks  # noqa: F401, which finds what `_ext` imports

from _ext import refused  # isort: skip

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


def loaded_from_elsewhere(path: Path) -> list[str]:
    """Return what a browser would ask another server for, as the build asks of what it is given."""
    return refused.loaded_from_elsewhere(soup(path))


def forbidden_scripts(path: Path) -> list[str]:
    """Return what the page's policy does not let run: scripts without a hash, or in attributes."""
    html = soup(path)
    rule = html.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
    if rule is None or "script-src 'self'" not in rule["content"]:
        return ["no policy"]
    inline = [tag.decode_contents() for tag in html.find_all("script", src=False)]
    hashed = {text: hashlib.sha256(text.encode()).digest() for text in inline}
    forbidden = [
        text
        for text, digest in hashed.items()
        if base64.b64encode(digest).decode() not in rule["content"]
    ]
    return forbidden + [
        f"{name}={value}"
        for tag in html.find_all(True)
        for name, value in tag.attrs.items()
        if name.startswith("on") or str(value).startswith("javascript:")
    ]


def undescribed_pictures(path: Path) -> list[str]:
    """Return pictures with no description, or with a file path for one."""
    found = []
    for image in soup(path).find_all("img"):
        alt = image.get("alt", "no description.png").strip()
        marked = "decorative" in image.get("class", [])
        if bool(alt) == marked or refused.A_PATH.search(alt):
            found.append(str(image))
    return found


def raw_markup(path: Path) -> list[str]:
    """Return TeX and MyST that a reader would see as it was typed, and marks of failed markup."""
    article = soup(path).article
    failed = [str(tag) for tag in article.select(".katex-error, .system-message, .problematic")]
    typed = {id(tag) for tag in article(["pre", "code", "script", "style", "annotation"])}
    said = (text for text in article.strings if not typed & {id(up) for up in text.parents})
    return failed + [match.group() for match in RAW.finditer("".join(said))]
