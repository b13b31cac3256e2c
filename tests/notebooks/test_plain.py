"""A chapter opened in Jupyter, VS Code, Colab or on GitHub reads as its page does."""

import json
import re

import pytest

from scripts import anchors, notebooks
from scripts.notebooks import read_notebook, wrong_numbers
from tests.notebooks import plain

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))
PAGES = sorted(notebooks.CHAPTERS.glob("**/*.md"))
each = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def read(path):
    return json.loads(path.read_text("utf8"))


def in_cells(notebook, look):
    return [
        f"{cell}: {found}" for cell, text in plain.markdown_of(notebook) for found in look(text)
    ]


@each
def test_nothing_is_left_as_it_was_typed(path):
    assert in_cells(read(path), plain.raw_markup) == []


@each
def test_every_link_has_words_and_leads_somewhere(path):
    notebook = read(path)
    assert in_cells(notebook, plain.empty_links) == []
    assert plain.broken_links(notebook, path.parent, read) == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_other_pages_read_well_too(path):
    """JupyterLab opens them from a link; what only a page of the book shows is a comment there."""
    text = path.read_text("utf8")
    typed = [found for found in plain.raw_markup(text) if not found.startswith("HTML")]
    assert typed == plain.empty_links(text) == plain.broken_links(text, path.parent, read) == []


def test_what_is_linked_has_an_anchor_and_nothing_else():
    """Programs for notebooks name headings each in its way, and figures and formulas not at all."""
    wrong = [f"{page.name}: {text[:80]}" for page, _, text in anchors.missing(anchors.all_pages())]
    assert wrong == [], "run `python scripts/anchors.py`"


@each
def test_formulas_and_figures_are_counted_up(path):
    notebook = read(path)
    assert list(wrong_numbers(read_notebook(path.read_text("utf8")).cells, path.stem)) == []
    assert plain.loose_captions(notebook) == []


@each
def test_every_heading_has_an_anchor_of_its_own(path):
    assert plain.repeated_headings(read(path)) == []


@each
def test_what_a_page_hides_is_hidden(path):
    assert plain.unfolded(read(path)) == []


FIRST_SCREEN = 250  # words: more stand on no screen, and a reader decides there


@each
def test_it_opens_with_a_title_a_question_a_promise_and_a_picture(path):
    """What the chapter is for is asked and said at once, and drawn on the first screen."""
    texts = [text for _, text in plain.markdown_of(read(path))]
    opening = r"(<a.*\n)?# \S.*\n\n\*\*\S.*\?\*\*\n\n\*You will \S[^*]*\*(\n|$)"
    assert re.match(opening, texts[0]), texts[0][:200]
    before, caption, _ = "\n".join(texts).partition("**Figure ")
    assert caption and len(before.split()) <= FIRST_SCREEN, "draw the idea on the first screen"


# A text, and what is said of it.
BAD = {
    "A {term}`query` is asked.": "a role",
    "{cite:p}`vaswani2017attention`": "a role",
    "(ch1-start)=\n## Start": "a target",
    "```{math}\n:label: eq\nx\n```": "a directive",
    ":::{note}\nx\n:::": "a directive",
    "$$x$$ (eq-one)": "a label",
    "A <span>word</span>.": "HTML",
    "<div>\n\nx\n\n</div>": "HTML",
    "<details><summary>Answer</summary>\nno blank line\n</details>": "HTML",
    "Some text.[^1]": "a footnote",
    "{{ value }}": "a substitution",
    "![A picture](a.png){.wide}": "an attribute",
    "% a comment": "a comment",
    r"The root \sqrt{d}.": "TeX outside of $",
}
GOOD = r"""<a id="a-title"></a>
# A title

*You will see.* A `{term}` in code, $\{x\}$ and $\mathbf{q}_{i}$ in formulas, 100 % of them.

<a id="eq-1-1"></a>
$$
a_{\text{mask}} = \frac{1}{2} \tag{1.1}
$$

| a | b |
|---|---|
| 1 | $x$ |

> **Takeaways**
>
> - One.

<details><summary>Answer: why</summary>

Because $x > 0$.

</details>

<a id="figure-1-1"></a>
**Figure 1.1.** A picture.

## A heading without an anchor
"""


