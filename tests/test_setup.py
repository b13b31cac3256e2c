"""What a newcomer meets when something is wrong with the machine: one line that says what."""

import os
import re
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from scripts import install, serve

pytestmark = pytest.mark.machine
ROOT = Path(__file__).resolve().parents[1]
PINS = (ROOT / "requirements.txt").read_text("utf8")
DIRECT = (ROOT / "requirements.in").read_text("utf8")
needs_make = pytest.mark.skipif(not shutil.which("make"), reason="make is not installed")


def pinned(text):
    """Return the pins that hold on this machine, by name."""
    from packaging.requirements import Requirement

    lines = [line for line in text.splitlines() if "==" in line and not line.startswith("#")]
    needs = [need for need in map(Requirement, lines) if not need.marker or need.marker.evaluate()]
    return {canonical(need.name): str(need.specifier).removeprefix("==") for need in needs}


def canonical(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def test_pins_are_exact_and_say_where_they_are_for():
    for line in PINS.splitlines()[1:]:
        assert re.fullmatch(r"[a-z0-9._-]+==[A-Za-z0-9.]+( ; .+)?", line), line


def test_one_file_serves_every_system_and_leaves_graphics_libraries_to_pytorch():
    assert re.search(r"^colorama==\S+ ; sys_platform == 'win32'$", PINS, re.MULTILINE)
    assert re.search(r"^appnope==\S+ ; sys_platform == 'darwin'$", PINS, re.MULTILINE)
    assert not re.search(r"^(nvidia|cuda|triton)", PINS, re.MULTILINE)


def test_pins_hold_every_direct_requirement():
    direct, pins = pinned(DIRECT), pinned(PINS)
    assert direct.items() <= pins.items()


def test_pins_are_what_is_installed():
    """Nothing is missing from the pins, and nothing here runs on other versions."""
    from importlib.metadata import version

    for name, pin in pinned(PINS).items():
        assert version(name).split("+")[0] == pin, name


def test_pins_are_complete():
    """Whatever a pinned package needs on this machine is pinned as well."""
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    pins = {canonical(name) for name in pinned(PINS)}
    for name in pins:
        for need in map(Requirement, requires(name) or []):
            if need.marker is None or need.marker.evaluate({"extra": ""}):
                known = canonical(need.name) in pins or canonical(need.name) == "pip"
                assert known or install.FROM_TORCH.match(need.name), (name, need)


def test_jupyterlab_leaves_the_pins_as_they_are():
    """What `make lab` adds may not change what the outputs were computed with."""
    lines = (ROOT / "requirements-lab.txt").read_text("utf8").splitlines()
    asked = [line for line in lines if not line.startswith("#")]
    assert asked[0] == "-c requirements.txt"
    assert asked[1:] and all(re.fullmatch(r"[\w-]+==[\d.]+", line) for line in asked[1:])
    assert not pinned("\n".join(asked)).keys() & pinned(PINS).keys()


def copy_of_project(folder):
    """Copy what `make` needs to install to a folder with a space in its name."""
    project = folder / "my project"
    (project / "scripts").mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "pyproject.toml", "scripts/install.py"):
        shutil.copyfile(ROOT / name, project / name)
    return project


