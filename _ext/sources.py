"""Read a notebook as it lies in the repository, or say in one line what is wrong and what to do.

The build, `scripts/notebooks.py` and the tests read notebooks through this, so that a file which an
editor or a merge has broken never ends in a traceback.
"""

import itertools
import json
import re
from collections.abc import Iterator
from typing import Any

import nbformat

from d2lmini.exercises.notebook import CONFLICT

# Why a file cannot be read as a notebook, and what to do about it.
EMPTY = "is empty: restore it from git, or write a notebook there"
IN_CONFLICT = (
    "holds the marks of a merge that was not finished (line {line}): take one side (`git "
    "checkout --ours` or `--theirs` and its name), then run `make notebooks`"
)
NO_JSON = "is no notebook: line {line}, column {column}: {reason}; restore it from git"
NO_NOTEBOOK = "is no notebook: it has no list of cells; restore it from git"
OLD = "is in notebook format {format}: save it again with Jupyter, which writes format 4"
NEW = "is in notebook format {format}, which this book cannot read: save it in format 4"
WRONG_FORM = "is no notebook that Jupyter could read: at {where}: {reason}; restore it from git"
SAME_ID = "has two cells of the id {id!r}: delete the id of one, then run `make notebooks`"
HALF = "cell {number} holds half of a character ({half}), which no file can: write it again"
NO_TYPE = "cell {number} is neither Markdown nor code: make it one, or delete it"
PASTED = (
    "cell {number} holds a pasted picture ({names}), which no page can show: save it as a file in "
    "`chapters/_static`, or draw it with code"
)


class SourceError(Exception):
    """A file that is no notebook of this book; the message says what it is and what to do."""


def read_notebook(text: str) -> nbformat.NotebookNode:
    """Return the notebook that a text holds, with all that its cells must have.

    What Jupyter would add by itself is added: ids, metadata, outputs and counts (``None`` for a
    cell that was never run).

    Raises
    ------
    SourceError
        If the text cannot be read, or holds what no page can show.
    """
    notebook = parsed(text)
    form = notebook.get("nbformat")
    if form != 4:
        raise SourceError((OLD if isinstance(form, int) and form < 4 else NEW).format(format=form))
    if not isinstance(notebook.get("cells"), list):
        raise SourceError(NO_NOTEBOOK)
    notebook.setdefault("metadata", {})
    for number, cell in enumerate(notebook["cells"]):
        if not isinstance(cell, dict) or cell.get("cell_type") not in ("markdown", "code"):
            raise SourceError(NO_TYPE.format(number=number))
        if names := ", ".join(map(str, cell.get("attachments") or {})):
            raise SourceError(PASTED.format(number=number, names=names))
        cell.pop("attachments", None)
        cell.setdefault("metadata", {})
        cell.setdefault("source", "")
        if cell["cell_type"] == "code":
            cell.setdefault("execution_count", None)
            cell.setdefault("outputs", [])
    require_form(notebook)
    name_cells(notebook["cells"])
    notebook["nbformat_minor"] = max(5, notebook.get("nbformat_minor", 5))
    return nbformat.v4.reads(json.dumps(notebook))


