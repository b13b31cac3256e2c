"""What a reader meets on the built pages: all there, all linked, all described, nothing raw."""

import gzip
import json
import re

import pytest
import yaml
from fontTools.ttLib import TTFont

from tests.book import checks
from tests.book.building import CHAPTERS, ROOT, pages_of
from tests.test_package import PUBLIC

TITLE = "Queries, Keys and Values"
PAGES = pages_of(ROOT / "_toc.yml")
REFERENCE = [page for page in PAGES if page.startswith("chapters/api/")]
NAMES = PUBLIC.keys() - {"plotting"}


@pytest.fixture(scope="module")
def pages(built):
    """Return every page, by its name."""
    return {page: checks.soup(built / f"{page}.html") for page in PAGES}


def test_builds_without_a_warning_and_makes_the_pages_of_the_contents(building):
    status, said, built = building
    assert status == 0 and "WARNING" not in said, said
    made = {str(p.relative_to(built).with_suffix("")) for p in built.glob("chapters/**/*.html")}
    assert made == set(PAGES)
    assert f"url={PAGES[0]}.html" in (built / "index.html").read_text("utf8")  # the front door
    for name in ("404.html", "sitemap.xml", "robots.txt"):  # of a published book
        assert not (built / name).exists()


@pytest.mark.parametrize("page", [*PAGES, "index", "search", "genindex"])
def test_all_is_linked_described_and_of_this_book(built, page):
    path = built / f"{page}.html"
    assert checks.broken_links(path) == []
    assert checks.loaded_from_elsewhere(path) == []
    assert page == "index" or checks.forbidden_scripts(path) == []
    assert "first-page.png" not in path.read_text("utf8"), "it is the README's"
    if page in PAGES:
        assert checks.undescribed_pictures(path) == []
        assert checks.raw_markup(path) == []


@pytest.mark.parametrize("page", PAGES)
def test_title_frame_and_folds(built, page):
    html = checks.soup(built / f"{page}.html")
    title = html.title.get_text().strip()
    assert title.endswith(TITLE) and title.count(TITLE) == 1 and "<no title>" not in title
    assert html.select_one(".book .title").get_text() == TITLE
    assert html.html["lang"] == "en"
    assert len(html.select("article h1")) == 1
    if html.select("article h1 .section-number"):  # a chapter: its title, then its question
        assert re.fullmatch(r"\d+\. \S.* \S.*\?#?", html.select_one("h1.asks").get_text())
    folds = html.select("article details")
    names = [fold.find("summary", recursive=False).get_text(strip=True) for fold in folds]
    assert [name for name in names if not name or "cell" in name] == []
    assert not [fold for fold in folds if fold.summary.get("aria-label")]
    foot = " ".join(html.select_one(".foot").get_text().split())
    assert f"© Copyright 2026 The authors of {TITLE}." in foot and "By The" not in foot
    assert "Text and figures: CC BY 4.0. Code: MIT licence." in foot
    styles = [tag["href"] for tag in html.find_all("link", rel="stylesheet")]
    assert sum("_static/style.css?v=" in href for href in styles) == 1
    scripts = " ".join(tag.get("src", "") for tag in html.find_all("script"))
    assert not re.search("searchtools|searchindex|language_data|sphinx_highlight", scripts)
    # The book has no address: nothing on a page depends on one.
    assert html.find("meta", property=True) is None
    assert html.find("link", rel="canonical") is None and not html.select(".last-updated")
    hrefs = [link["href"] for link in html.find_all("a", href=True)]
    assert not [url for url in hrefs if "colab" in url or "mybinder" in url]
    assert not [url for url in hrefs if url.endswith(".pdf") and "//" not in url]


def test_titles_and_descriptions_differ(pages):
    titles = [html.title.get_text() for html in pages.values()]
    said = [html.find("meta", attrs={"name": "description"})["content"] for html in pages.values()]
    fit = [40 < len(text) <= 202 for text in said]  # one sentence; what a search shows of it
    assert all(fit), f"write a first paragraph that says what the page is about: {said}"
    assert len(set(titles)) == len(titles) and len(set(said)) == len(said)


