"""Live · Chapter 0: its own lines, judged by differences. (They record in their own way.)

The program is attention of a sequence to itself: queries and keys are both h = x w. So h is used
twice, once through its transpose, and a loop that does not wait for both spoils x and w.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from demos.live._answers import compared, picture, stopped
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


def end() -> float:
    """Return the program's L."""
    return float(program().array.item())


def made(moved: int = -1, by: Any = 0.0) -> list[Any]:
    """Run the program; return all values in their order. The one with a number is moved."""
    values: list[Any] = []
    original = idea.Value

    def value(array: Any, *rest: Any) -> Any:
        shift = by if len(values) == moved else 0.0
        values.append(original(np.asarray(array, float) + shift, *rest))
        return values[-1]

    names = vars(idea)
    names["Value"] = value
    try:
        program()
    finally:
        names["Value"] = original
    return values


def judged(name: str, *, alone: bool = True) -> dict[str, Any]:
    """Judge a definition of chapter 0: the same answer as in _judging.py.

    alone  whether all other definitions have the book's lines
    """
    answer: dict[str, Any] = {"reason": "", "numbers": None, "message": "", "picture": None}
    try:
        values = made()
        idea.backward(values[-1])
        looked_at = [n for n in range(len(values)) if n < len(NAMES) or values[n].inputs]
        seen = {n: differences(values, n) for n in looked_at}
        verdicts = {n: verdict(values[n].grad, seen[n]) for n in seen}
        spoils = {n: wrong_inputs(values, n, verdicts) for n in seen}
        verdicts = {n: replace(verdicts[n], wrong=spoils[n]) for n in seen}
    except BaseException as error:  # (exit() too)
        return answer | stopped(error)
    spoiled = [n for n in seen if not verdicts[n].agrees]
    vertices = [vertex(values, n, verdicts.get(n)) for n in range(len(values))]
    answer["picture"] = picture(Graph(vertices))
    if not spoiled:
        heading = "Differences: every gradient is right."
        return answer | {"right": True, "heading": heading}
    first = vertices[spoiled[-1]]
    what = f"the small program's {first.title}" if first.named else f"the result of {first.title}"
    many = f"{len(spoiled)} of {len(seen)} gradients are wrong"
    own = [n for n in seen if spoils[n] and vertices[n].operation == name]
    if any(verdicts[n].agrees for n in own):
        answer["reason"] = (
            f"{name} gets the right gradient and sends a wrong one: look at its VJPs."
        )
    elif not verdicts[len(values) - 1].agrees:
        answer["reason"] = "The first gradient is wrong already: ∂L/∂L is 1."
    elif name == "backward" and alone:
        answer["reason"] = (
            "Each rule is right by itself. So the loop sends a gradient on too early, or twice, or "
            "does not add up what arrives."
        )
    answer["numbers"] = compared(what, values[spoiled[-1]].grad, seen[spoiled[-1]])
    return answer | {"right": False, "heading": f"Differences: {many}."}


def differences(values: list[Any], n: int) -> Any:
    """Return how fast L moves with each element of a value."""
    return slopes(lambda by: made(n, by)[-1].array.item(), np.zeros(values[n].array.shape))


def slopes(f: Callable[[Any], float], array: Any) -> Any:
    """Return how fast f moves with each element of an array, as chapter 0 does it."""
    steps = H * np.eye(array.size).reshape(-1, *array.shape)
    return np.reshape([(f(array + h) - f(array - h)) / (2 * H) for h in steps], array.shape)


def wrong_inputs(values: list[Any], n: int, verdicts: dict[int, Verdict]) -> tuple[int, ...]:
    """Return the positions of a value's inputs whose VJP is wrong by itself.

    Only a VJP that sends something to a wrong gradient is looked at.
    """
    inputs, wrong = values[n].inputs, []
    operation = getattr(idea, called(values[n]), None) if inputs else None
    # (All operations share the code of the decorator's `run`. Another function is a helper that
    # made the VJP.)
    if getattr(operation, "__code__", None) is not idea.matmul.__code__:
        return ()
    g = np.random.default_rng(0).standard_normal(values[n].array.shape)
    for i, x in enumerate(inputs):
        known = verdicts.get(values.index(x))
        if known is None or known.agrees:
            continue

        def change(array: Any, i: int = i) -> float:
            y = operation(*inputs[:i], idea.Value(array), *inputs[i + 1 :])
            return float((g * y.array).sum())

        if not verdict(values[n].vjps[i](g), slopes(change, x.array)).agrees:
            wrong.append(i)
    return tuple(wrong)


def called(value: Any) -> str:
    """Return the name of the rule that computed a value. (A VJP is a lambda in its rule.)"""
    return str(value.vjps[0].__qualname__.partition(".")[0])


def verdict(gradient: Any, seen: Any) -> Verdict:
    """Return the verdict on the gradient of one value."""
    apart, true = float(np.linalg.norm(gradient - seen)), float(np.linalg.norm(seen))
    if apart <= ENOUGH * true:
        return Verdict(True)
    return Verdict(False, apart / true if true else np.inf)


def vertex(values: list[Any], n: int, found: Verdict | None) -> Vertex:
    """Return a value as a drawing has it. (What is not judged is a constant.)"""
    value = values[n]
    shape, array = value.array.shape, Summary.of(value.array)
    known: dict[str, Any] = {"kind": "constant", "title": "constant", "inputs": ()}
    if value.inputs:
        rule = called(value)
        inputs = tuple(values.index(x) for x in value.inputs)
        known = {"kind": "operation", "title": rule, "operation": rule, "inputs": inputs}
    elif found is not None:
        known = {"kind": "leaf", "title": NAMES[n], "named": True, "inputs": ()}
    if found is not None:
        known["gradient"] = Summary.of(value.grad)
    return Vertex(number=n, shape=shape, dtype="float64", value=array, verdict=found, **known)
