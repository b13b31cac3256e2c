"""What the tests share."""

import importlib
import importlib.util
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples on each run: what fails, fails for everybody.
settings.register_profile("repeatable", derandomize=True, database=None, deadline=None)
settings.load_profile("repeatable")

# In CI the libraries that tests run on must be there; elsewhere NumPy alone will do.
REQUIRE_TORCH = bool(os.environ.get("CI") or os.environ.get("REQUIRE_TORCH"))
NAMESPACES = ["numpy"]
if REQUIRE_TORCH or importlib.util.find_spec("torch"):
    NAMESPACES.append("torch")

# What reads the formulas aloud is installed by the weekly job "long"; elsewhere nothing needs it.
ENGINE = Path(__file__).with_name("book") / "speech/node_modules"
SILENT = not (ENGINE.is_dir() and shutil.which("node"))
collect_ignore = ["book/test_aloud.py"] if SILENT else []


def pytest_report_header():
    """Say what is left out."""
    needs = "npm ci --prefix tests/book/speech --ignore-scripts"
    return f"tests/book/test_aloud.py is left out: it needs {needs}" if SILENT else None


@pytest.fixture(params=NAMESPACES)
def xp(request):
    """Return the array namespace to test on: NumPy always, torch wherever it is installed."""
    return importlib.import_module(f"array_api_compat.{request.param}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """In CI a skipped test is a failed one: nothing may pass because it did not run."""
    report = yield
    excused = hasattr(report, "wasxfail") or item.get_closest_marker("whole_model")
    if os.environ.get("CI") and report.skipped and not excused:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """The same for a file that skips itself as a whole."""
    report = yield
    if os.environ.get("CI") and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"skipped in CI: {report.longrepr}"
    return report
