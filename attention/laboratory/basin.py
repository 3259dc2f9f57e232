"""16.5 · The basin: which learning rates work at which width.

Chapter 16.4 looked at how curved the loss is where a training begins. What happens in a whole
training? This chapter trains one head again and again, with many rates, widths and exponents, on
**associative recall**: the head gets 8 pairs of a key and a value and then one of the keys, and has
to answer with that key's value. Keys and values are drawn anew for each question, so the weights
cannot hold the answers, and the head must find the pair. The rates at which it learns are its
**basin**.

A training has learned when 98 % of the questions are answered. The page of the demo `laboratory`
has the steps until then as tables. They are of a run with `--full`: at most 400 steps, eight seeds,
and four at d_k = 2048. What follows is read off them.

**Each at its best rate.** At d_k = 512 the scaled head needs 20 steps, and the raw head 205, ten
times as many; at 8 they need 37 and 56. The raw head's basin lies lower: at .03 it learns in some
trainings, and the scaled head in none, and a rate of 1 is too large for it at every width. At 2048
it also shrinks from above, where .3 is too much. With 1/√d_k a rate between .1 and 1 needs about
the same number of steps at every width, and with 1/d_k the right rate grows with d_k.

Why slow? At d_k = 512 the scaled head's weights start with .8 of the largest entropy: it looks at
all pairs, and narrows down to the right one. The raw head starts with .04: it looks at a single
pair before it has learned anything, and has to be moved away from it. That steps beyond 2/λ are too
long is not the reason: λ over all weights is between 100 and 450 there, so that 2/λ is .02 at most,
and a rate of .3 learns nevertheless. Along its sharpest direction the loss depends on a few
undecided queries, and a short step decides them: at a distance of .1 the parabola has risen by 1
and the loss by less than .1; at a distance of 1 it is 100 against less than .3.

**The first step.** By how much does one step move the scores? A score is d_k^-a · q·k. SGD moves q
by the rate times a gradient that is d_k^-a · k times a number, so it moves the score in proportion
to d_k^-2a ‖k‖², which is d_k^(1 - 2a). Adam's first step divides each element of the gradient by
its own size. Where that is far above its ε only signs are left, those of k, so it moves the score
in proportion to d_k^-a Σ |kᵢ|, which is d_k^(1 - a). A **relative step** (Adafactor, Shazeer &
Stern 2018) is much like Adam's, times the size of the weights. Measured, the power of d_k is
(`first_step`, d_k from 8 to 512, 40 draws; the standard errors are below .02)

            SGD      Adam     relative steps
    a = 0     .69      .88      .81
    a = ½    -.08      .39      .32
    a = ¾    -.59      .14      .08
    a = 1   -1.07     -.10     -.16
    T5        .86      .82      .32

So at one rate for all weights, the first step depends least on the width with ½ for SGD and with 1
for Adam, of the exponents tried. What is derived is approximate: Adam's powers are some .1 below
1 - a, and SGD's, from ½ on, below 1 - 2a. (Raw SGD has less than 1 since most of its queries are
decided and do not push.)

**Scale × rate is nearly one number**, below the largest rates; exactly one only if the initial
values move as well. So only "at one rate for all weights" makes one exponent right. Let W_q and W_k
have a rate of their own (`follow`): for SGD the rate of all others times d_k/8, and for Adam times
(d_k/8)^-½. At d_k = 512 and rates up to .03 Adam with 1/√d_k then needs the steps of 1/d_k, to 6 %.
SGD with 1/d_k needs nearly the same steps at both widths (47 ± 2 and 39 ± 3 at a rate of 1; at one
rate for all weights 47 and 231). Where a basin ends they differ, since the first scores do. Nor is
1 the best exponent for Adam: at rates up to .03 the exponent ¾ needs fewer steps than 1, at both
widths.

That a factor can be moved between the scale, the initial values and the rate is known for any layer
(Yang & Hu 2021; Everett et al. 2024 for SGD, Adam and Adafactor; we read their abstracts, and of
this point summaries). Everett et al. find, in models of up to 27 billion weights, that each way to
share it can keep the best rate at every width. Anson & Aitchison 2025 give W_q and W_k rates of
their own, so that a step cannot change the scores too much. μP's 1/d_k has another reason, for any
optimizer: aligned q and k (chapter 16.7).

**T5's initial values** (no scale, W_q divided by √d_k) move the factor from the scale into W_q. A
step relative to the size of W_q moves with it. So with relative steps T5's start is the scale
1/√d_k: the same scores and the same steps, as long as the root mean square of W_q is above
Adafactor's floor of .001. T5 was trained so. At widths that are powers of 4, where √d_k is a power
of 2, not one bit differs:

    >>> from attention.laboratory.basin import first_step
    >>> def change(d_k, a, optimizer, init="unit"):
    ...     rng = np.random.default_rng(0)
    ...     return first_step(d_k, a, optimizer=optimizer, init=init, rng=rng).change
    >>> change(64, 0.5, "adafactor") == change(64, 0, "adafactor", "t5")
    True
    >>> [round(change(512, 0, o, "t5") / change(512, 0.5, o)) for o in ("sgd", "adam", "adafactor")]
    [250, 12, 1]

With SGD and Adam T5's values give the first scores of 1/√d_k, and a longer first step.

Set-up: 16 keys and 16 values, each a vector of d_model = 32 features, drawn from N(0, 1). A pair is
one position, the sum of both vectors divided by √2. W_q, W_k and W_v (which ends in the 16 logits)
have variance 1/d_model, so raw scores have the standard deviation √d_k. All weights learn, in
float32, from batches of 64 questions, with the mean cross-entropy, without momentum or decay.

Legend: B questions with n pairs each.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.laboratory.sharpness import initial_weights, slope
from attention.scaling import Array, Exponent, deviation, entropies, named, power
from minigrad import Tensor, cross_entropy, embedding, softmax
from minigrad.optim import SGD, Adam, Optimizer

Questions = tuple[Array, Array, Array, Array]  # of `recall_batch`
SYMBOLS = 16  # keys, and as many values
NARROW = 8  # the d_k at which `follow` changes nothing
SMALL = 1e-5  # a rate at which one step changes next to nothing
# What counts as learned: this share of the questions in so many batches.
LEARNED = 0.98
WINDOW = 10
KEPT = 50  # how many steps a training goes on after that, to see whether it stays


class Adafactor(Optimizer):
    """Relative steps: a step's size is a share of the size of the weights (Shazeer & Stern 2018).

    As Adam's, a step divides each element of the gradient by its recent size, here estimated from
    the rows and columns of the matrix. The result has a size of about 1, at most, and is multiplied
    by lr and by the root of the mean square of the weights, or by .001 if that is larger.
    """

    remembers = ("rows", "columns")

    def update(self, p: Tensor, g: Array, memory: dict[str, Array]) -> None:
        """Move one matrix."""
        kept = 1 - self.steps**-0.8  # 0 at the first step
        for name, axis in (("rows", -1), ("columns", -2)):
            now = (g**2 + 1e-30).mean(axis=axis, keepdims=True)
            memory[name] = kept * memory.get(name, now) + (1 - kept) * now
        step = g / np.sqrt(memory["rows"] * memory["columns"] / memory["rows"].mean())
        step = step / max(1.0, rms(step))
        self.give(p, p.data - self.lr * max(1e-3, rms(p.data)) * step)


def rms(x: Array) -> float:
    """Return the root of the mean square."""
    return float(np.sqrt(np.mean(x**2)))


OPTIMIZERS: dict[str, Any] = {"sgd": SGD, "adam": Adam, "adafactor": Adafactor}


@dataclass(frozen=True)
class Training:
    """One training of one head on associative recall."""

    d_k: int
    a: float | str  # the exponent of the scale d_k^-a, or the name of a function
    lr: float
    optimizer: str  # "sgd", "adam" or "adafactor"
    init: str  # how W_q and W_k are drawn: see chapter 16.4's `INITIAL`
    follow: float  # the rate of W_q and W_k is lr (d_k/8)^follow
    entropy: float  # at the start, mean over a batch of Σ -p log p / log n
    steps: int | None  # until 98 % of the last ten batches' questions were right; None: never
    broke_at: int | None  # the first step whose loss was infinite or NaN; the training ended there
    accuracy: float  # share of the last ten batches' questions; 0 if it broke

    @property
    def learned(self) -> bool:
        """True if it learned the task, and still answered 9 of 10 questions in the end."""
        return self.steps is not None and self.accuracy >= 0.9


def training(
    d_k: int,
    a: Exponent,
    *,
    lr: float,
    optimizer: str = "sgd",
    init: str = "unit",
    follow: float = 0.0,
    limit: int = 400,
    rng: np.random.Generator,
) -> Training:
    """Train a head with the scale d_k^-a, in float32, and return its `Training`.

    The training ends 50 steps after it learned the task, or after `limit` steps. The rate is lr,
    but that of W_q and W_k is lr (d_k/8)^follow.

    Every batch is new, so the share that is right before a step is measured on questions that the
    model has not seen.
    """
    weights = {
        name: Tensor(w, requires_grad=True, dtype=np.float32)
        for name, w in initial_model(d_k, init, rng=rng).items()
    }
    steppers = _steppers(optimizer, weights, lr, lr * (d_k / NARROW) ** follow)
    right: list[float] = []
    learned_at, broke_at, entropy = None, None, math.nan
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(1, limit + 1):
            *question, answer = recall_batch(rng=rng)
            _, p, logits = look_up(question, weights, power(a)(d_k))
            loss = cross_entropy(logits, answer)
            if step == 1:
                entropy = float(entropies(p.data.astype(float)).mean())
            if not np.isfinite(loss.item()):
                broke_at = step
                break
            right.append(float(np.mean(logits.data.argmax(axis=-1) == answer)))
            if learned_at is None and step >= WINDOW and np.mean(right[-WINDOW:]) >= LEARNED:
                learned_at = step
            if learned_at is not None and step == learned_at + KEPT:
                break
            for stepper in steppers:
                stepper.zero_grad()
            loss.backward()
            for stepper in steppers:
                stepper.step()
    return Training(
        d_k=d_k,
        a=named(a),
        lr=lr,
        optimizer=optimizer,
        init=init,
        follow=follow,
        entropy=entropy,
        steps=learned_at,
        broke_at=broke_at,
        accuracy=float(np.mean(right[-WINDOW:])) if broke_at is None else 0.0,
    )


def recall_batch(batch: int = 64, *, pairs: int = 8, rng: np.random.Generator) -> Questions:
    """Draw questions: the key asked for (B, 1), the pairs' keys and values (B, n), answers (B,)."""
    keys = rng.permuted(np.tile(np.arange(SYMBOLS), (batch, 1)), axis=1)[:, :pairs]  # none twice
    values = rng.integers(0, SYMBOLS, (batch, pairs))
    rows = np.arange(batch)
    asked = rng.integers(0, pairs, batch)
    return keys[rows, asked][:, None], keys, values, values[rows, asked]


