"""Put beside a page what its links to the glossary and the bibliography lead to.

`previews.mjs` shows it where the pointer or the keyboard is: what a word means, or which work is
cited, without leaving the sentence. The text stands in the page, since a page that was opened from
a disk may read no other file.
"""

import re

from bs4 import BeautifulSoup
from docutils import nodes

PAGES = ("glossary", "bibliography")
LINK = re.compile(rf'<a class="[^"]*" href="(?:[^"#]*/)?({"|".join(PAGES)})\.html#([^"]+)"')


def explained(app) -> dict[tuple[str, str], str]:
    """Return what each term means and each work is, as HTML; it is drawn once a build."""
    if not hasattr(app, "explained"):
        app.explained = {}
        for page in PAGES:
            if f"chapters/{page}" not in app.env.found_docs:
                continue
            doctree = app.env.get_and_resolve_doctree(f"chapters/{page}", app.builder)
            for item in doctree.findall(nodes.definition_list_item):
                says = drawn(app, item.next_node(nodes.definition)[0])
                for term in item.findall(nodes.term):
                    app.explained |= {(page, name): says for name in term["ids"]}
            for work in doctree.findall(nodes.citation):
                says = drawn(app, work.next_node(nodes.paragraph))
                app.explained |= {(page, name): says for name in work["ids"]}
                work.clear()  # or its own page, which fills the same node again, would say it twice
    return app.explained


def drawn(app, node: nodes.Node) -> str:
    """Return a node as HTML in which nothing leads anywhere or has a name of its own."""
    soup = BeautifulSoup(app.builder.render_partial(node)["fragment"], "html.parser")
    for link in soup.find_all("a"):
        link.unwrap()
    for tag in soup.find_all(id=True):
        del tag["id"]
    return str(soup).strip()


def add(app, pagename, templatename, context, doctree) -> None:
    """Add a preview for each term and each work that this page links to."""
    if doctree is None or pagename.removeprefix("chapters/") in PAGES:
        return
    body, says = context.get("body", ""), explained(app)
    context["body"] = body + "".join(
        f'<div popover class="preview" data-of="{page}.html#{name}">{says[page, name]}</div>'
        for page, name in dict.fromkeys(LINK.findall(body))
        if (page, name) in says
    )


def setup(app):
    """Register the step."""
    app.connect("html-page-context", add, priority=920)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
