"""Exercise 22 · The check: no turn, a quarter turn, lengths, distances, the value, the gradient."""

import numpy as np

from demos.learn._telling import given, law, right_derivatives, same, tensor
from minigrad import Tensor

CHAPTER = "14"
HINTS = (
    "Take the pairs apart first: a is every second feature from 0 on, b every second from 1 on. "
    "What shape do both have, and what shape do cos and sin have?",
    "Turn all points at once: two new arrays, one for each of the two formulas of the task. Then "
    "they have to stand in turn again: first, second, first, second, …",
    "np.stack([new_a, new_b], axis=-1) has the shape (…, T, d_k / 2, 2): read row by row, it has "
    "the features in the right order, so reshape(x.shape) ends it.",
)


def check(answer):
    """Position 0, one pair by hand, then what a turn promises."""
    rotary = given(answer, "rotary")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 5, 6))
    y = rotary(Tensor(x))
    tensor("rotary(x), for x of shape (2, 5, 6),", y, x.shape, "x")
    law(
        "position 0 is turned by the angle 0, so it stays as it is",
        np.allclose(y.data[:, 0], x[:, 0]),
        f"{shown(x[0, 0])} becomes {shown(y.data[0, 0])}",
    )
    pairs = np.zeros((3, 6))
    pairs[:, 2] = 1.0  # the point (1, 0) of pair 1
    turned = rotary(Tensor(pairs)).data
    law(
        "a pair of features is two neighbours, 2i and 2i + 1, and turns in its own plane",
        not np.delete(turned, [2, 3], axis=-1).any(),
        f"at position 2, {shown(pairs[2])} becomes {shown(turned[2])}",
    )
    before, after = (np.linalg.norm(a, axis=-1) for a in (x, y.data))
    law(
        "a turn keeps the length of every vector",
        np.allclose(before, after),
        f"at positions 0 to 4 the lengths were {shown(before[0])} and are {shown(after[0])}",
    )
    q, k = (np.broadcast_to(rng.standard_normal(6), (9, 6)) for _ in range(2))
    scores = rotary(Tensor(q)).data @ rotary(Tensor(k)).data.T
    law(
        "the product of a query and a key depends on the distance of their positions alone",
        np.allclose(scores[:-1, :-1], scores[1:, 1:]),
        "the same q and k, at positions 0 and 2, 1 and 3, and 2 and 4, have the products "
        f"{shown([scores[0, 2], scores[1, 3], scores[2, 4]])}",
    )
    unit = [[1.0, 0.0]] * 2
    same(
        "rotary([[1, 0], [1, 0]]), whose row 1 is turned by the angle 1,",
        rotary(Tensor(unit)),
        [[1.0, 0.0], [np.cos(1.0), np.sin(1.0)]],
    )
    angle = np.arange(5)[:, None] / 10_000.0 ** (np.arange(0, 6, 2) / 6)
    points = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    expected = np.stack([points.real, points.imag], axis=-1).reshape(x.shape)
    same("rotary(x), for x of shape (2, 5, 6),", y, expected)
    pair = rotary(Tensor([[1.0, 0.0, 1.0, 0.0]] * 2), base=100.0)
    turned = [[1.0, 0.0, 1.0, 0.0], [np.cos(1), np.sin(1), np.cos(0.1), np.sin(0.1)]]
    same("rotary([[1, 0, 1, 0]] * 2, base=100), whose row 1 is turned by 1 and 0.1,", pair, turned)
    right_derivatives(rotary, x)


def shown(row):
    """A row of numbers in a few letters."""
    return ", ".join(f"{number:.3g}" for number in row)
