"""Say what the book runs on: tables that are made from its own files while it is built."""

import json
import re
from pathlib import Path

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from public import changed
from sources import SourceError, read_notebook
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[1]
CAPTION = re.compile(r"\*\*Figure \d")


class Table(SphinxDirective):
    """Show the table that `rows` gives, the first row as its head."""

    has_content = True

    def rows(self) -> list[tuple]:
        """Return what the table says."""
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Parse the table as if it stood in the page."""
        head, *rows = self.rows()
        rule = ["---", *["--:"] * (len(head) - 1)]
        lines = [f"| {' | '.join(map(str, row))} |" for row in (head, rule, *rows)]
        found = nodes.Element()
        self.state.nested_parse(StringList(lines, self.get_location()), 0, found)
        return found.children


class Pins(Table):
    """The pinned versions of the packages that are named, one on each line."""

    def rows(self) -> list[tuple]:
        """Read requirements.txt; a name that is not in it is an error."""
        path = ROOT / "requirements.txt"
        self.env.note_dependency(str(path))
        pins = dict(re.findall(r"^([\w.-]+)==(\S+)", path.read_text("utf8"), re.MULTILINE))
        missing = [name for name in self.content if name not in pins]
        if missing:
            raise self.error(f"not in requirements.txt: {', '.join(missing)}")
        return [("package", "version"), *((name, pins[name]) for name in self.content)]


class Chapters(Table):
    """What the stored notebooks hold."""

    def rows(self) -> list[tuple]:
        """Count cells, outputs and figures."""
        rows = [("chapter", "code cells", "outputs", "figures", "exercises that check themselves")]
        for path in sorted((ROOT / "chapters").glob("*.ipynb")):
            self.env.note_dependency(str(path))
            try:
                cells = read_notebook(path.read_text("utf8")).cells
            except SourceError:  # the page of this notebook says what is wrong
                continue
            code = [cell for cell in cells if cell.cell_type == "code"]
            outputs = [output for cell in code for output in cell.outputs]
            figures = [cell for cell in cells if CAPTION.match(cell.source)]
            checks = [cell for cell in code if re.search(r"^@check$", cell.source, re.MULTILINE)]
            counts = map(len, (code, outputs, figures, checks))
            rows.append((f"[]({path.name})", *counts))
        return rows


class StoredWith(Table):
    """What the stored outputs were made with, and the version of the book."""

    def rows(self) -> list[tuple]:
        """Read what `make notebooks` and CITATION.cff say; git knows the day once it is public."""
        notebooks, citation = ROOT / "chapters" / "stored-with.json", ROOT / "CITATION.cff"
        for path in (notebooks, citation):
            self.env.note_dependency(str(path))
        kind = json.loads(notebooks.read_text("utf8"))
        cff = yaml.safe_load(citation.read_text("utf8"))
        rows = [
            ("what", "which"),
            ("Python", kind["python"]),
            ("operating system", kind["system"]),
            ("kind of processor", kind["processor"]),
            ("version of the book", cff["version"]),
            ("released on", cff["date-released"]),
        ]
        if self.config.public["address"] and (day := changed(ROOT, ".")):
            rows.append(("last changed on", day))
        return rows


class Citing(SphinxDirective):
    """How to cite the book: CITATION.cff as an entry of BibTeX."""

    def run(self) -> list[nodes.Node]:
        """Write the entry; the address is there once the book is public."""
        path = ROOT / "CITATION.cff"
        self.env.note_dependency(str(path))
        cff = yaml.safe_load(path.read_text("utf8"))["preferred-citation"]
        authors = [
            author.get("name") or f"{author['family-names']}, {author['given-names']}"
            for author in cff["authors"]
        ]
        fields = {
            "title": f"{{{cff['title']}}}",
            "author": " and ".join(f"{{{author}}}" for author in authors),
            "year": cff["year"],
            "version": str(cff["version"]),
            "url": self.config.public["address"],
        }
        lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
        text = "\n".join(["@misc{queries_keys_values,", *lines, "}"])
        return [nodes.literal_block(text, text, language="bibtex")]


def setup(app):
    """Register the directives."""
    app.add_directive("citing", Citing)
    app.add_directive("pins", Pins)
    app.add_directive("stored-with", StoredWith)
    app.add_directive("chapters", Chapters)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
