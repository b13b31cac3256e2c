"""Grade notebooks from the shell: ``python -m d2lmini.exercises grade NOTEBOOK…``."""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import d2lmini
from d2lmini.exercises import exercises
from d2lmini.exercises.notebook import checked, code_cells
from d2lmini.exercises.terminal import careful_output, escaped

SECONDS, MEGABYTES = 120, 4096
# A learner's code gets no other variable of the environment: tokens may stand there.
PASSED_ON = (
    "APPDATA HOME LANG LC_ALL LOCALAPPDATA PATH SYSTEMROOT TEMP TMP TMPDIR USERPROFILE VIRTUAL_ENV"
)


def main(arguments: list[str] | None = None) -> int:
    """Grade, print a table, write a JSON file; return 1 if any of this fails."""
    parser = argparse.ArgumentParser(prog="python -m d2lmini.exercises")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    grade = commands.add_parser(
        "grade",
        help="run notebooks and list which exercises are solved",
        description="Run each notebook in a process of its own, and list which exercises are "
        "solved. This runs the learners' code: see the teacher's page for what the limits protect "
        "from.",
    )
    grade.add_argument("notebooks", nargs="+", type=Path, metavar="NOTEBOOK", help="or a folder")
    grade.add_argument(
        "--json",
        type=Path,
        default=Path("grades.json"),
        metavar="FILE",
        help="where to write all that was found (%(default)s)",
    )
    grade.add_argument("--seconds", type=int, default=SECONDS, help="for each (%(default)s)")
    grade.add_argument("--memory", type=int, default=MEGABYTES, help="in MB (%(default)s)")
    chosen = parser.parse_args(arguments)
    careful_output()
    for name in ("seconds", "memory"):
        if getattr(chosen, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(chosen, name)}")
    files = _files(chosen.notebooks)
    if not files:
        parser.error("no notebook there")
    reports = [
        grade_notebook(path, chosen.seconds, chosen.memory) | {"notebook": name}
        for path, name in zip(files, _short_names(files), strict=True)
    ]
    text = json.dumps({"notebooks": reports}, indent=1)  # in ASCII: any text can be written
    try:
        chosen.json.write_text(text + "\n", "utf-8")
        written = f"\nAll that was found is in {chosen.json}"
    except OSError as error:
        written = ""
        print(f"cannot write {chosen.json}: {error.strerror or error}", file=sys.stderr)
    print(table(reports) + written)
    return int(not written or any(report["problem"] for report in reports))


def _files(paths: list[Path]) -> list[Path]:
    """Return the notebooks, and those in folders, such as one for each learner."""
    files: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*.ipynb")) if path.is_dir() else [path]
        files += [file for file in inside if ".ipynb_checkpoints" not in file.parts]
    return files


def _short_names(files: list[Path]) -> list[str]:
    """Return as much of the end of each path as tells it from the others."""
    for length in range(1, max(len(path.parts) for path in files) + 1):
        names = ["/".join(path.parts[-length:]) for path in files]
        if len(set(names)) == len(names):
            return names
    return [str(path) for path in files]


def grade_notebook(
    path: Path, seconds: int = SECONDS, megabytes: int = MEGABYTES
) -> dict[str, Any]:
    """Run one notebook in a child process, and return what its exercises come to."""
    report: dict[str, Any] = {"notebook": str(path), "problem": None}
    found: dict[str, Any] = {"results": [], "failed_cells": []}
    posed: dict[str, int] = {}
    try:
        posed = checked(code_cells(path))
    except OSError as error:
        report["problem"] = error.strerror or type(error).__name__
    except ValueError as error:
        report["problem"] = str(error)
    else:
        report["problem"], found = _run(path.resolve(), seconds, megabytes)
    results = {result["name"]: result for result in found["results"]}
    why = {cell["cell"]: cell["error"] for cell in reversed(found["failed_cells"])}
    report["exercises"] = [
        {
            "name": e.name,
            "chapter": e.chapter,
            **results.get(
                e.name, _no_result(posed.get(e.function, posed.get(e.name)), why, report["problem"])
            ),
        }
        for e in _expected({*posed, *results})
    ]
    report["passed"] = sum(e["status"] == "pass" for e in report["exercises"])
    report["of"] = len(report["exercises"])
    report["failed_cells"] = found["failed_cells"]
    return report


