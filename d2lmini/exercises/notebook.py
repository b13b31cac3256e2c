"""Run one learner's notebook as Jupyter does, and note what its checks find.

As a program it is the kernel that the notebook runs in: IPython's own, within limits.
"""

import ast
import asyncio
import json
import os
import re
import signal
import sys
import tempfile
import time
import warnings
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypedDict

from d2lmini.exercises.definition import RESULTS

__all__ = ["Found", "checked", "code_cells", "run"]

LARGEST_FILE = 64 * 2**20  # bytes
# A learner's code gets no other variable of the environment: tokens may stand there.
PASSED_ON = (
    "APPDATA HOME LANG LC_ALL LOCALAPPDATA PATH SYSTEMROOT TEMP TMP TMPDIR USERPROFILE VIRTUAL_ENV"
)
CONFLICT = re.compile(r"^(<{7} |={7}$|>{7} )", re.MULTILINE)
CHECK = re.compile(r"^@(?:\w+\.)*check\b.*\n(?:@.*\n)*(?:async )?(?:def|class) (\w+)", re.MULTILINE)


def code_cells(path: Path) -> list[str]:
    """Return the code cells of a notebook; ValueError in words if it is not a notebook."""
    text = text_of(path)
    if not text.strip():
        raise ValueError("not a notebook: the file is empty")
    try:
        notebook = json.loads(text)
        cells = notebook["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        why = f"{type(error).__name__}: {error}"
        if isinstance(error, json.JSONDecodeError) and CONFLICT.search(text):
            why = "it holds the marks of a merge that was not finished: take one side"
        elif '"worksheets"' in text:
            why = "it has format 3: save it again with Jupyter, which writes format 4"
        raise ValueError(f"not a notebook: {why}") from error


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


def _as_python(source: str) -> str:
    """Turn magics, ``!`` and ``?`` into calls of ``get_ipython()``, by IPython's own rules."""
    rules = import_module("IPython.core.inputtransformer2")
    try:
        text: str = rules.TransformerManager().transform_cell(source)
    except Exception:  # a cell that Jupyter could not run either
        return source
    return text


def _parsed(source: str) -> list[ast.stmt]:
    """Return the statements of a cell; SyntaxError for whatever Python cannot read."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what a learner may have escaped for nothing
            return ast.parse(_as_python(source)).body
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
            nodes = [node for statement in _parsed(source) for node in ast.walk(statement)]
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
            return list(checked([body]))
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


class Found(TypedDict):
    """What has come out of a notebook."""

    results: list[dict[str, Any]]  # of each check, in order
    failed_cells: list[dict[str, Any]]  # "cell", counted from 1, and "error"
    problem: str | None  # why it did not come to its end


def run(cells: list[str], seconds: int, megabytes: int) -> Found:
    """Run the cells as Jupyter does: one that fails ends there, and the next one runs.

    The kernel works in an empty folder of its own. It is stopped when the time is up, with all that
    it has started; what the checks have found until then is kept, since each writes it at once.
    """
    try:
        nbclient, nbformat = import_module("nbclient"), import_module("nbformat")
        client, spec = import_module("jupyter_client"), import_module("jupyter_client.kernelspec")
        import_module("ipykernel")
    except ImportError as error:
        raise ValueError(
            f"grading runs a notebook as Jupyter does, and there is no {error.name}: "
            "pip install nbclient ipykernel"
        ) from None
    legal = [source.encode("utf-8", "replace").decode() for source in cells]  # no half of an emoji
    sources = [nbformat.v4.new_code_cell(source) for source in legal]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        results, work = folder / "results.jsonl", folder / "work"
        work.mkdir()
        kernel = [sys.executable, "-X", "utf8", "-m", __name__, str(seconds), str(megabytes)]
        (folder / "learner").mkdir()
        (folder / "learner" / "kernel.json").write_text(
            json.dumps({"argv": [*kernel, "-f", "{connection_file}"], "display_name": "Python"})
        )
        manager = client.AsyncKernelManager(
            kernel_name="learner",
            kernel_spec_manager=spec.KernelSpecManager(kernel_dirs=[name]),
            connection_file=str(folder / "connection.json"),
        )
        player = nbclient.NotebookClient(
            nbformat.v4.new_notebook(cells=sources),
            km=manager,
            allow_errors=True,
            timeout=None,
            shutdown_kernel="immediate",
        )
        with (folder / "said.txt").open("wb") as said:
            played = _played(player, seconds, env=_environment(folder), cwd=str(work), stderr=said)
            problem = asyncio.run(played)
        failed = [
            {"cell": number, "error": f"{output.ename}: {output.evalue}"[:300]}
            for number, cell in enumerate(sources, 1)
            for output in cell.outputs
            if output.output_type == "error"
        ]
        return {"results": _read(results), "failed_cells": failed, "problem": problem}


async def _played(player: Any, seconds: int, **options: Any) -> str | None:
    """Run all cells in a new kernel; return why it did not come to the end."""
    running = 0

    async def play() -> None:
        nonlocal running
        async with player.async_setup_kernel(cleanup_kc=True, **options):
            if sys.platform != "win32":  # Ctrl-C is for the command, which then says what it has
                asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)
            for running, cell in enumerate(player.nb.cells, 1):
                await player.async_execute_cell(cell, running - 1)

    began = time.monotonic()
    try:
        await asyncio.wait_for(play(), seconds)
    except (TimeoutError, RuntimeError, OSError) as error:
        if time.monotonic() - began >= seconds:  # a kernel that is stopped may be found dead first
            return f"stopped after {seconds} seconds, in code cell {running}"
        if running == 0:
            return f"no kernel could be started: {error}"
        return f"the kernel ended in code cell {running}"
    return None


def _environment(folder: Path) -> dict[str, str]:
    environment = {name: os.environ[name] for name in PASSED_ON.split() if name in os.environ}
    return environment | {
        "PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        "OMP_NUM_THREADS": "1",
        "IPYTHONDIR": str(folder / "ipython"),  # without the teacher's own start-up files
        "PIP_NO_INDEX": "1",  # %pip install puts nothing into the teacher's environment
        RESULTS: str(folder / "results.jsonl"),
    }


def _read(results: Path) -> list[dict[str, Any]]:
    """Read what the checks have found; the last line may have been cut short."""
    found = []
    with suppress(OSError, ValueError):
        for line in text_of(results).splitlines():
            found.append(json.loads(line))
    return found


def _limit_resources(seconds: int, megabytes: int) -> None:
    """Limit this process, where the system can: CPU time, memory, size of files."""
    if sys.platform in ("win32", "emscripten"):
        return
    import resource

    for kind, most in (
        (resource.RLIMIT_CPU, 2 * seconds),  # of what has left the kernel's group
        (resource.RLIMIT_AS, megabytes * 2**20),
        (resource.RLIMIT_FSIZE, LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        _, hard = resource.getrlimit(kind)
        allowed = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(kind, (allowed, hard))


if __name__ == "__main__":
    from ipykernel.kernelapp import IPKernelApp

    _limit_resources(*map(int, sys.argv[1:3]))
    del sys.argv[1:3]
    IPKernelApp.launch_instance()
