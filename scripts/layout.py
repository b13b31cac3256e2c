"""Print what each module is for, as the first line of its file says.

    python scripts/layout.py [FOLDER …]      all folders of LAYOUT.md, or these

What may be imported in a folder stands in LAYOUT.md, and the tests hold the imports to it.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from d2lmini._terminal import command

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "LAYOUT.md"


def folders(page: str) -> dict[str, str]:
    """Return each folder of the table, and what may be imported there."""
    rows = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    return {row[0].strip("`/"): row[2] for row in rows}


def modules(folder: str) -> list[Path]:
    """Return the files of Python in a folder."""
    return sorted((ROOT / folder).glob("*.py"))


def first_line(path: Path) -> str:
    """Return what a file says that it is for."""
    said = ast.get_docstring(ast.parse(path.read_text("utf8"))) or ""
    line = said.partition("\n")[0]
    if not line.endswith("."):
        raise ValueError(f"{path}: begin it with one line that says what it is for, in a sentence")
    return line


def imports(path: Path) -> Iterator[str]:
    """Yield the name of all that a file imports, wherever in it; not what a type checker reads."""
    nodes: list[ast.AST] = [ast.parse(path.read_text("utf8"))]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            nodes += node.orelse
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "d2lmini":
            yield from (f"d2lmini.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def main(wanted: list[str]) -> int:
    """Print the list."""
    for folder in wanted or folders(PAGE.read_text("utf8")):
        for path in modules(folder):
            print(f"{path.relative_to(ROOT).as_posix():40} {first_line(path)}")
    return 0


if __name__ == "__main__":
    sys.exit(command(lambda: main(sys.argv[1:])))
