"""See to it that a page shows what its author put there: nothing vanishes, nothing is blocked.

A page loads nothing from other servers, as its own policy forbids it. A picture, a badge or a
script from elsewhere would be stored, built without a word, and missing in the reader's browser. A
widget without its state, or an output in a form that no page shows, would be missing as well, and
so would a drawing that is no well-formed XML. Each is a warning that names the place; so is a
notebook that cannot be read, a cell that was never run, and a picture that says nothing to who
cannot see it. Warnings fail the build.
"""

import base64
import binascii
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote_to_bytes

from bs4 import BeautifulSoup
from docutils import nodes
from sources import SourceError, read_notebook, wrong_numbers
from sphinx.util import logging

LOG = logging.getLogger(__name__)
WIDGET = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
SCRIPT = "application/javascript"  # which a page takes before any other form
PICTURES = {"image/svg+xml", "image/png", "image/gif", "image/jpeg"}
SHOWN = {"text/html", "text/markdown", "text/latex", *PICTURES}  # beside plain text
REMOTE = re.compile(r"\s*((https?|ftp|wss?|file):|[/\\]{2})", re.IGNORECASE)
NO_PICTURE = re.compile(r"\s*(data:(?!image/)|blob:|javascript:)", re.IGNORECASE)
DRAWN = re.compile(r"\s*data:image/svg\+xml\b", re.IGNORECASE)
# The attributes that load something, of any element; `href` does so only of these.
LOADING = ("src", "poster", "data", "background")
LINKED = {"image", "use", "feimage", "script", "link"}
LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "manifest", "import"}
IN_STYLE = re.compile(
    r"""url\(\s*(?P<q>["']?)(?P<url>.*?)(?P=q)\s*\)|@import\s+["'](?P<sheet>.*?)["']""", re.DOTALL
)
IN_SCRIPT = re.compile(
    r"""(?:\b(?:import|from)\b\s*|(?:\bfetch|\bimport|\brequire)\(\s*|\bsrc\s*=\s*)"""
    r"""["'`]((?:https?:)?//[^"'`]*)|["'`]((?:https?:)?//[^"'`]*\.(?:m?js|css))["'`]"""
)
A_PATH = re.compile(r"^\S*[/\\]\S*$|\.(png|svg|jpe?g|gif|webp)$", re.IGNORECASE)


def warn(message: str, *words: object, at) -> None:
    """Say what is wrong on a page, and where: at a node, or on the page of a name."""
    while not isinstance(at, str) and not at.line and at.parent:  # within a paragraph it has none
        at = at.parent
    LOG.warning(message, *words, location=at, type="book")


# --- what a piece of HTML, or a drawing, loads and runs ---


@lru_cache(4)  # several questions in turn are about one piece
def parsed(text: str) -> BeautifulSoup:
    """Return a piece of HTML, or a drawing, as its elements."""
    return BeautifulSoup(text, "html.parser")


def loaded(text: str | BeautifulSoup) -> Iterator[str]:
    """Return every address from which a piece of HTML, or a drawing, would load something.

    >>> list(loaded('<a href="a.html"><img srcset="b.png 1x, c.png 2x" style="x: url(d.png)">'))
    ['b.png', 'c.png', 'd.png']
    """
    for tag in (parsed(text) if isinstance(text, str) else text).find_all(True):
        linked = tag.name in LINKED and tag.name != "link"
        linked |= bool(LINKS & {word.lower() for word in tag.get_attribute_list("rel") if word})
        for name, value in tag.attrs.items():
            value = " ".join(value) if isinstance(value, list) else value
            if name in ("srcset", "imagesrcset"):
                parts = re.split(r",\s+|,(?=(?:https?:)?//)", value)
                yield from (part.split()[0] for part in parts if part.strip())
            elif name == "srcdoc":
                yield from loaded(value)
            elif name == "style":
                yield from in_style(value)
            elif name in LOADING or (linked and name in ("href", "xlink:href")):
                yield value
        if tag.name == "style":
            yield from in_style(tag.get_text())
        if tag.name == "script" and "json" not in tag.get("type", ""):
            yield from (found[1] or found[2] for found in IN_SCRIPT.finditer(tag.get_text()))


