"""Settings of every pytest run, from wherever it is started."""

import importlib.util
import os
import random
import sys
import tempfile
from pathlib import Path

import pytest

# One thread, here and in the notebooks' kernels: sums are taken in the same order everywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A checkout that may not be written to is tested as well: what tools keep goes elsewhere.
if not os.access(Path(__file__).parent, os.W_OK):
    kept = Path(tempfile.mkdtemp(prefix="caches-"))
    for name in ("RUFF_CACHE_DIR", "MYPY_CACHE_DIR", "PYTHONPYCACHEPREFIX"):
        os.environ.setdefault(name, str(kept / name.lower()))

# Notebooks are compared, and pages are looked at, wherever what they need is installed; the
# library's own tests do without it.
NEEDS = {
    "tests.notebooks.strict": "nbval",
    "tests.book.building": "jupyter_book",
    "tests.chromium": "playwright",
}
pytest_plugins = [plugin for plugin, need in NEEDS.items() if importlib.util.find_spec(need)]

# Some of its recipes need transformers: tests/test_own_notebook.py runs each by itself.
collect_ignore = ["chapters/recipes.md"]

# Where processes share the tests, what takes minutes begins first, so that none is left alone with
# it at the end. One builds the book, while others run chapters, for which none is needed.
FIRST = (
    "tests/book/test_pages.py",
    "chapters/06",
    "chapters/10",
    "tests/browser/test_explorables.py",
    "tests/browser/test_live.py",
    "tests/browser",
    "chapters",
    "tests/book",
    "tests/notebooks/test_live.py",
    "tests/typing",
)
# Tests that ask for one of these, or import `build`, need a built book or a browser: `make check`
# leaves them out.
PAGES = {"building", "built", "published_site", "address", "published", "chromium"}


class NotCompared(pytest.File):
    """A notebook where nbval is missing: an error, for otherwise nobody would notice."""

    def collect(self):
        """Say what is missing."""
        raise self.CollectError("notebooks are compared with nbval: pip install nbval")


def pytest_collect_file(file_path, parent):
    """Pass over no notebook in silence."""
    if file_path.suffix == ".ipynb" and "tests.notebooks.strict" not in pytest_plugins:
        return NotCompared.from_parent(parent, path=file_path)
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark what needs pages; sort files, and leave the order of the tests in each."""

    def place(item):
        places = (i for i, start in enumerate(FIRST) if item.nodeid.startswith(start))
        return next(places, len(FIRST))

    for item in items:
        if PAGES & {*getattr(item, "fixturenames", ())} or hasattr(
            getattr(item, "module", None), "build"
        ):
            item.add_marker("pages")
        # A busy machine may let a browser wait for half a minute in vain. The run says so, by an R.
        if "chromium" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.flaky(reruns=1, only_rerun=["TimeoutError"]))
    items.sort(key=place)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Take two processes more than there are processors: tests of pages wait for a browser."""
    return min((os.cpu_count() or 1) + 2, 4)


def pytest_runtest_setup(item):
    """Draw the same random numbers in every test, whichever tests ran before it in this process."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
