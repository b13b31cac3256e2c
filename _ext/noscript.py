"""Give the book its colours where scripts do not run.

The theme has no colours of its own until a script has chosen light or dark: until then a page is
black on grey. Here each rule for the light or the dark theme gets a twin for a page on which
nothing was chosen, and the setting of the reader's system decides.
"""

import re
from pathlib import Path

from paper import BETWEEN, CHOSEN

NAME = "noscript.css"
RULE = re.compile(r"([^{}]*)\{([^{}]*)\}")


def twins(style: str, theme: str) -> str:
    """Return the rules of a theme for pages that have none.

    >>> twins("a{b:c}html[data-theme=dark] a{b:d}html[data-theme=light] a,p{b:e}", "dark")
    'html[data-theme=auto] a{b:d}'
    """
    chosen = re.compile(CHOSEN[theme])
    found = []
    for selectors, body in RULE.findall(re.sub(r"/\*.*?\*/", "", style, flags=re.DOTALL)):
        ours = [
            chosen.sub("[data-theme=auto]", part.strip())
            for part in BETWEEN.split(selectors)
            if chosen.search(part)
        ]
        if ours:
            found.append(f"{','.join(ours)}{{{body}}}")
    return "".join(found)


def write(app, exception) -> None:
    """Write the style sheet, from all that the pages load."""
    if exception or app.builder.name != "html":
        return
    static = Path(app.outdir, "_static")
    whole = static / "style.css"
    sheets = [whole] if whole.exists() else sorted(static.rglob("*.css"))
    style = "\n".join(sheet.read_text("utf8") for sheet in sheets if sheet.name != NAME)
    style = re.sub(r"@media[^{]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", style)
    text = (
        f"@media print, (prefers-color-scheme: light) {{{twins(style, 'light')}}}\n"
        f"@media screen and (prefers-color-scheme: dark) {{{twins(style, 'dark')}}}\n"
    )
    (static / NAME).write_text(text, "utf8")


def link(app, pagename, templatename, context, doctree) -> None:
    """Load it only where scripts do not run."""
    address = context["pathto"](f"_static/{NAME}", resource=True)
    tag = f'<noscript><link rel="stylesheet" href="{address}" /></noscript>'
    context["metatags"] = context.get("metatags", "") + tag


def setup(app):
    """Register the two steps."""
    app.connect("html-page-context", link)
    app.connect("build-finished", write, priority=850)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
