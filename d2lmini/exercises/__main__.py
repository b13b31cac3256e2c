"""Grade notebooks from the shell: ``python -m d2lmini.exercises grade NOTEBOOK…``."""

import argparse
import difflib
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from d2lmini._terminal import careful_output, command, escaped
from d2lmini.exercises import Exercise, exercises
from d2lmini.exercises.notebook import Found, checked, code_cells, run

SECONDS, MEGABYTES = 120, 4096


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
    reports = [_report(f"{path}/", {}, _nothing("no notebook in it")) for path in empty]
    try:
        for path, name in zip(files, _short_names(files), strict=True):
            report = grade_notebook(path, chosen.seconds, chosen.memory)
            reports.append(report | {"notebook": name})
    except KeyboardInterrupt:  # what was found before is not lost
        left = len(files) + len(empty) - len(reports)
        reports.append(_report("", {}, _nothing(f"interrupted: {left} of {len(files)} not graded")))
    _counted(reports)
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
    """Return the notebooks in a folder and the folders in it."""
    found = [path for path in folder.rglob("*") if path.suffix.lower() == ".ipynb"]
    inside = [(path, path.relative_to(folder)) for path in sorted(found) if not path.is_dir()]
    return [path for path, own in inside if all(map(_counts, [own, *own.parents]))]


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
    """Run one notebook in a kernel of its own, and return what its exercises come to."""
    try:
        cells = code_cells(path)
        if not cells:
            raise ValueError("no code cell in it")
        posed, found = checked(cells), run(cells, seconds, megabytes)
    except OSError as error:
        return _report(path, {}, _nothing(error.strerror or type(error).__name__))
    except ValueError as error:
        return _report(path, {}, _nothing(str(error)))
    return _report(path, posed, found)


def _nothing(problem: str) -> Found:
    return {"results": [], "failed_cells": [], "problem": problem}


def _report(path: Path | str, posed: dict[str, int], found: Found) -> dict[str, Any]:
    """Return what is said of a notebook, from what stands in it and what came out of it."""
    results = {result["name"]: result for result in found["results"]}  # the last one counts
    why = {cell["cell"]: cell["error"] for cell in found["failed_cells"]}
    asked = _expected({*posed, *results}) or _named(str(path))
    graded = [
        {
            "name": e.name,
            "chapter": e.chapter,
            **results.get(e.name, _no_result(e, posed, why, found["problem"])),
        }
        for e in asked
    ]
    return {
        "notebook": str(path),
        "problem": found["problem"],
        "exercises": graded,
        "passed": sum(e["status"] == "pass" for e in graded),
        "of": len(graded),
        "failed_cells": found["failed_cells"],
    }


def _no_result(
    exercise: Exercise, posed: dict[str, int], why: dict[int, str], problem: str | None
) -> dict[str, Any]:
    """Say why an exercise has no result: nobody posed it, its cell failed, or it was not run."""
    cell = posed.get(exercise.function, posed.get(exercise.name))
    known = {name for e in exercises() for name in (e.name, e.function)}
    near = difflib.get_close_matches(exercise.function, {*posed} - known, n=1)
    if cell is not None and cell in why:
        status, head = "failed", f"its cell failed: {why[cell]}"
    elif cell is not None:
        status, head = "not reached", problem or "its check was not called."
    elif near:
        status, head = "missing", f"not in the notebook; is {near[0]!r} meant for it?"
    elif not posed and problem:
        status, head = "not reached", problem
    else:
        status, head = "missing", "not in the notebook."
    return {"status": status, "head": head, "mistake": None, "says": ""}


def _expected(names: set[str]) -> list[Exercise]:
    """Return all exercises of the chapters that occur, if only by a name that is misspelt."""
    known = {name: e.chapter for e in exercises() for name in (e.name, e.function)}
    near = [difflib.get_close_matches(name, known, n=1, cutoff=0.8)[:1] for name in names]
    chapters = {known[name] for [name] in filter(None, near)}
    return [exercise for exercise in exercises() if exercise.chapter in chapters]


def _counted(reports: list[dict[str, Any]]) -> None:
    """Let a notebook that does not say its chapter count 0 of all that the others are asked."""
    asked = {tuple((e["name"], e["chapter"]) for e in one["exercises"]) for one in reports}
    known = asked - {()}
    if len(known) == 1:
        for report in reports:
            if report["notebook"] and not report["exercises"]:
                status = "not reached" if report["problem"] else "missing"
                head = report["problem"] or "not in the notebook."
                nothing = {"status": status, "head": head, "mistake": None, "says": ""}
                report["exercises"] = [
                    {"name": name, "chapter": chapter, **nothing} for name, chapter in max(known)
                ]
                report["of"] = len(report["exercises"])


def _named(path: str) -> list[Exercise]:
    """Return the exercises of the chapter that the name of a notebook begins with, as 03-… does."""
    number = re.match(r"0*(\d+)\D", Path(path).name)
    return list(exercises(int(number[1]))) if number else []


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
