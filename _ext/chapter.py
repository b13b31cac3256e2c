r"""Add to a page what its plain source does not say: numbers, captions, boxes, citations.

*Plain* is a source that every reader of notebooks shows: headings, links, formulas, bold words,
quotes and ``<details>``, no directive and no role. From these come, while the book is built,

- formulas with a number and an anchor, from ``\tag{2.1}``: ``#eq-2-1``;
- figures with a caption and an anchor, from a cell ``**Figure 2.1.** …``: ``#figure-2-1``;
- links to the terms of the glossary and to the works of the bibliography, which says where each
  work is cited;
- definitions, from paragraphs of the glossary: a bold word on a line, then what it means;
- boxes, from quotes that begin with a bold word.

``<details>`` is HTML and stays as it is: a *fold*, in the book's words, of what somebody opens.
That numbers count up is asked of the source (`sources.wrong_numbers`). What does not fit together
here is a warning that says what to do, and warnings fail the build.
"""

import html
import re
from itertools import takewhile
from pathlib import PurePosixPath

from docutils import nodes
from outputs import drawing
from refused import warn
from sphinx import addnodes
from upstream import (
    HideCodeCellNode,
    default_slugify,
    is_code_cell,
    note_citation,
    note_index,
    publish_anchors,
    short_work,
)

TAG = re.compile(r"\s*\\tag\s*\{([^{}]*)\}")
CAPTION = re.compile(r"Figure\s+(\S*?)\.?")
PICTURE = re.compile(r'class="(?:[\w-]+ )*d2lmini-(figure|trace|explorer)\b')
BOXES = {"Takeaways": "tip", "Optional": "optional", "Note": "note", "Warning": "warning"}
IMPORTS = "What this chapter imports"
AFTER_THE_TEXT = ("Exercises", "Can you answer these?", "Further reading")
GLOSSARY, BIBLIOGRAPHY = "glossary", "bibliography"  # the pages with the terms and the works


class captioned(nodes.General, nodes.Element):
    """What a cell has drawn, and its caption."""


class drawn_caption(nodes.Part, nodes.TextElement):
    """The caption: its number, then what it says."""


