"""What the tests of figures share."""

import importlib
from pathlib import Path

import pytest

from tests.comparing import TORCH


def pytest_collection_modifyitems(items):
    """Let tests draw arbitrary numbers from 0 to 1; those about row sums turn the warning on."""
    here = Path(__file__).parent
    quiet = pytest.mark.filterwarnings("ignore:matrices. row .* not to 1:UserWarning")
    for item in items:
        if here in item.path.parents:
            item.add_marker(quiet, append=False)


@pytest.fixture
def torch():
    """Return PyTorch; only where it is not required may it be missing."""
    return importlib.import_module("torch") if TORCH else pytest.skip("needs PyTorch")
