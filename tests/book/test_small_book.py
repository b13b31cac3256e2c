"""A small book, published: what the build adds to plain pages, and what it says of their place."""

from urllib.parse import parse_qs, urlsplit

import pytest

from _ext import public
from scripts import ejected, pdf
from tests.book import checks
from tests.book.building import PUBLIC, build, public_config
from tests.book.tiny import (
    CAPTION,
    FIGURE,
    GLOSSARY,
    NAMED,
    TITLE,
    code,
    committed,
    markdown,
    stored,
    tiny_book,
)

ADDRESS, REPOSITORY = PUBLIC["address"], PUBLIC["repository"]
ELSEWHERE = """# Elsewhere

See [(2.1)](02-plain.ipynb#eq-2-1), [Figure 2.1](02-plain.ipynb#figure-2-1),
[why](02-plain.ipynb#why-divide-by-d), [query](glossary.md#term-query) and
[Some One](bibliography.md#someone2020) and [a mean](glossary.md#term-nadarayawatson-regression).
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


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build it in a folder whose name is no pattern, and again: nothing else is written then."""
    folder = tmp_path_factory.mktemp("a [b] c")
    pages = {"02-plain.ipynb": stored(CELLS), "glossary.md": GLOSSARY, "more.md": ELSEWHERE}
    tiny_book(folder, pages | {"marked.md": DECORATIVE})
    (folder / "NOTES.md").write_text("Not a page.\n")
    public_config(folder, folder).replace(folder / "_config.yml")
    committed(folder, "2020-02-03")
    made, written = folder / "_build/html", []
    for _ in range(2):
        status, said = build(folder, folder)
        assert status == 0 and "WARNING" not in said, said
        files = [path for path in sorted(made.rglob("*")) if path.is_file()]
        written.append({path.relative_to(made).as_posix(): path.read_bytes() for path in files})
    assert written[0] == written[1]
    assert not [name for name in written[0] if "NOTES" in name]
    return made


@pytest.fixture(scope="module")
def article(site):
    return checks.soup(site / "chapters/02-plain.html").article


def test_without_jupyter_book_every_page_is_the_same(site, tmp_path):
    """Jupyter Book is the front and no trap: plain Sphinx makes the same files, byte for byte."""
    ejected.eject(tmp_path / "book", site.parents[1])
    status, said = ejected.build(tmp_path / "book", tmp_path / "html")
    assert status == 0, said
    assert (tmp_path / "html/chapters/02-plain.html").is_file()
    names = ejected.differing(site, tmp_path / "html")
    assert not names, "\n".join(ejected.said(site, tmp_path / "html", names))


def test_all_links_lead_somewhere_and_nothing_is_raw(site):
    for name in ("02-plain", "more", "bibliography"):
        assert set(checks.broken_links(site / f"chapters/{name}.html")) <= {f"../{public.PDF}"}
        assert checks.raw_markup(site / f"chapters/{name}.html") == []


def test_formulas_and_figures_have_their_number_and_their_place(article):
    first, second = article.select(".math:has(.eqno)")
    assert (first["id"], second["id"]) == ("eq-2-1", "eq-2-2")
    assert first.select_one(".eqno").get_text() == "(2.1)#"
    assert "tag" not in second.annotation.get_text()
    assert first.select(".output-word .mathbf")  # the colours are there
    figure = article.select_one("figure#figure-2-1")
    assert figure.select("img[alt]")
    caption = figure.find("figcaption", recursive=False)
    assert caption.get_text().startswith("Figure 2.1. What ")
    assert caption.select_one('a.reference[href="#eq-2-1"]')
    assert "**" not in article.get_text() and article.get_text().count("Figure 2.1.") == 1


def test_words_and_works_are_linked_both_ways(article, site):
    terms = ["glossary.html#term-query", "glossary.html#term-soft-lookup"]
    assert [link["href"] for link in article.select("a.term")] == terms
    assert checks.soup(site / "chapters/more.html").select(f'a.term[href="{terms[0]}"]')
    work = checks.soup(site / "chapters/bibliography.html").select_one("#someone2020")
    assert {link["href"]: link.get_text() for link in work.select("a")} == {
        "index.html#id1": "A page",
        "02-plain.html#cite-someone2020": "Plain",
        "more.html#cite-someone2020": "Elsewhere",
    }


