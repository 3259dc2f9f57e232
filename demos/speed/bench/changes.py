"""Demos · Speed: what a user may change, and what each change brings on the reader's machine.

The program is a training step of a small GPT, that of the row "char-gpt", as a user writes it
(`training` of in_minigrad). Its variants take turns, and all compute the same. A change is two
variants that differ in nothing else: its factors are the time of a step and its memory after the
change, divided by those before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, NamedTuple

from demos.speed.bench.rows import NAMES, ROWS, BenchmarkRow


class Variant(NamedTuple):
    """One way to write the same training step.

    keep        call keep_memory() first
    all_cores   let BLAS have a thread for each core, and not only those of --threads
    attend      "in blocks" is fused attention, "" its definition
    recomputed  each block keeps only its input, and is computed again on the way back
    parts       gradients of so many parts of the batch are added up
    """

    dtype: str = "float32"
    keep: bool = True
    all_cores: bool = False
    attend: str = "in blocks"
    recomputed: bool = False
    parts: int = 1


VARIANTS = {
    "as it comes": Variant(dtype="float64", keep=False),
    "float32": Variant(keep=False),
    "best": Variant(),
    "all cores": Variant(all_cores=True),
    "definition": Variant(attend=""),
    "recompute": Variant(recomputed=True),
    "parts": Variant(parts=4),
}
PYTORCH = "torch in blocks"  # as it comes: float32, and its own attention

_gpt = ROWS[NAMES.index("char-gpt")]
GPT = _gpt._replace(quick=_gpt.quick | {"B": 4})
LONG = GPT._replace(sizes=GPT.sizes | {"B": 4, "T": 512}, quick=GPT.quick | {"T": 23})
GROUPS: dict[str, tuple[BenchmarkRow, tuple[str, ...]]] = {  # which variants take turns, at what
    "gpt": (GPT, ("as it comes", "float32", "best", "all cores", "recompute", "parts")),
    "long": (LONG, ("definition", "best")),
}


class Change(NamedTuple):
    """A line of the table: two variants of a group, before and after it."""

    what: str
    before: str
    after: str
    group: str = "gpt"


CHANGES = (
    Change("model.astype(np.float32)", "as it comes", "float32"),
    Change("then keep_memory()", "float32", "best"),
    Change("then a BLAS thread for each core", "best", "all cores"),
    Change("fused attention, 512 positions", "definition", "best", "long"),
    Change("recompute=True", "best", "recompute"),
    Change("a batch in four parts", "best", "parts"),
)
BESIDE_PYTORCH = (
    Change("as it comes, beside PyTorch", PYTORCH, "as it comes"),
    Change("with the first two, beside PyTorch", PYTORCH, "best"),
)


def threads_of(name: str, threads: int) -> int:
    """Return how many threads a variant's process gets, or PyTorch's."""
    variant = VARIANTS.get(name, Variant())
    return os.cpu_count() or 1 if variant.all_cores else threads


def asked_of(name: str, *asked: Any) -> tuple[Any, ...]:
    """Return what a process is asked: the contestant, what all are asked, whether to keep memory.

    PyTorch gets its own defaults.
    """
    return name, *asked, name in VARIANTS and VARIANTS[name].keep


def members(group: str, against: Iterable[str]) -> tuple[str, ...]:
    """Return who takes turns in a group."""
    _, names = GROUPS[group]
    return (*names, PYTORCH) if group == "gpt" and "torch" in against else names
