"""Run one learner's notebook and note what its checks find. A program of its own, run by `grade`.

    python -m d2lmini.exercises.notebook NOTEBOOK RESULTS SECONDS MEGABYTES

IPython runs the cells, as it does for Jupyter: a cell ends where it fails, and the next one goes
on. What has been found is written after every cell, so that it is there even if a later cell never
ends.
"""

import ast
import json
import os
import re
import sys
import traceback
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

__all__ = ["as_python", "checked", "code_cells", "limit_resources", "run", "text_of"]

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


def shell_for_grading() -> Any:
    """Return IPython's own shell, in which a cell starts no other program and asks nobody."""
    from IPython.core.error import UsageError
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.core.magics.script import ScriptMagics
    from IPython.utils.text import SList

    class Shell(InteractiveShell):
        def system(self, command: str) -> None:
            """Leave out ``!pip install``."""

        def showtraceback(self, *error: Any, **how: Any) -> None:
            """Say nothing: `errors_of` does."""

        showsyntaxerror = showtraceback

        def enable_gui(self, gui: str | None = None) -> None:
            """Open no window for a plot."""

        def getoutput(self, *command: Any, **how: Any) -> Any:
            """Return nothing for ``files = !ls``, in the form that IPython gives it."""
            return SList()

        def run_line_magic(self, name: str, line: str, _stack_depth: int = 1) -> Any:
            """Leave out what only another program knows, such as a setting of its plots."""
            with suppress(UsageError):
                return super().run_line_magic(name, line, _stack_depth + 1)

    setattr(ScriptMagics, "shebang", lambda *script: None)  # noqa: B010, ``%%bash`` and the like
    shell = Shell.instance(history_manager=None)
    return shell


def errors_of(result: Any) -> list[str]:
    """Return why a cell failed; a cell of a language that nobody knows here did not."""
    error = result.error_before_exec or result.error_in_exec
    if error is None or type(error).__name__ == "UsageError":
        return []
    lines = [
        line
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename.startswith(("<ipython-input", "<cell"))
    ]
    return [_error(error) + (f" (line {lines[-1]})" if lines else "")]


def _error(error: BaseException) -> str:
    try:
        message = str(error)
    except BaseException:
        message = ""
    return f"{type(error).__name__}: {message}"[:300]


def run(cells: list[str], results: Path) -> None:
    """Run the cells one after the other, each whatever the ones before it did."""
    from d2lmini.exercises import _last

    shell, process = shell_for_grading(), os.getpid()
    sys.path[0] = ""  # the folder of the moment, as in a notebook
    failed: list[dict[str, Any]] = []
    for number, source in enumerate(cells, 1):
        _write(results, _last, failed, number)
        errors = errors_of(shell.run_cell(source))
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
