"""Make .venv and install the pins in it; with --pins, write the pins themselves.

With --lab it adds JupyterLab, which only who opens the chapters as notebooks needs; with --bench it
puts what `make bench` measures beside the library into .peers. With --check it says nothing, and
its status tells whether what was installed is still whole.

While packages come, it says every few seconds which; Ctrl-C stops it, and the next call goes on.
Whatever goes wrong ends in one line that says what, and an exit status of 1.
A Python that is too old for the project must be able to read this file, to be told so.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

OLDEST = (3, 11)
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PEERS = ROOT / ".peers"
STEP = re.compile(
    r"^ *((?:Collecting|Downloading|Building|Installing) [^(\n]*(?:\(.* [kMG]B\))?)", re.MULTILINE
)
EVERY = 5  # seconds
# What JupyterLab does at first: light or dark as the reader's system, no question about news, and
# every cell as tall as it is, or a link to a heading misses it by half a screen.
LAB_SETTINGS = {
    "@jupyterlab/apputils-extension:themes": {"adaptive-theme": True},
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false"},
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
}
NO_NETWORK = re.compile(r"NewConnectionError|Timeout|NameResolution|ProxyError|Retrying \(")


def fail(line):
    """Stop with one line."""
    sys.exit(f"error: {line}")


def python_of(venv):
    """Return the interpreter of a virtual environment."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def works(venv):
    """Tell whether an environment is whole, with its pip, and stop if its Python is too old."""
    whole = "import sys, pip._internal.cli.main; print(*sys.version_info[:2])"
    tell = [str(python_of(venv)), "-c", whole]
    told = subprocess.run(tell, capture_output=True, text=True)
    if told.returncode:
        return False
    version = tuple(map(int, told.stdout.split()))
    if version < OLDEST:
        old, new = (".".join(map(str, each)) for each in (version, OLDEST))
        fail(f"{venv} holds Python {old}, and {new} or newer is needed: delete it and call again")
    return True


def was_moved(venv):
    """Tell whether the folder has another place than when its commands were installed."""
    for name in ("jupyter-book", "pip"):
        command = python_of(venv).with_name(name)
        if command.exists():
            head = command.read_bytes()[:500].splitlines()[:3]
            return str(python_of(venv)).encode() not in b" ".join(head)
    return False


def half_installed(venv):
    """Return what pip takes for an installed package though it was interrupted, or damaged."""
    found = []
    windows, others = "Lib/site-packages/*.dist-info", "lib/python*/site-packages/*.dist-info"
    for about in sorted({*venv.glob(windows), *venv.glob(others)}):
        record = about / "RECORD"
        files = record.read_text("utf8").splitlines() if record.exists() else []
        names = [line.split(",")[0] for line in files]
        looked_at = [n for n in names if n.startswith("../../../bin/") or n.endswith("__init__.py")]
        if not files or not all((about.parent / name).exists() for name in looked_at):
            found.append(about)
    return found


def make_venv(venv):
    """Make a virtual environment, unless a working one is there; mend one that is half there."""
    if python_of(venv).exists() and works(venv) and not was_moved(venv):
        for about in half_installed(venv):
            shutil.rmtree(str(about))  # now pip will install that package again
        return
    if not os.access(str(venv.parent), os.W_OK):
        fail(f"{venv.parent} cannot be written to: copy the book to a folder of your own")
    command = [sys.executable, "-m", "venv", "--clear", str(venv)]
    if subprocess.run(command, capture_output=True).returncode:
        fail("Python cannot make a virtual environment (on Debian: apt install python3-venv)")


def tell_steps(running, log):
    """Say every few seconds what pip does, until it is done."""
    start = time.monotonic()
    while True:
        try:
            running.wait(EVERY)
            return
        except subprocess.TimeoutExpired:
            steps = STEP.findall(log.read_text(errors="replace")) or ["starting"]
            step = steps[-1].strip()
            step = step if len(step) < 80 else step[:79] + "…"
            print(f"  {time.monotonic() - start:3.0f} s: {step}", flush=True)


