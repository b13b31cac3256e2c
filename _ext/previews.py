"""Put beside a page what its links to the glossary and the bibliography lead to.

`previews.mjs` shows it where the pointer or the keyboard is: what a word means, or which work is
cited, without leaving the sentence. The text stands in the page, since a page that was opened from
a disk may read no other file.
"""

import re

from bs4 import BeautifulSoup
from docutils import nodes

PAGES = {"chapters/glossary": "In the glossary", "chapters/bibliography": "In the bibliography"}
LINK = re.compile(r'<a class="reference internal" href="(?:[^"#]*/)?(\w+)\.html#([^"]+)"')


def explained(app) -> dict[str, dict[str, str]]:
    """Return what each term and each work says, as HTML without links, drawn once a build."""
    if not hasattr(app, "explained"):
        app.explained = {page: {} for page in PAGES}
        for page, found in app.explained.items():
            if page not in app.env.found_docs:
                continue
            doctree = app.env.get_and_resolve_doctree(page, app.builder)
            for item in doctree.findall(nodes.definition_list_item):
                body = item.next_node(nodes.definition)
                for term in item.findall(nodes.term):
                    for name in term["ids"]:
                        found[name] = drawn(app, body.children[:1])
    return app.explained


def drawn(app, parts: list[nodes.Node]) -> str:
    """Return nodes as HTML in which nothing leads anywhere or has a name."""
    html = "".join(app.builder.render_partial(part)["fragment"] for part in parts)
    return unlinked(BeautifulSoup(html, "html.parser"))


def unlinked(soup: BeautifulSoup) -> str:
    """Return HTML without links and identifiers."""
    for link in soup.find_all("a"):
        link.unwrap()
    for tag in soup.find_all(True):
        del tag["id"]
    return str(soup).strip()


def works(app) -> dict[str, str]:
    """Return what the bibliography says of each work."""
    domain = app.env.get_domain("cite")
    return {citation.citation_id: citation for citation in domain.citations}


def add(app, pagename, templatename, context, doctree) -> None:
    """Add a preview for each term and work that this page links to."""
    body = context.get("body", "")
    if doctree is None or pagename in PAGES:
        return
    wanted = dict.fromkeys(LINK.findall(body))
    texts = explained(app)
    boxes = []
    for page, name in wanted:
        if text := texts.get(f"chapters/{page}", {}).get(name):
            boxes.append(f'<div popover class="preview" data-of="{page}.html#{name}">{text}</div>')
    context["body"] = body + "".join(boxes)


def setup(app):
    """Register the step."""
    app.connect("html-page-context", add, priority=920)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
