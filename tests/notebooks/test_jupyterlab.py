"""The chapters as JupyterLab opens them: each kind of link leads to its place, figures are dark.

The same is asked of the files in every run (`test_plain.py`); here a browser clicks.
"""

import json
import os
import socket
import subprocess
import sys
import time
from urllib.request import urlopen

import nbformat
import numpy as np
import pytest
from nbformat.sign import NotebookNotary

from d2lmini import AttentionWall
from scripts import install, lab, notebooks

pytestmark = pytest.mark.weekly
# The place that a link leads to: where it is on the screen, from 0 (its top) to 1.
WHERE = """name => {
  const found = [...document.querySelectorAll(`.jp-Notebook, .jp-MarkdownViewer`)]
    .flatMap((page) => [...page.querySelectorAll(`[id="${name}"], [data-jupyter-id="${name}"]`)])
    .map((place) => place.getBoundingClientRect()).filter((box) => box.top !== 0 || box.width);
  return found.map((box) => box.top / innerHeight);
}"""


def write_wall(path, notary):
    """Write a reader's own notebook, in which no more has run than a wall of six heads."""
    wall = AttentionWall(np.full((2, 3, 4, 4), 0.25))._repr_html_()
    shown = nbformat.v4.new_output("display_data", {"text/html": wall})
    title, drawn = nbformat.v4.new_markdown_cell("# W"), nbformat.v4.new_code_cell(outputs=[shown])
    notebook = nbformat.v4.new_notebook(cells=[title, drawn], metadata=notebooks.METADATA)
    nbformat.write(notebook, path)
    notary.sign(notebook)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Start JupyterLab on copies of the chapters, for a reader who has used no Jupyter before."""
    pytest.importorskip("jupyterlab", reason="make .venv/installed-lab brings it")
    home = tmp_path_factory.mktemp("Zu Hause")
    ours = {**os.environ, "HOME": str(home), "JUPYTER_DATA_DIR": str(home / "data")}
    settings = home / "settings"
    settings.mkdir()
    (settings / "overrides.json").write_text(json.dumps(install.LAB_SETTINGS))
    bring = "import sys; from scripts import lab; from pathlib import Path; "
    bring += "lab.bring(Path(sys.argv[1]), Path(sys.argv[2]))"
    mine = home / "mine"
    subprocess.run(
        [sys.executable, "-c", bring, lab.ROOT / "chapters", mine],
        env=ours,
        cwd=lab.ROOT,
        check=True,
    )
    write_wall(mine / "wall.ipynb", NotebookNotary(data_dir=str(home / "data")))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyter", "lab", mine, "--no-browser", f"--port={port}"]
    command += ["--allow-root", "--IdentityProvider.token="]
    command += [f"--LabApp.app_settings_dir={settings}"]
    with (home / "log").open("w") as log:
        running = subprocess.Popen(
            command, env=ours | {"PYTHONPATH": str(lab.ROOT)}, stdout=log, stderr=log
        )
    try:
        address = f"http://localhost:{port}/lab"
        for _ in range(120):
            assert running.poll() is None, (home / "log").read_text()
            try:
                urlopen(address, timeout=5).read()
                break
            except OSError:
                time.sleep(0.5)
        yield address
    finally:
        running.terminate()
        running.wait(30)


@pytest.fixture
def tab(chromium, server):
    """Open a chapter; return its page."""
    pages = []

    def open_chapter(name, scheme="light"):
        page = chromium.new_page(viewport={"width": 1280, "height": 900}, color_scheme=scheme)
        pages.append(page)
        page.goto(f"{server}/tree/{name}.ipynb?reset")
        page.wait_for_selector(".jp-Notebook .jp-MarkdownOutput h1", timeout=120_000)
        page.wait_for_selector(".jp-NotebookPanel-toolbar [data-status=idle]", timeout=120_000)
        return page

    yield open_chapter
    for page in pages:
        page.close()


@pytest.mark.parametrize(
    ("chapter", "file", "link"),
    [
        ("01-database-analogy", "01-", "[href='#a-crowd-of-strangers']"),
        ("03-scaled-dot-product", "03-", "[href='#figure-3-2']"),
        ("02-softmax-weighting", "02-", "[href='#eq-2-2']"),
        ("03-scaled-dot-product", "glossary", "[href*='glossary.md'][href*='#term-']"),
        ("03-scaled-dot-product", "bibliography", "[href*='bibliography.md'][href*='#']"),
        ("07-real-models", "06-", "[href*='06-'][href*='#rotate']"),
    ],
)
def test_a_link_leads_to_its_place(tab, chapter, file, link):
    page = tab(chapter)
    found = page.locator(f".jp-MarkdownOutput > :not(details) a{link}").first
    name = found.get_attribute("href").partition("#")[2]
    found.scroll_into_view_if_needed()
    found.click()
    page.wait_for_selector(f".lm-DockPanel-tabBar .lm-mod-current:has-text('{file}')")
    if file == "06-":  # JupyterLab looks for the place before it has shown the chapter: once more
        page.wait_for_selector(".jp-NotebookPanel:not(.lm-mod-hidden) [data-status=idle]")
        page.locator(f".lm-DockPanel-tabBar .lm-TabBar-tab:has-text('{chapter}')").click()
        found.click()
    there = f"name => ({WHERE})(name).some((top) => top > 0 && top < 0.5)"
    page.wait_for_function(there, arg=name, timeout=30_000)


def test_it_opens_trusted_unchanged_and_dark(tab):
    page = tab("03-scaled-dot-product", "dark")
    assert page.evaluate("document.body.dataset.jpThemeLight") == "false"
    controls = page.locator(".jp-Notebook .d2lmini-explorer input[type=range]")
    assert controls.count() == 1, "an untrusted notebook has none before it is run"
    page.wait_for_timeout(3000)  # what marks it as changed may come late
    assert page.locator(".lm-TabBar-tab.jp-mod-dirty").count() == 0


def test_arrow_keys_move_a_slider_and_not_the_notebook(tab):
    page = tab("03-scaled-dot-product")
    slider = page.locator(".jp-Notebook .d2lmini-explorer input[type=range]")
    slider.click()
    for key, value in {"ArrowRight": "0.05", "ArrowUp": "0.1", "ArrowLeft": "0.05"}.items():
        page.keyboard.press(key)
        assert slider.input_value() == value


def test_arrow_keys_go_from_head_to_head_and_not_to_another_cell(tab):
    page = tab("wall")
    page.locator(".jp-Notebook .d2lmini-heads button").first.click()
    for key, at in {
        "ArrowRight": (0, 1),
        "ArrowDown": (1, 1),
        "End": (1, 2),
        "Home": (0, 0),
    }.items():
        page.keyboard.press(key)
        focus = page.evaluate("document.activeElement.ariaLabel")
        assert focus == "layer {}, head {}".format(*at)
    page.keyboard.press("ArrowLeft")  # there is none: it stays
    assert page.evaluate("document.activeElement.ariaLabel") == "layer 0, head 0"


def test_run_all_keeps_the_answers_folded(tab):
    page = tab("01-database-analogy")
    page.get_by_text("Run", exact=True).first.click()
    page.get_by_text("Run All Cells", exact=True).first.click()
    many = "document.querySelectorAll('details.d2l-kept').length > 6"
    page.wait_for_function(many, timeout=240_000)
    assert page.locator("details.d2l-kept[open]").count() == 0
    assert not page.locator("text=weight of 2,510 strangers").first.is_visible()
