"""JAX is no requirement of the tests: its file is collected where JAX is installed."""

from importlib.util import find_spec

WITHOUT_JAX = find_spec("jax") is None
collect_ignore = ["test_jax.py"] if WITHOUT_JAX else []


def pytest_report_header():
    """Say what is left out."""
    return "tests/core/test_jax.py is left out: JAX is not installed" if WITHOUT_JAX else None
