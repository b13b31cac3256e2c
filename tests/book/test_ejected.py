"""Jupyter Book is the front and no trap: plain Sphinx builds the same pages, byte for byte."""

import pytest

from scripts import ejected
from tests.book.building import once


def build(folder):
    ejected.eject(folder / "book")
    return ejected.build(folder / "book", folder / "html")


@pytest.mark.weekly
def test_without_jupyter_book_every_page_is_the_same(request, built):
    """Of a small book, `test_small_book.py` asks it with each change."""
    folder, (status, said) = once(request, "ejected", build)
    assert status == 0, said
    assert (folder / "html/chapters/index.html").is_file()
    names = ejected.differing(built, folder / "html")
    assert not names, "\n".join(ejected.said(built, folder / "html", names))


def test_what_differs_is_found_and_said(tmp_path):
    for book, words in (("one", "<p>a\n"), ("other", "<p>b\n")):
        (tmp_path / book).mkdir()
        (tmp_path / book / "same.html").write_text("<p>\n")
        (tmp_path / book / "page.html").write_text(words)
        (tmp_path / book / ".buildinfo").write_text(book)
    (tmp_path / "other/more.html").write_text("<p>c\n")
    one, other = tmp_path / "one", tmp_path / "other"
    names = ejected.differing(one, other)
    assert names == ["more.html", "page.html"]
    assert "page.html: 2 lines, first -<p>a" in list(ejected.said(one, other, names))
