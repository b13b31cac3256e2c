"""A book of a few pages, with this project's own configuration, and what its pages hold."""

import functools
import json
import os
import shutil
import subprocess

import nbformat

from d2lmini.plotting import show_heatmaps
from scripts import notebooks
from scripts.notebooks import read_notebook
from tests.book.building import ROOT

GOOD = "# A page\n\nText with $x^2$ and {cite:t}`someone2020`.\n\n## How to run it\n\nSo.\n"
BIB = "@book{someone2020, author = {Some One}, title = {A Book}, publisher = {P}, year = {2020}}\n"
DRAW = "show_heatmaps([[1.0, 0.0]], 'Keys', 'Queries')"
GLOSSARY = """# Glossary

<a id="term-query"></a>
**query**\\
What.

<a id="term-soft-lookup"></a>
**soft lookup**\\
A mix, of a [query](#term-query).

**Nadaraya–Watson regression**\\
A mean.
"""


def markdown(source, **metadata):
    return {"cell_type": "markdown", "source": source, "metadata": metadata}


def code(source, *tags, **metadata):
    return {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)} | metadata}


TITLE = markdown("# Plain\n\n*You will see.*\n\nText.")
NAMED = {"code_prompt_show": "The code that checks 1 < 2"}
FIGURE = code(DRAW, "hide-input")
CAPTION = markdown("**Figure 2.1.** What $n$ queries do, as [(2.1)](#eq-2-1) says.")


ELSEWHERE = """# Elsewhere

See [(2.1)](02-plain.ipynb#eq-2-1), [Figure 2.1](02-plain.ipynb#figure-2-1),
[why](02-plain.ipynb#why-divide-by-d), [query](glossary.md#term-query) and
[Some One](bibliography.md#someone2020) and [a mean](glossary.md#term-nadarayawatson-regression),
or [elsewhere](https://example.org/).
"""
DECORATIVE = """# Two pictures with nothing to say

```{image} _static/card.png
:class: decorative
```

<p><img src="../_static/card.png" alt="" class="decorative"></p>
"""
CELLS = [
    TITLE,
    markdown(
        "## First part\n\nA [query](glossary.md#term-query), [mixed](glossary.md#term-soft-lookup)"
        ", [a formula](#eq-2-2), [Figure 2.1](#figure-2-1), [the next part](#why-divide-by-d), "
        "[Some One](bibliography.md#someone2020), [again](bibliography.md#someone2020).\n\n"
        "$$\n\\mathbf{o} = x \\tag{2.1}\n$$\n\n$$\n\\begin{aligned} a &= b \\\\ c &= d "
        "\\end{aligned}\n\\tag{2.2}\n$$"
    ),
    FIGURE,
    CAPTION,
    markdown(
        "## Why divide by √d\n\n> **Takeaways**\n>\n> - One.\n\n> **Optional.** With slopes.\n\n"
        "> A quote."
    ),
    code("assert 1 + 1 == 2", "hide-cell", mystnb=NAMED),
    markdown(
        "## Exercises\n\n### One\n\n*Easy, 10 minutes.* Do it.\n\n<details><summary>Answer: why "
        "not</summary>\n\nBecause $x$.\n\n- One.\n\n</details>\n\nAfter it."
    ),
]


def stored(cells):
    """Return the text of a notebook of these cells, as it is after a run."""
    made = read_notebook(json.dumps({"nbformat": 4, "cells": cells}))
    notebooks.normalise(made)
    code = [cell for cell in made.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code, 1):
        cell.execution_count = number
        if cell.source == DRAW:
            cell.outputs = drawing()
    return notebooks.text_of(made)


@functools.cache
def drawing():
    """Return what the cell that draws puts out."""
    data, metadata = show_heatmaps([[1.0, 0.0]], "Keys", "Queries")._repr_mimebundle_()
    return [nbformat.v4.new_output("display_data", data, metadata=metadata)]


def pages():
    """Return the pages of a small book that has something of each kind."""
    texts = {"glossary.md": GLOSSARY, "more.md": ELSEWHERE, "marked.md": DECORATIVE}
    return {"02-plain.ipynb": stored(CELLS)} | texts


def tiny_book(folder, pages):
    """Write a book of these pages with this project's own configuration."""
    (folder / "chapters" / "_static").mkdir(parents=True)
    shutil.copy(ROOT / "_config.yml", folder)
    for name in ("_ext", "chapters/_code", "lettering", "live_cells", "theme"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for file in (ROOT / "chapters" / "_static").glob("*.*"):
        shutil.copy(file, folder / "chapters" / "_static")
    (folder / "chapters" / "references.bib").write_text(BIB)
    (folder / "chapters" / "index.md").write_text(GOOD)
    (folder / "chapters" / "bibliography.md").write_text(
        "# Bibliography\n\n```{bibliography}\n```\n"
    )
    for name, text in pages.items():
        (folder / "chapters" / name).write_text(text)
    parts = [{"caption": "Chapters", "numbered": True}, {"caption": "More"}]
    for name in ("bibliography.md", *pages):
        part = parts[not name.endswith(".ipynb")]
        part.setdefault("chapters", []).append({"file": f"chapters/{name}"})
    toc = {"format": "jb-book", "root": "chapters/index", "parts": parts}
    (folder / "_toc.yml").write_text(json.dumps(toc))  # JSON is YAML
    return folder


WITHOUT_GIT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def committed(folder, day):
    """Commit all that is in a folder on a day; it becomes a repository if it is none."""
    when = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{day}T12:00Z")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], cwd=folder, env=WITHOUT_GIT | when, check=True)
