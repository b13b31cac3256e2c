"""A small book, published: what the build adds to plain pages, and what it says of their place."""

from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest
from sphinx.errors import ConfigError

from _ext import public
from scripts import ejected, pdf
from tests.book import checks
from tests.book.building import PUBLIC

ADDRESS, REPOSITORY = PUBLIC["address"], PUBLIC["repository"]


@pytest.fixture(scope="module")
def site(published_site):
    return published_site / "book"


@pytest.fixture(scope="module")
def article(site):
    return checks.soup(site / "chapters/02-plain.html").article


def test_without_jupyter_book_every_page_is_the_same(site, tmp_path):
    """Jupyter Book is the front and no trap: plain Sphinx makes the same files, byte for byte."""
    (source,) = site.parents[1].glob("a *")
    ejected.eject(tmp_path / "book", source)
    status, said = ejected.build(tmp_path / "book", tmp_path / "html")
    assert status == 0, said
    page = tmp_path / "html/chapters/02-plain.html"
    assert page.is_file()
    names = ejected.differing(site, tmp_path / "html")
    names = [name for name in names if "_static/live/" not in name]  # this one brings no Python
    assert not names, "\n".join(ejected.said(site, tmp_path / "html", names))
    page.write_text("another")
    assert "chapters/02-plain.html" in ejected.differing(site, tmp_path / "html")


def test_all_links_lead_somewhere_and_nothing_is_raw(site):
    for name in ("02-plain", "more", "bibliography", "marked"):
        page = site / f"chapters/{name}.html"
        assert set(checks.broken_links(page)) <= {f"../{public.PDF}"}
        assert checks.raw_markup(page) == []
    assert len(checks.soup(page).select("article img.decorative[alt='']")) == 2


def test_formulas_and_figures_have_their_number_and_their_place(article):
    first, second = article.select(".math:has(.eqno)")
    assert (first["id"], second["id"]) == ("eq-2-1", "eq-2-2")
    assert first.select_one(".eqno").get_text() == "(2.1)#"
    assert "tag" not in second.annotation.get_text()
    assert first.select(".output-word .mathbf")  # the colours are there
    figure = article.select_one("figure#figure-2-1[aria-label='Figure 2.1']")
    assert not article.select("h1 .headerlink, h2 .headerlink"), "it would be heard in its name"
    assert article.select_one("h2 + .headerlink")["aria-label"] == "Link to 1.1. First part"
    assert figure.select("img[alt]")
    caption = figure.find("figcaption", recursive=False)
    assert caption.get_text().startswith("Figure 2.1. What ")
    assert caption.select_one('a.reference[href="#eq-2-1"]')
    assert "**" not in article.get_text() and article.get_text().count("Figure 2.1.") == 1


def test_words_and_works_are_linked_both_ways(article, site):
    terms = ["glossary.html#term-query", "glossary.html#term-soft-lookup"]
    assert [link["href"] for link in article.select("a.term")] == terms
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
    assert fold.summary.get_text() == "Answer: why not"
    assert fold.select("p .katex") and fold.select("li")
    assert fold.find_next_sibling("p").get_text() == "After it."
    names = [summary.get_text() for summary in article.select("details.hide > summary")]
    assert names == ["The code of Figure 2.1", "The code that checks 1 < 2"]
    line = article.select_one("p.run")
    assert line.a["href"] == "../_sources/chapters/02-plain.ipynb" and line.a.has_attr("download")
    assert "make lab" in line.get_text()


# --- what only a published book has ---


def test_a_page_has_a_card_and_the_day_of_its_last_change_and_is_on_the_map(site):
    html = checks.soup(site / "chapters" / "index.html")
    found = {tag["property"]: tag["content"] for tag in html.find_all("meta", property=True)}
    assert found["og:url"] == f"{ADDRESS}/chapters/index.html"
    assert found["og:title"] == "A page"
    assert found["og:description"].startswith("Text with")
    assert (site / found["og:image"].removeprefix(f"{ADDRESS}/")).is_file()
    assert html.find("link", rel="canonical")["href"] == found["og:url"]
    assert "2020-02-03" in html.find(class_="last-updated").get_text()
    assert f"<loc>{ADDRESS}/chapters/02-plain.html</loc>" in (site / "sitemap.xml").read_text()
    assert f"{ADDRESS}/sitemap.xml" in (site / "robots.txt").read_text("utf8")


def test_buttons_lead_to_the_right_branch_and_file_and_an_issue_names_its_page(site):
    file = "main/chapters/02-plain.ipynb"
    links, others = (
        [tag["href"] for tag in checks.soup(site / f"chapters/{page}.html").select("a[href]")]
        for page in ("02-plain", "index")
    )
    assert not any("/edit/" in link for link in links)  # it would open the raw JSON
    assert f"https://colab.research.google.com/github/someone/book/blob/{file}" in links
    binder = "https://mybinder.org/v2/gh/someone/book/main?urlpath=lab/tree/chapters/02-plain.ipynb"
    assert {binder, "../_sources/chapters/02-plain.ipynb", f"../{public.PDF}"} <= {*links}
    assert pdf.PDF.name == public.PDF
    assert f"{REPOSITORY}/edit/main/chapters/index.md" in others
    (issue,) = (urlsplit(link) for link in links if link.startswith(f"{REPOSITORY}/issues/new"))
    assert f"Page: {ADDRESS}/chapters/02-plain.html\n" in parse_qs(issue.query)["body"][0]


def test_a_lost_reader_finds_back_from_any_depth(site):
    html = checks.soup(site / "404.html")
    assert html.article.p.a["href"] == "/book/chapters/index.html#how-to-read-it"
    for tag in html.find_all(["a", "link", "script", "form"]):
        url = tag.get("href") or tag.get("src") or tag.get("action")
        assert url is None or url.startswith(("/book/", "#", "https://")), tag


@pytest.mark.parametrize(("name", "wrong"), [("address", "example.org/book"), ("repository", "")])
def test_the_setting_is_two_web_addresses(name, wrong):
    config = SimpleNamespace(public=dict(PUBLIC) | {name: wrong})
    with pytest.raises(ConfigError, match=f"public: {name}: {wrong!r} is no web address"):
        public.configure(None, config)
