"""Open the chapters in JupyterLab: as copies in `mine/`, which are the reader's own.

git ignores `mine/`. A copy in which something was typed is never written to again: when its chapter
has changed in the book, the new one is put beside it, as `….new.ipynb`, and that is said. What was
only read or run is replaced. The copies are trusted: what they show is what the book has stored.
"""

import hashlib
import json
import os
import platform
import sys
from pathlib import Path

MISSING = (
    "error: {} is not installed for this Python: `make lab` takes that of .venv and installs what "
    "is missing; without make, the README says how"
)
try:
    import nbformat
    from nbformat.sign import NotebookNotary
except ModuleNotFoundError as error:
    sys.exit(MISSING.format(error.name))

ROOT = Path(__file__).resolve().parents[1]
RECORD = ".copied.json"  # of each copy, what its chapter said when it was made
# What a kernel says of itself, and JupyterLab would note: an opened chapter is not a changed one.
HERE = {
    "codemirror_mode": {"name": "ipython", "version": 3},
    "version": platform.python_version(),
}
BUILT = "\n*Some of this page is made when the book is built, and only `make book` shows it.*\n"
WELCOME = """
Your own copies of the chapters are in {folder}: type into them, and save as you like. A later
version of the book leaves them alone, and git ignores them. To stop, press Ctrl-C twice here.
"""


def typed(path: Path) -> str:
    """Return a name for what the cells of a notebook say, without what they put out."""
    try:
        cells = json.loads(path.read_text("utf8"))["cells"]
        said = [[cell["cell_type"], "".join(cell["source"])] for cell in cells]
    except (ValueError, KeyError, TypeError):  # somebody has changed it, if not with Jupyter
        return "no notebook"
    return hashlib.sha256(json.dumps(said).encode()).hexdigest()


def copies(chapter: Path, mine: Path) -> list[Path]:
    """Return the names that copies of a chapter have, or would have, the first one first."""
    names = [chapter.name, f"{chapter.stem}.new.ipynb"]
    while (mine / names[-1]).exists():
        names.append(f"{chapter.stem}.new{len(names)}.ipynb")
    return [mine / name for name in names]


def place(chapter: Path, mine: Path, record: dict[str, str]) -> Path | None:
    """Return where a chapter is to be copied to; nowhere, if there is a copy of this version."""
    there = [copy for copy in copies(chapter, mine) if copy.exists()]
    if mine / chapter.name not in there:
        return mine / chapter.name
    if typed(chapter) in [record.get(copy.name) for copy in there]:
        return None
    untouched = [copy for copy in there if typed(copy) == record.get(copy.name)]
    return next(iter(untouched), copies(chapter, mine)[-1])


def bring(chapters: Path, mine: Path) -> list[str]:
    """Bring the copies to the state of the book; return what there is to say about it."""
    mine.mkdir(exist_ok=True)
    path, said = mine / RECORD, []
    record = json.loads(path.read_text("utf8")) if path.exists() else {}
    for page in [*chapters.glob("*.md"), *chapters.glob("api/*.md")]:  # to which they link
        copy = mine / page.relative_to(chapters)
        copy.parent.mkdir(exist_ok=True)
        title, _, text = page.read_text("utf8").partition("\n")
        built = BUILT if "<!--\n" in text else ""  # a directive
        copy.write_text(f"{title}\n{built}{text}", "utf8")
    for chapter in sorted(chapters.glob("*.ipynb")):
        copy = place(chapter, mine, record)
        if copy is None:
            continue
        if copy.name != chapter.name:
            kept = f"{mine.name}/{chapter.name} is as you left it"
            said.append(f"{kept}; the chapter has changed since, and is {copy.name}")
        notebook = nbformat.read(chapter, 4)
        notebook.metadata.language_info |= HERE
        nbformat.write(notebook, copy)
        NotebookNotary().sign(notebook)
        record[copy.name] = typed(chapter)
        path.write_text(json.dumps(record, indent=1), "utf8")  # now: the next may fail
    return said


def main(arguments: list[str]) -> None:
    """Copy, say what there is to say, and start JupyterLab."""
    mine = ROOT / "mine"
    try:
        said = bring(ROOT / "chapters", mine)
    except OSError as error:
        sys.exit(
            f"error: {error.filename}: {error.strerror}: copy the book to a folder of your own"
        )
    print(WELCOME.format(folder=mine), *said, sep="\n", flush=True)
    os.chdir(ROOT)
    own = os.environ.get("JUPYTER_CONFIG_PATH", "")
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, [str(ROOT / "scripts"), own]))
    try:
        from jupyterlab.labapp import main as jupyterlab  # here: the copies need no JupyterLab
    except ModuleNotFoundError as error:
        sys.exit(MISSING.format(error.name))

    jupyterlab([str(mine), *arguments])


if __name__ == "__main__":
    main(sys.argv[1:])
