"""`pip install .` brings the library and nothing else; without PyTorch: ``test_package.py``."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.machine
def test_wheel_holds_the_library_and_nothing_else(tmp_path):
    """It is built with what is installed, and no network."""
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    subprocess.run([*pip, "--no-index", "--wheel-dir", str(tmp_path), str(ROOT)], check=True)
    names = set(zipfile.ZipFile(next(tmp_path.glob("*.whl"))).namelist())
    sources = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "d2lmini").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    about = {name for name in names if re.match(r"d2lmini-[\d.]+\.dist-info/", name)}
    assert names - about == sources > {"d2lmini/py.typed", "d2lmini/__init__.pyi"}
    assert any(name.endswith("licenses/LICENSE") for name in about)
