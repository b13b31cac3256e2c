"""The library's reference: a page for each module, nothing lost, each name with its source."""

import pytest

from tests.book import checks
from tests.book.building import ROOT, pages_of
from tests.test_package import PUBLIC

LIST = "chapters/api"
PAGES = [page for page in pages_of(ROOT / "_toc.yml") if page.startswith(f"{LIST}/")]
MOST = 16  # names on a page: what one can look through by eye


def described(built, page):
    """Return what a page describes: signatures of functions and classes, not of their parts."""
    html = checks.soup(built / f"{page}.html")
    return [dl.find("dt", class_="sig") for dl in html.select("section > dl.py")]


def test_every_public_name_is_on_one_page(built):
    names = [dt["id"].rpartition(".")[2] for page in PAGES for dt in described(built, page)]
    assert len(names) == len(set(names))
    assert PUBLIC.keys() - {"plotting"} <= set(names)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_what_one_can_look_through(built, page):
    assert 0 < len(described(built, page)) <= MOST


@pytest.mark.parametrize("page", PAGES)
def test_each_name_leads_to_its_source_and_back(built, page):
    for signature in described(built, page):
        link = signature.find("a", href=lambda href: "_modules/" in href)
        assert link and link.get_text() == "[source]", signature["id"]
        path, _, place = link["href"].partition("#")
        source = (built / page).parent.joinpath(path).resolve()
        there = checks.soup(source).find(id=place)
        kind = "def " if "function" in signature.parent["class"] else "class "
        assert kind + signature["id"].rpartition(".")[2] in there.get_text()
        ways_back = [link["href"] for link in there.select("a.viewcode-back")]
        assert any(f"{page}.html#{signature['id']}" in way for way in ways_back), ways_back


@pytest.mark.parametrize("page", PAGES)
def test_a_property_is_said_in_sentences(built, page):
    """What stands before a colon in its docstring would be taken for its type."""
    html = checks.soup(built / f"{page}.html")
    assert html.select("dl.property .field-list") == []


def test_old_addresses_lead_on(built):
    """All names were once on one page: `api.html#d2lmini.softmax` is a row that leads to it."""
    html = checks.soup(built / f"{LIST}.html")
    for page in PAGES:
        for dt in checks.soup(built / f"{page}.html").select("dt.sig[id]"):
            place = html.find(id=dt["id"])
            assert place, dt["id"]
            assert place.find_parent("tr").find("a", href=lambda href, page=page: page[9:] in href)


def test_the_list_has_every_page(built):
    links = {link["href"] for link in checks.soup(built / f"{LIST}.html").select("article p a")}
    assert {f"{page.removeprefix('chapters/')}.html" for page in PAGES} <= links
