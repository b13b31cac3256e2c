"""Settings of every pytest run, from wherever it is started."""

import importlib.util
import os

# One thread, here and in the notebooks' kernels: sums are taken in the same order everywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Notebooks are compared, and pages are looked at, wherever what they need is installed; the
# library's own tests do without it.
NEEDS = {"tests.notebooks.strict": "nbval", "tests.book.building": "jupyter_book"}
pytest_plugins = [plugin for plugin, need in NEEDS.items() if importlib.util.find_spec(need)]
