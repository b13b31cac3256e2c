"""The models of transformers are compared where it is installed: in the weekly job "models"."""

from importlib.util import find_spec

WITHOUT_TRANSFORMERS = find_spec("transformers") is None
collect_ignore = ["test_transformers.py"] if WITHOUT_TRANSFORMERS else []


def pytest_report_header():
    """Say what is left out."""
    if WITHOUT_TRANSFORMERS:
        return "tests/models/test_transformers.py is left out: transformers is not installed"
    return None
