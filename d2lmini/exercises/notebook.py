"""Run one learner's notebook and note what its checks find. A program of its own, run by `grade`.

    python -m d2lmini.exercises.notebook NOTEBOOK RESULTS SECONDS MEGABYTES

It needs IPython, whose own rules say what in a cell is no Python, but no Jupyter. What has been
found is written after every cell, so that it is there even if a later cell never ends.
"""

import __future__

import ast
import asyncio
import inspect
import json
import linecache
import re
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["Shell", "as_python", "checked", "code_cells", "limit_resources", "run"]

LARGEST_FILE = 64 * 2**20  # bytes
CHECK = re.compile(r"^@(?:\w+\.)*check\b.*\n(?:@.*\n)*(?:async )?(?:def|class) (\w+)", re.MULTILINE)


def code_cells(path: Path) -> list[str]:
    """Return the code cells of a notebook as plain Python; ValueError if it is not a notebook."""
    try:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a notebook: {type(error).__name__}: {error}") from error
    return [as_python(source) for source in sources]


def as_python(source: str) -> str:
    """Turn magics, ``!`` and ``?`` into calls of ``get_ipython()``, by IPython's own rules."""
    try:
        rules = import_module("IPython.core.inputtransformer2")
    except ImportError:
        raise ValueError("grading needs IPython to read cells: pip install ipython") from None
    try:
        text: str = rules.TransformerManager().transform_cell(source)
    except SyntaxError:  # a cell that Jupyter could not run either
        return source
    return text


def checked(cells: list[str]) -> dict[str, int]:
    """Return the names that stand under ``@check`` or in its brackets, each with its last cell."""
    names: dict[str, int] = {}
    for number, source in enumerate(cells, 1):
        try:
            tree = ast.parse(source)
        except SyntaxError:
            found = set(CHECK.findall(source))
        else:
            found = {name for node in ast.walk(tree) for name in _checked_by(node)}
        names |= dict.fromkeys(found, number)
    return names


def _checked_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        checks = [one for one in node.decorator_list if _is_check(one)]
        return [_name_given(checks[0]) or node.name] if checks else []
    if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "run_cell_magic":
        return list(checked([ast.literal_eval(node.args[2])]))
    if isinstance(node, ast.Call) and _is_check(node) and node.args:
        (answer, *_) = node.args
        named = _name_given(node) or (answer.id if isinstance(answer, ast.Name) else "")
        return [named] if named else []
    return []


def _is_check(node: ast.expr) -> bool:
    function = node.func if isinstance(node, ast.Call) else node
    return "check" in (getattr(function, "id", None), getattr(function, "attr", None))


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
    """Stands for the shell of a notebook: runs what is Python in a magic, leaves out the rest."""

    RUNS = ("time", "capture")  # their body is Python whose names stay

    def __init__(self) -> None:
        self.flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self.file = "<notebook>"
        self.namespace: dict[str, Any] = {
            "__name__": "__main__",
            "display": lambda *things, **how: None,
            "get_ipython": lambda: self,
        }

    def run_cell(self, source: str, file: str) -> list[str]:
        """Run one statement after the other, each whatever the ones before did; return errors."""
        self.file = file
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        try:
            statements = ast.parse(source, file).body
        except SyntaxError as error:
            return [_error(error)]
        errors = []
        for statement in statements:
            try:
                self._run(statement)
            except BaseException as error:  # SystemExit too: the next statement is run all the same
                errors.append(f"{_error(error)} (line {statement.lineno})")
        return errors

    def _run(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
            for alias in statement.names:  # holds for all that follows, as in a notebook
                self.flags |= getattr(__future__, alias.name).compiler_flag
        module = ast.Module([statement], [])
        code = compile(module, self.file, "exec", flags=self.flags, dont_inherit=True)
        result = eval(code, self.namespace)
        if inspect.iscoroutine(result):
            asyncio.run(result)

    # What IPython's rules turn magics into

    def run_line_magic(self, name: str, line: str, *more: Any) -> None:
        """Run the statement of ``%time x = 1``; leave out other magics."""
        if name in self.RUNS:
            self._run_text(line)

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        """Run the body of ``%%time``; write that of ``%%writefile``; leave out other languages."""
        if name in self.RUNS:
            self._run_text(cell)
        elif name == "writefile" and line.strip():
            Path(line.split()[-1]).write_text(cell, "utf-8")

    def _run_text(self, text: str) -> None:
        for statement in ast.parse(as_python(text.strip(" "))).body:
            self._run(statement)

    def getoutput(self, command: str, *more: Any, **how: Any) -> list[str]:
        """Return nothing for ``files = !ls``."""
        return []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *arguments, **options: None


def _error(error: BaseException) -> str:
    try:
        message = str(error)
    except BaseException:
        message = ""
    return f"{type(error).__name__}: {message}"[:300]


def run(cells: list[str], results: Path) -> None:
    """Run the cells one after the other, each whatever the ones before it did."""
    from d2lmini.exercises import _last

    shell = Shell()
    failed: list[dict[str, Any]] = []
    for number, source in enumerate(cells, 1):
        _write(results, _last, failed, number)
        errors = shell.run_cell(source, f"<code cell {number}>")
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
