"""What a reader meets on the built pages: all there, all linked, all described, nothing raw."""

import re

import pytest

from tests.book import checks
from tests.book.conftest import ROOT, pages_of

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


@each()
def test_title_and_language(path):
    html = checks.soup(path)
    title = html.title.get_text().strip()
    assert len(html.select("article h1")) == 1
    assert title.endswith("Queries, Keys and Values")
    assert "<no title>" not in title
    assert html.html["lang"] == "en"


def test_titles_differ(built):
    titles = [checks.soup(built / f"{page}.html").title.get_text() for page in PAGES]
    assert len(set(titles)) == len(titles)


@each("index", "search", "genindex")
def test_internal_links_and_anchors(path):
    assert checks.broken_links(path) == []


@each("index", "search", "genindex")
def test_nothing_is_loaded_from_elsewhere(path):
    assert checks.loaded_from_elsewhere(path) == []


@each()
def test_pictures_are_described(path):
    assert checks.undescribed_pictures(path) == []


@each()
def test_no_markup_is_left_raw(path):
    assert checks.raw_markup(path) == []


def test_formulas_have_their_style_and_fonts(built):
    css = built / "_static" / "katex" / "katex.min.css"
    fonts = re.findall(r"url\(([^)]+)\)", css.read_text("utf8"))
    assert fonts
    assert all((css.parent / font).is_file() for font in fonts)
    pages = [checks.soup(built / f"{page}.html") for page in PAGES]
    with_formulas = [html for html in pages if html.select(".katex")]
    assert with_formulas
    for html in with_formulas:
        assert any("katex.min.css" in tag["href"] for tag in html.find_all("link", href=True))


def test_licences_are_stated():
    assert (ROOT / "LICENSE").read_text("utf8").startswith("MIT License")
    legal_code = "creativecommons.org/licenses/by/4.0/legalcode"
    assert legal_code in (ROOT / "LICENSE-TEXT").read_text("utf8")
