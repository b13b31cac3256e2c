"""The steps that a page goes through on its way from a notebook to a reader, in their order.

Sphinx calls what is connected to each of its events. All that this book connects stands here: the
events in the order in which they come, and what is done at each, one after the other, after the
steps of other extensions. `live_cells`, `lettering` and `theme/` know nothing of this.
"""

from functools import partial
from pathlib import Path

import chapter
import content
import finding
import katexmath
import links
import outputs
import page
import policy
import public
import refused
import upstream
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform

from lettering import face

# For which builders: pages, or all of them as one for paper, or any.
HTML, BOTH, ANY = ("html",), ("html", "singlehtml"), ()

STEPS = [
    # Settings.
    ("config-inited", ANY, public.configure),
    ("config-inited", ANY, outputs.add_files),
    ("config-inited", ANY, katexmath.add_files),
    ("env-get-outdated", ANY, page.restyle),
    ("env-get-outdated", ANY, content.told_otherwise),
    # A page as text, then as a tree: what its source does not say is added.
    ("source-read", BOTH, links.take_for_page),
    ("source-read", BOTH, refused.require_notebook),
    ("read", BOTH, chapter.Chapter.read),
    ("doctree-read", BOTH, refused.require_shown),
    ("env-updated", BOTH, upstream.publish_works),
    # The tree for one kind of book: links and the forms of outputs are chosen by now.
    ("write", BOTH, outputs.find_outputs),
    ("write", BOTH, chapter.mark_terms),
    ("write", BOTH, chapter.put_beside),
    ("write", BOTH, content.place_explorables),
    ("write", BOTH, content.plot_ratios),
    ("write", BOTH, katexmath.keep_marks),
    ("write", BOTH, page.box_tables),
    ("doctree-resolved", BOTH, refused.require_descriptions),
    ("doctree-resolved", BOTH, chapter.name_kinds),
    # The page as HTML: first its text, then what is loaded with it.
    ("html-page-context", BOTH, page.mend_text),
    ("html-page-context", BOTH, outputs.colour_solutions),
    ("html-page-context", BOTH, page.lean_code),
    ("html-page-context", HTML, links.lead_back),
    ("html-page-context", BOTH, links.add_back_links),
    ("html-page-context", HTML, links.add_previews),
    ("html-page-context", HTML, content.load_explorables),
    ("html-page-context", BOTH, outputs.load_files),
    ("html-page-context", BOTH, public.describe),
    # The book, when all pages are written. The policy comes last: it has the hashes of all scripts.
    ("build-finished", HTML, finding.write),
    ("build-finished", HTML, content.write_explorables),
    ("build-finished", BOTH, page.write_colours),
    ("build-finished", BOTH, face.write),
    ("build-finished", BOTH, page.join_styles),
    ("build-finished", HTML, public.map_site),
    ("build-finished", HTML, policy.write),
    # Only where links to other places are checked.
    ("linkcheck-process-uri", ANY, links.registered),
]
AFTER_OTHERS = 900  # what others connect has 500, and Sphinx's own steps at most 800


class Read(SphinxTransform):
    """The steps on a page that was just read."""

    default_priority = 870  # before MyST looks up the links to places of the same page

    def apply(self, **kwargs) -> None:
        """Take them."""
        for event, _, step in STEPS:
            if event == "read":
                step(self.document, self.env)


class Write(SphinxPostTransform):
    """The steps on a page before it is written."""

    default_priority = 300  # after myst-nb has chosen forms and made folds, and live_cells its bars
    formats = ("html",)

    def run(self, **kwargs) -> None:
        """Take them."""
        for event, _, step in STEPS:
            if event == "write":
                step(self.document, self.env)


def taken(builders: tuple[str, ...], step, app, *given):
    """Take a step where it is one of this builder."""
    if not builders or app.builder.name in builders:
        return step(app, *given)


def finished(builders: tuple[str, ...], step, app, error) -> None:
    """Take a last step, on the folder that was written; a failed build is finished by nothing."""
    if error is None and app.builder.name in builders:
        step(app, Path(app.outdir))


def setup(app):
    """Connect the steps, and register what pages are made of."""
    app.add_config_value("public", {}, "html")
    app.add_config_value("katex_macros", {}, "env")
    app.add_config_value("katex_classes", {}, "env")
    app.add_config_value("comments_config", {}, "html")  # Jupyter Book sets it for an extension
    app.add_html_math_renderer("katex", *katexmath.RENDERER)
    for name, directive in content.DIRECTIVES.items():
        app.add_directive(name, directive)
    for node, visitors in (chapter.NODES | outputs.NODES).items():
        app.add_node(node, override=True, html=visitors)
    app.add_transform(Read)
    app.add_post_transform(Write)
    for place, (event, builders, step) in enumerate(STEPS):
        if event == "config-inited":  # no builder is chosen yet
            app.connect(event, step, priority=place)
        elif event == "build-finished":
            app.connect(event, partial(finished, builders, step), priority=AFTER_OTHERS + place)
        elif event not in ("read", "write"):
            app.connect(event, partial(taken, builders, step), priority=AFTER_OTHERS + place)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
