"""Put on a page what `chapters/_code/` makes: each directive calls the function that it names.

    ```{drawing} idea         a figure of drawings.py; below it stands its caption
    ```{explorable} lookup    a drawing of explorables.py that answers to the reader
    ```{facts} pins           Markdown of facts.py
    ```{picture} triangle     a small picture of pictures.py, before the words that it leads to
    ```{result}               the figure that the Python before it on the page makes

An explorable of a notebook comes after the cell that `PLACES` names.
"""

import doctest
import re
from pathlib import Path

from chapter import captioned, drawn_caption
from docutils import nodes
from docutils.statemachine import StringList
from refused import warn
from sphinx.util.docutils import SphinxDirective
from upstream import cell_ids, is_code_cell

from chapters._code import drawings, explorables, facts, pictures
from d2lmini.plotting import Shown
from live_cells.joining import LOADER, WHEN_NEAR, joined

PYTHON = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r'data-explorable="(\w+)"')
MODULES = Path(__file__).parents[1] / "chapters/_static/explorables"


class Made(SphinxDirective):
    """Call the function that the block names, of the module of its kind."""

    required_arguments = 1
    has_content = True

    def function(self, module):
        """Return the function; a name that is not there is an error that names the place."""
        name = self.arguments[0].replace("-", "_")
        for path in (module.__file__, *getattr(module, "READS", ())):
            self.env.note_dependency(str(path))
        made = vars(module).get(name)
        if getattr(made, "__module__", None) != module.__name__ or not callable(made):
            raise self.error(f"there is no {self.name} {self.arguments[0]} in {module.__file__}")
        return made


class Drawing(Made):
    """Put one of the drawings on a page, with a caption below it."""

    def run(self) -> list[nodes.Node]:
        """Draw it."""
        figure = captioned("", nodes.raw("", self.drawn().html(), format="html"))
        figure["ids"] += [f"drawing-{name}" for name in self.arguments]
        words, messages = self.state.inline_text(" ".join(self.content), self.lineno)
        figure += [drawn_caption("", "", *words)] if self.content else []
        return [figure, *messages]

    def drawn(self) -> Shown:
        """Return the figure."""
        return self.function(drawings)()


class Result(Drawing):
    """Put the figure on a page that the Python block before it makes, run anew."""

    required_arguments = 0

    def drawn(self) -> Shown:
        """Run the examples; the last figure that they give a name to is theirs."""
        import torch  # here: it takes longer than all else that a build loads

        lines = Path(self.env.doc2path(self.env.docname)).read_text("utf8").split("\n")
        before = "\n".join(lines[: self.lineno])
        code, made = PYTHON.findall(before)[-1], {}
        torch.manual_seed(0)
        for example in doctest.DocTestParser().get_examples(code):
            exec(compile(example.source, "<recipe>", "exec"), made)
        if found := [value for value in made.values() if isinstance(value, Shown)]:
            return found[-1]
        raise self.error("the Python before this block gives no figure a name")


class Facts(Made):
    """Write facts as if they stood in the page."""

    def run(self) -> list[nodes.Node]:
        """Parse what the function says."""
        self.env.metadata[self.env.docname]["told"] = repr(self.config.public)
        try:
            says = self.function(facts)(self.config, list(self.content))
        except ValueError as error:
            raise self.error(str(error)) from None
        found = nodes.Element()
        self.state.nested_parse(StringList(says.split("\n"), self.get_location()), 0, found)
        return found.children


def told_otherwise(app, env, added, changed, removed) -> list[str]:
    """Let pages be read again that hold facts of another place, or of another day."""
    now = repr(app.config.public)
    return [page for page, about in env.metadata.items() if about.get("told", now) != now]


class Written(Made):
    """Put an explorable on a page that is no notebook, or a small picture before its words."""

    def run(self) -> list[nodes.Node]:
        """Write it."""
        if self.name == "explorable":
            self.function(explorables)
            text = explorables.written(self.arguments[0])
        else:
            text = f'<div class="picture">{self.function(pictures)()}</div>'
        return [nodes.raw("", text, format="html")]


