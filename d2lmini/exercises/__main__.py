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
from d2lmini.exercises.notebook import code_cells, posed

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
    for name in ("seconds", "memory"):
        if getattr(chosen, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(chosen, name)}")
    reports = [
        grade_notebook(path, chosen.seconds, chosen.memory) for path in _files(chosen.notebooks)
    ]
    if not reports:
        parser.error("no notebook there")
    print(table(reports))
    text = json.dumps({"notebooks": reports}, indent=1, ensure_ascii=False)
    try:
        chosen.json.write_text(text + "\n", "utf-8")
    except OSError as error:
        print(f"cannot write {chosen.json}: {error.strerror or error}", file=sys.stderr)
        return 1
    print(f"\nAll that was found is in {chosen.json}")
    return int(any(report["problem"] for report in reports))


def _files(paths: list[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        files += sorted(path.glob("*.ipynb")) if path.is_dir() else [path]
    return files


def grade_notebook(
    path: Path, seconds: int = SECONDS, megabytes: int = MEGABYTES
) -> dict[str, Any]:
    """Run one notebook in a child process, and return what its exercises come to."""
    report: dict[str, Any] = {"notebook": str(path), "problem": None}
    found: dict[str, Any] = {"results": [], "failed_cells": []}
    names: set[str] = set()
    try:
        names = posed(code_cells(path))
    except OSError as error:
        report["problem"] = error.strerror or type(error).__name__
    except ValueError as error:
        report["problem"] = str(error)
    else:
        report["problem"], found = _run(path.resolve(), seconds, megabytes)
    results = {result["name"]: result for result in found["results"]}
    report["exercises"] = [
        {"name": e.name, "chapter": e.chapter, **results.get(e.name, _missing(report["problem"]))}
        for e in _expected(names | set(results))
    ]
    report["passed"] = sum(e["status"] == "pass" for e in report["exercises"])
    report["of"] = len(report["exercises"])
    report["failed_cells"] = found["failed_cells"]
    return report


def _missing(problem: str | None) -> dict[str, Any]:
    head = f"not reached: {problem}" if problem else "not in the notebook."
    return {"status": "missing", "head": head, "mistake": None, "says": ""}


def _expected(names: set[str]) -> list[Any]:
    """Return all exercises of the chapters that occur."""
    chapters = {e.chapter for e in exercises() if {e.name, e.function} & names}
    return [exercise for exercise in exercises() if exercise.chapter in chapters]


def _run(path: Path, seconds: int, megabytes: int) -> tuple[str | None, dict[str, Any]]:
    environment = {name: os.environ[name] for name in PASSED_ON.split() if name in os.environ}
    library = str(Path(d2lmini.__file__).resolve().parents[1])
    environment |= {"PYTHONPATH": library, "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    program = [sys.executable, "-m", "d2lmini.exercises.notebook"]
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
        if problem is None and process.returncode != 0:
            said = errors.read_text("utf-8", "replace").strip().splitlines()
            problem = f"the process ended with status {process.returncode}" + (
                f": {said[-1][:200]}" if said else ""
            )
        if results.exists():
            found: dict[str, Any] = json.loads(results.read_text("utf-8"))
            return problem, found
    return problem or "it left no results", {"results": [], "failed_cells": []}


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
    """Return one line for each exercise, and a sum for each notebook."""
    rows = [("notebook", "exercise", "status", "found")]
    for report in reports:
        name = Path(report["notebook"]).name
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
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = []
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row[:3], widths, strict=True)]
        last = " ".join(row[3].split())
        lines.append("  ".join([*cells, last if len(last) <= 80 else last[:79] + "…"]).rstrip())
    return "\n".join(lines)


def _without_input(head: str) -> str:
    """Leave out the announcement of the input that a card shows and a table does not."""
    return head.removesuffix(" The smallest input that shows it:")


if __name__ == "__main__":
    sys.exit(main())
