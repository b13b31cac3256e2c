"""A defect in the book fails the build, and the message says in which file it is."""

import base64

import nbformat
import pytest

from tests.book.building import build
from tests.book.tiny import CAPTION, FIGURE, GLOSSARY, TITLE, markdown, stored, tiny_book

from _ext import refused  # isort: skip

LOST = "https://example.org/lost"
SVG = '<svg xmlns="http://www.w3.org/2000/svg">'
# flamegraph-rs/flamegraph#166: a drawing that no browser can read
BROKEN = base64.b64encode(f"{SVG}<text>\x1b</text></svg>".encode()).decode()
WIDGET = {refused.WIDGET: {"model_id": "a", "version_major": 2, "version_minor": 0}}
LOADS, NOT_READ = f"loads {LOST}", "holds a drawing that cannot be read"
STOPPED = "which the policy of pages stops"
# What a cell puts out and a page would lose (MyST-NB#306, bertviz#53): the output, what is said.
HTML = [
    (f'<script src="{LOST}.js"></script>', LOADS),
    (f'<img srcset="a.png 1x, {LOST}.png 2x" alt="x">', LOADS),
    (f'<video poster="{LOST}.png"></video>', LOADS),
    (f'<svg><image xlink:href="{LOST}.png"/></svg>', LOADS),
    (f"<style>@font-face {{ src: url('{LOST}.woff2') }}</style><p>x</p>", LOADS),
    (f"<iframe srcdoc='<img src=\"{LOST}.png\">'></iframe>", LOADS),
    (f'<script type="module">import x from "{LOST}/x"</script>', LOADS),
    ('<img src=" //example.org/lost.png" alt="x">', "loads //example.org"),
    ('<img src="file:///home/me/lost.png" alt="x">', "loads file:///"),
    (f"<img src='data:image/svg+xml,{SVG}<image href=\"{LOST}.png\"/></svg>'>", LOADS),
    ('<audio controls src="data:audio/wav;base64,UklGRg=="></audio>', STOPPED),
    ('<object data="local.svg"></object>', STOPPED),
    ('<button onclick="alert(1)">x</button>', STOPPED),
    (f"<img src='data:image/svg+xml;utf8,{SVG}<g></svg>' alt='x'>", NOT_READ),
    ("<img src='data:image/svg+xml,%3Csvg/%3E' alt='x'>", NOT_READ),
    (f"<img src='data:image/svg+xml;base64,{BROKEN}' alt='x'>", NOT_READ),
]
OUTPUTS = [
    *(({"text/html": html}, said) for html, said in HTML),
    ({"image/svg+xml": "<svg><text>1 & 2</text></svg>"}, NOT_READ),
    (WIDGET, "holds a widget without its state"),
    ({"application/javascript": "1"}, "holds a script"),
    ({"application/pdf": "JVBERi0="}, "holds application/pdf"),
]


@pytest.mark.parametrize(("data", "said"), OUTPUTS)
def test_what_a_page_would_lose_of_an_output_is_said(data, said):
    assert said in refused.fault(data | {"text/plain": "x"}, {"b": {}})


def with_output(data, **metadata):
    """Return the text of a notebook that has one output."""
    output = nbformat.v4.new_output("display_data", data | {"text/plain": "x"})
    cell = nbformat.v4.new_code_cell("1 + 1", execution_count=1, outputs=[output])
    cells = [nbformat.v4.new_markdown_cell("# A notebook"), cell]
    return nbformat.writes(nbformat.v4.new_notebook(cells=cells, metadata=metadata))


