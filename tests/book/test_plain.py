"""Plain notebooks become pages: numbers, captions, folds, boxes, citations, and what is refused."""

import functools
import json

import nbformat
import pytest

from _ext import running
from d2lmini.plotting import show_heatmaps
from scripts import notebooks
from scripts.notebooks import read_notebook
from tests.book import checks
from tests.book.building import build
from tests.book.test_bad_input import tiny_book

DRAW = "show_heatmaps([[1.0, 0.0]], 'Keys', 'Queries')"
GLOSSARY = """# Glossary

```{glossary}
query
  What.

soft lookup
  A mix.

Nadaraya–Watson regression
  A mean.
```
"""
ELSEWHERE = """# Elsewhere

See [(2.1)](02-plain.ipynb#eq-2-1), [Figure 2.1](02-plain.ipynb#figure-2-1),
[why](02-plain.ipynb#why-divide-by-d), [query](glossary.md#term-query) and
[Some One](bibliography.md#someone2020) and [a mean](glossary.md#term-nadarayawatson-regression).
"""


def markdown(source, **metadata):
    return {"cell_type": "markdown", "source": source, "metadata": metadata}


def code(source, *tags, **metadata):
    return {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)} | metadata}


TITLE = markdown("# Plain\n\n*You will see.*\n\nText.")
NAMED = {"code_prompt_show": "The code that checks 1 < 2"}
FIGURE = code(DRAW, "hide-input")
CAPTION = markdown("**Figure 2.1.** What $n$ queries do, as [(2.1)](#eq-2-1) says.")
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
        "$x^2$ &amp; <code>x</code></summary>\n\nBecause $x$.\n\n- One.\n\n</details>\n\nAfter it."
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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    pages = {"02-plain.ipynb": stored(CELLS), "glossary.md": GLOSSARY, "more.md": ELSEWHERE}
    status, said = build(tiny_book(folder, pages), folder)
    assert status == 0, said
    return folder / "_build" / "html" / "chapters"


@pytest.fixture(scope="module")
def article(site):
    return checks.soup(site / "02-plain.html").article


def test_all_links_lead_somewhere(site):
    for name in ("02-plain", "more", "bibliography"):
        assert checks.broken_links(site / f"{name}.html") == []
        assert checks.raw_markup(site / f"{name}.html") == []


def test_formulas_have_their_number_and_their_place(article):
    first, second = article.select(".math:has(.eqno)")
    assert (first["id"], second["id"]) == ("eq-2-1", "eq-2-2")
    assert first.select_one(".eqno").get_text() == "(2.1)#"
    assert "tag" not in second.annotation.get_text()
    assert first.select(".output-word .mathbf")  # the colours are there


def test_a_caption_is_part_of_its_figure(article):
    figure = article.select_one("figure#figure-2-1")
    assert figure.select("img[alt]")
    caption = figure.find("figcaption", recursive=False)
    assert caption.get_text().startswith("Figure 2.1. What ")
    assert caption.select_one('a.reference[href="#eq-2-1"]')
    assert "**" not in article.get_text() and article.get_text().count("Figure 2.1.") == 1


def test_words_lead_to_the_glossary(article, site):
    links = article.select("a.term")
    assert [link["href"] for link in links] == [
        "glossary.html#term-query",
        "glossary.html#term-soft-lookup",
    ]
    assert checks.soup(site / "more.html").select('a.term[href="glossary.html#term-query"]')


def test_works_say_where_they_are_cited(site):
    work = checks.soup(site / "bibliography.html").select_one("#someone2020")
    links = {link["href"]: link.get_text() for link in work.select("a")}
    assert links == {
        "index.html#id1": "A page",
        "02-plain.html#cite-someone2020": "Plain",
        "more.html#cite-someone2020": "Elsewhere",
    }


def test_quotes_become_boxes(article):
    boxes = article.select("div.admonition")
    assert [box.p.get_text() for box in boxes] == ["Takeaways", "Optional"]
    assert [box["class"][0] for box in boxes] == ["tip", "optional"]
    assert [quote.get_text(strip=True) for quote in article.select("blockquote")] == ["A quote."]


def test_details_become_folds(article):
    (fold,) = article.select("details.dropdown")
    assert fold.summary.select(".katex") and fold.summary.select("code")
    assert fold.summary.get_text().startswith("Answer: why ")
    assert "&amp;amp;" not in str(fold)
    assert fold.select("p .katex") and fold.select("li")
    assert fold.find_next_sibling("p").get_text() == "After it."


def test_a_hidden_cell_may_have_a_name_of_its_own(article):
    names = [summary.get_text() for summary in article.select("details.hide > summary")]
    assert names == ["The code of this figure", "The code that checks 1 < 2"]


