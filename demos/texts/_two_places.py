"""Demos · Texts: a task that one head fails at any width, and that two heads learn.

Eight places in a row hold 16 numbers each, drawn from N(0, 1). A place asks for the numbers of the
place before it, and then for those of the place after it. Queries and keys are made from places
alone, so the weights do not depend on the numbers.

One head has one row of weights for a query, so it makes one average. Let the row have p at the
place before, which holds a, and q at the place after, which holds b. The average is

    m = p a + q b

These are 16 numbers, and the answer (a, b) has 32: one equation for two unknowns. q a - p b is the
other half of the answer, and it is independent of m. So no W_V and no W_O can compute it from m,
however wide they are, and no network behind them can either. A second head makes a second average
with other weights. Two equations have one solution, and W_O learns to solve them.

(If keys are made from the numbers too, the weights depend on the numbers, and the output depends on
the weights. One head loses 47 % of the answer then, and not 50 %: a test trains one.)
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from attention import attention_weights, multi_head_attention, split_heads
from attention.maps import plot_heads
from demos._page import Page
from demos._training import Marks
from demos.texts.sources import say
from minigrad import Tensor, mse, no_grad
from minigrad.nn import Linear, Module
from minigrad.optim import Adam, warmup_cosine

PLACES, NUMBERS, WIDTH = 8, 16, 32
SEEDS = 3
EVERY = Tensor(np.eye(PLACES))  # (S, S): a place is a vector with one 1
ASKING = EVERY[1:-1]  # (T, S): the first and the last place have one neighbour only


class BeforeAndAfter(Module):
    """One layer, in which queries and keys are places.   (B, S, NUMBERS) → (B, T, 2 · NUMBERS)"""

    def __init__(self, num_heads: int, width: int = WIDTH, *, rng: np.random.Generator) -> None:
        self.num_heads = num_heads
        self.w_q = Linear(PLACES, width, bias=False, rng=rng)
        self.w_k = Linear(PLACES, width, bias=False, rng=rng)
        self.w_v = Linear(NUMBERS, width, bias=False, rng=rng)
        self.w_o = Linear(width, 2 * NUMBERS, bias=False, rng=rng)

    def __call__(self, numbers: Tensor) -> Tensor:
        weights = (layer.weight for layer in (self.w_q, self.w_k, self.w_v, self.w_o))
        return multi_head_attention(ASKING, EVERY, numbers, *weights, self.num_heads)

    def weights(self) -> Any:
        """Return the attention weights, which are the same for any numbers.   → (H, T, S)"""
        with no_grad():
            projected = (self.w_q(ASKING), self.w_k(EVERY))
            return attention_weights(*(split_heads(x, self.num_heads) for x in projected)).data


def questions(rng: np.random.Generator, size: int) -> tuple[Any, Any]:
    """Draw numbers, and each place's answer.   → (size, S, NUMBERS), (size, T, 2 · NUMBERS)"""
    numbers = rng.standard_normal((size, PLACES, NUMBERS))
    return numbers, np.concatenate([numbers[:, :-2], numbers[:, 2:]], axis=-1)


