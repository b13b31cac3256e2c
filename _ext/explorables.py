"""Put drawings that answer to the reader beside the figures that they belong to.

Each is a module in `chapters/_static/explorables/`, without any dependency, and a function below,
which gives what it starts from, the numbers that stand there until it runs (and where no script
does), and the sentence that says what is seen. All of these come from `d2lmini`; tests compare the
modules with it, and their first sentences with the ones from here.
"""

import html
import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from docutils import nodes
from drawings import KEYS, QUERY, VALUES
from joining import LOADER, joined
from plain import is_code_cell
from sources import SourceError, read_notebook
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

import d2lmini


@dataclass
class Start:
    """What an explorable starts from: its settings, a table of numbers, and a sentence."""

    title: str
    settings: dict
    head: tuple[str, ...]
    rows: list[tuple]
    says: str
    size: tuple[int, int]  # of its drawing
    controls: int
    replaces: str = ""  # the drawing of the page in whose place it comes


def lookup() -> Start:
    """Return the lookup of the first page."""
    score = d2lmini.dot_product_score
    output, weights = d2lmini.attention(QUERY, KEYS, VALUES, score=score)
    best = int(weights[0].argmax())
    keys, values = KEYS.astype(int).tolist(), VALUES.astype(int).tolist()
    key = f"({', '.join(map(str, keys[best]))})"
    rows = [
        (f"({k[0]}, {k[1]})", f"{s:.1f}", f"{w:.2f}", v[0])
        for k, s, w, v in zip(keys, score(QUERY, KEYS)[0], weights[0], values, strict=True)
    ]
    says = (
        f"The query ({QUERY[0, 0]:.1f}, {QUERY[0, 1]:.1f}) fits the key {key} best, which gets "
        f"{weights[0, best]:.2f} of the weight, and the output is {output[0, 0]:.2f}. Turn the "
        "query towards another key, then make it longer."
    )
    settings = {"query": QUERY[0].tolist(), "keys": keys, "values": values}
    head = ("key", "score", "weight", "value")
    return Start("Turn the query", settings, head, rows, says, (500, 244), 2, "drawing-idea")


def names() -> Start:
    """Return the lookup of the first chapter, by a name that is typed."""
    people, incomes = d2lmini.load_incomes()
    asked, temperature = "alise marlo", 0.1
    encode = d2lmini.TrigramEncoder(people)
    scores = (encode([asked]) @ encode(people).T)[0]
    weights = d2lmini.softmax(scores / temperature)
    best = int(weights.argmax())
    rows = [
        (name, f"{s:.2f}", f"{w:.2f}", f"{v:.0f}")
        for name, s, w, v in zip(people, scores, weights, incomes, strict=True)
    ]
    says = (
        f"“{asked}” fits {people[best]} best, with {weights[best]:.2f} of the weight, and the "
        f"answer is {weights @ incomes:.1f}. Type on, and see who gains."
    )
    settings = {
        "asked": asked,
        "names": list(people),
        "values": incomes.astype(int).tolist(),
        "temperature": temperature,
    }
    head = ("key", "score", "weight", "value")
    return Start("Ask for a name", settings, head, rows, says, (452, 268), 2)


def triangle() -> Start:
    """Return the three scores of the second chapter, and their temperature."""
    scores = np.array([2.0, 1.0, 0.0])
    values = np.array([[2.0, 6.0], [6.0, 2.0], [1.0, 1.0]])
    weights = d2lmini.softmax(scores)
    used = np.exp(-(weights * np.log(weights)).sum())
    slope = np.abs(np.diag(weights) - np.outer(weights, weights)).max()
    best = "ABC"[int(weights.argmax())]
    rows = [
        (name, f"{s:.0f}", f"{w:.2f}", f"({v[0]:.0f}, {v[1]:.0f})")
        for name, s, w, v in zip("ABC", scores, weights, values, strict=True)
    ]
    says = (
        f"The weights {', '.join(f'{w:.2f}' for w in weights)} use {used:.2f} of 3 values, and "
        f"the largest slope of the softmax is {slope:.3f}. The point leans to {best}. Lower the "
        "temperature and watch the path into a corner."
    )
    settings = {"scores": scores.tolist(), "values": values.tolist()}
    head = ("entry", "score", "weight", "value")
    return Start("Move the point", settings, head, rows, says, (480, 300), 5)


