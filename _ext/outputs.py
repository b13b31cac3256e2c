"""See to it that a page shows what its author put there: nothing vanishes, nothing is blocked.

A page loads nothing from other servers, as its own policy forbids it. A picture, a badge or a
script from elsewhere would be stored, built without a word, and missing in the reader's browser. A
widget without its state, or an output in a form that no page shows, would be missing as well, and
so would a drawing that is no well-formed XML: a browser shows the mark of a broken picture.
"""

import base64
import binascii
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from urllib.parse import unquote_to_bytes

from bs4 import BeautifulSoup, Tag
from docutils import nodes
from sources import SourceError, read_notebook
from sphinx.util import logging

LOG = logging.getLogger(__name__)
WIDGET = "application/vnd.jupyter.widget-view+json"
WIDGET_STATE = "application/vnd.jupyter.widget-state+json"
SCRIPT = "application/javascript"  # which a page takes before any other form
SHOWN = {  # the forms of an output that a page can show, beside plain text
    "text/html",
    "text/markdown",
    "text/latex",
    "image/svg+xml",
    "image/png",
    "image/gif",
    "image/jpeg",
}
REMOTE = re.compile(r"\s*((https?|ftp|wss?|file):|[/\\]{2})", re.IGNORECASE)
NO_PICTURE = re.compile(r"\s*(data:(?!image/)|blob:|javascript:)", re.IGNORECASE)
LINKED = ("href", "xlink:href")
LOADING = {
    "img": ("src",),
    "script": ("src", *LINKED),
    "iframe": ("src",),
    "frame": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "source": ("src",),
    "track": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "input": ("src",),
    "body": ("background",),
    "table": ("background",),
    "td": ("background",),
    "image": LINKED,
    "use": LINKED,
    "feimage": LINKED,
    "link": ("href",),
}
LINKS = {"stylesheet", "icon", "preload", "modulepreload", "prefetch", "manifest", "import"}
IN_STYLE = re.compile(
    r"""url\(\s*(?P<q>["']?)(?P<url>.*?)(?P=q)\s*\)|@import\s+["'](?P<sheet>.*?)["']""", re.DOTALL
)
IN_SCRIPT = re.compile(
    r"""(?:\b(?:import|from)\b\s*|(?:\bfetch|\bimport|\brequire)\(\s*|\bsrc\s*=\s*)"""
    r"""["'`]((?:https?:)?//[^"'`]*)|["'`]((?:https?:)?//[^"'`]*\.(?:m?js|css))["'`]"""
)


def loaded(text: str) -> Iterator[str]:
    """Return every address from which a piece of HTML, or a drawing, would load something.

    >>> list(loaded('<a href="a.html"><img srcset="b.png 1x, c.png 2x" style="x: url(d.png)">'))
    ['b.png', 'c.png', 'd.png']
    """
    for tag in BeautifulSoup(text, "html.parser").find_all(True):
        for name, value in tag.attrs.items():
            value = " ".join(value) if isinstance(value, list) else value
            if name in ("srcset", "imagesrcset"):
                parts = re.split(r",\s+|,(?=(?:https?:)?//)", value)
                yield from (part.split()[0] for part in parts if part.strip())
            elif name == "srcdoc":
                yield from loaded(value)
            elif name == "style":
                yield from _in_style(value)
            elif name in LOADING.get(tag.name, ()) and _is_loaded(tag):
                yield value
        if tag.name == "style":
            yield from _in_style(tag.get_text())
        if tag.name == "script" and "json" not in tag.get("type", ""):
            yield from (found[1] or found[2] for found in IN_SCRIPT.finditer(tag.get_text()))


def _is_loaded(tag: Tag) -> bool:
    return tag.name != "link" or bool(LINKS & {word.lower() for word in tag.get("rel", [])})


def _in_style(text: str) -> Iterator[str]:
    for found in IN_STYLE.finditer(text):
        yield found["url"] or found["sheet"] or ""


def loaded_from_elsewhere(text: str) -> list[str]:
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
    for tag in BeautifulSoup(text, "html.parser").find_all(True):
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
    for address in loaded(data.get("text/html", "")):
        if re.match(r"\s*data:image/svg\+xml\b", address, re.IGNORECASE):
            head, _, body = address.partition(",")
            encoded = head.lower().rstrip().endswith(";base64")
            raw = unquote_to_bytes(body.partition("#")[0])  # where an address ends
            yield base64.b64decode(b"".join(raw.split()), validate=True) if encoded else raw


