"""Demos · Speed: the rows, written once: the same lines run in this engine and in PyTorch.

`f` is the framework: the module `in_minigrad` or `in_torch`, which have the same names. A program
is two functions: a step, which is timed, and a step that returns its values and gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from demos.speed.bench import by_hand, by_hand_step
from demos.speed.bench.by_hand import Program
from demos.speed.bench.rows import Given, Row

HAND = {
    "products": by_hand.products,
    "attention": by_hand.attention,
    "step": by_hand_step.step,
}
ATTEND = ("attention", "step")  # the kinds with a floor, and with attention in blocks


def contestants(row: Row, against: list[str]) -> list[str]:
    """Return the contestants of a row, as the table names them."""
    found = ["hand"] * (row.kind in HAND) + ["floor"] * (row.kind in ATTEND)
    for framework in ("minigrad", *against):
        found += [framework] + [f"{framework} fused"] * (row.kind in ATTEND)
    return found


def program(contestant: str, row: Row, quick: bool, given: Given, threads: int = 1) -> Program:
    """Return a contestant's program for a row."""
    sizes = row.sizes_of(quick)
    if contestant == "hand":
        return HAND[row.kind](sizes, given)
    if contestant == "floor":
        return by_hand.floor(HAND[row.kind])(sizes, given)
    framework, _, variant = contestant.partition(" ")
    f = import_module(f"demos.speed.bench.in_{framework}")
    f.limit_threads(threads)
    return globals()[row.kind](f, sizes, given, f.ATTENTION[variant])


def chain(f: Any, sizes: dict[str, Any], given: Given, word: Callable[..., Any]) -> Program:
    """Apply one operation, `word`, to x many times in a row, and then go back."""
    leaves = {name: f.leaf(x) for name, x in given.items()}
    x, *others = leaves.values()

    def step() -> dict[str, Any]:
        y = x
        for _ in range(sizes["nodes"]):
            y = word(y, *others)
        for each in leaves.values():
            each.grad = None
        y.sum().backward()
        return {"y": y} | {name: each.grad for name, each in leaves.items()}

    return step, lambda: arrays(f, step())


def arrays(f: Any, found: dict[str, Any]) -> Given:
    """Return tensors as NumPy's arrays."""
    return {name: f.array(x) for name, x in found.items()}


def products(f: Any, sizes: dict[str, Any], given: Given, _: Any) -> Program:
    """Multiply by w in each step."""
    return chain(f, sizes, given, lambda y, w: y * w)


def sums(f: Any, sizes: dict[str, Any], given: Given, _: Any) -> Program:
    """Add 1 in each step."""
    return chain(f, sizes, given, lambda y: y + 1.0)


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

    return step, lambda: arrays(f, step())


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
        losses, found = [step()], slopes()
        return {"losses": np.array([*losses, step(), step()])} | found

    return step, results


def second_order(f: Any, sizes: dict[str, Any], given: Given, _: Any) -> Program:
    """The gradient of ½‖∇L‖²."""
    x, w = f.constant(given["x"]), [f.leaf(given[name]) for name in ("w_1", "w_2")]

    def step() -> Any:
        loss = ((f.tanh(x @ w[0]) @ w[1]) ** 2).mean()
        slopes = f.gradients(loss, w, create_graph=True)
        return f.gradients(0.5 * sum((g * g).sum() for g in slopes), w)

    return step, lambda: arrays(f, dict(zip(("w_1", "w_2"), step(), strict=True)))


def encoder(f: Any, sizes: dict[str, Any], given: Given, _: Any) -> Program:
    """A BERT that reads, without a record."""
    read = f.bert(sizes, given)

    def step() -> Any:
        with f.no_grad():
            return read()

    return step, lambda: arrays(f, {"y": step()})


def generation(f: Any, sizes: dict[str, Any], given: Given, _: Any) -> Program:
    """A Llama that writes, with a cache of keys and values; it takes the best token each time."""
    return f.llama(sizes, given)
