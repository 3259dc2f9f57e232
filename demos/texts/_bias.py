"""Demos · Texts: what a bias does in each projection of "Your journey starts with one step".

The notebook's class V2 has an option, `qkv_bias`, and never uses it. With it a projection is
x W + b, so that a score is

    (qᵢ + b_q) · (kⱼ + b_k) = qᵢ·kⱼ + b_q·kⱼ + (qᵢ + b_q)·b_k

b_q adds b_q·kⱼ to every score of key j: all queries look more at some keys, and less at others.
b_k adds (qᵢ + b_q)·b_k to every score of query i, the same number for each key. Softmax does not
see a shift of a whole row, so b_k changes no weight, and its gradient is 0. b_v is added to each
value, and the weights of a row sum to 1, so each context moves by b_v.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from attention import attention, rotary
from demos._page import Page
from demos._training import Marks
from demos.texts.sources import your_journey as source
from demos.texts.sources.your_journey import INPUTS, BiasedAttention
from minigrad import Graph, Steps, Tensor, gradients, graph, mse
from minigrad.nn import Dropout
from minigrad.optim import SGD

NAMES = ("b_q", "b_k", "b_v")
ADDED = ("b_q·kⱼ", "(qᵢ + b_q)·b_k", "nothing")  # to the score of query i and key j
STEPS, RATE, LONGER = 300, 1.0, 10
X = Tensor(INPUTS, name="X")


class Found(NamedTuple):
    """The measurements; lists are for b_q, b_k and b_v."""

    gradients: list[float]  # ‖∂L/∂b‖, where L is the sum of the contexts
    weights: list[float]  # how far a weight moves if the bias is LONGER times as long
    contexts: list[float]  # how far a number of a context moves then
    learned: list[float]  # how far STEPS steps of gradient descent move the bias
    rotated: list[float]  # ‖∂L/∂b‖, with queries and keys turned by their positions
    apart: float  # how far the contexts' move, from b_v = 0 to b_v, is from b_v
    dropped: float  # the same, where half of the weights are dropped


def measure(seed: int) -> Found:
    """Measure the three biases. The seed is that of the dropped weights."""
    head = source.version_2_biased()
    w, b = head.parameters()[:3], head.parameters()[3:]
    looks, contexts = head.weights(X).data, head(X).data
    moved_weights, moved_contexts = [], []
    for i in range(3):
        longer = BiasedAttention(*w, *(LONGER * b[j].data if i == j else b[j] for j in range(3)))
        moved_weights.append(_largest(longer.weights(X).data - looks))
        moved_contexts.append(_largest(longer(X).data - contexts))
    q, k, v = head.project(X)
    turned = attention(rotary(q), rotary(k), v)
    without = BiasedAttention(*w, *b[:2], np.zeros(2))
    half = lambda: Dropout(0.5, rng=np.random.default_rng(seed))  # it drops the same each time
    dropped = head(X, drop=half()).data - without(X, drop=half()).data
    return Found(
        _norms(gradients(head(X).sum(), b)),
        moved_weights,
        moved_contexts,
        learned(),
        _norms(gradients(turned.sum(), b)),
        _largest(contexts - without(X).data - head.b_v.data),
        _largest(dropped - head.b_v.data),
    )


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


def rows(found: Found) -> list[list[str]]:
    """Return a row of the table for each bias."""
    columns = found.gradients, found.weights, found.contexts, found.learned
    numbers = ([f"{column[i]:.1e}" for column in columns] for i in range(len(NAMES)))
    return [[name, added, *cells] for name, added, cells in zip(NAMES, ADDED, numbers, strict=True)]


def report(found: Found, marks: Marks) -> None:
    """Print the table, and judge what it shows."""
    print(f"\n   V2 with qkv_bias=True: what moves if b becomes {LONGER} b, and by {STEPS} steps\n")
    header = "", "adds to a score", "‖∂L/∂b‖", "a weight by", "a context by", "steps: b by"
    for cells in [header, *rows(found)]:
        print("   {:5}{:18}{:>9}{:>14}{:>15}{:>17}".format(*cells))
    (g_q, g_k, _), (w_q, w_k, w_v) = found.gradients, found.weights
    marks.at_most("‖∂L/∂b_k‖ / ‖∂L/∂b_q‖", g_k / g_q, 1e-12, ".0e")
    marks.at_least("b_q longer: a weight moves by", w_q, 0.1, ".2f")
    marks.at_most("b_k and b_v longer: a weight moves by", max(w_k, w_v), 1e-14, ".0e")
    marks.at_most("contexts move by b_v: off by", found.apart, 1e-14, ".0e")
    marks.at_least("contexts with dropped weights move by b_v: off by", found.dropped, 0.05, ".2f")
    marks.at_most(f"{STEPS} steps move b_k by", found.learned[1], 1e-12, ".0e")
    least = min(found.learned[0], found.learned[2])
    marks.at_least(f"{STEPS} steps move b_q and b_v by", least, 0.005, ".3f")
    turned = found.rotated[1] / found.rotated[0]
    marks.at_least("rotated: ‖∂L/∂b_k‖ / ‖∂L/∂b_q‖", turned, 0.1, ".1f")


def show(page: Page, found: Found, folder: Path) -> None:
    """Add the section to the page, with the head as a graph."""
    drawing = drawn()
    for ending in ("png", "svg"):
        drawing.save(folder / f"bias.{ending}")
    page.section("An option that it never uses: a bias")
    page.say(
        "The class V2 has an option, `qkv_bias`, and the text never uses it. With this option a "
        "query is x W_q + b_q, and keys and values get a bias too. Here are the numbers that V2 "
        "draws with it from the text's own seed.",
    )
    page.ask(
        "One of the three biases b_q, b_k and b_v changes no context at all, whatever its numbers "
        "are. Which one?",
        "It is b_k. It adds (qᵢ + b_q)·b_k to every score of query i, the same number for each "
        "key, and softmax does not see a shift of a whole row. So its gradient is 0, and what is "
        "computed for it is rounding.",
    )
    page.table(
        [
            *("bias", "adds to the score of i and j", "‖∂L/∂b‖", f"{LONGER} b moves a weight by"),
            *("and a context by", f"{STEPS} steps move it by"),
        ],
        rows(found),
        caption="V2 with biases: what each of them does. L is the sum of all contexts",
    )
    page.figure(
        folder / "bias.svg",
        alt="The graph of V2 with its biases. Every parameter has a gradient except b_k, which has "
        "a dashed frame and the gradient ≈ 0.",
        caption="V2 with its biases: b_k alone has no gradient",
    )
    page.say(
        "b_q adds b_q·kⱼ to every score of key j, so all words look more at some keys. b_v is "
        "added to each value, and since the weights of a row sum to 1, each context moves by b_v.",
        "There are conditions. Where weights are dropped, a row does not sum to 1, and contexts "
        f"move by up to {found.dropped:.2f} more or less than b_v. Where `rotary` turns keys by "
        "their positions after the bias, b_k adds another number to each key's score: there "
        f"‖∂L/∂b_k‖ is {found.rotated[1]:.1e}, and ‖∂L/∂b_q‖ is {found.rotated[0]:.1e}.",
    )


def _norms(arrays: Iterable[np.ndarray]) -> list[float]:
    return [float(np.linalg.norm(array)) for array in arrays]


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array).max())
