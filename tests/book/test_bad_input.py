"""A defect in the book fails the build, and the message says in which file it is."""

import base64
import json

import nbformat
import pytest

from tests.book.building import build
from tests.book.tiny import CAPTION, FIGURE, GLOSSARY, TITLE, markdown, stored, tiny_book

NOTEBOOK = nbformat.v4.new_notebook(
    cells=[nbformat.v4.new_markdown_cell("# A notebook"), nbformat.v4.new_code_cell("1 + 1")]
)
# file: (its text, what is said of it)
DEFECTS = {
    "image.md": ("# An image\n\n![a picture](nowhere.png)\n", "nowhere.png"),
    "reference.md": ("# A reference\n\nSee [](#no-such-label).\n", "no-such-label"),
    "numbered.md": ("# A number\n\nSee {numref}`no-such-figure`.\n", "no-such-figure"),
    "citation.md": ("# A citation\n\n{cite:t}`nobody1900`\n", "nobody1900"),
    "formula.md": ("# A formula\n\n$$\\fraq{1}{2}$$\n", "\\fraq"),
    "long-formula.md": (f"# A long formula\n\nSo ${'x' * 300}$.\n", "300 letters on which no line"),
    "term.md": ("# A term\n\n{term}`no such term`\n", "no such term"),
    "empty.ipynb": (nbformat.writes(NOTEBOOK), "cell 1 was never run"),
    "undescribed.md": ("# A picture\n\n![](_static/card.png)\n", "undescribed.md:3: "),
    "figure.md": (
        "# A figure\n\nText.\n\n```{figure} _static/card.png\nA caption.\n```\n",
        "figure.md:5: ",
    ),
    "html.md": ('# HTML\n\n<p><img src="../_static/card.png"></p>\n', "html.md:3: "),
    "file-name.md": ("# A name\n\n![card.png](_static/card.png)\n", "has no description"),
}


def with_output(**data):
    """Return the text of a notebook that has one output."""
    output = nbformat.v4.new_output("display_data", data)
    cell = nbformat.v4.new_code_cell("1 + 1", execution_count=1, outputs=[output])
    title = nbformat.v4.new_markdown_cell("# A notebook")
    return nbformat.writes(nbformat.v4.new_notebook(cells=[title, cell]))


