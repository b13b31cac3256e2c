"""What a newcomer meets when something is wrong with the machine: one line that says what."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.request
from importlib.metadata import requires, version
from pathlib import Path

import pytest

from scripts import install, serve

ROOT = Path(__file__).resolve().parents[1]
PINS = (ROOT / "requirements.txt").read_text("utf8")
DIRECT = (ROOT / "requirements.in").read_text("utf8")
pytestmark = [
    pytest.mark.machine,
    pytest.mark.skipif(not shutil.which("make"), reason="make is not installed"),
    pytest.mark.skipif(os.name == "nt", reason="stand-ins for Python are shell scripts"),
]


def pinned(text):
    """Return the pins that hold on this machine, by name."""
    from packaging.requirements import Requirement

    lines = [line for line in text.splitlines() if "==" in line and not line.startswith("#")]
    needs = [need for need in map(Requirement, lines) if not need.marker or need.marker.evaluate()]
    return {canonical(need.name): str(need.specifier).removeprefix("==") for need in needs}


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_pins_are_exact_for_every_system_and_leave_graphics_libraries_to_pytorch():
    for line in PINS.splitlines()[1:]:
        assert re.fullmatch(r"[a-z0-9._-]+==[A-Za-z0-9.]+( ; .+)?", line), line
    assert re.search(r"^colorama==\S+ ; sys_platform == 'win32'$", PINS, re.MULTILINE)
    assert re.search(r"^appnope==\S+ ; sys_platform == 'darwin'$", PINS, re.MULTILINE)
    assert not re.search(r"^(nvidia|cuda|triton)", PINS, re.MULTILINE)
    assert pinned(DIRECT).items() <= pinned(PINS).items()


def test_pins_are_what_is_installed_and_all_that_it_needs():
    from packaging.requirements import Requirement

    pins = pinned(PINS)
    for name, pin in pins.items():
        assert version(name).split("+")[0] == pin, name
        for need in map(Requirement, requires(name) or []):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                known = canonical(need.name) in {*pins, "pip"}
                assert known or install.FROM_TORCH.match(need.name), (name, need)


def test_jupyterlab_leaves_the_pins_as_they_are():
    """What `make lab` adds may not change what the outputs were computed with."""
    lines = (ROOT / "requirements-lab.txt").read_text("utf8").splitlines()
    first, *asked = [line for line in lines if not line.startswith("#")]
    assert first == "-c requirements.txt"
    assert asked and all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in asked)
    assert not pinned("\n".join(asked)).keys() & pinned(PINS).keys()


@pytest.fixture
def project(tmp_path):
    """Return what `make` needs to install, in a folder with a space in its name."""
    folder = tmp_path / "my project"
    (folder / "scripts").mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "pyproject.toml", "scripts/install.py"):
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def program(path, *lines):
    """Write a shell script that stands for a program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
    path.chmod(0o755)
    return path


