"""`make lab` gives readers copies of their own, and never writes to what they have typed."""

import nbformat
import pytest

from scripts import lab, notebooks


@pytest.fixture
def book(tmp_path, monkeypatch):
    """Return the folders of a book of one chapter, and of a reader's copies."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "signatures"))
    chapters, mine = tmp_path / "Bücher für mich/chapters", tmp_path / "Bücher für mich/mine"
    chapters.mkdir(parents=True)
    write(chapters, "one")
    return chapters, mine


def write(folder, source, name="01-one.ipynb"):
    cell = nbformat.v4.new_code_cell(source, id="a", execution_count=1)
    made = nbformat.v4.new_notebook(cells=[cell], metadata={**notebooks.METADATA})
    nbformat.write(made, folder / name)


def read(folder, name="01-one.ipynb"):
    return nbformat.read(folder / name, 4).cells[0].source


def test_a_copy_that_was_only_run_is_replaced_by_a_new_version_and_trusted(book):
    chapters, mine = book
    assert "/mine/" in (lab.ROOT / ".gitignore").read_text("utf8").splitlines()
    assert lab.bring(*book) == []
    copy = mine / "01-one.ipynb"
    assert lab.NotebookNotary().check_signature(nbformat.read(copy, 4))
    copy.write_text(copy.read_text("utf8").replace('"execution_count": 1', '"execution_count": 7'))
    write(chapters, "two")
    assert lab.bring(*book) == [] and read(mine) == "two"
    assert len([*mine.glob("*.ipynb")]) == 1


def test_what_was_typed_is_never_written_to(book):
    chapters, mine = book
    lab.bring(*book)
    write(mine, "my answer")
    typed = (mine / "01-one.ipynb").read_bytes()
    assert lab.bring(*book) == [] and len([*mine.glob("*.ipynb")]) == 1
    write(chapters, "two")
    (said,) = lab.bring(*book)
    assert said.endswith("the chapter has changed since, and is 01-one.new.ipynb")
    write(chapters, "three")
    lab.bring(*book)
    assert read(mine, "01-one.new.ipynb") == "three"  # nobody has typed into that
    write(mine, "my other answer", "01-one.new.ipynb")
    write(chapters, "four")
    (said,) = lab.bring(*book)
    assert "01-one.new2.ipynb" in said and read(mine, "01-one.new2.ipynb") == "four"
    assert read(mine, "01-one.new.ipynb") == "my other answer"
    assert (mine / "01-one.ipynb").read_bytes() == typed
