"""Demos · Speed: the rows, written once: the same lines run in this engine and in PyTorch.

`f` is the framework: the module `in_minigrad` or `in_torch`, which have the same names. A program
is two functions: a step, which is timed, and a step that returns its values and gradients.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from demos.speed.bench import by_hand, by_hand_step
from demos.speed.bench.by_hand import Program
from demos.speed.bench.changes import VARIANTS
from demos.speed.bench.rows import BenchmarkRow, Given

HAND = {"products": by_hand.products, "attention": by_hand.attention, "step": by_hand_step.step}


def contestants(row: BenchmarkRow, against: list[str]) -> list[str]:
    """Return the contestants of a row, as the table names them."""
    blocks = [""] if row.kind == "products" else ["", " in blocks"]  # of attention
    return ["hand"] + [each + more for each in ("minigrad", *against) for more in blocks]


def program(contestant: str, row: BenchmarkRow, quick: bool, given: Given) -> Program:
    """Return a contestant's program for a row."""
    sizes = row.sizes_of(quick)
    if contestant == "hand":
        return HAND[row.kind](sizes, given)
    if contestant in VARIANTS:
        ours = import_module("demos.speed.bench.in_minigrad")
        return ours.training(sizes, given, VARIANTS[contestant])
    framework, _, variant = contestant.partition(" ")
    f = import_module(f"demos.speed.bench.in_{framework}")
    return globals()[row.kind](f, sizes, given, f.ATTENTION[variant])


def products(f: Any, sizes: dict[str, Any], given: Given, _: Any) -> Program:
    """Multiply x by w many times in a row, and then go back."""
    x, w = f.leaf(given["x"]), f.leaf(given["w"])

    def step() -> dict[str, Any]:
        y = x
        for _ in range(sizes["nodes"]):
            y = y * w
        x.grad = w.grad = None
        y.sum().backward()
        return {"y": y, "x": x.grad, "w": w.grad}

    return step, lambda: {name: f.array(x) for name, x in step().items()}


def attention(f: Any, sizes: dict[str, Any], given: Given, attend: Any) -> Program:
    """Attention, forward and backward."""
    q, k, v = (f.leaf(given[name]) for name in "qkv")
    g = f.constant(given["g"])
    mask = f.causal_mask(sizes["shape"][-2]) if sizes["causal"] else None

    def step() -> dict[str, Any]:
        y = attend(q, k, v, mask=mask)
        q.grad = k.grad = v.grad = None
        y.backward(g)
        return {"y": y, "q": q.grad, "k": k.grad, "v": v.grad}

    return step, lambda: {name: f.array(x) for name, x in step().items()}


def step(f: Any, sizes: dict[str, Any], given: Given, attend: Any) -> Program:
    """A training step of a small GPT: loss, gradients, Adam."""
    loss_of, slopes, optimizer = f.gpt(sizes, given, attend)

    def step() -> float:
        loss = loss_of()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    def results() -> Given:
        losses = [step()]
        found = slopes()
        return {"losses": np.array([*losses, step(), step()])} | found

    return step, results
