r"""Draw formulas while the book is built, so that pages need neither a script nor a network.

KaTeX runs inside QuickJS, a small JavaScript engine that is a Python wheel. A formula that KaTeX
cannot read is a warning that names its page and line, and warnings fail the build.

A symbol may have a class, by which the style sheet gives it the colour that it has everywhere else.

Configuration: ``katex_macros``, for example ``{"\\vq": "\\mathbf{q}"}``;
``katex_classes``, for example ``{"query": ["\\mathbf{q}", "\\mathbf{Q}"]}``.
"""

import functools
import json
import re
from collections.abc import Callable
from pathlib import Path

import quickjs
from bs4 import BeautifulSoup
from docutils import nodes
from refused import warn
from upstream import get_node_equation_number

PART = '<span class="katex-base">'  # between two of them a line may break
NO_TEXT = re.compile(r"<[^>]*>|\u200b")
MOST = 38  # letters on a line of a phone, which is 390 pixels wide
MARKS = re.compile(r"[.,;:)!?’”]+")
KATEX = Path(__file__).parent / "katex"
STATIC = KATEX / "static"  # what is shipped with the book: the style sheet and the fonts

MATHML = re.compile(r"<math\b.*?</math>", re.DOTALL)
UNREADABLE = re.compile("<m[ion](?: [^>]*)?><|\u2063|⊤")
PLAIN = re.compile(r"(?<![A-Za-z_\\])(?<!mathbf\{)(?:W_)?([QKVqkv])(?![A-Za-z(])")
NAMES = {"q": "query", "k": "key", "v": "value"}

# JSON on the way out as well: the wrapper cannot return a string that JavaScript built in pieces.
RENDER = r"""
function render(call) {
    const [tex, options] = JSON.parse(call);
    options.strict = (problem) => problem === "htmlExtension" ? "ignore" : "error";
    options.trust = ({command}) => command === "\\htmlClass";
    return JSON.stringify(module.exports.renderToString(tex, options));
}
"""


@functools.lru_cache(1)
def engine() -> Callable[[str], str]:
    """Load KaTeX, once."""
    context = quickjs.Context()
    context.eval("var exports = {}, module = {exports: exports}; 0")
    context.eval((KATEX / "katex.min.js").read_text("utf8") + "; 0")
    context.eval(RENDER + "; 0")
    return context.get("render")


@functools.cache
def render(tex: str, display: bool = False, macros: str = "{}") -> str:
    """Return HTML and MathML for a formula; ``macros`` is JSON."""
    options = {
        "displayMode": display,
        "macros": json.loads(macros),
        "output": "htmlAndMathml",  # MathML is what a screen reader reads
        "throwOnError": True,
    }
    return MATHML.sub(readable, json.loads(engine()(json.dumps([tex, options]))))


def readable(found: re.Match) -> str:
    r"""Return a formula for a screen reader in which no letter is lost.

    KaTeX puts elements into tokens where ``\htmlClass`` is in ``\boldsymbol`` or under a brace,
    and writes a negative space as an invisible comma. A transpose is said to be one, by its letter
    too, since few readers know what a ⊤ above means.

    >>> print(readable(re.match(".*", "<math><mi><mi>a</mi></mi></math>")))
    <math><mrow><mi>a</mi></mrow></math>
    >>> print(readable(re.match(".*", "<math><msup><mi>K</mi><mi>⊤</mi></msup></math>")))
    <math><msup intent="transpose($x)"><mi arg="x">K</mi><mi>T</mi></msup></math>
    >>> print(readable(re.match(".*", "<msubsup><mi>p</mi><mi>i</mi><mi>⊤</mi></msubsup>")))
    <msup intent="transpose($x)"><msub arg="x"><mi>p</mi><mi>i</mi></msub><mi>T</mi></msup>
    """
    if not UNREADABLE.search(found[0]):
        return found[0]
    soup = BeautifulSoup(found[0], "html.parser")
    for token in soup.find_all(["mi", "mo", "mn"]):
        if token.find(True):
            token.name = "mrow"
            token.attrs.pop("mathvariant", None)
    for token in soup.find_all("mtext", string=re.compile("\u2063")):
        token.decompose()
    for power in soup.find_all(["msup", "msubsup"]):
        base, *below, above = power.find_all(True, recursive=False)
        if above.get_text() != "⊤":
            continue
        if below:  # what is transposed is the letter with its index
            base = base.wrap(soup.new_tag("msub"))
            base.append(below[0])
            power.name = "msup"
        power["intent"], base["arg"] = "transpose($x)", "x"
        above.string = "T"
    return str(soup)


