"""Settings of every pytest run, from wherever it is started."""

import importlib.util
import os
import random
import sys
import tempfile
from pathlib import Path

# One thread, here and in the notebooks' kernels: sums are taken in the same order everywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# A checkout that may not be written to is tested as well: what tools keep goes elsewhere.
if not os.access(Path(__file__).parent, os.W_OK):
    kept = Path(tempfile.mkdtemp(prefix="caches-"))
    for name in ("RUFF_CACHE_DIR", "MYPY_CACHE_DIR", "PYTHONPYCACHEPREFIX"):
        os.environ.setdefault(name, str(kept / name.lower()))

# Notebooks are compared, and pages are looked at, wherever what they need is installed; the
# library's own tests do without it.
NEEDS = {"tests.notebooks.strict": "nbval", "tests.book.building": "jupyter_book"}
pytest_plugins = [plugin for plugin, need in NEEDS.items() if importlib.util.find_spec(need)]

# Where processes share the tests, what takes minutes begins first, so that none is left alone with
# it at the end; and each of the first two builds a book that both need, while neither waits.
FIRST = (
    "tests/book/test_pages.py",
    "tests/browser/test_published.py",
    "tests/browser",
    "chapters",
    "tests/book",
)


def pytest_collection_modifyitems(items):
    """Sort files, and leave the order of the tests in each."""

    def place(item):
        places = (i for i, start in enumerate(FIRST) if item.nodeid.startswith(start))
        return next(places, len(FIRST))

    items.sort(key=place)


def pytest_runtest_setup(item):
    """Draw the same random numbers in every test, whichever tests ran before it in this process."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)
