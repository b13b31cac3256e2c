"""Leave out what a page does not need: scripts, styles, rules and glyphs that nothing on it uses.

The theme ships for every kind of site. Nothing of it is copied or changed here, only left out, and
each pattern must be found on every page: so the build tells when a new version of the theme has
made one needless.
"""

import hashlib
import html
import logging as python_logging
import posixpath
import re
from pathlib import Path

import pydata_sphinx_theme
from fontTools import subset
from sphinx.util import logging

LOG = logging.getLogger(__name__)
python_logging.getLogger("fontTools").setLevel("WARNING")  # not each table of each font
THEME = Path(pydata_sphinx_theme.__file__).parent / "theme/pydata_sphinx_theme/static"
ICONS = "vendor/fontawesome/webfonts"
KATEX = Path(__file__).parent / "katex/static/katex/fonts"

# An asset whose name starts so is needed only where this is found in the text.
NEEDED_FOR = {
    "clipboard": r'class="highlight',
    "copybutton": r'class="highlight',
    "sphinx_highlight": r"(?!)",  # `search.mjs` marks what was searched for
}

# The style sheets that become one, in this order: a page then waits for one file, not for ten.
STYLES = [
    "basic.css",
    "styles/pydata-sphinx-theme.css",
    "pygments.css",
    "styles/sphinx-book-theme.css",
    "copybutton.css",
    "mystnb.*.css",
    "katex/katex.min.css",
    "face.css",
    "colors.css",
    "book.css",
    "figures.css",
    "finding.css",
    "tables.css",
    "live/live.css",
    "explorables/explorables.css",
    "print.css",
]
# Written for what this book has, in answers that come later as well: these keep all their rules.
OURS = {path.rsplit("/", 1)[-1] for path in STYLES[STYLES.index("face.css") :]}
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
RULE = re.compile(r"([^{};]+)\{([^{}]*)\}")
BETWEEN = re.compile(r",(?![^(]*\))")  # selectors, not what is in brackets
INSIDE = re.compile(r"\((?:[^()]|\([^()]*\))*\)|\[[^]]*\]")
CLASS = re.compile(r"\.(-?[a-zA-Z_][\w-]*)")
CLASSES = re.compile(r'class="([^"]*)"')
PROPERTY = re.compile(r"""(--[\w-]+)\s*:(?:"[^"]*"|'[^']*'|[^;{}"'])*(?:;|(?=\}))""")
ASKED = re.compile(r"var\(\s*(--[\w-]+)")
NAME = re.compile(r"--[a-zA-Z][\w-]*")
WORD = re.compile(r"[a-zA-Z_][\w-]*")
STYLE_LINK = re.compile(
    r'\s*<link(?=[^>]*rel="stylesheet")[^>]*href="([^"]*_static/)([^"?]*)[^>]*>'
)

# Why it goes, how it looks, and what stands there instead.
REPLACED = [
    (
        "540 kB of pictures that are drawn by a font as well",
        r"<!-- So that users can add custom icons -->\s*<script[^>]*fontawesome\.js[^>]*></script>",
        "",
    ),
    (
        "scripts that lay the page out again for each box; `page.mjs` does what this book needs",
        r'<link rel="preload" as="script" href="[^"]*pydata-sphinx-theme\.js[^>]*>\s*',
        "",
    ),
    (
        "the same",
        r'<script [^>]*src="[^"]*(?:sphinx-theme|sphinx-book-theme|doctools)\.js[^>]*></script>',
        "",
    ),
    (
        "menus and tooltips, of which this book has none: its buttons are links",
        r'<link rel="preload" as="script" href="[^"]*bootstrap\.js[^>]*>\s*',
        "",
    ),
    ("the same", r"<script defer src=\"[^\"]*bootstrap\.js[^>]*></script>\s*", ""),
    (
        "a style sheet that does nothing but import this one",
        r"_static/styles/theme\.css\?digest=\w+",
        "_static/basic.css",
    ),
    (
        "scripts for which the page need not wait",
        r'<script (?=(data-[^>]*)?src="[^"]*\.js)(?![^>]*documentation_options)',
        "<script defer ",
    ),
    (
        "the name of the book and the search, outside all that a screen reader can jump to",
        r'<div id="pst-primary-sidebar"',
        '<div id="pst-primary-sidebar" role="navigation" aria-label="Book"',
    ),
    ("said three times", r'(?s)<meta name="viewport"[^>]*>(?=.*?<meta name="viewport")', ""),
    (
        "a page that is laid out without colours, then again when a script has chosen them",
        r'dataset\.theme = localStorage\.getItem\("theme"\) \|\| "auto"',
        'dataset.theme = { light: "light", dark: "dark" }[document.documentElement.dataset.mode]'
        ' || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")',
    ),
    ("for a search service", r'(<meta name="docsearch:[^>]*>\s*)+', ""),
    (
        "titles that a screen reader would add to the name of the button around them",
        r'(<i class="theme-switch [^>]*) title="[^"]*"></i>',
        r"\1></i>",
    ),
    (
        "a name of the search button that is not what stands on it",
        r'(<button class="btn search-button-field[^>]*) aria-label="Search"',
        r"\1",
    ),
]
# Sphinx's own search, which finds whole pages and marks parts of words.
SEARCH = (
    r'(?:<script defer src="[^"]*(?:searchtools|language_data|searchindex)\.js"></script>\s*){3}'
)
# Pages below a page of the contents, behind a fold that has no name: that page lists them.
BELOW = re.compile(r'<details[^>]*><summary><span class="toctree-toggle".*?</details>', re.DOTALL)
# Words of code that need no colour: names, brackets, spaces, and operators, which the theme paints
# like strings. They are a third of a chapter's tags.
PLAIN = re.compile(r'<span class="(?:n|nn|nx|o|p|pm|w)">([^<]*)</span>')
# The title and the contents once more, for paper only.
PRINTED = re.compile(r'<div id="jb-print-docs-body".*?(?=<div id="searchbox">)', re.DOTALL)
UNUSED = [
    "scripts/fontawesome.js",
    "scripts/bootstrap.js",
    "scripts/pydata-sphinx-theme.js",
    "scripts/sphinx-book-theme.js",
    "doctools.js",
    "styles/theme.css",
    "searchtools.js",
    "language_data.js",
    "sphinx_highlight.js",
]
ICON_RULE = re.compile(r'((?:\.fa-[a-z0-9-]+:before,?)+)\{content:"(\\?[^"]+)"\}')


