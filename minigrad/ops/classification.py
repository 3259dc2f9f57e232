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

from minigrad.engine.rules import fused
from minigrad.engine.tensor import Array, Tensor, describe, real_array, refuse_masked
from minigrad.ops.elementwise import floats
from minigrad.ops.indexing import counted_targets
from minigrad.ops.softmaxes import log_softmax


def cross_entropy(
    logits: Any,
    targets: Any,
    *,
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    weight: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """-Σ t ⊙ log softmax(z), the mean over rows: the usual loss of a classifier.   (…, C), (…) → ()

    logits   z, the scores of C classes, before any softmax
    targets  the true class of each row, an integer from 0 to C - 1; or (…, C) probabilities
    ignore_index     a target that counts for nothing, such as a sentence's padding
    label_smoothing  ε: the truth is the target with probability 1 - ε, else any class, evenly.
                     No logit is then driven to infinity (Szegedy et al. 2015, section 7; Vaswani
                     et al. 2017 use ε = 0.1)
    weight     (C,): how much each class counts, where some are rare
    reduction  "mean"; or "sum" over the rows; or "none", the loss of each row, (…)

    A row of t is the truth: one-hot, smoothed, or as it was given. n is the number of rows that
    count. With p = softmax(z),

        L = -1/n Σ t ⊙ log p

    log softmax has the VJP g - p Σ g (chapter 3.6), here with g = -t/n, and a row of t sums to 1:

        ∂L/∂z = (p - t)/n        (0 in a row that does not count)

    The gradient is prediction minus truth. Where a model is sure and wrong, p - t is still near 1.

    With weights, t is multiplied by them, and n is the sum of the weights of the rows' classes. (If
    the truth is given as probabilities, n stays the number of rows. So one-hot rows do not give the
    loss that their classes give.) A row of t then sums to another number, and
    ∂L/∂z = (p Σ t - t)/n, with the sum over the row's classes. With "sum" and "none" n is 1.

    The targets are constants: for a gradient with respect to them use `kl_div` (chapter 6.4).
    ValueError for shapes that do not fit, a class out of range, or no target left; TypeError for
    targets that are not integers.

    >>> from minigrad import grad
    >>> cross_entropy([[0.0, 0.0]], [1])                    # log 2
    array(0.69314718)
    >>> grad(cross_entropy)([[0.0, 0.0]], [1])              # (½, ½) minus (0, 1)
    array([[ 0.5, -0.5]])
    >>> grad(cross_entropy)([[0.0, 0.0]], [[0.5, 0.5]])     # the prediction is the truth
    array([[0., 0.]])
    """
    check_reduction(reduction)
    return _cross_entropy(
        floats(logits),
        targets=_constant(targets, "targets"),
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        weight=None if weight is None else _constant(weight, "weight"),
        reduction=reduction,
    )


def _composed_cross_entropy(
    logits,
    /,
    targets,
    ignore_index=None,
    label_smoothing=0.0,
    weight=None,
    reduction="mean",
):
    truth, counts = _truth(logits, targets, ignore_index, label_smoothing, weight, reduction)
    log_p = log_softmax(np.where(counts, logits, 0))
    terms = truth * np.where(truth == 0, 0, log_p)
    return -(np.sum(terms, axis=-1) if reduction == "none" else np.sum(terms))


@fused(definition=_composed_cross_entropy, name="cross_entropy")
def _cross_entropy(
    logits,
    /,
    targets,
    ignore_index=None,
    label_smoothing=0.0,
    weight=None,
    reduction="mean",
):
    truth, counts = _truth(logits, targets, ignore_index, label_smoothing, weight, reduction)
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
    return -(terms.sum(axis=-1) if reduction == "none" else terms.sum()), backward


# ---------------------------------------------------- A first reading may stop here.
# What follows: the truth, and sentences for what does not fit.


def _truth(logits, targets, ignore_index, label_smoothing, weight, reduction):
    """t/n, with the t and n of the docstring above, and which rows count, (…, 1)."""
    shape = logits.shape
    if not 0.0 <= label_smoothing < 1.0:
        raise ValueError(f"label_smoothing lies between 0 and 1, but is {label_smoothing}")
    if shape and targets.shape == shape and targets.dtype.kind == "f":
        _refuse_what_is_not_a_distribution(targets, ignore_index)
        truth, counts = targets, np.ones(shape[:-1], bool)
        n = number_for_mean(counts, reduction)
        check_weight(weight, shape[-1])
    elif shape and targets.shape == shape[:-1]:
        chosen, counts = counted_targets(targets, shape[-1], ignore_index, "targets")
        truth = chosen[..., None] == np.arange(shape[-1])
        n = number_for_mean(weight_of_rows(weight, chosen, counts, shape[-1]), reduction)
    elif targets.shape == shape:
        raise TypeError(
            f"targets of the logits' shape {shape} are probabilities, of a floating dtype: got "
            f"{targets.dtype}; of one-hot rows take .argmax(-1)"
        )
    else:
        raise ValueError(
            f"one target for each row: the targets have shape {targets.shape}, the logits {shape}"
        )
    counts = counts[..., None]
    truth = ((1 - label_smoothing) * truth + label_smoothing / shape[-1]) * (counts / n)
    return (truth if weight is None else truth * weight).astype(logits.dtype), counts


def _refuse_what_is_not_a_distribution(targets, ignore_index):
    if ignore_index is not None:
        raise ValueError("ignore_index is for targets that are classes: these are probabilities")
    if not ((targets >= 0).all() and np.allclose(targets.sum(axis=-1), 1, rtol=0, atol=0.01)):
        raise ValueError(
            "targets of the logits' shape are probabilities, in rows that sum to 1: these are not"
        )


def check_reduction(reduction: str) -> None:
    """Refuse a reduction that is not "mean", "sum" or "none"."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is 'mean', 'sum' or 'none': got {reduction!r}")


def weight_of_rows(weight: Any, chosen: Array, counts: Array, num_classes: int) -> Array:
    """How much each row counts: the weight of its class, 1 without weights; 0 if it is ignored."""
    if weight is None:
        return counts
    check_weight(weight, num_classes)
    return np.where(counts, np.asarray(weight, float)[chosen], 0)


def check_weight(weight: Any, num_classes: int) -> None:
    """Refuse a weight that is not one number for each class."""
    if weight is None:
        return
    weights = real_array(weight, "weight")
    if weights.shape != (num_classes,) or not (weights >= 0).all():
        raise ValueError(
            f"weight is a number, 0 or more, for each of the {num_classes} classes: got {weight}"
        )


def _constant(values, name):
    """A copy as an array: the record needs it as it is now."""
    if isinstance(values, Tensor) and values.requires_grad:
        raise TypeError(
            f"cross_entropy: {name} must be a constant, but {describe(values)} requires a "
            f"gradient: use {name}.detach() (or are the first two arguments exchanged?)"
        )
    refuse_masked(values, "cross_entropy")
    return np.array(values)


def number_for_mean(weights: Array, reduction: str) -> Any:
    """n: the number by which the sum over the rows is divided. It is 1 if the sum was asked for."""
    if reduction != "mean":
        return 1
    n = float(weights.sum())
    if not n > 0:
        raise ValueError("no target is left to take the mean over")
    return n
