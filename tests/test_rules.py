"""The rules that conftest.py sets for all tests do hold."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SKIPPED = """
import pytest

@pytest.mark.skip(reason="for no reason")
def test_skipped():
    pass
"""
SKIPPED_AS_A_WHOLE = """
import pytest

pytest.importorskip("no_such_library")
"""
BOTH = """
def test_namespaces(xp):
    assert xp.sum(xp.asarray([1.0, 2.0])) == 3.0
"""


def run(folder, text, **environment):
    """Run one test file under a copy of the rules; return the exit status and what was said."""
    shutil.copy(HERE / "conftest.py", folder)
    (folder / "test_it.py").write_text(text)
    clean = {k: v for k, v in os.environ.items() if k not in ("CI", "REQUIRE_TORCH")}
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(folder), "-v"]
    done = subprocess.run(
        [*command, str(folder)],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("text", [SKIPPED, SKIPPED_AS_A_WHOLE], ids=["test", "file"])
def test_nothing_is_skipped_in_silence_in_ci(tmp_path, text):
    status, said = run(tmp_path, text, CI="true")
    assert status != 0
    assert "skipped in CI" in said


def test_a_skip_is_a_skip_elsewhere(tmp_path):
    status, said = run(tmp_path, SKIPPED)
    assert status == 0
    assert "1 skipped" in said


def test_every_namespace_is_tested_in_ci(tmp_path):
    status, said = run(tmp_path, BOTH, CI="true")
    assert status == 0, said
    assert "test_namespaces[numpy] PASSED" in said
    assert "test_namespaces[torch] PASSED" in said


def test_a_missing_torch_fails_where_it_is_required(tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('not here')\n")
    status, said = run(tmp_path, BOTH, REQUIRE_TORCH="1")
    assert status != 0
    assert "test_namespaces[numpy] PASSED" in said
