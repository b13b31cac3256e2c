"""Run the cells of a chapter again, as a reader does who plays with it.

After one run from top to bottom each cell is run again, and every time it must give what is stored:
from the last to the first, so that each meets what the cells below it have left; and with right,
then with wrong answers in the exercises those that can notice. A cell that trains may be exempt, by
the tag ``trains``: it goes on from where it stopped. Of a training so long that it shows its
progress, two steps are run again, and what it had given is put back: another cell shows it. A
costly cell that is given what it was given the first time does the same, and is not run.
"""

import ast
import copy

from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from d2lmini.exercises import find
from d2lmini.exercises.notebook import checked
from scripts import notebooks
from tests.notebooks import strict

EXEMPT = "trains"
LONG = "progress("
WATCH = (  # in the kernel, before the first cell (see `watching.py`)
    f"__import__('sys').path.append({str(notebooks.ROOT)!r}); get_ipython().watcher = __import__("
    "'tests.notebooks.watching', fromlist=['Watcher']).Watcher(get_ipython())"
)
SHORTEN = (
    "_given = {{name: globals()[name] for name in {names!r}}}; _progress = progress\n"
    "progress = lambda steps, label: range(min(steps, 2))"
)
RESTORE = "globals().update(_given); progress = _progress"
WRONG = (
    "from d2lmini.exercises import check, find\n"
    "{function} = check(find({name!r}).mistakes[{which}].fn, name={name!r})"
)


def players(notebook) -> list:
    """Return the cells that are run again."""
    return [
        cell
        for cell in notebook.cells
        if cell.cell_type == "code"
        and cell.id != "install"
        and EXEMPT not in cell.metadata.get("tags", [])
    ]


def exercise_of(cell):
    """Return the exercise that a cell poses, if it does."""
    names = set(checked([cell.source])) if "@check" in cell.source else set()
    return find(names.pop()) if names else None


def right(exercise) -> str:
    """Return the text of the cell with the registered solution in it."""
    lines = exercise.solution.splitlines()
    definitions = [
        node.lineno - 1
        for node in ast.parse(exercise.solution).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    return "\n".join([*lines[: definitions[-1]], "@check", *lines[definitions[-1] :]])


def wrong(exercise) -> str:
    """Return a cell that answers with the first registered mistake."""
    return WRONG.format(function=exercise.function, name=exercise.name, which=0)


def names(source: str) -> tuple[set[str], set[str]]:
    """Return the names that a cell gives a meaning, and those that it mentions."""
    given, mentioned = set(), set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            mentioned.add(node.id)
            if not isinstance(node.ctx, ast.Load):
                given.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            given.add(node.name)
    return given, mentioned | given


def that_notice(cells: list, changed: set[str]) -> list:
    """Return the cells that mention a name whose meaning has changed, or what such a cell gives."""
    changed, found = set(changed), []
    while more := [c for c in cells if c not in found and names(c.source)[1] & changed]:
        found += more
        changed = changed.union(*(names(cell.source)[0] for cell in more))
    return found


def difference(stored, fresh, pictures: bool) -> str:
    """Say in a line how what a cell gives differs from what is stored; empty if it does not."""
    found = strict.differences(copy.deepcopy(fresh), copy.deepcopy(stored), pictures=pictures)
    return "; ".join(" ".join(line.split()) for line in found)[:400]


class Player:
    """A chapter in a kernel that has run it once, from top to bottom."""

    def __init__(self, notebook, manager, *, pictures: bool = True) -> None:
        self.stored = notebook
        self.pictures = pictures  # whether they are compared
        self.notebook = copy.deepcopy(notebook)
        notebooks.normalise(self.notebook)
        self.client = NotebookClient(self.notebook, timeout=notebooks.TIMEOUT, record_timing=False)
        manager.client_class = "jupyter_client.asynchronous.AsyncKernelClient"
        self.client.km = manager
        self.client.start_new_kernel_client()
        self.failures: list[str] = []

    def run(self, cell) -> str:
        """Run a cell; return why it failed, or an empty string. Its outputs are in the cell."""
        index = next(i for i, c in enumerate(self.notebook.cells) if c.id == cell.id)
        try:
            self.client.execute_cell(cell, index, store_history=True)
        except CellExecutionError as error:
            return f"raises {error.ename}: {error.evalue}"[:200]
        return ""

    def run_shortly(self, cell) -> str:
        """Run two steps of a long training, then put back what it had given."""
        around = []
        for source in (SHORTEN.format(names=names(cell.source)[0]), RESTORE):
            around.append(copy.deepcopy(cell))
            around[-1].source = source
        return self.run(around[0]) or self.run(cell) or self.run(around[1])

    def play(self) -> list[str]:
        """Run cells again in every way; return what did not give what is stored."""
        try:
            cells = players(self.notebook)
            self.costly = self.ask(cells[0], "cells").keys()
            self.again("run again", cells[::-1])
            functions = {exercise.function for exercise in map(exercise_of, cells) if exercise}
            for kind, answer in (("right answers", right), ("wrong answers", wrong)):
                answered = self.answer(kind, cells, answer)
                others = [cell for cell in cells if cell.id not in answered]
                self.again(f"after {kind}", that_notice(others, functions))
        finally:
            self.client.kc.stop_channels()
        return self.failures

    def again(self, how: str, cells: list) -> None:
        """Run cells again, one after the other."""
        for cell in cells:
            if self.unchanged(cell):
                continue
            if LONG in cell.source:
                self.note(how, cell, self.run_shortly(cell))
            else:
                self.note(how, cell, self.run(cell))

    def ask(self, cell, about: str):
        """Return what the kernel's watcher says."""
        asked = copy.deepcopy(cell)
        asked.source = f"print(ascii(get_ipython().watcher.{about}))"
        failed = self.run(asked)
        assert not failed, failed
        return ast.literal_eval(asked.outputs[0].text)

    def unchanged(self, cell) -> bool:
        """Tell whether a costly cell would be given again what it was given, and do the same."""
        return cell.source in self.costly and self.ask(cell, f"unchanged({cell.source!r})")

    def answer(self, kind: str, cells: list, answer) -> set[str]:
        """Answer the exercises; return the cells in which they stand."""
        answered = set()
        for cell in cells:
            if exercise := exercise_of(cell):
                filled = copy.deepcopy(cell)
                filled.source = answer(exercise)
                if failed := self.run(filled):
                    self.failures.append(f"{cell.id}, {kind}: {failed}")
                status = "d2l-pass" if answer is right else "d2l-wrong"
                if status not in str(filled.outputs):
                    self.failures.append(f"{cell.id}, {kind}: no {status} card")
                answered.add(cell.id)
        return answered

    def note(self, how: str, cell, failed: str) -> None:
        """Compare what a cell gives with what is stored for it."""
        stored = next(c for c in self.stored.cells if c.id == cell.id)
        failed = failed or difference(stored.outputs, cell.outputs, self.pictures)
        if failed:
            self.failures.append(f"{cell.id}, {how}: {failed}")
