"""What each process of ``test_distributed.py`` does: checks, and then a rank that ends too early.

Run as ``torchrun --nproc-per-node 4 tests/ring_worker.py FOLDER``. Every rank writes what it has
found to ``FOLDER/RANK.json``: in a ring of the first two of them, and in one of all.
"""

import functools
import json
import os
import sys
import traceback
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed

import d2lmini.distributed as ours
from d2lmini import attention, ring_attention, ring_slices

SIZES = 2, 4  # of the rings
LENGTH, WIDTH = 64, 8  # of the sequence whose messages are counted


def numbers(seed, *shape, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def whole_attention(query, key, value, causal, scale):
    """Attend in one process; key-value heads are repeated for the query heads that share them."""
    if query.ndim > 2:
        key, value = (x.repeat_interleave(query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    factor = 1 if scale is None else scale * query.shape[-1] ** 0.5
    return attention(query * factor, key, value, causal=causal).output


CASES = {  # shapes of query, key and value; causal; how to cut; dtype; scale
    "lengths that do not divide": ((2, 3, 13, 5), (2, 3, 13, 5), (2, 3, 13, 4), False, None),
    "causal": ((2, 3, 13, 5), (2, 3, 13, 5), (2, 3, 13, 4), True, None),
    "grouped heads": ((2, 4, 11, 3), (2, 2, 11, 3), (2, 2, 11, 6), True, None),
    "no heads": ((9, 3), (9, 3), (9, 2), True, None),
    "a scale": ((2, 9, 3), (2, 9, 3), (2, 9, 2), True, 0.2),
    "more keys than queries": ((2, 5, 3), (2, 14, 3), (2, 14, 2), True, None),
    "more queries than keys": ((2, 14, 3), (2, 5, 3), (2, 5, 2), True, None),
    "a rank without tokens": ((2, 3, 5), (2, 3, 5), (2, 3, 5), True, None),
    "several pieces": ((2, 1100, 3), (2, 1100, 3), (2, 1100, 2), True, None),
}
CLOSE = {torch.float64: 1e-11, torch.float32: 1e-5, torch.bfloat16: 3e-2}


def largest_differences(shapes, causal, scale, dtype, rank, size, group):
    """Return how far this rank's output and gradients are from those of one process."""
    whole = [numbers(i, *shape).requires_grad_() for i, shape in enumerate(shapes)]
    expected = whole_attention(*whole, causal, scale)
    slope = numbers(9, *expected.shape)
    expected_slopes = torch.autograd.grad((expected * slope).sum(), whole)
    own = [ring_slices(x.shape[-2], size, causal=causal)[rank] for x in (*whole, expected)]
    inputs = [
        x.detach()[..., rows, :].to(dtype).requires_grad_()
        for x, rows in zip(whole, own, strict=False)
    ]
    before = [x.detach().clone() for x in inputs]
    output = ring_attention(*inputs, causal=causal, scale=scale, group=group)
    assert output.dtype == dtype
    slopes = torch.autograd.grad((output * slope[..., own[3], :]).sum(), inputs)
    assert all(torch.equal(x, y) for x, y in zip(inputs, before, strict=True)), "written to"
    pairs = [
        (output, expected[..., own[3], :]),
        *((x, y[..., rows, :]) for x, y, rows in zip(slopes, expected_slopes, own, strict=False)),
    ]
    assert all(x.shape == y.shape for x, y in pairs)
    return max((x.double() - y).abs().max().item() if x.numel() else 0.0 for x, y in pairs)


def equal_to_one_process(rank, size, group):
    """Return the largest difference of each case, as a multiple of what it may be."""
    found = {}
    for name, (*shapes, causal, scale) in CASES.items():
        for dtype in CLOSE if name in ("causal", "grouped heads") else [torch.float64]:
            far = largest_differences(shapes, causal, scale, dtype, rank, size, group)
            found[name if dtype == torch.float64 else f"{name}, {dtype}"] = far / CLOSE[dtype]
    return found


def complaint(call):
    """Return the error that a call raises."""
    try:
        call()
    except Exception as error:
        return type(error).__name__, str(error)
    return "no error", ""


def disagreements(rank, size, group):
    """Return what is said, here, of something that the last rank gives otherwise than the rest."""
    attend = functools.partial(ring_attention, group=group)
    odd = rank == size - 1
    x, wide = numbers(0, 2, 4, 6), numbers(0, 2, 4, 7)
    calls = {
        "dtype": lambda: attend(*[x.float() if odd else x] * 3),
        "width": lambda: attend(*[wide if odd else x] * 3),
        "heads": lambda: attend(*[x[:1] if odd else x] * 3),
        "causal": lambda: attend(x, x, x, causal=odd),
        "slices": lambda: attend(*[x[:, : 3 if odd else 4]] * 3, causal=True),
        "a list": lambda: attend(x.tolist() if odd else x, x, x),
    }
    return {name: complaint(call) for name, call in calls.items()}


def sent(rank, size, group):
    """Return the bytes that this rank has sent, on the way there and both ways."""
    sizes, exchange = [], ours._Ring.exchange

    def counted(ring, outgoing, incoming):
        sizes.append(outgoing.nbytes)
        return exchange(ring, outgoing, incoming)

    rows = ring_slices(LENGTH, size, causal=False)[rank]
    inputs = [numbers(i, LENGTH, WIDTH)[rows].float().requires_grad_() for i in range(3)]
    ours._Ring.exchange = counted
    output = ring_attention(*inputs, group=group)
    there = sum(sizes)
    output.sum().backward()
    ours._Ring.exchange = exchange
    return there, sum(sizes)


def a_rank_that_ends(rank, size):
    """Let the last rank end in the middle of a journey, and return what the others say."""
    x = numbers(0, 2, 4, 6)
    if rank == size - 1:
        ours._Ring.exchange = lambda *_: os._exit(0)
    return complaint(lambda: ring_attention(x, x, x))


def main():
    folder = Path(sys.argv[1])
    torch.set_num_threads(1)
    distributed.init_process_group("gloo", timeout=timedelta(seconds=180))
    rank, found = distributed.get_rank(), {}

    def write():
        (folder / f"{rank}.json").write_text(json.dumps(found))

    try:
        for size in SIZES:
            members = list(range(size))
            group = distributed.new_group(members)
            if rank in members:
                found[size] = {
                    "differences": equal_to_one_process(rank, size, group),
                    "disagreements": disagreements(rank, size, group),
                    "sent": sent(rank, size, group),
                }
        write()
        found["ended"] = a_rank_that_ends(rank, size)
    except BaseException:
        found["failed"] = traceback.format_exc()
    write()
    os._exit(0)  # the group cannot be left in good order: one rank has gone


if __name__ == "__main__":
    main()
