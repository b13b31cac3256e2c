"""`make lint`, as tests: style. Types are in ``tests/typing``."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("arguments", ["check .", "format --check ."])
def test_clean(arguments):
    command = [sys.executable, "-m", "ruff", *arguments.split()]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
