"""Run cells as a notebook does, in the worker of a page (see `page/worker.mjs`).

The build ships this package and the library to the browser. What a cell puts out goes to `send`,
piece by piece, as the output of a notebook: streams, results, displays, an error.
"""

import ast
import base64
import builtins
import io
import json
import linecache
import logging
import os
import re
import sys
import tokenize
import traceback
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from copy import copy
from types import ModuleType, SimpleNamespace
from typing import Any

from IPython.lib.pretty import pretty

from live_cells import display
from live_cells.library import KEPT, MODELS, library_of
from live_cells.plan import Cell, imported, plan_cells

MOST_LINES, MOST_LETTERS = 1000, 100_000  # of what a cell prints
MOST_DRAWN = 5_000_000  # letters of one thing that is displayed, as of a drawing
FORMS = {
    "text/html": "_repr_html_",
    "text/markdown": "_repr_markdown_",
    "text/latex": "_repr_latex_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
}
MAGIC = (r"^([%!]\S*)", r"=\s*([%!]\S*)", r"^(\?)", r"(\?)$")  # what is of IPython alone
UNDERSCORES = ("_", "__", "___")
MOST_SAID = 2000  # letters of an error
FRAMES = 6  # of a traceback: of a recursion, its ends
NO_INPUT = "nobody is asked here: write what you would type into the code"
NO_TORCH = (
    "this needs PyTorch, which does not run in a browser. Run the chapter as a notebook: "
    "its first lines say how"
)

Send = Callable[[str], None]  # takes a piece of output as JSON


class Printed(io.TextIOBase):
    """What a cell prints: sent when it is printed, and no more than a page can hold.

    Nothing waits here for a later print, since there may be none: an endless loop, a stop. It is
    the page that draws a flood in heaps. What no longer fits is counted, and said when it begins.
    """

    encoding = "utf-8"

    def __init__(self, send: Callable[[dict[str, Any]], None]) -> None:
        self.send = send
        self.lines = self.letters = 0
        self.in_line = 0  # letters that a carriage return gives back
        self.lines_out = self.letters_out = 0
        self.clearing = False  # what is shown goes when more comes

    def writable(self) -> bool:
        """Tell that it can be written to."""
        return True

    def write(self, text: str) -> int:
        """Send what still fits, and count the rest."""
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        kept = "" if self.letters_out else self.fitting(text)
        if kept:
            self.put({"kind": "stream", "text": kept})
        self.leave_out(text[len(kept) :])
        return len(text)

    def put(self, piece: dict[str, Any]) -> None:
        """Send a piece of output, into an empty cell where that was asked for."""
        if self.clearing:
            self.clearing = False
            self.send({"kind": "clear"})
        self.send(piece)

    def fitting(self, text: str) -> str:
        """Return what a page has room for, and count it in."""
        end = -1
        for _ in range(MOST_LINES - self.lines):
            if (end := text.find("\n", end + 1)) < 0:
                break
        kept = text if end < 0 and self.lines < MOST_LINES else text[: end + 1]
        for part in re.split(r"(\r(?!\n)|\n)", kept):
            if part == "\r":
                self.letters -= self.in_line
            if part in ("\r", "\n"):
                self.in_line = 0
            else:
                self.in_line += len(part)
                self.letters += len(part)
        if self.letters > MOST_LETTERS:
            kept = kept[: max(len(kept) - (self.letters - MOST_LETTERS), 0)]
        self.lines += kept.count("\n")
        return kept

    def leave_out(self, text: str) -> None:
        """Count what a page has no room for, and say the first time that there is more."""
        if text:
            if not self.letters_out:
                self.put({"kind": "cut", "text": "More printed, which the page does not show."})
            self.lines_out += text.count("\n")
            self.letters_out += len(text)

    def show(self, data: dict[str, Any], **more: Any) -> None:
        """Send what is displayed, which counts as a line; of its words those that have room."""
        words = data.get("text/plain", "")
        large = any(len(form) > MOST_DRAWN for form in data.values() if isinstance(form, str))
        if large or self.lines >= MOST_LINES:
            self.leave_out("\n")
            return
        self.lines += not more.get("update")  # which takes the place of another
        self.put({"kind": "display", "data": data | {"text/plain": words[:MOST_LETTERS]}, **more})
        self.leave_out(words[MOST_LETTERS:])

    def clear(self, wait: bool = False) -> None:
        """Take away what the cell has shown: now, or when more comes."""
        self.lines = self.letters = self.in_line = self.lines_out = self.letters_out = 0
        self.clearing = wait
        if not wait:
            self.send({"kind": "clear"})

    def close_cell(self) -> None:
        """Say how much was left out."""
        if self.letters_out > 1:
            what = f"{self.lines_out:,} more lines"
            if self.lines_out < 2:
                what = f"{self.letters_out:,} more letters"
            self.put({"kind": "cut", "text": f"{what} printed, which the page does not show."})


