"""What a reader meets on the built pages: all there, all linked, nothing raw."""

import gzip
import json
import re
import tomllib

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
    assert not {"404.html", "sitemap.xml", "robots.txt"} & {path.name for path in built.iterdir()}


@pytest.mark.parametrize("page", [*PAGES, "index", "search", "genindex"])
def test_all_is_linked_and_of_this_book(built, page):
    path = built / f"{page}.html"
    assert checks.broken_links(path) == []
    if page in PAGES:
        assert checks.raw_markup(path) == []
        is_titled_and_unpublished(checks.soup(path))


def is_titled_and_unpublished(html) -> None:
    """One title, one style sheet, licences; nothing depends on an address, which it has not."""
    title = html.title.get_text().strip()
    assert title.endswith(TITLE) and title.count(TITLE) == 1 and "<no title>" not in title
    assert html.html["lang"] == "en"
    policy = html.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
    assert "script-src 'self'" in policy and "default-src 'self'" in policy
    assert len(html.select("article h1")) == 1
    folds = html.select("article details")
    names = [fold.find("summary", recursive=False).get_text(strip=True) for fold in folds]
    assert [name for name in names if not name or "cell" in name] == []
    foot = " ".join(html.select_one(".foot").get_text().split())
    assert "Text and figures: CC BY 4.0. Code: MIT licence." in foot
    styles = [tag["href"] for tag in html.find_all("link", rel="stylesheet")]
    assert sum("_static/style.css?v=" in href for href in styles) == 1
    assert html.find("meta", property=True) is html.find("link", rel="canonical") is None
    hrefs = [link["href"] for link in html.find_all("a", href=True)]
    assert not [url for url in hrefs if re.search(r"colab|mybinder|^(?!.*//).*\.pdf$", url)]


def test_titles_and_descriptions_differ(pages):
    titles = [html.title.get_text() for html in pages.values()]
    said = [html.find("meta", attrs={"name": "description"})["content"] for html in pages.values()]
    fit = [40 < len(text) <= 202 for text in said]  # one sentence; what a search shows of it
    assert all(fit), f"write a first paragraph that says what the page is about: {said}"
    assert len(set(titles)) == len(titles) and len(set(said)) == len(said)


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
            assert checks.letters(*read) == checks.letters(shown.replace("⊤", "T")), tex
            transposed = formula.find_all("msup", intent="transpose($x)")
            assert len(transposed) == shown.count("⊤"), tex
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
        assert not preview.find("a") and not preview.find(id=True)
        path, _, place = preview["data-of"].partition("#")
        there = checks.soup(built / "chapters" / path).find(id=place)
        said = there.find_next_sibling("dd") if there.name == "dt" else there
        first = preview.get_text(" ", strip=True)[:30]
        assert len(first) > 20 and first in said.get_text(" ", strip=True), preview["data-of"]


def test_how_to_cite_and_what_it_runs_on(pages):
    """Whoever publishes the book or a new version is told what to change in CITATION.cff."""
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["sphinx"]["config"]
    book = cff["preferred-citation"]
    assert (cff["license"], book["license"]) == ("MIT", "CC-BY-4.0")
    for part in (cff, book):
        assert part.get("url") == (config["public"]["address"] or None)
        assert part.get("repository-code") == (config["public"]["repository"] or None)
        assert str(part["version"]).startswith(str(config["version"]))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cff["version"] == project["version"]
    entry = pages["chapters/index"].find(class_="highlight-bibtex").get_text()
    assert book["title"] in entry and str(book["version"]) in entry and str(book["year"]) in entry
    text = pages["chapters/facts"].article.get_text(" ")
    stored = json.loads((ROOT / "chapters" / "stored-with.json").read_text())
    for value in (cff["date-released"], *stored.values()):
        assert value in text


# --- what the search looks through ---

HEAVIEST = 200_000  # bytes, packed: less than the page of a chapter; for who searches, and once


def test_what_can_be_found(built, pages):
    """Every page in order and every place once: each section of a chapter, term and public name."""
    script = (built / "_static" / "search-book.mjs").read_text("utf8")
    assert len(gzip.compress(script.encode(), mtime=0)) <= HEAVIEST, "leave out what nobody seeks"
    book = json.loads(script.partition("var THE_BOOK = ")[2].removesuffix(";\n"))
    assert [address.removesuffix(".html") for address, _ in book["pages"]] == PAGES
    places = [(PAGES[page], anchor) for page, anchor, *_ in book["rows"]]
    known = {page: checks.anchors(built / f"{page}.html") | {""} for page in PAGES}
    assert [(page, anchor) for page, anchor in places if anchor not in known[page]] == []
    assert len(places) == len(set(places))
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


# --- the library's reference ---

MOST = 16  # names on a page: what one can look through by eye


def test_every_public_name_is_on_one_page_and_leads_to_its_source_and_back(built, pages):
    names = []
    links = {link["href"] for link in pages["chapters/api"].select("article a[href]")}
    for page in REFERENCE:
        described = [dl.find("dt", class_="sig") for dl in pages[page].select("section > dl.py")]
        names += [dt["id"].rpartition(".")[2] for dt in described]
        assert 0 < len(described) <= MOST
        for signature in described:
            name = signature["id"]
            assert f"{page.removeprefix('chapters/')}.html#{name}" in links, name
            link = signature.find("a", href=lambda href: "_modules/" in href, string="[source]")
            path, _, place = link["href"].partition("#")
            source = (built / page).parent.joinpath(path).resolve()
            there = checks.soup(source).find(id=place)
            kind = "def " if "function" in signature.parent["class"] else "class "
            assert kind + name.rpartition(".")[2] in there.get_text()
            ways_back = [back["href"] for back in there.select("a.viewcode-back")]
            assert any(f"{page}.html#{name}" in way for way in ways_back), ways_back
        # What stands before a colon in the docstring of a property would be taken for its type.
        assert pages[page].select("dl.property .field-list") == []
    assert len(names) == len(set(names)) and set(names) >= NAMES
