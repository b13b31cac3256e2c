"""What the book needs and its tools do not do: each fix in one place, with its reason."""

import json

from sphinx.util import logging

LOG = logging.getLogger(__name__)


def require_outputs(app, docname, source) -> None:
    """Warn of a notebook cell that was never run.

    The book shows stored outputs and runs nothing, so such a cell would be printed without any.
    """
    if not str(app.env.doc2path(docname)).endswith(".ipynb"):
        return
    cells = json.loads(source[0])["cells"]
    for number, cell in enumerate(cells):
        if cell["cell_type"] == "code" and cell["execution_count"] is None:
            LOG.warning(
                "cell %d was never run: run `make notebooks`", number, location=docname, type="book"
            )


def plain_bibliography(app, pagename, templatename, context, doctree) -> None:
    """Drop the roles of bibliographies, which are not valid where the extension puts them."""
    if body := context.get("body"):
        body = body.replace(
            '<div role="list" class="citation-list">', '<div class="citation-list">'
        )
        context["body"] = body.replace(' role="doc-biblioentry"', "")


def setup(app):
    """Register the fixes."""
    # Jupyter Book sets this for an extension that we do not load.
    app.add_config_value("comments_config", {}, "html")
    app.connect("source-read", require_outputs)
    app.connect("html-page-context", plain_bibliography, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