def to_html(writer, node, display: bool) -> str:
    """Render a node, or warn where it stands and show its source."""
    tex = node.astext().strip()
    if display and r"\\" in tex and r"\begin{" not in tex:
        tex = r"\begin{aligned}" + tex + r"\end{aligned}"  # as Sphinx does for its other renderers
    colourful = tex
    if writer.builder.current_docname.startswith("chapters/api/"):  # docstrings have plain letters
        colourful = PLAIN.sub(lambda it: rf"\htmlClass{{{NAMES[it[1].lower()]}}}{{{it[0]}}}", tex)
    for name, symbols in writer.config.katex_classes.items():
        for symbol in symbols:
            colourful = colourful.replace(symbol, rf"\htmlClass{{{name}}}{{{symbol}}}")
    try:
        return render(colourful, display, json.dumps(writer.config.katex_macros, sort_keys=True))
    except Exception as error:  # the engine has one class for all that JavaScript throws
        reason = str(error).splitlines()[0]
        warn("KaTeX: %s in %r", reason, tex, at=node)
        return f"<code>{writer.encode(tex)}</code>"


def visit_math(writer, node) -> None:
    """Write a formula that stands in the text."""
    drawn = to_html(writer, node, display=False)
    longest = max((len(NO_TEXT.sub("", part)) for part in drawn.split(PART)[1:]), default=0)
    if longest > MOST:
        reason = f"{longest} letters on which no line breaks, and a phone has room for {MOST}"
        warn("KaTeX: %s; put the formula on a line of its own", reason, at=node)
    writer.body.append(writer.starttag(node, "span", "", CLASS="math"))
    writer.body.append(with_mark(drawn, node.get("mark", "")) + "</span>")
    raise nodes.SkipNode


def with_mark(drawn: str, mark: str) -> str:
    """Put a mark behind the last part of a formula, so that no line begins with it.

    A browser breaks a line after each part, whatever comes next. What is drawn is not read aloud,
    so the mark is there twice, as the formula is.
    """
    if not mark or PART not in drawn:
        return drawn + mark
    first, last = drawn.rsplit(PART, 1)
    first = first.replace("</math>", f"</math>{mark}", 1)
    last = last.removesuffix("</span></span>")
    return (
        f'{first}<span class="with-mark">{PART}{last}<span class="its-mark">{mark}</span></span>'
        "</span></span>"
    )


def keep_marks(document: nodes.document, env) -> None:
    """Give a formula the mark that comes right after it."""
    for node in list(document.findall(nodes.math)):
        after = node.next_node(descend=False, siblings=True)
        if isinstance(after, nodes.Text) and (mark := MARKS.match(after)):
            node["mark"] = mark[0]
            after.parent.replace(after, nodes.Text(after[mark.end() :]))


def visit_displaymath(writer, node) -> None:
    """Write a formula on a line of its own, with its number, in a box that can be scrolled."""
    writer.body.append(writer.starttag(node, "div", CLASS="math"))
    if number := node.get("tag") or (node["number"] and get_node_equation_number(writer, node)):
        writer.body.append(f'<span class="eqno">({number})')
        writer.add_permalink_ref(node, f"Link to equation {number}")
        writer.body.append("</span>")
    name = f"Equation {number}" if number else "Equation"
    writer.body.append(f'<div class="math-scroll" tabindex="0" role="group" aria-label="{name}">')
    writer.body.append(to_html(writer, node, display=True) + "</div></div>")
    raise nodes.SkipNode


RENDERER = ((visit_math, None), (visit_displaymath, None))


def add_files(app, config) -> None:
    """Ship the style sheet and the fonts."""
    config.html_static_path.append(str(STATIC))
