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

from benchmarks import measure, peers, public, ring  # noqa: E402

ROOT = Path(__file__).parents[1]
STORED = json.loads(measure.FOUND.read_text("utf8"))


def test_the_page_is_what_was_measured():
    assert measure.PAGE.read_text("utf8") == measure.page(STORED)


def test_every_bar_is_computed_from_what_was_measured():
    for (what, value, bar), stored in zip(measure.bars(STORED), STORED["bars"], strict=True):
        assert measure.rounded([what, bar]) == [stored[0], stored[2]]
        assert value == pytest.approx(stored[1], rel=0.02)  # of rounded numbers


def test_the_table_of_public_functions_is_what_their_check_finds():
    """Of those that are installed here; each run of `benchmarks.public` checks the others too."""
    stored = {one["function"]: one for one in json.loads(public.STORED.read_text("utf8"))}
    assert {*public.FUNCTIONS} <= {*stored}
    for name, (package, make, said) in public.FUNCTIONS.items():
        if package in (None, "torch"):
            found = public.row(name, package, public.check_attention(make(), **said), said)
            assert found == stored[name]


def test_chapter_8_draws_what_was_measured():
    notebook = json.loads(
        (measure.ROOT / "chapters" / "08-attention-at-scale.ipynb").read_text("utf8")
    )
    (cell,) = ("".join(c["source"]) for c in notebook["cells"] if c["id"] == "wall")
    for line in measure.drawn_lines(STORED):
        assert line in cell, "put this line into the cell of Figure 8.1, and store it"


def page_of(found, tmp_path, monkeypatch, capsys):
    """Make the page of other numbers; return how it ends, and what is said."""
    monkeypatch.setattr(measure, "FOUND", tmp_path / "measured.json")
    monkeypatch.setattr(measure, "PAGE", tmp_path / "measured.md")
    measure.FOUND.write_text(json.dumps(found))
    return measure.main(["--page"]), capsys.readouterr().out.splitlines()


@pytest.mark.parametrize("missed", [0, 3])
def test_what_falls_short_and_lines_that_the_figure_of_chapter_8_lacks_are_named(
    missed, tmp_path, monkeypatch, capsys
):
    found = copy.deepcopy(STORED)
    for number, row in enumerate(found["bars"]):
        row[1] = row[2] * (1.01 if number < missed else 0.99)
    ended, said = page_of(found, tmp_path, monkeypatch, capsys)
    assert (ended, len(said)) == (1 if missed else 0, missed), "what falls short is an error"
    for line, (what, *_) in zip(said, found["bars"], strict=False):
        assert line.startswith(f"not reached: {what}: ")
    text = measure.PAGE.read_text("utf8")
    assert text.count("not reached |") == missed
    assert ("All are reached." in text) == (missed == 0)
    if not missed:
        found["seconds"]["attention"][0] *= 2
        ended, said = page_of(found, tmp_path, monkeypatch, capsys)
        assert (ended, said[1:]) == (0, measure.drawn_lines(found)[1:2])


def test_what_is_compared_computes_the_same():
    arrays = measure.inputs((2, 3, 5, 4))
    query, key, value = (torch.from_numpy(x) for x in arrays)
    expected = torch.nn.functional.scaled_dot_product_attention(query, key, value)
    torch.testing.assert_close(peers.naive(query, key, value), expected)
    torch.testing.assert_close(torch.from_numpy(peers.naive_numpy(*arrays)), expected)
    mask = torch.tensor([[True, False, True, True, False]])
    masked = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    torch.testing.assert_close(peers.naive(query, key, value, mask=mask), masked)


@pytest.mark.parametrize(("seconds", "rounds"), [(1e-9, 9), (60, 99)])
def test_a_ratio_is_to_the_one_that_is_named(seconds, rounds, monkeypatch):
    monkeypatch.setattr(measure, "SECONDS", seconds)
    ran = []
    functions = {
        "one": lambda: ran.append(sum(range(20_000))),
        "two": lambda: ran.append("two"),
        "three": lambda: ran.append(sum(range(60_000))),
    }
    found = measure.ratios(functions, "one")
    assert found["one"] == 1
    assert found["two"] < 1 < found["three"]
    one, three = sum(range(20_000)), sum(range(60_000))
    assert ran == [one, "two", one, three] * (rounds + 1)  # each after a run of what it is to


def test_a_ratio_is_the_median_of_those_of_each_moment(monkeypatch):
    """Not the ratio of two medians: the machine may be slow in half of the rounds."""
    moments = iter([1.0, 2.0] * 2 + [10.0, 20.0, 1.0, 2.0, 10.0, 20.0, 1.0, 2.0, 10.0, 20.0] * 10)
    monkeypatch.setattr(measure, "seconds", lambda function: next(moments))
    monkeypatch.setattr(measure, "SECONDS", 1e-9)
    assert measure.ratios({"one": None, "two": None}, "one") == {"one": 1, "two": 2}


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


def test_the_speed_of_a_rank_is_that_of_what_is_left_after_its_messages():
    rows = [
        (operations, sent, operations / 5e9 + sent / 2e8)
        for operations, sent in ((1e9, 1e6), (4e9, 2e6), (16e9, 4e6))
    ]
    assert ring.fitted(rows, 1 / 2e8) == pytest.approx(1 / 5e9)
    operations, sent = ring.costs(1e6, 256, heads=64, kv_heads=8, width=128, size=2)
    assert operations == pytest.approx(4 * 1e12 * 128 * 64 / 256)
    assert sent == pytest.approx(255 * 2 * 3906.25 * 128 * 8 * 2)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--tokens 0", "argument --tokens: must be at least 1, got 0"),
        ("--runs -1", "argument --runs: must be at least 1, got -1"),
        ("--width x", "argument --width: invalid positive value: 'x'"),
        ("--heads 3 --kv-heads 2", "3 heads are no multiple of 2 kv-heads"),
        ("--heads 2 --kv-heads 2", "start it with torchrun"),
    ],
)
def test_a_ring_that_cannot_be_started_is_said_in_one_line(arguments, said, monkeypatch, capsys):
    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.setattr(sys, "argv", ["ring.py", *arguments.split()])
    with pytest.raises(SystemExit) as error:
        ring.main()
    assert error.value.code == 2
    assert said in capsys.readouterr().err