def broken_drawing(data: dict) -> str:
    """Return what is wrong with the drawings of an output, or of a piece of HTML.

    >>> broken_drawing({"image/svg+xml": "<svg><text>a</svg>"})
    'mismatched tag: line 1, column 14'
    >>> broken_drawing({"image/svg+xml": DRAWN, "text/html": "<p>"})
    ''
    """
    try:
        for one in drawings(data):
            if ET.fromstring(one).tag != "{http://www.w3.org/2000/svg}svg":
                return 'it is no <svg xmlns="http://www.w3.org/2000/svg">'
    except (ET.ParseError, ValueError, LookupError, binascii.Error) as error:
        return str(error)
    return ""


DRAWN = '<svg xmlns="http://www.w3.org/2000/svg"/>'


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
    try:
        inner = [one.decode("utf8", "replace") for one in drawings(data)]
    except (ValueError, binascii.Error):
        inner = []  # said below
    if remote := [address for one in inner for address in loaded_from_elsewhere(one)]:
        return f"loads {remote[0]}, which a drawing may not: draw it"
    if broken := broken_drawing(data):
        return f"holds a drawing that cannot be read ({broken}): run the notebook again"
    return ""


def require_shown_outputs(app, docname, source) -> None:
    """Warn of an output that a page would lose, with its file and cell."""
    if not str(app.env.doc2path(docname)).endswith(".ipynb"):
        return
    try:
        notebook = read_notebook(source[0])
    except SourceError:  # said where it is read
        return
    widgets = notebook.metadata.get("widgets", {})
    states = widgets.get(WIDGET_STATE, {}).get("state", {}) if isinstance(widgets, dict) else {}
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            if says := fault(output.get("data", {}), states):
                LOG.warning("cell %d %s", number, says, location=docname, type="book")


def forbid_remote(app, doctree, docname) -> None:
    """Warn of what the text of a page would load from elsewhere."""
    for node in doctree.findall(nodes.Element):
        if isinstance(node, nodes.image) and REMOTE.match(node.get("uri", "")):
            remote = [node["uri"]]
        elif isinstance(node, nodes.raw) and "html" in node.get("format", ""):
            text = node.astext()
            remote = loaded_from_elsewhere(text) or [word for word in [not_run(text)] if word]
        else:
            continue
        for address in remote:
            where = node
            while not where.line and where.parent:
                where = where.parent
            says = "%s is loaded from elsewhere, which pages may not: store it in the book"
            if not REMOTE.match(address):
                says = (
                    "%s does nothing here, as the policy of pages stops it: store a file, or draw"
                )
            LOG.warning(says, address, location=where, type="book")


def refuse_broken(app, doctree, docname) -> None:
    """Warn of a drawing on the page, or a file of one, that cannot be read."""
    outputs = {  # which `require_shown_outputs` has named, with their cells
        id(node)
        for around in doctree.findall(nodes.container)
        if "cell_output" in around["classes"]
        for node in around.findall(nodes.Element)
    }
    for node in doctree.findall(nodes.Element):
        if id(node) in outputs:
            continue
        if isinstance(node, nodes.image) and node.get("uri", "").lower().endswith(".svg"):
            path = Path(app.env.srcdir, node["uri"])
            name, data = node["uri"], {"image/svg+xml": _text_of(path)}
        elif isinstance(node, nodes.raw) and "html" in node.get("format", ""):
            name, data = "a drawing", {"text/html": node.astext()}
        else:
            continue
        if broken := broken_drawing(data):
            says = "%s cannot be read (%s): draw it again"
            LOG.warning(says, name, broken, location=docname, type="book")


def _look(look, app, doctree) -> None:
    look(app, doctree, app.env.docname)


def _text_of(path: Path) -> str:
    return path.read_text("utf8", "replace") if path.is_file() else DRAWN  # said elsewhere


def setup(app):
    """Register the looks."""
    app.connect("source-read", require_shown_outputs)
    for look in (forbid_remote, refuse_broken):
        app.connect("doctree-read", partial(_look, look))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
