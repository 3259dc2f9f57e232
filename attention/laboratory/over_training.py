"""16.8 · Over a training: when do gradients fall without the scale, and is 1 a good constant?

Without the scale the gradients of a random head are unequal, and their mean is larger than with it.
If a key stands out far enough, the mean is smaller, too (chapter 16). When does a training go from
one to the other? And is the scale's spread of the scores, s = 1, a good one, although the median
gradient is largest near s = 4½?

This chapter trains a small GPT, two blocks of two heads with d_k = 64, by Adam at the rate .001, to
repeat 16 random tokens. W_Q and W_K are drawn so that q and k have variance 1, or with GPT-2's .02
(d_model is 128). Numbers are of four seeds, with drawn periods of two, and the page of the demo
`laboratory` has tables.

**Heads that find their key.** The GPT has the scale 1/√d_k. At some steps one block loses it, and
its inputs stay as they are. A random g is sent back from the outputs of its heads, as in chapter
16.6. In how many of the 16 heads of a start is the mean of ‖∂L/∂q‖ smaller than with the scale, and
in how many the median?

                                 step 0    step 50    step 400
    variance 1: the mean falls        0          5           5
    the median                        0          8           9
    GPT-2's .02: the mean falls       0          6           7
    the median                        0          7           8

Before the training no mean falls: without the scale it is 4 to 8 times as large. (From GPT-2's .02
this is algebra: s is .41 or less, where the gradient is nearly proportional to the scale, and √64
is 8.) At the end 12 of the 32 heads have more than half of their weight at one place, and the means
that fall are theirs: one falls to a third, and the others to 2·10⁻⁵ or less (in float32, where
less than 10⁻⁶ is rounding). In the 20 other heads the mean is still 1.8 to 8 times as large.

    >>> from attention.laboratory.over_training import heads_over_training
    >>> row = heads_over_training("unit", d_k=16, limit=150, rng=np.random.default_rng(0))
    >>> for head in row.heads[:2] + row.heads[-4:-2]:          # block 1, before and after
    ...     print(head.step, head.kind, "falls" if head.mean < 1 else "grows")
    0 spread out grows
    0 spread out grows
    150 by position falls
    150 spread out grows

**What has such a head found?** We look how far back the key with the most weight is, on average, in
sequences that repeat after 16, and in others that repeat after 14. The 12 heads are in block 1, and
look 15 back, where the token stands that comes next. But they find it by *position*: after 14 they
look 15 back, too. So one block is enough, and this is not the induction of the demo `induction`. If
the period of each batch is drawn, from 8 to 16, positions do not help. Then keys are found by
*content*: after 600 steps of two trainings all four heads of block 2 look 8 positions beyond the
earlier occurrence of their token, at both periods. Without the scale their medians are at float32's
rounding, and their means are not gone: .60 to .85 of those with it, which few queries have. One
other head's mean falls as well, to .97, and we do not count it.

Earlier in a training a head can have found its key and keep its mean. Four did: at step 50 two of
block 1, whose means are 1.6 and 2.6 times as large, and at step 400, with drawn periods, one head
of each training, with 1.0 and 1.2. One of them, that of the 1.6, has lost its key at the end, and
still has 1.8.

**A race.** The factor of the scale is now chosen so that the scores spread by s at the start. After
how many steps is the mean loss of ten batches below ½ (mean and standard deviation of the seeds)?

    s                1/32      1/8       ½        1        2         4         8
    variance 1       150 ± 12  107 ± 6   70 ± 5   62 ± 8   60 ± 9    81 ± 12   140 ± 32
    GPT-2's .02       92 ± 4    69 ± 1   53 ± 4   51 ± 7   57 ± 12   88 ± 23   259 ± 110

At both starts it is a valley: from ½ to 2 it takes at most 1.2 times the least. At 4, near the top
of the hill (4½ for 17 to 31 keys), it takes 1.3 and 1.7 times the least, and in each seed at least
the steps of the worst of ½, 1 and 2. So here 1 is a good constant, and ½ and 2 are as good; the
spread at which the median gradient is largest is not. With the scale s is 1 from variance 1, and
.05 from GPT-2's .02. Without it s is 8, and the GPT learns later, after 140 steps for 62; from .02
s is .41, and it learns *sooner*, after 54 ± 3 steps for 82 ± 3.

**What does this not show?** There is one width, one rate of Adam, and a task that is a toy. Scale
times rate is nearly one number (chapter 16.5): what sets s also sets how far a step moves the
scores, so the race does not tell a good start from a good step, and not why a constant is good. (At
s = 8 one of eight had not learned after 400 steps, and counts as 400.) What would refute it: a head
that has found its key and at the end of its training keeps its mean, or a valley elsewhere.

Legend: B sequences of T tokens, H heads; a query sees S keys, those at and before its position.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.laboratory.basin import WINDOW
from attention.laboratory.trained import Look
from attention.models import GPT, gpt2
from attention.scaling import Array
from minigrad import Tensor, cross_entropy, gradients
from minigrad.optim import Adam

TOKENS = 32
PERIOD = 16  # a sequence has so many tokens, none of them twice, and then the same again
DRAWN = (8, 16)  # the least and the largest period of a batch, if periods are drawn
OTHER = 14  # a second period, which tells where a head looks
BATCH = 24
TESTED = 32  # sequences
LOOKS = (0, 50, 400)  # the steps at which a training is looked at, and its last one
RATE = 1e-3  # of Adam, for all weights
LEARNED = 0.5  # the mean loss of ten batches; log 32 = 3.5 is a guess
SPREAD_OUT = "spread out"  # the kind of a head that has not found one key for each query
INITIAL: dict[str, Callable[[int], float]] = {  # the standard deviation of W_Q and W_K
    "unit": lambda d_model: d_model**-0.5,
    "0.02": lambda d_model: 0.02,
}


def sequences(number: int, period: int = PERIOD, *, rng: np.random.Generator) -> Array:
    """Draw sequences (number, 32) of `period` different tokens that repeat to the end."""
    drawn = rng.permuted(np.tile(np.arange(TOKENS), (number, 1)), axis=1)
    return drawn[:, np.arange(2 * PERIOD) % period]


def repeating_gpt(init: str, spread: float, d_k: int, *, rng: np.random.Generator) -> GPT:
    """Return a GPT-2 of two blocks with two heads each, in float32, whose heads are looked at.

    init    "unit": W_Q and W_K are drawn so that q and k have variance 1; "0.02": GPT-2's values
    spread  of the scores at the start; the scale 1/√d_k is multiplied by what gives this spread
    """
    d_model = 2 * d_k
    model = gpt2(TOKENS, 2 * PERIOD, d_model=d_model, num_heads=2, num_blocks=2, rng=rng)
    std = INITIAL[init](d_model)
    for block in model.blocks:
        for matrix in (block.attention.w_q, block.attention.w_k):
            matrix.weight.data = std * rng.standard_normal(matrix.weight.shape)
        block.attention.attend = Look(spread / natural_spread(init, d_k))
    return model.astype(np.float32)


def natural_spread(init: str, d_k: int) -> float:
    """Return the spread of the scores at the start with the scale 1/√d_k.

    The features of x have variance 1 after layer norm, so those of q and k have d_model std².
    """
    return round(2 * d_k * INITIAL[init](2 * d_k) ** 2, 9)


def loss_of(model: GPT, x: Array, period: int = PERIOD) -> Tensor:
    """Return the mean loss of the tokens that can be known: the one before occurred before."""
    return cross_entropy(model(x[:, :-1])[:, period:], x[:, period + 1 :])


@dataclass(frozen=True)
class HeadLook:
    """One head at one step: where it looks, and its gradients if its block loses the scale.

    The queries are those whose token occurred before. The gradients are ‖∂⟨g, output⟩/∂q‖ for a g
    drawn from N(0, 1). The block's inputs stay those of the model as it is.
    """

    step: int
    block: int
    head: int
    mean: float  # over queries, without the scale over with it
    median: float
    back: int  # how many positions back the key is that has most weight, if the period is 16
    weight: float  # its mean weight
    other_back: int  # the same, if the period is 14
    other_weight: float

    @property
    def kind(self) -> str:
        """Return how a head finds the key that has more than half of its weight, or "spread out".

        "by position": equally far back for both periods; "by content": it moves with the period.
        """
        if min(self.weight, self.other_weight) > 0.5:
            if self.back == self.other_back:
                return "by position"
            if self.back - self.other_back == PERIOD - OTHER:
                return "by content"
        return SPREAD_OUT


@dataclass(frozen=True)
class OverTraining:
    """One training with 1/√d_k, and its four heads at each look."""

    init: str
    drawn: bool  # True: each batch has a period of its own
    losses: list[float]  # of sequences that are not trained on, at each look
    heads: list[HeadLook]


def heads_over_training(
    init: str,
    *,
    drawn: bool = False,
    limit: int = 400,
    d_k: int = 64,
    rng: np.random.Generator,
) -> OverTraining:
    """Train with the scale 1/√d_k for `limit` steps, and look at all heads at LOOKS and the end.

    At each look every block loses its scale once, and gets it back. With `drawn` the period of each
    batch is drawn, from 8 to 16, and positions do not tell where the next token is.
    """
    model = repeating_gpt(init, natural_spread(init, d_k), d_k, rng=rng)
    test, other = (sequences(TESTED, period, rng=rng) for period in (PERIOD, OTHER))
    g = rng.standard_normal((TESTED, 2, 2 * PERIOD - 1, d_k)).astype(np.float32)
    optimizer = Adam(model.parameters(), RATE)
    losses, heads = [], []
    for step in range(limit + 1):
        if step in (*LOOKS, limit):
            losses.append(loss_of(model, test).item())
            heads += look_at_heads(model, test[:, :-1], other[:, :-1], g, step)
        if step < limit:
            train_step(model, optimizer, drawn, rng=rng)
    return OverTraining(init, drawn, losses, heads)


@dataclass(frozen=True)
class Race:
    """One training from one spread of the scores, until the model repeats its sequences."""

    init: str
    spread: float  # s, of the scores at the start
    steps: int | None  # until the mean loss of ten batches was below ½; None: never


def race(
    init: str, spread: float, *, limit: int = 400, d_k: int = 64, rng: np.random.Generator
) -> Race:
    """Train with the factor that gives the scores this spread; return the steps that it took."""
    model = repeating_gpt(init, spread, d_k, rng=rng)
    optimizer = Adam(model.parameters(), RATE)
    losses: list[float] = []
    while len(losses) < limit:
        losses.append(train_step(model, optimizer, rng=rng))
        if len(losses) >= WINDOW and np.mean(losses[-WINDOW:]) < LEARNED:
            return Race(init, spread, len(losses))
    return Race(init, spread, None)


# ---------------------------------------------------- A first reading may stop here.
# What follows: one step, and the look at all heads.


def train_step(
    model: GPT, optimizer: Adam, drawn: bool = False, *, rng: np.random.Generator
) -> float:
    """Make one step on a new batch; return its loss before the step."""
    period = int(rng.integers(DRAWN[0], DRAWN[1] + 1)) if drawn else PERIOD
    loss = loss_of(model, sequences(BATCH, period, rng=rng), period)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def look_at_heads(model: GPT, test: Array, other: Array, g: Array, step: int) -> list[HeadLook]:
    """Return a look at each head; g (B, H, T, d_k) is sent back from the outputs of each block."""
    attends: list[Any] = [block.attention.attend for block in model.blocks]
    model(other)
    other_places = [most_weight(attend.p.data) for attend in attends]
    model(test)
    places = [most_weight(attend.p.data) for attend in attends]
    scaled = [lengths(attend, g) for attend in attends]
    looks = []
    for b, block in enumerate(model.blocks):
        block.attention.attend = bare = Look(attends[b].factor * g.shape[-1] ** 0.5)
        model(test)
        block.attention.attend = attends[b]
        raw = lengths(bare, g)
        for h, (without, with_it) in enumerate(zip(raw, scaled[b], strict=True)):
            mean = without.mean() / with_it.mean()
            median = np.median(without) / np.median(with_it)
            at = *places[b][h], *other_places[b][h]
            looks.append(HeadLook(step, b + 1, h + 1, float(mean), float(median), *at))
    return looks


def most_weight(p: Array) -> list[tuple[int, float]]:
    """Return of each head how far back the most weight is on average, and how much it is.

    Of queries whose token occurred once before, at both periods.   (B, H, T, S) → H pairs
    """
    at = np.arange(PERIOD, 2 * OTHER)
    backs = np.arange(PERIOD + 1)
    means = p[:, :, at[:, None], at[:, None] - backs].mean(axis=(0, 2), dtype=float)  # (H, backs)
    return [(int(row.argmax()), float(row.max())) for row in means]


def lengths(look: Look, g: Array) -> Array:
    """Return ‖∂⟨g, output⟩/∂q‖ of the queries whose token occurred before.   → (H, queries)"""
    (of_q,) = gradients(look.output, [look.q], g)
    norms: Array = np.linalg.norm(of_q.astype(float), axis=-1)[:, :, PERIOD:]  # (B, H, queries)
    return norms.swapaxes(0, 1).reshape(g.shape[1], -1)
