"""Demos · Speed: the rows of the benchmark, and the arrays that every contestant is given.

A row is a piece of work: its kind says what is computed, its sizes say on what. The arrays are
drawn from the seed in each process anew, so no process sends arrays to another.
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
    unit       of the printed time: "ms" or "µs"
    collector  whether Python's cycle collector may run, as it does for a user
    tolerance  how far two contestants' numbers may be apart, relative to their length as a vector
    """

    name: str
    kind: str
    what: str
    sizes: dict[str, Any]
    quick: dict[str, Any]
    per: str = ""
    unit: str = "ms"
    collector: bool = True
    tolerance: float = 1e-4


def _attention(name: str, shape: Any, quick: Any, causal: bool) -> Row:
    sizes = {"shape": shape, "causal": causal}
    what = "attention, forward and backward, {shape}" + (", causal" if causal else "")
    return Row(name, "attention", what, sizes, {"shape": quick, "causal": causal})


def _deep(name: str, what: str, collector: bool) -> Row:
    sizes, quick = {"nodes": 100_000}, {"nodes": 3_000}
    return Row(name, "sums", what, sizes, quick, per="nodes", unit="µs", collector=collector)


TOY = {"V": 16, "B": 64, "T": 16, "d": 64, "heads": 4, "blocks": 2}
CHAR = {"V": 65, "B": 16, "T": 128, "d": 128, "heads": 4, "blocks": 4}
SMALL = {"V": 11, "B": 3, "T": 7, "d": 20, "heads": 4, "blocks": 2}
BERT = {"V": 1000, "B": 10, "T": 14, "d": 384, "heads": 12, "blocks": 6, "kinds": 2}
LLAMA = {"V": 65, "d": 128, "heads": 4, "kv_heads": 2, "d_ff": 416, "blocks": 4}

STEP = "training step: V {V}, B {B}, T {T}, d {d}, {heads} heads, {blocks} blocks, Adam"

ROWS = (
    Row(
        "tiny",
        "products",
        "{nodes:,} elementwise products of (4, 4), forward and backward",
        {"nodes": 1000},
        {"nodes": 100},
        per="nodes",
        unit="µs",
        tolerance=1e-3,
    ),
    _attention("attention-128", (8, 8, 128, 64), (2, 3, 5, 7), False),
    _attention("attention-512", (1, 8, 512, 64), (1, 3, 300, 8), False),
    _attention("attention-causal", (16, 4, 128, 32), (2, 3, 7, 5), True),
    Row(
        "toy",
        "step",
        STEP,
        TOY,
        SMALL,
        tolerance=1e-3,
    ),
    Row(
        "char-gpt",
        "step",
        STEP,
        CHAR,
        SMALL | {"V": 13, "B": 2, "T": 11, "blocks": 1},
        tolerance=1e-3,
    ),
    _attention("long", (1, 4, 4096, 32), (1, 2, 600, 5), True),
    _deep("deep", "{nodes:,} additions of a number to (4, 4)", True),
    _deep("deep-uncollected", "the same, with Python's cycle collector off", False),
    Row(
        "second-order",
        "second_order",
        "gradient of ½‖∇L‖², 2-layer tanh MLP, x ({B}, {d})",
        {"B": 32, "d": 64},
        {"B": 5, "d": 7},
        tolerance=1e-3,
    ),
    Row(
        "encoder",
        "encoder",
        "BERT: {blocks} blocks, d {d}, {heads} heads, {B} × {T} tokens, no record",
        BERT,
        BERT | {"V": 17, "B": 3, "T": 5, "d": 20, "heads": 4, "blocks": 2},
        tolerance=1e-3,
    ),
    Row(
        "generation",
        "generation",
        "a token of a GPT: {blocks} blocks, d {d}, RoPE, {heads}:{kv_heads} heads, SwiGLU, cached",
        LLAMA | {"prompt": 8, "tokens": 120},
        LLAMA | {"d": 16, "d_ff": 24, "blocks": 2, "prompt": 3, "tokens": 7},
        per="tokens",
        tolerance=1e-3,
    ),
)
NAMES = tuple(row.name for row in ROWS)


def row_named(name: str) -> Row:
    """Return the row of this name."""
    return ROWS[NAMES.index(name)]


def sizes_of(row: Row, quick: bool) -> dict[str, Any]:
    """Return the sizes of a measurement."""
    return row.quick if quick else row.sizes


def in_words(row: Row, quick: bool) -> str:
    """Return the computation of a row in words, with the sizes of the measurement."""
    return row.what.format(**sizes_of(row, quick))


def given(row: Row, quick: bool, seed: int) -> Given:
    """Return the weights and inputs of a row: the same arrays in every process."""
    rng = np.random.default_rng([seed, NAMES.index(row.name)])
    return _DRAWN[row.kind](rng, **sizes_of(row, quick))


