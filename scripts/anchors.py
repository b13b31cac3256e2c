r"""Put an anchor at each place of the book that a link leads to, as programs for notebooks need it.

    python scripts/anchors.py

Headings have names of their own, but JupyterLab keeps their capitals and VS Code does not; figures,
formulas and terms have none. So a line `<a id="masks"></a>` stands before each that is linked. The
build leaves it out (`_ext/links.py`), since a page gives the same names by itself. The works that
are cited are listed in the bibliography, as `references.bib` describes them.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from pybtex.database import parse_file
from pybtex.plugin import find_plugin

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "_ext"), str(ROOT)]
from links import WORKS  # noqa: E402
from sources import ANCHOR, CAPTION, TAG  # noqa: E402
from upstream import default_slugify as slug  # noqa: E402

from scripts.notebooks import read, store  # noqa: E402

PAGES = ("chapters/*.ipynb", "chapters/*.md", "chapters/api/*.md")
LINK = re.compile(r"\]\(([^)\s#]*)#([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
TERM = re.compile(r"^\*\*(.+?)\*\*\\$", re.MULTILINE)  # of the glossary: its words are on a line
CODE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def places(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield where each thing that has a name begins, and its name.

    >>> [name for _, name in places("## Why √d?\n\n$$\nx \\tag{1.2}\n$$\n\n**Figure 1.1.** So.")]
    ['why-d', 'eq-1-2', 'figure-1-1']
    """
    found = {one.start(): slug(one[1]) for one in HEADING.finditer(text)}
    for one in TAG.finditer(text):
        found[text.rfind("\n$$", 0, one.start()) + 1] = f"eq-{one[1].replace('.', '-')}"
    for one in CAPTION.finditer(text):
        found[one.start()] = f"figure-{one[1].replace('.', '-')}"
    for one in TERM.finditer(text):
        found[one.start()] = f"term-{slug(one[1])}"
    code = [range(one.start(), one.end()) for one in CODE.finditer(text)]
    yield from sorted((at, n) for at, n in found.items() if not any(at in one for one in code))


def works(bibliography: Path, cited: set[str]) -> str:
    """Return a list of the works that are cited, in the order and the form of the page."""
    entries = parse_file(str(bibliography))
    if unknown := cited - {*entries.entries}:
        raise ValueError(f"references.bib has no {', '.join(sorted(unknown))}, which a page cites")
    style = find_plugin("pybtex.style.formatting", "plain")()
    markdown = find_plugin("pybtex.backends", "markdown")()
    return "\n".join(
        f'- <a id="{work.key}"></a>'
        + re.sub(r"\\([-.()])", r"\1", work.text.render(markdown).replace("\n", " "))
        for work in style.format_bibliography(entries)
        if work.key in cited
    )


def anchored(text: str, linked: set[str]) -> str:
    r"""Return a text with an anchor before each of its places that is linked, and no other.

    >>> anchored("# A\n\n<a id=\"old\"></a>\n## B\n\n## C", {"c"})
    '# A\n\n## B\n\n<a id="c"></a>\n## C'
    """
    text = ANCHOR.sub("", text)
    for at, name in reversed(list(places(text))):
        if name in linked or name.startswith("term-"):
            text = f'{text[:at]}<a id="{name}"></a>\n{text[at:]}'
    return text


def texts(path: Path) -> list[str]:
    """Return the Markdown of a page: of each cell, if it is a notebook."""
    text = path.read_text("utf8")
    if path.suffix == ".md":
        return [text]
    cells = json.loads(text)["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]


def linked_places(pages: list[Path]) -> dict[Path, set[str]]:
    """Return of each page the names that links of any page lead to."""
    found = defaultdict(set)
    for page in pages:
        for text in texts(page):
            for file, name in LINK.findall(text):
                found[(page.parent / file).resolve() if file else page].add(name)
    return found


def missing(pages: list[Path]) -> Iterator[tuple[Path, int, str]]:
    """Yield each text that is not anchored as it should be: its page, its place, its new text."""
    linked = linked_places(pages)
    for page in pages:
        for number, text in enumerate(texts(page)):
            new = anchored(text, linked[page])
            if page.name == "bibliography.md":
                listed = works(page.with_name("references.bib"), linked[page])
                new = f"{WORKS.sub('', text).rstrip()}\n\n{listed}\n"
            if new != text:
                yield page, number, new


def all_pages(root: Path = ROOT) -> list[Path]:
    """Return the pages of the book."""
    return sorted(path for each in PAGES for path in root.glob(each))


def main(root: Path = ROOT) -> None:
    """Anchor every page; outputs stay as they are."""
    changed = defaultdict(dict)
    for page, number, text in missing(all_pages(root)):
        changed[page][number] = text
    for page, new in changed.items():
        if page.suffix == ".md":
            page.write_text(new[0], "utf8")
        else:
            notebook = read(page)
            cells = [cell for cell in notebook.cells if cell.cell_type == "markdown"]
            for number, text in new.items():
                cells[number].source = text
            store(page, notebook)
        print(f"changed {page.relative_to(root).as_posix()}")


if __name__ == "__main__":
    main()
