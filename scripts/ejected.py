"""Build the book with plain Sphinx, without Jupyter Book, and compare the pages.

    python -m scripts.ejected           with what `make book` has built: nothing may differ
    python -m scripts.ejected PYTHON    with the Sphinx of another environment, and say what does

Jupyter Book itself writes the `conf.py` (`jupyter-book config sphinx`); all that is added is where
the book's extensions lie. So the day on which Jupyter Book 1 can no longer be installed costs that
file, which is then committed.
"""

import difflib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MADE = {"_build", ".venv", ".peers", "__pycache__", "conf.py"}
NAMES_ITS_BUILD = {".buildinfo", ".buildinfo.bak"}


def eject(folder: Path, source: Path = ROOT) -> None:
    """Put the book into a folder, with a `conf.py` that needs no Jupyter Book."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in source.iterdir():
        if part.name not in MADE:
            (folder / part.name).symlink_to(part)
    command = [str(Path(sys.executable).with_name("jupyter-book")), "config", "sphinx", str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    conf = folder / "conf.py"
    settings = conf.read_text("utf8")
    if "'jupyter_book', " not in settings:
        raise ValueError(f"{conf}: its extensions are written otherwise: {settings[:300]}")
    lines = f"import sys\nsys.path += [{str(folder / '_ext')!r}, {str(folder)!r}]\n"
    conf.write_text(lines + settings.replace("'jupyter_book', ", ""), "utf8")


def build(folder: Path, out: Path, python: str = sys.executable) -> tuple[int, str]:
    """Build what was ejected; return the exit status and what was said."""
    command = [python, "-m", "sphinx", "-b", "html", "-W", "-n", "--keep-going", "-q"]
    done = subprocess.run([*command, str(folder), str(out)], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def differing(one: Path, other: Path) -> list[str]:
    """Return the files that are not the same, byte for byte, in two books."""
    files = [
        {p.relative_to(book).as_posix() for p in book.rglob("*") if p.is_file()}
        for book in (one, other)
    ]
    found = files[0] ^ files[1]
    for name in files[0] & files[1]:
        if (one / name).read_bytes() != (other / name).read_bytes():
            found.add(name)
    return sorted(name for name in found if name not in NAMES_ITS_BUILD and ".doctrees" not in name)


def said(one: Path, other: Path, names: list[str]) -> Iterator[str]:
    """Yield in words how books differ: of each page its first line that does."""
    yield f"{len(names)} files differ"
    for name in (name for name in names if name.endswith(".html")):
        texts = [
            (book / name).read_text("utf8").splitlines() if (book / name).exists() else []
            for book in (one, other)
        ]
        changes = difflib.unified_diff(*texts, lineterm="", n=0)
        lines = [line for line in changes if not line.startswith(("---", "+++", "@@"))]
        yield f"{name}: {len(lines)} lines, first {lines[0][:100] if lines else ''}"


def main(arguments: list[str]) -> int:
    """Build both, and say what differs; a warning of the other one is an error."""
    python = shutil.which(arguments[0]) if arguments else sys.executable
    if python is None:
        print(f"{arguments[0]} is no Python", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary, "ejected")
        eject(folder)
        pinned, other = Path(temporary, "pinned"), Path(temporary, "other")
        build_with = {pinned: sys.executable, other: python} if arguments else {other: python}
        if not arguments:
            pinned = ROOT / "_build/html"  # of `make book`
        for out, which in build_with.items():
            status, words = build(folder, out, which)
            if status:
                print(words, file=sys.stderr)
                return status
        names = differing(pinned, other)
        print("\n".join(said(pinned, other, names)))
        return 0 if arguments else int(bool(names))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