def _no_result(cell: int | None, why: dict[int, str], problem: str | None) -> dict[str, Any]:
    """Say why an exercise has no result: nobody posed it, its cell failed, or it was not run."""
    if cell is None:
        status, head = "missing", "not in the notebook."
    elif cell in why:
        status, head = "failed", f"its cell failed: {why[cell]}"
    else:
        status, head = "not reached", problem or "its check was not called."
    return {"status": status, "head": head, "mistake": None, "says": ""}


def _expected(names: set[str]) -> list[Any]:
    """Return all exercises of the chapters that occur."""
    chapters = {e.chapter for e in exercises() if {e.name, e.function} & names}
    return [exercise for exercise in exercises() if exercise.chapter in chapters]


def _run(path: Path, seconds: int, megabytes: int) -> tuple[str | None, dict[str, Any]]:
    environment = {name: os.environ[name] for name in PASSED_ON.split() if name in os.environ}
    library = str(Path(d2lmini.__file__).resolve().parents[1])
    environment |= {"PYTHONPATH": library, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-X", "utf8", "-m", "d2lmini.exercises.notebook"]
    with tempfile.TemporaryDirectory() as folder:
        results, errors = Path(folder, "results.json"), Path(folder, "errors.txt")
        work = Path(folder, "work")
        work.mkdir()
        with (
            errors.open("wb") as stderr,
            subprocess.Popen(
                [*program, str(path), str(results), str(seconds), str(megabytes)],
                cwd=work,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            ) as process,
        ):
            problem = _wait(process, seconds)
        found = _read(results)
        if problem is None and process.returncode != 0:
            said = errors.read_text("utf-8", "replace").strip().splitlines()
            problem = f"the process ended with status {process.returncode}" + (
                f": {said[-1][:200]}" if said else ""
            )
    if problem is None and (cell := found["running"]) is not None:
        problem = f"the process ended early, in code cell {cell}" if cell else "it left no results"
    return problem, found


KINDS = {"name": str, "status": str, "head": str, "says": str, "mistake": str | None}


def _read(results: Path) -> dict[str, Any]:
    """Read what the process has left; a learner's code may have written anything there."""
    try:
        found: dict[str, Any] = json.loads(results.read_text("utf-8"))
        results_fit = all(
            isinstance(result[name], kind)
            for result in found["results"]
            for name, kind in KINDS.items()
        )
        cells_fit = all(
            isinstance(cell["cell"], int) and isinstance(cell["error"], str)
            for cell in found["failed_cells"]
        )
        if results_fit and cells_fit and isinstance(found["running"], int | None):
            return found
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return {"results": [], "failed_cells": [], "running": 0}


def _wait(process: "subprocess.Popen[bytes]", seconds: int) -> str | None:
    """Wait until the process has ended, and end whatever it has started."""
    try:
        process.wait(timeout=seconds)
        problem = None
    except subprocess.TimeoutExpired:
        problem = f"stopped after {seconds} seconds"
    if sys.platform != "win32":
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    return problem


def table(reports: list[dict[str, Any]]) -> str:
    """Return one line for each exercise, and a sum for each notebook.

    Nothing in it reaches a terminal raw: what is no plain letter is written as an escape.
    """
    rows = [("notebook", "exercise", "status", "found")]
    for report in reports:
        name = report["notebook"]
        if report["problem"]:
            rows.append((name, "", "problem", report["problem"]))
        for exercise in report["exercises"]:
            found = exercise["mistake"] or (
                "" if exercise["status"] == "pass" else _without_input(exercise["head"])
            )
            rows.append((name, exercise["name"], exercise["status"], found))
        for cell in report["failed_cells"]:
            rows.append((name, "", "failed", f"code cell {cell['cell']}: {cell['error']}"))
        rows.append((name, "", "passed", f"{report['passed']} of {report['of']}"))
    rows = [(escaped(a), escaped(b), escaped(c), escaped(d)) for a, b, c, d in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = []
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row[:3], widths, strict=True)]
        last = row[3]
        lines.append("  ".join([*cells, last if len(last) <= 80 else last[:79] + "…"]).rstrip())
    return "\n".join(lines)


def _without_input(head: str) -> str:
    """Leave out the announcement of the input that a card shows and a table does not."""
    return head.removesuffix(" The smallest input that shows it:")


if __name__ == "__main__":
    sys.exit(main())
