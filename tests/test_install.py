"""`pip install .` brings a library that works, and passes its tests, with NumPy alone."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

pytestmark = pytest.mark.machine
ROOT = Path(__file__).resolve().parents[1]


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Build the wheel, with what is installed and no network."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    run(*pip, "--no-index", "--wheel-dir", str(folder), str(ROOT))
    return next(folder.glob("*.whl"))


def test_wheel_holds_the_library_and_nothing_else(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "d2lmini").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = {name for name in names if re.match(r"d2lmini-[\d.]+\.dist-info/", name)}
    assert names - about == sources > {"d2lmini/py.typed", "d2lmini/__init__.pyi"}
    assert any(name.endswith("licenses/LICENSE") for name in about)


def needs(*names):
    """Return the names of some installed distributions and of all that they need here."""
    from packaging.requirements import Requirement

    found, waiting = set(), list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            for need in map(Requirement, distribution(name).requires or []):
                if need.marker is None or need.marker.evaluate({"extra": ""}):
                    waiting.append(need.name)
    return found


@pytest.mark.weekly
def test_core_passes_its_tests_without_torch(wheel, tmp_path):
    """In an environment that holds the wheel, what it needs, and test tools."""
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv"))
    python = str(tmp_path / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python"))
    site = Path(run(python, "-c", "import sysconfig as s; print(s.get_path('purelib'))").strip())
    for name in needs("numpy", "array-api-compat", "lazy-loader", "pytest", "hypothesis"):
        for top in {file.parts[0] for file in distribution(name).files} - {"..", "__pycache__"}:
            source = Path(distribution(name).locate_file(top))
            if not (site / top).exists():
                (site / top).symlink_to(source, target_is_directory=source.is_dir())
    zipfile.ZipFile(wheel).extractall(site)
    # The tests, and the files they read; the library itself comes from the wheel.
    for name in ("tests", "scripts", "d2lmini/data"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    environment = {k: v for k, v in os.environ.items() if k not in ("CI", "REQUIRE_TORCH")}
    said = run(python, "-m", "pytest", "tests/core", cwd=tmp_path, env=environment)
    assert re.search(r"\d{3,} passed", said)
    assert "torch" not in run(python, "-c", "import sys, d2lmini; print(*sys.modules)")
