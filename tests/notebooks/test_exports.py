"""What nbconvert makes of a chapter: a program that runs, and a page whose links lead somewhere."""

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest
import yaml

from scripts import notebooks

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))
each = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


@each
def test_a_chapter_is_a_program(path):
    """Without a magic, which only Jupyter knows, and with what nbconvert has to be told."""
    notebook = json.loads(path.read_text("utf8"))
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    compile("\n\n".join(cells), path.name, "exec")
    assert notebook["metadata"]["language_info"].items() >= {
        ("file_extension", ".py"),
        ("nbconvert_exporter", "python"),
    }


def export(path, form, folder):
    """Let nbconvert write a chapter in another form, into a folder."""
    pytest.importorskip("nbconvert", reason="`make .venv/installed-lab` brings it")
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", form, "--output-dir"]
    command += [str(folder), "--config", "scripts/jupyter_config.py", str(path)]
    subprocess.run(command, cwd=notebooks.ROOT, check=True, capture_output=True)


PUBLIC = yaml.safe_load((notebooks.ROOT / "_config.yml").read_text("utf8"))["sphinx"]["config"]
BOOK = (PUBLIC["public"]["address"] or (notebooks.ROOT / "_build/html").as_uri()).rstrip("/")


@each
def test_from_an_exported_page_links_lead_to_pages_of_the_book(path, built):
    """To their places there; and no code is shown that the book folds."""
    config = SimpleNamespace(HTMLExporter=SimpleNamespace())
    source = (notebooks.ROOT / "scripts/jupyter_config.py").read_text("utf8")
    exec(source, {"get_config": lambda: config, "__file__": notebooks.ROOT / "scripts/x.py"})
    (exported,) = config.HTMLExporter.preprocessors
    notebook, _ = exported(nbformat.read(path, 4), {})
    said = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)\s]+)\)", said)
    assert [link for link in links if not link.startswith(("#", "http", BOOK))] == []
    pages = [link.removeprefix(f"{BOOK}/") for link in links if link.startswith(BOOK)]
    assert len(pages) > 5
    for page, _, place in (link.partition("#") for link in pages):
        text = (built / page).read_text("utf8")
        assert not place or f'id="{place}"' in text, (page, place)
    for cell in notebook.cells:
        folded = "source_hidden" in cell.metadata.get("jupyter", {})
        assert cell.metadata.get("transient", {}).get("remove_source", False) is folded


@pytest.mark.weekly
@each
def test_links_on_an_exported_page_lead_to_its_places_or_to_the_book(path, tmp_path):
    export(path, "html", tmp_path)
    page = (tmp_path / f"{path.stem}.html").read_text("utf8")
    linked = set(re.findall(r'<a[^>]*href="([^"]+)"', page))
    here = {link[1:] for link in linked if link.startswith("#")}
    assert here and here <= set(re.findall(r'id="([^"]+)"', page))
    assert [link for link in linked if not link.startswith(("#", "http", BOOK))] == []
    assert any(link.startswith(f"{BOOK}/chapters/") for link in linked)


@pytest.mark.weekly
@each
def test_it_runs_to_its_end(path, tmp_path):
    """In an empty folder, where it finds nothing but the library."""
    export(path, "script", tmp_path)
    ours = os.environ | {"PYTHONPATH": str(notebooks.ROOT), "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, f"{path.stem}.py"],
        cwd=tmp_path,
        env=ours,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
