"""What every program that shows notebooks makes of a chapter's Markdown.

A chapter's Markdown is read here as JupyterLab, VS Code, Colab and GitHub read it: CommonMark with
tables and `$`-formulas. Each function returns what is wrong, in words that say what to do.
"""

import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin

READER = MarkdownIt("commonmark").enable("table").use(dollarmath_plugin)
parsed = cache(READER.parse)  # one text is asked many things, and those of all pages by each

# What a plain reader would show as it was typed, and what to write instead.
RAW = {
    "a role": (r"\{[A-Za-z][\w:.+-]*\}$", "write a link, or the word itself"),
    "a target": (r"^\([\w-]+\)=", "run `python scripts/anchors.py`"),
    "a directive": (r"^(:::+|```+|~~~+)\s*\{", "write a quote, <details> or $$"),
    "an attribute": (r"\{[#.][\w-]+[^}]*\}", "leave it out"),
    "a substitution": (r"\{\{.*?\}\}", "write the value"),
    "a footnote": (r"\[\^[^\]]+\]", "write it into the text"),
    "a comment": (r"^%", "leave it out"),
    "the label of a formula": (r"^\s*\([\w-]+\)\s*$", r"write \tag{2.1} into the formula"),
    "TeX outside of $": (r"\\(?:frac|sum|mathbf|sqrt|top|operatorname|begin|tag)\b", "write $…$"),
}
ALLOWED_HTML = re.compile(
    r"(<details>\s*)?<summary>.*?</summary>\s*|<details>\s*|</details>\s*", re.S
)
TAG = re.compile(r"\\tag\s*\{([^{}]*)\}")
CAPTION = re.compile(r"\*\*Figure ([\w.]*\w)\.?\*\*")
A_CAPTION = re.compile(r"\*\*Figure \d+\.\d+\.\*\* \S")
TERM = re.compile(r"^\*\*(.+?)\*\*\\\n(?=\S)", re.MULTILINE)
ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')
AN_ANCHOR = re.compile(r'<a id="[\w-]+">|</a>')


def markdown_of(notebook: dict | str) -> list[tuple[str, str]]:
    """Return the id and the text of each Markdown cell; of a page that is no notebook, its text."""
    if isinstance(notebook, str):
        return [("text", notebook)]
    return [
        (cell["id"], "".join(cell["source"]))
        for cell in notebook["cells"]
        if cell["cell_type"] == "markdown"
    ]


def lines_of(text: str):
    """Yield each run of inline tokens of a text."""
    for token in parsed(text):
        if token.type == "inline":
            yield token.children


def raw_markup(text: str) -> list[str]:
    """Return what a plain reader would show as it was typed."""
    found = []
    for token in parsed(text):
        if token.type == "fence" and token.info.startswith("{"):
            found.append(f"a directive, {token.info!r}: {RAW['a directive'][1]}")
        if token.type == "html_block" and not ALLOWED_HTML.fullmatch(token.content):
            found.append(
                f"HTML, {token.content[:40]!r}: write Markdown (only <details> and <summary> may "
                "stand there, with blank lines around what they hold)"
            )
        if token.type == "math_block_label":
            found.append(f"a label, {token.info!r}: {RAW['the label of a formula'][1]}")
        for child in token.children or []:
            if child.type == "html_inline" and not AN_ANCHOR.fullmatch(child.content):
                found.append(f"HTML, {child.content!r}: write Markdown")
            if child.type == "text":
                found += [
                    f"{kind}, {match.group()!r}: {instead}"
                    for kind, (pattern, instead) in RAW.items()
                    if (match := re.search(pattern, child.content))
                ]
    return found


def empty_links(text: str) -> list[str]:
    """Return links without words, and pictures without a description."""
    found = []
    for children in lines_of(text):
        for token, after in pairwise([*children, None]):
            if token.type == "link_open" and after.type == "link_close":
                found.append(f"a link to {token.attrs['href']} without words")
            if token.type == "image" and not token.content.strip():
                found.append(f"the picture {token.attrs['src']} without a description")
    return found


def links(text: str) -> list[str]:
    """Return where the links of a text lead."""
    return [
        token.attrs["href"]
        for children in lines_of(text)
        for token in children
        if token.type == "link_open"
    ]


def slug(title: str) -> str:
    """Return the anchor of a heading, by GitHub's rule.

    >>> slug("Why divide by √d?")
    'why-divide-by-d'
    """
    return re.sub(r"[^\w\- ]", "", title.lower().replace(" ", "-"))


def headings(text: str) -> list[str]:
    """Return the words of the headings of a text."""
    tokens = parsed(text)
    return [
        words_of(tokens[number + 1])
        for number, token in enumerate(tokens)
        if token.type == "heading_open"
    ]


