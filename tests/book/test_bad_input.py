"""A defect in the book fails the build, and the message says in which file it is."""

import base64
import json

import nbformat
import pytest

from tests.book.building import build
from tests.book.checks import refused
from tests.book.tiny import CAPTION, FIGURE, GLOSSARY, TITLE, markdown, stored, tiny_book

LOST = "https://example.org/lost"
# flamegraph-rs/flamegraph#166: a drawing that no browser can read
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><text>\x1b</text></svg>"
BROKEN = base64.b64encode(SVG).decode()
WIDGET = {refused.WIDGET: {"model_id": "a", "version_major": 2, "version_minor": 0}}
ELSEWHERE = [  # every way in which a piece of HTML loads something
    f'<script src="{LOST}.js"></script>',
    f'<img srcset="a.png 1x, {LOST}.png 2x" alt="x">',
    f'<video poster="{LOST}.png"></video>',
    f'<svg><image xlink:href="{LOST}.png"/></svg>',
    f'<svg><use href="{LOST}.svg#a"/></svg>',
    f'<p style="background: url({LOST}.png)">x</p>',
    f'<style>@import "{LOST}.css";</style><p>x</p>',
    f"<style>@font-face {{ src: url('{LOST}.woff2') }}</style><p>x</p>",
    f'<iframe src="{LOST}.html"></iframe>',
    f'<object data="{LOST}.svg"></object>',
    f"<iframe srcdoc='<img src=\"{LOST}.png\">'></iframe>",
    f'<script type="module">import x from "{LOST}/x"</script>',
    f"<script>require.config({{paths: {{p: '{LOST}.min.js'}}}})</script>",
    f'<link rel="stylesheet" href="{LOST}.css"><p>x</p>',
    '<img src="http://example.org/lost.png" alt="x">',
    '<img src=" //example.org/lost.png" alt="x">',
    '<img src="file:///home/me/lost.png" alt="x">',
    "<img alt='x' src='data:image/svg+xml,"
    f'<svg xmlns="http://www.w3.org/2000/svg"><image href="{LOST}.png"/></svg>\'>',
]
STOPPED = [  # what the policy of a page keeps from running or playing
    '<audio controls src="data:audio/wav;base64,UklGRg=="></audio>',
    '<video><source src="data:video/mp4;base64,AAAA"></video>',
    '<iframe src="data:text/html,hello"></iframe>',
    '<object data="local.svg"></object>',
    '<button onclick="alert(1)">x</button>',
]
UNREADABLE = [  # every way in which an address can hold a drawing
    "data:image/svg+xml,%3Csvg xmlns=%22http://www.w3.org/2000/svg%22%3E%3Cg%3E%3C/svg%3E",
    "data:image/svg+xml;utf8,&lt;svg xmlns='http://www.w3.org/2000/svg'&gt;&lt;g&gt;",
    "data:image/svg+xml;charset=utf-8,&lt;svg xmlns='http://www.w3.org/2000/svg' fill='#fff'/&gt;",
    "data:image/svg+xml,%3Csvg/%3E",
    f"data:image/svg+xml;base64,{BROKEN}",
    f"data:image/svg+xml;base64,{BROKEN[:41]}",
]
# What a cell puts out and a page would lose (MyST-NB#306, bertviz#53): the output, what is said.
NOT_READ = "holds a drawing that cannot be read"
OUTPUTS = [
    *(({"text/html": html}, "loads ") for html in ELSEWHERE),
    *(({"text/html": html}, "which the policy of pages stops") for html in STOPPED),
    *(({"text/html": f'<img src="{url}" alt="x">'}, NOT_READ) for url in UNREADABLE),
    ({"text/html": f"<p style='--dark:url({UNREADABLE[-2]})'>"}, NOT_READ),
    ({"image/svg+xml": "<svg><text>1 & 2</text></svg>"}, NOT_READ),
    (WIDGET, "holds a widget without its state"),
    ({"application/pdf": "JVBERi0="}, "holds application/pdf"),
    ({"application/javascript": "1"}, "holds a script"),
    ({"application/vnd.plotly.v1+json": {"data": []}}, "holds application/vnd.plotly.v1+json"),
    ({"image/webp": "UklGRg=="}, "image/webp"),
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
PASTED = markdown("![x](attachment:a.png)") | {"attachments": {"a.png": {}}}
DEFECTS = {  # the file: (its text, or its cells after the title; what is said of it)
    "image.md": ("# An image\n\n![a picture](nowhere.png)\n", "nowhere.png"),
    "reference.md": ("# A reference\n\nSee [](#no-such-label).\n", "no-such-label"),
    "numbered.md": ("# A number\n\nSee {numref}`no-such-figure`.\n", "no-such-figure"),
    "citation.md": ("# A citation\n\n{cite:t}`nobody1900`\n", "nobody1900"),
    "formula.md": ("# A formula\n\n$$\\fraq{1}{2}$$\n", "\\fraq"),
    "long-formula.md": (f"# A long formula\n\nSo ${'x' * 300}$.\n", "300 letters on which no line"),
    "term.md": ("# A term\n\n{term}`no such term`\n", "no such term"),
    "undescribed.md": ("# A picture\n\n![](_static/card.png)\n", "undescribed.md:3: "),
    "figure.md": (
        "# A figure\n\nText.\n\n```{figure} _static/card.png\nA caption.\n```\n",
        "figure.md:5: ",
    ),
    "html.md": ('# HTML\n\n<p><img src="../_static/card.png"></p>\n', "html.md:3: "),
    "file-name.md": ("# A name\n\n![card.png](_static/card.png)\n", "has no description"),
    "badge.md": (f"# A badge\n\n![a badge]({LOST}.svg)\n", f"loads {LOST}.svg"),
    "frame.md": (
        f'# A frame\n\n<iframe src="{LOST}.html" title="x"></iframe>\n',
        f"loads {LOST}.html",
    ),
    "button.md": ('# A button\n\n<button onclick="alert(1)">x</button>\n', "onclick"),
    "inline.md": (f'# A drawing\n\n<p><img src="{UNREADABLE[-2]}" alt="x"></p>\n', NOT_READ[8:]),
    "file.md": ("# A file\n\n![a drawing](_static/broken.svg)\n", f"broken.svg, which {NOT_READ}"),
    "never.ipynb": (nbformat.writes(NEVER_RUN), "cell 1 was never run"),
    "script.ipynb": (with_output({"text/html": ELSEWHERE[0]}), f"cell 1 loads {LOST}.js"),
    "state.ipynb": (with_output(WIDGET, widgets=OTHER_STATE), "cell 1 holds a widget without its"),
    "merged.ipynb": (MERGED, "merge that was not finished (line 2)"),
    "empty.ipynb": ("", "is empty"),
    "cut.ipynb": ('{"cells": [', "is no notebook: line 1"),
    "list.ipynb": ("[]", "is no notebook: it has no list of cells"),
    "old.ipynb": ('{"nbformat": 3, "worksheets": []}', "is in notebook format 3"),
    "pasted.ipynb": (
        json.dumps({"nbformat": 4, "cells": [PASTED]}),
        "cell 0 holds a pasted picture (a.png)",
    ),
    "02-caption.ipynb": ([markdown("Text."), CAPTION], "has drawn nothing"),
    "02-far.ipynb": ([FIGURE, markdown("Text."), CAPTION], "has drawn nothing"),
    "02-none.ipynb": ([FIGURE, CAPTION, FIGURE], "this figure has no caption"),
    "02-twice.ipynb": ([FIGURE, CAPTION, FIGURE, CAPTION], "Figure 2.1 should be 2.2"),
    "03-chapter.ipynb": ([FIGURE, CAPTION], "Figure 2.1 should be 3.1"),
    "02-stop.ipynb": ([FIGURE, markdown("**Figure 2.1** What.")], "with a full stop"),
    "02-tag.ipynb": ([markdown("$$x \\tag{2.3}$$")], "formula 2.3 should be 2.1"),
    "02-open.ipynb": (
        [markdown("<details><summary>A</summary>\n\nText.")],
        "close this <details>",
    ),
    "02-closed.ipynb": ([markdown("Text.\n\n</details>")], "closes nothing"),
    "02-term.ipynb": ([markdown("[x](glossary.md#term-nothing)")], "term-nothing"),
    "02-work.ipynb": ([markdown("[x](bibliography.md#nobody1900)")], "nobody1900"),
    "02-place.ipynb": ([markdown("[x](#no-such-place)")], "no-such-place"),
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
