"""Settings of every pytest run, from wherever it is started."""

import importlib.util
import os

# One thread, here and in the notebooks' kernels: sums are taken in the same order everywhere.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Notebooks are compared wherever nbval is installed; the library's own tests do without it.
pytest_plugins = ["tests.notebooks.strict"] if importlib.util.find_spec("nbval") else []
