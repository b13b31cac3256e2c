"""Each chapter is a program, too: `jupyter nbconvert --to script` writes one that runs."""

import json
import os
import subprocess
import sys

import pytest

from scripts import notebooks

CHAPTERS = sorted(notebooks.CHAPTERS.glob("*.ipynb"))
each = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)


@each
def test_a_chapter_is_a_program(path):
    """Without a magic, which only Jupyter knows, and with what nbconvert has to be told."""
    notebook = json.loads(path.read_text("utf8"))
    cells = ["".join(c["source"]) for c in notebook["cells"] if c["cell_type"] == "code"]
    compile("\n\n".join(cells), path.name, "exec")
    assert notebook["metadata"]["language_info"].items() >= {
        ("file_extension", ".py"),
        ("nbconvert_exporter", "python"),
    }


@pytest.mark.weekly
@each
def test_it_runs_to_its_end(path, tmp_path):
    """In an empty folder, where it finds nothing but the library."""
    pytest.importorskip("nbconvert", reason="`make .venv/installed-lab` brings it")
    export = [sys.executable, "-m", "jupyter", "nbconvert", "--to", "script", "--output-dir"]
    subprocess.run([*export, str(tmp_path), str(path)], check=True, capture_output=True)
    ours = os.environ | {"PYTHONPATH": str(notebooks.ROOT), "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, f"{path.stem}.py"],
        cwd=tmp_path,
        env=ours,
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
