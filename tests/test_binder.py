"""Binder: others run the notebooks there, on the versions that are tested here."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
PINS = dict(re.findall(r"^([\w.-]+)==(\S+)", (ROOT / "requirements.txt").read_text(), re.M))
PROJECT = (ROOT / "pyproject.toml").read_text("utf8")
FROM_CONDA = {"pytorch-cpu": "torch"}  # what it is called there, and here
NEEDED = yaml.safe_load((ROOT / "binder/environment.yml").read_text())["dependencies"]
PYTHON, *CONDA, BEFORE_PIP, LAST = NEEDED
PIP = dict(line.split("==") for line in LAST["pip"])
THERE = {FROM_CONDA[line.split(">=")[0]] for line in CONDA} | {*PIP}


def test_it_is_what_the_library_needs_in_the_pinned_versions_and_nothing_else():
    oldest = re.search(r'requires-python = ">=3\.(\d+)"', PROJECT)[1]
    assert BEFORE_PIP == "pip" and int(PYTHON.removeprefix("python=3.")) >= int(oldest)
    assert {name: PINS[name] for name in PIP} == PIP
    needs = re.search(r"^dependencies = \[(.*)\]", PROJECT, re.M)[1] + '"torch>", "matplotlib>"'
    assert set(re.findall(r'"([\w-]+)>', needs)) == THERE
    assert " --no-deps " in (ROOT / "binder" / "postBuild").read_text()
