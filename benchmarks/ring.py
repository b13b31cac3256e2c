"""Ring attention on your own machines: time, memory and bytes of each rank, beside a cost model.

Start it on one machine with ``torchrun --standalone --nproc-per-node 4 benchmarks/ring.py``, or on
several as torchrun's manual says. It runs on graphics cards with NCCL where every rank has one, and
else with gloo. ``--tokens`` gives the lengths to try.

The cost model has two numbers, the operations and the bytes per second of a rank. They are fitted
to all lengths but the last, whose time is then foretold and compared. From them it says what a
million tokens on 256 such ranks would take.
"""

import argparse
import os
import time

import torch
from torch import distributed

from d2lmini import ring_attention, ring_slices


def costs(tokens, ranks, heads, kv_heads, width, size):
    """Return the operations and the bytes that a rank sends, for even slices and no mask."""
    operations = 4 * tokens**2 * width * heads / ranks
    sent = (ranks - 1) * 2 * (tokens / ranks) * width * kv_heads * size
    return operations, sent


def measured(tokens, options, device):
    """Return the median seconds of a call, and the bytes of tensors at its peak if they show."""
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    own = ring_slices(tokens, ranks, causal=options.causal)[rank]
    count = own.stop - own.start
    generator = torch.Generator().manual_seed(rank)
    query, key, value = (
        torch.randn(heads, count, options.width, generator=generator).to(device)
        for heads in (options.heads, options.kv_heads, options.kv_heads)
    )
    seconds = []
    for _ in range(options.runs + 1):
        distributed.barrier()
        start = time.perf_counter()
        with torch.no_grad():
            ring_attention(query, key, value, causal=options.causal)
        if device.type == "cuda":
            torch.cuda.synchronize()
        distributed.barrier()
        seconds.append(time.perf_counter() - start)
    peak = torch.cuda.max_memory_allocated() if device.type == "cuda" else None
    return sorted(seconds[1:])[options.runs // 2], peak


def fitted(rows):
    """Return seconds for each operation and for each byte, by least squares, none below 0."""
    table = torch.tensor([row[:2] for row in rows], dtype=torch.float64)
    seconds = torch.tensor([row[2] for row in rows], dtype=torch.float64)
    size = table.max(dim=0).values.clamp(min=1)
    found = torch.linalg.lstsq(table / size, seconds[:, None]).solution[:, 0] / size
    if found.min() < 0:  # messages are too quick to be told from noise
        found = torch.tensor([float((seconds / table[:, 0]).mean()), 0.0])
    return found.tolist()


def main():
    """Measure, fit, foretell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 2048, 4096, 8192])
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--kv-heads", type=int, default=8)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--causal", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    local = int(os.environ.get("LOCAL_RANK", 0))
    cards = torch.cuda.is_available() and torch.cuda.device_count() > local
    device = torch.device("cuda", local) if cards else torch.device("cpu")
    if cards:
        torch.cuda.set_device(device)
    distributed.init_process_group("nccl" if cards else "gloo")
    ranks, first = distributed.get_world_size(), distributed.get_rank() == 0
    rows = []
    for tokens in options.tokens:
        operations, sent = costs(tokens, ranks, options.heads, options.kv_heads, options.width, 4)
        seconds, peak = measured(tokens, options, device)
        rows.append((operations / (2 if options.causal else 1), sent, seconds))
        if first:
            memory = "" if peak is None else f", peak {peak / 2**20:.0f} MB a rank"
            print(
                f"{tokens:8,} tokens on {ranks} ranks: {seconds:8.3f} s, "
                f"{rows[-1][0] / 1e9:8.1f} G operations and {sent / 2**20:6.1f} MB sent a rank"
                f"{memory}",
                flush=True,
            )
    if first and len(rows) > 2:
        each_operation, each_byte = fitted(rows[:-1])
        operations, sent, seconds = rows[-1]
        foretold = operations * each_operation + sent * each_byte
        print(f"fitted to all but the last: {1 / each_operation / 1e9:.1f} G operations a second,")
        way = f"{1 / each_byte / 1e9:.2g} GB" if each_byte else "too many bytes to measure"
        print(f"{way} a second; the last foretold {foretold:.3f} s, measured {seconds:.3f} s")
        operations, sent = costs(1e6, 256, options.heads, options.kv_heads, options.width, 4)
        print(
            f"a million tokens on 256 such ranks: {operations * each_operation:,.0f} s of "
            f"computing, {sent * each_byte:,.1f} s of sending {sent / 1e9:.1f} GB"
        )
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