DIRECTIVES = {"drawing": Drawing, "result": Result, "facts": Facts}
DIRECTIVES |= {"explorable": Written, "picture": Written}


def place_explorables(document: nodes.document, env) -> None:
    """Put the explorables of a notebook, and small pictures, after the cells they belong to."""
    places = {**explorables.PLACES, **pictures.PLACES}
    here = {cell: name for name, (page, cell) in places.items() if page == env.docname}
    if not any(here):  # no notebook, or none of those
        return
    ids = cell_ids(env)
    for cell in here.keys() - {*ids, ""} if ids else ():
        says = "no cell is called %s, after which %s comes: say it in PLACES"
        warn(says, cell, here[cell], at=env.docname)
    for node in list(document.findall(is_code_cell)):
        if name := here.get(ids[node["cell_index"]]):
            place = node.parent.index(node) + 1
            if name in pictures.LEADS:
                page, says = pictures.LEADS[name]
                leads = env.app.builder.get_relative_uri(env.docname, page)
                drawn = (
                    f'<figure class="picture"><a href="{leads}">{getattr(pictures, name)()}</a>'
                    f"<figcaption>{says}</figcaption></figure>"
                )
            else:
                drawn = explorables.written(name)
            node.parent.insert(place, nodes.raw("", drawn, format="html"))


SIZES = ("S", "M", "L", "X")  # the inputs of a table of ratios, each a column and a larger dot


def plot_ratios(document: nodes.document, env) -> None:
    """Draw the ratios of each row as dots beside them, on one scale for all tables of the page."""
    if env.docname != "chapters/measured":
        return
    found = {}
    for table in document.findall(nodes.table):
        head, *rows = table.findall(nodes.row)
        if all(entry.astext() in SIZES for entry in head[1:]):
            found[table] = head, rows, [[float(e.astext()) for e in row[1:]] for row in rows]
    dots = pictures.Dots([x for *_, ratios in found.values() for row in ratios for x in row])
    for table, (head, rows, ratios) in found.items():
        (group,) = table.findall(nodes.tgroup)
        group.insert(0, nodes.colspec(colwidth=1))
        group["cols"] += 1
        sizes = [SIZES.index(entry.astext()) for entry in head[1:]]
        drawn = [dots.scale(), *(dots.row(numbers, sizes) for numbers in ratios)]
        for row, svg in zip([head, *rows], drawn, strict=True):
            row += nodes.entry("", nodes.raw("", svg, format="html"))


def load_explorables(app, pagename, templatename, context, doctree) -> None:
    """Load what starts them, on the pages that have one, when a reader comes near."""
    body = context.get("body", "")
    if NAMED.search(body):
        path = f"_static/explorables/on-{Path(pagename).name}.mjs"
        near = WHEN_NEAR.replace("PARTS", "[data-explorable], .wall figure")
        module = context["pathto"](path, resource=True)
        context["body"] = body + LOADER.format(module=module, start=near)


def write_explorables(app, out: Path) -> None:
    """Write what each page loads: the modules of its explorables, as one."""
    folder = out / "_static/explorables"
    folder.mkdir(parents=True, exist_ok=True)
    for page in Path(out, "chapters").glob("*.html"):
        names = dict.fromkeys(NAMED.findall(page.read_text("utf8")))
        if names:
            imports = [f'import * as {name} from "./{name}.mjs";\n' for name in names]
            entry = 'import { start } from "./mount.mjs";\n' + "".join(imports)
            entry += f"start({{ {', '.join(names)} }});\n"
            (folder / f"on-{page.stem}.mjs").write_text(joined(MODULES, entry), "utf8")
        for name in names:
            for file, content in explorables.start(name).files.items():
                (folder / file).write_bytes(content)
