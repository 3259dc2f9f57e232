"""Demos · Texts: two claims of "Your journey starts with one step" that it does not measure.

The notebook replaces two loops by one product "because python loops are generally slow", and gives
no time. And it says that softmax "offers more favorable gradient properties during training" than
scores divided by their sum. Both are measured here. Times depend on the machine, so all ways are
timed side by side, and no mark depends on a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter
from typing import Any

import numpy as np

from demos._page import Page
from demos._training import Marks
from demos.texts.sources import your_journey as source
from demos.texts.sources.your_journey import INPUTS, SelfAttention
from minigrad import Tensor, jacobian, mse, softmax
from minigrad.optim import Adam

Array = np.ndarray[Any, Any]

# ------------------------------------------------------------------ loops and a product


def three_loops(x: Tensor) -> Array:
    """Compute all scores from single numbers: over queries, keys and features."""
    rows = x.data.tolist()
    scores = [[0.0] * len(rows) for _ in rows]
    for i, x_i in enumerate(rows):
        for j, x_j in enumerate(rows):
            for a, b in zip(x_i, x_j, strict=True):
                scores[i][j] += a * b
    return np.array(scores)


def loops_over_arrays(x: Tensor) -> Array:
    """Compute all scores by the text's two loops, with NumPy's dot product of two rows."""
    scores = np.empty((len(x.data), len(x.data)))
    for i, x_i in enumerate(x.data):
        for j, x_j in enumerate(x.data):
            scores[i, j] = np.dot(x_i, x_j)
    return scores


def loops_over_tensors(x: Tensor) -> Array:
    """Compute all scores by the text's two loops, with a product of the engine for each pair."""
    rows = [x[i] for i in range(len(x.data))]
    scores = np.empty((len(rows), len(rows)))
    for i, x_i in enumerate(rows):
        for j, x_j in enumerate(rows):
            scores[i, j] = (x_i @ x_j).item()
    return scores


def one_product(x: Tensor) -> Array:
    """Compute all scores at once, as one product of the engine."""
    return (x @ x.mT).data


WAYS: Mapping[str, Callable[[Tensor], Array]] = {
    "three loops, floats": three_loops,
    "two loops, arrays": loops_over_arrays,
    "two loops, tensors": loops_over_tensors,
    "one product": one_product,
}
WORDS, ROUNDS = (6, 32, 128), 3  # how many words, and how often each way is timed


def time_loops(*, seed: int) -> dict[int, dict[str, float]]:
    """Return the median seconds of each way to compute all scores, by the number of words."""
    rng, seconds = np.random.default_rng(seed), {}
    for n in WORDS:
        x = Tensor(rng.random((n, INPUTS.shape[1])))
        taken: dict[str, list[float]] = {name: [] for name in WAYS}
        for _ in range(ROUNDS):
            for name, way in WAYS.items():
                calls = 20 if way is one_product else 1  # one call would be too short for the clock
                start = perf_counter()
                for _ in range(calls):
                    way(x)
                taken[name].append((perf_counter() - start) / calls)
        seconds[n] = {name: float(np.median(each)) for name, each in taken.items()}
    return seconds


def loops_apart(*, seed: int) -> float:
    """Return the largest difference of a score between any two ways, over all numbers of words."""
    rng = np.random.default_rng(seed)
    inputs = [Tensor(rng.random((n, INPUTS.shape[1]))) for n in WORDS]
    scores = (np.stack([way(x) for way in WAYS.values()]) for x in inputs)
    return max(float(np.ptp(each, axis=0).max()) for each in scores)


def loop_rows(seconds: Mapping[int, Mapping[str, float]]) -> list[list[str]]:
    """Return a row for each number of words: loops over product, and the product's time."""
    rows = []
    for n, taken in seconds.items():
        *loops, product = taken.values()
        ratios = (f"{each / product:,.0f}" for each in loops)
        rows.append([str(n), *ratios, f"{1e6 * product:.0f} µs"])
    return rows


def report_loops(seconds: Mapping[int, Mapping[str, float]], marks: Marks, *, seed: int) -> None:
    """Print how many times as long as the product the loops take, and compare their numbers."""
    print("\n   All scores by loops: how many times as long as one product they take\n")
    for cells in [["words", *WAYS], *loop_rows(seconds)]:
        print(f"   {cells[0]:>5}" + "".join(f"{cell:>22}" for cell in cells[1:]))
    marks.at_most("scores by loops and by the product: apart", loops_apart(seed=seed), 1e-14, ".0e")


