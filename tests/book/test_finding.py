"""What the search looks through, and what stands beside a page for its links."""

import gzip
import json
import re

import pytest

from tests.book import checks
from tests.book.building import ROOT, pages_of
from tests.test_package import PUBLIC

PAGES = pages_of(ROOT / "_toc.yml")
HEAVIEST = 200_000  # bytes, packed: less than the page of a chapter; for who searches, and once


@pytest.fixture(scope="module")
def script(built):
    return (built / "_static" / "search-book.mjs").read_text("utf8")


@pytest.fixture(scope="module")
def book(script):
    return json.loads(script.partition("var THE_BOOK = ")[2].removesuffix(";\n"))


@pytest.fixture(scope="module")
def anchors(built):
    html = {page: checks.soup(built / f"{page}.html") for page in PAGES}
    return {page: {tag["id"] for tag in html[page].find_all(id=True)} for page in PAGES}


def test_every_page_is_there_in_order(book):
    assert [address.removesuffix(".html") for address, _ in book["pages"]] == PAGES


def test_every_place_is_there_once(book, anchors):
    places = [(PAGES[page], anchor) for page, anchor, *_ in book["rows"]]
    assert [place for place in places if place[1] and place[1] not in anchors[place[0]]] == []
    assert len(places) == len(set(places))


def test_what_can_be_found(built, book):
    """Each section of a chapter, each term, each public name."""
    titles = {(PAGES[page], title) for page, _, title, *_ in book["rows"]}
    for page in PAGES:
        if re.match(r"chapters/\d", page):
            for heading in checks.soup(built / f"{page}.html").select("article :is(h2, h3)"):
                name = heading.get_text().removesuffix("#").replace("\xa0", " ")
                number, _, words = name.partition(" ")
                assert (
                    (page, f"{number.strip('.')} {words}") in titles
                    or "$" in name
                    or (heading.select_one(".katex"))
                ), name
    assert PUBLIC.keys() - {"plotting"} <= {title for _, title in titles}
    terms = checks.soup(built / "chapters/glossary.html").select("dl.glossary dt")
    assert len(terms) > 50
    named = {title for page, title in titles if page.endswith("glossary")}
    assert {term.get_text().removesuffix("#") for term in terms} <= named


def test_a_work_is_said_once(built):
    works = checks.soup(built / "chapters/bibliography.html").select("div.citation")
    assert len(works) > 40
    assert all(len(work.select(".label")) == len(work.find_all("p")) == 1 for work in works)
    assert not [work["id"] for work in works if "$" in work.get_text()]


def test_chapters_come_before_exercises_and_lists(book):
    kinds = {kind for _, _, _, kind, *_ in book["rows"]}
    assert kinds == {"chapter", "part", "exercise", "term", "section", "name"}
    asked = [page for page, _, _, kind, *_ in book["rows"] if kind == "exercise"]
    assert all(re.match(r"chapters/\d", PAGES[page]) for page in asked) and len(asked) > 50


def test_no_markup_and_no_stored_numbers_are_looked_through(book):
    text = "\n".join(row[4] for row in book["rows"])
    for raw in ("<div", "\\operatorname", "{term}", "](", "```", "data:image"):
        assert raw not in text, raw


def test_it_is_light(script):
    assert len(gzip.compress(script.encode(), mtime=0)) <= HEAVIEST, (
        "leave out of it what nobody seeks"
    )


def test_nothing_of_another_search_is_left(built):
    for page in (*PAGES, "search"):
        html = checks.soup(built / f"{page}.html")
        scripts = " ".join(tag.get("src", "") for tag in html.find_all("script"))
        assert not re.search("searchtools|searchindex|language_data|sphinx_highlight", scripts)


def test_previews_say_what_their_links_lead_to(built):
    seen = 0
    for page in PAGES:
        html = checks.soup(built / f"{page}.html")
        for preview in html.select(".preview"):
            seen += 1
            assert len(preview.get_text(strip=True)) > 20, preview["data-of"]
            assert not preview.find("a") and not preview.find(id=True)
            path, _, place = preview["data-of"].partition("#")
            there = checks.soup(built / "chapters" / path).find(id=place)
            said = there.find_next_sibling("dd") if there.name == "dt" else there
            first = preview.get_text(" ", strip=True)[:30]
            assert first in said.get_text(" ", strip=True), preview["data-of"]
    assert seen > 100
