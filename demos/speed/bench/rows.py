"""Demos · Speed: the rows of the benchmark, and the arrays that every contestant is given.

A row is a piece of work: its kind says what is computed, its sizes say on what. The arrays are
drawn from the seed in each process anew, so no process sends arrays to another. Names and shapes of
weights are those of this project's model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Given = dict[str, Array]


@dataclass(frozen=True)
class Row:
    """One line of the table.

    kind       what is computed; each contestant has a program for each kind that it knows
    what       the same in words, with the names of sizes in braces
    sizes      of the full measurement; `quick` are those of --quick
    per        the size by which the time is divided, such as the number of tokens; "" for none
    collector  whether Python's cycle collector may run, as it does for a user
    tolerance  how far two contestants' numbers may be apart, relative to their length as a vector
    """

    name: str
    kind: str
    what: str
    sizes: dict[str, Any]
    quick: dict[str, Any]
    per: str = ""
    collector: bool = True
    tolerance: float = 1e-3

    def sizes_of(self, quick: bool) -> dict[str, Any]:
        """Return the sizes of a measurement."""
        return self.quick if quick else self.sizes

    def in_words(self, quick: bool) -> str:
        """Return what is computed in words, with the sizes of the measurement."""
        return self.what.format(**self.sizes_of(quick))

    @property
    def unit(self) -> str:
        """Return the unit of its times, with what they are of."""
        return {"nodes": "µs a node", "tokens": "ms a token"}.get(self.per, "ms")

    def shown(self, seconds: float, quick: bool) -> float:
        """Return a time in that unit."""
        factor = 1e6 if self.per == "nodes" else 1e3
        return factor * seconds / self.sizes_of(quick).get(self.per, 1)


def _attention(name: str, shape: Any, quick: Any, causal: bool) -> Row:
    what = "attention, forward and backward, {shape}" + (", causal" if causal else "")
    sizes = ({"shape": each, "causal": causal} for each in (shape, quick))
    return Row(name, "attention", what, *sizes, tolerance=1e-4)


TOY = {"V": 16, "B": 64, "T": 16, "d": 64, "heads": 4, "blocks": 2}
CHAR = {"V": 65, "B": 16, "T": 128, "d": 128, "heads": 4, "blocks": 4}
SMALL = {"V": 11, "B": 3, "T": 7, "d": 20, "heads": 4, "blocks": 2}
BERT = {"V": 1000, "B": 10, "T": 14, "d": 384, "heads": 12, "blocks": 6}
LLAMA = {"V": 65, "d": 128, "heads": 4, "kv_heads": 2, "d_ff": 416, "blocks": 4}
WRITTEN = {"prompt": 8, "tokens": 120}
DEEP = {"nodes": 100_000}, {"nodes": 3_000}

PRODUCTS = "{nodes:,} elementwise products of (4, 4), forward and backward"
STEP = "training step: V {V}, B {B}, T {T}, d {d}, {heads} heads, {blocks} blocks, Adam"
SUMS = "{nodes:,} additions of a number to (4, 4)"
UNCOLLECTED = "the same, with Python's cycle collector off"
SECOND = "gradient of ½‖∇L‖², 2-layer tanh MLP, x ({B}, {d})"
READ = "BERT: {blocks} blocks, d {d}, {heads} heads, {B} × {T} tokens, no record"
WRITE = "a token of a GPT: {blocks} blocks, d {d}, RoPE, {heads}:{kv_heads} heads, SwiGLU, cached"

ROWS = (
    Row("tiny", "products", PRODUCTS, {"nodes": 1000}, {"nodes": 100}, per="nodes"),
    _attention("attention-128", (8, 8, 128, 64), (2, 3, 5, 7), False),
    _attention("attention-512", (1, 8, 512, 64), (1, 3, 300, 8), False),
    _attention("attention-causal", (16, 4, 128, 32), (2, 3, 7, 5), True),
    Row("toy", "step", STEP, TOY, SMALL),
    Row("char-gpt", "step", STEP, CHAR, SMALL | {"V": 13, "B": 2, "T": 11, "blocks": 1}),
    _attention("long", (1, 4, 4096, 32), (1, 2, 600, 5), True),
    Row("deep", "sums", SUMS, *DEEP, per="nodes"),
    Row("deep-uncollected", "sums", UNCOLLECTED, *DEEP, per="nodes", collector=False),
    Row("second-order", "second_order", SECOND, {"B": 32, "d": 64}, {"B": 5, "d": 7}),
    Row(
        "encoder",
        "encoder",
        READ,
        BERT,
        BERT | {"V": 17, "B": 3, "T": 5, "d": 20, "heads": 4, "blocks": 2},
    ),
    Row(
        "generation",
        "generation",
        WRITE,
        LLAMA | WRITTEN,
        LLAMA | {"d": 16, "d_ff": 24, "blocks": 2, "prompt": 3, "tokens": 7},
        per="tokens",
    ),
)
NAMES = tuple(row.name for row in ROWS)


def given(row: Row, quick: bool, seed: int) -> Given:
    """Return the weights and inputs of a row: the same arrays in every process."""
    rng = np.random.default_rng([seed, NAMES.index(row.name)])
    sizes = row.sizes_of(quick)

    def normal(*shape: int, std: float = 1.0) -> Array:
        return std * rng.standard_normal(shape, dtype=np.float32)

    if row.kind == "products":  # near 1: a product of a thousand neither overflows nor vanishes
        return {name: 1 + normal(4, 4, std=1e-3) for name in ("x", "w")}
    if row.kind == "sums":
        return {"x": normal(4, 4)}
    if row.kind == "attention":
        return {name: normal(*sizes["shape"]) for name in "qkvg"}
    if row.kind == "second_order":
        B, d = sizes["B"], sizes["d"]
        return {"x": normal(B, d)} | {name: normal(d, d, std=d**-0.5) for name in ("w_1", "w_2")}
    # Gains are near 1, and biases near 0. What is generated has larger matrices than GPT-2 at its
    # start, so that the scores of two tokens are never nearly equal.
    std = 0.1 if row.kind == "generation" else 0.02
    weights = {
        name: 1 + normal(*p.shape, std=0.02) if "gain" in name else normal(*p.shape, std=std)
        for name, p in model(row.kind, sizes).named_parameters()
    }
    if row.kind == "generation":
        return weights | {"words": rng.integers(sizes["V"], size=(1, sizes["prompt"]))}
    words = rng.integers(sizes["V"], size=(2, sizes["B"], sizes["T"]))
    return weights | {"words": words[0], "targets": words[1]}


def model(kind: str, sizes: dict[str, Any], **options: Any) -> Any:
    """Return this project's model for a kind of row, in float32."""
    from attention import encoders, models  # not above: the collector visits all that is loaded

    options |= {"rng": np.random.default_rng(0), "d_model": sizes["d"]}
    options |= {"num_heads": sizes["heads"], "num_blocks": sizes["blocks"]}
    if kind == "generation":
        options |= {"num_kv_heads": sizes["kv_heads"], "d_ff": sizes["d_ff"]}
        made = models.llama(sizes["V"], **options)
    else:
        made = (models.gpt2 if kind == "step" else encoders.bert)(sizes["V"], sizes["T"], **options)
    return made.astype(np.float32)
