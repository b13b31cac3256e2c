"""All that the book takes from the insides of other packages, which may move when they are updated.

What is imported here is in no documentation of theirs; nor are the attributes that these functions
read and write. Everything else of the book uses what is documented.
"""

import re
from pathlib import Path

import nbformat
from docutils import nodes
from myst_nb.sphinx_ import HideCodeCellNode
from myst_parser.mdit_to_docutils.base import default_slugify
from sphinx.util.math import get_node_equation_number
from sphinxcontrib.bibtex.citation_target import CitationTarget
from sphinxcontrib.bibtex.roles import CitationRef

__all__ = ["HideCodeCellNode", "default_slugify", "get_node_equation_number"]

Anchors = dict[str, tuple[int | None, str, str]]  # name: (line, id, title)


def is_code_cell(node: nodes.Node) -> bool:
    """Tell whether a node is a code cell of a notebook: myst-nb marks it."""
    return isinstance(node, nodes.container) and node.get("nb_element") == "cell_code"


def cell_ids(env) -> list[str]:
    """Return the ids of the cells of the notebook that is read; none of what is no notebook.

    myst-nb says of a node only which cell it is, as ``node["cell_index"]``.
    """
    path = Path(env.doc2path(env.docname))
    try:
        return [cell.get("id", "") for cell in nbformat.reads(path.read_text("utf8"), 4).cells]
    except Exception:  # said where it is read
        return []


def publish_anchors(document: nodes.document, env, anchors: Anchors) -> None:
    """Let MyST find places of a page where it finds headings."""
    document.myst_slugs = slugs = getattr(document, "myst_slugs", {}) | anchors
    if slugs:
        env.metadata[env.docname]["myst_slugs"] = slugs


def publish_works(app, env) -> None:
    """Let MyST find the works of the bibliography by their keys."""
    for work in env.get_domain("cite").citations:
        slugs = env.metadata[work.bibliography_key.docname].setdefault("myst_slugs", {})
        slugs[work.key] = (None, work.citation_id, work.key)


def note_citation(env, key: str, place: str, line: int) -> None:
    """Tell the bibliography that a work is cited at a place of this page."""
    target = CitationTarget(key=key, pre="", post="")
    env.get_domain("cite").citation_refs.append(CitationRef(place, env.docname, line, [target]))


def short_work(env, key: str) -> str:
    """Return who wrote a work, when, and its title, as HTML; nothing of one that is unknown."""
    entries = env.get_domain("cite").bibdata.data.entries
    if key not in entries:  # which the bibliography reports
        return ""
    entry = entries[key]
    names = [" ".join(it.prelast_names + it.last_names) for it in entry.persons.get("author", [])]
    who = f"{names[0]} et al." if len(names) > 3 else " and ".join(", ".join(names).rsplit(", ", 1))
    when = ", ".join(filter(None, [who, entry.fields.get("year")]))
    return re.sub(r"[{}\\]", "", f"{when}. <i>{entry.fields['title']}</i>").replace("&", "&amp;")


def note_index(env, words: str, place: str) -> None:
    """Put words into the index, which lead to a place of this page."""
    entries = env.get_domain("index").entries.setdefault(env.docname, [])
    entries.append(("single", words, place, "main", None))


def citations(env) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Return of each work its key, its id, and the pages that cite it, with the first place."""
    domain = env.get_domain("cite")
    cited_in: dict[str, dict[str, str]] = {}
    for ref in sorted(domain.citation_refs, key=lambda ref: (ref.docname, ref.line)):
        for target in ref.targets:
            cited_in.setdefault(target.key, {}).setdefault(ref.docname, ref.citation_ref_id)
    return [
        (work.key, work.citation_id, list(cited_in.get(work.key, {}).items()))
        for work in domain.citations
    ]
