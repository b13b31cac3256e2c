"""Cells that run in the reader's browser, in Chromium with the real Pyodide.

PYODIDE_DIR names a folder with the files of Pyodide; without it they come from the public server.
To start Python takes most of the time here: one tab, in which it has started, serves as many tests
as it can.
"""

import os
import re
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from d2lmini.exercises import find
from tests.book.building import CHAPTERS
from tests.browser.test_every_page import ALL_RULES, SHOWN, findings

FIRST = CHAPTERS[0]
# Of the words of all chapters the same is asked without a browser: `notebooks/test_live.py`.
ONCE_A_WEEK = [pytest.param(page, marks=pytest.mark.weekly) for page in CHAPTERS[1:]]
CDN = "https://cdn.jsdelivr.net/pyodide/"
KINDS = {"mjs": "text/javascript", "js": "text/javascript", "wasm": "application/wasm"}
PATIENCE = 240_000  # milliseconds: a busy machine may take long, and none of this is a race
# Run the cells of a page one after the other; say of each what is stored for it, and what has come
# out of it here: words, and pictures with their sizes.
RUN_ALL = r"""async (patience) => {
    const words = roots => roots.map(root => {
        const copy = root.cloneNode(true);
        const other = '[data-live-output], figcaption, button, .only-dark, .d2lmini-controls';
        copy.querySelectorAll(other).forEach(part => part.remove());
        const pictures = [...copy.querySelectorAll('img')]
            .map(one => `${one.alt} ${one.getAttribute('width')} ${one.getAttribute('height')}`);
        return [copy.textContent, ...pictures].join(' ');
    }).join(' ').replace(/\s+/g, '');
    const over = (cell, out) => new Promise((done, never) => {
        const late = setTimeout(never, patience, new Error(`${cell.id} has not come to its end`));
        new MutationObserver((_, watch) => {
            if (!/done|error/.test(out.dataset.state)) return;
            clearTimeout(late);
            watch.disconnect();
            done();
        }).observe(out, {attributes: true});
    });
    const all = [];
    for (const cell of document.querySelectorAll('[data-live]')) {
        const out = cell.querySelector('[data-live-output]');
        cell.querySelector('.live-run').click();
        await over(cell, out);
        const stored = words([...cell.querySelectorAll('.cell_output')]);
        // where the figure is an explorable, a run draws what paper shows
        const moves = cell.querySelector('.cell_output svg text');
        const here = moves && out.querySelector('img') ? stored : words([out]);
        all.push([cell.id, stored, here]);
    }
    return all;
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
        self.said, self.asked = [], []
        self.home = address.partition("chapters/")[0]
        self.page = context.new_page()
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        context.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        self.page.locator("[data-live]").first.wait_for(state="attached")

    def cell(self, name):
        return self.page.locator(f"#cell-{name}")

    def button(self, name, word):
        return self.cell(name).locator(f"button.live-{word.lower()}")

    def output(self, name):
        return self.cell(name).locator("[data-live-output]")

    def code(self, name):
        return self.cell(name).locator("textarea")

    def write(self, name, code):
        self.code(name).fill(code)

    def run(self, name, state):
        """Run a cell to its end; return what it has put out."""
        self.button(name, "Run").click()
        self.ends(name, state)
        return self.output(name).inner_text()

    def tries(self, code, state="done"):
        """Run this in the cell that most tests use; return what it has put out."""
        self.write("crowd", code)
        return self.run("crowd", state)

    def ends(self, name, state):
        """Wait for the end of a cell, and until the next may be run."""
        idle = self.cell(name).locator(".live-run[aria-disabled=false]")
        idle.wait_for(state="attached", timeout=PATIENCE)
        expect(self.output(name)).to_have_attribute("data-state", state)


@pytest.fixture(scope="module")
def opened(chromium, address):
    """Return a function that opens a page in a browser of its own, with nothing stored."""
    contexts = []

    def open_page(page=FIRST, width=1280, base=address):
        context = chromium.new_context(viewport={"width": width, "height": 900})
        contexts.append(context)
        return Tab(context, f"{base}{page}.html")

    yield open_page
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def tab(opened, pyodide):
    """Return a page of the first chapter, the same one for many tests."""
    return opened()


# --- every cell ---


@pytest.mark.usefixtures("pyodide")
@pytest.mark.parametrize("page", [FIRST, *ONCE_A_WEEK])
def test_every_live_cell_gives_what_is_stored(opened, page):
    tab = opened(page)
    found = tab.page.evaluate(RUN_ALL, PATIENCE)
    wrong = [
        f"{name}\n  stored {stored[:500]}\n  here   {now[:500]}"
        for name, stored, now in found
        if stored != now
    ]
    assert not wrong, "\n".join(wrong)
    tagged = "[...document.querySelectorAll('.tag_live')].map(cell => cell.id)"
    assert [name for name, *_ in found] == tab.page.evaluate(tagged)
    assert tab.said == []
    tab.page.context.close()


@pytest.mark.usefixtures("pyodide")
def test_the_published_book_brings_python_with_it(opened, published):
    """A small one, where there is a folder: its folded cell runs, and nobody else is asked."""
    tab = opened("chapters/02-plain", base=published)
    cell = tab.page.locator(".cell[data-live].tag_hide-cell")
    cell.locator("summary").click()
    cell.locator(".live-run").click()
    output = cell.locator("[data-live-output]")
    expect(output).to_have_attribute("data-state", "done", timeout=PATIENCE)
    known = (tab.home, "data:", "blob:", *([] if os.environ.get("PYODIDE_DIR") else [CDN]))
    assert [url for url in tab.asked if not url.startswith(known)] == tab.said == []
    tab.page.context.close()


# --- before the first run ---


def test_before_the_first_run_nothing_is_loaded(visit):
    seen = visit(FIRST)
    expect(seen.tab.locator("[data-live-output][data-state=idle]").first).to_be_attached()
    paths = [path for path in seen.weights() if "/live/" in path]
    assert [path.rpartition("/")[2] for path in paths] == ["live.mjs"]
    assert seen.tab.get_by_role("button", name=re.compile("^Run")).count() > 20
    assert seen.tab.get_by_label(re.compile("^(Code of cell|Your answer)")).count() > 20


def test_nobody_is_shut_out_of_an_editor(opened):
    tab = opened(width=390)
    name = "weights-from-scratch"
    tab.button(name, "Edit").click()
    tab.page.keyboard.type("1 # x")
    expect(tab.cell(name).get_by_role("status")).to_contain_text("leaves after Esc")
    for scheme in ("light", "dark"):
        tab.page.emulate_media(color_scheme=scheme)
        tab.page.locator(f"html[data-theme={scheme}]").wait_for(state="attached")
        tab.page.evaluate(SHOWN)
        assert findings(tab.page, ALL_RULES, f"#cell-{name}") == []
    assert tab.page.evaluate("document.documentElement.scrollWidth") <= 390
    for word in ("Run", "Edit"):
        assert tab.button(name, word).bounding_box()["height"] >= 24
    told = tab.page.locator("textarea[aria-description*=Esc]:visible")
    expect(told.nth(1)).to_be_visible()  # the first ones that one meets say how they are left
    expect(tab.page.locator(".exercise textarea:not([aria-description])")).to_have_count(0)


# --- running ---


CHECK = "from d2lmini.exercises import check\n\n@check\n"  # how an exercise begins


def test_exercises_check_themselves_are_counted_and_end(tab):
    name = "exercise-one-hot-yours"
    count = tab.page.locator('.page-toc a[href="#exercises"] .live-count')
    tab.write(name, f"{CHECK}def one_hot(scores):\n    return scores.nothing")
    card = tab.run(name, "done")
    assert "AttributeError" in card and "return scores.nothing" in card
    assert count.count() == 0
    tab.write(name, f"{CHECK}def one_hot(scores):\n    return (scores")
    tab.run(name, "error")
    expect(tab.cell(name).get_by_role("status")).to_contain_text("Line 5: SyntaxError: '(' was")
    tab.write(name, find("one_hot").solution.replace("def one", f"{CHECK}def one"))
    assert "✓ one_hot" in tab.run(name, "done")
    run = tab.cell(name).get_by_role("button", name=re.compile("^Run your answer: [A-Z]"))
    expect(run).to_be_focused()
    expect(tab.cell(name).get_by_role("status")).to_contain_text("one_hot: correct on all")
    expect(count).to_have_text("1 of 7")
    name = "exercise-cosine-scores-yours"
    tab.write(name, f"{CHECK}def cosine_scores(query, key):\n    while True: pass")
    assert "cosine_scores: " in tab.run(name, "done"), "the check stops it"


def test_an_error_says_where_in_this_cell_or_in_one_above(tab):
    text = tab.tries("a = 1\nincomes[99]", "error")
    assert "Line 2:" in text and "incomes[99]" in text
    assert "IndexError: index 99 is out of bounds" in text
    assert "File" not in text and "runner.py" not in text
    tab.write("trigrams", "trigrams = 1 / 0")
    assert "A cell above" in tab.run("scores-by-hand", "error")
    assert "ZeroDivisionError" in tab.output("trigrams").inner_text()
    tab.button("trigrams", "Reset").click()
    assert "0.76" in tab.run("scores-by-hand", "done"), "what it needs runs first"


def test_what_the_worker_shows_cannot_act_on_the_page(tab):
    bad = '<img src=x onerror=\\"document.title=1\\"><script>document.title = 1</script><b>b</b>'
    title = tab.page.title()
    assert tab.tries(f'display({{"text/html": "{bad}"}}, raw=True)').strip() == "b"
    assert tab.output("crowd").locator("[onerror], script, [src]").count() == 0
    assert tab.page.title() == title


@pytest.mark.parametrize(  # what Python says of the rest is tested without a browser
    ("code", "state", "says"),
    [
        ("for i in range(10**6): print(i)", "done", "999,000 more lines"),
        ("x = []\nwhile True: x.append(bytearray(2**24))", "error", "MemoryError"),
    ],
)
def test_whatever_a_cell_does_the_page_says_what_happened(tab, code, state, says):
    assert says in tab.tries(code, state)
    assert tab.code("crowd").input_value() == code
    tab.button("crowd", "Reset").click()
    assert "66.8" in tab.run("crowd", "done")


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("print('so far', end='')\nwhile True: pass", "so far"),
        ("i = 0\nwhile True:\n    print(i)\n    i += 1", "More printed"),
    ],
)
def test_what_is_printed_is_seen_at_once_and_stays_when_it_is_stopped(tab, code, shown):
    """And what waits meanwhile keeps its stored output."""
    tab.write("crowd", code)
    tab.button("crowd", "Run").click()
    tab.button("library", "Run").click()
    expect(tab.cell("library").locator(".live-status")).to_have_text("Waiting …")
    expect(tab.output("crowd")).to_contain_text(shown, timeout=PATIENCE)
    expect(tab.output("crowd")).to_have_attribute("data-state", "running")
    tab.cell("crowd").get_by_role("button", name=re.compile("^Stop")).click()
    expect(tab.output("crowd")).to_have_attribute("data-state", "error")
    expect(tab.output("library")).to_have_attribute("data-state", "idle")
    assert tab.cell("library").locator(".cell_output").is_visible()
    assert tab.button("library", "Run").is_enabled()
    text = tab.output("crowd").inner_text()
    assert shown in text and "Stopped" in text
    assert tab.code("crowd").input_value() == code
    tab.cell("crowd").get_by_role("button", name=re.compile("^Reset")).click()
    expect(tab.output("crowd")).to_have_attribute("data-state", "idle")


def test_the_keyboard_alone(tab):
    press, typed = tab.page.keyboard.press, tab.page.keyboard.type
    code = tab.code("crowd")
    tab.button("crowd", "Edit").focus()
    press("Enter")
    press("Control+a")
    for line in ("for i in range(2):", "x = i"):
        typed(line)
        press("Enter")
    press("Backspace")
    typed("x")
    assert code.input_value() == "for i in range(2):\n    x = i\nx"
    press("Control+Enter")
    tab.ends("crowd", "done")
    assert tab.output("crowd").inner_text().strip() == "1"
    expect(
        tab.cell("crowd").get_by_role("group", name=re.compile("^Output of cell"))
    ).to_be_visible()
    press("Escape")
    press("Tab")
    assert not code.evaluate("code => code === document.activeElement")
    tab.button("crowd", "Reset").press("Enter")
    expect(code).to_have_value(re.compile("strangers"))
    expect(tab.button("crowd", "Run")).to_be_focused()


# --- what is kept ---

KEPT = "name => JSON.parse(localStorage.getItem(name))"
FORMS = ('{"PAGE": {"code": {"crowd": 5}, "solved": 5}}', '{"PAGE": null}', "5", "{")


def test_edits_are_kept_for_this_copy_of_the_book_until_they_are_forgotten(opened):
    """There may be two copies under one host; what a program left in another form is nothing."""
    tab = opened()
    tab.write("crowd", "1 + 41")
    kept = f"live-cells {urlsplit(tab.home).path}"
    assert list(tab.page.evaluate(KEPT, kept)) == [f"{FIRST}.html"]
    assert tab.page.evaluate(KEPT, "live-cells") is None
    tab.page.reload()
    expect(tab.code("crowd")).to_have_value("1 + 41")
    tab.page.on("dialog", lambda dialog: dialog.accept())
    tab.page.get_by_role("button", name="Forget it").click()
    for form in ("null", *FORMS):
        tab.page.reload()
        expect(tab.code("crowd")).to_have_value(re.compile("strangers"))
        tab.write("crowd", "1 + 41")
        assert tab.page.evaluate(KEPT, kept)[f"{FIRST}.html"]["code"] == {"crowd": "1 + 41"}, form
        stored = form.replace("PAGE", f"{FIRST}.html")
        tab.page.evaluate("([name, text]) => localStorage.setItem(name, text)", [kept, stored])
    assert tab.said == []


@pytest.mark.weekly
@pytest.mark.usefixtures("pyodide")
def test_a_real_model_runs_what_was_written_on_other_pages(opened):
    """A right answer in chapter 3 and a slip in chapter 5 are found in chapter 7."""
    tab = opened("chapters/03-scaled-dot-product")
    right = find("attention").solution.replace("def my", f"{CHECK}def my")
    tab.write("exercise-attention-yours", right)
    assert "my_attention by 0.99 ✓" in " ".join(tab.run("speaks", "done").split())
    tab.page.goto(tab.home + "chapters/05-multi-head-attention.html")
    slip = f"{CHECK}def my_split_heads(x, h):\n    return x.reshape(3, h, len(x), -1)"
    tab.write("exercise-split-heads", slip)
    tab.page.goto(tab.home + "chapters/07-real-models.html")
    said = " ".join(tab.run("speaks", "done").split())
    assert "my_split_heads by 0.00 ✗" in said and "cuts across tokens" in said
    assert "my_rotary not written yet (chapter 6)" in said
    assert "my_attention by 0.99 ✓" in said
    assert tab.said == []


def test_without_the_public_server_the_stored_output_stays(opened):
    tab = opened()
    tab.page.context.unroute_all()
    tab.page.context.route(f"{CDN}**", lambda route: route.abort())
    text = tab.run("crowd", "error")
    assert "Python could not be loaded" in text and "run this chapter as a notebook" in text
    assert tab.cell("crowd").locator(".cell_output").is_visible()
