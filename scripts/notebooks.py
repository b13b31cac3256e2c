"""Run the notebooks from top to bottom and store their outputs, the same bytes every time.

    python scripts/notebooks.py                      all chapters
    python scripts/notebooks.py chapters/01*.ipynb   these

A notebook that raises an error or writes to stderr is reported and left as it was. The first cell,
which installs the library where it is missing, is written from `public` in _config.yml. What the
outputs of the chapters were made with is stored beside them.
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
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = ROOT / "chapters"
STORED_WITH = CHAPTERS / "stored-with.json"  # shown on the page of facts
THREADS = {"OMP_NUM_THREADS": "1"}  # sums are taken in the same order everywhere
TIMEOUT = 120  # seconds a cell may take
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
INSTALL = """import importlib.util
from pathlib import Path

# Where the library is missing, install it: from this book's folder, or its repository.
if importlib.util.find_spec("d2lmini") is None:
    published = "{published}"
    source = "..[torch,plot]" if Path("../d2lmini/__init__.py").exists() else published
    if not source:
        raise ModuleNotFoundError("d2lmini is missing: run this notebook in the folder of its book")
    %pip install --quiet "{source}"\
"""


class NotebookError(Exception):
    """A notebook that cannot be stored."""


def run(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return the notebook as it is after running it in a folder; the file stays as it was."""
    notebook = nbformat.read(path, as_version=4)
    normalise(notebook)
    client = NotebookClient(
        notebook,
        timeout=TIMEOUT,
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],  # not that TCP is not encrypted
        resources={"metadata": {"path": str(folder)}},
    )
    try:
        client.execute(env=os.environ | THREADS)
    except CellExecutionError as error:
        raise NotebookError(f"{path.name}: {error}") from None
    notebook.metadata = nbformat.from_dict(METADATA)  # the kernel has added its version
    for number, cell in enumerate(notebook.cells):
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
    return INSTALL.replace("{published}", published)


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Remove what an editor or an earlier run has left: outputs, counts, stray metadata."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.setdefault("id", f"cell-{number}")
        kept = {key: cell.metadata[key] for key in ("mystnb", "tags") if key in cell.metadata}
        cell.metadata = nbformat.from_dict(kept)
        cell.source = install_cell() if cell.id == "install" else cell.source.rstrip()
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None


def text_of(notebook: nbformat.NotebookNode) -> str:
    """Return what is stored for a notebook."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook).rstrip() + "\n"


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
    failed = False
    for path in [Path(p).resolve() for p in paths] or sorted(CHAPTERS.glob("*.ipynb")):
        start = time.perf_counter()
        try:
            path.write_text(text_of(run(path, path.parent)), encoding="utf-8")
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
