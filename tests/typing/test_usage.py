"""Types: they hold everywhere, and a user's editor and type checker know them.

Pyright fetches Node when it starts, which tests may not: it is no pin, and asked by hand
(``pyright tests/typing/usage.py``). Version 1.1.414 refuses every marked line but the two marked
``mypy``, where it lets NumPy and PyTorch mix, and passes all others.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("mypy")
pytest.importorskip("torch")

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
USAGE = HERE / "usage.py"


def mypy(*arguments):
    """Return what mypy says under the settings of the project."""
    command = [sys.executable, "-m", "mypy", "--no-error-summary", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout


def test_the_project_is_typed_right_code_passes_and_wrong_code_is_refused():
    """In one run, which reads PyTorch's types once."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf8"))["tool"]["mypy"]
    said = mypy(*settings["files"], str(USAGE))
    found = {int(line) for line in re.findall(r"^tests/typing/usage\.py:(\d+): error", said, re.M)}
    lines = USAGE.read_text("utf8").splitlines()
    marked = {i for i, line in enumerate(lines, start=1) if "# refused" in line}
    assert found == marked, said
    others = [line for line in said.splitlines() if not line.startswith("tests/typing/usage.py:")]
    assert not others, "\n".join(others)


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