def nile() -> Start:
    """Return the regression of the second chapter, by its width."""
    years, flow = d2lmini.load_nile()
    time, level, others = years[:, None], flow[:, None], ~np.eye(len(years), dtype=bool)

    def error(width: float) -> float:
        score = partial(d2lmini.gaussian_score, width=width)
        estimate = d2lmini.attention(time, time, level, mask=others, score=score).output
        return float(np.sqrt(np.mean((estimate - level) ** 2)))

    width = 3.0
    rows = [(f"{w:.1f}", f"{error(w):.0f}") for w in (0.5, 1.0, 2.0, 3.0, 10.0, 50.0)]
    says = (
        f"With a width of {width:.1f} years, a year is estimated from the others with an error of "
        f"{error(width):.0f}. The line shows the fall around 1899. Is there a width with a "
        "smaller error?"
    )
    settings = {"years": years.astype(int).tolist(), "flow": flow.tolist(), "width": width}
    head = ("width", "error from the others")
    return Start("Choose a width", settings, head, rows, says, (480, 262), 1)


EMBEDDING = {  # of chapter 3: food, technology, doing, person
    "i": [-1, -1, 0, 2],
    "like": [1, 1, 2, 0],
    "to": [0, 0, 1, 0],
    "the": [0, 0, -1, 0],
    "eat": [3, 0, 2, 0],
    "phone": [0, 3, 0, 0],
    "apple": [2, 2, 0, 0],
}


def masks() -> Start:
    """Return the two sentences of the third chapter, under a mask that hides nothing."""
    sentences = [["i", "like", "the", "apple", "phone"], ["i", "like", "to", "eat", "apple"]]
    words = sentences[0]
    x = np.array([EMBEDDING[word] for word in words], dtype=float)
    asks = words.index("apple")
    output, weights = d2lmini.attention(x[[asks]], x, x)
    best = int(weights[0].argmax())
    scores = x @ x[asks]
    rows = [
        (word, f"{s:.2f}", f"{s / 2:.2f}", f"{w:.2f}")
        for word, s, w in zip(words, scores, weights[0], strict=True)
    ]
    says = (
        f"apple sees every word. Most of its weight, {weights[0, best]:.2f}, is on {words[best]}, "
        f"and the answer has {output[0, 0]:.2f} of food and {output[0, 1]:.2f} of technology. "
        f"Hide {words[best]} from it, and look who takes over."
    )
    settings = {
        "sentences": sentences,
        "embedding": EMBEDDING,
        "components": ["food", "tech", "doing", "person"],
    }
    head = ("apple sees", "score", "scaled", "weight")
    return Start("Click a mask", settings, head, rows, says, (600, 330), 2)


def heads() -> Start:
    """Return the question of the fifth chapter, asked by one head."""
    people, incomes = d2lmini.load_incomes()
    first = [name.split()[0] for name in people]
    pair, factor, m = [first.index("Alice"), first.index("Carmen")], 40, len(people)
    eye = np.eye(m)
    query = factor * np.concatenate([eye[pair[0]], eye[pair[1]]])[None]
    key, value = np.hstack([eye, eye]), incomes[:, None]
    output, weights = d2lmini.attention(query, key, value)
    rows = [
        (name, f"{w:.2f}", f"{v:.0f}")
        for name, w, v in zip(first, weights[0], incomes, strict=True)
    ]
    wanted = " and ".join(f"{incomes[i]:.0f}" for i in pair)
    says = (
        "One head has one row of weights for both questions and returns one number, "
        f"{output[0, 0]:.1f}, from which nobody can tell {wanted} apart. Give it two heads."
    )
    settings = {
        "names": first,
        "values": incomes.astype(int).tolist(),
        "pair": pair,
        "factor": factor,
    }
    head = ("key", "weight", "value")
    return Start("One head or two", settings, head, rows, says, (480, 264), 4)


