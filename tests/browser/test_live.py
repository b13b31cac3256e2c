"""Cells that run in the reader's browser, in Chromium with the real Pyodide.

PYODIDE_DIR names a folder with the files of Pyodide; without it they come from its public server.
A tab, in which Python is loaded once, serves as many tests as it can.
"""

import os
import re
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import expect

from d2lmini.exercises import find
from tests.book.building import ROOT, pages_of
from tests.browser.test_every_page import ALL_RULES, findings
from tests.browser.test_storage import BLOCKED

CHAPTERS = [page for page in pages_of(ROOT / "_toc.yml") if re.match(r"chapters/\d", page)]
FIRST = CHAPTERS[0]
CDN = "https://cdn.jsdelivr.net/pyodide/"
KINDS = {"mjs": "text/javascript", "js": "text/javascript", "wasm": "application/wasm"}
PATIENCE = 240_000  # milliseconds: a busy machine may take long, and none of this is a race
OVER = re.compile("done|error")
# What is stored for a cell, and what has come out of it here: words, and pictures with their sizes.
STORED_AND_LIVE = r"""id => {
    const cell = document.getElementById(id), out = cell.querySelector('[data-live-output]');
    const words = roots => roots.map(root => {
        const copy = root.cloneNode(true);
        const other = '[data-live-output], figcaption, button, .only-dark, .d2lmini-controls';
        copy.querySelectorAll(other).forEach(part => part.remove());
        const pictures = [...copy.querySelectorAll('img')]
            .map(one => `${one.alt} ${one.getAttribute('width')} ${one.getAttribute('height')}`);
        return [copy.textContent, ...pictures].join(' ');
    }).join(' ').replace(/\s+/g, '');
    return [words([...cell.querySelectorAll('.cell_output')]), words([out])];
}"""


def from_folder(route):
    """Answer for the public server of Pyodide."""
    path = Path(os.environ["PYODIDE_DIR"], route.request.url.rpartition("/")[2])
    if not path.is_file():
        route.abort()
        return
    kind = KINDS.get(path.name.rpartition(".")[2], "application/octet-stream")
    headers = {"Access-Control-Allow-Origin": "*", "Content-Type": kind}
    route.fulfill(body=path.read_bytes(), headers=headers)


@pytest.fixture(scope="session")
def pyodide():
    """Skip where Pyodide is neither in a folder nor on the network."""
    if folder := os.environ.get("PYODIDE_DIR"):
        assert Path(folder, "pyodide-lock.json").is_file(), f"PYODIDE_DIR: no Pyodide in {folder}"
        return
    try:
        urllib.request.urlopen(f"{CDN}v0.27.7/full/pyodide-lock.json", timeout=10).close()
    except OSError:
        pytest.skip("PYODIDE_DIR is not set, and Pyodide's public server is out of reach")


class Tab:
    """A page of the book, in which cells are run."""

    def __init__(self, context, address):
        if os.environ.get("PYODIDE_DIR"):
            context.route(f"{CDN}**", from_folder)
        self.said = []
        self.page = context.new_page()
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(address)
        self.page.locator("[data-live]").first.wait_for(state="attached")

    def cell(self, name):
        return self.page.locator(f"#cell-{name}")

    def button(self, name, word):
        return self.cell(name).get_by_role("button", name=re.compile(f"^{word}"))

    def output(self, name):
        return self.cell(name).locator("[data-live-output]")

    def write(self, name, code):
        self.cell(name).get_by_label("Code", exact=True).fill(code)

    def run(self, name, state=OVER):
        """Run a cell to its end; return what it has put out."""
        began = time.perf_counter()
        self.button(name, "Run").click()
        expect(self.output(name)).to_have_attribute("data-state", state, timeout=PATIENCE)
        self.took = time.perf_counter() - began
        return self.output(name).inner_text()

    def ids(self):
        found = "[...document.querySelectorAll('[data-live]')].map(cell => cell.id.slice(5))"
        return self.page.evaluate(found)


