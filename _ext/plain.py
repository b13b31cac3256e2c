r"""Work out from plain CommonMark what a page of the book adds to it.

A notebook's Markdown holds nothing but what every reader of notebooks shows: headings, links,
formulas, bold words, quotes and ``<details>``. From these come, while the book is built,

- formulas with a number and an anchor, from ``\tag{2.1}``: ``#eq-2-1``;
- figures with a caption and an anchor, from a cell ``**Figure 2.1.** …``: ``#figure-2-1``;
- links to the terms of the glossary and to the works of the bibliography, which says where each
  work is cited;
- boxes, from quotes that begin with a bold word, and folds, from ``<details>``.

What does not fit together is a warning that says what to do, and warnings fail the build.
"""

import html
import re
from pathlib import PurePosixPath

from docutils import nodes
from folds import fold
from myst_parser.mdit_to_docutils.base import default_slugify
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinxcontrib.bibtex.citation_target import CitationTarget
from sphinxcontrib.bibtex.roles import CitationRef

LOG = logging.getLogger(__name__)

TAG = re.compile(r"\s*\\tag\s*\{([^{}]*)\}")
NUMBER = re.compile(r"(\d+)\.(\d+)")
CAPTION = re.compile(r"Figure\s+(\S*?)\.?")
SUMMARY = re.compile(r"<details>\s*<summary>(.*?)</summary>\s*", re.DOTALL)
PARTS = re.compile(r"\$([^$]+)\$|<code>(.*?)</code>")
CHAPTER = re.compile(r"(?:.*/)?(\d+)-[^/]*")
PICTURE = re.compile(r'class="(?:[\w-]+ )*d2lmini-(figure|trace|explorer)\b')
BOXES = {"Takeaways": "tip", "Optional": "optional", "Note": "note", "Warning": "warning"}
AFTER_THE_TEXT = ("Exercises", "Can you answer these?")
BIBLIOGRAPHY = "bibliography"  # the page with the works
GLOSSARY = "glossary"


class captioned(nodes.General, nodes.Element):
    """What a cell has drawn, and its caption."""


class drawn_caption(nodes.Part, nodes.TextElement):
    """The caption: its number, then what it says."""


def warn(message: str, *words: object, at) -> None:
    """Say what is wrong on a page, and where."""
    while not at.line and at.parent:  # within a paragraph a node has no line
        at = at.parent
    LOG.warning(message, *words, location=at, type="book")


