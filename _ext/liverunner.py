"""Run cells as a notebook does, in the worker of a page (see `chapters/_static/live/worker.mjs`).

The build ships this file, `livecells.py` and the library to the browser. What a cell puts out goes
to `send`, piece by piece, as the output of a notebook: streams, results, displays, an error.
"""

import ast
import builtins
import io
import json
import linecache
import logging
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from copy import copy
from pprint import pformat
from types import ModuleType, SimpleNamespace
from typing import Any

from livecells import Cell, imported, library_of, plan_cells

MOST_LINES, MOST_LETTERS = 1000, 100_000  # of what a cell prints
MOST_DRAWN = 5_000_000  # letters of one thing that is displayed, as of a drawing
EVERY = 0.1  # seconds between two looks at what a cell prints
FRAMES = 6  # of a traceback: of a recursion, its ends
NO_INPUT = "nobody is asked here: write what you would type into the code"
NO_TORCH = (
    "this needs PyTorch, which does not run in a browser. Run the chapter as a notebook: "
    "its first lines say how"
)

Send = Callable[[str], None]  # takes a piece of output as JSON


class Printed(io.TextIOBase):
    """What a cell prints: sent while it runs, and no more than a page can hold."""

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self.send = send
        self.waiting: list[str] = []
        self.lines = self.letters = self.left_out = 0
        self.cut = False
        self.sent = time.monotonic()

    def writable(self) -> bool:
        """Tell that it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Keep what still fits, count the rest, and send it from time to time."""
        if self.left_out or not self.fits(text):
            self.left_out += text.count("\n")
            return len(text)
        self.waiting.append(text)
        if time.monotonic() - self.sent > EVERY:
            self.flush()
        return len(text)

    def fits(self, text: str) -> bool:
        """Count a text in; of one that does not fit, keep the lines that do."""
        room = MOST_LETTERS - self.letters
        rows = text.splitlines(keepends=True)[: MOST_LINES - self.lines]
        kept = "".join(rows)[: max(room, 0)]
        self.letters += len(kept)
        self.lines += kept.count("\n")
        if kept == text:
            return True
        self.waiting.append(kept)
        self.left_out = -kept.count("\n")
        return False

    def admits(self, data: dict[str, Any]) -> bool:
        """Count in what is displayed, as a line; cut its words, or tell that there is no room."""
        words = data.get("text/plain", "")
        if len(words) > MOST_LETTERS:
            data["text/plain"], self.cut = words[:MOST_LETTERS], True
        large = any(len(form) > MOST_DRAWN for form in data.values() if isinstance(form, str))
        if large or self.lines >= MOST_LINES:
            self.left_out += 1
            return False
        self.lines += 1
        return True

    def flush(self) -> None:
        """Send what waits."""
        self.sent = time.monotonic()
        if self.waiting:
            self.send({"kind": "stream", "text": "".join(self.waiting)})
            self.waiting.clear()

    def close_cell(self) -> None:
        """Send the rest, and say how much was left out."""
        self.flush()
        if self.left_out or self.cut:
            what = f"{self.left_out:,} more lines" if self.left_out > 1 else "More"
            self.send({"kind": "note", "text": f"{what} printed, which the page does not show."})


