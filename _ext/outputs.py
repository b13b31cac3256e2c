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
from functools import partial
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from sources import SourceError, read_notebook
from sphinx.util import logging

LOG = logging.getLogger(__name__)
WIDGET = "application/vnd.jupyter.widget-view+json"
SHOWN = {  # the forms of an output that a page can show
    "text/html",
    "text/markdown",
    "text/latex",
    "text/plain",
    "image/svg+xml",
    "image/png",
    "image/jpeg",
}
DRAWING = re.compile(r"data:image/svg\+xml;base64,([\w+/=]*)")
REMOTE = re.compile(r"(https?:)?//", re.IGNORECASE)
LOADING = {"img": "src", "script": "src", "iframe": "src", "video": "src", "audio": "src"}
LOADING |= {"source": "src", "embed": "src", "object": "data", "link": "href", "image": "href"}


def loaded_from_elsewhere(text: str) -> list[str]:
    """Return the addresses on other servers that a piece of HTML would load.

    >>> loaded_from_elsewhere('<a href="https://a.org">a</a> <img src="https://b.org/b.png">')
    ['https://b.org/b.png']
    """
    found = []
    for tag in BeautifulSoup(text, "html.parser").find_all(list(LOADING)):
        address = tag.get(LOADING[tag.name]) or ""
        if REMOTE.match(address):
            found.append(address)
    return found


def broken_drawing(data: dict) -> str:
    """Return what is wrong with the drawings of an output, or of a piece of HTML.

    >>> broken_drawing({"image/svg+xml": "<svg><text>a</svg>"})
    'mismatched tag: line 1, column 14'
    >>> broken_drawing({"image/svg+xml": "<svg/>", "text/html": "<p>"})
    ''
    """
    drawings = [data["image/svg+xml"].encode()] if "image/svg+xml" in data else []
    try:
        for address in DRAWING.findall(data.get("text/html", "")):
            drawings.append(base64.b64decode(address, validate=True))
        for one in drawings:
            ET.fromstring(one)
    except (ET.ParseError, binascii.Error) as error:
        return str(error)
    return ""


def require_shown_outputs(app, docname, source) -> None:
    """Warn of an output that a page would lose, with its file and cell."""
    if not str(app.env.doc2path(docname)).endswith(".ipynb"):
        return
    try:
        notebook = read_notebook(source[0])
    except SourceError:  # said where it is read
        return
    states = notebook.metadata.get("widgets", {})
    for number, cell in enumerate(notebook.cells):
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if WIDGET in data and not states:
                says = "holds a widget without its state: show a figure or a table in its place"
            elif data and not SHOWN & set(data):
                says = f"holds {', '.join(sorted(data))}, which no page shows: print or draw it"
            elif remote := loaded_from_elsewhere(data.get("text/html", "")):
                says = f"loads {remote[0]}, which pages may not: store it in the book, or draw it"
            elif broken := broken_drawing(data):
                says = f"holds a drawing that cannot be read ({broken}): run the notebook again"
            else:
                continue
            LOG.warning("cell %d %s", number, says, location=docname, type="book")


def forbid_remote(app, doctree, docname) -> None:
    """Warn of what the text of a page would load from elsewhere."""
    for node in doctree.findall(nodes.Element):
        if isinstance(node, nodes.image) and REMOTE.match(node.get("uri", "")):
            remote = [node["uri"]]
        elif isinstance(node, nodes.raw) and "html" in node.get("format", ""):
            remote = loaded_from_elsewhere(node.astext())
        else:
            continue
        for address in remote:
            where = node
            while not where.line and where.parent:
                where = where.parent
            says = "%s is loaded from elsewhere, which pages may not: store it in the book"
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
    return path.read_text("utf8", "replace") if path.is_file() else "<svg/>"  # said elsewhere


def setup(app):
    """Register the looks."""
    app.connect("source-read", require_shown_outputs)
    for look in (forbid_remote, refuse_broken):
        app.connect("doctree-read", partial(_look, look))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
