"""Nothing passes because it did not run, or is no longer there."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_without_nbval_no_notebook_is_passed_over():
    named, found = "chapters/01-database-analogy.ipynb", "chapters/02-softmax-weighting.ipynb"
    code = "import sys; sys.modules['nbval'] = None; import pytest; sys.exit(pytest.main())"
    done = subprocess.run(
        [sys.executable, "-c", code, "--co", "-q", "-p", "no:cacheprovider", named, "chapters"],
        cwd=ROOT,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    said = done.stdout + done.stderr
    assert done.returncode != 0 and "pip install nbval" in said
    assert f"ERROR {named}" in said and f"ERROR {found}" in said


def test_in_ci_what_is_skipped_fails(tmp_path):
    shutil.copy(ROOT / "tests/conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text("import pytest\n\n@pytest.mark.skip\ndef test_it(): ...\n")
    (tmp_path / "test_all.py").write_text("import pytest\n\npytest.importorskip('no_such')\n")
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", tmp_path, tmp_path]
    command += ["-p", "no:cacheprovider", "--continue-on-collection-errors"]
    done = subprocess.run(command, env=os.environ | {"CI": "1"}, capture_output=True, text=True)
    assert "2 errors in" in done.stdout, done.stdout


def test_what_people_reported_has_the_test_that_would_have_caught_it():
    text = (ROOT / "tests/reported-faults.md").read_text("utf8")
    for file, name in re.findall(r"^\| `(\S+)::(\w+)`", text, re.MULTILINE):
        assert f"\ndef {name}(" in (ROOT / "tests" / file).read_text("utf8"), f"{file}: {name}"
