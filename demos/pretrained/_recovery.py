"""Demos · Pretrained: can the scale be learned back that was taken away?

The model gets another scale. Then only one part of it is trained, and the rest is frozen. Both
parts have an exact way back: W_Q times √d_k or W_Q / √d_k, and all temperatures √d_k or 1/√d_k.

The texts are the model's own, at temperature 1. So the trained weights are as good as weights can
be on *other* such texts: if a loss stays above theirs, the texts are not the reason, and better
weights exist. On a few texts that are overfitted, a loss can fall below theirs.

Trainings of a run with `--full` are kept in results_full.jsonl, whose first line says how.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from demos._kept import read
from demos._training import Marks
from demos.pretrained._heads import loss_of, loss_on, multiplied, own_texts, set_scale
from demos.pretrained._loading import writer
from minigrad import Tensor, exp, keep_memory
from minigrad.optim import SGD, Adam

KEPT = Path(__file__).with_name("results_full.jsonl")
OPTIMIZERS = {"sgd": SGD, "adam": Adam}
LENGTH = 64  # tokens of a text
LEARNED, OTHERS, BATCH = 16, 8, 4  # texts: to learn from, to judge by, of one step
MANY = 320  # texts, of which each is used once in 80 steps of 4
LOOKS = (0, 5, 10, 20, 40, 80)  # steps after which both losses are taken
STARTS = {1.0: "too flat", 0.0: "too sharp"}  # 1/d_k, and no scale
FEW, MORE, HEADS = ("weights", LEARNED), ("weights", MANY), ("temperatures", LEARNED)
Key = tuple[str, int, float, str]  # what learns, from how many texts, the start, the optimizer


@dataclass(frozen=True)
class Recovery:
    """One training of W_Q and W_K, or of the temperatures."""

    a: float  # the exponent of the scale d_k^-a
    part: str  # what learns: "weights" (W_Q and W_K) or "temperatures"
    texts: int  # to learn from
    optimizer: str
    lr: float
    trained: list[float]  # with 1/√d_k, before any step: the losses on learned and on other texts
    learned: list[float]  # with d_k^-a, on 16 of the learned texts, after the steps of LOOKS
    others: list[float]  # the same on the other texts
    temperatures: list[float]  # of all heads, after the last step


def recovery(
    a: float,
    *,
    optimizer: str,
    lr: float,
    part: str,
    texts: int = LEARNED,
    steps: int,
    rng: np.random.Generator,
) -> Recovery:
    """Train a part for so many steps, in float32. The texts depend on rng alone."""
    keep_memory()
    model = writer().astype(np.float32)
    drawn = own_texts(model, LEARNED + OTHERS, LENGTH, rng=rng)
    others, learned = drawn[LEARNED:], drawn[:LEARNED]
    if texts > LEARNED:
        more = own_texts(model, texts - LEARNED, LENGTH, rng=rng)
        learned = np.concatenate([learned, more])
    judged = learned[:LEARNED], others
    trained = [loss_on(model, each) for each in judged]
    num_heads = model.blocks[0].attention.num_heads
    logs = [Tensor(np.zeros(num_heads, np.float32), requires_grad=True) for _ in model.blocks]
    weights = dict(model.named_parameters())
    moving = [w for name, w in weights.items() if name.endswith(("w_q.weight", "w_k.weight"))]
    moving = logs if part == "temperatures" else moving
    for parameter in [*logs, *weights.values()]:
        parameter.requires_grad = any(parameter is each for each in moving)
    set_scale(model, lambda d_k: d_k**-a)
    stepper = OPTIMIZERS[optimizer](moving, lr)

    def temperatures() -> list[Tensor]:
        return [exp(each) for each in logs]

    def both() -> tuple[float, ...]:
        with multiplied(model.blocks, temperatures()):
            return tuple(loss_on(model, each) for each in judged)

    losses = [both()]
    for step in range(1, steps + 1):
        if step % (texts // BATCH) == 1:  # an epoch begins
            order = rng.permutation(texts).reshape(-1, BATCH)
        with multiplied(model.blocks, temperatures()):
            loss = loss_of(model, learned[order[(step - 1) % len(order)]])
        stepper.zero_grad()
        loss.backward()
        stepper.step()
        if step in LOOKS:
            losses.append(both())
    of_learned, of_others = (list(each) for each in zip(*losses, strict=True))
    found = [float(t) for each in temperatures() for t in each.data]
    return Recovery(a, part, texts, optimizer, lr, trained, of_learned, of_others, found)


class Recovered:
    """All trainings of a run: for each part, start and optimizer those at the best rate.

    The best rate is the one with the smallest mean loss on the other texts after the last step.
    """

    def __init__(self, results: Sequence[Recovery]) -> None:
        rates: dict[Key, dict[float, list[Recovery]]] = {}
        for r in results:
            key = (r.part, r.texts, r.a, r.optimizer)
            rates.setdefault(key, {}).setdefault(r.lr, []).append(r)
        last = lambda found: np.mean([r.others[-1] for r in found])
        self.of = {key: min(each.values(), key=last) for key, each in rates.items()}
        self.seeds = len(next(iter(self.of.values())))
        # The losses with the trained scale, on the learned texts and on the others.
        self.trained = np.mean([r.trained for found in self.of.values() for r in found], axis=0)

    def won_back(self, part: tuple[str, int], a: float) -> float:
        """Return the share of what the wrong scale costs that training with Adam won back."""
        return self._won((*part, a, "adam"), learned=False)

    def _won(self, key: Key, learned: bool) -> float:
        pairs = [(r.learned if learned else r.others, r.trained[not learned]) for r in self.of[key]]
        return float(np.mean([(x[0] - x[-1]) / (x[0] - trained) for x, trained in pairs]))

    def temperatures(self, a: float) -> Any:
        """Return the temperatures after the training, over 1/√d_k or √d_k: 1 is the way back."""
        found = self.of[(*HEADS, a, "adam")]
        return np.mean([r.temperatures for r in found], axis=0) * 32 ** (0.5 - a)

    def curves(self) -> dict[tuple[str, int, float], Any]:
        """Return both losses over the steps with Adam: (2, seeds, looks) for each training."""
        return {
            key[:3]: np.array([[r.learned for r in found], [r.others for r in found]])
            for key, found in self.of.items()
            if key[3] == "adam"
        }

    def rows(self) -> list[list[Any]]:
        """Return a row for each part, start and optimizer: both losses, and what is won back."""
        rows = []
        for key in sorted(self.of, key=lambda key: (key[0] != "weights", key[1], -key[2], key[3])):
            (part, texts, a, optimizer), found = key, self.of[key]
            cells = [part, texts, STARTS[a], optimizer, f"{found[0].lr:g}"]
            for learned in (True, False):
                values = [r.learned if learned else r.others for r in found]
                before, after = np.array([[each[0], each[-1]] for each in values]).T
                spread = f" ± {after.std(ddof=1):.3f}" if self.seeds > 1 else ""
                cells += [f"{before.mean():.3f}", f"{after.mean():.3f}{spread}"]
                cells.append(f"{self._won(key, learned):.0%}")
            rows.append(cells)
        return rows

    def judge(self, marks: Marks) -> None:
        """Judge both starts, with few texts and with many, and the temperatures."""
        for a, least in ((0.0, 0.3), (1.0, 0.1)):
            below = np.mean([r.trained[0] - r.learned[-1] for r in self.of[(*FEW, a, "adam")]])
            what = f"{STARTS[a]}, W_Q and W_K: loss below the trained one by"
            marks.at_least(what, below, least, ".2f")
        flat, sharp = (self.won_back(FEW, a) for a in (1.0, 0.0))
        marks.at_least("too flat, W_Q and W_K: won back on other texts", flat, 0.5)
        marks.at_most("too sharp, W_Q and W_K: won back on other texts", sharp, 0.3)
        more = self.won_back(MORE, 0.0) - sharp
        marks.at_least(f"  and with {MANY} texts more by", more, 0.1)
        for a in (0.0, 1.0):
            marks.at_least(f"{STARTS[a]}, temperatures: won back", self.won_back(HEADS, a), 0.85)
        middle = float(np.exp(np.abs(np.log(self.temperatures(0.0)).mean())))
        what = "too sharp: mean temperature, from 1/√d_k by a factor of"
        marks.at_most(what, middle, 1.5, ".2f")


def kept() -> tuple[dict[str, Any], Recovered]:
    """Return how the kept trainings of a run with --full were made, and the trainings."""
    about, rows = read(KEPT)
    return about, Recovered([Recovery(**row) for row in rows])