class ReadPlainSource(SphinxTransform):
    """Turn the plain forms into what a page shows, and give each place that is linked a name."""

    default_priority = 870  # before MyST looks up the links to places of the same page

    def apply(self, **kwargs) -> None:
        """Do it, one form after the other."""
        self.anchors: dict[str, tuple[int | None, str, str]] = {}
        self.number_formulas()
        self.fold_details()
        self.box_quotes()
        self.caption_figures()
        self.note_citations()
        for term in self.document.findall(nodes.term):
            words = term.astext()
            for name in term["ids"]:
                self.anchors[name] = (term.line, name, words)
                self.anchors[f"term-{default_slugify(words)}"] = (term.line, name, words)
        self.publish_anchors()

    def publish_anchors(self) -> None:
        """Let MyST find the places, where it finds headings."""
        slugs = getattr(self.document, "myst_slugs", None)
        if slugs is None:
            self.document.myst_slugs = slugs = {}
        slugs |= self.anchors
        if slugs:
            self.env.metadata[self.env.docname]["myst_slugs"] = slugs

    def name(self, node: nodes.Element, kind: str, number: str, title: str) -> None:
        """Give a numbered thing its anchor."""
        anchor = f"{kind}-{number.replace('.', '-')}"
        if anchor in self.anchors:
            warn("%s is there twice: count on", title, at=node)
            return
        node["ids"].append(anchor)
        self.document.ids[anchor] = node
        self.anchors[anchor] = (node.line, anchor, title)

    def count(self, node: nodes.Element, what: str, number: str, before: int) -> int:
        """Compare a number with the one that it should be; return the number within the chapter."""
        found = CHAPTER.fullmatch(self.env.docname)
        chapter = str(int(found[1])) if found else "1"
        wanted = f"{chapter}.{before + 1}"
        if number != wanted:
            message = "%s %s should be %s: they are counted up through chapter %s"
            warn(message, what, number, wanted, chapter, at=node)
        match = NUMBER.fullmatch(number)
        return int(match[2]) if match else before + 1

    # --- formulas ---

    def number_formulas(self) -> None:
        """Take the number of a formula out of its TeX."""
        last = 0
        for formula in self.document.findall(nodes.math_block):
            source = formula.astext()
            tags = TAG.findall(source)
            if not tags:
                continue
            if len(tags) > 1:
                warn("a formula has %d numbers: \\tag it once", len(tags), at=formula)
            number = tags[0].strip()
            last = self.count(formula, "the formula", number, last)
            formula.children = []
            formula += nodes.Text(TAG.sub("", source))
            formula["tag"] = number
            self.name(formula, "eq", number, f"({number})")

    # --- folds and boxes ---

    def fold_details(self) -> None:
        """Put what stands between two lines of HTML into a fold."""
        opened: list[nodes.raw] = []
        for raw in list(self.document.findall(nodes.raw)):
            text = raw.astext().strip()
            if SUMMARY.fullmatch(text):
                opened.append(raw)
            elif text == "</details>":
                if opened and opened[-1].parent is raw.parent:
                    self.fold(opened.pop(), raw)
                else:
                    warn("</details> closes nothing of its cell", at=raw)
            elif text.startswith("<details>"):
                message = "leave a blank line after </summary>, and one before </details>"
                warn(message, at=raw)
        for raw in opened:
            warn("close this <details> in its own cell, without a heading in it", at=raw)

    def fold(self, first: nodes.raw, last: nodes.raw) -> None:
        """Put a fold in the place of all from the first node to the last."""
        parent = first.parent
        start, end = parent.index(first), parent.index(last)
        title = nodes.title("", "", *inline(SUMMARY.fullmatch(first.astext().strip())[1]))
        folded = fold("", title, *parent.children[start + 1 : end], classes=["dropdown"])
        folded.line, folded.source = first.line, first.source
        parent[start : end + 1] = [folded]

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
            box = nodes.admonition("", nodes.title(word, word), *inside, classes=[BOXES[word]])
            box.line, box.source = quote.line, quote.source
            quote.replace_self(box)

    # --- figures ---

    def caption_figures(self) -> None:
        """Join each caption with what the cell before it has drawn."""
        last = 0
        for paragraph in list(self.document.findall(nodes.paragraph)):
            start = bold_start(paragraph)
            found = start and CAPTION.fullmatch(start.astext())
            if not found:
                continue
            number = found[1]
            last = self.count(paragraph, "Figure", number, last)
            if not start.astext().endswith("."):
                warn("write **Figure %s.**, with a full stop", number, at=paragraph)
            if drawing := drawn_before(paragraph):
                self.caption(drawing, paragraph, number)
            else:
                message = "Figure %s: the cell before this caption has drawn nothing; a caption "
                message += "stands in a Markdown cell of its own directly after its figure"
                warn(message, number, at=paragraph)
        if last:
            for cell in self.document.findall(is_code_cell):
                if has_picture(cell) and not is_captioned(cell) and in_main_text(cell):
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

    # --- citations ---

    def note_citations(self) -> None:
        """Tell the bibliography which works are cited here, and give each first place a name."""
        cited = self.env.get_domain("cite").citation_refs  # type: ignore[attr-defined]
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
            target = CitationTarget(key=key, pre="", post="")
            cited.append(CitationRef(place["ids"][0], self.env.docname, line, [target]))


def ancestors(node: nodes.Node):
    """Yield a node, and what it stands in."""
    while node is not None:
        yield node
        node = node.parent


