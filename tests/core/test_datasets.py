"""The data that ships with the library: what is in it, and what the book says about it.

The two series are compared with published summaries. Each file is pinned by its hash; what the book
finds in it, its chapters print, and their outputs are compared.
"""

import hashlib
import re
import subprocess
import sys
from pathlib import Path
from statistics import fmean, quantiles

import numpy as np
import pytest

import d2lmini
from d2lmini import load_incomes, load_names, load_nile, load_sunspots, load_video_titles

LOADERS = [load_incomes, load_nile, load_sunspots, load_video_titles]
DATA = Path(d2lmini.__file__).parent / "data"
SCRIPTS = Path(__file__).parents[2] / "scripts" / "data"


# What is loaded


@pytest.mark.parametrize("load", LOADERS)
def test_kinds_lengths_and_copies(load):
    data, again = load(), load()
    lengths = [len(field) for field in data]
    assert all(a == b > 0 for a, b in zip(lengths[::2], lengths[1::2], strict=True))
    for name, field in data._asdict().items():
        if isinstance(field, np.ndarray):
            assert field.dtype == np.float64 and np.isfinite(field).all(), name
            before = field.copy()
            getattr(again, name)[...] = -1  # changes nothing else
            np.testing.assert_array_equal(getattr(load(), name), before)
            np.testing.assert_array_equal(field, before)


def test_every_sixth_name_is_held_out():
    listed = (DATA / "names.txt").read_text("ascii").split()
    learned, held_out = load_names()
    assert listed[:7] == ["smith", "johnson", "williams", "jones", "brown", "davis", "miller"]
    assert held_out == tuple(name for i, name in enumerate(listed) if i % 6 == 5)
    assert learned == tuple(name for i, name in enumerate(listed) if i % 6 != 5)
    assert (len(learned), len(held_out)) == (5000, 1000)
    assert len({*learned, *held_out}) == 6000, "a name that is held out was never shown"


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


def test_fifty_titles_twelve_queries_and_vectors_of_length_one():
    videos = load_video_titles()
    assert (len(set(videos.titles)), len(set(videos.queries))) == (50, 12)
    with np.load(DATA / "video_vectors.npz") as stored:
        for name, shape in {"keys": (50, 384), "query_vectors": (12, 384)}.items():
            vectors = getattr(videos, name)
            assert vectors.shape == shape
            np.testing.assert_allclose(stored[name], vectors, atol=2e-4)  # float16
            np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, rtol=1e-15)


# Files


def test_the_readme_lists_every_file_with_its_hash():
    readme = (DATA / "README.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\S+)` \| \d+[ a-z]* \| (\d+) \| `([0-9a-f]{64})` \|$", readme, re.M)
    stored = {file.name: file.read_bytes() for file in DATA.iterdir() if file.is_file()}
    del stored["README.md"]
    assert {name: (int(size), sha256) for name, size, sha256 in rows} == {
        name: (len(content), hashlib.sha256(content).hexdigest())
        for name, content in stored.items()
    }
    total = sum(map(len, stored.values()))
    assert total <= 6_300_000, (
        f"{total} bytes of data: each install fetches them, and a clone keeps every version of "
        "them; store fewer layers, or fewer digits"
    )


@pytest.mark.rebuild
@pytest.mark.parametrize("script", sorted(SCRIPTS.glob("build_*.py")), ids=lambda file: file.name)
def test_rebuilt_byte_for_byte(script):
    command = [sys.executable, "-B", str(script), "--check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "")
