"""Fold an admonition of the class ``dropdown`` with the browser's own means, without a script."""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform


class fold(nodes.General, nodes.Element):
    """A title that opens what follows it."""


class FoldDropdowns(SphinxPostTransform):
    """Put a `fold` in the place of each admonition that is to be folded."""

    default_priority = 20
    formats = ("html",)

    def run(self, **kwargs) -> None:
        """Replace them, the inner ones too."""
        for node in list(self.document.findall(nodes.Admonition)):
            if "dropdown" in node["classes"] and isinstance(node[0], nodes.title):
                node.replace_self(
                    fold("", *node.children, ids=node["ids"], classes=node["classes"])
                )


def visit_fold(writer, node) -> None:
    """Write the summary, then open the rest."""
    title = node.pop(0)
    writer.body.append(writer.starttag(node, "details", CLASS="admonition"))
    writer.body.append('<summary class="admonition-title">')
    for child in title.children:
        child.walkabout(writer)
    writer.body.append("</summary>\n")


def depart_fold(writer, node) -> None:
    """Close it."""
    writer.body.append("</details>\n")


def setup(app):
    """Register the node and its transform."""
    app.add_node(fold, html=(visit_fold, depart_fold))
    app.add_post_transform(FoldDropdowns)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