NEVER_RUN = nbformat.v4.new_notebook(
    cells=[nbformat.v4.new_markdown_cell("# A notebook"), nbformat.v4.new_code_cell("1 + 1")]
)
OTHER_STATE = {refused.WIDGET_STATE: {"state": {"b": {}}, "version_major": 2, "version_minor": 0}}
MERGED = '{\n<<<<<<< HEAD\n "cells": []\n=======\n "cells": [1]\n>>>>>>> other\n}'
DEFECTS = {  # the file: (its text, or its cells after the title; what is said of it)
    "image.md": ("# An image\n\n![a picture](nowhere.png)\n", "nowhere.png"),
    "reference.md": ("# A reference\n\nSee [](#no-such-label).\n", "no-such-label"),
    "citation.md": ("# A citation\n\n{cite:t}`nobody1900`\n", "nobody1900"),
    "formula.md": ("# A formula\n\n$$\\fraq{1}{2}$$\n", "\\fraq"),
    "long-formula.md": (f"# A long formula\n\nSo ${'x' * 300}$.\n", "300 letters on which no line"),
    "term.md": ("# A term\n\n{term}`no such term`\n", "no such term"),
    "undescribed.md": ("# A picture\n\n![](_static/card.png)\n", "undescribed.md:3: "),
    "html.md": ('# HTML\n\n<p><img src="../_static/card.png"></p>\n', "html.md:3: "),
    "file-name.md": ("# A name\n\n![card.png](_static/card.png)\n", "has no description"),
    "badge.md": (f"# A badge\n\n![a badge]({LOST}.svg)\n", f"loads {LOST}.svg"),
    "button.md": ('# A button\n\n<button onclick="alert(1)">x</button>\n', "onclick"),
    "file.md": ("# A file\n\n![a drawing](_static/broken.svg)\n", f"broken.svg, which {NOT_READ}"),
    "never.ipynb": (nbformat.writes(NEVER_RUN), "cell 1 was never run"),
    "script.ipynb": (with_output(OUTPUTS[0][0]), f"cell 1 loads {LOST}.js"),
    "state.ipynb": (with_output(WIDGET, widgets=OTHER_STATE), "cell 1 holds a widget without its"),
    "merged.ipynb": (MERGED, "merge that was not finished (line 2)"),
    "02-caption.ipynb": ([markdown("Text."), CAPTION], "has drawn nothing"),
    "02-second.ipynb": ([FIGURE, CAPTION, CAPTION], "has drawn nothing"),
    "02-none.ipynb": ([FIGURE, CAPTION, FIGURE], "this figure has no caption"),
    "02-twice.ipynb": ([FIGURE, CAPTION, FIGURE, CAPTION], "Figure 2.1 should be 2.2"),
    "02-stop.ipynb": ([FIGURE, markdown("**Figure 2.1** What.")], "with a full stop"),
    "02-tag.ipynb": ([markdown("$$x \\tag{2.3}$$")], "formula 2.3 should be 2.1"),
    "02-open.ipynb": ([markdown("<details><summary>A</summary>\n\nText.")], "close this <details>"),
    "02-work.ipynb": ([markdown("[x](bibliography.md#nobody1900)")], "nobody1900"),
    "02-other.ipynb": ([markdown("[x](02-tag.ipynb#eq-9-9)")], "eq-9-9"),
}


def test_each_defect_fails_the_build_with_its_file_and_nothing_else_is_reported(tmp_path):
    """One book has all the defects, and one good page."""
    pages = {"glossary.md": GLOSSARY, "good.md": "# Good\n"}
    for name, (text, _) in DEFECTS.items():
        pages[name] = text if isinstance(text, str) else stored([TITLE, *text])
    folder = tiny_book(tmp_path, pages)
    (folder / "chapters/_static/broken.svg").write_text("<svg><text>a</svg>")
    status, said = build(folder, folder)
    assert status != 0 and "Traceback" not in said
    assert (folder / "_build/html/chapters/good.html").is_file()
    warnings = {line for line in said.splitlines() if "WARNING" in line}
    about = {page: {w for w in warnings if f"/{page}" in w or f" {page}" in w} for page in DEFECTS}
    silent = {page for page, (_, words) in DEFECTS.items() if words not in "\n".join(about[page])}
    assert not silent and not warnings.difference(*about.values()), (silent, warnings)
