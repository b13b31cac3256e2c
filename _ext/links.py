"""What links need that their tools do not do: previews, ways back, and addresses that stay.

A link to the glossary or the bibliography has beside the page what it leads to, where
`previews.mjs` shows it: what a word means, or which work is cited, without leaving the sentence. It
stands in the page, since a page that was opened from a disk may read no other file.
"""

import html
import re

from bs4 import BeautifulSoup
from docutils import nodes
from upstream import citations, short_work

PAGES = ("glossary", "bibliography")
LINK = re.compile(rf'<a class="[^"]*" href="(?:[^"#]*/)?({"|".join(PAGES)})\.html#([^"]+)"')
LIST = "chapters/api"  # the page with all names of the library
ANCHOR = re.compile(r'<a id=(\\?")[\w-]+\1></a>')  # in Markdown, and in the JSON of a notebook
WORKS = re.compile(r'^- <a id="[\s\S]*\Z', re.MULTILINE)  # the list of scripts/anchors.py
ONLY_HERE = re.compile(r"<!--(\s*(?:```|:::)[\s\S]*?)-->")
BACK = re.compile(r'(class="viewcode-back" href="[^"#]*)#([^"]+)"')


def take_for_page(app, docname: str, source: list[str]) -> None:
    """Leave out what programs for notebooks need, and take what they do not show: comments.

    Here places have the same names without anchors, and the list of works is drawn with the places
    that cite them. A directive stands in a comment, `<!-- ::: -->`, where other programs would
    print it.
    """
    text = ANCHOR.sub("", WORKS.sub("```{bibliography}\n```\n", source[0]))
    source[0] = ONLY_HERE.sub(r"\1", text)


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


def heard(app, name: str, says: str) -> str:
    """Return what a link to a term or a work is described by: a formula once, few authors."""
    soup = BeautifulSoup(short_work(app.env, name) or says, "html.parser")
    for part in soup.select(".katex-html, annotation"):
        part.decompose()
    return html.escape(" ".join(soup.get_text().split()))


def add_previews(app, pagename, templatename, context, doctree) -> None:
    """Add a preview for each term and each work that this page links to."""
    if doctree is None or pagename.removeprefix("chapters/") in PAGES:
        return
    body, says = context.get("body", ""), explained(app)
    context["body"] = body + "".join(
        f'<div popover role="tooltip" class="preview" data-of="{page}.html#{name}" '
        f'aria-label="{heard(app, name, says[page, name])}">{says[page, name]}</div>'
        for page, name in dict.fromkeys(LINK.findall(body))
        if (page, name) in says
    )


def add_back_links(app, pagename, templatename, context, doctree) -> None:
    """Say under each cited work where it is cited."""
    body = context.get("body", "")
    if '<div class="citation"' not in body:
        return
    for _, name, cited_in in citations(app.env):
        links = [
            f'<a class="reference internal" href="{context["pathto"](page)}#{place}">'
            f"{html.escape(app.env.titles[page].astext())}</a>"
            for page, place in cited_in
        ]
        body = re.sub(
            rf'(<div class="citation" id="{name}">.*?)</p>',
            lambda found, links=links: f"{found[1]} Cited in {', '.join(links)}.</p>",
            body,
            count=1,
            flags=re.DOTALL,
        )
    context["body"] = body


def lead_back(app, pagename, templatename, context, doctree) -> None:
    """Let a page of sources lead to where each name is described: where a reader imports it from.

    Sphinx takes all names of a file to be described under one module; ours may have different ones.
    """
    if not pagename.startswith("_modules/"):
        return
    objects = app.env.get_domain("py").objects

    def mend(found: re.Match) -> str:
        own = found[2].rpartition(".")[2]
        named = [name for name in objects if name.rpartition(".")[2] == own]
        return f'{found[1]}#{found[2] if found[2] in objects else named[0]}"'

    context["body"] = BACK.sub(mend, context["body"])


def registered(app, uri: str) -> str | None:
    """Let the link check ask whether a DOI is registered: publishers turn programs away."""
    name = uri.removeprefix("https://doi.org/")
    return f"https://doi.org/api/handles/{name}" if name != uri else None
