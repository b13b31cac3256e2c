"""What the search looks through: each section of the book by itself, not whole pages.

MiniSearch finds (``minisearch/``), ``search.mjs`` asks and shows. Weighed against others: Pagefind
runs WebAssembly, which the policy of the pages forbids, and cannot be opened from a folder on a
disk; lunr is no longer kept up; Sphinx's own search finds pages, and not while one is typing.
"""

import json
import re
from pathlib import Path

from chapter import ancestors
from docutils import nodes
from links import LIST
from sphinx import addnodes

LIBRARY = Path(__file__).parent / "minisearch" / "minisearch.min.js"
NAME = "search-book.mjs"
# Of a formula, the letters and the names of what is done with them.
STYLE = re.compile(
    r"\\(?:math\w+|boldsymbol|operatorname|text|tag|left|right|begin|end|quad|qquad)\b\*?"
)
SPACES = re.compile(r"\s+")
UNREAD = (nodes.comment, nodes.raw, nodes.substitution_definition, addnodes.toctree)
UNREAD += (nodes.title, addnodes.desc_signature)  # said by the place


def formula(tex: str) -> str:
    r"""Return the words of a formula.

    >>> formula(r"\frac{\mathbf{q} \cdot \mathbf{k}}{\sqrt{d}}")
    'frac q cdot k √d'
    >>> formula(r"d_{\text{model}}")
    'd_model'
    """
    plain = STYLE.sub(" ", tex).replace("\\sqrt", "√")
    plain = SPACES.sub(" ", re.sub(r"[\\{}&$]", " ", plain)).strip()
    return re.sub(r" ?([_^]|(?<=√)) ?", r"\1", plain)


class Section:
    """A place that can be found: its title, its own text and the words of its own code."""

    def __init__(self, anchor: str, title: str, kind: str) -> None:
        self.anchor, self.title, self.kind = anchor, title, kind
        self.text: list[str] = []
        self.code: list[str] = []

    def row(self, page: int) -> list:
        """Return it as the script reads it."""
        text = SPACES.sub(" ", " ".join(self.text)).strip()
        names = dict.fromkeys(re.findall(r"[^\W\d]\w+", " ".join(self.code)))
        return [page, self.anchor, self.title, self.kind, text, " ".join(names)]


def words(node: nodes.Node) -> str:
    """Return what a node says, its formulas too."""
    return "".join(
        formula(leaf.astext()) if isinstance(leaf.parent, nodes.math) else leaf.astext()
        for leaf in node.findall(nodes.Text)
    )


def kind_of(section: nodes.section, numbered: bool) -> str:
    """Return what a section is: the search puts what explains before what asks and what lists."""
    if not numbered:
        return "section"
    above = [one for one in ancestors(section.parent) if isinstance(one, nodes.section)]
    if any("exercises" in one["ids"] for one in above):
        return "exercise"
    return "part" if len(above) > 1 else "chapter"


def sections(doctree: nodes.document, numbers: dict[str, tuple]) -> list[Section]:
    """Return the sections of a page, the names that it describes, and the terms that it defines."""
    found: list[Section] = []

    def walk(node: nodes.Node, here: Section | None) -> None:
        for child in node.children:
            if isinstance(child, nodes.section):
                anchor = child["ids"][0]
                number = numbers.get(f"#{anchor}") or (() if found else numbers.get("", ()))
                title = f"{'.'.join(map(str, number))} {words(child[0])}".strip()
                found.append(Section(anchor, title, kind_of(child, bool(numbers))))
                walk(child, found[-1])
            elif isinstance(child, addnodes.desc):
                signature = child[0]
                name = signature.get("fullname", words(signature))
                if signature["ids"]:
                    found.append(Section(signature["ids"][0], name, "name"))
                walk(child, found[-1])
            elif isinstance(child, nodes.definition_list_item) and child[0].get("ids"):
                found.append(Section(child[0]["ids"][0], words(child[0]), "term"))
                walk(child, found[-1])
            elif isinstance(child, UNREAD) or here is None:
                continue
            elif isinstance(child, nodes.container) and "cell_output" in child["classes"]:
                continue  # numbers
            elif isinstance(child, (nodes.literal_block, nodes.doctest_block)):
                here.code.append(child.astext())
            elif isinstance(child, nodes.math_block):  # to be found, but no excerpt shows it
                here.code.append(formula(child.astext()).replace("√", "sqrt"))
            elif isinstance(child, nodes.TextElement):
                here.text.append(words(child))
            else:
                walk(child, here)

    walk(doctree, None)
    return found


def write(app, out: Path) -> None:
    """Write what can be found beside what finds it, in one file that a page loads when asked."""
    pages, rows = [], []
    within = app.env.toctree_includes  # pages and those that they list, in the order of the book
    listed = [app.config.root_doc]
    for page in within[app.config.root_doc]:
        listed += [page, *within.get(page, [])]
    for page in listed:
        numbers = app.env.toc_secnumbers.get(page, {})
        found = sections(app.env.get_doctree(page), numbers)
        if not found:  # of a page without a title the build has said what is wrong
            continue
        if page == LIST:  # its pages say all that it lists
            found = found[:1]
        pages.append([app.builder.get_target_uri(page), found[0].title])
        found[0].anchor = ""  # the page itself, from its top
        rows += [one.row(len(pages) - 1) for one in found]
    book = json.dumps({"pages": pages, "rows": rows}, ensure_ascii=False, separators=(",", ":"))
    text = f"{LIBRARY.read_text('utf8')}\nvar THE_BOOK = {book};\n"
    Path(out, "_static", NAME).write_text(text, "utf8")
