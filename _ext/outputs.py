"""Bring what the library puts out from a notebook onto a page: figures, tables, cards.

In a notebook a figure is one piece of HTML that holds a light and a dark drawing. On a page each
drawing becomes a file of its own, loaded when it is scrolled to and shown in its theme; the caption
and the label come from the cell's metadata, as for any other figure. Tables and interactive parts
leave their style and script, which are the same in every output, to files that a page loads once.
"""

import base64
import hashlib
import html
import re
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

import d2lmini
from lettering.face import with_face
from lettering.letters import DESK, PHONE, lettered

LIBRARY = Path(d2lmini.__file__).parent / "plotting"
SHARED = ("tables.css", "explorer.mjs")  # what the outputs of the library carry with them
LARGER = 1.3  # than in a notebook, where there is room
COLUMN, PHONE_COLUMN = 640, 350  # pixels: of text, on a desk and on a phone that is 390 wide
BROAD = 920  # text and margin, for a drawing that has another one where there is no margin
SIZE = re.compile(r' width="([\d.]+)" height="([\d.]+)"')
SVG = "data:image/svg+xml;base64,"


class drawing(nodes.General, nodes.Element):
    """A figure of d2lmini: the two drawings as SVG, their description, and what follows them."""


def find_outputs(document: nodes.document, env) -> None:
    """Put a `drawing` in the place of each output that is one, and take others off their card."""
    for raw in list(document.findall(nodes.raw)):
        if 'class="d2lmini-' not in raw.astext():
            continue
        found = BeautifulSoup(raw.astext(), "html.parser").find(True)
        left_out = found.find_all(["style", "script"], recursive=False)
        for part in [*left_out, *found.select(":scope > .d2lmini-still")]:  # for who has a kernel
            part.decompose()
        if "d2lmini-figure" in found["class"]:
            new = taken_apart(found)
        else:
            new = nodes.raw("", str(found), format="html", classes=["output"])
        # Not replace_self, which keeps the class that a theme puts on a light card.
        figure = raw.parent
        figure.replace(raw, new)
        if figure.tagname == "captioned" and new.get("more"):  # its numbers follow the caption
            folded = f'<div class="d2lmini-figure numbers">{new["more"]}</div>'
            figure.append(nodes.raw("", folded, format="html"))
            new["more"] = ""


def taken_apart(found) -> drawing:
    """Return a figure as its drawings, its description, and what follows them."""
    drawn = found.find(class_="d2lmini-drawing", recursive=False).extract()
    image = drawn.img
    others = dict(re.findall(r"--([a-z-]+):url\(([^)]*)\)", drawn["style"]))
    phone = ("phone", "phone-dark") if "phone" in others else ()
    return drawing(
        light=decoded(image["src"]),
        dark=decoded(others["dark"]),
        phone=[decoded(others[name]) for name in phone],
        alt=image["alt"],
        width=image["width"],
        height=image["height"],
        more=found.decode_contents(),
    )


def decoded(address: str) -> bytes:
    """Return what a data address holds."""
    if not address.startswith(SVG):
        raise ValueError(f"not a drawing: {address[:60]}")
    return base64.b64decode(address.removeprefix(SVG))


def stored(writer, svg: bytes) -> str:
    """Write a drawing into a file of its own; return its address."""
    folder = Path(writer.builder.outdir, writer.builder.imagedir)
    folder.mkdir(parents=True, exist_ok=True)
    drawn = with_face(svg)
    name = hashlib.sha256(drawn).hexdigest()[:16] + ".svg"
    (folder / name).write_bytes(drawn)
    return f"{writer.builder.imgpath}/{name}"


def visit_drawing(writer, node) -> None:
    """Write an image for each theme, and their files; a phone has its own."""
    broad = bool(node["phone"]) and int(node["width"]) > COLUMN
    most = BROAD if broad else COLUMN
    shown = min(most, round(LARGER * int(node["width"])))
    kind = "d2lmini-figure broad" if broad else "d2lmini-figure"
    writer.body.append(f'<div class="{kind}" style="--wide:{shown}px"><div>')
    drawings = [node["light"], node["dark"]]
    phones = node["phone"] or drawings
    about = {name: node[name] for name in ("alt", "width", "height")} | {"loading": "lazy"}
    for theme, svg, phone in zip(("light", "dark"), drawings, phones, strict=True):
        small = lettered(phone, min(PHONE_COLUMN, shown), PHONE)
        width, height = SIZE.search(small.decode()).groups()
        until = 979 if broad else 576
        writer.body.append(
            f'<picture><source media="(max-width: {until}px)" srcset="{stored(writer, small)}" '
            f'width="{width}" height="{height}" />'
        )
        about |= {"CLASS": f"only-{theme}", "src": stored(writer, lettered(svg, shown, DESK))}
        writer.body.append(writer.emptytag(node, "img", "", **about) + "</picture>")
    up = node.parent
    while up is not None and up.tagname != "captioned":  # its numbers come after its caption
        up = up.parent
    writer.body.append(f"</div>{'' if up is not None else node['more']}</div>")


NODES = {drawing: (visit_drawing, lambda writer, node: None)}
# The solution of an exercise, as a card shows it.
SOLUTION = re.compile(
    r'(<details class="d2l-fold".*?</summary>)<pre[^>]*><code[^>]*>(.*?)</code></pre>', re.DOTALL
)


def colour_solutions(app, pagename, templatename, context, doctree) -> None:
    """Give the code of a solution the colours that code has everywhere else."""

    def colour(found: re.Match) -> str:
        return found[1] + highlight(html.unescape(found[2]), PythonLexer(), HtmlFormatter())

    if body := context.get("body"):
        context["body"] = SOLUTION.sub(colour, body)


def add_files(app, config) -> None:
    """Ship the style and the script that the library's outputs would carry."""
    config.html_static_path += [str(LIBRARY / name) for name in SHARED]


def load_files(app, pagename, templatename, context, doctree) -> None:
    """Load the script on the pages that need it; the styles are in the one sheet."""
    if 'class="d2lmini-explorer' in context.get("body", ""):
        # No module, although it could be one: those do not load from a folder on a disk.
        app.add_js_file("explorer.mjs", loading_method="defer")
