"""The book, built once for all tests of its pages."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = {"address": "https://example.org/book", "repository": "https://github.com/someone/book"}


def build(source: Path, output: Path, *options: str) -> tuple[int, str]:
    """Build a book as `make book` does; return the exit status and all that was said."""
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "-W", "-n"]
    command += ["--keep-going", "--quiet", "--path-output", str(output), *options, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def public_config(source: Path, folder: Path) -> Path:
    """Write the configuration that a book would have if it were published; return its path."""
    config = yaml.safe_load((source / "_config.yml").read_text("utf8"))
    sphinx = config["sphinx"]
    sphinx["local_extensions"] = {
        name: str(source / path) for name, path in sphinx["local_extensions"].items()
    }
    sphinx["config"]["public"] = dict(PUBLIC)
    if os.environ.get("PYODIDE_DIR"):  # as the workflow publishes it
        sphinx["config"]["live"] = {"self_host": True}
    path = folder / "public.yml"
    path.write_text(yaml.safe_dump(config), "utf8")
    return path


def pages_of(toc: Path) -> list[str]:
    """Return the pages that a table of contents names, the first one first."""
    content = yaml.safe_load(toc.read_text("utf8"))
    parts = content.get("parts", [content])
    chapters = [chapter for part in parts for chapter in part["chapters"]]
    listed = [page for chapter in chapters for page in (chapter, *chapter.get("sections", []))]
    return [content["root"], *(page["file"] for page in listed)]


@pytest.fixture(scope="session")
def building(tmp_path_factory):
    """Return the exit status, what was said, and where the pages are."""
    output = tmp_path_factory.mktemp("book")
    return *build(ROOT, output), output / "_build" / "html"


@pytest.fixture(scope="session")
def built(building):
    """Return where the built pages are."""
    return building[-1]


@pytest.fixture(scope="session")
def published_site(tmp_path_factory):
    """Build the book as if it were published; return the root of the server that has it."""
    folder = tmp_path_factory.mktemp("published")
    config = public_config(ROOT, folder)
    status, said = build(ROOT, folder, "--config", str(config))
    assert status == 0, said
    site = folder / "site"
    site.mkdir()
    (folder / "_build" / "html").rename(site / "book")  # where PUBLIC says
    return site
