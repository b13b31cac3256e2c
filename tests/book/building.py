"""The book, read once for all tests of its pages, and again only after a change.

What is read (Sphinx's doctrees) does not depend on whether it is printed: the one on paper is
written from it. What a published book has more, a small one shows (`tiny.py`).
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from filelock import FileLock

from tests import proved

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = {"address": "https://example.org/book", "repository": "https://github.com/someone/book"}


def build(source: Path, output: Path, *options: str) -> tuple[int, str]:
    """Build a book as `make book` does; return the exit status and all that was said."""
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "-W", "-n"]
    command += ["--keep-going", "--quiet", "--path-output", str(output), *options, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def public_config(source: Path, folder: Path, public: dict = PUBLIC) -> Path:
    """Write the configuration that a book would have if it were published; return its path."""
    config = yaml.safe_load((source / "_config.yml").read_text("utf8"))
    sphinx = config["sphinx"]
    sphinx["local_extensions"] = {
        name: str(source / path) for name, path in sphinx["local_extensions"].items()
    }
    sphinx["config"]["public"] = dict(public)
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


CHAPTERS = [page for page in pages_of(ROOT / "_toc.yml") if re.match(r"chapters/\d", page)]


# What a page is made of, besides the installed packages.
SOURCES = (
    "_config.yml",
    "_ext",
    "_toc.yml",
    "chapters",
    "d2lmini",
    "lettering",
    "live_cells",
    "theme",
    "tests/book/building.py",
)


def once(request, name: str, make, *more):
    """Return a folder and what `make(folder)` says: run once, and again only after a change.

    What has failed is made again in the next run: it may have been this machine.
    """
    temporary = request.getfixturevalue("tmp_path_factory").getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        temporary = temporary.parent  # that of the whole run
    kept = proved.folder(request.config, "books") or temporary
    key = proved.key(proved.files(*SOURCES), *more)
    folder, said = kept / f"{name}-{key}", kept / f"{name}-{key}.json"
    failed = temporary / said.name
    with FileLock(f"{folder}.lock"):
        if not said.exists() and not failed.exists():
            for old in kept.glob(f"{name}-*"):  # and what an interrupted run has left
                if old.suffix != ".lock":
                    shutil.rmtree(old) if old.is_dir() else old.unlink()
            folder.mkdir()
            status, words = make(folder)
            (failed if status else said).write_text(json.dumps([status, words]))
    return folder, json.loads((said if said.exists() else failed).read_text())


@pytest.fixture(scope="session")
def building(request):
    """Return the exit status, what was said, and where the pages are."""

    def make(folder):  # as it is for those who have no address for it, once it has one as well
        return build(ROOT, folder, "--config", str(public_config(ROOT, folder, {})))

    folder, said = once(request, "book", make)
    return *said, folder / "_build" / "html"


@pytest.fixture(scope="session")
def built(building):
    """Return where the built pages are."""
    return building[-1]


def publish(folder: Path) -> tuple[int, str]:
    """Build a small book as if it were published, in a site; its path is no pattern."""
    from tests.book import tiny

    source = tiny.tiny_book(folder / "a [b] c", tiny.pages())
    public_config(source, source).replace(source / "_config.yml")
    tiny.committed(source, "2020-02-03")
    with pytest.MonkeyPatch.context() as patch:
        if os.environ.get("PYODIDE_DIR"):
            patch.setenv("LIVE_SELF_HOST", "1")  # as the workflow publishes the book
        status, said = build(source, source)
    if status == 0:
        (folder / "site").mkdir()
        shutil.copytree(source / "_build/html", folder / "site/book")  # where PUBLIC says
    return status, said


@pytest.fixture(scope="session")
def published_site(request):
    """Return the root of the server that has a small published book."""
    made_of = proved.key(proved.files("tests/book/tiny.py")), os.environ.get("PYODIDE_DIR")
    folder, (status, said) = once(request, "published", publish, *made_of)
    assert status == 0 and "WARNING" not in said, said
    return folder / "site"
