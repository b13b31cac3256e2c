r"""Count figures and formulas up through each chapter, and let all that names them follow.

    python scripts/renumber.py

A new figure or formula gets a number of its own first, such as 2.1a: `**Figure 2.1a.** …`, or
`\tag{2.1a}`. Then this gives each its number by its place, in captions, formulas, links and
sentences of all chapters and pages. It says what it changed, and what is to be stored again.
"""

import json
import re
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# But for CONTRIBUTING.md, whose numbers are examples, and the changelog, which is history.
PLACES = (
    *("README.md", "chapters/**/*.md", "chapters/*.ipynb"),
    *("d2lmini/**/*.py", "chapters/_code/*.py"),
)
NUMBER = r"\d+\.\d+[a-z]?"
CAPTION = re.compile(rf"^\*\*Figure ({NUMBER})\.\*\*", re.MULTILINE)
TAG = re.compile(rf"\\tag\s*\{{({NUMBER})\}}")
# What names a figure or a formula: what stands before its number, and whether dots are dashes.
NAMED = {
    "figure": ((r"\bFigures? ", False), (r"#figure-", True), (r'id=\\?"figure-', True)),
    "formula": (
        (r"tag\s*\{", False),
        (r"\[\(", False),
        (r"\b(?:formula|equation) \(", False),
        (r"#eq-", True),
        (r'id=\\?"eq-', True),
    ),
}


class RenumberError(Exception):
    """Numbers that cannot be told apart."""


def right_numbers(text: str, chapter: int) -> dict[tuple[str, str], str]:
    """Return for each figure and formula of a chapter the number that its place gives it."""
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "markdown"]
    sources = ["".join(cell["source"]) for cell in cells]
    found = {}
    for kind, pattern in (("figure", CAPTION), ("formula", TAG)):
        numbers = [number for source in sources for number in pattern.findall(source)]
        for number, times in Counter(numbers).items():
            if times > 1:
                new = f"{number}a"
                raise RenumberError(
                    f"{kind} {number} is there {times} times: call the new one {new}"
                )
        found |= {(kind, old): f"{chapter}.{i}" for i, old in enumerate(numbers, 1)}
    return {what: new for what, new in found.items() if what[1] != new}


def renumbered(text: str, numbers: dict[tuple[str, str], str]) -> str:
    """Return a text in which every figure and formula has its new number."""
    for kind, places in NAMED.items():
        for before, dashes in places:

            def new(match: re.Match[str], kind: str = kind, dashes: bool = dashes) -> str:
                old = match[2].replace("-", ".") if dashes else match[2]
                right = numbers.get((kind, old), old)
                return match[1] + (right.replace(".", "-") if dashes else right)

            number = NUMBER.replace(r"\.", "-") if dashes else NUMBER
            text = re.sub(rf"({before})({number})(?![\w.]\w)", new, text)
    return text


def code_of(text: str) -> list[str]:
    """Return the code of a notebook, whose outputs depend on it."""
    return ["".join(c["source"]) for c in json.loads(text)["cells"] if c["cell_type"] == "code"]


def main(root: Path = ROOT) -> int:
    """Renumber everything in a folder; return the exit status."""
    numbers = {}
    for path in sorted((root / "chapters").glob("[0-9]*.ipynb")):
        try:
            numbers |= right_numbers(path.read_text("utf8"), int(path.name[:2]))
        except RenumberError as error:
            print(f"{path.name}: {error}", file=sys.stderr)
            return 1
    for (kind, old), new in numbers.items():
        print(f"{kind} {old} is now {new}")
    for path in sorted({path for place in PLACES for path in root.glob(place)}):
        text = path.read_text("utf8")
        if (new := renumbered(text, numbers)) != text:
            path.write_text(new, "utf8")
            run = path.suffix == ".ipynb" and code_of(new) != code_of(text)
            store = ": store its outputs again" if run else ""
            print(f"changed {path.relative_to(root).as_posix()}{store}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
