"""Say how old all is that the repository holds of others, and what has come out since.

    python scripts/vendored.py [--days 180]

It asks npm and pip. Its status is 1 if something newer has been out for more than so many days; how
to take it stands in the README beside each.
"""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DAYS = 180
SPEECH = "speech-rule-engine"  # installed once a week, to read the formulas aloud


@dataclass(frozen=True)
class Vendored:
    """Something of others: where its version stands, and the package that newer ones come in."""

    name: str
    pattern: str  # of the file that names the version
    version: str  # how it does
    package: str
    registry: str = "npm"

    def here(self) -> str:
        """Return the version that is in the repository."""
        (path,) = ROOT.glob(self.pattern)
        found = re.search(self.version, path.read_text("utf8")[:4000])
        if not found:
            sys.exit(f"{path} does not say which version of {self.name} it is")
        return found[1]


ALL = (
    Vendored("KaTeX", "_ext/**/katex/README.md", r"# KaTeX (\S+)", "katex"),
    Vendored("MiniSearch", "_ext/**/minisearch/README.md", r"# MiniSearch (\S+)", "minisearch"),
    *(
        Vendored(name, "lettering/fonts/README.md", rf"{package}` (\S+?)[.,]?\s", package, "pip")
        for name, package in (
            ("Source Serif", "fontpkg-source-serif-4"),
            ("Source Code", "fontpkg-source-code-pro"),
        )
    ),
    Vendored("Pyodide", "live_cells/extension.py", r'\nVERSION = "(\S+)"', "pyodide"),
    Vendored("axe-core", "tests/browser/axe/axe.min.js", r"axe v(\S+)", "axe-core"),
    Vendored("Speech rules", "tests/book/speech/package.json", rf'{SPEECH}": "(.+)"', SPEECH),
)


def run(*command: str) -> str:
    """Return what a program says, or end with what it says is wrong."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()[-300:]}")
    return done.stdout


def releases(what: Vendored) -> dict[str, datetime | None]:
    """Return the stable releases, oldest first, and the day of each where the registry says it."""
    if what.registry == "pip":
        said = run(sys.executable, "-m", "pip", "index", "versions", what.package)
        line = next(line for line in said.splitlines() if line.startswith("Available versions:"))
        return dict.fromkeys(reversed(re.split(r"[:,] *", line)[1:]))
    said = json.loads(run("npm", "view", what.package, "time", "--json"))
    days = {v: day for v, day in said.items() if re.fullmatch(r"[\d.]+", v)}
    found = {v: datetime.fromisoformat(day) for v, day in days.items()}
    return dict(sorted(found.items(), key=lambda one: tuple(map(int, one[0].split(".")))))


def row(what: Vendored, now: datetime) -> tuple[str, int]:
    """Return a line of the table, and for how many days something newer has been out."""
    here, known = what.here(), releases(what)
    newer = list(known)[list(known).index(here) + 1 :] if here in known else list(known)

    def age(version: str) -> int | None:
        day = known.get(version)
        return day and (now - day).days

    said = f"{what.name:13}{here:14}{'' if age(here) is None else f'{age(here)} days old':18}"
    if not newer:
        return said + "the newest", 0
    waiting = age(newer[0]) or 0
    since = f", and newer ones for {waiting} days" if waiting else ""
    return f"{said}{newer[-1]} is out{since}", waiting


def main(arguments: list[str]) -> int:
    """Print the table."""
    most = int(arguments[arguments.index("--days") + 1]) if "--days" in arguments else DAYS
    late = False
    for what in ALL:
        line, waiting = row(what, datetime.now(UTC))
        print(line + ("  ← take it" if waiting > most else ""))
        late |= waiting > most
    return int(late)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
