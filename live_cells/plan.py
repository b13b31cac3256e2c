"""Find out which cells of a notebook run in a browser, and what each of them needs.

A cell is live if neither its own code nor an earlier cell that it needs asks for PyTorch, which
does not run there. In the teaching part every such cell is live; after it, among the exercises,
those that a page shows with their code. Nobody keeps a list: `scripts/notebooks.py` tags the cells,
and the build warns where a tag says otherwise.
"""

import ast
import dis
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import CodeType
from typing import Any

from live_cells.library import library_of

TAG = "live"
EXERCISES = "## Exercises"
FOLDED = {"hide-input", "hide-cell"}


@dataclass
class Cell:
    """A code cell: what it gives to later cells, and what it takes from earlier ones.

    Attributes
    ----------
    id : str
    code : str
    tags : set of str
    among_exercises : bool
    imports : dict
        The names that it imports, and what each of them is: ``{"np": "numpy"}``.
    defines, uses : list of str
        The names that it binds, and those that it reads before it has bound them itself.
    torch : bool
        Whether it needs PyTorch, itself or through an earlier cell.
    needs : list of int
        The earlier cells that must have run, in order.
    whole : set of int
        Those among them of which more is needed than what they import.
    live : bool
    broken : bool
        Whether it is no Python.
    """

    id: str
    code: str
    tags: set[str]
    among_exercises: bool
    imports: dict[str, str] = field(default_factory=dict)
    defines: list[str] = field(default_factory=list)
    uses: list[str] = field(default_factory=list)
    torch: bool = False
    needs: list[int] = field(default_factory=list)
    whole: set[int] = field(default_factory=set)
    live: bool = False
    broken: bool = False


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield each name that is imported, and what it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                yield name, alias.name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def bound_and_read(code: CodeType) -> tuple[list[str], list[str]]:
    """Return the names that a cell binds, and those that it reads before it has bound them.

    >>> bound_and_read(compile("a = b; f = lambda: c + a", "", "exec"))
    (['a', 'f'], ['b', 'c'])
    """
    bound: dict[str, None] = {}
    read: dict[str, None] = {}
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL") and step.argval not in bound:
            read[step.argval] = None
        elif step.opname in ("STORE_NAME", "STORE_GLOBAL"):
            bound[step.argval] = None
        elif isinstance(step.argval, CodeType):
            inner = bound_and_read(step.argval)[1]
            read |= dict.fromkeys(name for name in inner if name not in bound)
    return list(bound), list(read)


def read_cells(cells: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """Return the code cells of a notebook, but those that no page shows."""
    found: list[Cell] = []
    among_exercises = False
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] != "code":
            among_exercises |= EXERCISES in source.splitlines()
            continue
        tags = set(cell["metadata"].get("tags", []))
        if "remove-cell" in tags:
            continue
        one = Cell(cell.get("id", ""), source, tags, among_exercises)
        one.imports, one.defines, one.uses, one.torch, one.broken = read(source)
        found.append(one)
    return found


@cache
def read(source: str) -> tuple[dict[str, str], list[str], list[str], bool, bool]:
    """Return what a cell imports, binds and reads, whether it asks for PyTorch, or is no Python."""
    try:
        tree = ast.parse(source)
        code = compile(tree, "cell", "exec")
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # a magic, or a slip
        return {}, [], [], False, True
    return dict(imported(tree)), *bound_and_read(code), asks_for_torch(tree), False


def asks_for_torch(tree: ast.AST) -> bool:
    """Tell whether code imports PyTorch, or takes what needs it from the library."""
    return any(library_of(thing) == "torch" for _, thing in imported(tree)) or any(
        "torch"
        in map(library_of, (f"{node.value.id}.{node.attr}", f"d2lmini.{node.value.id}.{node.attr}"))
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    )


def plan_cells(cells: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """Return the code cells of a notebook, with what each needs and whether it is live."""
    found = read_cells(cells)
    for place, cell in enumerate(found):
        search = Search(found, place)
        search.follow(place)
        cell.torch |= search.torch
        cell.needs, cell.whole = sorted(search.needs), search.followed - {place}
        folded_answer = cell.among_exercises and cell.tags & FOLDED
        cell.live = not (cell.torch or cell.broken or folded_answer)
    return found


class Search:
    """What a cell needs: the cells above it that define its names, and what those need.

    Of a cell that imports a name only the import is needed: so the first cell of a chapter may
    import PyTorch, and the cells that use NumPy alone are live.
    """

    def __init__(self, cells: list[Cell], end: int) -> None:
        self.cells = cells
        self.end = end
        self.needs: set[int] = set()
        self.followed: set[int] = {end}
        self.torch = False

    def follow(self, place: int) -> None:
        """Add what the cell at a place needs."""
        for name in self.cells[place].uses:
            number = self.where(name, place)
            if number is None:
                continue
            self.needs.add(number)
            cell = self.cells[number]
            if name in cell.imports:
                self.torch |= library_of(cell.imports[name]) == "torch"
            elif number not in self.followed:
                self.followed.add(number)
                self.torch |= cell.torch
                self.follow(number)

    def where(self, name: str, place: int) -> int | None:
        """Return the cell that defines a name: above the place, or, for a function, above the end.

        A function may call what is defined after it, as long as that is there when it is called.
        """
        above = [number for number in range(self.end) if name in self.cells[number].defines]
        before = [number for number in above if number < place]
        return (before or above or [None])[-1]


def tagged(tags: Sequence[str], live: bool) -> list[str]:
    """Return the tags that a cell should have.

    >>> tagged(["hide-input", "live"], False), tagged([], True)
    (['hide-input'], ['live'])
    """
    rest = [tag for tag in tags if tag != TAG]
    return [*rest, TAG] if live else rest
