"""Fold an admonition of the class ``dropdown`` with the browser's own means, without a script.

The same for code that a notebook hides, under a name that says what it is.
"""

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from sphinx.transforms.post_transforms import SphinxPostTransform

# What a reader finds in a cell of which the code is hidden ("source"), or all of it ("content").
HIDDEN = {"source": "The code of this figure", "content": "The same, computed"}


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
    writer.body.append("<summary>")
    for child in title.children:
        child.walkabout(writer)
    writer.body.append("</summary>\n")


def depart_fold(writer, node) -> None:
    """Close it."""
    writer.body.append("</details>\n")


def visit_hidden(writer, node) -> None:
    """Write the summary of a cell that a notebook hides."""
    title = next(name for word, name in HIDDEN.items() if word in node["prompt_show"])
    writer.body.append(f'<details class="hide"><summary>{title}</summary>\n')


def setup(app):
    """Register the nodes and the transform."""
    app.add_node(HideCodeCellNode, override=True, html=(visit_hidden, depart_fold))
    app.add_node(fold, html=(visit_fold, depart_fold))
    app.add_post_transform(FoldDropdowns)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
