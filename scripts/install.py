"""Make .venv and install the pins in it; with --pins, write the pins themselves.

Whatever goes wrong ends in one line that says what, and an exit status of 1.
A Python that is too old for the project must be able to read this file, to be told so.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
NO_NETWORK = re.compile(r"NewConnectionError|Timeout|NameResolution|ProxyError|Retrying \(")


def fail(line):
    """Stop with one line."""
    sys.exit(f"error: {line}")


def python_of(venv):
    """Return the interpreter of a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def works(venv):
    """Tell whether the interpreter of an environment runs, and stop if it is too old."""
    tell = [str(python_of(venv)), "-c", "import sys; print(*sys.version_info[:2])"]
    told = subprocess.run(tell, capture_output=True, text=True)
    if told.returncode:
        return False
    version = tuple(map(int, told.stdout.split()))
    if version < OLDEST:
        old, new = (".".join(map(str, each)) for each in (version, OLDEST))
        fail(f"{venv} holds Python {old}, and {new} or newer is needed: delete it and call again")
    return True


def make_venv(venv):
    """Make a virtual environment, unless a working one is there."""
    if python_of(venv).exists() and works(venv):
        return
    command = [sys.executable, "-m", "venv", "--clear", str(venv)]
    if subprocess.run(command, capture_output=True).returncode:
        fail("Python cannot make a virtual environment (on Debian: apt install python3-venv)")


def pip(venv, log, *arguments):
    """Run pip with its output in a log, and say in one line why it failed."""
    command = [str(python_of(venv)), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    with log.open("a") as out:
        done = subprocess.run([*command, *arguments], stdout=out, stderr=out, cwd=str(ROOT))
    if done.returncode == 0:
        return
    text = log.read_text(errors="replace")
    reasons = re.findall(r"^ERROR: (.*)", text, re.MULTILINE) or ["pip failed"]
    if NO_NETWORK.search(text):
        reasons.append("pip cannot reach the package index: is there a network?")
    fail(f"{reasons[-1]} (all that pip said: {log})")


def install():
    """Bring .venv to what requirements.txt says."""
    make_venv(VENV)
    log = VENV / "install.log"
    log.write_text("")
    print("Installing the pinned packages in .venv: a few minutes the first time", flush=True)
    pip(VENV, log, "install", "-r", "requirements.txt")
    pip(VENV, log, "install", "--no-deps", "--no-build-isolation", "--editable", ".")
    (VENV / "installed").touch()


def write_pins():
    """Install requirements.in in a fresh environment and pin all that came."""
    log = ROOT / "pins.log"
    log.write_text("")
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        make_venv(venv)
        print("Installing requirements.in in a fresh environment: a few minutes", flush=True)
        pip(venv, log, "install", "-r", "requirements.in")
        freeze = [str(python_of(venv)), "-m", "pip", "freeze", "--all", "--exclude", "pip"]
        frozen = subprocess.check_output(freeze, text=True).split()
    log.unlink()
    # A CPU build of torch calls itself 2.13.0+cpu; the pin is the release, whatever the build.
    pins = sorted((re.sub(r"\+\w+$", "", pin) for pin in frozen), key=str.lower)
    head = "# Written by `make pins` from requirements.in: change that file, not this one."
    (ROOT / "requirements.txt").write_text("\n".join([head, *pins]) + "\n")
    print(f"requirements.txt holds {len(pins)} pins")


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        have = ".".join(map(str, sys.version_info[:2]))
        fail(f"Python 3.11 or newer is needed, this one is {have} (try: make PYTHON=python3.12)")
    write_pins() if "--pins" in sys.argv[1:] else install()