@pytest.fixture(scope="module")
def opened(chromium, address):
    """Return a function that opens a page in a browser of its own, with nothing stored."""
    contexts = []

    def open_page(page=FIRST, width=1280, scheme="light", script="", base=None, **options):
        size = {"width": width, "height": 900}
        context = chromium.new_context(viewport=size, color_scheme=scheme, **options)
        contexts.append(context)
        if script:
            context.add_init_script(script)
        return Tab(context, f"{base or address}{page}.html")

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def tab(opened, pyodide):
    """Return a page of the first chapter, the same one for many tests."""
    return opened()


# --- every cell ---


@pytest.mark.usefixtures("pyodide")
@pytest.mark.parametrize("page", CHAPTERS)
def test_every_live_cell_gives_what_is_stored(opened, page, record_property):
    tab = opened(page)
    wrong, times = [], []
    for name in tab.ids():
        tab.run(name)
        times.append(tab.took)
        stored, now = tab.page.evaluate(STORED_AND_LIVE, f"cell-{name}")
        if stored != now:
            wrong.append(f"{name}\n  stored {stored[:500]}\n  here   {now[:500]}")
    assert not wrong, "\n".join(wrong)
    assert tab.said == []
    record_property("first run, s", f"{times[0]:.1f}")
    record_property("median of the others, s", f"{sorted(times[1:])[len(times) // 2]:.2f}")
    print(f"{page}: first {times[0]:.1f} s, median {sorted(times[1:])[len(times) // 2]:.2f} s")
    tab.page.context.close()


def test_the_cells_are_those_that_are_tagged(visit):
    tags = "[...document.querySelectorAll('.tag_live')].map(cell => cell.id.slice(5))"
    for page in CHAPTERS:
        tab = visit(page).tab
        tab.locator("[data-live]").first.wait_for(state="attached")
        live = tab.evaluate("[...document.querySelectorAll('[data-live]')].map(c => c.id.slice(5))")
        assert live == tab.evaluate(tags)


# --- before the first run ---


def test_nothing_is_loaded_before_the_first_run(visit):
    seen = visit(FIRST)
    seen.tab.locator("[data-live]").first.wait_for(state="attached")
    paths = [path for path in seen.weights() if "/live/" in path]
    assert not [path for path in paths if path.endswith(("worker.mjs", ".zip", ".wasm"))]
    assert seen.said == []
    style = (ROOT / "chapters/_static/live/live.css").stat().st_size // 3  # as sent
    assert sum(seen.weights()[path] for path in paths) + style <= 12_000


def test_a_live_cell_is_what_teachers_and_tests_rely_on(opened):
    tab = opened()
    for name in tab.ids():
        for word in ("Run", "Stop", "Reset"):
            assert tab.button(name, word).count() == 1, (name, word)
        assert tab.cell(name).get_by_label("Code", exact=True).count() == 1
        assert tab.output(name).get_attribute("data-state") == "idle"


def test_without_scripts_there_are_no_buttons(visit):
    tab = visit(FIRST, java_script_enabled=False).tab
    assert tab.locator("div.cell button").count() == 0
    words = tab.locator(".live-bar:visible", has_text="To try it, run this chapter")
    assert words.count() == 7
    assert tab.locator(".live-bar:visible").count() == 7