def in_style(text: str) -> Iterator[str]:
    """Return the addresses that a style sheet loads."""
    for found in IN_STYLE.finditer(text):
        yield found["url"] or found["sheet"] or ""


def loaded_from_elsewhere(text: str | BeautifulSoup) -> list[str]:
    """Return the addresses on other servers that a piece of HTML would load.

    >>> loaded_from_elsewhere('<a href="https://a.org">a</a> <img src="https://b.org/b.png">')
    ['https://b.org/b.png']
    """
    return [address.strip() for address in loaded(text) if REMOTE.match(address)]


def not_run(text: str) -> str:
    """Return what else of a piece of HTML the policy of a page keeps from being shown or run.

    >>> not_run('<button onclick="draw()">')
    'onclick="draw()"'
    >>> not_run('<img src="data:image/png;base64,aaaa"><audio src="data:audio/wav;base64,aaaa">')
    'data:audio/wav;base64,aaaa'
    """
    for tag in parsed(text).find_all(True):
        if tag.name in ("object", "embed", "applet"):
            return f"<{tag.name}>"
        for name, value in tag.attrs.items():
            if re.match(r"on[a-z]+$", name):
                return f'{name}="{value}"'[:80]
    return next((address[:80] for address in loaded(text) if NO_PICTURE.match(address)), "")


def drawings(data: dict) -> Iterator[bytes]:
    """Return the drawings of an output: its own, and those that stand in addresses of its HTML."""
    if "image/svg+xml" in data:
        yield data["image/svg+xml"].encode("utf8", "surrogatepass")
    for address in filter(DRAWN.match, loaded(data.get("text/html", ""))):
        head, _, body = address.partition(",")
        raw = unquote_to_bytes(body.partition("#")[0])  # where an address ends
        encoded = head.lower().rstrip().endswith(";base64")
        yield base64.b64decode(b"".join(raw.split()), validate=True) if encoded else raw


def broken_drawing(data: dict) -> str:
    """Return what is wrong with the drawings of an output, or of a piece of HTML.

    >>> broken_drawing({"image/svg+xml": "<svg><text>a</svg>"})
    'mismatched tag: line 1, column 14'
    >>> broken_drawing({"image/svg+xml": "<svg xmlns='http://www.w3.org/2000/svg'/>"})
    ''
    """
    try:
        for one in drawings(data):
            if ET.fromstring(one).tag != "{http://www.w3.org/2000/svg}svg":
                return 'it is no <svg xmlns="http://www.w3.org/2000/svg">'
    except (ET.ParseError, ValueError, LookupError, binascii.Error) as error:
        return str(error)
    return ""


def fault(data: dict, states: dict) -> str:
    """Return what of an output a page would lose, and what to do; nothing if all is shown."""
    rich = {*data} - {"text/plain"}
    if WIDGET in data:
        view = data[WIDGET] if isinstance(data[WIDGET], dict) else {}
        without = "" if view.get("model_id") in states else " without its state"
        return f"holds a widget{without}, which no page runs: show a figure or a table in its place"
    if SCRIPT in data:
        return "holds a script, which a page takes in place of all else: print or draw it"
    if rich and not rich & SHOWN:
        return f"holds {', '.join(sorted(rich))}, which no page shows: print or draw it"
    for text in (data.get("text/html", ""), data.get("image/svg+xml", "")):
        if remote := loaded_from_elsewhere(text):
            return f"loads {remote[0]}, which pages may not: store it in the book, or draw it"
    if refused := not_run(data.get("text/html", "")):
        return f"holds {refused}, which the policy of pages stops: print or draw it"
    if broken := broken_drawing(data):
        return f"holds a drawing that cannot be read ({broken}): draw it again"
    for one in drawings(data):
        if remote := loaded_from_elsewhere(one.decode("utf8", "replace")):
            return f"loads {remote[0]}, which a drawing may not: draw it"
    return ""


