"""The rules that the two conftest.py set for all tests do hold."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = {
    "test_skipped.py": "import pytest\n\n@pytest.mark.skip(reason='none')\ndef test_it(): ...\n",
    "test_whole.py": "import pytest\n\npytest.importorskip('no_such_library')\n",
    "test_both.py": "def test_it(xp):\n    assert xp.sum(xp.asarray([1.0, 2.0])) == 3.0\n",
}


def run(*arguments, folder=HERE.parent, before="pass", **environment):
    """Run pytest without plugins in a process of its own; return its status and what it says."""
    clean = {k: v for k, v in os.environ.items() if k not in ("CI", "REQUIRE_TORCH")}
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; {before}; import pytest; sys.exit(pytest.main())",
            "-p",
            "no:cacheprovider",
            *arguments,
        ],
        cwd=folder,
        env=clean | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture
def rules(tmp_path):
    """Return a function that runs a few test files under a copy of the rules."""
    shutil.copy(HERE / "conftest.py", tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    config = ["-c", os.devnull, "--rootdir", str(tmp_path), "-v"]
    return lambda **environment: run(*config, str(tmp_path), folder=tmp_path, **environment)


def test_in_ci_nothing_is_skipped_and_every_namespace_is_tested(rules):
    status, said = rules(CI="true", PYTEST_ADDOPTS="--continue-on-collection-errors")
    assert status != 0
    assert "2 passed, 2 errors" in said and said.count("skipped in CI: ") == 4
    assert "test_it[numpy] PASSED" in said and "test_it[torch] PASSED" in said


def test_elsewhere_a_skip_is_a_skip(rules):
    status, said = rules()
    assert status == 0, said
    assert "2 skipped" in said and "test_it[numpy] PASSED" in said


def test_a_missing_torch_fails_where_it_is_required(rules, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('not here')\n")
    status, said = rules(REQUIRE_TORCH="1")
    assert status != 0
    assert "test_it[numpy] PASSED" in said and "test_it[torch] ERROR" in said


@pytest.mark.parametrize("where", ["chapters", "chapters/01-database-analogy.ipynb"])
def test_without_nbval_no_notebook_is_passed_over(where):
    """Not `pytest chapters`, which has pages to test as well, and so not `make stable`."""
    status, said = run("--co", "-q", where, before="sys.modules['nbval'] = None")
    assert status != 0
    assert "01-database-analogy.ipynb" in said and "pip install nbval" in said
