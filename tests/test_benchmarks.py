"""The page of measurements is made from what was measured, and what is compared is comparable.

Nothing here asserts a time.
"""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from benchmarks import measure, peers  # noqa: E402

ROOT = Path(__file__).parents[1]
STORED = json.loads(measure.FOUND.read_text("utf8"))


def test_the_page_is_what_was_measured():
    assert measure.PAGE.read_text("utf8") == measure.page(STORED)


def test_every_bar_is_computed_from_what_was_measured():
    for (what, value, bar), stored in zip(measure.bars(STORED), STORED["bars"], strict=True):
        assert measure.rounded([what, bar]) == [stored[0], stored[2]]
        assert value == pytest.approx(stored[1], rel=0.02)  # of rounded numbers


def test_chapter_8_draws_what_was_measured():
    notebook = json.loads(
        (measure.ROOT / "chapters" / "08-attention-at-scale.ipynb").read_text("utf8")
    )
    (cell,) = (
        "".join(c["source"]) for c in notebook["cells"] if "timed = [" in "".join(c["source"])
    )
    drawn = {
        name: json.loads(re.search(rf"^{name} = (\[.*?\])", cell, re.M)[1])
        for name in ("timed", "exact_seconds", "linear_seconds")
    }
    assert drawn == {
        "timed": STORED["lengths"],
        "exact_seconds": STORED["seconds"]["attention"],
        "linear_seconds": STORED["seconds"]["linear_attention"],
    }, "after `make bench` put its lengths and seconds into the cell of Figure 8.1 and store it"


@pytest.mark.parametrize("missed", [0, 3])
def test_what_falls_short_is_named_and_ends_in_an_error(missed, tmp_path, monkeypatch, capsys):
    found = copy.deepcopy(STORED)
    for number, row in enumerate(found["bars"]):
        row[1] = row[2] * (1.01 if number < missed else 0.99)
    monkeypatch.setattr(measure, "FOUND", tmp_path / "measured.json")
    monkeypatch.setattr(measure, "PAGE", tmp_path / "measured.md")
    measure.FOUND.write_text(json.dumps(found))
    assert measure.main(["--page"]) == (1 if missed else 0)
    said = capsys.readouterr().out.splitlines()
    assert len(said) == missed
    for line, (what, *_) in zip(said, found["bars"], strict=False):
        assert line.startswith(f"not reached: {what}: ")
    text = measure.PAGE.read_text("utf8")
    assert text.count("not reached |") == missed
    assert ("All are reached." in text) == (missed == 0)


def test_what_is_compared_computes_the_same():
    arrays = measure.inputs((2, 3, 5, 4))
    query, key, value = (torch.from_numpy(x) for x in arrays)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(peers.naive(query, key, value), expected)
    torch.testing.assert_close(torch.from_numpy(peers.naive_numpy(*arrays)), expected)
    mask = torch.tensor([[True, False, True, True, False]])
    masked = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    torch.testing.assert_close(peers.naive(query, key, value, mask=mask), masked)


def test_a_ratio_is_to_the_one_that_is_named():
    total = []
    functions = {"one": lambda: total.append(sum(range(200_000))), "two": lambda: None}
    found = measure.ratios(functions, "one")
    assert found["one"] == 1
    assert found["two"] < 1
    assert len(total) == measure.RUNS + 1


def test_without_the_others_it_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(peers, "PEERS", tmp_path)
    with pytest.raises(SystemExit, match="run `make bench`"):
        peers.load()


def test_the_others_are_pinned_and_apart():
    pins = (ROOT / "requirements-bench.txt").read_text("utf8").splitlines()
    pins = [line for line in pins if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9.]+", pin) for pin in pins)
    names = {pin.split("==")[0] for pin in pins}
    assert set(measure.VERSIONS) - {"numpy", "torch", "array-api-compat"} <= names


def test_a_ring_of_one_process_measures_itself():
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", "1", "benchmarks/ring.py", "--tokens", "64", "96", "128"]
    done = subprocess.run(
        [*command, "--heads", "2", "--kv-heads", "1", "--runs", "1"],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    assert "128 tokens on 1 ranks" in done.stdout
    assert "a million tokens on 256 such ranks" in done.stdout
