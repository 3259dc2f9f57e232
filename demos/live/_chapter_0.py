"""Live · Chapter 0: its own lines, judged by differences. (They record in their own way.)

The program is attention of a sequence to itself: queries and keys are both h = x w. So h is used
twice, once through its transpose, and a loop that does not wait for both spoils x and w.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np

from demos.live._answers import compared, picture
from demos.live._examples import sentence
from minigrad import idea
from minigrad.checks.agreeing import Verdict
from minigrad.graphs import Graph, Vertex
from minigrad.graphs.summary import Summary

H = 1e-6
ENOUGH = 1e-6  # what is less off than this agrees
NAMES = ("x", "w")  # the first two values


def program() -> Any:
    """Return L = -log(weight of key 2 for the first of three rows)."""
    draws = np.random.default_rng(0)
    x, w = idea.Value(draws.standard_normal((3, 2))), idea.Value(draws.standard_normal((2, 4)))
    row, pick = idea.Value([[1.0, 0.0, 0.0]]), idea.Value([[0.0], [0.0], [1.0]])
    h = idea.matmul(x, w)
    weights = idea.attention_weights(h, h)
    return idea.minus_log(idea.matmul(idea.matmul(row, weights), pick))


def made(moved: int = -1, by: Any = 0.0) -> list[Any]:
    """Run the program; return all values in their order. The one with a number is moved."""
    values: list[Any] = []
    original = idea.Value

    def value(array: Any, *rest: Any) -> Any:
        shift = by if len(values) == moved else 0.0
        values.append(original(np.asarray(array, float) + shift, *rest))
        return values[-1]

    with mock.patch.object(idea, "Value", value):
        program()
    return values


def judged(name: str) -> dict[str, Any]:
    """Judge a definition of chapter 0: the same answer as in _judging.py."""
    answer: dict[str, Any] = {"reason": "", "numbers": None, "message": "", "picture": None}
    try:
        values = made()
        idea.backward(values[-1])
        seen = {n: differences(values, n) for n in range(len(values)) if n < 2 or values[n].inputs}
        verdicts = {n: verdict(values[n].grad, seen[n]) for n in seen}
    except Exception as error:
        return answer | {"right": False, "heading": f"It stops. {sentence(error, {})}"}
    spoiled = [n for n in seen if not verdicts[n].agrees]
    vertices = [vertex(values, n, verdicts.get(n), name) for n in range(len(values))]
    answer["picture"] = picture(Graph(vertices))
    if not spoiled:
        heading = "Differences: every gradient is right."
        return answer | {"right": True, "heading": heading}
    first = vertices[spoiled[-1]].title
    many = f"{len(spoiled)} of {len(seen)} gradients are wrong"
    if name in [v.operation for v in vertices]:
        answer["reason"] = (
            f"{name} gets the right gradient and sends a wrong one: look at its VJPs."
        )
    elif not verdicts[len(values) - 1].agrees:
        answer["reason"] = "The first gradient is wrong already: ∂L/∂L is 1."
    elif name == "backward":
        answer["reason"] = (
            "Each rule is right by itself. So the loop sends a gradient on too early, or twice, or "
            "does not add up what arrives."
        )
    answer["numbers"] = compared(first, values[spoiled[-1]].grad, seen[spoiled[-1]])
    return answer | {"right": False, "heading": f"Differences: {many}."}


def differences(values: list[Any], n: int) -> Any:
    """Return how fast L moves with each element of a value, as chapter 0 does it."""
    shape, found = values[n].array.shape, []
    for unit in np.eye(values[n].array.size):
        up, down = (made(n, step * unit.reshape(shape))[-1].array.item() for step in (H, -H))
        found.append((up - down) / (2 * H))
    return np.reshape(found, shape)


def verdict(gradient: Any, seen: Any) -> Verdict:
    """Return the verdict on the gradient of one value."""
    off = float(np.linalg.norm(gradient - seen) / np.linalg.norm(seen))
    return Verdict(True) if off <= ENOUGH else Verdict(False, off)


def vertex(values: list[Any], n: int, found: Verdict | None, edited: str) -> Vertex:
    """Return a value as a drawing has it. (What is not judged is a constant.)"""
    value = values[n]
    shape, array = value.array.shape, Summary.of(value.array)
    known: dict[str, Any] = {"kind": "constant", "title": "constant", "inputs": ()}
    if value.inputs:
        called = value.vjps[0].__qualname__.partition(".")[0]  # (a VJP is a lambda in its rule)
        inputs = tuple(values.index(x) for x in value.inputs)
        known = {"kind": "operation", "title": called, "operation": called, "inputs": inputs}
    elif found is not None:
        known = {"kind": "leaf", "title": NAMES[n], "named": True, "inputs": ()}
    if found is not None:
        known["gradient"] = Summary.of(value.grad)
    if found is not None and found.agrees and known.get("operation") == edited:
        known["verdict"] = replace(found, wrong=tuple(range(len(value.inputs))))
    else:
        known["verdict"] = found
    return Vertex(number=n, shape=shape, dtype="float64", value=array, **known)