@pytest.fixture
def untouched(tmp_path):
    """Return a project in which nothing was made yet."""
    return copy_of_project(tmp_path)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return a project whose .venv the first failing test makes, and the next ones use."""
    return copy_of_project(tmp_path_factory.mktemp("setup"))


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


@needs_make
def test_plain_make_lists_the_commands():
    listed = subprocess.check_output(["make"], cwd=ROOT, text=True)
    for target in ("book", "lab", "pdf", "serve", "test", "notebooks", "lint", "pins", "clean"):
        assert re.search(rf"^  make {target} +\w", listed, re.MULTILINE)


@needs_make
def test_old_python(untouched):
    old = untouched / "python"
    pretend = "import sys; sys.version_info = (3, 10, 2); exec(open('scripts/install.py').read())"
    old.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "__file__ = \'{untouched}\'; {pretend}"\n'
    )
    old.chmod(0o755)
    done = make(untouched, "book", python="./python")
    assert "Python 3.11 or newer is needed" in one_line(done)
    assert "this one is 3.10" in one_line(done)
    assert not (untouched / ".venv").exists()


@needs_make
def test_no_python(untouched):
    done = make(untouched, "book", python="no-such-python")
    assert "no-such-python" in one_line(done)


@needs_make
def test_no_network(project):
    nobody = "http://127.0.0.1:9/simple"  # the discard port: closed
    done = make(project, "test", PIP_INDEX_URL=nobody, PIP_RETRIES="1")
    assert "pip cannot reach the package index" in one_line(done)
    assert "install.log" in one_line(done)
    assert not (project / ".venv" / "installed").exists()


@needs_make
def test_broken_pin(project):
    (project / "requirements.txt").write_text("numpy==999.0\n")
    done = make(project, "book", PIP_NO_INDEX="1")
    assert "No matching distribution found for numpy==999.0" in one_line(done)
    assert not (project / ".venv" / "installed").exists()


@needs_make
def test_unreadable_pin(project):
    (project / "requirements.txt").write_text("numpy=2\n")
    assert "numpy=2" in one_line(make(project, "book", PIP_NO_INDEX="1"))


@pytest.fixture
def installed(untouched):
    """Return a project with an environment in which one package, with a command, is installed."""
    if os.name == "nt":
        pytest.skip("commands are no scripts there")
    venv = untouched / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    (site,) = venv.glob("lib/*/site-packages")
    (site / "pip/_internal/cli").mkdir(parents=True)
    (site / "pip/_internal/cli/main.py").touch()
    about = site / "book-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Name: book\nVersion: 1.0\n")
    (site / "book").mkdir()
    (site / "book" / "__init__.py").touch()
    record = ["book-1.0.dist-info/METADATA,,", "book/__init__.py,,", "../../../bin/jupyter-book,,"]
    (about / "RECORD").write_text("\n".join(record))
    (venv / "bin" / "jupyter-book").write_text(f"#!{venv}/bin/python\n")
    (venv / "installed").touch()
    return untouched


def is_up_to_date(project):
    """Ask make, without letting it install anything."""
    done = make(project, ".venv/installed", python="no-such-python")
    return done.returncode == 0 and "up to date" in done.stdout


@needs_make
def test_nothing_is_installed_twice(installed):
    assert is_up_to_date(installed)


def moved(project):
    other = project.with_name("another place")
    project.rename(other)
    return other


def without_python(project):
    (project / ".venv" / "bin" / "python").unlink()
    return project


def without_a_command(project):
    (project / ".venv" / "bin" / "jupyter-book").unlink()
    return project


def without_its_files(project):
    (folder,) = (project / ".venv").glob("lib/*/site-packages/book")
    shutil.rmtree(folder)
    return project


def interrupted(project):
    (record,) = (project / ".venv").glob("lib/*/site-packages/*/RECORD")
    record.unlink()
    return project


HALF_THERE = [without_a_command, without_its_files, interrupted]


@needs_make
@pytest.mark.parametrize("harm", [moved, without_python, *HALF_THERE])
def test_what_is_no_longer_whole_is_installed_again(installed, harm):
    assert not is_up_to_date(harm(installed))


@pytest.mark.parametrize("harm", HALF_THERE)
def test_pip_is_made_to_see_what_is_missing(installed, harm):
    harm(installed)
    install.make_venv(installed / ".venv")
    assert not list((installed / ".venv").glob("lib/*/site-packages/book-*.dist-info"))
    assert install.works(installed / ".venv")


def without_pip(project):
    """As Ctrl-C leaves it in the first seconds."""
    (pip,) = (project / ".venv").glob("lib/*/site-packages/pip")
    shutil.rmtree(pip)
    return project


@pytest.mark.parametrize("harm", [moved, without_python, without_pip])
def test_an_environment_that_cannot_be_mended_is_made_anew(installed, harm):
    venv = harm(installed) / ".venv"
    install.make_venv(venv)
    assert install.works(venv)
    assert not install.was_moved(venv)
    assert not (venv / "bin" / "jupyter-book").exists()


def test_server_answers_this_machine_only(tmp_path):
    import threading

    (tmp_path / "index.html").write_text("a page")
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


def test_server_notices_a_change(tmp_path):
    (tmp_path / "chapters").mkdir()
    page = tmp_path / "chapters" / "index.md"
    page.write_text("one")
    before = serve.snapshot(tmp_path)
    assert list(before) == [page]
    assert serve.snapshot(tmp_path) == before
    page.write_text("two")
    os.utime(page, ns=(0, before[page] + 1))
    assert serve.snapshot(tmp_path) != before


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for Python is a shell script")
def test_an_environment_of_an_old_python_is_named(tmp_path):
    stand_in = tmp_path / "bin" / "python"
    stand_in.parent.mkdir()
    stand_in.write_text("#!/bin/sh\necho 3 8\n")
    stand_in.chmod(0o755)
    with pytest.raises(SystemExit, match=r"holds Python 3\.8, and 3\.11 or newer is needed"):
        install.make_venv(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for Python is a shell script")
@pytest.mark.parametrize(
    ("does", "said"),
    [  # by a machine short of memory, for example; the next call goes on
        ("kill -9 $$", "pip was stopped before it was done: call again"),
        (
            r"printf 'ERROR: Exception:\nTraceback\n  in it\nOSError: gone\n'; exit 2",
            "OSError: gone",
        ),
    ],
)
def test_a_pip_that_is_stopped_or_breaks_is_said_to(tmp_path, does, said):
    python = install.python_of(tmp_path)
    python.parent.mkdir()
    python.write_text(f"#!/bin/sh\n{does}\n")
    python.chmod(0o755)
    with pytest.raises(SystemExit, match=f"error: {said}"):
        install.pip(tmp_path, tmp_path / "log", "install", "something")


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for Python is a shell script")
def test_it_says_what_comes_and_stops_with_one_line(untouched):
    """Minutes without a word look like an end, and a traceback like a fault."""
    stand_in = untouched / ".venv/bin/python"
    stand_in.parent.mkdir(parents=True)
    pip = "echo Collecting numpy; echo '  Downloading numpy-2.4.6.whl (16.2 MB)'; sleep 60"
    stand_in.write_text(f'#!/bin/sh\ncase "$1" in -c) echo 3 12;; *) {pip};; esac\n')
    stand_in.chmod(0o755)
    quick = (untouched / "scripts/install.py").read_text("utf8").replace("EVERY = 5", "EVERY = 0.1")
    (untouched / "scripts/install.py").write_text(quick, "utf8")
    running = subprocess.Popen(
        [sys.executable, "scripts/install.py"],
        cwd=untouched,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while "Downloading" not in (line := running.stdout.readline()):
        assert line, "it is silent"
    assert re.fullmatch(r" +\d+ s: Downloading numpy-2\.4\.6\.whl \(16\.2 MB\)\n", line)
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=30)
    assert (running.returncode, said) == (1, "error: stopped: the next call goes on from here\n")


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(SystemExit, match="cannot be written to: copy the book to a folder"):
        install.make_venv(tmp_path / ".venv")