class Runner:
    """The names of a page, what has run on it, and how a cell is run."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.ran: dict[str, str] = {}  # the code of each cell, as it has run
        self.callbacks: list[Callable[[], None]] = []
        self.printed = Printed(self.send)
        be_a_notebook(self)
        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it says what it does
        builtins.input = no_input

    def send(self, piece: dict[str, Any]) -> None:
        """Send a piece of output."""
        if piece["kind"] != "stream":
            self.printed.flush()
        self._send(json.dumps(piece))

    # --- what to run ---

    def prepare(self, page: str, target: str) -> str:
        """Return, as JSON, the cells to run for one of them, and the libraries they need."""
        cells = plan_cells(
            [
                {"cell_type": "code", "source": cell["code"], "metadata": {}, "id": cell["id"]}
                for cell in json.loads(page)
            ]
        )
        place = next(number for number, cell in enumerate(cells) if cell.id == target)
        target_cell = cells[place]
        self.needed = [*(cells[number] for number in target_cell.needs), target_cell]
        self.whole = {cells[number].id for number in target_cell.whole} | {target}
        used = (cell for cell in self.needed if cell.id in self.whole)
        self.mentioned = {name for cell in used for name in mentions(cell)}
        things = [
            thing
            for cell in self.needed
            for name, thing in cell.imports.items()
            if self.is_wanted(name, thing)
        ]
        steps = [cell.id for cell in self.needed[:-1] if cell.imports or self.must_run(cell)]
        libraries = sorted({library_of(thing) for thing in things} - {"", "torch"})
        if self.uses_models():
            libraries.append("data")
        return json.dumps({"steps": [*steps, target], "libraries": libraries})

    def uses_models(self) -> bool:
        """Tell whether the weights of the stored models, which are large, are used."""
        return any(
            thing.startswith("d2lmini.models") and name in self.mentioned
            for cell in self.needed
            for name, thing in cell.imports.items()
        )

    def is_wanted(self, name: str, thing: str) -> bool:
        """Tell whether an import is to be made: heavy libraries only for what is used."""
        return not library_of(thing) or name in self.mentioned

    def must_run(self, cell: Cell) -> bool:
        """Tell whether all of a cell above has to run; else its imports will do."""
        return cell.id in self.whole and self.ran.get(cell.id) != cell.code

    # --- running ---

    def run(self, number: str) -> bool:
        """Run one of the cells that were prepared; return whether it came to its end."""
        cell = next(cell for cell in self.needed if cell.id == number)
        whole = cell is self.needed[-1] or self.must_run(cell)
        self.printed = Printed(self.send)
        if whole:
            self.ran.pop(cell.id, None)
        try:
            with redirect_stdout(self.printed), redirect_stderr(self.printed):
                try:
                    self.execute(cell, whole)
                finally:  # of a cell that fails too, as in a notebook; else the next would show it
                    self.show_figures()
                    for callback in list(self.callbacks):
                        callback()
        except BaseException as error:  # an exit, an interrupt: nothing may end the worker
            self.send(described(error))
            return False
        finally:
            self.printed.close_cell()
        if whole:
            self.ran[cell.id] = cell.code
        return True

    def execute(self, cell: Cell, whole: bool) -> None:
        """Run the code of a cell and show its last value."""
        file = f"<{cell.id}>"
        lines = cell.code.splitlines(keepends=True)
        linecache.cache[file] = (len(cell.code), None, lines, file)
        tree = ast.parse(cell.code, file)
        body = [self.lean(node, whole) for node in tree.body]
        if not whole:
            body = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        tree.body = [node for node in body if not is_empty(node)]
        last = None
        if tree.body and isinstance(tree.body[-1], ast.Expr) and not is_silent(cell.code):
            last = ast.Expression(tree.body.pop().value)
        exec(compile(tree, file, "exec"), self.names)
        if last is not None:
            self.show_result(eval(compile(last, file, "eval"), self.names))

    def lean(self, node: ast.stmt, whole: bool) -> ast.stmt:
        """Return an import without the names that are heavy and not used.

        PyTorch in a cell that runs as a whole is the reader's own wish, who is told that it fails.
        """
        if isinstance(node, ast.Import | ast.ImportFrom):
            kept = []
            for alias in node.names:
                alone = copy(node)
                alone.names = [alias]
                if all(
                    self.is_wanted(name, thing) or (whole and library_of(thing) == "torch")
                    for name, thing in imported(alone)
                ):
                    kept.append(alias)
            node.names = kept
        return node

    # --- showing ---

    def show_result(self, value: Any) -> None:
        """Show the value of the last line, as a notebook does."""
        if value is not None:
            self.names["_"] = value
            self.display(value)

    def display(self, *things: Any, raw: bool = False, **ignored: Any) -> None:
        """Stand for `IPython.display.display`."""
        for thing in things:
            if not raw and hasattr(thing, "_ipython_display_"):
                thing._ipython_display_()
            else:
                data = dict(thing) if raw else forms_of(thing)
                if self.printed.admits(data):
                    self.send({"kind": "display", "data": data})

    def show_figures(self) -> None:
        """Show what was drawn with pyplot."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        for number in pyplot.get_fignums() if pyplot else []:
            drawn = io.StringIO()
            pyplot.figure(number).savefig(drawn, format="svg", bbox_inches="tight")
            self.send({"kind": "display", "data": {"image/svg+xml": drawn.getvalue()}})
        if pyplot:
            pyplot.close("all")


def mentions(cell: Cell) -> set[str]:
    """Return all names that stand in a cell, but in its imports."""
    try:
        return {node.id for node in ast.walk(ast.parse(cell.code)) if isinstance(node, ast.Name)}
    except SyntaxError:
        return set()


