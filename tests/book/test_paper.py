"""A book as one PDF: a small one, and once a week this one."""

import re
import shutil
from pathlib import Path

import pytest

from scripts import pdf
from tests import proved
from tests.book import checks
from tests.book.building import ROOT, once


@pytest.fixture(scope="module", params=["small", pytest.param("whole", marks=pytest.mark.weekly)])
def book(request, published_site, chromium):
    """Return the page that is printed, and the PDF, of a small book or of this one."""

    def make(folder):
        with pytest.MonkeyPatch.context() as patch:
            if request.param == "small":
                (small,) = published_site.parent.glob("a *")
                patch.setattr(pdf, "ROOT", small)
            else:  # what was read is what `make book` keeps
                built = request.getfixturevalue("built")
                shutil.copytree(built.parent / ".doctrees", folder / "_build" / ".doctrees")
            page = pdf.build_page(folder / "_build")
        pdf.print_page(page, folder / "book.pdf", chromium)
        return 0, str(page)

    scripts = ["scripts/pdf.py", "scripts/paper.py", "scripts/paper.css", "tests/book/tiny.py"]
    folder, (_, page) = once(
        request, f"{request.param}-paper", make, proved.key(proved.files(*scripts))
    )
    return Path(page), (folder / "book.pdf").read_bytes()


@pytest.fixture(scope="module")
def html(book):
    return checks.soup(book[0])


@pytest.fixture(scope="module")
def numbers(book):
    return pdf.page_numbers(book[1])


def test_it_is_a_book_for_every_reader_whose_links_lead_somewhere(book, html, numbers):
    content = book[1]
    assert content.startswith(b"%PDF-")
    title = b"/Title (Queries, Keys and Values)"
    for needed in (b"/Outlines", b"/StructTreeRoot", b"/Lang (en)", title):
        assert needed in content
    assert b"file:" not in content and str(ROOT).encode() not in content
    targets = re.findall(rb"/URI \((.*?)\)", content)
    assert targets and all(target.startswith((b"http", b"mailto:")) for target in targets)
    used = {name.decode() for name in re.findall(rb"/Dest /(\S+)", content)}
    assert len(used) > len(html.select("main h2"))  # at least what the contents link to
    assert {pdf.unquote(name.replace("#", "%")) for name in used} <= set(numbers)
    names = [tag["id"] for tag in html.find_all(id=True)]
    assert len(names) == len(set(names))
    hrefs = {link["href"] for link in html.find_all("a", href=True)}
    assert {href[1:] for href in hrefs if href.startswith("#")} <= set(names)
    assert all(href.startswith(("#", "http", "mailto:")) for href in hrefs)


def test_title_page_then_contents_then_chapters_whose_answers_are_last(html, numbers):
    cover, contents, *documents = html.main.find_all(recursive=False)
    assert html.title.get_text() == cover.find(class_="title").get_text()
    assert "CC BY 4.0" in cover.get_text() and "authors" in cover.get_text()
    first = [numbers[contents.find("a", href=f"#{d['id']}")["href"][1:]] for d in documents]
    assert first[0] > 2 and first == sorted(set(first))  # each on a page of its own
    listed = [numbers[tag["data-page"]] for tag in contents.find_all(attrs={"data-page": True})]
    assert listed == sorted(listed) and len(listed) >= len(html.select("main h1, main h2")) / 2
    assert all(document.h1 and document.find_all("h1") == [document.h1] for document in documents)
    chapters = [document for document in documents if document.h1.select_one(".section-number")]
    assert len(documents) > len(chapters) > 0
    for chapter in chapters:
        assert chapter.find_all(recursive=False)[-1]["class"] == ["answers-all"]
        questions = chapter.select(".see a")
        assert questions and len(questions) == len(chapter.select(".answers"))
        for link in questions:
            name = link["href"][1:]
            assert chapter.find(id=name) and numbers[name] >= numbers[f"to-{name}"]
    assert not html.select("details, .d2l-fold, .d2l-todo, .only-dark, script")
