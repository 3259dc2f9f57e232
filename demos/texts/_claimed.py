"""Demos · Texts: two claims of "Your journey starts with one step" that it does not measure.

Times depend on the machine, so all ways are timed side by side, and no mark depends on a time.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np

from demos._training import Marks
from demos.publish import Published
from demos.texts.sources import your_journey as source
from demos.texts.sources.your_journey import INPUTS, SelfAttention
from minigrad import Tensor, jacobian, mse, softmax
from minigrad.optim import Adam

Array = np.ndarray[Any, Any]

# ------------------------------------------------------------------ loops and a product


def by_loops(rows: Any, dot: Callable[[Any, Any], float]) -> Array:
    """Compute all scores by the text's two loops, with a product of two rows for each pair."""
    return np.array([[dot(x_i, x_j) for x_j in rows] for x_i in rows])


def by_floats(x_i: list[float], x_j: list[float]) -> float:
    """Compute a product of two rows by a third loop, over their numbers."""
    return sum(a * b for a, b in zip(x_i, x_j, strict=True))


WAYS: dict[str, Callable[[Tensor], Array]] = {
    "three loops, floats": lambda x: by_loops(x.data.tolist(), by_floats),
    "two loops, arrays": lambda x: by_loops(x.data, np.dot),
    "two loops, tensors": lambda x: by_loops(
        [x[i] for i in range(len(x.data))], lambda a, b: (a @ b).item()
    ),
    "one product": lambda x: (x @ x.mT).data,
}
WORDS, ROUNDS = (6, 32, 128), 3  # how many words, and how often each way is timed


def loops(page: Published) -> None:
    """Show how many times as long as the product the loops take, and compare their scores."""
    page.say(
        "The text computes its 36 scores by two loops, a dot product for each pair of words. Then "
        "it writes `inputs @ inputs.T`, “because python loops are generally slow”, and gives no "
        "time. For n words the loops make n² calls, and the product is one call."
    )
    rng, rows, apart = np.random.default_rng(page.chosen.seed), [], 0.0
    for n in WORDS:
        x = Tensor(rng.random((n, INPUTS.shape[1])))
        taken: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(ROUNDS):
            for name, way in WAYS.items():
                calls = (
                    20 if name == "one product" else 1
                )  # one call would be too short for the clock
                start = perf_counter()
                for _ in range(calls):
                    way(x)
                taken[name].append((perf_counter() - start) / calls)
        *slow, product = (float(np.median(each)) for each in taken.values())
        rows.append([n, *(f"{each / product:,.0f}" for each in slow), f"{1e6 * product:.0f} µs"])
        scores = np.stack([way(x) for way in WAYS.values()])
        apart = max(apart, float(np.ptp(scores, axis=0).max()))
    page.table(
        ["words", *WAYS],
        rows,
        caption="The loops' time over the product's, and the product's time: medians of "
        f"{ROUNDS} rounds in this run, each round with all four ways",
    )
    page.marks.at_most("scores by loops and by the product: apart", apart, 1e-14, ".0e")


# ------------------------------------------------------------------ softmax and a division

DRAWS, STEPS, RATE = 5, 200, 0.05  # of the trainings: how many for each case, how long, Adam's rate


def divided(scores: Any) -> Any:
    """Return each row divided by its sum."""
    return scores / scores.sum(axis=-1, keepdims=True)


def slopes(scores: Any) -> list[float]:
    """Return the steepest slopes of a row's weights by its scores: divided by the sum, and softmax.

    The largest singular value of the Jacobian is the most that a small change of the scores can
    change the weights. That of softmax, diag(p) - p pᵀ, is never above ½.
    """
    return [float(np.linalg.norm(jacobian(f)(scores).data, 2)) for f in (divided, softmax)]


def trained(head: SelfAttention, normalise: Callable[[Tensor], Tensor]) -> tuple[float, float]:
    """Train a head to say the next word; return its last loss and the largest ‖∂L/∂W_q‖.

    The loss is divided by that of the best constant answer, which needs no attention.
    """
    x, target = Tensor(INPUTS), np.roll(INPUTS[:, :2], -1, axis=0)
    optimizer, steepest = Adam(head.parameters(), RATE), 0.0
    for _ in range(STEPS):
        q, k, v = head.project(x)
        loss = mse(normalise(q @ k.mT / np.sqrt(2)) @ v, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steepest = max(steepest, float(np.linalg.norm(head.w_q.grad)))
    return loss.item() / target.var(axis=0).mean(), steepest


def steepness(your: Array, marks: Marks) -> str:
    """Return how steep both ways are, and judge it. `your` is V2's row of scores of "Your"."""
    of_x2 = INPUTS @ INPUTS[1]
    cases = {f"x₂, scores times {factor:g}": factor * of_x2 for factor in (0.01, 1, 10_000)}
    cases |= {'V2, "Your"': your, "x₂, less .99 of mean": of_x2 - 0.99 * of_x2.mean()}
    found = {said: slopes(scores) for said, scores in cases.items()}
    rows = [slopes(scale * INPUTS @ word) for scale in (0.01, 1, 100) for word in INPUTS]
    by_sum, by_softmax = found["steepest of 18 rows"] = [max(x) for x in zip(*rows, strict=True)]
    marks.at_most("softmax: the steepest of 18 rows", by_softmax, 0.5, ".3f")
    marks.at_least("divided: the steepest of 18 rows", by_sum, 10, ".1f")
    whole, shifted = found["x₂, scores times 1"], found["x₂, less .99 of mean"]
    marks.at_most("softmax: a shift changes its slope by", abs(shifted[1] - whole[1]), 1e-12, ".0e")
    marks.at_least("divided: a shift makes it steeper", shifted[0] / whole[0], 100, ".0f")
    lines = (f"    {name:22}  {first:9.2g}  {then:9.2g}" for name, (first, then) in found.items())
    return "The steepest slope of weights by scores: divided by their sum, and by softmax.\n\n" + (
        "\n".join(lines)
    )


def trainings(page: Published) -> None:
    """Train heads of both recipes with both kinds of weights; show and judge how they train."""
    page.say(
        "The text says that softmax has better gradients than a division by the sum. So a head of "
        "each recipe is trained both ways: a context should become the first two numbers of the "
        "next word. A loss is divided by that of the best constant answer, so 1 means that nothing "
        "was learned from the words."
    )
    rows, reached = [], {}
    for said, way in {"divided": divided, "softmax": softmax}.items():
        for name, recipe in {"V1": source.version_1, "V2": source.version_2}.items():
            heads = (recipe(2, page.chosen.seed + i) for i in range(DRAWS))
            losses, steep = np.array([trained(head, way) for head in heads]).T
            reached[name, said] = losses, steep
            numbers = f"{np.median(losses):.2f}", f"{losses.max():.2f}", f"{steep.max():.2g}"
            rows.append([f"{name}, {said}", *numbers])
    page.table(
        ["weights", "loss, median", "loss, worst", "steepest ∂L/∂W_q"],
        rows,
        caption=f"{DRAWS} draws of each, {STEPS} steps of Adam: the last loss, and the largest "
        "‖∂L/∂W_q‖ on the way",
    )
    marks = page.marks
    for said, judge, limit in (("softmax", marks.at_most, 0.2), ("divided", marks.at_least, 10)):
        losses, steep = np.hstack([reached[name, said] for name in ("V1", "V2")])
        judge(f"{said}: loss / a constant's, median of both", np.median(losses), 0.45, ".2f")
        judge(f"{said}: the steepest ∂L/∂W_q of both", steep.max(), limit, ".1g")