def require_form(notebook: dict[str, Any]) -> None:
    """Raise SourceError where anything has another form than Jupyter's own schema says."""
    minor = notebook.get("nbformat_minor", 5)
    if not isinstance(minor, int):
        raise SourceError(WRONG_FORM.format(where="nbformat_minor", reason=f"{minor!r}"))
    nameless = [{k: v for k, v in cell.items() if k != "id"} for cell in notebook["cells"]]
    plain = {**notebook, "cells": nameless, "nbformat_minor": 4}  # whose cells have no ids
    for error in nbformat.validator.iter_validate(plain, version=4, version_minor=4):
        where = " ".join(map(str, error.absolute_path)) or "the top"
        raise SourceError(WRONG_FORM.format(where=where, reason=error.message[:100]))
    ids: set[str] = set()
    for number, cell in enumerate(notebook["cells"]):
        name = cell.get("id") or ""
        if not isinstance(name, str) or not re.fullmatch(r"[a-zA-Z0-9-_]{0,64}", name):
            where, reason = f"cells {number} id", "an id is a word of at most 64 letters"
            raise SourceError(WRONG_FORM.format(where=where, reason=reason))
        if name and name in ids:
            raise SourceError(SAME_ID.format(id=name))
        ids.add(name)
        try:
            json.dumps(cell, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = ascii(error.object[error.start])
            raise SourceError(HALF.format(number=number, half=half)) from None


def parsed(text: str) -> dict[str, Any]:
    """Return the JSON object in a text."""
    if not text.strip():
        raise SourceError(EMPTY)
    try:
        notebook = json.loads(text)
    except json.JSONDecodeError as error:
        if mark := CONFLICT.search(text):
            line = text.count("\n", 0, mark.start()) + 1
            raise SourceError(IN_CONFLICT.format(line=line)) from None
        raise SourceError(
            NO_JSON.format(line=error.lineno, column=error.colno, reason=error.msg)
        ) from None
    except RecursionError:
        raise SourceError(NO_NOTEBOOK) from None
    if not isinstance(notebook, dict):
        raise SourceError(NO_NOTEBOOK)
    return notebook


def name_cells(cells: list[dict[str, Any]]) -> None:
    """Give each cell that has no id one that says what it holds, the same one every time."""
    taken = {cell["id"] for cell in cells if cell.get("id")}
    for cell in cells:
        if not cell.get("id"):
            cell["id"] = free_name(words_of("".join(cell["source"])), taken)
            taken.add(cell["id"])


def words_of(source: str) -> str:
    """Return the first words of a cell, in the letters that an id may have.

    >>> words_of("## Why divide by √d?")
    'why-divide-by-d'
    >>> words_of("import numpy as np")
    'import-numpy-as-np'
    """
    words = re.findall(r"[a-z0-9]+", source.lower())
    return "-".join(words[:5])[:48].strip("-") or "cell"


def free_name(name: str, taken: set[str]) -> str:
    """Return a name that no other cell has."""
    others = (f"{name}-{number}" for number in itertools.count(2))
    return next(found for found in itertools.chain([name], others) if found not in taken)


ANCHOR = re.compile(r'<a id="[\w-]+"></a>\n?')  # of scripts/anchors.py
TAG = re.compile(r"\\tag\s*\{([^{}]*)\}")
CAPTION = re.compile(r"^\*\*Figure ([^*\s]*?)(\.?)\*\*", re.MULTILINE)
CHAPTER = re.compile(r"0*(\d+)-")


def wrong_numbers(cells: list[dict[str, Any]], name: str) -> Iterator[tuple[int, str]]:
    r"""Yield the formulas and figures that are not counted up from 1 through the chapter of a name.

    >>> cells = [{"cell_type": "markdown", "source": r"$$x \tag{2.3}$$ **Figure 2.1.** So."}]
    >>> list(wrong_numbers(cells, "02-softmax"))
    [(0, 'formula 2.3 should be 2.1')]
    """
    found = CHAPTER.match(name)
    chapter = found[1] if found else "1"
    count = {"formula": 0, "Figure": 0}
    for place, cell in enumerate(cells):
        if cell["cell_type"] != "markdown":
            continue
        numbers = [("formula", one[1].strip()) for one in TAG.finditer(cell["source"])]
        for caption in CAPTION.finditer(cell["source"]):
            numbers.append(("Figure", caption[1]))
            if not caption[2]:
                yield place, f"write **Figure {caption[1]}.**, with a full stop"
        for kind, number in numbers:
            count[kind] += 1
            right = f"{chapter}.{count[kind]}"
            if number != right:
                yield place, f"{kind} {number} should be {right}"
                last = re.fullmatch(r"\d+\.(\d+)", number)
                count[kind] = int(last[1]) if last else count[kind]
