"""What a theme cannot say in a template: one style sheet, tables in boxes, code with fewer tags.

Sphinx links a style sheet for each extension. Here they are joined, in the order of STYLES, when
all are written, and `theme/layout.html` links the one.
"""

import hashlib
import posixpath
import re
from collections.abc import Callable
from pathlib import Path

from docutils import nodes

from d2lmini.plotting.theme import HATCH, PALETTES, RAMP
from lettering.lines import hanging

COLOURS = ("query", "key", "value", "output", "weight")
STYLES = [
    "theme.css",
    "copybutton.css",
    "katex/katex.min.css",
    "face.css",
    "colors.css",
    "figures.css",
    "finding.css",
    "tables.css",
    "live/live.css",
    "explorables/explorables.css",
    "print.css",
]
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
URL = re.compile(r"""url\(["']?(?!data:|#)([^"')]+)["']?\)""")
LINK = re.compile(r"(_static/style\.css)(?:\?v=\w+)?(?=\")")
# Words of code that need no colour. They are a third of a chapter's tags.
NO_COLOUR = re.compile(r'<span class="(?:n|nn|nx|o|p|pm|w)">([^<]*)</span>')
CODE = re.compile(r'(<div class="highlight"><pre><span></span>)(.*?)(?=</pre>)', re.DOTALL)


def box_tables(document: nodes.document, env) -> None:
    """Put each table into a box in which it scrolls."""
    for table in list(document.findall(nodes.table)):
        table["classes"].append("table")
        box = nodes.container(classes=["table-box"])
        table.replace_self(box)
        box += table


def restyle(app, env, added, changed, removed) -> list[str]:
    """Let a page be read again when a style or a script has changed: only then is it copied."""
    made = Path(app.outdir, "_static/style.css")
    sources = [*Path(app.confdir, "theme").rglob("*"), *Path(app.srcdir).glob("*/_static/**/*")]
    old = made.exists() and any(one.stat().st_mtime > made.stat().st_mtime for one in sources)
    return [env.config.root_doc] if old else []


def lean_code(app, pagename, templatename, context, doctree) -> None:
    """Leave out tags that give no colour, and mark each line, which hangs where it is broken."""
    if body := context.get("body"):
        body = NO_COLOUR.sub(r"\1", body)
        context["body"] = CODE.sub(lambda code: f"{code[1]}{hanging(code[2])}", body)


SMALL = {"ᵢ": "sub>i", "ⱼ": "sub>j", "ₙ": "sub>n", "ᵀ": "sup>T", "ˣ": "sup>x"}