class Chapter:
    """A page on its way: `read` adds all of it, and gives each place that is linked a name."""

    def __init__(self, document: nodes.document, env) -> None:
        self.document, self.env = document, env
        self.anchors: dict[str, tuple[int | None, str, str]] = {}

    @classmethod
    def read(cls, document: nodes.document, env) -> None:
        """Do it, one form after the other."""
        page = cls(document, env)
        page.number_formulas()
        page.require_closed_folds()
        page.box_quotes()
        page.caption_figures()
        page.note_citations()
        page.define_terms()
        page.name_tables()
        page.trim_code()
        for term in document.findall(nodes.term):
            words = term.astext()
            for name in term["ids"]:
                page.anchors[name] = (term.line, name, words)
        publish_anchors(document, env, page.anchors)

    def name(self, node: nodes.Element, kind: str, number: str, title: str) -> None:
        """Give a numbered thing its anchor."""
        anchor = f"{kind}-{number.replace('.', '-')}"
        if anchor not in self.anchors:  # or the source has said that it is there twice
            node["ids"].append(anchor)
            self.document.ids[anchor] = node
            self.anchors[anchor] = (node.line, anchor, title)

    def number_formulas(self) -> None:
        """Take the number of a formula out of its TeX."""
        for formula in self.document.findall(nodes.math_block):
            source = formula.astext()
            if found := TAG.search(source):
                formula["tag"] = number = found[1].strip()
                formula.children = []
                formula += nodes.Text(TAG.sub("", source))
                self.name(formula, "eq", number, f"({number})")

    def require_closed_folds(self) -> None:
        """Warn of a fold that is not closed where it was opened: it would swallow what follows."""
        left: dict[int, int] = {}  # of each parent: how many are open
        last: dict[int, nodes.raw] = {}
        for raw in self.document.findall(nodes.raw):
            text, parent = raw.astext(), id(raw.parent)
            left[parent] = left.get(parent, 0) + text.count("<details") - text.count("</details>")
            last[parent] = raw
        for parent, count in left.items():
            if count:
                what = "close this <details>" if count > 0 else "</details> closes nothing"
                warn(f"{what}: each is opened and closed in one cell", at=last[parent])

    def box_quotes(self) -> None:
        """Make a box of each quote that begins with one of the words for boxes, in bold."""
        for quote in list(self.document.findall(nodes.block_quote)):
            first = quote[0] if quote.children else None
            bold = bold_start(first)
            word = bold.astext().rstrip(".:") if bold else ""
            if word not in BOXES:
                continue
            drop_first(first)
            inside = quote.children[0 if first.children else 1 :]
            above = next(up for up in ancestors(quote) if isinstance(up, nodes.section))[0].astext()
            title = [] if above.startswith(word) else [nodes.title(word, word)]
            box = nodes.admonition("", *title, *inside, classes=[BOXES[word]])
            box.line, box.source = quote.line, quote.source
            quote.replace_self(box)

    def caption_figures(self) -> None:
        """Join each caption with what the cell before it has drawn."""
        captions = False
        for paragraph in list(self.document.findall(nodes.paragraph)):
            start = bold_start(paragraph)
            found = start and CAPTION.fullmatch(start.astext())
            if not found:
                continue
            captions, number = True, found[1]
            if drawing := drawn_before(paragraph):
                self.caption(drawing, paragraph, number)
            else:
                message = "Figure %s: the cell before this caption has drawn nothing; a caption "
                message += "stands in a Markdown cell of its own directly after its figure"
                warn(message, number, at=paragraph)
        for cell in self.document.findall(is_code_cell) if captions else ():
            pictures = any(PICTURE.search(raw.astext()) for raw in cell.findall(nodes.raw))
            needs_none = any(cell.findall(captioned)) or cell.get("hide_mode") == "all"
            if pictures and not needs_none and in_main_text(cell):
                message = "this figure has no caption: write **Figure %s.** and what it shows "
                message += "into a Markdown cell of its own directly after it"
                warn(message, "N.M", at=cell)

    def caption(self, output: nodes.container, paragraph: nodes.paragraph, number: str) -> None:
        """Move the caption into the figure."""
        title = f"Figure {number}"
        drop_first(paragraph)
        caption = drawn_caption("", "", *paragraph.children, number=title)
        drawings = [child for child in output.children if is_drawing(child)]
        start, end = output.index(drawings[0]), output.index(drawings[-1]) + 1
        figure = captioned("", *output.children[start:end], caption)
        figure.line, figure.source = paragraph.line, paragraph.source
        output[start:end] = [figure]
        paragraph.parent.remove(paragraph)
        self.name(figure, "figure", number, title)

    def define_terms(self) -> None:
        """Make a list of definitions of the paragraphs of the glossary that begin with a term."""
        if PurePosixPath(self.env.docname).name != GLOSSARY:
            return
        for paragraph in list(self.document.findall(nodes.paragraph)):
            word = bold_start(paragraph)
            if not word or not isinstance(paragraph.parent, nodes.section):
                continue
            drop_first(paragraph)
            del paragraph[0 : len(list(takewhile(is_break, paragraph)))]
            name = f"term-{default_slugify(word.astext())}"
            term = nodes.term("", "", *word.children, ids=[name])
            term.line, term.source = paragraph.line, paragraph.source
            self.document.ids[name] = term
            note_index(self.env, word.astext(), name)
            item = nodes.definition_list_item("", term, nodes.definition("", paragraph.deepcopy()))
            before = paragraph.parent[paragraph.parent.index(paragraph) - 1]
            if isinstance(before, addnodes.glossary):
                before[0] += item
                paragraph.parent.remove(paragraph)
            else:
                terms = nodes.definition_list("", item, classes=["glossary"])
                paragraph.replace_self(addnodes.glossary("", terms))

    def trim_code(self) -> None:
        """Leave out the line that ends an example, which only its test needs."""
        for code in self.document.findall(nodes.literal_block):
            if isinstance(code[0], nodes.Text) and code.rawsource == code.astext():
                code.rawsource = code.astext().rstrip("\n")
                code[0] = nodes.Text(code.rawsource)

    def name_tables(self) -> None:
        """Say of a table of symbols what it is, for its looks."""
        for head in self.document.findall(nodes.thead):
            titles = [entry.astext() for entry in head.findall(nodes.entry)]
            if titles[0] == "symbol":
                table = head.parent.parent
                table["classes"] += ["symbols", "with-shape"] if "shape" in titles else ["symbols"]

    def note_citations(self) -> None:
        """Tell the bibliography which works are cited here, and give each first place a name."""
        seen = set()
        for link in list(self.document.findall(addnodes.pending_xref)):
            key = link.get("reftargetid")
            page = PurePosixPath(link["reftarget"]).name
            if link["refdomain"] != "doc" or page != BIBLIOGRAPHY or not key or key in seen:
                continue
            seen.add(key)
            place = nodes.inline("", "", ids=[f"cite-{nodes.make_id(key)}"])
            link.replace_self(place)
            place += link
            line = next((up.line for up in ancestors(link) if up.line), 0)
            note_citation(self.env, key, place["ids"][0], line)


