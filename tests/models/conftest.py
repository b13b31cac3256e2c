"""The models of transformers are compared where it is installed: in the weekly job "models"."""

from importlib.util import find_spec

import pytest

WITHOUT_TRANSFORMERS = find_spec("transformers") is None
collect_ignore = ["test_transformers.py"] if WITHOUT_TRANSFORMERS else []


def pytest_report_header():
    """Say what is left out."""
    if WITHOUT_TRANSFORMERS:
        return "tests/models/test_transformers.py is left out: transformers is not installed"
    return None


@pytest.fixture(autouse=True)
def one_thread():
    """Train in one thread: sums come out the same, and other tests keep their processor."""
    if find_spec("torch") is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