def make(folder, target, python=sys.executable, **environment):
    """Run make without this machine's own settings of pip."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "MAKE", "MFLAGS"))}
    return subprocess.run(
        ["make", target, f"PYTHON={python}"],
        cwd=folder,
        env=clean | {"PIP_CONFIG_FILE": os.devnull} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def one_line(done):
    """Return the only line of an error, but for the one that make adds."""
    assert done.returncode != 0
    lines = [line for line in done.stderr.splitlines() if not line.startswith("make: ***")]
    assert len(lines) == 1, done.stderr
    return lines[0]


def test_plain_make_lists_the_commands():
    listed = subprocess.check_output(["make"], cwd=ROOT, text=True)
    for target in ("book", "lab", "pdf", "serve", "test", "notebooks", "lint", "pins", "clean"):
        assert re.search(rf"^  make {target} +\w", listed, re.MULTILINE)


def test_an_old_python_and_none(project):
    pretend = "import sys; sys.version_info = (3, 10, 2); exec(open('scripts/install.py').read())"
    run = f'exec "{sys.executable}" -c "__file__ = \'{project}\'; {pretend}"'
    said = one_line(make(project, "book", python=program(project / "python", run)))
    assert "Python 3.11 or newer is needed" in said and "this one is 3.10" in said
    assert "no-such-python" in one_line(make(project, "book", python="no-such-python"))
    assert not (project / ".venv").exists()


def test_what_pip_cannot_get_or_read_is_named(project):
    """The first failure makes .venv, and the next ones use it."""
    nobody = "http://127.0.0.1:9/simple"  # the discard port: closed
    said = one_line(make(project, "test", PIP_INDEX_URL=nobody, PIP_RETRIES="1"))
    assert "pip cannot reach the package index" in said and "install.log" in said
    for line, words in (
        ("numpy==999.0", "No matching distribution found for numpy==999.0"),
        ("numpy=2", "numpy=2"),
    ):
        (project / "requirements.txt").write_text(f"{line}\n")
        assert words in one_line(make(project, "book", PIP_NO_INDEX="1"))
    assert not (project / ".venv" / "installed").exists()


def written(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.fixture
def installed(project, monkeypatch):
    """Return a project with an environment in which one package, with a command, is installed.

    Its pip is none, for that takes seconds to install: so are those that are made after it.
    """
    venv, run = project / ".venv", subprocess.run

    def quick(command, **how):
        done = run([*command, "--without-pip"] if "venv" in command else command, **how)
        for site in Path(command[-1]).glob("lib/*/site-packages") if "venv" in command else ():
            written(site, {"pip/_internal/cli/main.py": ""})
        return done

    monkeypatch.setattr(install.subprocess, "run", quick)
    quick([sys.executable, "-m", "venv", str(venv)], check=True)
    (site,) = venv.glob("lib/*/site-packages")
    record = ["book-1.0.dist-info/METADATA,,", "book/__init__.py,,", "../../../bin/jupyter-book,,"]
    package = {
        "book-1.0.dist-info/METADATA": "Name: book\nVersion: 1.0\n",
        "book-1.0.dist-info/RECORD": "\n".join(record),
        "book/__init__.py": "",
    }
    written(site, package)
    written(venv, {"bin/jupyter-book": f"#!{venv}/bin/python\n", "installed": ""})
    return project


def is_up_to_date(project):
    """Ask make, without letting it install anything."""
    done = make(project, ".venv/installed", python="no-such-python")
    return done.returncode == 0 and "up to date" in done.stdout


@pytest.mark.parametrize(
    ("gone", "anew"),  # what is no longer there, and whether all is made anew
    [
        ("", True),  # the whole folder has moved
        ("bin/python", True),
        ("lib/*/site-packages/pip", True),  # Ctrl-C in the first seconds
        ("bin/jupyter-book", False),
        ("lib/*/site-packages/book", False),
        ("lib/*/site-packages/*/RECORD", False),  # interrupted
    ],
)
def test_what_is_no_longer_whole_is_installed_again(installed, gone, anew):
    """Pip is made to see what is missing, and nothing is installed twice."""
    assert is_up_to_date(installed)
    if gone:
        (path,) = (installed / ".venv").glob(gone)
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    else:
        installed = installed.rename(installed.with_name("another place"))
    venv = installed / ".venv"
    assert is_up_to_date(installed) == gone.endswith("pip")  # pip itself make does not ask for
    install.make_venv(venv)
    assert install.works(venv) and not install.was_moved(venv)
    assert not list(venv.glob("lib/*/site-packages/book-*.dist-info"))
    assert (venv / "bin/jupyter-book").exists() == (not anew and "bin" not in gone)


def test_server_answers_this_machine_only_and_notices_a_change(tmp_path):
    page = tmp_path / "index.html"
    page.write_text("a page")
    with serve.server(tmp_path, port=0) as web:
        assert web.server_address[0] == "127.0.0.1"
        threading.Thread(target=web.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{web.server_port}/index.html"
        with urllib.request.urlopen(url, timeout=10) as answer:
            assert answer.read() == b"a page"
            assert answer.headers["Cache-Control"] == "no-store"
        with serve.server(tmp_path, port=web.server_port) as second:
            assert second.server_port != web.server_port
        web.shutdown()
    before = serve.snapshot(tmp_path)
    assert list(before) == [page] and serve.snapshot(tmp_path) == before
    os.utime(page, ns=(0, before[page] + 1))
    assert serve.snapshot(tmp_path) != before


def test_what_stops_pip_or_an_environment_is_said_in_one_line(tmp_path, monkeypatch):
    def pip():
        install.pip(tmp_path, tmp_path / "log", "install", "something")

    broken = r"printf 'ERROR: Exception:\nTraceback\n  in it\nOSError: gone\n'; exit 2"
    for does, call, said in (
        ("echo 3 8", lambda: install.make_venv(tmp_path), "holds Python 3.8, and 3.11 or newer is"),
        # by a machine short of memory, for example; the next call goes on
        ("kill -9 $$", pip, "error: pip was stopped before it was done: call again"),
        (broken, pip, "error: OSError: gone"),
    ):
        program(install.python_of(tmp_path), does)
        with pytest.raises(SystemExit, match=re.escape(said)):
            call()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SystemExit, match="cannot be written to: copy the book to a folder"):
        install.make_venv(tmp_path / ".venv")


def test_it_says_what_comes_and_stops_with_one_line(project):
    """Minutes without a word look like an end, and a traceback like a fault."""
    pip = "echo Collecting numpy; echo '  Downloading numpy-2.4.6.whl (16.2 MB)'; sleep 60"
    program(project / ".venv/bin/python", f'case "$1" in -c) echo 3 12;; *) {pip};; esac')
    script = project / "scripts/install.py"
    script.write_text(script.read_text("utf8").replace("EVERY = 5", "EVERY = 0.1"), "utf8")
    said = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    running = subprocess.Popen([sys.executable, script], start_new_session=True, **said)
    while "Downloading" not in (line := running.stdout.readline()):
        assert line, "it is silent"
    assert re.fullmatch(r" +\d+ s: Downloading numpy-2\.4\.6\.whl \(16\.2 MB\)\n", line)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert (running.returncode, said) == (1, "error: stopped: the next call goes on from here\n")