def test_one_style_sheet_whose_fonts_and_pictures_are_there(built):
    css = (built / "_static" / "style.css").read_text("utf8")
    for wanted in ("katex/fonts/KaTeX_Main-Regular.woff2", "Book Big", "--query"):
        assert wanted in css
    files = set(re.findall(r"url\(([^)\"]+\.(?:woff2|png|svg))\)", css))
    assert [name for name in files if not (built / "_static" / name).is_file()] == []


def test_formulas_are_read_aloud_drawn_and_coloured(built, pages):
    """What is read has the letters of what is drawn, in tokens that hold text alone; a font has all
    glyphs; a symbol means one thing."""
    fonts = (built / "_static/katex/fonts").glob("*.woff2")
    held = {chr(code) for font in fonts for code in TTFont(font).getBestCmap()}
    classes = {"q": "query", "k": "key", "v": "value", "o": "output-word"}
    symbols = re.compile(r"\\mathbf\{([qkvo])\}|\\mathbf\{W\}_\{?([QKV])", re.IGNORECASE)
    seen, drawn = set(), set()
    for page, html in pages.items():
        text = (built / f"{page}.html").read_text("utf8")
        assert re.findall(r"<m[ion](?: [^>]*)?><.{20}", text) == [], page
        for formula in html.select(".katex"):
            tex = formula.find("annotation").get_text()
            shown = formula.select_one(".katex-html").get_text()
            read = [token.get_text() for token in formula.find_all(["mi", "mn", "mo", "mtext"])]
            assert checks.letters(*read) == checks.letters(shown), tex
            found = symbols.findall(tex)
            wanted = {(letter or projection).lower() for letter, projection in found}
            assert {s for s in classes if formula.select(f".{classes[s]} .mathbf")} == wanted
            seen |= wanted
            drawn |= set(shown)
    assert seen == set(classes)
    assert drawn - held <= set("\u200b √")


def test_previews_say_what_their_links_lead_to(built, pages):
    previews = [preview for html in pages.values() for preview in html.select(".preview")]
    assert len(previews) > 100
    for preview in previews:
        assert len(preview.get_text(strip=True)) > 20, preview["data-of"]
        assert not preview.find("a") and not preview.find(id=True)
        path, _, place = preview["data-of"].partition("#")
        there = checks.soup(built / "chapters" / path).find(id=place)
        said = there.find_next_sibling("dd") if there.name == "dt" else there
        first = preview.get_text(" ", strip=True)[:30]
        assert first in said.get_text(" ", strip=True), preview["data-of"]


def test_a_work_is_said_once_and_where_it_is_cited(pages):
    works = pages["chapters/bibliography"].select("div.citation")
    assert len(works) > 40
    for work in works:
        assert len(work.select(".label")) == len(work.find_all("p")) == 1
        assert "$" not in work.get_text()
        assert "Cited in" in work.get_text() and work.find("a", class_="internal")


def test_how_to_cite_and_what_it_runs_on(pages):
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    entry = pages["chapters/index"].find(class_="highlight-bibtex").get_text()
    book = cff["preferred-citation"]
    assert book["title"] in entry and str(book["version"]) in entry and "url" not in entry
    text = pages["chapters/facts"].article.get_text(" ")
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.M))
    stored = json.loads((ROOT / "chapters" / "stored-with.json").read_text())
    for value in (pins["torch"], pins["jupyter-book"], cff["date-released"], *stored.values()):
        assert value in text


def test_licences_and_chapters_are_said_where_readers_look():
    assert (ROOT / "LICENSE").read_text("utf8").startswith("MIT License")
    legal_code = "creativecommons.org/licenses/by/4.0/legalcode"
    assert legal_code in (ROOT / "LICENSE-TEXT").read_text("utf8")
    readme, first = ((ROOT / name).read_text("utf8") for name in ("README.md", f"{PAGES[0]}.md"))
    assert re.search(r"!\[The first page[^]]{80,}\]\(chapters/_static/first-page\.png\)", readme)
    assert [page for page in CHAPTERS if page.split("/")[1] not in readme] == []
    assert [page for page in CHAPTERS if page.split("/")[1] not in first] == []


