"""Demos · Speed: the rows of the benchmark, and the arrays that every contestant is given.

A row is a piece of work: its kind says what is computed, its sizes say on what. The arrays are
drawn from the seed in each process anew, so no process sends arrays to another. Names and shapes of
weights are those of this project's model.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
Given = dict[str, Array]


class BenchmarkRow(NamedTuple):
    """One line of the table.

    kind       what is computed: products, attention, or a training step
    sizes      of the full measurement; `quick` are those of --quick
    tolerance  how far two contestants' numbers may be apart, relative to their length as a vector
    """

    name: str
    kind: str
    sizes: dict[str, Any]
    quick: dict[str, Any]
    tolerance: float = 1e-3

    def sizes_of(self, quick: bool) -> dict[str, Any]:
        """Return the sizes of a measurement."""
        return self.quick if quick else self.sizes

    def in_words(self, quick: bool) -> str:
        """Return what is computed in words, with the sizes of the measurement."""
        return WORDS[self.kind].format(**self.sizes_of(quick))


WORDS = {
    "products": "{nodes:,} elementwise products of (4, 4), forward and backward; the time of one",
    "attention": "attention, forward and backward, {shape}, causal: {causal}",
    "step": "training step: V {V}, B {B}, T {T}, d {d}, {heads} heads, {blocks} blocks, Adam",
}


def _attention(name: str, shape: Any, quick: Any, causal: bool) -> BenchmarkRow:
    full = {"shape": shape, "causal": causal}
    small = {"shape": quick, "causal": causal}
    return BenchmarkRow(name, "attention", full, small, tolerance=1e-4)


TOY = {"V": 16, "B": 64, "T": 16, "d": 64, "heads": 4, "blocks": 2}
CHAR = {"V": 65, "B": 16, "T": 128, "d": 128, "heads": 4, "blocks": 4}
SMALL = {"V": 11, "B": 3, "T": 7, "d": 20, "heads": 4, "blocks": 2}
ROWS = (
    BenchmarkRow("tiny", "products", {"nodes": 1000}, {"nodes": 100}),
    _attention("attention-128", (8, 8, 128, 64), (2, 3, 5, 7), False),
    _attention("attention-512", (1, 8, 512, 64), (1, 3, 300, 8), False),
    _attention("attention-causal", (16, 4, 128, 32), (2, 3, 7, 5), True),
    BenchmarkRow("toy", "step", TOY, SMALL),
    BenchmarkRow("char-gpt", "step", CHAR, SMALL | {"V": 13, "B": 2, "T": 11, "blocks": 1}),
    _attention("long", (1, 4, 4096, 32), (1, 2, 600, 5), True),
)
NAMES = tuple(row.name for row in ROWS)


def given(row: BenchmarkRow, quick: bool, seed: int) -> Given:
    """Return the weights and inputs of a row: the same arrays in every process."""
    rng = np.random.default_rng([seed, NAMES.index(row.name)])
    sizes = row.sizes_of(quick)

    def normal(*shape: int, std: float = 1.0) -> Array:
        return std * rng.standard_normal(shape, dtype=np.float32)

    if row.kind == "products":  # near 1: a product of a thousand neither overflows nor vanishes
        return {name: 1 + normal(4, 4, std=1e-3) for name in ("x", "w")}
    if row.kind == "attention":
        return {name: normal(*sizes["shape"]) for name in "qkvg"}
    weights = {  # gains are near 1, biases near 0
        name: normal(*p.shape, std=0.02) + ("gain" in name)
        for name, p in model(sizes).named_parameters()
    }
    words = rng.integers(sizes["V"], size=(2, sizes["B"], sizes["T"]))
    return weights | {"words": words[0], "targets": words[1]}


def model(sizes: dict[str, Any], **options: Any) -> Any:
    """Return this project's small GPT, in float32."""
    from attention import gpt2  # not above: the collector visits all that is loaded

    options |= {"rng": np.random.default_rng(0), "d_model": sizes["d"]}
    options |= {"num_heads": sizes["heads"], "num_blocks": sizes["blocks"]}
    return gpt2(sizes["V"], sizes["T"], **options).astype(np.float32)
