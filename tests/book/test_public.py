"""What depends on where the book is published: all of it from one setting, and none without it."""

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from PIL import Image, ImageChops
from sphinx.errors import ConfigError

from _ext import public
from scripts import card, pdf
from tests.book import building, checks
from tests.book.building import PUBLIC, ROOT, pages_of, public_config

ADDRESS, REPOSITORY = PUBLIC["address"], PUBLIC["repository"]


WITHOUT_GIT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def committed(folder, day):
    """Commit all that is in a folder on a day; it becomes a repository if it is none."""
    when = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), f"{day}T12:00Z")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], cwd=folder, env=WITHOUT_GIT | when, check=True)


def properties(path):
    return {
        tag["property"]: tag["content"] for tag in checks.soup(path).find_all("meta", property=True)
    }


def hrefs(path):
    return [tag["href"] for tag in checks.soup(path).find_all("a", href=True)]


@pytest.mark.parametrize("wrong", ["example.org/book", None])
@pytest.mark.parametrize("name", ["address", "repository"])
def test_the_setting_is_two_web_addresses(name, wrong):
    config = SimpleNamespace(public=dict(PUBLIC) | {name: wrong})
    if name == "address" and wrong is None:  # it is not published
        public.configure(None, config)
        assert config.public["address"] == ""
    else:
        with pytest.raises(ConfigError, match=f"public: {name}: {wrong or ''!r} is no web address"):
            public.configure(None, config)


def test_nothing_of_it_without_the_setting(built):
    for name in ("404.html", "sitemap.xml", "robots.txt"):
        assert not (built / name).exists()
    for page in pages_of(ROOT / "_toc.yml"):
        path = built / f"{page}.html"
        html = checks.soup(path)
        assert properties(path) == {}
        assert html.find("link", rel="canonical") is None
        assert html.find(class_="last-updated") is None
        found = hrefs(path)
        assert not any("colab" in url or "mybinder" in url for url in found)
        assert not any(url.endswith(".pdf") and "//" not in url for url in found)


def test_once_it_is_published_the_tests_still_have_a_book_that_is_not(tmp_path, monkeypatch):
    (tmp_path / "source").mkdir()
    shutil.copy(ROOT / "_config.yml", tmp_path)
    public_config(tmp_path, tmp_path).rename(tmp_path / "source/_config.yml")
    asked = []
    monkeypatch.setattr(building, "build", lambda *options: asked.append(options))
    building.build_private(tmp_path / "source", tmp_path)
    config = yaml.safe_load(Path(asked[0][-1]).read_text("utf8"))
    assert config["sphinx"]["config"]["public"] == {}


def test_every_page_has_a_description_of_its_own(built):
    pages = [checks.soup(built / f"{page}.html") for page in pages_of(ROOT / "_toc.yml")]
    found = [html.find("meta", attrs={"name": "description"})["content"] for html in pages]
    fit = [40 < len(text) <= 202 for text in found]  # one sentence; what a search shows of it
    assert all(fit), f"write a first paragraph that says what the page is about: {found}"
    assert len(set(found)) == len(found)


def test_the_picture_is_what_the_script_draws(tmp_path):
    """Apart from how fonts are smoothed, which differs from one build of a library to the next."""
    path = tmp_path / "card.png"
    card.main(path)
    stored, drawn = (Image.open(p).convert("L") for p in (card.PICTURE, path))
    assert drawn.size == stored.size == (1200, 630)
    apart = ImageChops.difference(stored, drawn).histogram()
    assert sum(apart[64:]) < 0.002 * 1200 * 630


def test_the_picture_in_the_readme_is_on_no_page(built):
    readme = (ROOT / "README.md").read_text("utf8")
    assert re.search(r"!\[The first page[^]]{80,}\]\(chapters/_static/first-page\.png\)", readme)
    for page in pages_of(ROOT / "_toc.yml"):
        assert "first-page.png" not in (built / f"{page}.html").read_text("utf8")


def test_how_to_cite(built):
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    page = checks.soup(built / "chapters" / "index.html")
    entry = page.find(class_="highlight-bibtex").get_text()
    book = cff["preferred-citation"]
    assert book["title"] in entry and str(book["version"]) in entry and "url" not in entry


def test_the_citation_is_of_this_version_at_this_place():
    """Whoever publishes the book or a new version is told what to change in CITATION.cff."""
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["sphinx"]["config"]
    book = cff["preferred-citation"]
    assert (cff["type"], book["type"]) == ("software", "book")
    assert (cff["license"], book["license"]) == ("MIT", "CC-BY-4.0")
    for part in (cff, book):
        assert part.get("url") == (config["public"]["address"] or None)
        assert part.get("repository-code") == (config["public"]["repository"] or None)
        assert str(part["version"]).startswith(str(config["version"]))
    assert (
        cff["version"] == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    )
    assert str(book["year"]) == cff["date-released"][:4]


def test_the_licences_stand_under_every_page(built):
    for page in pages_of(ROOT / "_toc.yml"):
        footer = checks.soup(built / f"{page}.html").select_one(".foot")
        text = " ".join(footer.get_text().split())
        assert "© Copyright 2026 The authors of Queries, Keys and Values." in text
        assert "Text and figures: CC BY 4.0. Code: MIT licence." in text
        assert "By The" not in text


def test_works_say_where_they_are_cited(built):
    page = built / "chapters" / "bibliography.html"
    works = checks.soup(page).find_all(class_="citation")
    assert works
    for work in works:
        assert "Cited in" in work.get_text() and work.find("a", class_="internal")


def test_what_it_runs_on(built):
    text = checks.soup(built / "chapters" / "facts.html").article.get_text(" ")
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.M))
    assert pins["torch"] in text and pins["jupyter-book"] in text
    stored = json.loads((ROOT / "chapters" / "stored-with.json").read_text())
    assert all(value in text for value in stored.values())
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["date-released"] in text


def test_without_a_browser_the_pdf_says_so(monkeypatch):
    monkeypatch.setattr(pdf, "find_browser", lambda: None)
    with pytest.raises(SystemExit, match="a PDF needs a browser"):
        pdf.needed_browser()


def test_no_day_is_better_than_a_wrong_one(tmp_path, monkeypatch):
    """Without the git program, and in a shallow clone, where all files seem equally old."""
    origin, shallow = tmp_path / "origin", tmp_path / "shallow"
    origin.mkdir()
    for text in ("one", "two"):
        (origin / "page.md").write_text(text)
        committed(origin, "2020-02-03")
    clone = ["git", "clone", "-q", "--depth", "1", origin.as_uri(), str(shallow)]
    subprocess.run(clone, check=True, env=WITHOUT_GIT)
    assert public.changed(origin, "page.md") == "2020-02-03"
    assert public.changed(shallow, "page.md") == ""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert public.changed(origin, "page.md") == ""


def test_git_is_asked_about_this_file_of_this_folder(tmp_path, monkeypatch):
    """In a hook its variables are about another repository, and a path is no pattern."""
    for name, day in (("a[b]*.md", "2020-02-03"), ("ab1.md", "2021-05-06")):
        (tmp_path / name).write_text(name)
        committed(tmp_path, day)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert public.changed(tmp_path, "a[b]*.md") == "2020-02-03"


def test_without_a_repository_there_is_no_day(tmp_path):
    (tmp_path / "page.md").write_text("unpacked")
    assert public.changed(tmp_path, "page.md") == ""
