"""Run the library's tests on the lowest and the newest versions that users may have.

    python scripts/versions.py [3.11 …]      these Pythons, or all from 3.11 to 3.14 that are here

The lowest are those that pyproject.toml allows, or the first that can be had for a newer Python;
the newest are those of today. Each pair of a Python and an end has an environment of its own in
.versions. What was found is stored for the page What It Runs On. The status is 1 if a test fails.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOUND = ROOT / "chapters" / "versions.json"  # shown on the page of facts
FOLDER = ROOT / ".versions"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
ENDS = {"lowest": "lowest-direct", "newest": "highest"}
PACKAGES = ("numpy", "torch", "matplotlib", "array-api-compat")
TOOLS = ("beautifulsoup4", "ipykernel", "nbclient", "pyyaml")  # what the tests use besides
ARRAYS = ("jax",)  # its arrays are tried with the newest: its old versions need an old NumPy
TESTS = ("tests/core", "tests/modules", "tests/plotting")
# What a library tells the authors of another is no fault here, and old ones tell much.
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore::DeprecationWarning")
VERSIONS = """import json, platform, sys
from importlib.metadata import distributions
here = {package.name: package.version for package in distributions()}
names = {name: here.get(name, "–") for name in sys.argv[1:]}
print(json.dumps({"python": platform.python_version()} | names))
"""


def run(*command: object, **more: str) -> tuple[int, str]:
    """Run a program; return its status and all that it says."""
    done = subprocess.run(
        [*map(str, command)],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | more,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def python_of(folder: Path) -> Path:
    """Return the interpreter of an environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def tool() -> list[object]:
    """Return the command of uv, which finds the lowest versions; it has an environment too."""
    python = python_of(FOLDER / "uv")
    if not python.exists():
        run(sys.executable, "-m", "venv", python.parents[1])
        status, said = run(python, "-m", "pip", "install", "--quiet", "uv")
        if status:
            sys.exit(said)
    return [python, "-m", "uv"]


def interpreters(wanted: list[str]) -> dict[str, str]:
    """Return the Pythons that are here, by version; say which are not."""
    found = {}
    for version in wanted or PYTHONS:
        path = shutil.which(f"python{version}") or ""
        # a name may stand for a version that is not installed
        if (
            path
            and run(path, "-c", f"import sys; assert sys.version.startswith('{version}.')")[0] == 0
        ):
            found[version] = path
        else:
            print(f"Python {version} is not here", flush=True)
    return found


def outcome(said: str) -> dict[str, int]:
    """Return how many tests passed and failed, as the last line of pytest says."""
    last = said.strip().splitlines()[-1] if said.strip() else ""
    counts = {
        kind.rstrip("s"): int(n) for n, kind in re.findall(r"(\d+) (passed|failed|errors?)", last)
    }
    return {
        "passed": counts.get("passed", 0),
        "failed": counts.get("failed", 0) + counts.get("error", 0),
    }


def tested(version: str, path: str, end: str) -> dict[str, object]:
    """Make an environment, run the tests in it, and return what was found."""
    folder = FOLDER / f"{version}-{end}"
    python = python_of(folder)
    uv = tool()
    run(*uv, "venv", "--quiet", "--clear", "--python", path, folder)
    install = [*uv, "pip", "install", "--quiet", "--python", python]
    for package in PACKAGES:  # what would have to be compiled cannot be had
        install += ["--only-binary", package]
    status, said = run(*install, "--resolution", ENDS[end], ".[torch,plot,test]")
    if not status:
        status, said = run(*install, *TOOLS, *(ARRAYS if end == "newest" else ()))
    if status:
        reason = said.strip().splitlines()[-1]
        print(f"Python {version}, {end}: cannot be installed: {reason}", flush=True)
        return {"end": end, "python": version, "passed": 0, "failed": 0}
    _, about = run(python, "-c", VERSIONS, *PACKAGES, *ARRAYS)
    status, said = run(python, *PYTEST, *TESTS, REQUIRE_TORCH="1")
    found = {"end": end, **json.loads(about), **outcome(said)}
    if status or not found["passed"]:
        found["failed"] = found["failed"] or 1
        print("\n".join(said.splitlines()[-30:]), flush=True)
    return found


def table(rows: list[dict[str, object]]) -> list[tuple[object, ...]]:
    """Return the rows of a table, its head first."""
    names = ("Python", "end", *PACKAGES, *ARRAYS, "passed", "failed")
    return [names, *(tuple(row.get(name.lower(), "–") for name in names) for row in rows)]


def main(wanted: list[str]) -> int:
    """Test, store and print."""
    rows = []
    for version, path in interpreters(wanted).items():
        for end in ENDS:
            rows.append(tested(version, path, end))
            print("  ".join(f"{cell!s:>12}" for cell in table(rows)[-1]), flush=True)
    FOUND.write_text(json.dumps(rows, indent=1) + "\n", "utf8")
    for row in table(rows):
        print("  ".join(f"{cell!s:>12}" for cell in row))
    return int(not rows or any(row["failed"] or not row["passed"] for row in rows))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