# What stands in the text of a page, and what has to stand there instead.
IN_TEXT: list[tuple[str, str | Callable[[re.Match], str]]] = [
    # The roles of bibliographies are not valid where the extension puts them.
    (r' role="(?:list"(?= class="citation-list")|doc-biblioentry")', ""),
    # The first cell of a row names it.
    (
        r'(<tr class="row-(?:even|odd)">)<td>((?:(?!</?td>)[\s\S])*)</td>',
        r'\1<th scope="row">\2</th>',
    ),
    # What one looks for when one reads again is a place of its own.
    (r'(<div class="tip admonition")', r'\1 role="region" aria-label="Takeaways"'),
    # The corner of a table is no heading when it is empty.
    (r'<th class="head">(<p></p>)?\s*</th>', "<td></td>"),
    # A chapter's head is its question, with its title above.
    (
        r"<(h[12])>((?:(?!</?h\d>|<a )[\s\S])*)(<a [^>]*>[^<]*</a>)?</\1>"
        r"\s*<p><strong>([^<]*\?)</strong></p>(?=\s*<p><em>)",
        r'<\1 class="asks"><span class="topic">\2</span> \4\3</\1>',
    ),
    # The line under a title, in which a page says what it is for.
    (r"(</h1>\s*)<p>(<em>((?!</?(p|em)>)[\s\S])*</em></p>)", r'\1<p class="promise">\2'),
    # A link to a heading follows it: inside, each heading would be heard with "#" at its end.
    (
        r'<(h[1-4])((?:(?!</?h\d>)[\s\S])*)(<a class="headerlink" href="[^"]*")[^>]*>#</a></\1>',
        lambda found: (
            f'<{found[1]}{found[2]}</{found[1]}>{found[3]} aria-label="Link to '
            f'{re.sub("<[^>]*>", "", f"<{found[2]}")}">#</a>'
        ),
    ),
    (r'(class="headerlink" href="[^"]*") title=', r"\1 aria-label="),
    # The title of the book has its colours on its first page.
    (
        r"(<h1>)Queries, Keys and Values(?=<)",
        r'\1<span class="query">Queries</span>, <span class="key">Keys</span> and '
        r'<span class="value">Values</span>',
    ),
    # Short code is in one line, and so is a word of it with a hyphen.
    (
        r'(?<=<code class="docutils literal notranslate)'
        r'(?=">(?:<span class="pre">[^<]{1,8}</span>\s*){2,3}</)',
        " whole",
    ),
    (r'<span class="pre">(?=[^<]*-)([^<]{3,24})</span>', r'<span class="pre whole">\1</span>'),
    # Small letters that the book's face lacks, and a number that stays beside its unit, outside of
    # code, drawings and formulas.
    (
        r"(?s)(<(pre|code|svg|math)\b.*?</\2>|<[^>]*>)|([ᵢⱼₙᵀˣ])|(?<=\d) (?=%|[kMGT]B\b)",
        lambda found: (
            found[1]
            or (f"<{SMALL[found[3]]}</{SMALL[found[3]][:4]}" if found[3] else "\N{NO-BREAK SPACE}")
        ),
    ),
    # What an argument is stands in a line of its own: the dash is for phones and paper.
    (
        r'(<(?:li|dd class="field-\w+")><p><strong>[^<]+</strong>)'
        r"(?: \((<em>(?:(?!</p>|</em>\)).)*</em>)\))?( – |(?=</p>))",
        lambda found: (
            found[1]
            + (f' <span class="kind">{found[2]}</span>' if found[2] else "")
            + (f'<span class="dash">{found[3]}</span>' if found[3] else "")
        ),
    ),
    # As attributes, the sizes keep the place of a picture free while it is loaded, at any width.
    (
        r'(<img[^>]*) style="width: (\d+)px; height: (\d+)px;" />',
        r'\1 width="\2" height="\3" loading="lazy" />',
    ),
]


def mend_text(app, pagename, templatename, context, doctree) -> None:
    """Replace what tools write into the text of a page and what is not right there."""
    if body := context.get("body"):
        for pattern, instead in IN_TEXT:
            body = re.sub(pattern, instead, body)
        context["body"] = body


def write_colours(app, out: Path) -> None:
    """Write the style sheet of the figures' colours, for pages and for samples of each theme."""
    pairs = {name: [PALETTES[theme][name] for theme in PALETTES] for name in COLOURS}
    pairs |= {f"ramp-{i}": [RAMP[theme][i] for theme in PALETTES] for i in range(3)}
    pairs["hatch"] = [HATCH[theme] for theme in PALETTES]
    both = "; ".join(f"--{name}: light-dark({', '.join(pair)})" for name, pair in pairs.items())
    text = f"html {{ {both} }}\n"
    for theme, palette in PALETTES.items():  # samples that show a theme in the other one too
        own = "; ".join(f"--{name}: {palette[name]}" for name in COLOURS)
        ring = f"box-shadow: 0 0 0 .25rem {palette['page']}"
        text += f".swatch.on-{theme} {{ {own}; {ring} }}\n"
    (out / "_static/colors.css").write_text(text, "utf8")


def join_styles(app, out: Path) -> None:
    """Write the one style sheet, and link it with what tells its versions apart."""
    static, parts = out / "_static", []
    for path in (static / name for name in STYLES):
        if not path.exists():  # of an extension that this book does without
            continue
        folder = path.parent.relative_to(static).as_posix()
        text = COMMENT.sub("", path.read_text("utf8"))
        parts.append(
            URL.sub(lambda url, at=folder: f"url({posixpath.normpath(f'{at}/{url[1]}')})", text)
        )
    text = re.sub(r"\n\s+", "\n", "\n".join(parts))
    (static / "style.css").write_text(text, "utf8")
    version = hashlib.sha256(text.encode()).hexdigest()[:8]
    for path in out.rglob("*.html"):
        page = path.read_text("utf8")
        path.write_text(LINK.sub(rf"\1?v={version}", page), "utf8")
