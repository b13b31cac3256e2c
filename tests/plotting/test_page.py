"""From a notebook's outputs to a page of the book: files, descriptions, tables."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from d2lmini.plotting import AttentionExplorer, AttentionTrace
from tests.plotting.reading import heatmaps, random_weights

pytest.importorskip("myst_nb")  # the book's own tools: the library's tests do without

import nbformat
from bs4 import BeautifulSoup

from lettering.face import with_face
from lettering.letters import lettered

ROOT = Path(__file__).parents[2]
SETTINGS = f"""
import sys
sys.path.insert(0, {str(ROOT / "_ext")!r})
extensions = ["myst_nb", "sphinxcontrib.bibtex", "pipeline"]
bibtex_bibfiles = ["works.bib"]
html_theme = "theme"
html_theme_path = [{str(ROOT)!r}]
html_static_path = [{str(ROOT / "chapters/_static")!r}]
nb_execution_mode = "off"
project = "test"
"""


def cell(shown):
    """Return a cell that has run, with what it shows."""
    if hasattr(shown, "html"):
        data, about = shown._repr_mimebundle_()
    else:
        data, about = {"text/html": shown._repr_html_(), "text/plain": str(shown)}, {}
    output = nbformat.v4.new_output("display_data", data=data, metadata=about)
    return nbformat.v4.new_code_cell("show()", outputs=[output], execution_count=1)


def test_what_a_notebook_shows_stands_on_the_page(tmp_path):
    (tmp_path / "part").mkdir()
    (tmp_path / "conf.py").write_text(SETTINGS)
    (tmp_path / "index.md").write_text("# Book\n\nNothing.\n\n```{toctree}\npart/page\n```\n")
    (tmp_path / "works.bib").touch()
    heatmap = heatmaps(random_weights(3, 3), xticks=["<a>", '"b"', "c"])
    trace = AttentionTrace([1.0], [[1.0], [2.0]], [3.0, 4.0])
    shown = heatmap, trace, AttentionExplorer(np.eye(2), ["a", "b"])
    cells = [nbformat.v4.new_markdown_cell("# Page"), *map(cell, shown)]
    kernel = {"name": "python3", "display_name": "Python 3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=about)
    nbformat.write(notebook, tmp_path / "part/page.ipynb")
    pages = tmp_path / "html"
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "-q", tmp_path, pages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    html = (pages / "part/page.html").read_text("utf8")
    page = BeautifulSoup(html, "html.parser")
    # Each theme has a file with the description and its size, and one for a phone.
    images = page.select(".d2lmini-figure img")
    assert [image["class"] for image in images] == [["only-light"], ["only-dark"]]
    for image, theme in zip(images, ("light", "dark"), strict=True):
        assert image["alt"] == heatmap.alt and image["loading"] == "lazy"
        assert (int(image["width"]), int(image["height"])) == heatmap._size()
        drawn = lettered(heatmap.svg(theme).encode(), round(1.3 * heatmap._size()[0]), 14)
        assert (pages / "part" / image["src"]).read_bytes() == with_face(drawn)
        phone = image.find_previous_sibling("source")
        assert "max-width" in phone["media"] and (pages / "part" / phone["srcset"]).is_file()
    assert "data:image" not in html
    (head, *_) = page.select(".d2lmini-figure > details thead")
    assert [th.text for th in head.select("th")] == ["<a>", '"b"', "c"]
    # Tables stand on the page; their style is in the one sheet, and their script is not on others.
    for name in ("trace", "explorer"):
        (found,) = page.select(f".d2lmini-{name}")
        assert found.table and not found.find_all(["style", "script"])
    style = (pages / "_static/style.css").read_text("utf8")
    assert style.count(".d2lmini-trace thead tr + tr th ") == 1 and ".only-dark" in style
    assert page.select('script[src*="explorer.mjs"]')
    assert "explorer.mjs" not in (pages / "index.html").read_text("utf8")
