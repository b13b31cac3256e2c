"""Whatever a file holds, reading it as a notebook gives a notebook or one line."""

import json
import sys
from pathlib import Path

import pytest

pytest.importorskip("nbformat")
sys.path.append(str(Path(__file__).resolve().parents[2] / "_ext"))
import sources

MARKDOWN = {"cell_type": "markdown", "metadata": {}, "source": "# A"}
CODE = {"cell_type": "code", "metadata": {}, "source": "1", "outputs": [], "execution_count": 1}
SHOWN = {"output_type": "display_data", "metadata": {}}


def notebook(*cells, **more):
    return json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}, **more})


ODD = {  # as a merge, an editor or a program may leave it: MyST-NB#492
    "brackets": "[" * 100_000,
    "no number": notebook(MARKDOWN, nbformat_minor="5"),
    "a list for metadata": notebook(MARKDOWN, metadata=[]),
    "a list for a cell's metadata": notebook({**MARKDOWN, "metadata": []}),
    "a number for a source": notebook({**MARKDOWN, "source": 5}),
    "nothing for a source": notebook({**MARKDOWN, "source": None}),
    "numbers in a source": notebook({**MARKDOWN, "source": [1, 2]}),
    "nothing for outputs": notebook({**CODE, "outputs": None}),
    "a word for an output": notebook({**CODE, "outputs": ["x"]}),
    "an empty output": notebook({**CODE, "outputs": [{}]}),
    "a list for data": notebook({**CODE, "outputs": [{**SHOWN, "data": []}]}),
    "a number for HTML": notebook({**CODE, "outputs": [{**SHOWN, "data": {"text/html": 3}}]}),
    "a word for a count": notebook({**CODE, "execution_count": "3"}),
    "a space in an id": notebook({**MARKDOWN, "id": "a b"}),
    "a long id": notebook({**MARKDOWN, "id": "a" * 65}),
    "a mark in front": "\ufeff" + notebook(MARKDOWN),
    "a list for an id": notebook({**MARKDOWN, "id": [1]}),
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_what_is_no_notebook_is_said_in_one_line(text):
    with pytest.raises(sources.SourceError) as said:
        sources.read_notebook(text)
    assert "\n" not in str(said.value) and "restore it from git" in str(said.value)


def test_what_jupyter_would_mend_is_mended():
    text = notebook(
        {**MARKDOWN, "attachments": None}, {"cell_type": "code", "source": ["1\n", "2"]}
    )
    read = sources.read_notebook(text)
    assert read.cells[1].source == "1\n2" and read.cells[1].outputs == []


SAID = {  # what else a merge or an editor leaves, and what is said of it
    "two cells of one id": (
        notebook({**MARKDOWN, "id": "a"}, {**CODE, "id": "a"}),
        "two cells of the id 'a': delete the id of one",
    ),
    "half of an emoji": (notebook({**CODE, "source": "'\ud83d'"}), "cell 0 holds half of a char"),
    "half of an emoji in an output": (
        notebook({**CODE, "outputs": [{**SHOWN, "data": {"text/plain": "\udc00"}}]}),
        "cell 0 holds half of a character ('\\udc00'), which no file can: write it again",
    ),
}


@pytest.mark.parametrize(("text", "words"), SAID.values(), ids=SAID)
def test_what_could_not_be_stored_or_shown_is_said_in_one_line(text, words):
    with pytest.raises(sources.SourceError) as said:
        sources.read_notebook(text)
    assert words in str(said.value) and "\n" not in str(said.value)
