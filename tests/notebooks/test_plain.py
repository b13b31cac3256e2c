"""A chapter opened in Jupyter, VS Code, Colab or on GitHub reads as its page does.

A chapter's Markdown is read here as those programs read it: CommonMark with tables and
`$`-formulas. Each function returns what is wrong, in words that say what to do.
"""

import json
import re
from collections import Counter
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
    """Return the text of each Markdown cell; of a page that is no notebook, its text."""
    if isinstance(notebook, str):
        return [notebook]
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


def bad_links(notebook, folder):
    """Return links without words or that lead nowhere, and pictures without a description.

    That an anchor stands where its name says, `anchors.missing` asks.
    """
    found = []
    for token, after in (
        pair
        for text in texts(notebook)
        for line in parsed(text)
        for pair in pairwise([*(line.children or []), None])
    ):
        if token.type == "image" and not token.content.strip():
            found.append(f"the picture {token.attrs['src']} without a description")
        if token.type != "link_open":
            continue
        address = token.attrs["href"]
        if after.type == "link_close":
            found.append(f"a link to {address} without words")
        if re.match(r"https?://|mailto:", address):
            continue
        name, _, anchor = address.partition("#")
        path = folder / name
        if name and not path.is_file():
            found.append(f"there is no file {name}")
        elif anchor:
            there = notebook if not name else read(path) if path.suffix == ".ipynb" else None
            there = path.read_text("utf8") if there is None else "\n".join(texts(there))
            if anchor not in ANCHOR.findall(there):
                found.append(f"{address} leads nowhere: run `python scripts/anchors.py`")
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


def bad_headings(notebook):
    """Return headings that another one has the anchor of, or that have a formula."""
    tokens = [pair for text in texts(notebook) for pair in pairwise(parsed(text))]
    inside = [line.children for token, line in tokens if token.type == "heading_open"]
    slugs = Counter(
        anchors.slug("".join(t.content for t in one if t.type in ("text", "code_inline")))
        for one in inside
    )
    found = [f"#{name} is the anchor of {n} headings" for name, n in slugs.items() if n > 1]
    if any(token.type.startswith("math") for one in inside for token in one):
        found.append("a heading has a formula: write √d, or a word")
    return found


def unfolded(notebook):
    """Return cells that a page hides and Jupyter shows, or the other way round."""
    wanted = {
        "source_hidden": {"hide-input", "hide-cell", "remove-cell"},
        "outputs_hidden": {"hide-cell"},
    }
    return [
        f"{cell.id}: {key} does not follow its tags: run `make notebooks`"
        for cell in notebook.cells
        if cell.cell_type == "code"
        for key, tags in wanted.items()
        if bool(tags & {*cell.metadata.get("tags", [])})
        != cell.metadata.get("jupyter", {}).get(key, False)
    ] + [
        f"{cell.id}: name its fold as myst-nb does"
        for cell in notebook.cells
        if "fold" in cell.metadata
    ]


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
    found += bad_links(notebook, path.parent)
    found += wrong_numbers(notebook.cells, path.stem)
    for look in (loose_captions, bad_headings, unfolded, bad_opening):
        found += look(notebook)
    assert found == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_other_pages_read_well_too(path):
    """JupyterLab opens them from a link; what only a page of the book shows is a comment there."""
    text = path.read_text("utf8")
    typed = [found for found in raw_markup(text) if not found.startswith("HTML")]
    assert typed == bad_links(text, path.parent) == []


def test_what_is_linked_has_an_anchor_and_nothing_else():
    """Programs for notebooks name headings each in its way, and figures and formulas not at all."""
    wrong = [f"{page.name}: {text[:80]}" for page, _, text in anchors.missing(anchors.all_pages())]
    assert wrong == [], "run `python scripts/anchors.py`"


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

## A heading without an anchor
"""
CAPTIONED = '<a id="figure-1-1"></a>\n**Figure 1.1.** A picture.'


def book(*cells):
    """Return a chapter of these cells; those that begin with "code:" are code."""
    given = [
        {"cell_type": "code", "source": text.removeprefix("code:")}
        if text.startswith("code:")
        else {"cell_type": "markdown", "source": text}
        for text in cells
    ]
    return read_notebook(json.dumps({"nbformat": 4, "cells": given}))


@pytest.mark.parametrize("text", BAD)
def test_what_is_not_plain_is_named(text):
    assert any(found.startswith(BAD[text]) for found in raw_markup(text))


@pytest.mark.parametrize(
    ("link", "good"),
    [
        ("[words](#a-title)", True),
        ("[words](#eq-1-1)", True),
        ("[words](#figure-1-1)", True),
        ("[words](glossary.md#term-soft-lookup)", True),
        ("[words](https://example.org/)", True),
        ("[](#a-title)", False),
        ("![](a.png)", False),
        ("[words](#no-title)", False),
        ("[words](#a-heading-without-an-anchor)", False),
        ("[words](#eq-1-2)", False),
        ("[words](glossary.md#term-query)", False),
        ("[words](glossary.md#term-kernel)", False),
        ("[words](nowhere.md)", False),
    ],
)
def test_a_link_that_leads_nowhere_or_says_nothing_is_found(tmp_path, link, good):
    (tmp_path / "glossary.md").write_text(
        '# Words\n\n<a id="term-soft-lookup"></a>\n**soft lookup**\\\nMix.\n\n**kernel**\\\nA.\n'
    )
    assert (bad_links(book(GOOD, CAPTIONED, link), tmp_path) == []) == good
    assert (bad_links(link, tmp_path) == []) == (good and "(#" not in link), "on another page"


def counted(notebook):
    return list(wrong_numbers(notebook.cells, "01-one"))


@pytest.mark.parametrize(
    ("look", "cells"),
    [
        (loose_captions, ["code:draw()", "**Figure 1.1.** A.\n\nMore text."]),
        (loose_captions, ["code:draw()", "Text.", "**Figure 1.1.** A."]),
        (loose_captions, ["code:draw()", "**Figure 1.1** A."]),
        (bad_headings, ["## Same", "## Same"]),
        (bad_headings, ["## Why $d$"]),
        (counted, ["$$x \\tag{1.2}$$"]),
        (counted, ["$$x \\tag{2.1}$$"]),
        (counted, ["**Figure 1.1.** A.", "**Figure 1.3.** A."]),
        (bad_opening, ["# A\n\nNo question.", "**Figure 1.1.** A."]),
        (
            bad_opening,
            ["# A\n\n**Why?**\n\n*You will see.*\n", "word " * 250, "**Figure 1.1.** A."],
        ),
    ],
)
def test_what_does_not_fit_together_is_found(look, cells):
    assert len(look(book(*cells))) == 1


def test_nothing_is_said_of_what_is_right():
    made = book(GOOD, "code:draw()", CAPTIONED)
    assert raw_markup(GOOD) == loose_captions(made) == counted(made) == bad_headings(made) == []
    made.cells[1].metadata.tags = ["hide-cell"]
    assert len(unfolded(made)) == 2, "a cell that only the page hides"
    notebooks.normalise(made)
    assert unfolded(made) == []
