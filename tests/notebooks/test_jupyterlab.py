"""The chapters as JupyterLab opens them: each kind of link leads to its place, figures are dark.

The same is asked of the files in every run (`test_plain.py`); here a browser clicks.
"""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from scripts import install, lab

pytestmark = pytest.mark.weekly
# The place that a link leads to: where it is on the screen, from 0 (its top) to 1.
WHERE = """name => {
  const found = [...document.querySelectorAll(`.jp-Notebook, .jp-MarkdownViewer`)]
    .flatMap((page) => [...page.querySelectorAll(`[id="${name}"], [data-jupyter-id="${name}"]`)])
    .map((place) => place.getBoundingClientRect()).filter((box) => box.top !== 0 || box.width);
  return found.map((box) => box.top / innerHeight);
}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Start JupyterLab on copies of the chapters, for a reader who has used no Jupyter before."""
    pytest.importorskip("jupyterlab", reason="make .venv/installed-lab brings it")
    home = tmp_path_factory.mktemp("Zu Hause")
    ours = {"HOME": str(home), "JUPYTER_DATA_DIR": str(home / "data"), "PYTHONPATH": str(lab.ROOT)}
    options = {"env": {**os.environ, **ours}, "cwd": home}
    (home / "overrides.json").write_text(json.dumps(install.LAB_SETTINGS))
    bring = "import sys; from scripts import lab; from pathlib import Path; "
    bring += "lab.bring(*map(Path, sys.argv[1:]))"
    subprocess.run(
        [sys.executable, "-c", bring, lab.ROOT / "chapters", home / "mine"], check=True, **options
    )
    command = [sys.executable, "-m", "jupyter", "lab", "mine", "--no-browser", "--port=0"]
    command += ["--allow-root", "--IdentityProvider.token=", f"--LabApp.app_settings_dir={home}"]
    with (home / "log").open("w") as log:
        running = subprocess.Popen(command, stdout=log, stderr=log, **options)
    try:
        while not (found := re.search(r"http://localhost:\d+/lab", (home / "log").read_text())):
            assert running.poll() is None, (home / "log").read_text()
            time.sleep(0.5)
        yield found[0]
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
        ("03-scaled-dot-product", "glossary", "[href*='glossary.md'][href*='#term-']"),
    ],
)
def test_a_link_leads_to_its_place(tab, chapter, file, link):
    page = tab(chapter)
    found = page.locator(f".jp-MarkdownOutput > :not(details) a{link}").first
    name = found.get_attribute("href").partition("#")[2]
    found.scroll_into_view_if_needed()
    found.click()
    page.wait_for_selector(f".lm-DockPanel-tabBar .lm-mod-current:has-text('{file}')")
    there = f"name => ({WHERE})(name).some((top) => top > 0 && top < 0.5)"
    page.wait_for_function(there, arg=name, timeout=30_000)


def test_it_opens_trusted_unchanged_and_dark(tab):
    page = tab("03-scaled-dot-product", "dark")
    assert page.evaluate("document.body.dataset.jpThemeLight") == "false"
    controls = page.locator(".jp-Notebook .d2lmini-explorer input[type=range]")
    assert controls.count() == 1, "an untrusted notebook has none before it is run"
    page.wait_for_timeout(3000)  # what marks it as changed may come late
    assert page.locator(".lm-TabBar-tab.jp-mod-dirty").count() == 0