@pytest.mark.parametrize("text", BAD)
def test_what_is_not_plain_is_named(text):
    assert any(found.startswith(BAD[text]) for found in plain.raw_markup(text))


def test_nothing_is_said_of_a_plain_text():
    assert plain.raw_markup(GOOD) == plain.empty_links(GOOD) == []


def book(folder, *cells):
    """Return a chapter of these cells; those that begin with "code:" are code."""
    (folder / "glossary.md").write_text(
        '# Words\n\n<a id="term-soft-lookup"></a>\n**soft lookup**\\\nMix.\n\n**kernel**\\\nA.\n'
    )
    (folder / "bibliography.md").write_text('# Works\n\n- <a id="someone2020"></a>Some One\n')
    (folder / "references.bib").write_text("@book{someone2020, title = {A}}\n")
    return read_notebook(
        json.dumps(
            {
                "nbformat": 4,
                "cells": [
                    {"cell_type": "code", "source": text.removeprefix("code:")}
                    if text.startswith("code:")
                    else {"cell_type": "markdown", "source": text}
                    for text in cells
                ],
            }
        )
    )


@pytest.mark.parametrize(
    ("address", "good"),
    [
        ("#a-title", True),
        ("#eq-1-1", True),
        ("#figure-1-1", True),
        ("glossary.md#term-soft-lookup", True),
        ("bibliography.md#someone2020", True),
        ("https://example.org/", True),
        ("#no-title", False),
        ("#a-heading-without-an-anchor", False),
        ("#eq-1-2", False),
        ("#figure-1-2", False),
        ("glossary.md#term-query", False),
        ("glossary.md#term-kernel", False),
        ("bibliography.md#nobody1900", False),
        ("nowhere.md", False),
    ],
)
def test_a_link_that_leads_nowhere_is_found(tmp_path, address, good):
    made = book(tmp_path, GOOD, f"[words]({address})")
    assert (plain.broken_links(made, tmp_path, read) == []) == good


@pytest.mark.parametrize(
    ("look", "cells"),
    [
        (plain.loose_captions, ["code:draw()", "**Figure 1.1.** A.\n\nMore text."]),
        (plain.loose_captions, ["code:draw()", "Text.", "**Figure 1.1.** A."]),
        (plain.loose_captions, ["code:draw()", "**Figure 1.1** A."]),
        (plain.repeated_headings, ["## Same", "## Same"]),
        (plain.repeated_headings, ["## Why $d$"]),
    ],
)
def test_what_does_not_fit_together_is_found(tmp_path, look, cells):
    assert len(look(book(tmp_path, *cells))) == 1


def test_a_caption_after_its_figure_is_right(tmp_path):
    made = book(tmp_path, "code:draw()", "**Figure 1.1.** A.")
    assert plain.loose_captions(made) == list(wrong_numbers(made.cells, "01-one")) == []


@pytest.mark.parametrize(
    "cells",
    [["$$x \\tag{1.2}$$"], ["$$x \\tag{2.1}$$"], ["**Figure 1.1.** A.", "**Figure 1.3.** A."]],
)
def test_numbers_that_do_not_count_up_are_found(tmp_path, cells):
    assert len(list(wrong_numbers(book(tmp_path, *cells).cells, "01-one"))) == 1


def test_a_cell_that_only_the_page_hides_is_found(tmp_path):
    made = book(tmp_path, "code:1")
    made.cells[0].metadata.tags = ["hide-cell"]
    assert len(plain.unfolded(made)) == 2
    notebooks.normalise(made)
    assert plain.unfolded(made) == []
