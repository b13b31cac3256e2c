"""The book, built once for all tests of its pages."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def build(source: Path, output: Path) -> tuple[int, str]:
    """Build a book as `make book` does; return the exit status and all that was said."""
    command = [str(Path(sys.executable).with_name("jupyter-book")), "build", "-W", "-n"]
    command += ["--keep-going", "--quiet", "--path-output", str(output), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def pages_of(toc: Path) -> list[str]:
    """Return the pages that a table of contents names, the first one first."""
    content = yaml.safe_load(toc.read_text("utf8"))
    parts = content.get("parts", [content])
    return [content["root"]] + [page["file"] for part in parts for page in part["chapters"]]


@pytest.fixture(scope="session")
def building(tmp_path_factory):
    """Return the exit status, what was said, and where the pages are."""
    output = tmp_path_factory.mktemp("book")
    return *build(ROOT, output), output / "_build" / "html"


@pytest.fixture(scope="session")
def built(building):
    """Return where the built pages are."""
    return building[-1]
