"""The exercises' tests import what they share by name, whatever the import mode is."""

import sys
from pathlib import Path

import pytest

import d2lmini.exercises

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def no_hints_seen(monkeypatch):
    """A terminal shows the next hint with each call; what another test has seen does not count."""
    monkeypatch.setattr(d2lmini.exercises, "_hints_seen", {})
