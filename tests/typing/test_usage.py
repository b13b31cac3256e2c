"""What a user's editor and type checker know of the library."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
pytest.importorskip("torch")

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
USAGE = HERE / "usage.py"


def mypy(*arguments):
    """Return what mypy says under the settings of the project, whose cache it shares."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout


def test_right_code_passes_and_wrong_code_is_refused():
    said = mypy(str(USAGE))
    found = {int(line) for line in re.findall(r"usage\.py:(\d+): error", said)}
    lines = USAGE.read_text("utf8").splitlines()
    marked = {i for i, line in enumerate(lines, start=1) if line.endswith("# refused")}
    assert found == marked, said


def test_the_type_checker_needs_no_pytorch(tmp_path):
    """Where it knows nothing of PyTorch right code passes; other arguments are checked still."""
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\nstrict = True\n[mypy-torch.*]\nfollow_imports = skip\n")
    code = """
        import numpy as np
        from d2lmini import attention
        x = np.eye(2)
        row = attention(x, x, x, causal=True).output[0]
        attention(x, x, x, causal="yes")
    """
    options = "--config-file", str(config), "--cache-dir", str(tmp_path)
    said = mypy(*options, "-c", re.sub("^ +", "", code, flags=re.M))
    (error,) = (line for line in said.splitlines() if line.startswith("<string>"))
    assert 'Argument "causal"' in error, said