def test_a_chapter_says_how_it_is_run(article):
    line = article.select_one(".promise + .run")
    assert line.a["href"] == "../_sources/chapters/02-plain.ipynb" and line.a.has_attr("download")
    assert "make lab" in line.get_text()


def test_a_page_that_is_no_notebook_says_nothing_of_it(site):
    assert not checks.soup(site / "more.html").select(".run")


# What is wrong: (the cells after the title, what is said of it).
DEFECTS = {
    "02-caption": ([markdown("Text."), CAPTION], "has drawn nothing"),
    "02-far": ([FIGURE, markdown("Text."), CAPTION], "has drawn nothing"),
    "02-none": ([FIGURE, CAPTION, FIGURE], "this figure has no caption"),
    "02-twice": ([FIGURE, CAPTION, FIGURE, CAPTION], "Figure 2.1 should be 2.2"),
    "03-chapter": ([FIGURE, CAPTION], "Figure 2.1 should be 3.1"),
    "02-stop": ([FIGURE, markdown("**Figure 2.1** What.")], "with a full stop"),
    "02-tag": ([markdown("$$x \\tag{2.3}$$")], "the formula 2.3 should be 2.1"),
    "02-open": ([markdown("<details><summary>A</summary>\n\nText.")], "close this <details>"),
    "02-tight": ([markdown("<details><summary>A</summary>\nx\n</details>")], "a blank line"),
    "02-closed": ([markdown("Text.\n\n</details>")], "closes nothing"),
    "02-term": ([markdown("[x](glossary.md#term-nothing)")], "term-nothing"),
    "02-work": ([markdown("[x](bibliography.md#nobody1900)")], "nobody1900"),
    "02-place": ([markdown("[x](#no-such-place)")], "no-such-place"),
    "02-other": ([markdown("[x](02-tag.ipynb#eq-9-9)")], "eq-9-9"),
}
MERGED = '{\n<<<<<<< HEAD\n "cells": []\n=======\n "cells": [1]\n>>>>>>> other\n}'
PASTED = {"cell_type": "markdown", "source": "![x](attachment:a.png)", "metadata": {}}
BROKEN = {
    "merged": (MERGED, "merge that was not finished (line 2)"),
    "empty": ("", "is empty"),
    "cut": ('{"cells": [', "is no notebook: line 1"),
    "list": ("[]", "is no notebook: it has no list of cells"),
    "old": ('{"nbformat": 3, "worksheets": []}', "is in notebook format 3"),
    "pasted": (
        json.dumps({"nbformat": 4, "cells": [PASTED | {"attachments": {"a.png": {}}}]}),
        "cell 0 holds a pasted picture (a.png)",
    ),
    "uncounted": (
        json.dumps({"nbformat": 4, "cells": [{"cell_type": "code", "source": "1"}]}),
        "cell 0 was never run",
    ),
}
GOOD = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell("# Good")])


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    pages = {"glossary.md": GLOSSARY, "good.ipynb": nbformat.writes(GOOD)}
    runs = {f"{name}.ipynb": [TITLE, *cells] for name, (cells, _) in DEFECTS.items()}
    pages |= {name: stored(cells) for name, cells in runs.items()}
    pages |= {f"{name}.ipynb": text for name, (text, _) in BROKEN.items()}
    status, said = build(tiny_book(folder, pages), folder)
    assert status != 0
    assert "Traceback" not in said
    assert (folder / "_build" / "html" / "chapters" / "good.html").is_file()
    return [line for line in said.splitlines() if "WARNING" in line]


@pytest.mark.parametrize("name", [*DEFECTS, *BROKEN])
def test_what_is_wrong_is_named_with_its_file(said, name):
    (_, wanted) = (DEFECTS | BROKEN)[name]
    about = [line for line in said if f"{name}.ipynb" in line]
    assert any(wanted in line for line in about), about


def test_nothing_is_said_of_a_good_page(said):
    assert not [line for line in said if "good.ipynb" in line or "glossary" in line.split(":")[0]]


def test_once_it_is_published_a_chapter_leads_to_the_places_that_run_it():
    """In the order of the buttons over the page, the notebook itself first."""
    buttons = [
        {"text": "Binder", "url": "https://b"},
        {"text": "Colab", "url": "https://c"},
        {"label": "download-source-button", "url": "x.ipynb"},
        {"label": "pdf-button", "text": "The book as PDF", "url": "book.pdf"},
    ]
    assert running.ways({"header_buttons": buttons}) == [
        ("download the notebook", "x.ipynb"),
        ("run it on Binder", "https://b"),
        ("run it on Colab", "https://c"),
    ]
    assert running.ways({}) == []
