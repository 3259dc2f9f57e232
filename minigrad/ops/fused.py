"""3.7 · Fused operations: several steps, one node.

What does it cost to compose? Layer normalisation, written as a formula, records eight nodes, keeps
five arrays of its input's size, and walks eight VJPs. Worked out on paper, its derivative is one
line that needs two of those arrays. So the two operations below, which every Transformer runs at
each step, have a rule that does everything at once, and one function `backward` that gives all
their gradients, because they share most of their work (chapter 1.3).

Beside each stands its `definition`, the same function composed. It says what is meant; it takes
over where the derivative itself is differentiated; and the tests hold the two together.
"""

from typing import Any

import numpy as np

from minigrad.ops.indexing import integers_below
from minigrad.ops.softmaxes import log_softmax
from minigrad.rules import fused
from minigrad.tensor import Tensor


def _layer_norm(x, gain, bias, /, eps=1e-5):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * gain + bias


@fused(definition=_layer_norm)
def layer_norm(x, gain, bias, /, eps=1e-5):
    """y = x̂ ⊙ gain + bias, where x̂ = (x - μ)/σ: each row with mean 0 and variance 1, then at will.

    μ is the mean of the row, σ² its variance plus eps (Ba et al. 2016). Move x by dx. The mean
    moves by mean(dx), and from σ² = mean((x - μ)²) + eps follows dσ = mean(x̂ ⊙ dx). So

        dx̂ = (dx - mean(dx))/σ - (x - μ)/σ² dσ = (dx - mean(dx) - x̂ mean(x̂ ⊙ dx))/σ

    That is dx without its part along (1, …, 1) and, but for eps, without its part along x̂: moving
    a row up, or stretching it, changes no x̂. The map is symmetric, so ĝ = g ⊙ gain goes back by
    the same formula:

        ∂L/∂x = (ĝ - mean(ĝ) - x̂ mean(x̂ ⊙ ĝ))/σ
        ∂L/∂gain = g ⊙ x̂        ∂L/∂bias = g        (summed over the rows by the engine)

    A large σ divides the gradient: whatever scale x arrives at, its gradient fits it.

    >>> layer_norm([[1.0, 3.0]], [1.0, 1.0], [0.0, 10.0], eps=0.0)
    array([[-1., 11.]])
    """
    centred = x - x.mean(axis=-1, keepdims=True)
    sigma = np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + eps)
    normed = centred
    normed /= sigma

    def backward(g, y, needs):
        of_x = None
        if needs[0]:
            of_x = g * gain
            along = (of_x * normed).mean(axis=-1, keepdims=True)
            of_x -= of_x.mean(axis=-1, keepdims=True)
            of_x -= normed * along
            of_x /= sigma
        return of_x, g * normed if needs[1] else None, g if needs[2] else None

    return normed * gain + bias, backward


def cross_entropy(
    logits: Any, targets: Any, *, ignore_index: int | None = None, label_smoothing: float = 0.0
) -> Tensor:
    """-Σ t ⊙ log softmax(z), a mean over rows: the usual loss of a classifier.   (…, C), (…) → ()

    logits   z, the scores of C classes, before any softmax
    targets  the true class of each row, an integer from 0 to C - 1
    ignore_index     a target that counts for nothing, such as a sentence's padding
    label_smoothing  ε: the truth is the target with probability 1 - ε, else any class, evenly.
                     No logit is then driven to infinity (Szegedy et al. 2015, section 7; Vaswani
                     et al. 2017 use ε = 0.1)

    t is that truth, one-hot if ε = 0, divided by the number of rows that count. log softmax has
    the VJP g - p Σ g (chapter 3.6), here g = -t, and the t of a row that counts sum to 1/n:

        ∂L/∂z = p/n - t

    Prediction minus truth. It is never dead while they differ, however sure the model is.

    >>> from minigrad import grad
    >>> cross_entropy([[0.0, 0.0]], [1])                    # log 2
    array(0.69314718)
    >>> grad(cross_entropy)([[0.0, 0.0]], [1])              # (½, ½) minus (0, 1)
    array([[ 0.5, -0.5]])
    """
    return _cross_entropy(
        logits,
        targets=np.array(targets),  # a copy: the record needs them as they are now
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )


def _composed_cross_entropy(logits, /, targets, ignore_index, label_smoothing):
    truth, counts = _truth(logits, targets, ignore_index, label_smoothing)
    log_p = log_softmax(np.where(counts, logits, 0))
    return -np.sum(truth * np.where(truth == 0, 0, log_p))


@fused(definition=_composed_cross_entropy)
def _cross_entropy(logits, /, targets, ignore_index, label_smoothing):
    truth, counts = _truth(logits, targets, ignore_index, label_smoothing)
    # A row that does not count may hold anything, also NaN: it is not looked at.
    log_p = log_softmax(logits if counts.all() else np.where(counts, logits, 0))

    def backward(g, y, needs):
        p = np.exp(log_p)
        p *= truth.sum(axis=-1, keepdims=True)
        p -= truth
        p *= g
        return (p,)

    # A class that cannot be, with logit -∞, has log p = -∞: not to be multiplied by 0.
    return -(truth * np.where(truth == 0, 0, log_p)).sum(), backward


def _truth(logits, targets, ignore_index, label_smoothing):
    """The probability of each class in each row, over the number of rows that count; which do."""
    shape = logits.shape
    if not shape or targets.shape != shape[:-1]:
        raise ValueError(f"one target for each row: the targets have shape {targets.shape}")
    if not 0.0 <= label_smoothing < 1.0:
        raise ValueError(f"label_smoothing lies between 0 and 1, but is {label_smoothing}")
    counts = np.ones(targets.shape, bool) if ignore_index is None else targets != ignore_index
    n = counts.sum()
    if n == 0:
        raise ValueError("no target is left to take the mean over")
    chosen = integers_below(np.where(counts, targets, np.zeros_like(targets)), shape[-1], "targets")
    one_hot = chosen[..., None] == np.arange(shape[-1])
    even = label_smoothing / shape[-1]
    counts = counts[..., None]
    return (((1 - label_smoothing) * one_hot + even) * (counts / n)).astype(logits.dtype), counts
