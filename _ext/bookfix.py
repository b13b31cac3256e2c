"""What the book needs and its tools do not do: each fix in one place, with its reason."""

import html
import json
import re
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from sources import SourceError, read_notebook
from sphinx.util import logging

LOG = logging.getLogger(__name__)


UNREADABLE = {"cell_type": "markdown", "id": "unreadable", "metadata": {}}


def require_notebooks(app, docname, source) -> None:
    """Warn of a notebook that cannot be read, and of a cell that was never run.

    The first is left out, so that the others are built and say what is wrong with them. The book
    shows stored outputs and runs nothing, so the second would be printed without any.
    """
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".ipynb":
        return
    try:
        notebook = read_notebook(source[0])
    except SourceError as error:
        LOG.warning("%s %s", path.name, error, location=docname, type="book")
        cell = UNREADABLE | {"source": f"# {path.stem}\n\nThis notebook cannot be read."}
        notebook = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == "code" and cell["execution_count"] is None:
            LOG.warning(
                "cell %d was never run: run `make notebooks`", number, location=docname, type="book"
            )
    source[0] = json.dumps(notebook)


A_PATH = re.compile(r"^\S*[/\\]\S*$|\.(png|svg|jpe?g|gif|webp)$", re.IGNORECASE)


def require_descriptions(app, doctree, docname) -> None:
    """Warn of a picture that says nothing to who cannot see it.

    One that has nothing to say is marked: `:class: decorative` in MyST, `class="decorative"` in
    HTML. This is asked of the pictures that a page shows, so after the forms of outputs are chosen.
    """
    for node in doctree.findall(nodes.Element):
        if isinstance(node, nodes.raw):
            pictures = [
                (image.get("alt", ""), image.get("src", ""), image.get("class", []))
                for image in BeautifulSoup(node.astext(), "html.parser").find_all("img")
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
                message = "%s has no description: say in its alt text what it shows"
                name = source if len(source) < 80 else "a picture"
                where = node
                while not where.line and where.parent:  # within a paragraph it has none
                    where = where.parent
                LOG.warning(message, name, location=where, type="book")


# What stands in the text of a page, and what has to stand there instead.
IN_TEXT = [
    # The roles of bibliographies are not valid where the extension puts them.
    (r'<div role="list" class="citation-list">', '<div class="citation-list">'),
    (r' role="doc-biblioentry"', ""),
    # The corner of a table is no heading when it is empty.
    (r'<th class="head">(<p></p>)?\s*</th>', "<td></td>"),
    # The line under a title, in which a page says what it is for.
    (r"(</h1>\s*)<p>(<em>((?!</?(p|em)>)[\s\S])*</em></p>)", r'\1<p class="promise">\2'),
    # As attributes, the sizes keep the place of a picture free while it is loaded, at any width.
    (
        r'(<img[^>]*) style="width: (\d+)px; height: (\d+)px;" />',
        r'\1 width="\2" height="\3" loading="lazy" />',
    ),
]


def mend_text(app, pagename, templatename, context, doctree) -> None:
    """Replace what is not right in the text of a page."""
    if body := context.get("body"):
        for pattern, instead in IN_TEXT:
            body = re.sub(pattern, instead, body)
        context["body"] = body


def back_links(app, pagename, templatename, context, doctree) -> None:
    """Say under each cited work where it is cited."""
    body = context.get("body", "")
    if '<div class="citation"' not in body:
        return
    domain = app.env.get_domain("cite")
    cited_in: dict[str, dict[str, str]] = {}  # work: {page: the first place on it}
    for ref in sorted(domain.citation_refs, key=lambda ref: (ref.docname, ref.line)):
        for target in ref.targets:
            cited_in.setdefault(target.key, {}).setdefault(ref.docname, ref.citation_ref_id)
    for citation in domain.citations:
        links = [
            f'<a class="reference internal" href="{context["pathto"](page)}#{place}">'
            f"{html.escape(app.env.titles[page].astext())}</a>"
            for page, place in cited_in.get(citation.key, {}).items()
        ]
        body = re.sub(
            rf'(<div class="citation" id="{citation.citation_id}">.*?)</p>',
            lambda found, links=links: f"{found[1]} Cited in {', '.join(links)}.</p>",
            body,
            count=1,
            flags=re.DOTALL,
        )
    context["body"] = body


def registered(app, uri: str) -> str | None:
    """Let the link check ask whether a DOI is registered: publishers turn programs away."""
    name = uri.removeprefix("https://doi.org/")
    return f"https://doi.org/api/handles/{name}" if name != uri else None


def setup(app):
    """Register the fixes."""
    # Jupyter Book sets this for an extension that we do not load.
    app.add_config_value("comments_config", {}, "html")
    app.connect("linkcheck-process-uri", registered)
    app.connect("source-read", require_notebooks)
    app.connect("doctree-resolved", require_descriptions)
    app.connect("html-page-context", mend_text, priority=900)
    app.connect("html-page-context", back_links, priority=910)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
