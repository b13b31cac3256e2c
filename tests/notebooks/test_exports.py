"""What nbconvert makes of a chapter: a program that runs, and a page whose links lead somewhere."""

import os
import re
import subprocess
import sys

import pytest
import yaml

from scripts import notebooks

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))
each = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


def export(path, form, folder):
    """Let nbconvert write a chapter in another form, into a folder."""
    pytest.importorskip("nbconvert", reason="`make .venv/installed-lab` brings it")
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", form, "--output-dir"]
    command += [str(folder), "--config", "scripts/jupyter_config.py", str(path)]
    subprocess.run(command, cwd=notebooks.ROOT, check=True, capture_output=True)


PUBLIC = yaml.safe_load((notebooks.ROOT / "_config.yml").read_text("utf8"))["sphinx"]["config"]
BOOK = (PUBLIC["public"]["address"] or (notebooks.ROOT / "_build/html").as_uri()).rstrip("/")


@pytest.mark.weekly
@each
def test_links_on_an_exported_page_lead_to_its_places_or_to_the_book(path, tmp_path):
    export(path, "html", tmp_path)
    page = (tmp_path / f"{path.stem}.html").read_text("utf8")
    linked = set(re.findall(r'<a[^>]*href="([^"]+)"', page))
    here = {link[1:] for link in linked if link.startswith("#")}
    assert here and here <= set(re.findall(r'id="([^"]+)"', page))
    assert [link for link in linked if not link.startswith(("#", "http", BOOK))] == []
    assert "this kernel is Python" not in page, "code that the book folds"
    assert any(link.startswith(f"{BOOK}/chapters/") for link in linked)


@pytest.mark.weekly
@each
def test_it_runs_to_its_end(path, tmp_path):
    """In an empty folder, where it finds nothing but the library."""
    export(path, "script", tmp_path)
    ours = os.environ | {"PYTHONPATH": str(notebooks.ROOT), "MPLBACKEND": "agg"}
    command = [sys.executable, f"{path.stem}.py"]
    options = {"capture_output": True, "text": True, "check": False, "timeout": 900}
    done = subprocess.run(command, cwd=tmp_path, env=ours, **options)
    assert done.returncode == 0, done.stderr[-2000:]
