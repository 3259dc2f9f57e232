"""Demos · Speed: a contestant's process: it reads one JSON line, does it, and answers in another.

    python -m demos.speed.bench.worker CONTESTANT [--keep-memory] --threads N

A process measures one row of one contestant, so allocator, threads, caches of libraries and the
peak of its memory are its own. What can be asked of it:

    {"do": "prepare", "row": …, "variant": …, "quick": …, "seed": …, "file": …}
        make the program, write its values and gradients to the file (npz), measure its memory
    {"do": "time", "calls": n}
        call it n times: seconds and page faults of one call
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import sys
import time
from typing import Any

import numpy as np

from demos.speed.bench import machine
from demos.speed.bench.rows import given, row_named, sizes_of
from minigrad import keep_memory


class Worker:
    """The process's side of the race: a method for each request."""

    def __init__(self, contestant: str, threads: int) -> None:
        self.module = importlib.import_module(f"demos.speed.bench.with_{contestant}")
        self.module.limit_threads(threads)
        self.step: Any = None
        self.collector = True

    def prepare(self, row: str, variant: str, quick: bool, seed: int, file: str) -> dict[str, Any]:
        """Make the program, leave its results in a file, and measure the memory of a step.

        The peak is measured from when the inputs and the weights are there. What a step makes and
        keeps (buffers, gradients, Adam's means) counts, and so does what it frees. The program has
        run once before with small sizes, so that code that is loaded on first use does not count.
        """
        asked = row_named(row)
        self.collector = asked.collector
        program = self.module.PROGRAMS[asked.kind][variant]
        program(asked.quick, given(asked, True, seed))[1]()
        step, results = program(sizes_of(asked, quick), given(asked, quick, seed))
        machine.trim()
        before = machine.resident()
        found = {name: np.asarray(x) for name, x in results().items()}
        np.savez(file, **found)  # type: ignore[arg-type]
        del found
        machine.trim()
        can = machine.reset_peak()
        step()
        peak = machine.peak_since_reset()
        self.step = step
        above = peak - before if can and peak is not None and before is not None else None
        return {"peak": above, "seconds": self.time(1)["seconds"]}

    def time(self, calls: int) -> dict[str, Any]:
        """Return the seconds and page faults of one call, the mean over some calls."""
        gc.collect()
        if not self.collector:
            gc.disable()
        try:
            faults, start = machine.faults(), time.perf_counter()
            for _ in range(calls):
                self.step()
            seconds = (time.perf_counter() - start) / calls
            after = machine.faults()
        finally:
            gc.enable()
        each = None if faults is None or after is None else (after - faults) / calls
        return {"seconds": seconds, "faults": each}


def main() -> None:
    """Answer until the input ends. An error is an answer too."""
    parser = argparse.ArgumentParser()
    parser.add_argument("contestant")
    parser.add_argument("--keep-memory", action="store_true")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    # What libraries print goes to stderr: stdout is for answers alone.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def answer(content: dict[str, Any]) -> None:
        print(json.dumps(content), file=answers, flush=True)

    kept = keep_memory() if chosen.keep_memory else "the allocator's defaults"
    worker = Worker(chosen.contestant, chosen.threads)
    answer({"versions": worker.module.versions(), "blas": machine.kernels(), "allocator": kept})
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer(getattr(worker, asked.pop("do"))(**asked))
        except Exception as error:
            said = str(error).partition("\n")[0]
            answer({"error": f"{type(error).__name__}: {said}"})


if __name__ == "__main__":
    main()
