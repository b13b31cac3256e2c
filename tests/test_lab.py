"""`make lab` gives readers copies of their own, and never writes to what they have typed."""

import json
import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import nbformat
import pytest

from scripts import lab, notebooks

CHAPTER = "01-one.ipynb"


@pytest.fixture
def book(tmp_path, monkeypatch):
    """Return a book of one chapter, and what is done with it."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "signatures"))
    chapters, mine = tmp_path / "Bücher für mich/chapters", tmp_path / "Bücher für mich/mine"
    (chapters / "api").mkdir(parents=True)
    (chapters / "glossary.md").write_text("# Words\n")

    def write(source, place=chapters / CHAPTER):
        made = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source, id="a", execution_count=1)],
            metadata=json.loads(json.dumps(notebooks.METADATA)),
        )
        nbformat.write(made, place)

    write("one")
    return SimpleNamespace(
        chapters=chapters,
        mine=mine,
        write=write,
        read=lambda name: nbformat.read(mine / name, 4).cells[0].source,
        copies=lambda: sorted(path.name for path in mine.glob("*.ipynb")),
        bring=lambda: lab.bring(chapters, mine),
    )


def test_copies_are_trusted_and_say_of_python_what_the_kernel_says(book):
    (book.chapters / "api/a.md").write_text("# Names\n\n<!--\n```{drawing} x\n```\n-->\nWords\n")
    assert "/mine/" in (lab.ROOT / ".gitignore").read_text("utf8").splitlines()
    assert book.bring() == []
    copy = nbformat.read(book.mine / CHAPTER, 4)
    assert lab.NotebookNotary().check_signature(copy)
    assert copy.metadata.kernelspec == notebooks.METADATA["kernelspec"]
    assert copy.metadata.language_info == notebooks.METADATA["language_info"] | lab.HERE
    assert (book.mine / "glossary.md").read_text("utf8") == "# Words\n"
    said = (book.mine / "api/a.md").read_text("utf8")  # some of it is made by the build
    assert said.startswith(f"# Names\n{lab.BUILT}\n<!--\n") and said.endswith("-->\nWords\n")


def test_what_was_only_run_or_thrown_away_is_replaced_by_a_new_version(book):
    book.bring()
    copy = book.mine / CHAPTER
    copy.write_text(copy.read_text("utf8").replace('"execution_count": 1', '"execution_count": 7'))
    book.write("two")
    assert book.bring() == [] and book.read(CHAPTER) == "two" and book.copies() == [CHAPTER]
    copy.unlink()
    assert book.bring() == [] and book.read(CHAPTER) == "two"


def test_what_was_typed_is_never_written_to(book):
    book.bring()
    book.write("my answer", book.mine / CHAPTER)
    typed = (book.mine / CHAPTER).read_bytes()
    assert book.bring() == [] and book.copies() == [CHAPTER]
    book.write("two")
    (said,) = book.bring()
    assert said.endswith("the chapter has changed since, and is 01-one.new.ipynb")
    assert book.bring() == []  # said once
    book.write("three")
    book.bring()
    assert book.read("01-one.new.ipynb") == "three"  # nobody has typed into that
    book.write("my other answer", book.mine / "01-one.new.ipynb")
    book.write("four")
    (said,) = book.bring()
    assert "01-one.new2.ipynb" in said and book.read("01-one.new2.ipynb") == "four"
    assert book.read("01-one.new.ipynb") == "my other answer"
    assert (book.mine / CHAPTER).read_bytes() == typed
    (book.mine / CHAPTER).write_text("<<<<<<< mine")  # no notebook any more
    book.write("five")
    assert "01-one.new2.ipynb" in book.bring()[0] and book.read("01-one.new2.ipynb") == "five"
    assert (book.mine / CHAPTER).read_text() == "<<<<<<< mine"


def test_a_folder_that_cannot_be_written_to_is_one_line(monkeypatch, capsys):
    def refuse(chapters, mine):
        raise PermissionError(13, "Permission denied", str(mine))

    monkeypatch.setattr(lab, "bring", refuse)
    with pytest.raises(SystemExit, match=r"^error: \S+mine: Permission denied: copy the book to"):
        lab.main([])


@pytest.mark.parametrize("missing", ["nbformat", "jupyterlab"])
def test_a_python_without_jupyter_is_one_line(tmp_path, missing):
    (tmp_path / "sitecustomize.py").write_text(f"import sys\nsys.modules[{missing!r}] = None\n")
    (tmp_path / "chapters").mkdir()
    (tmp_path / "scripts").mkdir()
    program = shutil.copy(lab.ROOT / "scripts/lab.py", tmp_path / "scripts")
    ours = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, program], env=ours, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"error: {missing}") and "`make lab` takes" in done.stderr