STARTS: dict[str, Callable[[], Start]] = {
    "lookup": lookup,
    "names": names,
    "triangle": triangle,
    "nile": nile,
    "masks": masks,
    "heads": heads,
}
# After which cell of which notebook each stands: the one that draws the figure it belongs to.
PLACES = {
    ("chapters/01-database-analogy", "mechanism"): "names",
    ("chapters/02-softmax-weighting", "figure-path"): "triangle",
    ("chapters/02-softmax-weighting", "figure-nile"): "nile",
    ("chapters/03-scaled-dot-product", "masks-figure"): "masks",
    ("chapters/05-multi-head-attention", "heads-figure"): "heads",
}
NAMED = re.compile(r'data-explorable="(\w+)"')
MODULES = Path(__file__).parents[1] / "chapters/_static/explorables"


def written(name: str) -> str:
    """Return an explorable as it stands in a page before its script has run."""
    start = STARTS[name]()
    settings = html.escape(json.dumps(start.settings, ensure_ascii=False, separators=(",", ":")))
    head = "".join(f'<th scope="col">{html.escape(str(cell))}</th>' for cell in start.head)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>"
        for row in start.rows
    )
    replaces = f' data-replaces="{start.replaces}"' if start.replaces else ""
    width, height = start.size
    style = f"--shape:{width}/{height};--most:{1.25 * width:.0f}px;"
    style += f"--narrow:{start.controls};--wide:{(start.controls + 1) // 2}"
    drawing = "" if start.replaces else '<div class="ex-drawing"></div>'
    return (
        f'<div class="explorable ex-{name}" data-explorable="{name}"{replaces} '
        f'data-settings="{settings}" role="group" aria-label="{start.title}" style="{style}">'
        f'<p class="ex-title">{start.title}</p>{drawing}'
        f'<table class="ex-numbers"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        f'<div class="ex-controls"></div>'
        f'<p class="ex-says" role="status">{html.escape(start.says)}</p></div>'
    )


class Explorable(SphinxDirective):
    """Put an explorable on a page that is no notebook."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write it."""
        if self.arguments[0] not in STARTS:
            names = ", ".join(STARTS)
            raise self.error(f"there is no explorable {self.arguments[0]}; there are {names}")
        self.env.note_dependency(__file__)
        return [nodes.raw("", written(self.arguments[0]), format="html")]


class PlaceExplorables(SphinxPostTransform):
    """Put the explorables of a notebook after the figures that they belong to."""

    default_priority = 295
    formats = ("html",)

    def run(self, **kwargs) -> None:
        """Look at its cells."""
        page = self.env.docname
        if not any(page == place for place, _ in PLACES):
            return
        try:
            cells = read_notebook(Path(self.env.doc2path(page)).read_text("utf8")).cells
        except SourceError:  # said where it is read
            return
        for node in list(self.document.findall(is_code_cell)):
            if name := PLACES.get((page, cells[node["cell_index"]].id)):
                place = node.parent.index(node) + 1
                node.parent.insert(place, nodes.raw("", written(name), format="html"))


def load(app, pagename, templatename, context, doctree) -> None:
    """Load what starts them, on the pages that have one."""
    body = context.get("body", "")
    if app.builder.name == "html" and NAMED.search(body):
        path = f"_static/explorables/on-{Path(pagename).name}.mjs"
        context["body"] = body + LOADER.format(module=context["pathto"](path, resource=True))


def write(app, exception) -> None:
    """Write what each page loads: the modules of its explorables, as one."""
    if exception or app.builder.name != "html":
        return
    for page in Path(app.outdir, "chapters").glob("*.html"):
        names = dict.fromkeys(NAMED.findall(page.read_text("utf8")))
        if names:
            text = joined(MODULES, entry(names))
            Path(app.outdir, f"_static/explorables/on-{page.stem}.mjs").write_text(text, "utf8")


def entry(names: Iterable[str]) -> str:
    """Return the module that starts these explorables."""
    imports = [f'import * as {name} from "./{name}.mjs";\n' for name in names]
    start = 'import { start } from "./mount.mjs";\n'
    return "".join([start, *imports, f"start({{ {', '.join(names)} }});\n"])


def setup(app):
    """Register the directive and the transform."""
    app.add_directive("explorable", Explorable)
    app.add_post_transform(PlaceExplorables)
    app.connect("html-page-context", load, priority=931)
    app.connect("build-finished", write, priority=860)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
