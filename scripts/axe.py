"""Say whether the axe-core that the tests run is the newest, or fetch the newest (needs npm).

python scripts/axe.py [--update]
"""

import base64
import hashlib
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

STORED = Path(__file__).resolve().parents[1] / "tests" / "browser" / "axe"
FILES = ("axe.min.js", "LICENSE", "LICENSE-3RD-PARTY.txt")
HASH = "axe.min.js.sha256"


def stored_version(folder: Path = STORED) -> str:
    """Return the version that stands in the stored file."""
    found = re.search(r"axe v(\S+)", (folder / "axe.min.js").read_text("utf8")[:200])
    return found[1] if found else "unknown"


def newest() -> dict[str, str]:
    """Return the version of the newest release, and the hash of its package."""
    said = npm("view", "axe-core", "version", "dist.integrity", "--json")
    found = json.loads(said)
    return {"version": found["version"], "integrity": found["dist.integrity"]}


def npm(*arguments: str, folder: Path | None = None) -> str:
    """Run npm and return what it says."""
    done = subprocess.run(
        ["npm", *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"npm {' '.join(arguments)}: {done.stderr.strip()[:300]}")
    return done.stdout


def fetch(release: dict[str, str], folder: Path = STORED) -> None:
    """Store a release, if the package is the one that the registry describes."""
    with tempfile.TemporaryDirectory() as there:
        name = npm("pack", f"axe-core@{release['version']}", "--silent", folder=Path(there)).split()
        store(Path(there, name[-1]), release["integrity"], folder)


def store(package: Path, integrity: str, folder: Path) -> None:
    """Take the files out of a package, or end where it is not the one that was described."""
    method, _, wanted = integrity.partition("-")
    found = base64.b64encode(hashlib.new(method, package.read_bytes()).digest()).decode()
    if found != wanted:
        sys.exit(f"{package.name}: its hash is {found}, not {wanted}: nothing was changed")
    with tarfile.open(package) as packed:
        for name in FILES:
            member = packed.extractfile(f"package/{name}")
            assert member is not None
            (folder / name).write_bytes(member.read())
    digest = hashlib.sha256((folder / "axe.min.js").read_bytes()).hexdigest()
    (folder / HASH).write_text(f"{digest}  axe.min.js\n", "utf8")


def main(arguments: list[str]) -> int:
    """Return 0 if the stored one is the newest, or now is."""
    release, here = newest(), stored_version()
    if release["version"] == here:
        print(f"axe-core {here} is the newest")
        return 0
    if arguments != ["--update"]:
        print(
            f"axe-core {release['version']} is out, the tests run {here}: scripts/axe.py --update"
        )
        return 1
    fetch(release)
    print(f"axe-core {stored_version()} in the place of {here}: run tests/browser")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
