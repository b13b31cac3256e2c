"""Where nbval is missing, a run of the notebooks is an error."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_without_nbval_no_notebook_is_passed_over():
    """Named or found: `pytest chapters` has pages to test as well, and so has `make stable`."""
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