def drop_assets(app, pagename, templatename, context, doctree) -> None:
    """Keep the files that the text of this page needs."""
    body = context.get("body", "")
    for kind in ("script_files", "css_files"):
        context[kind][:] = [asset for asset in context[kind] if is_needed(asset, body)]


def is_needed(asset, body: str) -> bool:
    """Tell whether something in the body uses a script or a style sheet."""
    name = Path(str(asset.filename or "")).name
    return all(
        re.search(pattern, body) for start, pattern in NEEDED_FOR.items() if name.startswith(start)
    )


def lean(page: str, name: str) -> str:
    """Return the text of a page without what the theme has too much."""
    for why, pattern, instead in REPLACED:
        page, found = re.subn(pattern, instead, page)
        if not found:
            LOG.warning("%s: the theme no longer has this (%s)", name, why, type="book")
    page = BELOW.sub("", PRINTED.sub("", re.sub(SEARCH, "", page)))
    return PLAIN.sub(r"\1", page)


def finish(app, exception) -> None:
    """Rewrite the pages, then the styles, scripts and fonts that they share."""
    if exception or app.builder.name not in ("html", "singlehtml"):
        return
    out = Path(app.outdir)
    text = ""
    for template in out.glob("_static/*webpack-macros.html"):
        template.unlink()
    for path in sorted(out.rglob("*.html")):
        page = path.read_text("utf8")
        if "fontawesome.js" in page:  # not one that an earlier build has finished
            page = lean(page, path.name)
            if "_modules" in path.parts:  # the source of the library has long lines
                page = page.replace("<html ", '<html class="source" ', 1)
            path.write_text(page, "utf8")
        text += page
    static = out / "_static"
    lean_icons(static, text)
    lean_formulas(static / "katex/fonts", text)
    for name in UNUSED:
        (static / name).unlink(missing_ok=True)
    join_styles(out)
    for path in [*static.rglob("*.map"), *static.rglob("*.LICENSE.txt"), *static.rglob("*.ttf")]:
        path.unlink()


def join_styles(out: Path) -> None:
    """Write one style sheet, and link it from every page in the place of its parts."""
    static = out / "_static"
    files = [path for name in STYLES for path in sorted(static.glob(name))]
    names = {path.relative_to(static).as_posix() for path in files}
    pages = "".join(STYLE_LINK.sub("", path.read_text("utf8")) for path in out.rglob("*.html"))
    scripts = "".join(path.read_text("utf8") for path in static.rglob("*.*js"))
    used = set(WORD.findall(" ".join(CLASSES.findall(pages)) + scripts))
    text = "\n".join(
        COMMENT.sub("", rebased(path, static))
        if path.name in OURS
        else needed_rules(rebased(path, static), used)
        for path in files
    )
    text = needed_properties(text, pages + scripts)
    style = f"style.css?v={hashlib.sha256(text.encode()).hexdigest()[:8]}"
    (static / "style.css").write_text(text, "utf8")

    def link(found: re.Match) -> str:
        if found[2] not in names | {"style.css"}:
            return found[0]
        wanted = found[2] in ("basic.css", "style.css")  # the first of them
        return f'\n    <link rel="stylesheet" href="{found[1]}{style}" />' if wanted else ""

    for path in out.rglob("*.html"):
        path.write_text(STYLE_LINK.sub(link, path.read_text("utf8")), "utf8")


