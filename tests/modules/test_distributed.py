"""Ring attention: real processes, started by torchrun, beside one process that has it all."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import ring_worker  # noqa: E402

from d2lmini import attention, ring_attention, ring_slices  # noqa: E402
from d2lmini.distributed import _ring_attention  # noqa: E402

WORKER = Path(ring_worker.__file__)
PATIENCE = 400  # seconds, for a machine that is busy with other tests


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """Return what each of four processes has found, in a ring of two of them and in one of all."""
    size = max(ring_worker.SIZES)
    folder = tmp_path_factory.mktemp("ring")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    command += ["--nproc-per-node", str(size), str(WORKER), str(folder)]
    with subprocess.Popen(
        command,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            said, _ = running.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            pytest.fail(f"{size} ranks did not end: {running.communicate()[0]}")
    files = sorted(folder.glob("*.json"))
    found = [json.loads(file.read_text()) for file in files]
    assert len(found) == size, said
    for rank in found:
        assert "failed" not in rank, rank["failed"]
    return found


@pytest.fixture(scope="module", params=ring_worker.SIZES)
def ranks(request, processes):
    """Return what each rank of a ring has found."""
    return [found[str(request.param)] for found in processes[: request.param]]


def test_values_and_gradients_are_those_of_one_process(ranks):
    for rank, found in enumerate(ranks):
        assert found["differences"].keys() >= ring_worker.CASES.keys()
        for case, far in found["differences"].items():
            assert far <= 1, f"rank {rank}, {case}: {far} times as far as it may be"


@pytest.mark.parametrize(
    "what, said",
    {
        "dtype": r"agree in dtype, .*torch.float32 on rank",
        "width": "agree in d, and have 6 on rank 0, .*7 on rank",
        "heads": r"agree in leading axes, and have \(2,\) on rank 0, .*\(1,\) on rank",
        "slices": r"ring_slices\(\d+, \d, causal=True\) names, .*query has 4 on rank 0, ",
        "causal": "agree in causal, and have False on rank 0, .*True on rank",
        "a list": "query must be a NumPy array or a PyTorch tensor, got list",
    }.items(),
)
def test_every_rank_is_told_of_one_that_differs(ranks, what, said):
    for rank, found in enumerate(ranks):
        kind, message = found["disagreements"][what]
        own = what == "a list" and rank == len(ranks) - 1
        assert kind == ("TypeError" if own else "ValueError"), message
        assert re.search(said, message), message
    last = f"rank {len(ranks) - 1}"
    assert last in ranks[0]["disagreements"][what][1]


def test_a_rank_that_ends_gives_the_others_an_error(processes):
    *others, last = processes
    assert "ended" not in last
    for rank, found in enumerate(others):
        kind, message = found["ended"]
        assert kind == "RuntimeError" and f"ring_attention on rank {rank}: " in message
        assert "does not answer. It has ended" in message


def test_bytes_sent_are_those_of_keys_and_values_and_of_their_gradients(ranks):
    """On the way back the gradients travel too, and home again."""
    size = len(ranks)
    one = 4 * ring_worker.LENGTH // size * ring_worker.WIDTH  # a slice of keys, or of values
    there = (size - 1) * 2 * one
    assert [found["sent"] for found in ranks] == [[there, there + size * 4 * one]] * size


# Without other processes


def test_without_a_group(monkeypatch):
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: False)
    with pytest.raises(
        RuntimeError, match=r"a process group, and none is initialised: .* torchrun"
    ):
        ring_attention(*[torch.ones(2, 3)] * 3)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_in_one_process_the_ring_is_attention_too(causal, size):
    """The dozen lines with which the file begins: what the ranks do together, without messages."""
    query, key, value = (torch.randn(2, 13, width, dtype=torch.float64) for width in (4, 4, 3))
    slices = ring_slices(13, size, causal=causal)
    outputs = _ring_attention(query, key, value, slices, causal, 0.5)
    expected = attention(query, key, value, causal=causal, scale=0.5).output
    for own, output in zip(slices, outputs, strict=True):
        torch.testing.assert_close(output, expected[:, own])


@pytest.mark.parametrize("length, size", [(0, 3), (10, 4), (10_000, 7)])
@pytest.mark.parametrize("causal", [False, True])
def test_slices_leave_nothing_out_and_give_every_rank_as_much_to_do_and_to_hold(
    length, size, causal
):
    slices = ring_slices(length, size, causal=causal)
    assert len(slices) == size
    assert sorted(t for own in slices for t in own) == list(range(length))
    assert all(list(own) == sorted(own) for own in slices)
    assert max(map(len, slices)) - min(map(len, slices)) <= 1
    if length > 1000:
        work = [sum(t + 1 if causal else length for t in own) for own in slices]
        assert max(work) * size <= 1.001 * sum(work), f"work {work}; one token is a thousandth"
