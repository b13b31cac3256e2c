"""What only a published book has, all of it from one setting in _config.yml.

    public:
      address: https://example.org/book/            # where the pages are
      repository: https://github.com/someone/book   # where the sources are
      branch: main

While `address` is empty, pages have no canonical link, no card for other sites, no site map, no 404
page, no date of the last change, and no buttons for the repository, Colab, Binder and the PDF. The
repository must be on GitHub, the only place from which Colab opens notebooks. What is written down
elsewhere, CITATION.cff and the first cell of the notebooks, is compared with this by the tests.

The 404 page is made by sphinx-notfound-page. Left out: sphinxext-opengraph (it leaves `<` in its
cards), sphinx-sitemap (it forgets unchanged pages), sphinx-last-updated-by-git (pages only).
"""

import html
import os
import re
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

from docutils import nodes
from sphinx.errors import ConfigError

ROOT = Path(__file__).parents[1]
LONGEST = 200  # letters of a description
CARD = "_static/card.png"
CARD_ALT = "Five names, the weights that a misspelt one gives them, and the mix of their values."
PDF = "queries-keys-and-values.pdf"
NOT_FOUND = """<h1>There is no such page</h1>
<p>It may have moved. The <a href="{root}chapters/index.html#how-to-read-it">first page</a>
lists the chapters, and the search knows every word of the book.</p>"""


def configure(app, config) -> None:
    """Hand the setting on to those who emit something from it."""
    given = {name: value for name, value in (config.public or {}).items() if value}
    config.public = public = {"address": "", "repository": "", "branch": "main"} | given
    public["changed"] = changed(ROOT, ".")
    if not public["address"]:
        return
    for name in ("address", "repository"):
        if urlsplit(public[name]).scheme not in ("http", "https"):
            raise ConfigError(f"_config.yml: public: {name}: {public[name]!r} is no web address")
        public[name] = public[name].rstrip("/")
    public["address"] += "/"
    config.html_baseurl = public["address"]
    config.notfound_urls_prefix = urlsplit(public["address"]).path
    body = NOT_FOUND.format(root=config.notfound_urls_prefix)
    config.notfound_context = {"title": "There is no such page", "body": body}
    app.setup_extension("notfound.extension")  # the page that a server shows for a wrong address


def description(doctree) -> str:
    """Return the first paragraph of a page, and the next if it is a question; cut between words."""
    text = ""
    for paragraph in doctree.findall(nodes.paragraph) if doctree else ():
        text = " ".join([text, *paragraph.astext().split()]).strip()
        if not text.endswith("?"):
            break
    return text if len(text) <= LONGEST else text[:LONGEST].rsplit(" ", 1)[0] + " …"


def describe(app, pagename, templatename, context, doctree) -> None:
    """Add the description and, once the book is public, what others show of it."""
    context["public"] = app.config.public | {"pdf": PDF}  # the theme makes links of it
    says = description(doctree)
    tags = {"name": {"description": says}} if says else {"name": {}}
    address = app.config.public["address"]
    if address and doctree is not None:
        title = re.sub(r"<[^>]*>", "", context["title"])
        tags["property"] = {
            "og:type": "article",
            "og:site_name": app.config.project,
            "og:title": html.unescape(title),
            "og:description": says,
            "og:url": f"{address}{pagename}.html",
            "og:image": f"{address}{CARD}",
            "og:image:width": "1200",
            "og:image:height": "630",
            "og:image:alt": CARD_ALT,
        }
        tags["name"]["twitter:card"] = "summary_large_image"
        if date := changed(Path(app.srcdir), app.env.doc2path(pagename)):
            context["last_updated"] = date
    context["metatags"] = context.get("metatags", "") + "".join(
        f'\n    <meta {kind}="{name}" content="{html.escape(content)}" />'
        for kind, named in tags.items()
        for name, content in named.items()
    )


def changed(root: Path, path: str) -> str:
    """Return the day on which a file was last changed, if git knows it.

    A shallow clone does not: there all files seem to be as old as its oldest commit. In a hook the
    variables of git are about another repository, and a path is no pattern.
    """
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}

    def git(*arguments: str) -> str:
        command = ["git", "--literal-pathspecs", *arguments]
        return subprocess.run(command, cwd=root, env=ours, capture_output=True, text=True).stdout

    try:
        whole = git("rev-parse", "--is-shallow-repository").strip() == "false"
        return git("log", "-1", "--format=%cs", "--", path).strip() if whole else ""
    except OSError:  # there is no git
        return ""


def map_site(app, out: Path) -> None:
    """Write the site map, of all pages, also of those that this build found unchanged."""
    address = app.config.public["address"]
    if not address:
        return
    places = "".join(
        f"  <url><loc>{address}{page}.html</loc></url>\n" for page in sorted(app.env.found_docs)
    )
    (out / "sitemap.xml").write_text(
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{places}</urlset>\n',
        "utf8",
    )
    (out / "robots.txt").write_text(f"User-agent: *\nSitemap: {address}sitemap.xml\n", "utf8")