def initial_model(
    d_k: int, init: str, *, d_model: int = 32, rng: np.random.Generator
) -> dict[str, Array]:
    """Draw a vector for each key and each value, W_q, W_k, and W_v, whose results are logits."""
    w_q, w_k = initial_weights(d_model, d_k, init, rng=rng)
    return {
        "of_keys": rng.standard_normal((SYMBOLS, d_model)),
        "of_values": rng.standard_normal((SYMBOLS, d_model)),
        "w_q": w_q,
        "w_k": w_k,
        "w_v": rng.standard_normal((d_model, SYMBOLS)) / math.sqrt(d_model),
    }


def look_up(
    question: Sequence[Array], weights: dict[str, Tensor], scale: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the scores and the weights (B, 1, n), and the logits (B, SYMBOLS).

    A pair is one position: the vector of its key plus that of its value. Divided by √2 the sum has
    variance 1 at the start, as the question has.
    """
    asked, keys, values = question
    of_keys, of_values = weights["of_keys"], weights["of_values"]
    x = embedding(of_keys, asked)  # (B, 1, d_model)
    pair = (embedding(of_keys, keys) + embedding(of_values, values)) / math.sqrt(2)
    scores = scale * ((x @ weights["w_q"]) @ (pair @ weights["w_k"]).mT)  # (B, 1, n)
    p = softmax(scores)
    return scores, p, (p @ (pair @ weights["w_v"]))[:, 0]  # (B, SYMBOLS)


# ---------------------------------------------------- A first reading may stop here.
# What follows: the first step on this task, and the outcomes of many trainings.


@dataclass(frozen=True)
class FirstStep:
    """The change of the scores by the first step of a training."""

    d_k: int
    a: float | str
    optimizer: str
    init: str
    change: float  # root of the mean squared change of new questions' scores, over the rate


def first_step(
    d_k: int, a: Exponent, *, optimizer: str = "sgd", init: str = "unit", rng: np.random.Generator
) -> FirstStep:
    """Measure how far the first step moves the scores of new questions, for each unit of the rate.

    In float64, after a step so small that the change is proportional to it. All weights have one
    rate.
    """
    start = initial_model(d_k, init, rng=rng)
    weights = {name: Tensor(w, requires_grad=True) for name, w in start.items()}
    steppers = _steppers(optimizer, weights, SMALL, SMALL)
    *question, answer = recall_batch(rng=rng)
    scale = power(a)(d_k)
    cross_entropy(look_up(question, weights, scale)[2], answer).backward()
    *new, _ = recall_batch(rng=rng)
    before = look_up(new, weights, scale)[0].data
    for stepper in steppers:
        stepper.step()
    after = look_up(new, weights, scale)[0].data
    change = rms(after - before) / SMALL
    return FirstStep(d_k=d_k, a=named(a), optimizer=optimizer, init=init, change=change)


Way = tuple[str, str, float | str]  # optimizer, init, a


def step_exponents(rows: Iterable[FirstStep]) -> dict[Way, tuple[float, float]]:
    """Return (optimizer, init, a) → the power of d_k in the first step's change, and its error.

    A setting has equally many rows for each d_k; one row of each is a repeat (chapter 16.4).
    """
    groups: dict[Way, dict[int, list[float]]] = {}
    for row in rows:
        of_width = groups.setdefault((row.optimizer, row.init, row.a), {})
        of_width.setdefault(row.d_k, []).append(row.change)
    return {key: slope(list(of), np.array(list(of.values())).T) for key, of in groups.items()}


@dataclass(frozen=True)
class Outcome:
    """The outcome of several trainings with the same settings, but for the seed."""

    trainings: int
    learned: int  # how many reached 98 % and still had 90 % in the end
    broke: int  # how many ended with an infinite or NaN loss
    steps_mean: float | None  # until 98 %, over those that learned; None if none did
    steps_std: float | None  # estimated with n - 1; None if fewer than two learned

    def __str__(self) -> str:
        """Return the mean steps of those that learned, with their number if not all did."""
        if not self.learned:
            return "broke" if self.broke == self.trainings else "never"
        few = "" if self.learned == self.trainings else f" ({self.learned} of {self.trainings})"
        spread = "" if self.steps_std is None else f" ± {self.steps_std:.0f}"
        return f"{self.steps_mean:.0f}{spread}{few}"


Setting = tuple[str, str, float | str, float, int, float]  # optimizer, init, a, follow, d_k, lr


def outcomes(trainings: Iterable[Training]) -> dict[Setting, Outcome]:
    """Return for each setting the outcome of the trainings with it."""
    groups: dict[Setting, list[Training]] = {}
    for t in trainings:
        groups.setdefault((t.optimizer, t.init, t.a, t.follow, t.d_k, t.lr), []).append(t)
    found = {}
    for key, group in groups.items():
        steps = [t.steps for t in group if t.learned and t.steps is not None]
        found[key] = Outcome(
            trainings=len(group),
            learned=len(steps),
            broke=sum(t.broke_at is not None for t in group),
            steps_mean=float(np.mean(steps)) if steps else None,
            steps_std=float(deviation(steps)) if len(steps) > 1 else None,
        )
    return found


def _steppers(
    name: str, weights: dict[str, Tensor], lr: float, of_scores: float
) -> list[Optimizer]:
    """Return one optimizer for W_q and W_k, which make the scores, and one for the others."""
    both = [weights["w_q"], weights["w_k"]]
    others = [w for key, w in weights.items() if key not in ("w_q", "w_k")]
    return [OPTIMIZERS[name](both, of_scores), OPTIMIZERS[name](others, lr)]
