"""How Jupyter exports a chapter as HTML: linked as the book, and without the code that it folds.

    jupyter nbconvert --to html --config scripts/jupyter_config.py mine/03-scaled-dot-product.ipynb

`make lab` gives it to JupyterLab, whose menu exports as well. In a notebook, links lead to the
files beside it. From an exported page they lead to the published book or, where it has no address,
to the one that `make book` has built.
"""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
PAGE = re.compile(r"(?<=\]\()([\w./-]+)\.(?:md|ipynb)(?=[#)])")
FOLDED = {"hide-input", "hide-cell", "remove-cell"}


def as_in_the_book(notebook, resources):
    """Lead links to the pages of the book, and leave out the code that these fold."""
    public = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["sphinx"]["config"]["public"]
    book = (public["address"] or (ROOT / "_build/html").as_uri()).rstrip("/")
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = PAGE.sub(rf"{book}/chapters/\1.html", cell.source)
        elif FOLDED & {*cell.metadata.get("tags", [])}:
            cell.metadata["transient"] = {"remove_source": True}
    return notebook, resources


# Jupyter gives it:
get_config().HTMLExporter.preprocessors = [as_in_the_book]  # type: ignore[name-defined]  # noqa: F821
