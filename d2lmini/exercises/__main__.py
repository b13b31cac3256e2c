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
from d2lmini._terminal import careful_output, command, escaped
from d2lmini.exercises import exercises
from d2lmini.exercises.notebook import checked, code_cells, text_of

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
    if chosen.json.suffix.lower() == ".ipynb":
        parser.error(f"--json {escaped(str(chosen.json))} would be written over a notebook")
    files, empty = _files(chosen.notebooks)
    if not files:
        parser.error("no notebook there")
    reports = [_report({}, "no notebook in it") | {"notebook": f"{path}/"} for path in empty]
    try:
        for path, name in zip(files, _short_names(files), strict=True):
            report = grade_notebook(path, chosen.seconds, chosen.memory)
            reports.append(report | {"notebook": name})
    except KeyboardInterrupt:  # what was found before is not lost
        left = len(files) + len(empty) - len(reports)
        reports.append(_report({}, f"interrupted: {left} of {len(files)} not graded"))
    text = json.dumps({"notebooks": reports}, indent=1)  # in ASCII: any text can be written
    where = escaped(str(chosen.json))
    try:
        chosen.json.write_text(text + "\n", "utf-8")
        written = f"\nAll that was found is in {where}"
    except OSError as error:
        written = ""
        print(f"cannot write {where}: {error.strerror or error}", file=sys.stderr)
    print(table(reports) + written)
    return int(not written or any(report["problem"] for report in reports))


def _files(paths: list[Path]) -> tuple[list[Path], list[Path]]:
    """Return the notebooks, each once, and the folders in which there should be one.

    A folder that holds no notebook itself holds a folder for each learner.
    """
    files: dict[str, Path] = {}
    empty = []
    for path in paths:
        inside = _inside(path) if path.is_dir() else [path]
        for file in inside:
            files.setdefault(os.path.abspath(file), file)
        if path.is_dir() and not any(file.parent == path for file in inside):
            (_, names, _) = next(os.walk(path), ("", [], []))  # none where it may not be read
            folders = [path / name for name in sorted(names) if _counts(path / name)]
            empty += [f for f in folders or [path] if not any(f in file.parents for file in inside)]
    return list(files.values()), empty


def _inside(folder: Path) -> list[Path]:
    """Return the notebooks in a folder and the folders in it, through links as well."""
    found, seen = [], set()
    for place, folders, names in os.walk(folder, followlinks=True):
        seen.add(os.path.realpath(place))
        at = Path(place)
        folders[:] = [
            one for one in folders if _counts(at / one) and os.path.realpath(at / one) not in seen
        ]
        found += [at / one for one in names if one.lower().endswith(".ipynb") and _counts(at / one)]
    return sorted(found)


def _counts(path: Path) -> bool:
    """Tell whether somebody has made this, and no program beside it."""
    return path.name not in (".ipynb_checkpoints", "__MACOSX") and not path.name.startswith("._")


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
    problem: str | None
    try:
        posed = checked(code_cells(path))
    except OSError as error:
        problem = error.strerror or type(error).__name__
    except ValueError as error:
        problem = str(error)
    else:
        problem, found = _run(path.resolve(), seconds, megabytes)
        return _report(posed, problem, found) | {"notebook": str(path)}
    return _report({}, problem) | {"notebook": str(path)}


def _report(
    posed: dict[str, int], problem: str | None, found: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Return what is said of a notebook, from what stands in it and what its process has left."""
    report: dict[str, Any] = {"notebook": "", "problem": problem}
    found = found or NOTHING
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
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        results, errors = Path(folder, "results.json"), Path(folder, "errors.txt")
        work = Path(folder, "work")
        work.mkdir()
        environment["IPYTHONDIR"] = str(Path(folder, "ipython"))  # nobody's own settings
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
            problem = _ended(process.returncode) + (f": {said[-1][:200]}" if said else "")
    if problem is None and (cell := found["running"]) is not None:
        problem = f"the process ended early, in code cell {cell}" if cell else "it left no results"
    return problem, found


def _ended(status: int) -> str:
    """Say how a process ended."""
    if status >= 0:
        return f"the process ended with status {status}"
    return f"the process was ended by the system ({signal.strsignal(-status) or -status})"


NOTHING: dict[str, Any] = {"results": [], "failed_cells": [], "running": 0}
KINDS = {"name": str, "status": str, "head": str, "says": str, "mistake": str | None}


def _read(results: Path) -> dict[str, Any]:
    """Read what the process has left; a learner's code may have written anything there."""
    try:
        found: dict[str, Any] = json.loads(text_of(results))
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
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    return NOTHING


def _wait(process: "subprocess.Popen[bytes]", seconds: int) -> str | None:
    """Wait until the process has ended, and end whatever it has started."""
    try:
        process.wait(timeout=seconds)
        return None
    except subprocess.TimeoutExpired:
        return f"stopped after {seconds} seconds"
    finally:  # also where the teacher interrupts
        if sys.platform != "win32":
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()


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
    sys.exit(command(main))
