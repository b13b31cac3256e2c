"""What the tests of figures share."""

import importlib
import os

import pytest


@pytest.fixture
def torch():
    """Return PyTorch; only where it is not required may it be missing."""
    if os.environ.get("CI") or os.environ.get("REQUIRE_TORCH"):
        return importlib.import_module("torch")
    return pytest.importorskip("torch")