def show_loops(page: Page, seconds: Mapping[int, Mapping[str, float]]) -> None:
    """Add the section to the page."""
    few, many = min(WORDS), max(WORDS)
    tensors, arrays = (
        [f"{seconds[n][way] / seconds[n]['one product']:,.0f}" for n in (few, many)]
        for way in ("two loops, tensors", "two loops, arrays")
    )
    page.section("Loops and one product")
    page.say(
        "The text computes its 36 scores by two loops, a dot product for each pair of words. Then "
        "it writes `inputs @ inputs.T`, “because python loops are generally slow”, and gives no "
        "time.",
    )
    page.ask(
        f"How many times as long do the two loops take for {few} words, and for {many}?",
        f"In this run {tensors[0]} and {tensors[1]} times, where each pair is a product of two "
        f"tensors. With NumPy's dot product of two arrays it is {arrays[0]} and {arrays[1]} times. "
        "For n words the loops make n² calls, and the product is one call.",
    )
    page.table(
        ["words", *WAYS],
        loop_rows(seconds),
        caption="The loops' time over the product's, and the product's time: medians of "
        f"{ROUNDS} rounds in this run, each round with all four ways",
    )


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

    A context should become the first two numbers of the next word. The loss is divided by that of
    the best constant answer, which needs no attention.
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


def train_both(*, seed: int) -> dict[tuple[str, str], Array]:
    """Call `trained` for each recipe and kind of weights.   → (DRAWS, 2) each"""
    recipes = {"V1": source.version_1, "V2": source.version_2}
    ways = {"divided": divided, "softmax": softmax}
    return {
        (name, said): np.array([trained(recipe(2, seed + i), way) for i in range(DRAWS)])
        for name, recipe in recipes.items()
        for said, way in ways.items()
    }


def report_slopes(your: Array, marks: Marks) -> None:
    """Print how steep both ways are. `your` is V2's row of scores of "Your"."""
    print("   The steepest slope of weights by scores: divided by their sum, and by softmax")
    of_x2 = INPUTS @ INPUTS[1]
    cases = {f"x₂, scores times {factor:g}": factor * of_x2 for factor in (0.01, 1, 10_000)}
    cases |= {'V2, "Your"': your, "x₂, less .99 of mean": of_x2 - 0.99 * of_x2.mean()}
    found = {said: slopes(scores) for said, scores in cases.items()}
    for said, (by_sum, by_softmax) in found.items():
        print(f"   {said:22} {by_sum:9.2g} {by_softmax:9.2g}")
    steepest = [slopes(scale * INPUTS @ word) for scale in (0.01, 1, 100) for word in INPUTS]
    by_sum, by_softmax = (max(each) for each in zip(*steepest, strict=True))
    print(f"   {'steepest of 18 rows':22} {by_sum:9.2g} {by_softmax:9.2g}")
    marks.at_most("softmax: the steepest of 18 rows", by_softmax, 0.5, ".3f")
    marks.at_least("divided: the steepest of 18 rows", by_sum, 10, ".1f")
    whole, shifted = found["x₂, scores times 1"], found["x₂, less .99 of mean"]
    marks.at_most("softmax: a shift changes its slope by", abs(shifted[1] - whole[1]), 1e-12, ".0e")
    marks.at_least("divided: a shift makes it steeper", shifted[0] / whole[0], 100, ".0f")


Draws = Mapping[tuple[str, str], Array]
TRAINED = ("weights", "loss, median", "loss, worst", "steepest ∂L/∂W_q")


def training_rows(draws: Draws) -> list[list[str]]:
    """Return a row for each recipe and kind of weights: median and worst loss, steepest slope."""
    rows = []
    for (name, said), each in draws.items():
        losses, steep = each.T
        numbers = np.median(losses), losses.max(), steep.max()
        forms = ".2f", ".2f", ".2g"
        rows.append([f"{name}, {said}", *(f"{n:{f}}" for n, f in zip(numbers, forms, strict=True))])
    return rows


def report_trainings(draws: Draws, marks: Marks) -> None:
    """Print how both ways train, and judge it."""
    print(f"\n   {DRAWS} draws, {STEPS} steps of Adam; losses are divided by a constant answer's\n")
    for cells in [TRAINED, *training_rows(draws)]:
        print("   {:16}{:>14}{:>14}{:>20}".format(*cells))
    for said, judge, limit in (("softmax", marks.at_most, 0.2), ("divided", marks.at_least, 10)):
        losses, steep = np.concatenate([draws[name, said] for name in ("V1", "V2")]).T
        judge(f"{said}: loss / a constant's, median of both", np.median(losses), 0.45, ".2f")
        judge(f"{said}: the steepest ∂L/∂W_q of both", steep.max(), limit, ".1g")


def show_trainings(page: Page, draws: Draws) -> None:
    """Add the section to the page."""
    page.section("Softmax and a division, trained")
    page.say(
        "The text says that softmax has better gradients than a division by the sum (above, in "
        "what is unclear or left open). So a head of each recipe is trained both ways: a context "
        "should become the first two numbers of the next word. A loss is divided by that of the "
        "best constant answer, so 1 means that nothing was learned from the words.",
    )
    page.table(
        TRAINED,
        training_rows(draws),
        caption=f"{DRAWS} draws of each, {STEPS} steps of Adam: the last loss, and the largest "
        "‖∂L/∂W_q‖ on the way",
    )