def ancestors(node: nodes.Node):
    """Yield a node, and what it stands in."""
    while node is not None:
        yield node
        node = node.parent


def bold_start(paragraph: nodes.Element | None) -> nodes.strong | None:
    """Return the bold words at the start of a paragraph, if it has some."""
    if not isinstance(paragraph, nodes.paragraph):
        return None
    words = (child for child in paragraph.children if child.astext())
    first = next(words, None)  # before bold words the parser leaves an empty text
    return first if isinstance(first, nodes.strong) else None


def drop_first(paragraph: nodes.Element) -> None:
    """Remove the bold words at the start of a paragraph, and the space after them."""
    del paragraph[: paragraph.index(bold_start(paragraph)) + 1]
    if paragraph.children and isinstance(paragraph[0], nodes.Text):
        paragraph[0] = nodes.Text(paragraph[0].astext().lstrip())
        if not paragraph[0].astext():
            paragraph.pop(0)


def is_break(node: nodes.Node) -> bool:
    """Tell whether a node only breaks a line: MyST has it once for each kind of book."""
    return isinstance(node, nodes.raw) or not node.astext().strip()


def is_drawing(node: nodes.Node) -> bool:
    """Tell whether something that a cell has put out shows a picture."""
    return any(node.findall(nodes.image)) or any(
        PICTURE.search(raw.astext()) or "<svg" in raw.astext() or "<img" in raw.astext()
        for raw in node.findall(nodes.raw)
    )


def in_main_text(node: nodes.Element) -> bool:
    """Tell whether a node stands before the exercises of its page."""
    above = [up for up in ancestors(node) if isinstance(up, nodes.section) and up.children]
    return not any(section[0].astext() in AFTER_THE_TEXT for section in above)


def drawn_before(paragraph: nodes.Element) -> nodes.container | None:
    """Return the output of the cell before a paragraph, if it has drawn something."""
    place = paragraph.parent.index(paragraph)
    before = paragraph.parent[place - 1] if place else None
    if before is None or not is_code_cell(before) or any(before.findall(captioned)):
        return None
    output = before[-1]
    return output if any(map(is_drawing, output.children)) else None


def mark_terms(document: nodes.document, env) -> None:
    """Give each link to a term of the glossary a class, for its colour and its look."""
    for link in document.findall(nodes.reference):
        address = link.get("refuri") or f"#{link.get('refid', '')}"
        if "#term-" in address and "term" not in link["classes"]:
            link["classes"].append("term")


def put_beside(document: nodes.document, env) -> None:
    """Put a note into the margin beside the first place of each section that cites a work."""
    seen = set()
    for link in list(document.findall(nodes.reference)):
        key = link.get("refuri", "").partition(f"{BIBLIOGRAPHY}.html#")[2]
        around = [up for up in ancestors(link) if not isinstance(up, nodes.inline)][2:]
        section = next((up for up in around if isinstance(up, nodes.section)), None)
        plain = around and isinstance(around[0], nodes.section | nodes.list_item)
        if not key or not plain or (section, key) in seen or not in_main_text(link):
            continue
        seen.add((section, key))
        if work := short_work(env, key):
            note = f'<a tabindex="-1" href="{link["refuri"]}">{work}</a>'
            note = f'<span class="beside" aria-hidden="true">{note}</span>'
            link.parent.insert(link.parent.index(link) + 1, nodes.raw("", note, format="html"))


# --- kinds of cells and of exercises, as classes: a style sheet that looks for itself (`:has`)
# would look into every cell again for each piece of the page that arrives ---

KINDS = {  # the class of a cell in which this is written
    "checks": "d2l-check",
    "to-do": "d2l-todo",
    "answers": "d2l-fold",
    "has-bar": 'class="live-bar',
}


def name_kinds(app, doctree: nodes.document, docname: str) -> None:
    """Say of each cell and each exercise what is in it."""
    for cell in doctree.findall(nodes.container):
        if "cell" in cell["classes"]:
            text = "".join(raw.astext() for raw in cell.findall(nodes.raw))
            kinds = {kind for kind, word in KINDS.items() if word in text}
            kinds |= {"folded"} if any(isinstance(c, HideCodeCellNode) for c in cell) else set()
            seen = [part for part in cell if not isinstance(part, HideCodeCellNode)]
            kinds |= {"shows-figure"} if any(map(draws, seen)) else set()
            cell["classes"] += sorted(kinds)
            caption_first(cell)
            text_first(cell)
    for section in list(doctree.findall(nodes.section)):
        fold_claims(section)
        checks = any(isinstance(c, nodes.container) and "checks" in c["classes"] for c in section)
        folds = any(isinstance(c, nodes.raw) and c.astext().startswith("<details") for c in section)
        says = section[1] if len(section) > 1 else None  # how hard it is, in italics
        hard = isinstance(says, nodes.paragraph) and says.children
        if hard and isinstance(says[0], nodes.emphasis) and (checks or folds):
            section["classes"] += ["exercise", "checks-itself"] if checks else ["exercise"]


