"""What the tests of the core share. JAX is no requirement: its file is collected where it is."""

import importlib
from importlib.util import find_spec

import pytest
from comparing import TORCH

WITHOUT_JAX = find_spec("jax") is None
collect_ignore = ["test_jax.py"] if WITHOUT_JAX else []


@pytest.fixture
def torch():
    """Return PyTorch; where it is required (in CI) a test that asks for it fails without it."""
    return importlib.import_module("torch") if TORCH else pytest.skip("needs PyTorch")


def pytest_report_header():
    """Say what is left out."""
    return "tests/core/test_jax.py is left out: JAX is not installed" if WITHOUT_JAX else None
