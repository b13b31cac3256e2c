"""What a reader meets on the built pages: all there, all linked, all described, nothing raw."""

import re

import pytest
from fontTools.ttLib import TTFont

from tests.book import checks
from tests.book.building import CHAPTERS, ROOT, pages_of

PAGES = pages_of(ROOT / "_toc.yml")


@pytest.fixture
def path(built, request):
    """Return the file of a page."""
    return built / f"{request.param}.html"


def each(*more):
    return pytest.mark.parametrize("path", [*PAGES, *more], indirect=True)


def test_builds_without_a_warning(building):
    status, said, _ = building
    assert "WARNING" not in said
    assert status == 0, said


def test_the_pages_are_those_of_the_contents(built):
    made = {str(p.relative_to(built).with_suffix("")) for p in built.glob("chapters/**/*.html")}
    assert made == set(PAGES)


def test_the_front_door_leads_to_the_first_page(built):
    assert f"url={PAGES[0]}.html" in (built / "index.html").read_text("utf8")


@each("index", "search", "genindex")
def test_all_is_linked_described_and_of_this_book(path):
    assert checks.broken_links(path) == []
    assert checks.loaded_from_elsewhere(path) == []
    if path.stem in ("search", "genindex"):
        assert checks.forbidden_scripts(path) == []


@each()
def test_title_words_and_pictures(path):
    html = checks.soup(path)
    title = html.title.get_text().strip()
    assert len(html.select("article h1")) == 1
    if html.select("article h1 .section-number"):  # a chapter: its title, then its question
        assert re.fullmatch(r"\d+\. \S.* \S.*\?#?", html.select_one("h1.asks").get_text())
    assert title.endswith("Queries, Keys and Values")
    assert title.count("Queries, Keys and Values") == 1
    assert html.select_one(".book .title").get_text() == "Queries, Keys and Values"
    assert "<no title>" not in title
    assert html.html["lang"] == "en"
    assert checks.undescribed_pictures(path) == []
    assert checks.raw_markup(path) == []
    assert checks.forbidden_scripts(path) == []


def test_titles_differ(built):
    titles = [checks.soup(built / f"{page}.html").title.get_text() for page in PAGES]
    assert len(set(titles)) == len(titles)


def test_one_style_sheet_whose_fonts_and_pictures_are_there(built):
    css = (built / "_static" / "style.css").read_text("utf8")
    for wanted in ("katex/fonts/KaTeX_Main-Regular.woff2", "Book Big", "--query"):
        assert wanted in css
    files = set(re.findall(r"url\(([^)\"]+\.(?:woff2|png|svg))\)", css))
    assert [name for name in files if not (built / "_static" / name).is_file()] == []
    for page in PAGES:
        styles = checks.soup(built / f"{page}.html").find_all("link", rel="stylesheet")
        assert sum("_static/style.css?v=" in tag["href"] for tag in styles) == 1


@each()
def test_no_letter_of_a_formula_is_lost_to_a_screen_reader(path):
    """A token of MathML holds text and nothing else, or a reader says nothing for it."""
    assert re.findall(r"<m[ion](?: [^>]*)?><.{20}", path.read_text("utf8")) == []


def test_fonts_hold_what_is_drawn(built):
    """No glyph that a page uses was left out."""
    fonts = built / "_static" / "katex" / "fonts"
    held = {ord(c) for font in fonts.glob("*.woff2") for c in map(chr, TTFont(font).getBestCmap())}
    drawn = {
        character
        for page in PAGES
        for formula in checks.soup(built / f"{page}.html").select(".katex-html")
        for character in formula.get_text()
    }
    assert {c for c in drawn if ord(c) not in held} <= set("\u200b √")


def test_symbols_have_the_colour_of_what_they_stand_for(built):
    classes = {"q": "query", "k": "key", "v": "value", "o": "output-word"}
    seen = set()
    for page in PAGES:
        for formula in checks.soup(built / f"{page}.html").select(".katex"):
            source = formula.find("annotation").get_text()
            symbols = r"\\mathbf\{([qkvo])\}|\\mathbf\{W\}_\{?([QKV])"
            found = re.findall(symbols, source, re.IGNORECASE)
            wanted = {(letter or projection).lower() for letter, projection in found}
            assert {s for s in classes if formula.select(f".{classes[s]} .mathbf")} == wanted
            seen |= wanted
    assert seen == set(classes)


def test_every_fold_has_a_name_that_says_what_is_in_it(built):
    for page in PAGES:
        folds = checks.soup(built / f"{page}.html").select("article details")
        names = [fold.find("summary", recursive=False).get_text(strip=True) for fold in folds]
        assert [name for name in names if not name or "cell" in name] == []
        assert not [fold for fold in folds if fold.summary.get("aria-label")]


def test_licences_are_stated():
    assert (ROOT / "LICENSE").read_text("utf8").startswith("MIT License")
    legal_code = "creativecommons.org/licenses/by/4.0/legalcode"
    assert legal_code in (ROOT / "LICENSE-TEXT").read_text("utf8")


@pytest.mark.parametrize("table", ["README.md", "chapters/index.md"])
def test_every_chapter_is_in_the_tables(table):
    text = (ROOT / table).read_text("utf8")
    assert CHAPTERS
    assert [page for page in CHAPTERS if page.split("/")[1] not in text] == []
