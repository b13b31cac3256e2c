"""What a theme cannot say in a template: one style sheet, tables in boxes, code with fewer tags.

Sphinx links a style sheet for each extension. Here they are joined, in the order of STYLES, when
all are written, and `theme/layout.html` links the one. Fonts of formulas keep the glyphs that some
page uses.
"""

import hashlib
import html
import logging
import posixpath
import re
from pathlib import Path

from docutils import nodes
from fontTools import subset
from sphinx.transforms.post_transforms import SphinxPostTransform

logging.getLogger("fontTools").setLevel("WARNING")  # not each table of each font

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
KATEX = Path(__file__).parent / "katex/static/katex/fonts"
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
URL = re.compile(r"""url\(["']?(?!data:|#)([^"')]+)["']?\)""")
LINK = re.compile(r"(_static/style\.css)(?:\?v=\w+)?(?=\")")
# Words of code that need no colour. They are a third of a chapter's tags.
PLAIN = re.compile(r'<span class="(?:n|nn|nx|o|p|pm|w)">([^<]*)</span>')
FORMULA = re.compile(r'<span class="katex-html".*?(?=</?(?:p|div|li|t[dh]|d[td]|h\d)\b)', re.S)


class BoxTables(SphinxPostTransform):
    """Put each table into a box in which it scrolls."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs) -> None:
        """Wrap the tables of a page."""
        for table in list(self.document.findall(nodes.table)):
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


def plain_words(app, pagename, templatename, context, doctree) -> None:
    """Leave out tags that give no colour."""
    if body := context.get("body"):
        context["body"] = PLAIN.sub(r"\1", body)


def join_styles(static: Path) -> str:
    """Write the one style sheet; return what tells its versions apart."""
    parts = []
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
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def lean_formulas(fonts: Path, pages: str) -> None:
    """Keep the glyphs that the book's formulas use."""
    drawn = html.unescape(re.sub(r"<[^>]*>", "", "".join(FORMULA.findall(pages))))
    options = subset.Options(flavor="woff2", notdef_outline=True)
    for source in KATEX.glob("*.woff2"):  # not what an earlier build has left of it
        with subset.load_font(str(source), options) as font:
            subsetter = subset.Subsetter(options)
            subsetter.populate(unicodes={ord(letter) for letter in drawn})
            subsetter.subset(font)
            subset.save_font(font, str(fonts / source.name), options)


def finish(app, exception) -> None:
    """Join the styles and link what came of it."""
    if exception or app.builder.name not in ("html", "singlehtml"):
        return
    out = Path(app.outdir)
    version, pages = join_styles(out / "_static"), ""
    for path in out.rglob("*.html"):
        page = path.read_text("utf8")
        path.write_text(LINK.sub(rf"\1?v={version}", page), "utf8")
        pages += page
    if (fonts := out / "_static/katex/fonts").exists():
        lean_formulas(fonts, pages)


def setup(app):
    """Register it."""
    app.add_post_transform(BoxTables)
    app.connect("env-get-outdated", restyle)
    app.connect("html-page-context", plain_words, priority=930)
    app.connect("build-finished", finish, priority=800)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
