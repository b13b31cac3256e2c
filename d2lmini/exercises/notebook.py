"""Run one learner's notebook and note what its checks find. A program of its own, run by `grade`.

    python -m d2lmini.exercises.notebook NOTEBOOK RESULTS SECONDS MEGABYTES

It needs IPython, whose own rules say what in a cell is no Python, but no Jupyter. What has been
found is written after every cell, so that it is there even if a later cell never ends.
"""

import __future__

import ast
import asyncio
import inspect
import io
import json
import linecache
import os
import re
import shlex
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["Shell", "as_python", "checked", "code_cells", "limit_resources", "run", "text_of"]

LARGEST_FILE = 64 * 2**20  # bytes
CONFLICT = re.compile(r"^(<{7} |={7}$|>{7} )", re.MULTILINE)
CHECK = re.compile(r"^@(?:\w+\.)*check\b.*\n(?:@.*\n)*(?:async )?(?:def|class) (\w+)", re.MULTILINE)


def code_cells(path: Path) -> list[str]:
    """Return the code cells of a notebook as plain Python; ValueError if it is not a notebook."""
    text = text_of(path)
    if not text.strip():
        raise ValueError("not a notebook: the file is empty")
    try:
        notebook = json.loads(text)
        cells = notebook["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        if isinstance(error, json.JSONDecodeError) and CONFLICT.search(text):
            why = "it holds the marks of a merge that was not finished: take one side"
        elif '"worksheets"' in text:
            why = "it has format 3: save it again with Jupyter, which writes format 4"
        raise ValueError(f"not a notebook: {why}") from error
    return [as_python(source) for source in sources]


def text_of(path: Path) -> str:
    """Return what a file says; ValueError for what has no end, or is no text."""
    if path.exists() and not path.is_file():
        raise ValueError("not a notebook: a folder" if path.is_dir() else "not a file")
    if path.stat().st_size > LARGEST_FILE:
        raise ValueError(f"larger than {LARGEST_FILE >> 20} MB: clear the outputs")
    data = path.read_bytes()
    try:  # an editor may have written it in UTF-16, or with a mark in front
        return data.decode(json.detect_encoding(data))
    except UnicodeDecodeError as error:
        raise ValueError(f"not a notebook: UnicodeDecodeError: {error}") from error


def as_python(source: str) -> str:
    """Turn magics, ``!`` and ``?`` into calls of ``get_ipython()``, by IPython's own rules."""
    try:
        rules = import_module("IPython.core.inputtransformer2")
    except ImportError:
        raise ValueError("grading needs IPython to read cells: pip install ipython") from None
    try:
        text: str = rules.TransformerManager().transform_cell(source)
    except Exception:  # a cell that Jupyter could not run either
        return source
    return text


def parsed(source: str, file: str = "<cell>") -> list[ast.stmt]:
    """Return the statements of a cell; SyntaxError for whatever Python cannot read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a learner may have escaped for nothing
            return ast.parse(source, file).body
    except (
        ValueError,
        RecursionError,
        MemoryError,
    ) as error:  # half an emoji, brackets without end
        raise SyntaxError(str(error) or "too deep") from error


def checked(cells: list[str]) -> dict[str, int]:
    """Return the names that stand under ``@check`` or in its brackets, each with its last cell."""
    names: dict[str, int] = {}
    checks = {"check"}
    for number, source in enumerate(cells, 1):
        try:
            nodes = [node for statement in parsed(source) for node in ast.walk(statement)]
        except SyntaxError:
            found = set(CHECK.findall(source))
        else:
            checks |= {name for node in nodes for name in _other_names(node)}
            found = {name for node in nodes for name in _checked_by(node, checks)}
        names |= dict.fromkeys(found, number)
    return names


def _other_names(node: ast.AST) -> list[str]:
    """Return the name that an import gives to ``check``."""
    aliases = node.names if isinstance(node, ast.ImportFrom) else []
    return [alias.asname for alias in aliases if alias.name == "check" and alias.asname]


def _checked_by(node: ast.AST, checks: set[str]) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        found = [one for one in node.decorator_list if _is_check(one, checks)]
        return [_name_given(found[0]) or node.name] if found else []
    match node:
        case ast.Call(ast.Attribute(attr="run_cell_magic"), [_, _, ast.Constant(str(body))]):
            return list(checked([as_python(body)]))
    if isinstance(node, ast.Call) and _is_check(node, checks) and node.args:
        (answer, *_) = node.args
        named = _name_given(node) or (answer.id if isinstance(answer, ast.Name) else "")
        return [named] if named else []
    return []


def _is_check(node: ast.expr, checks: set[str]) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    return getattr(function, "id", None) in checks or getattr(function, "attr", None) == "check"


def _name_given(node: ast.expr) -> str:
    keywords = node.keywords if isinstance(node, ast.Call) else []
    given = [
        k.value.value for k in keywords if k.arg == "name" and isinstance(k.value, ast.Constant)
    ]
    return str(given[0]) if given else ""


def limit_resources(seconds: int, megabytes: int) -> None:
    """Limit this process, where the system can: CPU time, memory, size of files."""
    if sys.platform in ("win32", "emscripten"):
        return
    import resource

    for kind, most in (
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_AS, megabytes * 2**20),
        (resource.RLIMIT_FSIZE, LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, hard))


class Shell:
    """Stands for the shell of a notebook: runs what is Python in a magic, leaves out the rest.

    As in a notebook, the names are those of ``__main__``, and an event loop is running.
    """

    RUNS = ("time", "capture", "prun")  # their body is Python whose names stay

    def __init__(self) -> None:
        self.flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self.file = "<notebook>"
        self.errors: list[str] = []  # of the cell that is running
        self.loop = asyncio.new_event_loop()
        self.module = ModuleType("__main__")
        self.namespace = vars(self.module)
        self.namespace["display"] = lambda *things, **how: None
        self.namespace["get_ipython"] = lambda: self

    def run_cell(self, source: str, file: str) -> list[str]:
        """Run one statement after the other, each whatever the ones before did; return errors."""
        self.file, self.errors = file, []
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        self._run_all(source)
        return self.errors

    def _run_all(self, source: str) -> Any:
        """Run the statements of a text; return the value of the last one, if it has one."""
        try:
            statements = parsed(source, self.file)
        except SyntaxError as error:
            self.errors.append(_error(error))
            return None
        value = None
        for statement in statements:
            # SystemExit too is kept: the next statement is run all the same.
            value, raised = self._run(statement)
            if raised is not None:
                self.errors.append(f"{_error(raised)} (line {statement.lineno})")
        return value

    def _run(self, statement: ast.stmt) -> tuple[Any, BaseException | None]:
        """Run a statement, in the running loop; return its value or its error."""
        work = self._in_loop(statement)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self.loop.run_until_complete(work)
        try:  # a statement in a magic, whose statement is in the loop already
            work.send(None)
        except StopIteration as done:
            found: tuple[Any, BaseException | None] = done.value
            return found
        work.close()
        return None, RuntimeError("await in a magic")

    async def _in_loop(self, statement: ast.stmt) -> tuple[Any, BaseException | None]:
        value = None
        try:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                for alias in statement.names:  # holds for all that follows, as in a notebook
                    self.flags |= getattr(__future__, alias.name).compiler_flag
            tree: ast.Module | ast.Expression = ast.Module([statement], [])
            if isinstance(statement, ast.Expr):
                tree = ast.Expression(statement.value)
            mode = "eval" if isinstance(tree, ast.Expression) else "exec"
            code = compile(tree, self.file, mode, flags=self.flags, dont_inherit=True)
            value = eval(code, self.namespace)
            if code.co_flags & inspect.CO_COROUTINE:
                value = await value
        except BaseException as error:
            return None, error
        if "get_ipython" in _names_imported(statement):
            self.namespace["get_ipython"] = lambda: self  # IPython's own knows no shell here
        return value, None

    # What IPython's rules turn magics into

    def run_line_magic(self, name: str, line: str, *more: Any) -> Any:
        """Do what leaves a trace in the notebook: run ``%time x = 1``; leave out other magics."""
        if name in self.RUNS and name != "capture":
            return self._run_all(as_python(_without_options(name, line)))
        if name == "cd":
            os.chdir(Path(line.strip() or "~").expanduser())
        elif name == "run":
            path = Path(_words(line)[0]).expanduser()
            of_notebook = path.suffix == ".ipynb"
            for source in code_cells(path) if of_notebook else [as_python(text_of(path))]:
                self._run_all(source)
        elif name in ("env", "set_env") and (found := re.fullmatch(r"\s*(\w+)[ =](.*)", line)):
            os.environ[found[1]] = found[2].strip()
        return None

    def run_cell_magic(self, name: str, line: str, cell: str) -> Any:
        """Run the body of ``%%time``; write that of ``%%writefile``; leave out other languages."""
        if name in self.RUNS:
            if name == "capture" and (words := _words(line)):
                self.namespace[words[0]] = _captured()
            return self._run_all(as_python(cell))
        if name in ("writefile", "file"):
            mode = "a" if {"-a", "--append"} & {*line.split()} else "w"
            with Path(_words(line)[-1]).expanduser().open(mode, encoding="utf-8") as file:
                file.write(cell)
        return None

    def getoutput(self, command: str, *more: Any, **how: Any) -> Any:
        """Return nothing for ``files = !ls``, in the form that IPython gives it."""
        return import_module("IPython.utils.text").SList()

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **options: None


def _without_options(name: str, line: str) -> str:
    """Leave out what stands in front of the code.

    >>> _without_options("prun", "-s cumulative -q f(x)")
    'f(x)'
    """
    options = r"(\s*-([lsTD]\s*\S+|[rq]\b))*\s*" if name == "prun" else r"(--no-raise-error)?\s*"
    return re.sub(f"^{options}", "", line)


def _words(line: str) -> list[str]:
    """Return the words of a magic's line that are no options."""
    return [word for word in shlex.split(line) if not word.startswith("-")]


def _names_imported(statement: ast.stmt) -> list[str]:
    aliases = statement.names if isinstance(statement, ast.Import | ast.ImportFrom) else []
    return [alias.asname or alias.name for alias in aliases]


def _captured() -> Any:
    """Return what ``%%capture`` gives for a cell that printed nothing: here all is thrown away."""
    return import_module("IPython.utils.capture").CapturedIO(io.StringIO(), io.StringIO(), [])


def _error(error: BaseException) -> str:
    try:
        message = str(error)
    except BaseException:
        message = ""
    return f"{type(error).__name__}: {message}"[:300]


def run(cells: list[str], results: Path) -> None:
    """Run the cells one after the other, each whatever the ones before it did."""
    from d2lmini.exercises import _last

    shell, process = Shell(), os.getpid()
    sys.modules["__main__"] = shell.module  # where pickle and others look up what a cell defines
    sys.path[0] = ""  # the folder of the moment, as in a notebook
    failed: list[dict[str, Any]] = []
    for number, source in enumerate(cells, 1):
        _write(results, _last, failed, number)
        errors = shell.run_cell(source, f"<code cell {number}>")
        if os.getpid() != process:  # a copy that a cell has made of the process
            os._exit(0)
        failed += [{"cell": number, "error": error} for error in errors]
    _write(results, _last, failed, None)


def _write(results: Path, last: Any, failed: list[dict[str, Any]], running: int | None) -> None:
    """Write what is known when a cell begins, or, with no cell running, at the end."""
    found = [
        {
            "name": result.name,
            "status": result.status,
            "head": result.head,
            "mistake": result.mistake,
            "says": result.says,
        }
        for result in last.values()
    ]
    everything = {"results": found, "failed_cells": failed, "running": running}
    written = results.with_suffix(".part")
    written.write_text(json.dumps(everything), "utf-8")
    written.replace(results)


if __name__ == "__main__":
    given, where, *limits = sys.argv[1:]
    learners_cells = code_cells(Path(given))
    limit_resources(*map(int, limits))
    run(learners_cells, Path(where))
    sys.stderr.flush()
    os._exit(0)  # threads that a cell has left running end here
