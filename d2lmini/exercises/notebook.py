"""Run one learner's notebook and note what its checks find. A program of its own, run by `grade`.

    python -m d2lmini.exercises.notebook NOTEBOOK RESULTS SECONDS MEGABYTES

It needs neither Jupyter nor IPython. What has been found is written after every cell, so that it
is there even if a later cell never ends.
"""

import ast
import json
import linecache
import re
import sys
from pathlib import Path
from typing import Any

__all__ = ["code_cells", "limit_resources", "plain_python", "posed", "run"]

MAGIC = re.compile(r"^(\s*)[%!?].*$", re.MULTILINE)
LARGEST_FILE = 64 * 2**20  # bytes


def code_cells(path: Path) -> list[str]:
    """Return the code cells of a notebook as plain Python; ValueError if it is not a notebook."""
    try:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        sources = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
        return [plain_python("".join(source)) for source in sources]
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"not a notebook: {type(error).__name__}: {error}") from error


def plain_python(source: str) -> str:
    """Replace what only IPython understands (lines that start with %, ! or ?) by ``pass``."""
    try:
        ast.parse(source)
    except SyntaxError:
        return MAGIC.sub(r"\1pass", source)
    return source


def posed(cells: list[str]) -> set[str]:
    """Return the names of functions and classes that stand under ``@check``."""
    names = set()
    for source in cells:
        try:
            tree = ast.parse(source)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and any(
                "check" in (getattr(d, "id", None), getattr(d, "attr", None))
                for d in node.decorator_list
            ):
                names.add(node.name)
    return names


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


def run(cells: list[str], results: Path) -> None:
    """Run the cells one after the other, each whatever the ones before it did."""
    from d2lmini.exercises import _last

    failed: list[dict[str, Any]] = []
    namespace: dict[str, Any] = {"__name__": "__main__", "display": lambda *things, **how: None}
    for number, source in enumerate(cells, 1):
        name = f"<code cell {number}>"
        linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
        try:
            exec(compile(source, name, "exec"), namespace)
        except BaseException as error:  # SystemExit too: the next cell is run all the same
            failed.append({"cell": number, "error": f"{type(error).__name__}: {error}"[:300]})
        found = [
            {
                "name": result.name,
                "status": result.status,
                "head": result.head,
                "mistake": result.mistake,
                "says": result.says,
            }
            for result in _last.values()
        ]
        written = results.with_suffix(".part")
        written.write_text(json.dumps({"results": found, "failed_cells": failed}), "utf-8")
        written.replace(results)


if __name__ == "__main__":
    given, where, *limits = sys.argv[1:]
    learners_cells = code_cells(Path(given))
    limit_resources(*map(int, limits))
    run(learners_cells, Path(where))
