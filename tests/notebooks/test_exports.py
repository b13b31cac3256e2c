"""What nbconvert makes of a chapter: a page whose links lead somewhere."""

import re
import subprocess
import sys

import pytest
import yaml

from scripts import notebooks

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))
PUBLIC = yaml.safe_load((notebooks.ROOT / "_config.yml").read_text("utf8"))["sphinx"]["config"]
BOOK = (PUBLIC["public"]["address"] or (notebooks.ROOT / "_build/html").as_uri()).rstrip("/")


@pytest.mark.weekly
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_links_on_an_exported_page_lead_to_its_places_or_to_the_book(path, tmp_path):
    pytest.importorskip("nbconvert", reason="`make .venv/installed-lab` brings it")
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "html", "--output-dir"]
    command += [str(tmp_path), "--config", "scripts/jupyter_config.py", str(path)]
    subprocess.run(command, cwd=notebooks.ROOT, check=True, capture_output=True)
    page = (tmp_path / f"{path.stem}.html").read_text("utf8")
    linked = set(re.findall(r'<a[^>]*href="([^"]+)"', page))
    here = {link[1:] for link in linked if link.startswith("#")}
    assert here and here <= set(re.findall(r'id="([^"]+)"', page))
    assert [link for link in linked if not link.startswith(("#", "http", BOOK))] == []
    assert "this kernel is Python" not in page, "code that the book folds"
    assert any(link.startswith(f"{BOOK}/chapters/") for link in linked)