def test_quotes_become_boxes_and_folds_stay_as_they_are(article):
    boxes = article.select("div.admonition")
    assert [box.p.get_text() for box in boxes] == ["Takeaways", "Optional"]
    assert [box["class"][0] for box in boxes] == ["tip", "optional"]
    assert [quote.get_text(strip=True) for quote in article.select("blockquote")] == ["A quote."]
    (fold,) = article.select("section.exercise > details")
    assert fold.attrs == {} and fold.summary.get_text() == "Answer: why not"
    assert fold.select("p .katex") and fold.select("li")
    assert fold.find_next_sibling("p").get_text() == "After it."
    names = [summary.get_text() for summary in article.select("details.hide > summary")]
    assert names == ["The code of this figure", "The code that checks 1 < 2"]


def test_a_chapter_says_how_it_is_run_and_no_other_page(article, site):
    line = article.select_one("p.run")
    assert line.find_next_sibling().name == "section", "at the end of the opening"
    assert line.a["href"] == "../_sources/chapters/02-plain.ipynb" and line.a.has_attr("download")
    assert "make lab" in line.get_text()
    assert not checks.soup(site / "chapters/more.html").select(".run")


def test_a_picture_that_is_marked_needs_no_description(site):
    page = site / "chapters/marked.html"
    assert len(checks.soup(page).select("article img.decorative")) == 2
    assert checks.undescribed_pictures(page) == []


# --- what only a published book has ---


def hrefs(path):
    return [tag["href"] for tag in checks.soup(path).find_all("a", href=True)]


def test_a_page_has_a_card_and_the_day_of_its_last_change_and_is_on_the_map(site):
    html = checks.soup(site / "chapters" / "index.html")
    found = {tag["property"]: tag["content"] for tag in html.find_all("meta", property=True)}
    assert found["og:url"] == f"{ADDRESS}/chapters/index.html"
    assert found["og:title"] == "A page"
    assert found["og:description"].startswith("Text with")
    assert (site / found["og:image"].removeprefix(f"{ADDRESS}/")).is_file()
    assert html.find("link", rel="canonical")["href"] == found["og:url"]
    assert "2020-02-03" in html.find(class_="last-updated").get_text()
    text = (site / "sitemap.xml").read_text("utf8")
    for page in ("index", "02-plain", "bibliography"):
        assert f"<loc>{ADDRESS}/chapters/{page}.html</loc>" in text
    assert f"{ADDRESS}/sitemap.xml" in (site / "robots.txt").read_text("utf8")


def test_buttons_lead_to_the_right_branch_and_file_and_an_issue_names_its_page(site):
    file = "main/chapters/02-plain.ipynb"
    links = hrefs(site / "chapters/02-plain.html")
    assert not any("/edit/" in link for link in links)  # it would open the raw JSON
    assert f"https://colab.research.google.com/github/someone/book/blob/{file}" in links
    binder = "https://mybinder.org/v2/gh/someone/book/main?urlpath=lab/tree/chapters/02-plain.ipynb"
    assert {binder, "../_sources/chapters/02-plain.ipynb", f"../{public.PDF}"} <= {*links}
    assert pdf.PDF.name == public.PDF
    assert f"{REPOSITORY}/edit/main/chapters/index.md" in hrefs(site / "chapters/index.html")
    (issue,) = (urlsplit(link) for link in links if link.startswith(f"{REPOSITORY}/issues/new"))
    fields = parse_qs(issue.query)
    assert fields["title"] == ["Plain: "]
    assert f"Page: {ADDRESS}/chapters/02-plain.html\n" in fields["body"][0]
    assert "content here" not in issue.query


def test_a_lost_reader_finds_back_from_any_depth(site):
    html = checks.soup(site / "404.html")
    assert "There is no such page" in html.article.h1.get_text()
    assert html.article.p.a["href"] == "/book/chapters/index.html#how-to-read-it"
    for tag in html.find_all(["a", "link", "script", "form"]):
        url = tag.get("href") or tag.get("src") or tag.get("action")
        assert url is None or url.startswith(("/book/", "#", "https://")), tag
