"""Keep the addresses of the library's names on the page that lists them.

Each name is described on a page of its module. Before there were such pages, all stood on
``chapters/api.html``, so a link to ``api.html#d2lmini.softmax`` still leads to that name there: its
row, which leads on.
"""

from docutils import nodes

LIST = "chapters/api"


def keep_addresses(app, doctree, docname) -> None:
    """Give each row of the list the identifiers of what it names, and of that one's methods."""
    if docname != LIST:
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


def setup(app):
    """Register the step."""
    app.connect("doctree-resolved", keep_addresses)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
