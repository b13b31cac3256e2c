"""Fold an admonition of the class ``dropdown`` with the browser's own means, without a script.

The same for code that a notebook hides, under the name that its cell gives to myst-nb
(``mystnb: {code_prompt_show: ...}``), or `nb_code_prompt_show` in the configuration.
"""

import html
import re

from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.transforms.post_transforms import SphinxPostTransform

# The solution of an exercise, as a card shows it.
SOLUTION = re.compile(
    r'(<details class="d2l-fold".*?</summary>)<pre[^>]*><code[^>]*>(.*?)</code></pre>', re.DOTALL
)


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
    writer.body.append(
        f'<details class="hide"><summary>{html.escape(node["prompt_show"])}</summary>\n'
    )


def colour_solutions(app, pagename, templatename, context, doctree) -> None:
    """Give the code of a solution the colours that code has everywhere else."""

    def colour(found: re.Match) -> str:
        code = html.unescape(found[2])
        return found[1] + highlight(code, PythonLexer(), HtmlFormatter())

    if body := context.get("body"):
        context["body"] = SOLUTION.sub(colour, body)


def setup(app):
    """Register the nodes and the transform."""
    app.add_node(HideCodeCellNode, override=True, html=(visit_hidden, depart_fold))
    app.add_node(fold, html=(visit_fold, depart_fold))
    app.add_post_transform(FoldDropdowns)
    app.connect("html-page-context", colour_solutions)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