class Runner:
    """The names of a page, what has run on it, and how a cell is run."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.names: dict[str, Any] = {"__name__": "__main__"} | dict.fromkeys(UNDERSCORES, "")
        self.last: list[Any] = ["", "", ""]
        self.ran: dict[str, str] = {}  # the code of each cell, as it has run
        self.callbacks: list[Callable[[], None]] = []
        self.printed = Printed(self.post)
        be_a_notebook(self)
        logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)  # it says what it does
        builtins.input = no_input

    def send(self, piece: dict[str, Any]) -> None:
        """Send a piece of output after what was printed."""
        self.printed.put(piece)

    def post(self, piece: dict[str, Any]) -> None:
        """Send it as JSON."""
        self._send(json.dumps(piece))

    # --- what to run ---

    def prepare(self, page: str, target: str, kept: str = "[]") -> str:
        """Return, as JSON, the cells to run for one of them, and the libraries they need.

        The library is told what is kept of all pages, a list of texts.
        """
        os.environ[KEPT] = kept
        cells = plan_cells(
            [
                {
                    "cell_type": "code",
                    "source": flush_left(cell["code"]),
                    "metadata": {},
                    "id": cell["id"],
                }
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
            thing.startswith(MODELS) and name in self.mentioned
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
        self.printed = Printed(self.post)
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
            if isinstance(error, MemoryError):
                self.forget(cell)
            return False
        finally:
            self.printed.close_cell()
        if whole:
            self.ran[cell.id] = cell.code
        return True

    def forget(self, cell: Cell) -> None:
        """Drop what a cell has filled the memory with, so that the others have room to run."""
        for name in cell.defines:
            self.names.pop(name, None)
        for other in self.needed:
            if {*other.defines} & {*cell.defines}:
                self.ran.pop(other.id, None)

    def execute(self, cell: Cell, whole: bool) -> None:
        """Run the code of a cell and show its last value."""
        file = f"<{cell.id}>"
        lines = list(io.StringIO(cell.code))  # as Python counts them: U+2028 ends none
        linecache.cache[file] = (len(cell.code), None, lines, file)
        tree = ast.parse(cell.code, file)
        body = [self.lean(node, whole) for node in tree.body]
        if not whole:
            body = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
        tree.body = [node for node in body if not is_empty(node)]
        last = None
        end = tree.body[-1] if tree.body else None
        if isinstance(end, ast.Expr) and not is_silent(cell.code):
            tree.body.pop()
            last = ast.Expression(end.value)
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
        """Show the value of the last line, as a notebook does, and keep the last three."""
        if value is not None:
            own = zip(UNDERSCORES, self.last, strict=True)
            if all(
                self.names.get(name, mine) is mine for name, mine in own
            ):  # none is the reader's
                self.last = [value, *self.last[:2]]
                self.names.update(zip(UNDERSCORES, self.last, strict=True))
            self.display(value)

    def display(
        self,
        *things: Any,
        raw: bool = False,
        clear: bool = False,
        display_id: Any = None,
        **more: Any,
    ) -> display.Handle | None:
        """Stand for `IPython.display.display`."""
        if clear:
            self.printed.clear(wait=True)
        handle = display.Handle(self.display, display_id) if display_id else None
        told = {key: more[key] for key in ("update",) if more.get(key)}
        if handle:
            told["display_id"] = handle.display_id
        for thing in things:
            own = None if raw else method_of(thing, "_ipython_display_")
            with suppress(Exception):  # what fails to show itself is shown as anything else
                if own:
                    own()
                    continue
            self.printed.show(sendable(thing) if raw else forms_of(thing), **told)
        return handle

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
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return set()


def is_empty(node: ast.stmt) -> bool:
    """Tell whether nothing is left of an import."""
    return isinstance(node, ast.Import | ast.ImportFrom) and not node.names


def flush_left(code: str) -> str:
    r"""Return code without the blanks before its first line, as IPython takes what was copied.

    >>> flush_left("  if x:\n    y")
    'if x:\n  y'
    """
    first = code[: len(code) - len(code.lstrip(" \t"))]
    return re.sub(f"^{first}", "", code, flags=re.MULTILINE) if first else code


def is_silent(code: str) -> bool:
    """Tell whether a cell ends with a semicolon, which keeps its value to itself.

    >>> is_silent("f(x);"), is_silent("f(x);  # quiet"), is_silent("f(x)  # all;")
    (True, True, False)
    """
    passed_over = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER)
    tokens = tokenize.generate_tokens(io.StringIO(code).readline)
    return [one.string for one in tokens if one.type not in passed_over][-1:] == [";"]


def method_of(thing: Any, name: str) -> Callable[..., Any] | None:
    """Return a method by which a thing shows itself, as IPython finds it.

    A class has none: they are for its instances. Nor has a thing that has any name it is asked for.
    """
    if isinstance(thing, type):
        return None
    try:
        if getattr(thing, "_ipython_canary_method_should_not_exist_", None) is not None:
            return None
        found = getattr(thing, name, None)
    except Exception:
        return None
    return found if callable(found) else None


def form_of(thing: Any, name: str) -> Any:
    """Return what a method for showing gives; nothing if there is none, or if it fails."""
    method = method_of(thing, name)
    # the bundle is asked for with all forms and without any, and may insist on being asked so
    asked = {"include": None, "exclude": None} if name == "_repr_mimebundle_" else {}
    try:
        return method(**asked) if method else None
    except Exception:
        return None


def forms_of(thing: Any) -> dict[str, Any]:
    """Return the forms in which a page can show something; its text at least."""
    found = form_of(thing, "_repr_mimebundle_")
    found = found[0] if isinstance(found, tuple) and found else found
    data = sendable(found) if isinstance(found, dict) else {}
    if "text/plain" not in data:
        data["text/plain"] = written(thing)
    for form, name in FORMS.items():
        if form not in data and (shown := form_of(thing, name)) is not None:
            data |= sendable({form: shown[0] if isinstance(shown, tuple) else shown})
    return data


def sendable(data: dict[Any, Any]) -> dict[str, str]:
    """Return the forms that are texts, pictures as base64; the others nobody can show."""
    texts = {}
    for form, shown in data.items():
        if isinstance(shown, bytes):
            picture = form in ("image/png", "image/jpeg")
            shown = (
                base64.b64encode(shown).decode() if picture else shown.decode("utf-8", "replace")
            )
        if isinstance(shown, str):
            texts[str(form)] = shown
    return texts


def written(thing: Any) -> str:
    """Write a value as a notebook does, with IPython's own printer.

    >>> written([1.5, "a"]), written(dict)
    ("[1.5, 'a']", 'dict')
    """
    try:
        text = repr(thing)
        # to lay out what no page can hold would take minutes
        return text[: MOST_LETTERS + 1] if len(text) > MOST_LETTERS else pretty(thing)
    except Exception as error:  # the reader's own class
        return f"<{type(thing).__name__}: its repr failed with {type(error).__name__}: {error}>"


def no_input(prompt: object = "") -> str:
    """Stand for `input`."""
    raise RuntimeError(f"{prompt or 'input()'}: {NO_INPUT}")


def described(error: BaseException) -> dict[str, Any]:
    """Return what a reader should know of an error: its lines in their own code, and its words."""
    if isinstance(error, SystemExit):
        return {
            "kind": "error",
            "name": "SystemExit",
            "says": f"the code asked to stop{'' if error.code is None else f': {error.code}'}",
            "lines": [],
        }
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("torch"):
        return {"kind": "error", "name": "No PyTorch", "says": NO_TORCH, "lines": own_lines(error)}
    name, says = type(error).__name__, words_of(error)
    says = (
        says
        if len(says) < MOST_SAID
        else f"{says[:MOST_SAID]} … and {len(says) - MOST_SAID:,} more letters"
    )
    if isinstance(error, SyntaxError) and error.filename in linecache.cache:
        return {"kind": "error", "name": name, "says": said_of(error), "lines": [at(error)]}
    if isinstance(error, MemoryError):
        says = says or "the memory that a page may take is full"
    return {"kind": "error", "name": name, "says": says, "lines": own_lines(error)}


def words_of(error: BaseException) -> str:
    """Return what an error says, with its notes, what it holds, and the one that it came from."""
    try:
        words = [str(error), *getattr(error, "__notes__", [])]
    except Exception:  # the reader's own class
        return ""
    for one in getattr(error, "exceptions", ()):
        words.append(f"- {type(one).__name__}: {words_of(one)}")
    if (first := error.__cause__) or (
        not error.__suppress_context__ and (first := error.__context__)
    ):
        words.append(f"(first: {type(first).__name__}: {words_of(first)})")
    return "\n".join(words)


def at(error: SyntaxError) -> dict[str, Any]:
    """Return the line of a cell that is no Python, with a mark below where it begins to be none.

    An error of the compiler, as `return` outside of a function, comes without its text.
    """
    line = error.lineno or 1
    code = linecache.getline(str(error.filename), line).rstrip()
    mark = f"\n{' ' * (error.offset - 1)}^" if error.offset else ""
    return {"line": line, "code": code + mark, "where": ""}


def said_of(error: SyntaxError) -> str:
    """Return what a reader should know of it, and of what a page cannot do."""
    line = linecache.getline(str(error.filename), error.lineno or 1).strip()
    for pattern in MAGIC:
        if error.msg.startswith("invalid syntax") and (found := re.search(pattern, line)):
            return f"a page knows only Python, and no {found[1]}: run the chapter as a notebook"
    if "outside" in error.msg and "await" in error.msg:
        return f"{error.msg}: a page waits for nothing; run the chapter as a notebook"
    return error.msg


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

    package = ModuleType("IPython")
    package.version_info = (8, 24)  # type: ignore[attr-defined]
    package.get_ipython = get_ipython  # type: ignore[attr-defined]
    package.display = display.module(runner)  # type: ignore[attr-defined]
    sys.modules |= {"IPython": package, "IPython.display": package.display}
    runner.names |= {"display": runner.display, "get_ipython": get_ipython}
