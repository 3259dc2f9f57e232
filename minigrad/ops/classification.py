"""3.10 · Cross-entropy: prediction minus truth.

What does a classifier learn from? It gives each class a score z, softmax makes probabilities p of
the scores, and the loss is -log of the probability that the true class got. One rule for softmax
and logarithm together has a simple gradient with respect to z: p - t, prediction minus truth. If
the loss were composed of the two, a p that underflows to 0 would have the logarithm -∞, and its
row's gradient would be NaN.

As in chapter 3.7, one rule does everything at once, and its `definition` is beside it.

Exercise 14 of `python -m demos learn`: write this loss, and log-softmax.
"""

from typing import Any

import numpy as np

from minigrad.engine.hints import in_our_words
from minigrad.engine.options import as_number
from minigrad.engine.rules import fused
from minigrad.engine.tensor import Tensor
from minigrad.ops.elementwise import floats
from minigrad.ops.indexing import integers_below
from minigrad.ops.softmaxes import log_softmax


@in_our_words
def cross_entropy(
    logits: Any,
    targets: Any,
    *,
    class_weights: Any = None,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    reduction: str = "mean",
) -> Tensor:
    """-Σ t ⊙ log softmax(z), the mean over rows: the usual loss of a classifier.   (…, C), (…) → ()

    logits           z, the scores of C classes, before any softmax
    targets          the class of each row, an integer from 0 to C - 1; or (…, C) probabilities
    class_weights    w, (C,), not negative: t becomes w ⊙ t, so that rare classes can count more
    ignore_index     a target that counts for nothing, such as a sentence's padding
    label_smoothing  ε: the truth is the target with probability 1 - ε, else any class, evenly.
                     No logit is then driven to infinity (Szegedy et al. 2015, section 7; Vaswani
                     et al. 2017 use ε = 0.1)
    reduction        "mean"; or "sum" over the rows; or "none", the loss of each row, (…)

    A row of t is the truth: one-hot, smoothed, or as it was given. n is the number of rows that
    count. With p = softmax(z),

        L = -1/n Σ t ⊙ log p

    log softmax has the VJP g - p Σ g (chapter 3.6), here with g = -t/n, and a row of t sums to 1:

        ∂L/∂z = (p - t)/n        (0 in a row that does not count)

    The gradient is prediction minus truth. Where a model is sure and wrong, p - t is still near 1.

    With "sum" and "none" n is 1. With class weights, n is the sum of w over the rows' classes, so
    that the loss stays a mean; a row of t then sums to another number s, and the gradient is
    (s p - t)/n. (For targets that are probabilities, n stays the number of rows, as in PyTorch.)
    The targets and weights are constants. ValueError for shapes that do not fit, a class out of
    range, or no target left.

    >>> from minigrad import grad
    >>> cross_entropy([[0.0, 0.0]], [1])                    # log 2
    array(0.69314718)
    >>> grad(cross_entropy)([[0.0, 0.0]], [1])              # (½, ½) minus (0, 1)
    array([[ 0.5, -0.5]])
    >>> grad(cross_entropy)([[0.0, 0.0]], [[0.5, 0.5]])     # the prediction is the truth
    array([[0., 0.]])
    >>> cross_entropy([[0.0, 0.0], [0.0, 9.0]], [0, 1], class_weights=[1.0, 0.0])   # only row 0
    array(0.69314718)
    """
    check_reduction(reduction)
    return _cross_entropy(
        floats(logits),
        targets=np.array(targets),  # a copy: the record needs it as it is now
        class_weights=None if class_weights is None else np.array(class_weights),
        ignore_index=ignore_index,
        label_smoothing=as_number("label_smoothing", label_smoothing, 0, 1),
        reduction=reduction,
    )


def _composed_cross_entropy(logits, /, **asked):
    truth, counts = _truth(logits, **asked)
    log_p = log_softmax(np.where(counts, logits, 0))
    terms = truth * np.where(truth == 0, 0, log_p)
    return -(np.sum(terms, axis=-1) if asked["reduction"] == "none" else np.sum(terms))


@fused(definition=_composed_cross_entropy, name="cross_entropy")
def _cross_entropy(logits, /, **asked):
    truth, counts = _truth(logits, **asked)
    # A row that does not count may hold anything, also NaN, so zeros take its place.
    log_p = log_softmax(logits if counts.all() else np.where(counts, logits, 0))

    def backward(g, y, needs):
        p = np.exp(log_p)
        p *= truth.sum(axis=-1, keepdims=True)
        p -= truth
        p *= g[..., None]
        return (p,)

    # A class with the logit -∞ has log p = -∞, and 0 · ∞ would be NaN.
    terms = truth * np.where(truth == 0, 0, log_p)
    return -(terms.sum(axis=-1) if asked["reduction"] == "none" else terms.sum()), backward


# ---------------------------------------------------- A first reading may stop here.
# What follows: the truth, and what does not fit.


def _truth(logits, targets, class_weights, ignore_index, label_smoothing, reduction):
    """Return t/n, as in `cross_entropy`'s docstring, and a mask of the rows that count, (…, 1)."""
    num_classes = logits.shape[-1]
    counts = np.ones(logits.shape[:-1], bool)
    row_weights = counts  # of each row in the mean
    if class_weights is not None:
        _check_weights(class_weights, num_classes)
    if targets.dtype.kind == "f" and targets.shape == logits.shape:
        truth = targets
        if ignore_index is not None:
            raise ValueError("ignore_index is a class, and these targets are probabilities")
        if not np.allclose(truth.sum(axis=-1), 1, rtol=0, atol=0.01):
            raise ValueError(
                "targets of the logits' shape are probabilities: these do not sum to 1"
            )
    elif targets.shape == logits.shape[:-1]:
        counts = counts if ignore_index is None else targets != ignore_index
        if ignore_index is None and (targets == -100).any():
            raise ValueError("targets: -100 counts for nothing if ignore_index=-100 is given")
        integers_below(targets[counts], num_classes, "targets")
        truth = targets[..., None] == np.arange(num_classes)
        row_weights = counts if class_weights is None else counts * (truth @ class_weights)
    else:
        one_hot = "; of one-hot rows take .argmax(-1)" if targets.shape == logits.shape else ""
        raise ValueError(
            "one target for each row, with the classes on the last axis: the targets are "
            f"{targets.dtype} {targets.shape}, the logits {logits.shape}{one_hot}"
        )
    n = row_weights.sum() if reduction == "mean" else 1
    if not n > 0:
        raise ValueError("no target is left to take the mean over")
    share = (counts / n)[..., None]
    truth = ((1 - label_smoothing) * truth + label_smoothing / num_classes) * share
    if class_weights is not None:
        truth = truth * class_weights
    return truth.astype(logits.dtype), counts[..., None]


def _check_weights(weights, num_classes):
    """Refuse weights that are not one finite number for each class, or of which one is negative."""
    if weights.shape != (num_classes,) or weights.dtype.kind not in "fiu":
        got = f"{weights.dtype} {weights.shape}"
        raise ValueError(f"class_weights has a number for each of {num_classes} classes: got {got}")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ValueError(f"class_weights must be finite and not negative: got {weights!r:.60}")


def check_reduction(reduction: str) -> None:
    """Refuse a reduction that is not "mean", "sum" or "none"."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is 'mean', 'sum' or 'none': got {reduction!r}")
