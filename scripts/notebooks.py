"""Run the notebooks from top to bottom and store their outputs, the same bytes every time.

    python scripts/notebooks.py                      all chapters
    python scripts/notebooks.py chapters/01*.ipynb   these

A notebook that raises an error or writes to stderr is reported and left as it was.
"""

import os
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

CHAPTERS = Path(__file__).resolve().parents[1] / "chapters"
THREADS = {"OMP_NUM_THREADS": "1"}  # sums are taken in the same order everywhere
TIMEOUT = 120  # seconds a cell may take
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


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


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Remove what an editor or an earlier run has left: outputs, counts, stray metadata."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells):
        cell.setdefault("id", f"cell-{number}")
        kept = {key: cell.metadata[key] for key in ("mystnb", "tags") if key in cell.metadata}
        cell.metadata = nbformat.from_dict(kept)
        cell.source = cell.source.rstrip()
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None


def text_of(notebook: nbformat.NotebookNode) -> str:
    """Return what is stored for a notebook."""
    nbformat.validate(notebook)
    return nbformat.writes(notebook).rstrip() + "\n"


def main(paths: list[str]) -> int:
    """Run and store; return the exit status."""
    failed = False
    for path in [Path(p).resolve() for p in paths] or sorted(CHAPTERS.glob("*.ipynb")):
        start = time.perf_counter()
        try:
            path.write_text(text_of(run(path, path.parent)), encoding="utf-8")
        except NotebookError as error:
            failed = True
            print(f"not stored: {error}", file=sys.stderr)
        else:
            print(f"{path.name}: {time.perf_counter() - start:.1f} s")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