def _normal(rng: np.random.Generator, *shape: int, std: float = 1.0) -> Array:
    return std * rng.standard_normal(shape, dtype=np.float32)


def _products(rng: np.random.Generator, nodes: int) -> Given:
    # Near 1, so that a product of a thousand neither overflows nor vanishes.
    return {name: 1 + _normal(rng, 4, 4, std=1e-3) for name in ("x", "w")}


def _given_attention(rng: np.random.Generator, shape: Any, causal: bool) -> Given:
    return {name: _normal(rng, *shape) for name in "qkvg"}


def _second_order(rng: np.random.Generator, B: int, d: int) -> Given:
    return {
        "x": _normal(rng, B, d),
        "w_1": _normal(rng, d, d, std=d**-0.5),
        "w_2": _normal(rng, d, d, std=d**-0.5),
    }


def _drawn(rng: np.random.Generator, shapes: dict[str, tuple[int, ...]]) -> Given:
    """Draw weights: matrices as GPT-2 draws them, gains near 1 and biases near 0."""
    weights = {name: _normal(rng, *shape, std=0.02) for name, shape in shapes.items()}
    return {name: w + ("gain" in name) * np.float32(1) for name, w in weights.items()}


def _block(name: str, d: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of a block's parameters, by the names that our layers give them."""
    matrices = {f"attention.w_{each}": (d, d) for each in "qkvo"}
    matrices |= {"feed_forward.w_1": (d, 4 * d), "feed_forward.w_2": (4 * d, d)}
    shapes: dict[str, tuple[int, ...]] = {}
    for each, shape in matrices.items():
        shapes |= {f"{name}.{each}.weight": shape, f"{name}.{each}.bias": shape[1:]}
    for norm in ("norm_attention", "norm_feed_forward"):
        shapes |= {f"{name}.{norm}.gain": (d,), f"{name}.{norm}.bias": (d,)}
    return shapes


def _step(
    rng: np.random.Generator, V: int, B: int, T: int, d: int, heads: int, blocks: int
) -> Given:
    shapes: dict[str, tuple[int, ...]] = {"tokens.weight": (V, d), "positions.weight": (T, d)}
    for i in range(blocks):
        shapes |= _block(f"blocks.{i}", d)
    shapes |= {"norm.gain": (d,), "norm.bias": (d,)}
    words = rng.integers(V, size=(2, B, T))
    return _drawn(rng, shapes) | {"words": words[0], "targets": words[1]}


def _encoder(
    rng: np.random.Generator,
    V: int,
    B: int,
    T: int,
    d: int,
    heads: int,
    blocks: int,
    kinds: int,
) -> Given:
    shapes: dict[str, tuple[int, ...]] = {"tokens.weight": (V, d), "positions.weight": (T, d)}
    shapes |= {"kinds.weight": (kinds, d), "norm.gain": (d,), "norm.bias": (d,)}
    for i in range(blocks):
        shapes |= _block(f"encoder.blocks.{i}", d)
    return _drawn(rng, shapes) | {"words": rng.integers(V, size=(B, T))}


def _generation(
    rng: np.random.Generator,
    V: int,
    d: int,
    heads: int,
    kv_heads: int,
    d_ff: int,
    blocks: int,
    prompt: int,
    tokens: int,
) -> Given:
    d_kv = d // heads * kv_heads
    shapes: dict[str, tuple[int, ...]] = {"tokens.weight": (V, d)}
    for i in range(blocks):
        matrices = {
            "attention.w_q": (d, d),
            "attention.w_k": (d, d_kv),
            "attention.w_v": (d, d_kv),
            "attention.w_o": (d, d),
            "feed_forward.w_1": (d, d_ff),
            "feed_forward.w_3": (d, d_ff),
            "feed_forward.w_2": (d_ff, d),
        }
        shapes |= {f"blocks.{i}.{name}.weight": shape for name, shape in matrices.items()}
        shapes |= {f"blocks.{i}.{n}.gain": (d,) for n in ("norm_attention", "norm_feed_forward")}
    shapes |= {"norm.gain": (d,), "head.weight": (d, V)}
    # Larger than GPT-2's, so that the scores of two tokens are never nearly equal.
    weights = {n: w if "gain" in n else 5 * w for n, w in _drawn(rng, shapes).items()}
    return weights | {"words": rng.integers(V, size=(1, prompt))}


_DRAWN: dict[str, Any] = {
    "products": _products,
    "sums": lambda rng, nodes: {"x": _normal(rng, 4, 4)},
    "attention": _given_attention,
    "step": _step,
    "second_order": _second_order,
    "encoder": _encoder,
    "generation": _generation,
}