# MyST-NB#306, bertviz#53: what would be stored, and missing on the page
LOST = "https://example.org/lost"
DEFECTS |= {
    "widget.ipynb": (
        with_output(**{"application/vnd.jupyter.widget-view+json": {}, "text/plain": "slider"}),
        "cell 1 holds a widget without its state",
    ),
    "form.ipynb": (with_output(**{"application/pdf": "JVBERi0="}), "cell 1 holds application/pdf"),
    "script.ipynb": (
        with_output(**{"text/html": f'<script src="{LOST}.js"></script>', "text/plain": "x"}),
        f"cell 1 loads {LOST}.js",
    ),
    "badge.md": (f"# A badge\n\n![a badge]({LOST}.svg)\n", f"loads {LOST}.svg"),
    "frame.md": (
        f'# A frame\n\n<iframe src="{LOST}.html" title="x"></iframe>\n',
        f"loads {LOST}.html",
    ),
}
REMOTE = {  # every way in which a piece of HTML loads something
    "set": f'<img srcset="a.png 1x, {LOST}.png 2x" alt="x">',
    "poster": f'<video poster="{LOST}.png"></video>',
    "linked": f'<svg><image xlink:href="{LOST}.png"/></svg>',
    "used": f'<svg><use href="{LOST}.svg#a"/></svg>',
    "style": f'<p style="background: url({LOST}.png)">x</p>',
    "sheet": f'<style>@import "{LOST}.css";</style><p>x</p>',
    "font": f"<style>@font-face {{ src: url('{LOST}.woff2') }}</style><p>x</p>",
    "frame": f'<iframe src="{LOST}.html"></iframe>',
    "object": f'<object data="{LOST}.svg"></object>',
    "within": f"<iframe srcdoc='<img src=\"{LOST}.png\">'></iframe>",
    "module": f'<script type="module">import x from "{LOST}/x"</script>',
    "require": f"<script>require.config({{paths: {{p: '{LOST}.min.js'}}}})</script>",
    "link": f'<link rel="stylesheet" href="{LOST}.css"><p>x</p>',
    "plain": '<img src="http://example.org/lost.png" alt="x">',
    "slashes": '<img src=" //example.org/lost.png" alt="x">',
    "own-machine": '<img src="file:///home/me/lost.png" alt="x">',
    "drawn": "<img alt='x' src='data:image/svg+xml,"
    f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{LOST}.png"/></svg>\'>',
}
DEFECTS |= {
    f"remote-{name}.ipynb": (with_output(**{"text/html": html, "text/plain": "x"}), "cell 1 loads ")
    for name, html in REMOTE.items()
}
STOPPED = {  # what the policy of a page keeps from running or playing
    "sound": '<audio controls src="data:audio/wav;base64,UklGRg=="></audio>',
    "film": '<video><source src="data:video/mp4;base64,AAAA"></video>',
    "page": '<iframe src="data:text/html,hello"></iframe>',
    "object": '<object data="local.svg"></object>',
    "button": '<button onclick="alert(1)">x</button>',
}
DEFECTS |= {
    f"stopped-{name}.ipynb": (
        with_output(**{"text/html": html, "text/plain": "x"}),
        "which the policy of pages stops",
    )
    for name, html in STOPPED.items()
}
VIEW = {"model_id": "a", "version_major": 2, "version_minor": 0}
WIDGET = {"application/vnd.jupyter.widget-view+json": VIEW, "text/plain": "slider"}
DEFECTS |= {
    "other-state.ipynb": (
        with_output(**WIDGET).replace(
            '"metadata": {},\n "nbformat"',
            '"metadata": {"widgets": {"application/vnd.jupyter.widget-state+json": '
            '{"state": {"b": {}}, "version_major": 2, "version_minor": 0}}},\n "nbformat"',
        ),
        "cell 1 holds a widget without its state",
    ),
    "beside.ipynb": (
        with_output(**{"application/javascript": "1", "text/plain": "x"}),
        "cell 1 holds a script",
    ),
    "chart.ipynb": (
        with_output(**{"application/vnd.plotly.v1+json": {"data": []}, "text/plain": "Figure()"}),
        "cell 1 holds application/vnd.plotly.v1+json",
    ),
    "webp.ipynb": (with_output(**{"image/webp": "UklGRg==", "text/plain": "x"}), "image/webp"),
    "button.md": ('# A button\n\n<button onclick="alert(1)">x</button>\n', "onclick"),
}
# flamegraph-rs/flamegraph#166: a drawing that no browser can read
BROKEN = base64.b64encode(
    b"<svg xmlns='http://www.w3.org/2000/svg'><text>\x1b</text></svg>"
).decode()
DRAWN = f'<img src="data:image/svg+xml;base64,{BROKEN}" alt="a drawing">'
ADDRESSES = {  # every way in which an address can hold a drawing
    "escaped": "data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22%3E%3Cg%3E%3C/svg%3E",
    "as-text": "data:image/svg+xml;utf8,&lt;svg xmlns='http://www.w3.org/2000/svg'&gt;&lt;g&gt;",
    "colour": "data:image/svg+xml;charset=utf-8,"
    "&lt;svg xmlns='http://www.w3.org/2000/svg' fill='#fff'/&gt;",
    "no-name": "data:image/svg+xml,%3Csvg/%3E",
}
DEFECTS |= {
    f"address-{name}.ipynb": (
        with_output(**{"text/html": f'<img src="{address}" alt="x">', "text/plain": "x"}),
        "cell 1 holds a drawing that cannot be read",
    )
    for name, address in ADDRESSES.items()
}
DEFECTS |= {
    "drawn-in-style.ipynb": (
        with_output(**{"text/html": f"<p style='--dark:url(data:image/svg+xml;base64,{BROKEN})'>"}),
        "cell 1 holds a drawing that cannot be read",
    ),
    "drawing.ipynb": (
        with_output(**{"text/html": DRAWN, "text/plain": "a drawing"}),
        "cell 1 holds a drawing that cannot be read",
    ),
    "vector.ipynb": (
        with_output(**{"image/svg+xml": "<svg><text>1 & 2</text></svg>", "text/plain": "x"}),
        "cell 1 holds a drawing that cannot be read",
    ),
    "half.ipynb": (
        with_output(**{"text/html": DRAWN.replace(BROKEN, BROKEN[:41]), "text/plain": "x"}),
        "cell 1 holds a drawing that cannot be read",
    ),
    "inline.md": (f"# A drawing\n\n<p>{DRAWN}</p>\n", "drawing that cannot be read"),
    "file.md": (
        "# A file\n\n![a drawing](_static/broken.svg)\n",
        "broken.svg, which holds a drawing that cannot be read",
    ),
}
# What is wrong: (the cells after the title, what is said of it).
PLAIN = {
    "02-caption": ([markdown("Text."), CAPTION], "has drawn nothing"),
    "02-far": ([FIGURE, markdown("Text."), CAPTION], "has drawn nothing"),
    "02-none": ([FIGURE, CAPTION, FIGURE], "this figure has no caption"),
    "02-twice": ([FIGURE, CAPTION, FIGURE, CAPTION], "Figure 2.1 should be 2.2"),
    "03-chapter": ([FIGURE, CAPTION], "Figure 2.1 should be 3.1"),
    "02-stop": ([FIGURE, markdown("**Figure 2.1** What.")], "with a full stop"),
    "02-tag": ([markdown("$$x \\tag{2.3}$$")], "formula 2.3 should be 2.1"),
    "02-open": ([markdown("<details><summary>A</summary>\n\nText.")], "close this <details>"),
    "02-closed": ([markdown("Text.\n\n</details>")], "closes nothing"),
    "02-term": ([markdown("[x](glossary.md#term-nothing)")], "term-nothing"),
    "02-work": ([markdown("[x](bibliography.md#nobody1900)")], "nobody1900"),
    "02-place": ([markdown("[x](#no-such-place)")], "no-such-place"),
    "02-other": ([markdown("[x](02-tag.ipynb#eq-9-9)")], "eq-9-9"),
}
DEFECTS |= {f"{name}.ipynb": defect for name, defect in PLAIN.items()}
MERGED = '{\n<<<<<<< HEAD\n "cells": []\n=======\n "cells": [1]\n>>>>>>> other\n}'
PASTED = {"cell_type": "markdown", "source": "![x](attachment:a.png)", "metadata": {}}
UNREADABLE = {
    "merged": (MERGED, "merge that was not finished (line 2)"),
    "empty": ("", "is empty"),
    "cut": ('{"cells": [', "is no notebook: line 1"),
    "list": ("[]", "is no notebook: it has no list of cells"),
    "old": ('{"nbformat": 3, "worksheets": []}', "is in notebook format 3"),
    "pasted": (
        json.dumps({"nbformat": 4, "cells": [PASTED | {"attachments": {"a.png": {}}}]}),
        "cell 0 holds a pasted picture (a.png)",
    ),
}
DEFECTS |= {f"{name}.ipynb": broken for name, broken in UNREADABLE.items()}


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    """Build one book with all the defects and one good page; return the warnings."""
    pages = {"glossary.md": GLOSSARY, "good.md": "# Good\n"}
    for name, (text, _) in DEFECTS.items():
        pages[name] = text if isinstance(text, str) else stored([TITLE, *text])
    folder = tiny_book(tmp_path_factory.mktemp("bad"), pages)
    (folder / "chapters/_static/broken.svg").write_text("<svg><text>a</svg>")
    status, said = build(folder, folder)
    assert status != 0 and "Traceback" not in said
    assert (folder / "_build/html/chapters/good.html").is_file()
    return [line for line in said.splitlines() if "WARNING" in line]


@pytest.mark.parametrize("page", DEFECTS)
def test_a_defect_is_named_with_its_file(said, page):
    about = [line for line in said if page in line]
    assert any(DEFECTS[page][1] in line for line in about), said


def test_nothing_else_is_reported(said):
    assert [line for line in said if not any(page in line for page in DEFECTS)] == []