# --- what is asked of a page ---

FORM = {"metadata": {}, "nbformat": 4, "nbformat_minor": 5}
UNREADABLE = {"cell_type": "markdown", "id": "unreadable", "metadata": {}}


def require_notebook(app, docname: str, source: list[str]) -> None:
    """Warn of a notebook that cannot be read, that counts wrongly, or that a page would not show.

    The first is left out, so that the others are built and say what is wrong with them. The book
    runs nothing, so a cell that was never run would be printed without what it puts out.
    """
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".ipynb":
        return
    try:
        notebook = read_notebook(source[0])
    except SourceError as error:
        warn("%s %s", path.name, error, at=docname)
        cell = UNREADABLE | {"source": f"# {path.stem}\n\nThis notebook cannot be read."}
        source[0] = json.dumps({"cells": [cell]} | FORM)
        return
    widgets = notebook.metadata.get("widgets", {})
    states = widgets.get(WIDGET_STATE, {}).get("state", {}) if isinstance(widgets, dict) else {}
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code" and cell.execution_count is None:
            warn("cell %d was never run: run `make notebooks`", number, at=docname)
        for output in cell.get("outputs", []):
            if says := fault(output.get("data", {}), states):
                warn("cell %d %s", number, says, at=docname)
    for number, says in wrong_numbers(notebook.cells, path.stem):
        warn("cell %d: %s", number, says, at=docname)
    source[0] = json.dumps(notebook)


def require_shown(app, doctree: nodes.document) -> None:
    """Warn of what the text of a page would load, run or draw in vain; of outputs it is said."""
    outputs = {
        id(node)
        for around in doctree.findall(nodes.container)
        if "cell_output" in around["classes"]
        for node in around.findall(nodes.Element)
    }
    for node in doctree.findall(nodes.Element):
        if id(node) in outputs:
            continue
        if isinstance(node, nodes.image) and REMOTE.match(uri := node.get("uri", "")):
            says = f"loads {uri}, which pages may not: store it in the book, or draw it"
        elif isinstance(node, nodes.image) and node.get("uri", "").lower().endswith(".svg"):
            path = Path(app.srcdir, node["uri"])
            if not path.is_file():  # said where it is looked for
                continue
            says = fault({"image/svg+xml": path.read_text("utf8", "replace")}, {})
            says = says and f"shows {path.name}, which {says}"
        elif isinstance(node, nodes.raw) and "html" in node.get("format", ""):
            says = fault({"text/html": node.astext()}, {})
        else:
            continue
        if says:
            warn("this page %s", says, at=node)


def require_descriptions(app, doctree: nodes.document, docname: str) -> None:
    """Warn of a picture that says nothing to who cannot see it.

    One that has nothing to say is marked: `:class: decorative` in MyST, `class="decorative"` in
    HTML. This is asked of the pictures that a page shows, so after the forms of outputs are chosen.
    """
    for node in doctree.findall(nodes.Element):
        if isinstance(node, nodes.raw):
            pictures = [
                (image.get("alt", ""), image.get("src", ""), image.get("class", []))
                for image in parsed(node.astext()).find_all("img")
            ]
        elif isinstance(node, nodes.image) or "alt" in node:
            pictures = [(node.get("alt", ""), node.get("uri", ""), node["classes"])]
        else:
            continue
        for alt, source, classes in pictures:
            if "decorative" in classes:
                if isinstance(node, nodes.image):
                    node["alt"] = ""  # or Sphinx writes the address there
            elif not alt.strip() or A_PATH.search(alt.strip()):
                name = source if len(source) < 80 else "a picture"
                warn("%s has no description: say in its alt text what it shows", name, at=node)
