"""Say of a cell and of an exercise what is in it, as classes.

A style sheet could look for itself (`:has`), but a browser would look into every cell again for
each piece of the page that arrives.
"""

from docutils import nodes
from figures import drawing
from folds import fold
from myst_nb.sphinx_ import HideCodeCellNode

# The class of a cell in which this is written.
WRITTEN = {
    "shows-figure": "d2lmini-table",
    "checks": "d2l-check",
    "to-do": "d2l-todo",
    "answers": "d2l-fold",
    "has-bar": 'class="live-bar',
}


def of_cell(cell: nodes.Element) -> set[str]:
    """Return the kinds of a cell."""
    text = "".join(raw.astext() for raw in cell.findall(nodes.raw))
    kinds = {kind for kind, word in WRITTEN.items() if word in text}
    if next(iter(cell.findall(drawing)), None) is not None:
        kinds.add("shows-figure")
    if any(isinstance(one, HideCodeCellNode) for one in cell):
        kinds.add("folded")
    return kinds


def is_exercise(section: nodes.section, cells: list[nodes.Element]) -> bool:
    """Tell whether a section says how hard it is, and has something to fill in or to unfold."""
    says = len(section) > 1 and isinstance(section[1], nodes.paragraph)
    hard = says and section[1].children and isinstance(section[1][0], nodes.emphasis)
    answers = any(isinstance(one, fold) and "dropdown" in one["classes"] for one in section)
    return bool(hard and (answers or any("checks" in cell["classes"] for cell in cells)))


def name_kinds(app, doctree, docname) -> None:
    """Add the classes."""
    for cell in doctree.findall(nodes.container):
        if "cell" in cell["classes"]:
            cell["classes"] += sorted(of_cell(cell))
    for section in doctree.findall(nodes.section):
        cells = [one for one in section if isinstance(one, nodes.container)]
        if is_exercise(section, cells):
            section["classes"].append("exercise")
            if any("checks" in cell["classes"] for cell in cells):
                section["classes"].append("checks-itself")


def setup(app):
    """Register it: what is shown has been chosen by then."""
    app.connect("doctree-resolved", name_kinds)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
