"""Keep the addresses of the library's names, and lead back to them from their sources.

Each name is described on a page of its module. Before there were such pages, all stood on
``chapters/api.html``, so a link to ``api.html#d2lmini.softmax`` still leads to that name there: its
row, which leads on.

The pages of the sources take each name of a file to be described under one module. Ours are where a
reader imports them from, so two of one file may have different ones.
"""

import re

from docutils import nodes

LIST = "chapters/api"


def keep_addresses(app, doctree, docname) -> None:
    """Give each row of the list the identifiers of what it names, and of that one's methods."""
    if docname != LIST or app.builder.name != "html":
        return
    objects = app.env.get_domain("py").objects
    for row in doctree.findall(nodes.row):
        for link in row.findall(nodes.reference):
            name = link.get("reftitle", "")
            row[0]["ids"] += [
                entry.node_id
                for one, entry in objects.items()
                if (one == name or one.startswith(f"{name}.")) and not entry.aliased
            ]


BACK = re.compile(r'(class="viewcode-back" href="[^"#]*)#([^"]+)"')


def lead_back(app, pagename, templatename, context, doctree) -> None:
    """Let a source lead to the place where its name is described."""
    if not pagename.startswith("_modules/"):
        return
    objects = app.env.get_domain("py").objects

    def mend(found: re.Match) -> str:
        own = found[2].rpartition(".")[2]
        named = [name for name in objects if name.rpartition(".")[2] == own]
        return f'{found[1]}#{found[2] if found[2] in objects else named[0]}"'

    context["body"] = BACK.sub(mend, context["body"])


def setup(app):
    """Register the steps."""
    app.connect("doctree-resolved", keep_addresses)
    app.connect("html-page-context", lead_back)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