def train(
    num_heads: int, *, seed: int, steps: int, width: int = WIDTH
) -> tuple[BeforeAndAfter, float]:
    """Train a layer; return it and its lost share of the answers' variance, on new numbers."""
    rng = np.random.default_rng(seed)
    model = BeforeAndAfter(num_heads, width, rng=rng)
    optimizer = Adam(model.parameters())
    for step in range(1, steps + 1):
        numbers, answers = questions(rng, 64)
        loss = mse(model(Tensor(numbers)), answers)
        optimizer.lr = warmup_cosine(step, peak=0.03, warmup=20, total=steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    numbers, answers = questions(rng, 2000)
    with no_grad():
        missed = mse(model(Tensor(numbers)), answers).item()
    return model, missed / float(np.mean(answers**2))


def least_lost(weights: Any) -> float:
    """Return the share of the answers that no W_V and no W_O can save, with weights (H, T, S).

    A query's H averages tell what is in the span of its H rows of weights. So of the numbers at a
    place, they tell the share that the projection on the span keeps of that place's unit vector.
    """
    kept = []
    for t in range(1, PLACES - 1):
        rows = weights[:, t - 1]  # (H, S)
        onto = np.linalg.pinv(rows) @ rows  # (S, S)
        kept += [onto[t - 1, t - 1], onto[t + 1, t + 1]]
    return float(1 - np.mean(kept))


HEADER = ("heads", "width", "parameters", "steps")


class Tried(NamedTuple):
    """A kind of layer, trained from several seeds."""

    num_heads: int
    width: int
    steps: int
    parameters: int
    weights: list[Any]
    lost: list[float]  # on numbers that were not trained on
    least: list[float]  # what its weights allow at best

    def row(self) -> list[str]:
        """Return its row of a table."""
        sizes = (self.num_heads, self.width, self.parameters, self.steps)
        return [
            *(f"{size:,}" for size in sizes),
            *(f"{lost:.2%}" for lost in (*self.lost, min(self.least))),
        ]


def compare(marks: Marks, *, seed: int, steps: int) -> list[Tried]:
    """Train one head (as long as others, longer, wider), two heads and four, and print all."""
    print("   The place before, and then the place after: what is lost of the answer\n")
    kinds = ((1, WIDTH, 1), (1, WIDTH, 5), (1, 4 * WIDTH, 1), (2, WIDTH, 1), (4, WIDTH, 1))
    tried = []
    for num_heads, width, times in tqdm(kinds, desc="heads"):
        options = {"steps": times * steps, "width": width}
        trained = [train(num_heads, seed=seed + i, **options) for i in range(SEEDS)]
        weights = [model.weights() for model, _ in trained]
        size = sum(p.size for p in trained[0][0].parameters())
        lost, least = [lost for _, lost in trained], [least_lost(each) for each in weights]
        tried.append(Tried(num_heads, width, times * steps, size, weights, lost, least))
    form = "   {:>5}{:>7}{:>12}{:>7}" + "{:>9}" * SEEDS + "{:>15}"
    print(form.format(*HEADER, *(f"seed {seed + i}" for i in range(SEEDS)), "at the least"))
    for each in tried:
        print(form.format(*each.row()))
    print()
    say(
        "One head makes one average p a + q b of the places before and after: one equation for two "
        "unknowns. Two heads make two."
    )
    one, longer, wider, *several = tried
    marks.at_least("one head: lost", min(one.lost), 0.49)
    marks.at_least("one head, five times as long: lost", min(longer.lost), 0.49)
    marks.at_least("one head, four times as wide: lost", min(wider.lost), 0.49)
    beyond = np.subtract(one.lost, one.least).max()
    marks.at_most(
        "one head: lost beyond the least, so training is not the reason", beyond, 0.01, ".2%"
    )
    for each in several:
        marks.at_most(f"{each.num_heads} heads: lost", max(each.lost), 0.01, ".2%")
    return tried


def draw(tried: list[Tried], words: list[str]) -> Any:
    """Draw the weights of one head, of the widest one, and of two, over a sentence's words."""
    one, _, wide, two, _ = (each.weights[0] for each in tried)
    titles = ["one head", "one head, four times as wide", "two heads: head 1", "two heads: head 2"]
    maps = np.concatenate([one, wide, two])
    return plot_heads(maps, words[1:-1], words, titles=titles)


def show(page: Page, tried: list[Tried], picture: Path, *, seed: int) -> None:
    """Add the task and its outcome to the page, as a section."""
    one, longer, wider, two, _ = tried
    of_one = one.lost + longer.lost + wider.lost
    page.section("What several heads are for")
    page.say(
        "The text says that one attention has a limited capacity, and does not show it. Here is a "
        "task. Each word's place holds 16 random numbers. A word asks for the numbers of the word "
        "before it, and then for those of the word after it: 32 numbers, in this order. Queries "
        "and keys are made from the places. One head and several heads have the same number of "
        f"parameters, {one.parameters:,}.",
    )
    page.ask(
        "Two heads learn this. What share of the answer does one head lose after the same "
        "training? And if it is trained five times as long, or is four times as wide?",
        f"Half of it, in all three cases: {min(of_one):.1%} to {max(of_one):.1%}. Two heads lose "
        f"{max(two.lost):.2%} at most.",
    )
    page.table(
        [*HEADER, *(f"seed {seed + i}" for i in range(SEEDS)), "at the least"],
        [each.row() for each in tried],
        caption="What is lost of the answers' variance on other numbers; the last column is what "
        "no W_V and no W_O can save, with the best of these weights",
        groups=[("", len(HEADER)), ("lost", SEEDS + 1)],
    )
    page.figure(
        picture,
        alt="Four maps of weights. One head, however wide, shares the weight of each word between "
        "the word before and the word after. Two heads share it in two different proportions.",
        caption="Where a word looks, after the training with the first seed",
    )
    p, q = one.weights[0][0, 2, [2, 4]]  # the third row: its place is 3
    two_rows = two.weights[0][:, 2, [2, 4]]
    averages = " and ".join(f"{p:.2f} a + {q:.2f} b" for p, q in two_rows)
    page.say(
        "Let a be the numbers before a word, and b those after it. One head makes one average, in "
        f"the third row {p:.2f} a + {q:.2f} b. That is one equation for two unknowns. The average "
        f"says nothing of {q:.2f} a - {p:.2f} b, which is independent of it. So no W_O can find "
        "the other half of the answer, and no network behind it can.",
        f"Two heads make two averages, {averages}. Two equations can be solved for two unknowns, "
        "and W_O learns to do it. So a head does not have to take one word alone.",
        "The text compares several heads with a team of detectives, which is faster than one. Here "
        "speed is not the point: without a second head, half of the answer cannot be given at all.",
        "The weights above do not depend on the numbers. If keys are made from the numbers too, "
        "the weights tell a little of them, and one head loses a little less than half.",
    )
