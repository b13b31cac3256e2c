"""What a newcomer meets when something is wrong with the machine: one line that says what."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import install, serve

ROOT = Path(__file__).resolve().parents[1]
PINS = (ROOT / "requirements.txt").read_text("utf8")
pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(not shutil.which("make"), reason="make is not installed"),
    pytest.mark.skipif(os.name == "nt", reason="stand-ins for Python are shell scripts"),
]


def pinned(name):
    """Return the pins of a file that hold on this machine, by name."""
    from packaging.requirements import Requirement

    lines = [line for line in (ROOT / name).read_text("utf8").splitlines() if "==" in line]
    needs = [need for need in map(Requirement, lines) if not need.marker or need.marker.evaluate()]
    return {need.name.lower(): str(need.specifier) for need in needs}


def test_pins_are_exact_for_every_system_and_leave_graphics_libraries_to_pytorch():
    for line in PINS.splitlines()[1:]:
        assert re.fullmatch(r"[a-z0-9._-]+==[A-Za-z0-9.]+( ; .+)?", line), line
    assert re.search(r"^colorama==\S+ ; sys_platform == 'win32'$", PINS, re.MULTILINE)
    assert not re.search(r"^(nvidia|cuda|triton)", PINS, re.MULTILINE)
    assert pinned("requirements.in").items() <= pinned("requirements.txt").items()
    assert (ROOT / "requirements-lab.txt").read_text("utf8").count("\n-c requirements.txt\n") == 1
    assert not pinned("requirements-lab.txt").keys() & pinned("requirements.txt").keys()


@pytest.fixture
def project(tmp_path):
    """Return what `make` needs to install, in a folder with a space in its name."""
    folder = tmp_path / "my project"
    (folder / "scripts").mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "pyproject.toml", "scripts/install.py"):
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def error_of_make(folder, python=sys.executable, **environment):
    """Run make without this machine's own settings of pip; return the one line that it says."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "book", f"PYTHON={python}"],
        cwd=folder,
        env=clean | {"PIP_CONFIG_FILE": os.devnull} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_an_old_python_and_none(project):
    pretend = "import sys; sys.version_info = (3, 10, 2); exec(open('scripts/install.py').read())"
    old = project / "python"
    old.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "__file__ = \'{project}\'; {pretend}"\n')
    old.chmod(0o755)
    said = error_of_make(project, python=old)
    assert "Python 3.11 or newer is needed" in said and "this one is 3.10" in said
    assert "no-such-python" in error_of_make(project, python="no-such-python")
    assert not (project / ".venv").exists()


def test_what_pip_cannot_get_is_named_and_what_was_interrupted_or_moved_is_noticed(project):
    """The first failure makes .venv, and the next one uses it."""
    nobody = "http://127.0.0.1:9/simple"  # the discard port: closed
    said = error_of_make(project, PIP_INDEX_URL=nobody, PIP_RETRIES="1")
    assert "pip cannot reach the package index" in said and "install.log" in said
    (project / "requirements.txt").write_text("numpy==999.0\n")
    said = error_of_make(project, PIP_NO_INDEX="1")
    assert "No matching distribution found for numpy==999.0" in said
    venv = project / ".venv"
    assert not (venv / "installed").exists() and not install.half_installed(venv)
    (record,) = venv.glob("lib/*/site-packages/pip-*/RECORD")
    record.unlink()
    assert install.half_installed(venv) == [record.parent] and not install.was_moved(venv)
    assert install.was_moved(venv.rename(project / "elsewhere"))


def test_the_server_answers_this_machine_only(tmp_path):
    with serve.server(tmp_path, port=0) as web:
        assert web.server_address[0] == "127.0.0.1"