def draws(part: nodes.Element) -> bool:
    """Tell whether there is a drawing or a table of the library in a part of a cell."""
    table = any("d2lmini-table" in raw.astext() for raw in part.findall(nodes.raw))
    return table or any(part.findall(drawing))


def caption_first(cell: nodes.Element) -> None:
    """Put the code of a figure, which is folded, below it, and say of which: a page has many."""
    if not {"folded", "shows-figure"} <= set(cell["classes"]):
        return
    number = next((one.get("number") for one in cell.findall(drawn_caption)), None)
    for part in list(cell):
        bar = isinstance(part, nodes.raw) and "live-bar" in part.astext()
        if bar or isinstance(part, HideCodeCellNode):
            cell.remove(part)
            cell.append(part)
            if number and not bar:
                part["prompt_show"] = part["prompt_show"].replace("this figure", number)


def text_first(cell: nodes.Element) -> None:
    """Put what a chapter imports, which stands after its first figure, before the next code."""
    folds = [part for part in cell if isinstance(part, HideCodeCellNode)]
    around = cell.parent
    if folds and folds[0]["prompt_show"] == IMPORTS:
        start = around.index(cell) + 1
        text = list(takewhile(lambda node: isinstance(node, nodes.paragraph), around[start:]))
        around.remove(cell)
        around.insert(start - 1 + len(text), cell)


def is_claim(node: nodes.Node) -> bool:
    """Tell whether all that a cell has is folded: it tests what the text says."""
    return (
        isinstance(node, nodes.container)
        and {"cell", "folded", "tag_hide-cell"} <= set(node["classes"])
        and not {"shows-figure", "answers"} & set(node["classes"])
    )


def fold_claims(section: nodes.section) -> None:
    """Make one fold of hidden cells that follow one another, named by all that is in it."""
    for first in list(section):
        if first.parent is not section or not is_claim(first):
            continue
        start = section.index(first)
        claims = list(takewhile(is_claim, section[start:]))
        if len(claims) > 1:
            folds = [one for claim in claims for one in claim if isinstance(one, HideCodeCellNode)]
            for claim in claims:
                section.remove(claim)
            name = html.escape(" · ".join(one["prompt_show"] for one in folds))
            opened = f'<details class="claims"><summary>{name}</summary>\n'
            around = [nodes.raw("", text, format="html") for text in (opened, "</details>\n")]
            section[start:start] = [around[0], *claims, around[1]]


# --- how these are written ---


def visit_captioned(writer, node) -> None:
    """Open the figure, under its number."""
    names = [one["number"] for one in node.findall(drawn_caption) if one.get("number")]
    label = {"aria-label": names[0]} if names else {}
    writer.body.append(writer.starttag(node, "figure", **label))


def visit_caption(writer, node) -> None:
    """Write the number of a figure, if it has one, before its caption."""
    number = f'<span class="caption-number">{node["number"]}. </span>' if node.get("number") else ""
    writer.body.append(f'<figcaption><p>{number}<span class="caption-text">')


def depart_caption(writer, node) -> None:
    """Write the link to the figure after its caption."""
    writer.body.append("</span>")
    if node.parent["ids"]:
        writer.add_permalink_ref(node.parent, f"Link to {node.get('number', 'this figure')}")
    writer.body.append("</p></figcaption>\n")


def visit_hidden(writer, node) -> None:
    """Write the summary of a cell that a notebook hides: a fold like any other."""
    name = writer.encode(node["prompt_show"])
    writer.body.append(f'<details class="hide"><summary>{name}</summary>\n')


def depart_captioned(writer, node) -> None:
    """Write below the caption what can be opened: the numbers of the drawings."""
    more = "".join(part.get("more", "") for part in node.findall(drawing))
    writer.body.append(f'<div class="d2lmini-figure">{more}</div>' if more.strip() else "")
    writer.body.append("</figure>\n")


NODES = {
    captioned: (visit_captioned, depart_captioned),
    drawn_caption: (visit_caption, depart_caption),
    HideCodeCellNode: (visit_hidden, lambda writer, node: writer.body.append("</details>\n")),
}