def is_empty(node: ast.stmt) -> bool:
    """Tell whether nothing is left of an import."""
    return isinstance(node, ast.Import | ast.ImportFrom) and not node.names


def is_silent(code: str) -> bool:
    """Tell whether a cell ends with a semicolon, which keeps its value to itself.

    >>> is_silent("f(x);"), is_silent("f(x)  # all;")
    (True, False)
    """
    return code.rstrip().endswith(";") and "#" not in code.splitlines()[-1]


def forms_of(thing: Any) -> dict[str, Any]:
    """Return the forms in which a page can show something."""
    if hasattr(thing, "_repr_mimebundle_"):
        found = thing._repr_mimebundle_()
        return dict(found[0] if isinstance(found, tuple) else found)
    data = {"text/plain": written(thing)}
    if hasattr(thing, "_repr_html_") and not isinstance(thing, type):
        data["text/html"] = thing._repr_html_()
    return data


def written(thing: Any) -> str:
    """Write a value as a notebook does: long lists over several lines.

    >>> written([1.5, "a"])
    "[1.5, 'a']"
    """
    text = repr(thing)
    if len(text) > MOST_LETTERS:  # to lay it out would take minutes
        return text[: MOST_LETTERS + 1]
    if len(text) > 79 and isinstance(thing, list | tuple | dict | set):
        return pformat(thing, width=80, sort_dicts=False)
    return text


def no_input(prompt: object = "") -> str:
    """Stand for `input`."""
    raise RuntimeError(f"{prompt or 'input()'}: {NO_INPUT}")


def described(error: BaseException) -> dict[str, Any]:
    """Return what a reader should know of an error: its lines in their own code, and its words."""
    if isinstance(error, SystemExit):
        return {
            "kind": "error",
            "name": "SystemExit",
            "says": "the code asked to stop",
            "lines": [],
        }
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("torch"):
        return {"kind": "error", "name": "No PyTorch", "says": NO_TORCH, "lines": own_lines(error)}
    name = type(error).__name__
    try:
        says = str(error)
    except Exception:  # the reader's own class
        says = ""
    if isinstance(error, SyntaxError) and str(error.filename).startswith("<"):
        line = {"line": error.lineno or 1, "code": (error.text or "").rstrip(), "where": ""}
        if error.offset:
            line["code"] += "\n" + " " * (error.offset - 1) + "^"
        return {"kind": "error", "name": name, "says": error.msg, "lines": [line]}
    if isinstance(error, MemoryError):
        says = says or "the memory that a page may take is full"
    return {"kind": "error", "name": name, "says": says[:2000], "lines": own_lines(error)}


def own_lines(error: BaseException) -> list[dict[str, Any]]:
    """Return the lines of the reader's own code that led to an error."""
    frames = [
        {
            "line": frame.lineno,
            "code": (frame.line or "").rstrip(),
            "where": "" if frame.name == "<module>" else frame.name,
            "cell": frame.filename[1:-1],
        }
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename in linecache.cache and frame.filename.startswith("<")
    ]
    if len(frames) > FRAMES:
        frames = [*frames[: FRAMES // 2], {"line": 0}, *frames[-FRAMES // 2 :]]
    return frames


def be_a_notebook(runner: Runner) -> None:
    """Give the library what it asks a notebook for: a shell, its events, a display."""

    class Shell:
        # without the form of a figure that no page shows, and that takes longest
        display_formatter = SimpleNamespace(active_types=("text/html", "text/plain"))
        events = SimpleNamespace(
            register=lambda event, call: runner.callbacks.append(call),
            unregister=lambda event, call: runner.callbacks.remove(call),
        )

    shell = Shell()

    def get_ipython() -> Shell | None:
        caller = sys._getframe(1).f_globals.get("__name__", "")
        return None if caller.startswith("matplotlib") else shell  # which wants all of IPython

    package, display = ModuleType("IPython"), ModuleType("IPython.display")
    package.version_info = (8, 24)  # type: ignore[attr-defined]
    package.get_ipython = get_ipython  # type: ignore[attr-defined]
    package.display = display  # type: ignore[attr-defined]
    display.display = runner.display  # type: ignore[attr-defined]
    sys.modules |= {"IPython": package, "IPython.display": display}
    runner.names["display"] = runner.display