def needed_rules(style: str, used: set[str]) -> str:
    """Leave out rules for classes that no page has and no script names.

    And those that look into every cell again for each piece of a page that arrives (`kinds.py`).

    >>> needed_rules(".a:has(.a){top:0}", {"a"})
    ''
    >>> needed_rules(".a,.b:not(.c, .d){top:0}@media print{.c > p{top:0}}h1{top:0}", {"b", "d"})
    '.b:not(.c, .d){top:0}@media print{}h1{top:0}'
    """

    def needed(rule: re.Match) -> str:
        selectors = [
            selector
            for selector in BETWEEN.split(rule[1])
            if ":has(" not in selector and used.issuperset(CLASS.findall(INSIDE.sub("", selector)))
        ]
        return f"{','.join(selectors)}{{{rule[2]}}}" if selectors else ""

    return RULE.sub(needed, COMMENT.sub("", style))


def needed_properties(style: str, others: str) -> str:
    """Leave out custom properties that nothing asks for, and those that only such ones ask for.

    >>> needed_properties("a{--x:1;--y:var(--x);top:0}b{--z:2}i{top:var(--z)}", "")
    'a{top:0}b{--z:2}i{top:var(--z)}'
    """
    asked = set(ASKED.findall(style)) | set(NAME.findall(others))
    kept = PROPERTY.sub(lambda one: one[0] if one[1] in asked else "", style)
    return kept if kept == style else needed_properties(kept, others)


def rebased(path: Path, static: Path) -> str:
    """Return a style sheet whose addresses are relative to the folder it moves to."""
    folder = path.parent.relative_to(static).as_posix()

    def rebase(found: re.Match) -> str:
        if found[1].startswith(("data:", "#")):
            return found[0]
        return f"url({posixpath.normpath(posixpath.join(folder, found[1]))})"

    text = path.read_text("utf8").removeprefix('@charset "UTF-8";')
    return re.sub(r"""url\(["']?([^"')]+)["']?\)""", rebase, text)


def lean_icons(static: Path, text: str) -> None:
    """Keep the rules and the glyphs of the icons that are on a page."""
    used = set(re.findall(r"\bfa-([a-z0-9-]+)", text))
    glyphs = set()

    def keep(rule: re.Match) -> str:
        if used.isdisjoint(re.findall(r"fa-([a-z0-9-]+):before", rule[1])):
            return ""
        glyphs.add(int(rule[2][1:], 16) if rule[2].startswith("\\") else ord(rule[2]))
        return rule[0]

    source = (THEME / "styles/pydata-sphinx-theme.css").read_text("utf8")
    style = ICON_RULE.sub(keep, source)
    others = "".join(p.read_text("utf8") for p in static.rglob("*.css") if "pydata" not in p.name)
    for code in re.findall(r'"\\(f[0-9a-f]{3})"', ICON_RULE.sub("", source) + others):
        glyphs.add(int(code, 16))
    (static / "styles/pydata-sphinx-theme.css").write_text(style, "utf8")
    for name in ("fa-solid-900", "fa-regular-400", "fa-brands-400"):
        subset_font(THEME / ICONS / f"{name}.woff2", static / ICONS / f"{name}.woff2", glyphs)


def lean_formulas(fonts: Path, text: str) -> None:
    """Keep the glyphs that the book's formulas use."""
    formulas = re.findall(
        r'<span class="katex-html".*?(?=</?(?:p|div|li|t[dh]|d[td]|h\d)\b)', text, re.S
    )
    drawn = html.unescape(re.sub(r"<[^>]*>", "", "".join(formulas)))
    glyphs = {ord(character) for character in drawn}
    for font in KATEX.glob("*.woff2"):
        subset_font(font, fonts / font.name, glyphs)


def subset_font(source: Path, target: Path, glyphs: set[int]) -> None:
    """Write a font that draws these characters only."""
    options = subset.Options(flavor="woff2", notdef_outline=True)
    with subset.load_font(str(source), options) as font:
        subsetter = subset.Subsetter(options)
        subsetter.populate(unicodes=glyphs)
        subsetter.subset(font)
        subset.save_font(font, str(target), options)


def setup(app):
    """Register what leaves things out."""
    app.connect("html-page-context", drop_assets, priority=900)
    app.connect("build-finished", finish, priority=800)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
