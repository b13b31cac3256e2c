"""What depends on where the book is published: all of it from one setting, and none without it."""

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
from tests.book import building
from tests.book.building import PUBLIC, ROOT, public_config
from tests.book.tiny import WITHOUT_GIT, committed

CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text("utf8"))["sphinx"]["config"]


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


def test_once_it_is_published_the_tests_still_have_a_book_that_is_not(tmp_path, monkeypatch):
    (tmp_path / "source").mkdir()
    shutil.copy(ROOT / "_config.yml", tmp_path)
    public_config(tmp_path, tmp_path).rename(tmp_path / "source/_config.yml")
    asked = []
    monkeypatch.setattr(building, "build", lambda *options: asked.append(options))
    building.build_private(tmp_path / "source", tmp_path)
    config = yaml.safe_load(Path(asked[0][-1]).read_text("utf8"))
    assert config["sphinx"]["config"]["public"] == {}


def test_the_picture_is_what_the_script_draws(tmp_path):
    """Apart from how fonts are smoothed, which differs from one build of a library to the next."""
    path = tmp_path / "card.png"
    card.main(path)
    stored, drawn = (Image.open(p).convert("L") for p in (card.PICTURE, path))
    assert drawn.size == stored.size == (1200, 630)
    apart = ImageChops.difference(stored, drawn).histogram()
    assert sum(apart[64:]) < 0.002 * 1200 * 630


def test_the_citation_is_of_this_version_at_this_place():
    """Whoever publishes the book or a new version is told what to change in CITATION.cff."""
    cff = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf8"))
    book = cff["preferred-citation"]
    assert (cff["type"], book["type"]) == ("software", "book")
    assert (cff["license"], book["license"]) == ("MIT", "CC-BY-4.0")
    for part in (cff, book):
        assert part.get("url") == (CONFIG["public"]["address"] or None)
        assert part.get("repository-code") == (CONFIG["public"]["repository"] or None)
        assert str(part["version"]).startswith(str(CONFIG["version"]))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert cff["version"] == project["version"]
    assert str(book["year"]) == cff["date-released"][:4]


def test_without_a_browser_the_pdf_says_so(monkeypatch):
    monkeypatch.setattr(pdf, "find_browser", lambda: None)
    with pytest.raises(SystemExit, match="a PDF needs a browser"):
        pdf.needed_browser()


def test_no_day_is_better_than_a_wrong_one(tmp_path, monkeypatch):
    """Git is asked about this file of this folder: in a hook it has another one, a path is no
    pattern; and in a shallow clone all files seem equally old."""
    origin, shallow = tmp_path / "origin", tmp_path / "shallow"
    origin.mkdir()
    (origin / "a[b]*.md").write_text("unpacked")
    assert public.changed(origin, "a[b]*.md") == ""
    committed(origin, "2020-02-03")
    (origin / "ab1.md").write_text("another")
    committed(origin, "2021-05-06")
    clone = ["git", "clone", "-q", "--depth", "1", origin.as_uri(), str(shallow)]
    subprocess.run(clone, check=True, env=WITHOUT_GIT)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert public.changed(origin, "a[b]*.md") == "2020-02-03"
    assert public.changed(shallow, "a[b]*.md") == ""
    monkeypatch.setenv("PATH", str(tmp_path))  # there is no git
    assert public.changed(origin, "a[b]*.md") == ""
