"""What nbconvert makes of a chapter: a program that runs, and a page whose links lead somewhere."""

import json
import os
import re
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


def export(path, form, folder):
    """Let nbconvert write a chapter in another form, into a folder."""
    pytest.importorskip("nbconvert", reason="`make .venv/installed-lab` brings it")
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--to", form, "--output-dir"]
    subprocess.run([*command, str(folder), str(path)], check=True, capture_output=True)


@pytest.mark.weekly
@each
def test_links_within_its_page_lead_somewhere(path, tmp_path):
    export(path, "html", tmp_path)
    page = (tmp_path / f"{path.stem}.html").read_text("utf8")
    linked = set(re.findall(r'<a[^>]*href="#([^"]+)"', page))
    assert linked and linked <= set(re.findall(r'id="([^"]+)"', page))


@pytest.mark.weekly
@each
def test_it_runs_to_its_end(path, tmp_path):
    """In an empty folder, where it finds nothing but the library."""
    export(path, "script", tmp_path)
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
