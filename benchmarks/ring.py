"""Ring attention on your own machines: seconds and bytes of each rank, beside a cost model.

Start it on one machine with ``torchrun --standalone --nproc-per-node 4 benchmarks/ring.py``, or on
several as torchrun's manual says. It runs on graphics cards with NCCL where every rank has one, and
tells their memory; else it runs with gloo. ``--tokens`` gives the lengths to try.

The cost model has two numbers. How many bytes a rank sends in a second is measured on messages
alone, and how many operations it makes is fitted to all lengths but the last, whose time is then
foretold and compared. From them it says what a million tokens on 256 such ranks would take.
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
    count = len(own)
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


def seconds_per_byte(device, count=2**24):
    """Return how long a byte is on its way to the next rank, of one large message."""
    rank, ranks = distributed.get_rank(), distributed.get_world_size()
    if ranks == 1:
        return 0.0
    outgoing, incoming = torch.zeros(2, count, dtype=torch.uint8, device=device)
    seconds = []
    for _ in range(4):
        distributed.barrier()
        start = time.perf_counter()
        messages = [
            distributed.P2POp(distributed.isend, outgoing, (rank + 1) % ranks),
            distributed.P2POp(distributed.irecv, incoming, (rank - 1) % ranks),
        ]
        for message in distributed.batch_isend_irecv(messages):
            message.wait()
        if device.type == "cuda":
            torch.cuda.synchronize()
        distributed.barrier()
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:]) / count


def fitted(rows, each_byte):
    """Return the seconds for each operation by least squares, after what the messages take."""
    operations, sent, seconds = torch.tensor(rows, dtype=torch.float64).mT
    computing = (seconds - sent * each_byte).clamp(min=0)
    return float(operations @ computing / (operations @ operations))


def positive(text):
    """Return a number of the command line."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def main():
    """Measure, fit, foretell."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default, words in (
        ("--heads", 8, "query heads"),
        ("--kv-heads", 8, "key-value heads, of which the query heads are a multiple"),
        ("--width", 64, "numbers in a query, key or value of a head"),
        ("--runs", 3, "how often to measure; the median counts"),
    ):
        parser.add_argument(name, type=positive, default=default, help=f"{words} ({default})")
    lengths = [1024, 2048, 4096, 8192]
    words = "lengths to try, of all ranks together; two or more make a model (1024 ... 8192)"
    parser.add_argument("--tokens", type=positive, nargs="+", default=lengths, help=words)
    parser.add_argument("--causal", action="store_true", help="hide later keys")
    options = parser.parse_args()
    if options.heads % options.kv_heads:
        parser.error(f"{options.heads} heads are no multiple of {options.kv_heads} kv-heads")
    if "RANK" not in os.environ:
        parser.error("start it with torchrun --standalone --nproc-per-node 4 benchmarks/ring.py")
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
    each_byte = seconds_per_byte(device)
    if first and len(rows) > 1:
        each_operation = fitted(rows[:-1], each_byte)
        operations, sent, seconds = rows[-1]
        foretold = operations * each_operation + sent * each_byte
        speed = f"{1 / each_operation / 1e9:.1f} G operations"
        way = f", {1 / each_byte / 1e9:.2g} GB sent" if each_byte else ""
        print(f"a rank in a second, by all lengths but the last: {speed}{way};")
        print(f"so the last should take {foretold:.3f} s, and it took {seconds:.3f} s")
        operations, sent = costs(1e6, 256, options.heads, options.kv_heads, options.width, 4)
        print(
            f"a million tokens on 256 such ranks: {operations * each_operation:,.0f} s of "
            f"computing, {sent * each_byte:,.1f} s of sending {sent / 1e9:.1f} GB"
        )
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
