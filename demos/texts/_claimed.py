"""Demos · Texts: what "Your journey starts with one step" claims or offers, and does not measure.

Loops are slower than a product, softmax has better gradients than a division, and a projection can
have a bias. Times depend on the machine, so all ways are timed side by side, and no mark depends on
a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from time import perf_counter
from typing import Any

import numpy as np

from attention import attention, rotary
from demos._training import Marks
from demos.publish import Published
from demos.texts.sources import your_journey as source
from demos.texts.sources.your_journey import INPUTS, SelfAttention
from minigrad import Graph, Steps, Tensor, gradients, graph, jacobian, mse, softmax
from minigrad.nn import Dropout
from minigrad.optim import SGD, Adam

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


# ------------------------------------------------------------------ a bias
# A score is then (qᵢ + b_q) · (kⱼ + b_k) = qᵢ·kⱼ + b_q·kⱼ + (qᵢ + b_q)·b_k.

ADDED = {"b_q": "b_q·kⱼ", "b_k": "(qᵢ + b_q)·b_k", "b_v": "nothing"}  # to a score
BIAS_STEPS, LONGER = 300, 10
X = Tensor(INPUTS, name="X")


def learned() -> list[float]:
    """Train the head to predict the next word's start; return how far each bias has moved."""
    head, target = source.version_2_biased(), np.roll(INPUTS[:, :2], -1, axis=0)
    optimizer = SGD(head.parameters(), 1.0)
    for _ in range(BIAS_STEPS):
        optimizer.zero_grad()
        mse(head(X), target).backward()
        optimizer.step()
    pairs = zip(head.parameters()[3:], source.version_2_biased().parameters()[3:], strict=True)
    return _norms(after.data - before.data for after, before in pairs)


def biased_graph() -> Graph:
    """Return the head with its biases as a graph."""
    with Steps() as steps:
        total = source.version_2_biased()(X).sum()
    return graph(total, grads=True, steps=steps)


def biases(page: Published) -> None:
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
                f"{BIAS_STEPS} steps move it by",
            ],
            [[*added, *(f"{x:.1e}" for x in (size, *far, by))] for added, size, far, by in columns],
            caption="V2 with the biases that it draws from the text's own seed: what each of them "
            "does. L is the sum of all contexts",
        )
        page.figure(
            biased_graph(),
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
    marks.at_most(f"{BIAS_STEPS} steps move b_k by", by_steps[1], 1e-12, ".0e")
    marks.at_least(f"{BIAS_STEPS} steps move b_q and b_v by", min(by_steps[::2]), 0.005, ".3f")
    marks.at_least("rotated: ‖∂L/∂b_k‖ / ‖∂L/∂b_q‖", turned[1] / turned[0], 0.1, ".1f")


def _norms(arrays: Iterable[np.ndarray]) -> list[float]:
    return [float(np.linalg.norm(array)) for array in arrays]


def _largest(array: np.ndarray) -> float:
    return float(np.abs(array).max())
