"""Run the notebooks from top to bottom and store their outputs, the same bytes every time.

    python scripts/notebooks.py                      all chapters
    python scripts/notebooks.py chapters/01*.ipynb   these
    python scripts/notebooks.py --tags               run nothing, only tag the cells that are live

A notebook that cannot be read, raises an error or writes to stderr is reported in one line and left
as it was; the others are stored. The first cell, which installs the library where it is missing, is
written from `public` in _config.yml. What a page hides by a tag is hidden in Jupyter as well. Cells
that run in a reader's browser get the tag `live`; nobody sets it (see `live_cells/plan.py`). What
the outputs of the chapters were made with is stored beside them.
"""

import json
import os
import platform
import sys
import time
from pathlib import Path

import nbformat
import yaml
from nbclient import NotebookClient
from nbval.plugin import coalesce_streams

from d2lmini._terminal import careful_output

ROOT = Path(__file__).resolve().parents[1]
sys.path += [str(ROOT / "_ext"), str(ROOT)]
from sources import (  # noqa: E402, what the build reads notebooks with
    SourceError,
    read_notebook,
    wrong_numbers,
)

from live_cells.plan import plan_cells, tagged  # noqa: E402

CHAPTERS = ROOT / "chapters"
STORED_WITH = CHAPTERS / "stored-with.json"  # shown on the page of facts
THREADS = {"OMP_NUM_THREADS": "1"}  # sums are taken in the same order everywhere
TIMEOUT = 300  # seconds a cell may take; chapter 10 trains for 40 on an idle machine
METADATA = {
    "kernelspec": {
        "display_name": "Python 3 (ipykernel)",  # as the kernel calls itself: nothing to save
        "language": "python",
        "name": "python3",
    },
    "language_info": {
        "file_extension": ".py",  # what else of it has no version
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}
# What is folded in Jupyter too, by the tags that fold it on the page.
HIDDEN = {
    "source_hidden": {"hide-input", "hide-cell", "remove-cell"},
    "outputs_hidden": {"hide-cell"},
}
KEPT = ("mystnb", "tags")  # metadata of a cell that the book uses
INSTALL = """import importlib.util
import subprocess
import sys
from pathlib import Path

if (minor := sys.version_info[1]) < 11:
    raise RuntimeError(f"this kernel is Python 3.{minor}: choose one with Python 3.11 or newer")

# Where the library is missing, install it: from the book around this notebook, or its repository.
if None in map(importlib.util.find_spec, ("d2lmini", "array_api_compat")):
    folders = [p for p in (Path.cwd(), *Path.cwd().parents) if (p / "d2lmini/data").exists()]
    source = f"{folders[0]}[torch,plot]" if folders else "{published}"
    pip = [sys.executable, "-m", "pip", "install", source or "/folder/of/the/book[torch,plot]"]
    if not source or subprocess.run(pip).returncode:
        put = "" if source else "Put the folder of your copy of the book into this line and run it"
        how = f'{put or "This installs it"}: %pip install "{pip[-1]}"'
        raise ModuleNotFoundError(f"d2lmini is missing. {how}")
"""


__all__ = ["read_notebook", "wrong_numbers"]  # for the tests


class NotebookError(Exception):
    """A notebook that cannot be stored."""


def read(path: Path) -> nbformat.NotebookNode:
    """Return the notebook in a file, or say what is wrong with it."""
    try:
        return read_notebook(path.read_text("utf8"))
    except SourceError as error:
        raise NotebookError(f"{path.name} {error}") from None
    except UnicodeDecodeError:
        raise NotebookError(f"{path.name} is not in UTF-8: restore it from git") from None
    except OSError as error:
        raise NotebookError(f"{path.name} cannot be read: {error.strerror}") from None


def store(path: Path, notebook: nbformat.NotebookNode) -> None:
    """Write a notebook; where it cannot be written, the file stays as it was."""
    try:
        path.write_bytes(text_of(notebook).encode())  # what cannot be encoded empties no file
    except (OSError, UnicodeEncodeError) as error:
        raise NotebookError(f"{path.name} cannot be written: {error}") from None


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook as it is after running it in a folder; the file stays as it was."""
    notebook = read(path)
    normalise(notebook)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        record_timing=False,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],  # not that TCP is not encrypted
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        client.execute(env=os.environ | THREADS)
    except Exception as error:  # of a cell, or a kernel that died, hung, or could not start
        raise NotebookError(f"{path.name}: {error}") from None
    notebook.metadata = nbformat.from_dict(METADATA)  # the kernel has added its version
    for number, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":  # not while it runs: a display that is updated has a number
            cell.outputs = coalesce_streams(cell.outputs)
        for output in cell.get("outputs", []):
            if output.get("name") == "stderr":
                raise NotebookError(f"{path.name}: cell {number} wrote to stderr: {output.text}")
    return notebook


def install_cell(config: Path = ROOT / "_config.yml") -> str:
    """Return the first cell of a chapter, for the place where the book is published, if any."""
    public = yaml.safe_load(config.read_text("utf8"))["sphinx"]["config"]["public"] or {}
    published = ""
    if public.get("address"):
        branch = public.get("branch") or "main"
        published = f"d2lmini[torch,plot] @ git+{public['repository'].rstrip('/')}@{branch}"
    return INSTALL.rstrip().replace("{published}", published)


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Remove what an editor or an earlier run has left: outputs, counts, stray metadata."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        if name := cell.metadata.get("fold"):  # as notebooks named their folds until this version
            cell.metadata["mystnb"] = {"code_prompt_show": name}
        kept = {key: cell.metadata[key] for key in KEPT if key in cell.metadata}
        tags = set(kept.get("tags", []))
        hidden = {key: True for key, hiding in HIDDEN.items() if tags & hiding}
        if hidden and cell.cell_type == "code":
            kept["jupyter"] = hidden
        cell.metadata = nbformat.from_dict(kept)
        cell.source = install_cell() if cell.id == "install" else cell.source.rstrip()
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    tag_live(notebook)


def tag_live(notebook: nbformat.NotebookNode) -> None:
    """Tag the cells that run in a reader's browser, and no others."""
    live = {cell.id for cell in plan_cells(notebook.cells) if cell.live}
    for cell in notebook.cells:
        tags = cell.metadata.get("tags", [])
        cell.metadata.pop("tags", None)
        if tags := tagged(tags, cell.id in live):
            cell.metadata["tags"] = tags


def text_of(notebook: nbformat.NotebookNode) -> str:
    """Return what is stored for a notebook."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook).rstrip() + "\n"


def tag_alone(path: Path) -> None:
    """Tag the live cells of a notebook, which keeps its outputs."""
    notebook = read(path)
    tag_live(notebook)
    store(path, notebook)


def stored_with() -> str:
    """Return what is stored of the machine: its kind, and nothing that is its own."""
    kind = {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
    }
    return json.dumps(kind, indent=2) + "\n"


def main(paths: list[str]) -> int:
    """Run and store; return the exit status."""
    careful_output()
    failed = False
    if unknown := {word for word in paths if word.startswith("-")} - {"--tags"}:
        print(f"there is no option {unknown.pop()}; there is --tags", file=sys.stderr)
        return 2
    only_tags = "--tags" in paths
    paths = [path for path in paths if path != "--tags"]
    for path in [Path(p).resolve() for p in paths] or sorted(CHAPTERS.glob("*.ipynb")):
        start = time.perf_counter()
        try:
            if only_tags:
                tag_alone(path)
                continue
            store(path, run(path, path.parent))
            if path.parent == CHAPTERS:
                STORED_WITH.write_text(stored_with(), encoding="utf-8")
        except NotebookError as error:
            failed = True
            print(f"not stored: {error}", file=sys.stderr)
        else:
            print(f"{path.name}: {time.perf_counter() - start:.1f} s")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
