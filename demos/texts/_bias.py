"""Demos · Texts: what a bias does in each projection of "Your journey starts with one step".

The notebook's class V2 has an option, `qkv_bias`, and never uses it. With it a projection is
x W + b, so that a score is

    (qᵢ + b_q) · (kⱼ + b_k) = qᵢ·kⱼ + b_q·kⱼ + (qᵢ + b_q)·b_k
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from attention import attention, rotary
from demos.publish import Published
from demos.texts.sources import your_journey as source
from demos.texts.sources.your_journey import INPUTS, SelfAttention
from minigrad import Graph, Steps, Tensor, gradients, graph, mse
from minigrad.nn import Dropout
from minigrad.optim import SGD

ADDED = {"b_q": "b_q·kⱼ", "b_k": "(qᵢ + b_q)·b_k", "b_v": "nothing"}  # to a score
STEPS, RATE, LONGER = 300, 1.0, 10
X = Tensor(INPUTS, name="X")


def learned() -> list[float]:
    """Train the head to predict the next word's start; return how far each bias has moved."""
    head, target = source.version_2_biased(), np.roll(INPUTS[:, :2], -1, axis=0)
    optimizer = SGD(head.parameters(), RATE)
    for _ in range(STEPS):
        optimizer.zero_grad()
        mse(head(X), target).backward()
        optimizer.step()
    pairs = zip(head.parameters()[3:], source.version_2_biased().parameters()[3:], strict=True)
    return _norms(after.data - before.data for after, before in pairs)


def drawn() -> Graph:
    """Return the head with its biases as a graph."""
    with Steps() as steps:
        total = source.version_2_biased()(X).sum()
    return graph(total, grads=True, steps=steps)


def show(page: Published) -> None:
    """Show what moves with each bias, and judge it."""
    head, marks = source.version_2_biased(), page.marks
    w, b = head.parameters()[:3], head.parameters()[3:]
    moved = []  # for each bias, made longer: how far a weight moves, and a number of a context
    for i in range(3):
        longer = SelfAttention(*w, *(LONGER * b[j].data if i == j else b[j] for j in range(3)))
        pairs = (longer.weights(X), head.weights(X)), (longer(X), head(X))
        moved.append([_largest(after.data - before.data) for after, before in pairs])
    (w_q, _), (w_k, _), (w_v, _) = moved
    sizes, by_steps = _norms(gradients(head(X).sum(), b)), learned()
    q, k, v = head.project(X)
    turned = _norms(gradients(attention(rotary(q), rotary(k), v).sum(), b))
    without = SelfAttention(*w, *b[:2], np.zeros(2))
    apart = _largest(head(X).data - without(X).data - head.b_v.data)
    half = lambda: Dropout(0.5, rng=np.random.default_rng(page.chosen.seed))  # the same each time
    dropped = _largest((head(X, drop=half()) - without(X, drop=half())).data - head.b_v.data)

    page.ask(
        "One of the three biases changes no context at all, whatever its numbers are. Which one?",
        "It is b_k. It adds (qᵢ + b_q)·b_k to every score of query i, the same number for each "
        "key, and softmax does not see a shift of a whole row. So its gradient is 0, and what is "
        "computed for it is rounding.",
        guesses=tuple(ADDED),
    )
    columns = zip(ADDED.items(), sizes, moved, by_steps, strict=True)
    with page.folded("What each of them does, and two conditions"):
        page.table(
            [
                *("bias", "adds to the score of i and j", "‖∂L/∂b‖"),
                *(f"{LONGER} b moves a weight by", "and a context by"),
                f"{STEPS} steps move it by",
            ],
            [[*added, *(f"{x:.1e}" for x in (size, *far, by))] for added, size, far, by in columns],
            caption="V2 with biases: what each of them does. L is the sum of all contexts",
        )
        page.figure(
            drawn(),
            "bias",
            alt="The graph of V2 with its biases. Every parameter has a gradient except b_k, which "
            f"has a dashed frame and the gradient ≈ 0: its norm is {sizes[1]:.0e}.",
            caption="V2 with its biases: b_k alone has no gradient",
        )
        page.say(
            "b_q adds b_q·kⱼ to every score of key j, so all words look more at some keys. b_v is "
            "added to each value, and since the weights of a row sum to 1, each context moves by "
            "b_v.\n\n"
            "There are conditions. Where weights are dropped, a row does not sum to 1, and "
            f"contexts move by up to {dropped:.2f} more or less than b_v. Where `rotary` turns "
            "keys by their positions after the bias, b_k adds another number to each key's score: "
            f"there ‖∂L/∂b_k‖ is {turned[1]:.1e}, and ‖∂L/∂b_q‖ is {turned[0]:.1e}."
        )
    marks.at_most("‖∂L/∂b_k‖ / ‖∂L/∂b_q‖", sizes[1] / sizes[0], 1e-12, ".0e")
    marks.at_least("b_q longer: a weight moves by", w_q, 0.1, ".2f")
    marks.at_most("b_k and b_v longer: a weight moves by", max(w_k, w_v), 1e-14, ".0e")
    marks.at_most("contexts move by b_v: off by", apart, 1e-14, ".0e")
    marks.at_least("contexts with dropped weights move by b_v: off by", dropped, 0.05, ".2f")
    marks.at_most(f"{STEPS} steps move b_k by", by_steps[1], 1e-12, ".0e")
    marks.at_least(f"{STEPS} steps move b_q and b_v by", min(by_steps[::2]), 0.005, ".3f")
    marks.at_least("rotated: ‖∂L/∂b_k‖ / ‖∂L/∂b_q‖", turned[1] / turned[0], 0.1, ".1f")


def _norms(arrays: Iterable[np.ndarray]) -> list[float]:
    return [float(np.linalg.norm(array)) for array in arrays]


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array).max())
