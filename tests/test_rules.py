"""The rules that the two conftest.py set for all tests do hold."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
FILES = {
    "torch.py": "raise ImportError('not here')\n",
    "test_skipped.py": "import pytest\n\n@pytest.mark.skip(reason='none')\ndef test_it(): ...\n",
    "test_whole.py": "import pytest\n\npytest.importorskip('no_such_library')\n",
    "test_both.py": "def test_it(xp):\n    assert xp.sum(xp.asarray([1.0, 2.0])) == 3.0\n",
}


def run(*arguments, folder=HERE.parent, before="pass", **environment):
    """Run pytest without plugins in a process of its own; return its status and what it says."""
    code = f"import sys; {before}; import pytest; sys.exit(pytest.main())"
    clean = {k: v for k, v in os.environ.items() if k not in ("CI", "REQUIRE_TORCH")}
    done = subprocess.run(
        [sys.executable, "-c", code, "-p", "no:cacheprovider", *arguments],
        cwd=folder,
        env=clean | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("where", "skips"), [("CI", 0), ("REQUIRE_TORCH", 2)])
def test_in_ci_nothing_is_skipped_and_a_missing_torch_fails_where_it_is_required(
    tmp_path, where, skips
):
    shutil.copy(HERE / "conftest.py", tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    config = ["-c", os.devnull, "--rootdir", str(tmp_path), "-v", "--continue-on-collection-errors"]
    status, said = run(*config, str(tmp_path), folder=tmp_path, **{where: "true"})
    assert status != 0
    assert "test_it[numpy] PASSED" in said and "test_it[torch] ERROR" in said
    assert said.count("skipped in CI: ") == (0 if skips else 4)
    assert ("2 skipped" in said) == bool(skips), said


def test_without_nbval_no_notebook_is_passed_over():
    """Named or found: `pytest chapters` has pages to test as well, and so has `make stable`."""
    named, found = "chapters/01-database-analogy.ipynb", "chapters/02-softmax-weighting.ipynb"
    status, said = run("--co", "-q", named, "chapters", before="sys.modules['nbval'] = None")
    assert status != 0 and "pip install nbval" in said
    assert f"ERROR {named}" in said and f"ERROR {found}" in said
