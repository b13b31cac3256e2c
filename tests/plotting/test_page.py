"""From a notebook's outputs to a page of the book: files, numbers, captions, descriptions."""

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

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "_ext"))
from lettering.face import with_face  # noqa: E402
from lettering.letters import lettered  # noqa: E402

SETTINGS = f"""
import sys
sys.path.insert(0, {str(ROOT / "_ext")!r})
extensions = ["myst_nb", "sphinxcontrib.bibtex", "pipeline"]
bibtex_bibfiles = ["works.bib"]
html_theme = "theme"
html_theme_path = [{str(ROOT)!r}]
html_static_path = [{str(ROOT / "chapters/_static")!r}]
nb_execution_mode = "off"
numfig = True
project = "test"
"""
HEATMAP = heatmaps(random_weights(3, 3), xticks=["<a>", '"b"', "c"])
CAPTION = {"mystnb": {"figure": {"caption": "Weights of *three* words.", "name": "fig-weights"}}}


def cell(shown, metadata=None):
    """Return a cell that has run, with what it shows."""
    if hasattr(shown, "html"):
        data, about = shown._repr_mimebundle_()
    else:
        data, about = {"text/html": shown._repr_html_(), "text/plain": str(shown)}, {}
    output = nbformat.v4.new_output("display_data", data=data, metadata=about)
    return nbformat.v4.new_code_cell(
        "show()", outputs=[output], execution_count=1, metadata=metadata or {}
    )


def build(folder, builder="html"):
    """Build with every warning an error; return where the pages are."""
    command = [sys.executable, "-m", "sphinx", "-W", "-n", "-q", "-b", builder]
    done = subprocess.run(
        [*command, folder, folder.parent / builder], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder.parent / builder


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages") / "source"
    (folder / "part").mkdir(parents=True)
    (folder / "conf.py").write_text(SETTINGS)
    toctree = "```{toctree}\npart/page\n```\n"
    (folder / "index.md").write_text(f"# Book\n\nNothing is drawn here.\n\n{toctree}")
    (folder / "works.bib").touch()
    cells = [
        nbformat.v4.new_markdown_cell("# Page\n\nLook at {numref}`fig-weights`."),
        cell(HEATMAP, CAPTION),
        cell(AttentionTrace([1.0], [[1.0], [2.0]], [3.0, 4.0])),
        cell(AttentionExplorer(np.eye(2), ["a", "b"])),
    ]
    kernel = {"name": "python3", "display_name": "Python 3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=about)
    nbformat.write(notebook, folder / "part/page.ipynb")
    return folder


def test_a_figure_of_a_notebook_is_one_of_the_page(book):
    pages = build(book)
    html = (pages / "part/page.html").read_text("utf8")
    page = BeautifulSoup(html, "html.parser")
    figure = page.select_one("figure#fig-weights")
    # Each theme has a file with the description and its size.
    images = figure.select(".d2lmini-figure img")
    assert [image["class"] for image in images] == [["only-light"], ["only-dark"]]
    for image, theme in zip(images, ("light", "dark"), strict=True):
        assert image["alt"] == HEATMAP.alt and image["loading"] == "lazy"
        assert (int(image["width"]), int(image["height"])) == HEATMAP._size()
        assert image["src"].startswith("../_images/") and "style" not in image.attrs
        drawn = lettered(HEATMAP.svg(theme).encode(), round(1.3 * HEATMAP._size()[0]), 14)
        assert (pages / "part" / image["src"]).read_bytes() == with_face(drawn)
        phone = image.find_previous_sibling("source")
        assert "max-width" in phone["media"] and (pages / "part" / phone["srcset"]).is_file()
    assert "data:image" not in html
    # It is numbered, captioned and referred to; the numbers follow the picture.
    caption = figure.find("figcaption", recursive=False)
    assert caption.text.split("#")[0].strip().startswith("Fig. 1 Weights of three words.")
    assert caption.em.text == "three"
    assert page.select_one('a[href="#fig-weights"] .std-numref').text == "Fig. 1"
    details = figure.select_one(".d2lmini-figure > details")
    assert details.summary.text == "Show the numbers"
    assert [th.text for th in details.select("thead th")] == ["<a>", '"b"', "c"]
    # Tables stand on the page, and their style is in the one sheet.
    for name in ("trace", "explorer"):
        (found,) = page.select(f".d2lmini-{name}")
        assert found.table and not found.find_all(["style", "script"])
        assert "text_html" not in found.parent.get("class", [])
    styles = [link["href"].split("?")[0] for link in page.select('link[rel="stylesheet"]')]
    assert styles == ["../_static/style.css"]
    style = (pages / "_static/style.css").read_text("utf8")
    assert style.count(".d2lmini-trace thead tr + tr th ") == 1 and ".only-dark" in style
    (script,) = page.select('script[src*="explorer.mjs"]')
    assert script.get("type") is None and script.has_attr("defer")  # works from a disk as well
    # Other pages load none of it.
    assert "explorer.mjs" not in (pages / "index.html").read_text("utf8")


def test_paper_gets_the_png(book):
    text = (build(book, "latex") / "test.tex").read_text("utf8")
    assert text.count("\\sphinxincludegraphics") == 1 and ".png}" in text