def pip(venv, log, *arguments):
    """Run pip with its output in a log, and say in one line why it failed."""
    command = [str(python_of(venv)), "-m", "pip", "--disable-pip-version-check", "--no-input"]
    with log.open("a") as out:
        running = subprocess.Popen([*command, *arguments], stdout=out, stderr=out, cwd=str(ROOT))
    try:
        tell_steps(running, log)
    except KeyboardInterrupt:
        running.wait()  # Ctrl-C has stopped it too
        raise
    if running.returncode == 0:
        return
    text = log.read_text(errors="replace")
    reasons = re.findall(r"^ERROR: (.*)", text, re.MULTILINE)
    if not reasons:
        stopped = running.returncode < 0
        reasons = ["pip was stopped before it was done: call again" if stopped else "pip failed"]
    if reasons[-1] == "Exception:":  # a traceback of pip's own
        reasons.append(text.strip().splitlines()[-1])
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


def install_lab():
    """Add JupyterLab to .venv, with which the chapters are opened as notebooks."""
    log = VENV / "install.log"
    log.write_text("")
    print("Installing JupyterLab in .venv: a minute, the first time only", flush=True)
    pip(VENV, log, "install", "-r", "requirements-lab.txt")
    settings = VENV / "share/jupyter/lab/settings"
    settings.mkdir(parents=True, exist_ok=True)
    (settings / "overrides.json").write_text(json.dumps(LAB_SETTINGS))
    (VENV / "installed-lab").touch()


def install_peers():
    """Put what `make bench` measures beside the library into .peers, where nothing else looks."""
    log = VENV / "install.log"
    log.write_text("")
    print("Installing in .peers what is measured beside the library", flush=True)
    shutil.rmtree(str(PEERS), ignore_errors=True)
    alone = ["--no-deps", "--target", str(PEERS)]
    pip(VENV, log, "install", *alone, "-r", "requirements-bench.txt")
    (PEERS / "installed").touch()


# The libraries for graphics cards, which PyTorch asks for on Linux at versions of its own choice.
FROM_TORCH = re.compile(r"^(nvidia-|cuda-|triton)")


def write_pins():
    """Pin all that requirements.in needs on any system; a marker says where a pin is for."""
    log = ROOT / "pins.log"
    log.write_text("")
    with tempfile.TemporaryDirectory() as folder:
        venv = Path(folder) / "venv"
        make_venv(venv)
        print("Looking for versions that fit together", flush=True)
        pip(venv, log, "install", "uv")
        oldest = ".".join(map(str, OLDEST))
        compile_ = ["uv", "pip", "compile", "--universal", "--python-version", oldest]
        plain = ["--no-header", "--no-annotate", "--no-emit-index-url", "--upgrade", "--quiet"]
        done = subprocess.run(
            [str(python_of(venv)), "-m", *compile_, *plain, "requirements.in"],
            capture_output=True,
            text=True,
            cwd=str(ROOT),
        )
    if done.returncode:
        fail(done.stderr.strip().splitlines()[-1])
    log.unlink()
    pins = [line for line in done.stdout.splitlines() if "==" in line]
    pins = [pin for pin in pins if not FROM_TORCH.match(pin) and "== 'pypy'" not in pin]
    head = "# Written by `make pins` from requirements.in: change that file, not this one."
    (ROOT / "requirements.txt").write_text("\n".join([head, *pins]) + "\n")
    print(f"requirements.txt holds {len(pins)} pins")


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        have = ".".join(map(str, sys.version_info[:2]))
        fail(f"Python 3.11 or newer is needed, this one is {have} (try: make PYTHON=python3.12)")
    if "--check" in sys.argv[1:]:
        sys.exit(was_moved(VENV) or bool(half_installed(VENV)))
    todo = {"--pins": write_pins, "--lab": install_lab, "--bench": install_peers}
    try:
        todo.get(sys.argv[-1], install)()
    except KeyboardInterrupt:
        fail("stopped: the next call goes on from here")
