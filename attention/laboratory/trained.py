"""16.6 · Trained: what a trained model loses if the scale is removed from it.

Chapters 16 to 16.4 look at random weights. What does the scale do in a model that has learned? This
chapter trains a layer of four heads on chapter 16.5's task, then multiplies its scores by another
factor, and looks at its queries: do they still get a gradient? The layer is chapter 13's. Its
`attend` may be any function, so one that keeps what it computes shows the heads' inside (`Look`).

The numbers are of 10 trainings with each scale at d_k = 64, and 8 at d_k = 512: 300 steps at a rate
of .3, with means over the trainings. The page of the demo `laboratory` has them as tables, with
their spreads. **Dead** means ‖∂L/∂q‖ < .001, an absolute number.

**This task's answers do not need the scale.** Without it the trained model answers all questions as
before, and its loss even falls. The right pair has the largest score already, and a positive factor
does not change which score is the largest. Where an answer mixes several keys this does not hold:
models that calculate lose answers (demo `pretrained`).

**Finished or saturated?** With the scale 76 % of the queries are dead at the end. At the start none
was. Did softmax saturate? There are two ways to get no gradient: nothing is wrong any more, or what
is wrong does not get through. The loss's gradient cannot tell them apart. So we send something
else: a random g with entries N(0, 1) at each head's output, whose size does not depend on what the
model has learned, and measure ‖∂⟨g, output⟩/∂q‖. With the scale g reaches every query: the heads
have *finished*. In the model that was trained without the scale 59 % of the queries are dead for g
too, *saturated*, and 41 % are reached. At the start 9 % were dead, since d_k = 64 is not wide. (The
limit .001 does not decide this, although ∂L/∂q has the scale as a factor: if the gradients with
respect to the scores are compared with it, 0 % and 66 % are dead for g.) At which step does that
begin? Chapter 16.8 looks at the heads of a small GPT over its training.

**What saturation costs** shows when there is something else to learn. The second task asks for
another pair: the question is no longer the pair's key but the key three further on. (Another W_Q
is enough for that.) At the rate .3 the model with the scale learns it in 54 steps, and in 139 if
the scale is removed first; at d_k = 512 in 50 and 235. If the model that was trained without the
scale gets one after its training, it needs 44, fewer than the model that always had it. The share
that is dead for L does not tell these models apart: 93 % in the model whose scale was doubled,
which needs 64 steps, and 92 % in the model without a scale, which needs 118. The share that is dead
for g does: 7 % and 59 %. It does so for medians at one rate. Single trainings overlap, and another
rate changes the steps and not the share: with W_Q and W_K at an eighth of it the model with the
scale, where none is dead for g, needs 184 steps.

    >>> from attention.laboratory.trained import trained_heads
    >>> model = trained_heads(64, 0.5, second_limit=400, rng=np.random.default_rng(0))
    >>> steps = {each.change: each.steps for each in model.second if each.slowed == 1}
    >>> steps["no scale"] > 2 * steps["as trained"]
    True
    >>> for end in model.end:                                   # right; dead for L; dead for g
    ...     print(end.change, end.accuracy > 0.99, end.dead > 0.5, end.passed_dead > 0.5)
    as trained True True False
    doubled True True False
    no scale True True True

**Is the step too long?** Without the scale softmax is saturated, and also a step of W_Q and W_K
moves the scores d_k times as far for the same gradient (chapter 16.5). Two controls tell these
causes apart: other rates, from .03 to 1, and a smaller rate for W_Q and W_K alone.

At d_k = 64 the model without the scale is slower at each rate that all weights share. At the rate
1 its steps are too long: it never learns, and with W_Q and W_K at an eighth it does. At the smaller
rates an eighth only costs steps, with the scale and without. If W_Q and W_K are slowed 64 times, a
step moves the scores as far as with the scale for the same gradient, and the second task takes 678
steps in place of 54: most queries pass next to no gradient on. At the best of these rates the model
without the scale needs 139 steps, and with it 29. So too long a step is a cause at the rate 1, and
it does not explain the rest.

What does all this not show? **That a model needs the scale.** W_Q can absorb any factor, so a
worse result after a change shows what the weights were trained for. The model that was trained
without a scale at d_k = 64 has the loss .004, and .042 when it gets one. And this is a small task.
A deep model on real text may be different. Scores that grow until the weights are nearly one-hot
made large vision models diverge (Dehghani et al. 2023) and small ones at high rates (Wortsman et
al. 2023), and both normalise q and k against it. A low entropy goes with an unstable training (Zhai
et al. 2023). Weights that are too even are the other end: without skip connections and feed-forward
layers the output tends to rank 1 with depth (Dong et al. 2021), which hinders the training (Noci et
al. 2022). The page of the demo says what was read of each.

Legend: B questions about n pairs each, H heads; T = 1 query, S = n keys.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.laboratory.basin import LEARNED, SYMBOLS, WINDOW, Questions, recall_batch
from attention.laboratory.sharpness import initial_weights
from attention.multi_head import MultiHeadAttention
from attention.scaled_dot_product import over_keys, scale_factor
from attention.scaling import DEAD, Array, Exponent, entropies, named, power
from minigrad import Tensor, cross_entropy, gradients
from minigrad.nn import Embedding, Linear, Module
from minigrad.optim import SGD

RATES = (0.03, 0.1, 0.3, 1.0)  # of the second task
SLOWED = 8.0  # the rate of W_Q and W_K is divided by this
SHIFT = 3  # of the second task: how much larger the question is than the key that it is about


class MultiHeadRecall(Module):
    """Several heads between a question and pairs of a key and a value; the answer is a value."""

    def __init__(self, num_heads: int, d_k: int, scale: float, *, rng: np.random.Generator) -> None:
        d_model = 32
        self.keys = Embedding(SYMBOLS, d_model, rng=rng)
        self.values = Embedding(SYMBOLS, d_model, rng=rng)
        self.attention = MultiHeadAttention(d_model, num_heads, d_k=d_k, scale=scale, rng=rng)
        self.answer = Linear(d_model, SYMBOLS, rng=rng)
        # Chapter 16.4's "unit": q and k of variance 1, so that raw scores spread like √d_k.
        w_q, w_k = initial_weights(d_model, num_heads * d_k, "unit", rng=rng)
        self.attention.w_q.weight.data = w_q
        self.attention.w_k.weight.data = w_k

    def __call__(self, asked: Array, keys: Array, values: Array) -> Tensor:
        """Return the logits (B, SYMBOLS) of questions (B, 1) about keys and values (B, n)."""
        question = self.keys(asked)  # (B, 1, d_model)
        pairs = (self.keys(keys) + self.values(values)) / math.sqrt(2)  # (B, n, d_model)
        return self.answer(self.attention(question, pairs))[:, 0]  # (B, SYMBOLS)


class Look:
    """Chapter 11's `attention` with its scale times `factor`; it keeps what it computed last.

    As a layer's `attend` it shows what each head does, and changes the scale and not the layer.
    """

    def __init__(self, factor: float = 1.0) -> None:
        self.factor = factor

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, *, mask: Any = None, scale: Any = None, **none: None
    ) -> Tensor:
        """(…, T, d_k), (…, S, d_k), (…, S, d_v) → (…, T, d_v); without score_bias= and drop=."""
        self.q = q
        self.scores = self.factor * scale_factor(q, k, scale) * (q @ k.mT)  # (…, T, S)
        self.p = over_keys(self.scores, mask)  # (…, T, S)
        self.output = self.p @ v  # (…, T, d_v)
        return self.output


def changes(d_k: int, a: Exponent) -> dict[str, float]:
    """Return the factors by which the scale d_k^-a is multiplied after the training, by name.

    >>> from attention.laboratory.trained import changes
    >>> changes(64, 0.5)
    {'as trained': 1.0, 'doubled': 2.0, 'no scale': 8.0}
    """
    scale = power(a)(d_k)
    found = {"as trained": 1.0, "doubled": 2.0, "no scale": 1 / scale, "1/√d_k": d_k**-0.5 / scale}
    return {name: by for name, by in found.items() if name == "as trained" or by != 1}


@dataclass(frozen=True)
class Heads:
    """All heads of a model, with one change of its scale: means over its heads.

    The gradients are those of 512 questions, one query each, and each is the gradient of that
    question's own loss, not of the mean over the batch. Dead: shorter than DEAD = .001.
    """

    change: str  # of the scale, after the training: see `changes`
    accuracy: float  # share of the questions that the whole model answers
    loss: float  # of the whole model, mean cross-entropy
    score_std: float  # over the keys of a query: √ of the mean variance
    entropy: float  # mean over queries of Σ -p log p / log n: 1 is uniform, 0 one-hot
    dead: float  # share of queries whose ‖∂L/∂q‖ is dead
    passed: float  # median over queries of ‖∂⟨g, output⟩/∂q‖ for a g drawn from N(0, 1)
    passed_dead: float  # share of queries for which that is dead
    passed_dead_scores: float  # the same with respect to the scores, not q: without Kᵀ and scale


@dataclass(frozen=True)
class SecondTask:
    """The steps in which a trained model learns another task, after a change of its scale."""

    change: str  # see `changes`
    lr: float
    slowed: float  # the rate of W_Q and W_K is lr / slowed
    steps: int | None  # until 98 % of the last ten batches' questions were right; None: never


@dataclass(frozen=True)
class TrainedHeads:
    """One training of a model, the gradients at its queries, and the second tasks after it."""

    d_k: int
    a: float | str  # the exponent of the scale d_k^-a, or the name of a function
    lr: float
    start: Heads  # before the training
    end: list[Heads]  # after it, for each change of the scale
    second: list[SecondTask]


def trained_heads(
    d_k: int,
    a: Exponent,
    *,
    lr: float = 0.3,
    every_rate: bool = False,
    num_heads: int = 4,
    limit: int = 300,
    second_limit: int = 1500,
    questions: int = 512,
    rng: np.random.Generator,
) -> TrainedHeads:
    """Train a model with the scale d_k^-a by SGD, in float32, and measure it before and after.

    The questions that measure, and g, are drawn once: all changes of the scale see the same ones.
    Exponents see the same ones too, if their generators are equal.

    The trained model then learns a second task, once for each change of the scale: the question
    is no longer the key of the pair, but the key three further on (to ask for 0 one says 3), so
    every head has to look at another pair. Nothing else changes. As trained and without the scale
    it learns the task once more with W_Q and W_K slowed, and with every_rate= at each of RATES.
    """
    model = MultiHeadRecall(num_heads, d_k, power(a)(d_k), rng=rng).astype(np.float32)
    test = recall_batch(questions, rng=rng)
    d_v = model.attention.w_v.weight.shape[-1] // num_heads
    g = rng.standard_normal((questions, num_heads, 1, d_v)).astype(np.float32)
    start = measured(model, test, g, "as trained", 1.0)
    optimizers = steppers(model, lr)
    for _ in range(limit):
        train_step(model, optimizers, recall_batch(rng=rng))
    factors = changes(d_k, a)
    end = [measured(model, test, g, name, by) for name, by in factors.items()]
    seed = int(rng.integers(2**32))  # every change sees the same questions of the second task
    trained = [parameter.data for parameter in model.parameters()]
    second = []
    for change, at, slowed in second_tasks(factors, lr, d_k if every_rate else 0):
        for parameter, data in zip(model.parameters(), trained, strict=True):
            parameter.data = data
        model.attention.attend = Look(factors[change])
        of_task = np.random.default_rng(seed)
        steps = steps_of_second_task(model, steppers(model, at, slowed), second_limit, rng=of_task)
        second.append(SecondTask(change, at, slowed, steps))
    return TrainedHeads(d_k=d_k, a=named(a), lr=lr, start=start, end=end, second=second)


# ---------------------------------------------------- A first reading may stop here.
# What follows: which second tasks, one step, the measurement of all heads, and the second task.


def second_tasks(factors: Iterable[str], lr: float, d_k: int) -> list[tuple[str, float, float]]:
    """Return each second task's change of the scale, rate, and divisor of W_Q's and W_K's rate.

    If d_k is not 0, each of RATES is among them, and W_Q and W_K slowed d_k times.
    """
    found = [(change, lr, 1.0) for change in factors]
    control = [change for change in ("as trained", "no scale") if change in factors]
    if len(control) == 2:
        found += [(change, lr, SLOWED) for change in control]
        if d_k:
            found.append(("no scale", lr, float(d_k)))
            others = [rate for rate in RATES if rate != lr]
            found += itertools.product(control, others, (1.0, SLOWED))
    return found


def steppers(model: MultiHeadRecall, lr: float, slowed: float = 1.0) -> list[SGD]:
    """Return SGD for W_Q and W_K, at the rate lr / slowed, and SGD for all other weights."""
    scoring = [model.attention.w_q.weight, model.attention.w_k.weight]
    others = [p for p in model.parameters() if all(p is not w for w in scoring)]
    return [SGD(scoring, lr / slowed), SGD(others, lr)]


def train_step(model: MultiHeadRecall, optimizers: list[SGD], questions: Questions) -> float:
    """Make one step on a batch of questions; return the share that was right before it."""
    *question, answer = questions
    logits = model(*question)
    for optimizer in optimizers:
        optimizer.zero_grad()
    cross_entropy(logits, answer).backward()
    for optimizer in optimizers:
        optimizer.step()
    return float(np.mean(logits.data.argmax(axis=-1) == answer))


def measured(
    model: MultiHeadRecall, questions: Questions, g: Array, change: str, factor: float
) -> Heads:
    """Measure all heads while the layer's scale is multiplied by `factor`; g (B, H, 1, d_v)."""
    *question, answer = questions
    look = Look(factor)
    before, model.attention.attend = model.attention.attend, look
    logits = model(*question)
    model.attention.attend = before
    loss = cross_entropy(logits, answer)  # the mean: times B it is the sum of the questions' losses
    at = [look.q, look.scores]  # (B, H, 1, d_k), (B, H, 1, n)
    found = gradients(loss * len(answer), at[:1], retain_graph=True) + gradients(look.output, at, g)
    dead, passed, passed_scores = (np.linalg.norm(x.astype(float), axis=-1) for x in found)
    variance = look.scores.data.astype(float).var(axis=-1)  # (B, H, 1)
    return Heads(
        change=change,
        accuracy=float(np.mean(logits.data.argmax(axis=-1) == answer)),
        loss=loss.item(),
        score_std=float(np.sqrt(variance.mean(axis=0)).mean()),
        entropy=float(entropies(look.p.data.astype(float)).mean()),
        dead=float((dead < DEAD).mean()),
        passed=float(np.median(passed)),
        passed_dead=float((passed < DEAD).mean()),
        passed_dead_scores=float((passed_scores < DEAD).mean()),
    )


def steps_of_second_task(
    model: MultiHeadRecall, optimizers: list[SGD], limit: int, *, rng: np.random.Generator
) -> int | None:
    """Return the steps until 98 % of ten batches are right; None if `limit` are not enough."""
    right: list[float] = []
    with np.errstate(over="ignore", invalid="ignore"):  # a rate may be too large
        while len(right) < limit:
            asked, keys, values, answer = recall_batch(rng=rng)
            question = (asked + SHIFT) % SYMBOLS
            right.append(train_step(model, optimizers, (question, keys, values, answer)))
            if len(right) >= WINDOW and np.mean(right[-WINDOW:]) >= LEARNED:
                return len(right)
    return None


def steps_over_rates(
    rows: Iterable[TrainedHeads], change: str, slowed: float = 1.0
) -> dict[float, float]:
    """Return rate → the median over trainings of the second task's steps; ∞ if it never learns."""
    steps: dict[float, list[float]] = {}
    for task in (task for row in rows for task in row.second):
        if (task.change, task.slowed) == (change, slowed):
            steps.setdefault(task.lr, []).append(math.inf if task.steps is None else task.steps)
    return {lr: float(np.median(found)) for lr, found in sorted(steps.items())}
