"""A chapter opened in Jupyter, VS Code, Colab or on GitHub reads as its page does.

A chapter's Markdown is read here as those programs read it: CommonMark with tables and
`$`-formulas. Each function returns what is wrong, in words that say what to do.
"""

import json
import re
from functools import cache
from itertools import pairwise

import pytest
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin

from scripts import anchors, notebooks
from scripts.notebooks import read_notebook, wrong_numbers

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))
PAGES = sorted(notebooks.CHAPTERS.glob("**/*.md"))
each = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
READER = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)
parsed = cache(READER.parse)  # one text is asked many things

# What a plain reader would show as it was typed, and what to write instead.
RAW = {
    "a role": (r"\{[A-Za-z][\w:.+-]*\}$", "write a link, or the word itself"),
    "a target": (r"^\([\w-]+\)=", "run `python scripts/anchors.py`"),
    "a directive": (r"^(:::+|```+|~~~+)\s*\{", "write a quote, <details> or $$"),
    "an attribute": (r"\{[#.][\w-]+[^}]*\}", "leave it out"),
    "a substitution": (r"\{\{.*?\}\}", "write the value"),
    "a footnote": (r"\[\^[^\]]+\]", "write it into the text"),
    "a comment": (r"^%", "leave it out"),
    "the label of a formula": (r"^\s*\([\w-]+\)\s*$", r"write \tag{2.1} into the formula"),
    "TeX outside of $": (r"\\(?:frac|sum|mathbf|sqrt|top|operatorname|begin|tag)\b", "write $…$"),
}
ALLOWED_HTML = re.compile(
    r"(<details>\s*)?<summary>.*?</summary>\s*|<details>\s*|</details>\s*", re.S
)
CAPTION = re.compile(r"\*\*Figure ([\w.]*\w)\.?\*\*")
A_CAPTION = re.compile(r"\*\*Figure \d+\.\d+\.\*\* \S")
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')
FORM = "a caption has a cell of its own, of the form **Figure 2.1.** Whole sentences."


def read(path):
    return read_notebook(path.read_text("utf8"))


def texts(notebook):
    return [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]


def raw_markup(text):
    """Return what a plain reader would show as it was typed."""
    found = []
    for token in parsed(text):
        if token.type == "fence" and token.info.startswith("{"):
            found.append(f"a directive, {token.info!r}: {RAW['a directive'][1]}")
        if token.type == "html_block" and not ALLOWED_HTML.fullmatch(token.content):
            found.append(
                f"HTML, {token.content[:40]!r}: write Markdown (only <details> and <summary> may "
                "stand there, with blank lines around what they hold)"
            )
        if token.type == "math_block_label":
            found.append(f"a label, {token.info!r}: {RAW['the label of a formula'][1]}")
        for child in token.children or []:
            if child.type == "html_inline" and not re.fullmatch(
                r'<a id="[\w-]+">|</a>', child.content
            ):
                found.append(f"HTML, {child.content!r}: write Markdown")
            if child.type == "text":
                found += [
                    f"{kind}, {match.group()!r}: {instead}"
                    for kind, (pattern, instead) in RAW.items()
                    if (match := re.search(pattern, child.content))
                ]
    return found


def loose_captions(notebook):
    """Return captions that do not stand, alone, in the cell after the one that draws."""
    found = []
    for before, cell in pairwise([None, *notebook.cells]):
        if cell.cell_type != "markdown" or not CAPTION.search(cell.source):
            continue
        blocks = [one for one in parsed(cell.source) if one.level == 0 and one.nesting == 1]
        if not A_CAPTION.match(ANCHOR.sub("", cell.source).lstrip()) or len(blocks) != 1:
            found.append(f"{cell.id}: {FORM}")
        if before is None or before.cell_type != "code":
            found.append(f"{cell.id}: before it stands the code cell that draws the figure")
    return found


FIRST_SCREEN = 250  # words: more stand on no screen, and a reader decides there


def bad_opening(notebook):
    """What a chapter is for is asked and said at once, and drawn on the first screen."""
    opening = r"(<a.*\n)?# \S.*\n\n\*\*\S.*\?\*\*\n\n\*You will \S[^*]*\*(\n|$)"
    first, *_ = said = texts(notebook)
    before, caption, _ = "\n".join(said).partition("**Figure ")
    found = [] if re.match(opening, first) else [f"a title, a question, a promise: {first[:200]}"]
    if not caption or len(before.split()) > FIRST_SCREEN:
        found.append("draw the idea on the first screen")
    return found


@each
def test_a_chapter_reads_in_every_program_as_on_its_page(path):
    notebook = read(path)
    found = [said for text in texts(notebook) for said in raw_markup(text)]
    found += wrong_numbers(notebook.cells, path.stem)
    assert found + loose_captions(notebook) + bad_opening(notebook) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_other_pages_read_well_too(path):
    """JupyterLab opens them from a link; what only a page of the book shows is a comment there."""
    found = raw_markup(path.read_text("utf8"))
    assert [one for one in found if not one.startswith("HTML")] == []


def test_what_is_linked_has_an_anchor_and_nothing_else():
    """Programs for notebooks name headings each in its way, and figures and formulas not at all."""
    wrong = [f"{page.name}: {text[:80]}" for page, _, text in anchors.missing(anchors.all_pages())]
    assert wrong == [], "run `python scripts/anchors.py`"


# A text, and what is said of it: one for each way in which a text is read.
BAD = {
    "A {term}`query` is asked.": "a role",
    "```{math}\n:label: eq\nx\n```": "a directive",
    "$$x$$ (eq-one)": "a label",
    "A <span>word</span>.": "HTML",
    "<details><summary>Answer</summary>\nno blank line\n</details>": "HTML",
    r"The root \sqrt{d}.": "TeX outside of $",
}


@pytest.mark.parametrize("text", BAD)
def test_what_is_not_plain_is_named(text):
    assert any(found.startswith(BAD[text]) for found in raw_markup(text))


def test_a_chapter_that_begins_or_draws_otherwise_is_found():
    cells = ["# A\n\nNo question.", "Text.", "**Figure 1.2.** A."]
    made = [{"cell_type": "markdown", "source": text} for text in cells]
    notebook = read_notebook(json.dumps({"nbformat": 4, "cells": made}))
    assert len(loose_captions(notebook)) == len(bad_opening(notebook)) == 1
    assert list(wrong_numbers(notebook.cells, "01-one"))