def test_a_cell_that_needs_pytorch_says_so_where_run_would_be(visit):
    tab = visit("chapters/04-projections").tab
    bar = tab.locator("#cell-head-class .live-bar")
    assert "Needs PyTorch" in bar.inner_text()
    assert bar.locator("button").count() == 0
    bar.locator("a").click()
    assert tab.url.endswith("#run-this-chapter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_nobody_is_shut_out_of_an_editor(opened, width, scheme):
    tab = opened(width=width, scheme=scheme)
    tab.page.wait_for_timeout(500)
    tab.button("weights-from-scratch", "Edit").click()
    tab.page.keyboard.type("1 # x")
    assert findings(tab.page, ALL_RULES) == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= width
    for word in ("Run", "Edit"):
        assert tab.button("weights-from-scratch", word).bounding_box()["height"] >= 24


# --- running ---


def test_what_a_cell_needs_runs_first(tab):
    assert "2510 strangers: 66.8" in tab.run("crowd", "done")


def test_a_figure_looks_like_the_stored_one(tab):
    stored = tab.cell("smooth").locator("img.only-light").first
    stored.scroll_into_view_if_needed()
    size = stored.bounding_box()
    tab.run("smooth", "done")
    drawn = tab.output("smooth").locator("img.only-light")
    now = drawn.bounding_box()
    for side in ("width", "height"):  # but for how a browser rounds
        assert now[side] == pytest.approx(size[side], abs=0.5)
    assert tab.output("smooth").locator("img.only-dark").count() == 1
    assert tab.cell("smooth").locator("img:visible").count() == 1
    assert tab.cell("smooth").locator("figcaption").is_visible()


def test_exercises_check_themselves_and_are_counted(tab):
    name = "exercise-one-hot-yours"
    count = tab.page.locator('.page-toc a[href="#exercises"] .live-count')
    tab.write(name, "@check\ndef one_hot(scores):\n    return scores")
    assert "✗ one_hot: wrong" in tab.run(name, "done")
    tab.write(name, "@check\ndef one_hot(scores):\n    return scores.nothing")
    card = tab.run(name, "done")
    assert "AttributeError" in card and "return scores.nothing" in card
    assert count.count() == 0
    tab.write(name, find("one_hot").solution.replace("def one", "@check\ndef one"))
    assert "✓ one_hot" in tab.run(name, "done")
    assert count.inner_text().strip() == "1 of 7"


def test_an_answer_that_never_ends_is_stopped_by_the_check(tab):
    name = "exercise-cosine-scores-yours"
    tab.write(name, "@check\ndef cosine_scores(query, key):\n    while True: pass")
    assert "cosine_scores: " in tab.run(name, "done")


def test_an_exception_is_the_reader_s_line_and_the_message(tab):
    tab.write("crowd", "a = 1\nincomes[99]")
    text = tab.run("crowd", "error")
    assert "Line 2:" in text and "incomes[99]" in text
    assert "IndexError: index 99 is out of bounds" in text
    assert "File" not in text and "liverunner" not in text


def test_a_cell_whose_start_fails_says_where(tab):
    tab.write("trigrams", "trigrams = 1 / 0")
    assert "A cell above" in tab.run("scores-by-hand", "error")
    assert "ZeroDivisionError" in tab.output("trigrams").inner_text()
    tab.button("trigrams", "Reset").click()
    assert "0.76" in tab.run("scores-by-hand", "done")


def test_what_the_worker_shows_cannot_act_on_the_page(tab):
    bad = '<img src=x onerror=\\"document.title=1\\"><script>document.title = 1</script><b>b</b>'
    tab.write("crowd", f'display({{"text/html": "{bad}"}}, raw=True)')
    title = tab.page.title()
    assert tab.run("crowd", "done").strip() == "b"
    assert tab.output("crowd").locator("[onerror], script, [src]").count() == 0
    assert tab.page.title() == title


@pytest.mark.parametrize(
    ("code", "state", "says"),
    [
        ("for i in range(10**6): print(i)", "done", "999,000 more lines"),
        ("x = []\nwhile True: x.append(bytearray(2**24))", "error", "MemoryError"),
        ("def f(): return f()\nf()", "error", "RecursionError"),
        ("f = lambda x: str([x])\nx = []\nfor i in range(10**5): x = [x]\nrepr(x)", "error", ""),
        ("name = input('Your name? ')", "error", "nobody is asked here"),
        ("import torch", "error", "PyTorch"),
        ("exit()", "error", "asked to stop"),
        ("x = (", "error", "SyntaxError"),
    ],
)
def test_whatever_a_cell_does_the_page_says_what_happened(tab, code, state, says):
    tab.write("crowd", code)
    assert says in tab.run("crowd", state)
    assert tab.cell("crowd").get_by_label("Code", exact=True).input_value() == code
    assert "66.8" not in tab.output("crowd").inner_text()
    tab.button("crowd", "Reset").click()
    assert "66.8" in tab.run("crowd", "done")


def test_stop_ends_an_endless_loop_and_reset_brings_back_what_was_there(tab):
    tab.write("crowd", "print('so far')\nwhile True: pass")
    tab.button("crowd", "Run").click()
    expect(tab.output("crowd")).to_have_attribute("data-state", "running", timeout=PATIENCE)
    tab.button("crowd", "Stop").click()
    expect(tab.output("crowd")).to_have_attribute("data-state", "error")
    assert "Stopped" in tab.output("crowd").inner_text()
    assert "while True" in tab.cell("crowd").get_by_label("Code", exact=True).input_value()
    tab.button("crowd", "Reset").click()
    expect(tab.output("crowd")).to_have_attribute("data-state", "idle")
    assert "2510 strangers" in tab.cell("crowd").locator(".cell_output").inner_text()
    assert "2510 strangers" in tab.run("crowd", "done")


def test_the_keyboard_alone(tab):
    page = tab.page
    tab.button("crowd", "Edit").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Control+a")
    page.keyboard.type("for i in range(2):")
    page.keyboard.press("Enter")
    page.keyboard.type("x = i")
    page.keyboard.press("Enter")
    page.keyboard.press("Backspace")
    page.keyboard.type("x")
    code = tab.cell("crowd").get_by_label("Code", exact=True)
    assert code.input_value() == "for i in range(2):\n    x = i\nx"
    page.keyboard.press("Control+Enter")
    expect(tab.output("crowd")).to_have_attribute("data-state", "done", timeout=PATIENCE)
    assert tab.output("crowd").inner_text().strip() == "1"
    page.keyboard.press("Tab")
    assert code.input_value().endswith("x   ")
    page.keyboard.press("Escape")
    page.keyboard.press("Tab")
    assert not code.evaluate("code => code === document.activeElement")
    tab.button("crowd", "Reset").focus()
    page.keyboard.press("Enter")
    assert "strangers" in code.input_value()


# --- what is kept ---


def test_edits_are_kept_until_they_are_forgotten(opened):
    tab = opened()
    tab.write("crowd", "1 + 41")
    tab.page.reload()
    code = tab.cell("crowd").get_by_label("Code", exact=True)
    expect(code).to_have_value("1 + 41")
    tab.page.on("dialog", lambda dialog: dialog.accept())
    tab.page.get_by_role("button", name="Forget it").click()
    assert "strangers" in code.input_value()
    tab.page.reload()
    expect(tab.output("crowd")).to_have_attribute("data-state", "idle")
    assert "strangers" in code.input_value()


@pytest.mark.usefixtures("pyodide")
def test_it_runs_where_storage_is_blocked(opened):
    tab = opened(script=BLOCKED)
    tab.write("crowd", "1 + 41")
    assert tab.run("crowd", "done").strip() == "42"
    assert tab.said == []
    tab.page.context.close()


def test_without_the_public_server_the_stored_output_stays(opened):
    tab = opened()
    tab.page.context.unroute_all()
    tab.page.context.route(f"{CDN}**", lambda route: route.abort())
    text = tab.run("crowd", "error")
    assert "Python could not be loaded" in text and "run this chapter as a notebook" in text
    assert tab.cell("crowd").locator(".cell_output").is_visible()


@pytest.mark.usefixtures("pyodide")
def test_two_pages_at_once(opened):
    tab = opened()
    other = Tab(tab.page.context, tab.page.url)
    tab.write("crowd", "here = 1\nhere")
    other.write("crowd", "here")
    assert tab.run("crowd", "done").strip() == "1"
    assert "NameError" in other.run("crowd", "error")
    tab.page.context.close()


def test_a_published_book_brings_python_with_it(opened, published):
    if not os.environ.get("PYODIDE_DIR"):
        pytest.skip("PYODIDE_DIR is not set: the published book of the tests takes it from there")
    tab = opened(base=published)
    asked = []
    tab.page.context.on("request", lambda request: asked.append(request.url))
    tab.run("smooth", "done")
    assert any("pyodide.asm.wasm" in url for url in asked)
    assert [
        url for url in asked if not url.startswith(("http://127.0.0.1", "data:", "blob:"))
    ] == []
