"""Demos · Texts: a task that one head fails at any width, and that two heads learn.

A place asks for the numbers of the place before it, and then for those of the place after it. One
head makes one average of both, which is one equation for two unknowns.

(If keys are made from the numbers too, the weights depend on the numbers, and the output depends on
the weights. One head loses 47 % of the answer then, and not 50 %: a test trains one.)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tqdm import tqdm

from attention import attention_weights, multi_head_attention, split_heads
from attention.maps import plot_heads
from demos.pages.publish import Published
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
        layers = (self.w_q, self.w_k, self.w_v, self.w_o)
        w_q, w_k, w_v, w_o = (layer.weight for layer in layers)
        return multi_head_attention(ASKING, EVERY, numbers, w_q, w_k, w_v, w_o, self.num_heads)

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
    shares = []
    for t in range(1, PLACES - 1):
        rows = weights[:, t - 1]  # (H, S)
        onto = np.linalg.pinv(rows) @ rows  # (S, S)
        shares += [onto[t - 1, t - 1], onto[t + 1, t + 1]]
    return float(1 - np.mean(shares))


def compare(page: Published, words: list[str], *, seed: int, steps: int) -> None:
    """Train one head (as long as others, longer, wider), two heads and four, and say what is lost.

    words  a sentence of PLACES words, which the maps have beside their rows and columns
    """
    kinds = ((1, WIDTH, 1), (1, WIDTH, 5), (1, 4 * WIDTH, 1), (2, WIDTH, 1), (4, WIDTH, 1))
    rows = []
    weights = []
    lost = []
    least = []
    for num_heads, width, times in tqdm(kinds, desc="heads"):
        options = {"steps": times * steps, "width": width}
        trained = [train(num_heads, seed=seed + i, **options) for i in range(SEEDS)]
        weights.append([model.weights() for model, _ in trained])
        lost.append([share for _, share in trained])
        least.append([least_lost(heads) for heads in weights[-1]])
        parameters = sum(p.size for p in trained[0][0].parameters())
        sizes = [f"{size:,}" for size in (num_heads, width, parameters, times * steps)]
        shares = [f"{share:.2%}" for share in (*lost[-1], min(least[-1]))]
        rows.append(sizes + shares)
    of_one, (two, four) = lost[:3], lost[3:]
    p, q = weights[0][0][0, 2, [2, 4]]  # the third row: its place is 3
    two_rows = weights[3][0][:, 2, [2, 4]]
    averages = " and ".join(f"{p:.2f} a + {q:.2f} b" for p, q in two_rows)
    page.ask(
        f"Two heads with {rows[3][2]} parameters learn this. What share of the answer does one "
        "head with as many lose after the same training? And if it is trained five times as long, "
        "or is four times as wide?",
        f"Half of it, in all three cases: {np.min(of_one):.1%} to {np.max(of_one):.1%}. Two heads "
        f"lose {max(two):.2%} at most.\n\n"
        "Let *a* be the numbers before a word, and b those after it. One head makes one average, "
        f"in the third row {p:.2f} a + {q:.2f} b: one equation for two unknowns. It says nothing "
        f"of {q:.2f} a - {p:.2f} b, which is independent of it. So no W_V and no W_O can find the "
        "other half of the answer, however wide they are, and no network behind them can.\n\n"
        f"Two heads make two averages, {averages}. W_O learns to solve two equations for two "
        "unknowns, so a head does not have to take one word alone.",
    )
    seeds = [f"seed {seed + i}" for i in range(SEEDS)]
    with page.folded("What each training loses", place="below"):
        page.table(
            ["heads", "width", "parameters", "steps", *seeds, "at the least"],
            rows,
            caption="What is lost of the answers' variance on other numbers; the last column is "
            "what no W_V and no W_O can save, with the best of these weights",
        )
    titles = ["one head", "one head, four times as wide", "two heads: head 1", "two heads: head 2"]
    drawn = np.concatenate([weights[0][0], weights[2][0], weights[3][0]])
    page.figure(
        plot_heads(drawn, words[1:-1], words, titles=titles),
        "two_places",
        alt=f"Four maps of weights. In its third row one head has {p:.2f} at the word before and "
        f"{q:.2f} at the word after. Two heads share it in two different proportions: {averages}.",
        caption="Where a word looks, after the training with the first seed",
    )
    marks = page.marks
    as_it_is, longer, wider = of_one
    marks.at_least("one head: lost", min(as_it_is), 0.49)
    marks.at_least("one head, five times as long: lost", min(longer), 0.49)
    marks.at_least("one head, four times as wide: lost", min(wider), 0.49)
    beyond = np.subtract(as_it_is, least[0]).max()
    what = "one head: lost beyond the least, so training is not the reason"
    marks.at_most(what, beyond, 0.01, ".2%")
    marks.at_most("2 heads: lost", max(two), 0.01, ".2%")
    marks.at_most("4 heads: lost", max(four), 0.01, ".2%")