def inline(summary: str) -> list[nodes.Node]:
    """Return the words of a summary, with its formulas and its code."""
    found: list[nodes.Node] = []
    rest = 0
    for part in PARTS.finditer(summary):
        found.append(nodes.Text(html.unescape(summary[rest : part.start()])))
        words = html.unescape(part[1] or part[2])
        found.append((nodes.math if part[1] else nodes.literal)(words, words))
        rest = part.end()
    return [*found, nodes.Text(html.unescape(summary[rest:]))]


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


def is_code_cell(node: nodes.Node) -> bool:
    """Tell whether a node is a code cell of a notebook."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def is_drawing(node: nodes.Node) -> bool:
    """Tell whether something that a cell has put out shows a picture."""
    return any(node.findall(nodes.image)) or any(
        PICTURE.search(raw.astext()) or "<svg" in raw.astext() or "<img" in raw.astext()
        for raw in node.findall(nodes.raw)
    )


def has_picture(cell: nodes.Element) -> bool:
    """Tell whether a cell shows one of the library's pictures."""
    return any(PICTURE.search(raw.astext()) for raw in cell.findall(nodes.raw))


def is_captioned(cell: nodes.Element) -> bool:
    """Tell whether a cell has a caption, or needs none because all of it is folded."""
    return any(cell.findall(captioned)) or cell.get("hide_mode") == "all"


def in_main_text(node: nodes.Element) -> bool:
    """Tell whether a node stands before the exercises of its page."""
    titles = [
        up[0].astext() for up in ancestors(node) if isinstance(up, nodes.section) and up.children
    ]
    return not any(title in AFTER_THE_TEXT for title in titles)


def drawn_before(paragraph: nodes.Element) -> nodes.container | None:
    """Return the output of the cell before a paragraph, if it has drawn something."""
    place = paragraph.parent.index(paragraph)
    before = paragraph.parent[place - 1] if place else None
    if before is None or not is_code_cell(before) or any(before.findall(captioned)):
        return None
    output = before[-1]
    return output if any(map(is_drawing, output.children)) else None


def publish_works(app, env) -> None:
    """Let MyST find the works of the bibliography by their keys."""
    for work in env.get_domain("cite").citations:
        page = work.bibliography_key.docname
        env.metadata[page].setdefault("myst_slugs", {})[work.key] = (
            None,
            work.citation_id,
            work.key,
        )


class MarkTerms(SphinxPostTransform):
    """Give each link to a term of the glossary a class, for its colour and its look."""

    default_priority = 30  # after the links are resolved

    def run(self, **kwargs) -> None:
        """Mark them."""
        for link in self.document.findall(nodes.reference):
            address = link.get("refuri") or f"#{link.get('refid', '')}"
            if "#term-" in address and "term" not in link["classes"]:
                link["classes"].append("term")


def visit_captioned(writer, node) -> None:
    """Open the figure."""
    writer.body.append(writer.starttag(node, "figure"))


def depart_captioned(writer, node) -> None:
    """Close it."""
    writer.body.append("</figure>\n")


def visit_caption(writer, node) -> None:
    """Write the number of a figure, if it has one, before its caption."""
    number = node.get("number")
    writer.body.append("<figcaption><p>")
    writer.body.append(f'<span class="caption-number">{number}. </span>' if number else "")
    writer.body.append('<span class="caption-text">')


def depart_caption(writer, node) -> None:
    """Write the link to the figure after its caption."""
    writer.body.append("</span>")
    if node.parent["ids"]:
        writer.add_permalink_ref(node.parent, "Link to this figure")
    writer.body.append("</p></figcaption>\n")


def setup(app):
    """Register the transforms and the nodes."""
    app.add_node(captioned, html=(visit_captioned, depart_captioned))
    app.add_node(drawn_caption, html=(visit_caption, depart_caption))
    app.add_transform(ReadPlainSource)
    app.add_post_transform(MarkTerms)
    app.connect("env-updated", publish_works, priority=600)  # after the bibliography is made
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
