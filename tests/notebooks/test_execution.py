"""The notebooks are stored as `make notebooks` stores them, and run from any folder."""

from pathlib import Path

import nbformat
import pytest

from scripts import notebooks
from tests.notebooks import strict

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))


def pictures(notebook):
    for cell in notebook.cells:
        yield from strict.pictures_of(cell.get("outputs", []))


def test_there_are_chapters():
    assert CHAPTERS


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.name)
def test_runs_from_another_folder_and_gives_what_is_stored(path, tmp_path):
    stored = nbformat.read(path, as_version=4)
    fresh = notebooks.run(path, tmp_path)
    strict.accept_rounding(pictures(fresh), pictures(stored))
    assert notebooks.text_of(fresh) == path.read_text("utf-8")
    assert not list(tmp_path.iterdir()), "a notebook leaves no files behind"


def write(folder: Path, *sources: str) -> Path:
    path = folder / "made.ipynb"
    cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
    return path


def test_storing_twice_gives_the_same_bytes(tmp_path):
    path = write(tmp_path, "print(1)\nprint(2)", "3")
    assert notebooks.main([str(path)]) == 0
    first = path.read_bytes()
    assert notebooks.main([str(path)]) == 0
    assert path.read_bytes() == first
    assert not strict.defects(first.decode())


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import warnings; warnings.warn('beware')", "cell 1 wrote to stderr"),
        ("[][1]", "IndexError"),
    ],
)
def test_defects_are_not_stored(tmp_path, capsys, source, reason):
    path = write(tmp_path, "1", source)
    before = path.read_bytes()
    assert notebooks.main([str(path)]) == 1
    assert path.read_bytes() == before
    said = capsys.readouterr().err
    assert reason in said
    assert "made.ipynb" in said