# --- what the search looks through ---

HEAVIEST = 200_000  # bytes, packed: less than the page of a chapter; for who searches, and once


@pytest.fixture(scope="module")
def script(built):
    return (built / "_static" / "search-book.mjs").read_text("utf8")


@pytest.fixture(scope="module")
def book(script):
    return json.loads(script.partition("var THE_BOOK = ")[2].removesuffix(";\n"))


def test_every_page_is_there_in_order_and_every_place_once(built, script, book):
    assert [address.removesuffix(".html") for address, _ in book["pages"]] == PAGES
    places = [(PAGES[page], anchor) for page, anchor, *_ in book["rows"]]
    known = {page: checks.anchors(built / f"{page}.html") | {""} for page in PAGES}
    assert [(page, anchor) for page, anchor in places if anchor not in known[page]] == []
    assert len(places) == len(set(places))
    packed = len(gzip.compress(script.encode(), mtime=0))
    assert packed <= HEAVIEST, "leave out of it what nobody seeks"


def test_what_can_be_found(pages, book):
    """Each section of a chapter, each term, each public name; no markup, no stored numbers."""
    titles = {(PAGES[page], title) for page, _, title, *_ in book["rows"]}
    for page in CHAPTERS:
        for heading in pages[page].select("article :is(h2, h3)"):
            name = heading.get_text().removesuffix("#").replace("\xa0", " ")
            number, _, words = name.partition(" ")
            found = (page, f"{number.strip('.')} {words}") in titles
            assert found or "$" in name or heading.select_one(".katex"), name
    assert {title for _, title in titles} >= NAMES
    terms = pages["chapters/glossary"].select("dl.glossary dt")
    assert len(terms) > 50
    named = {title for page, title in titles if page.endswith("glossary")}
    assert {term.get_text().removesuffix("#") for term in terms} <= named
    # What explains comes before what asks and what lists.
    kinds = {kind for _, _, _, kind, *_ in book["rows"]}
    assert kinds == {"chapter", "part", "exercise", "term", "section", "name"}
    asked = [page for page, _, _, kind, *_ in book["rows"] if kind == "exercise"]
    assert len(asked) > 50 and all(PAGES[page] in CHAPTERS for page in asked)
    text = "\n".join(row[4] for row in book["rows"])
    for raw in ("<div", "\\operatorname", "{term}", "](", "```", "data:image"):
        assert raw not in text, raw


# --- the library's reference ---

MOST = 16  # names on a page: what one can look through by eye


def described(html):
    """Return what a page describes: signatures of functions and classes, not of their parts."""
    return [dl.find("dt", class_="sig") for dl in html.select("section > dl.py")]


def test_every_public_name_is_on_one_page_to_which_the_list_of_names_leads(pages):
    names = {dt["id"]: page for page in REFERENCE for dt in described(pages[page])}
    assert {name.rpartition(".")[2] for name in names} >= NAMES
    links = {link["href"] for link in pages["chapters/api"].select("article a[href]")}
    for name, page in names.items():
        assert f"{page.removeprefix('chapters/')}.html#{name}" in links, name


@pytest.mark.parametrize("page", REFERENCE)
def test_a_page_can_be_looked_through_and_each_name_leads_to_its_source_and_back(built, page):
    html = checks.soup(built / f"{page}.html")
    signatures = described(html)
    assert 0 < len(signatures) <= MOST
    for signature in signatures:
        link = signature.find("a", href=lambda href: "_modules/" in href)
        assert link and link.get_text() == "[source]", signature["id"]
        path, _, place = link["href"].partition("#")
        source = (built / page).parent.joinpath(path).resolve()
        there = checks.soup(source).find(id=place)
        kind = "def " if "function" in signature.parent["class"] else "class "
        assert kind + signature["id"].rpartition(".")[2] in there.get_text()
        ways_back = [link["href"] for link in there.select("a.viewcode-back")]
        assert any(f"{page}.html#{signature['id']}" in way for way in ways_back), ways_back
    # What stands before a colon in the docstring of a property would be taken for its type.
    assert html.select("dl.property .field-list") == []