def words_of(inline: Token) -> str:
    """Return what a heading says, as its anchor is made of it."""
    return "".join(t.content for t in inline.children if t.type in ("text", "code_inline"))


def formulas(text: str) -> list[str]:
    """Return the formulas on lines of their own, and those in the text."""
    found = [token.content for token in parsed(text) if token.type.startswith("math_block")]
    return found + [
        token.content
        for children in lines_of(text)
        for token in children
        if token.type.startswith("math")
    ]


def anchors(notebook: dict | str) -> set[str]:
    """Return the places of a notebook that links may lead to, on a page and in a notebook."""
    found, anchored = set(), set()
    for _, text in markdown_of(notebook):
        found |= {slug(title) for title in headings(text)}
        found |= {
            f"eq-{tag.replace('.', '-')}" for tex in formulas(text) for tag in TAG.findall(tex)
        }
        found |= {f"figure-{number.replace('.', '-')}" for number in CAPTION.findall(text)}
        found |= {f"term-{slug(term)}" for term in TERM.findall(text)}
        anchored |= set(ANCHOR.findall(text))
    return found & anchored


def anchors_of_page(path: Path) -> set[str]:
    """Return the places of a page in Markdown; those of the bibliography are its works."""
    text = path.read_text("utf8")
    found = anchors(text)
    if path.name == "bibliography.md":
        works = path.with_name("references.bib").read_text("utf8")
        cited = set(re.findall(r"^@\w+\{\s*([^,\s]+)", works, re.MULTILINE))
        found |= cited & set(ANCHOR.findall(text))
    return found


def broken_links(notebook: dict | str, folder: Path, read) -> list[str]:
    """Return links that lead nowhere; `read` gives the notebook that a path holds."""
    found = []
    for cell, text in markdown_of(notebook):
        for address in links(text):
            if re.match(r"https?://|mailto:", address):
                continue
            name, _, anchor = address.partition("#")
            path = folder / name
            if name and not path.is_file():
                found.append(f"{cell}: there is no file {name}")
                continue
            if not name:
                places = anchors(notebook)
            elif name.endswith(".ipynb"):
                places = anchors(read(path))
            else:
                places = anchors_of_page(path)
            if anchor and anchor not in places:
                found.append(f"{cell}: {address} leads nowhere: run `python scripts/anchors.py`")
    return found


def loose_captions(notebook: dict) -> list[str]:
    """Return captions that do not stand, alone, in the cell after the one that draws."""
    found = []
    for before, cell in zip([None, *notebook["cells"]], notebook["cells"], strict=False):
        text = "".join(cell["source"])
        if cell["cell_type"] != "markdown" or not CAPTION.search(text):
            continue
        blocks = [token for token in parsed(text) if token.level == 0 and token.nesting == 1]
        if not A_CAPTION.match(ANCHOR.sub("", text).lstrip()) or len(blocks) != 1:
            form = "**Figure 2.1.** Whole sentences."
            found.append(f"{cell['id']}: a caption has a cell of its own, of the form {form}")
        if before is None or before["cell_type"] != "code":
            found.append(
                f"{cell['id']}: before a caption stands the code cell that draws the figure"
            )
    return found


def repeated_headings(notebook: dict) -> list[str]:
    """Return headings that another one has the anchor of, or that have a formula."""
    slugs = Counter()
    found = []
    for cell, text in markdown_of(notebook):
        for title in headings(text):
            slugs[slug(title)] += 1
        tokens = parsed(text)
        for number, token in enumerate(tokens):
            inside = tokens[number + 1].children if token.type == "heading_open" else []
            if any(child.type.startswith("math") for child in inside):
                found.append(f"{cell}: a heading has a formula: write √d, or a word")
    return found + [f"#{name} is the anchor of {n} headings" for name, n in slugs.items() if n > 1]


def unfolded(notebook: dict) -> list[str]:
    """Return cells that a page hides and Jupyter shows, or the other way round."""
    wanted = {
        "source_hidden": {"hide-input", "hide-cell", "remove-cell"},
        "outputs_hidden": {"hide-cell"},
    }
    old = [
        f"{cell['id']}: name its fold as myst-nb does"
        for cell in notebook["cells"]
        if "fold" in cell["metadata"]
    ]
    return old + [
        f"{cell['id']}: {key} does not follow its tags: run `make notebooks`"
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
        for key, tags in wanted.items()
        if bool(tags & set(cell["metadata"].get("tags", [])))
        != cell["metadata"].get("jupyter", {}).get(key, False)
    ]
