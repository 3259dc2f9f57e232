"""3.7 · Fused operations: several steps, one node.

What does it cost to compose? Layer normalisation, written as a formula, records nine nodes and
walks fourteen VJPs. Derived on paper, its gradient is one line that needs one array of the
input's size, and one number for each row. So each operation below, which Transformers run at every
step, has a rule that does everything at once. One function `backward` returns the gradients of all
inputs, because they need mostly the same work (chapter 1.3).

Beside each operation is its `definition`, the same function composed of other operations. The
definition says what is meant, it is used where the derivative itself is differentiated, and tests
compare the operation with it.

    >>> from minigrad import Tensor, unfused
    >>> from minigrad.engine.replay import behind
    >>> x, gain, bias = (Tensor([1.0, 3.0], requires_grad=True) for _ in range(3))
    >>> with unfused():
    ...     nodes = [t.node for t in behind(layer_norm(x, gain, bias)) if t.node]
    >>> len(nodes), sum(t.requires_grad for node in nodes for t in node.inputs)
    (9, 14)
"""

import math
from typing import Any

import numpy as np

from minigrad.engine.rules import fused
from minigrad.engine.tensor import Array, Tensor, describe, real_array
from minigrad.ops.elementwise import floats
from minigrad.ops.indexing import counted_targets
from minigrad.ops.softmaxes import log_softmax


def _layer_norm(x, gain, bias, /, eps=1e-5):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / deviation(centred, eps) * gain + bias


@fused(definition=_layer_norm)
def layer_norm(x, gain, bias, /, eps=1e-5):
    """y = n ⊙ gain + bias, with n = (x - μ)/σ: rows of mean 0 and variance 1, rescaled.

    μ is the mean of the row, σ² its variance plus eps (Ba et al. 2016). (…, d), (d,), (d,) → (…, d)

    Move x by dx. The mean moves by dμ = mean(dx). From σ² = mean((x - μ)²) + eps follows
    2σ dσ = 2 mean((x - μ)(dx - dμ)), and as x - μ has mean 0, dμ drops out: dσ = mean(n ⊙ dx). So

        dn = (dx - dμ)/σ - (x - μ)/σ² dσ = (dx - mean(dx) - n mean(n ⊙ dx))/σ

    Apart from the division by σ, dn is dx without its part along (1, …, 1) and (up to eps) without
    its part along n: n does not change when a row is moved up, or stretched. The map from dx to dn
    is symmetric, as each of its parts is, so h = g ⊙ gain goes back by the same formula:

        ∂L/∂x = (h - mean(h) - n mean(n ⊙ h))/σ
        ∂L/∂gain = g ⊙ n        ∂L/∂bias = g        (summed over the rows by the engine)

    The gradient is divided by σ: a row twice as large gets a gradient half as large.

    >>> layer_norm([[1.0, 3.0]], [1.0, 1.0], [0.0, 10.0], eps=0.0)
    array([[-1., 11.]])
    """
    n = x - x.mean(axis=-1, keepdims=True)
    sigma = deviation(n, eps)
    n /= sigma

    def backward(g, y, needs):
        h = None
        if needs[0]:
            h = g * gain
            along = (h * n).mean(axis=-1, keepdims=True)
            h -= h.mean(axis=-1, keepdims=True)
            h -= n * along
            h /= sigma
        return h, g * n if needs[1] else None, g if needs[2] else None

    return n * gain + bias, backward


def deviation(n: Any, eps: float) -> Any:
    """σ = √(mean(n²) + eps) of each row of n, also where a square alone would overflow."""
    with np.errstate(over="ignore"):
        if isinstance(n, Tensor):
            variance = np.mean(n * n, axis=-1, keepdims=True)
        else:  # without an array of all squares
            variance = np.vecdot(n, n)[..., None] / n.shape[-1]
    if not np.isinf(variance).any():
        return np.sqrt(variance + eps)
    scale = size_in_powers_of_two(n, -1)
    n = n / scale
    return scale * np.sqrt(np.mean(n * n, axis=-1, keepdims=True) + eps / scale / scale)


def size_in_powers_of_two(x: Any, axis: Any) -> Any:
    """For each line of x along the axis, the power of two below its largest |xᵢ|, a plain array.

    Divided by it a line has elements of about 1, whose squares neither overflow nor vanish, and no
    digit is rounded off. A line without such a number (all 0, or with ∞ or NaN) keeps its size.

    >>> from minigrad.ops.fused import size_in_powers_of_two
    >>> size_in_powers_of_two(np.array([5.0, 1e-3]), 0)
    array([4.])
    """
    array = x.data if isinstance(x, Tensor) else x
    largest = np.abs(array).max(axis=axis, keepdims=True)
    usual = np.isfinite(largest) & (largest > 0)
    _, exponent = np.frexp(np.where(usual, largest, 1))
    return np.ldexp(np.ones((), array.dtype), exponent - 1)


# ---------------------------------------------------- A first reading may stop here.
# What follows: GELU and cross-entropy.


def _gelu_tanh(x, /):
    return 0.5 * x * (1 + np.tanh(_ROOT * x * (1 + 0.044715 * np.minimum(x * x, _FAR))))


_ROOT = math.sqrt(2 / math.pi)
_FAR = 1e3  # a square from which on tanh(u) is ±1, and a larger one would only overflow


@fused(definition=_gelu_tanh)
def gelu_tanh(x, /):
    """y = ½ x (1 + t), t = tanh(u), u = √(2/π) (x + 0.044715 x³): GELU as GPT-2 computes it.

    ½ (1 + t) is near Φ(x), the probability that a standard normal number is below x (see `gelu`,
    chapter 6.1). The product rule, with tanh′ = 1 - t²:

        f′ = ½ (1 + t) + ½ x (1 - t²) u′        u′ = √(2/π) (1 + 0.134145 x²)

    >>> from minigrad import gelu
    >>> x = np.linspace(-5.0, 5.0, 101)
    >>> np.abs(gelu_tanh(x) - gelu(x)).max() < 5e-4
    np.True_
    """
    t = np.asarray(0.044715 * x * x)  # (a 0-d product is a NumPy scalar, and cannot be written)
    t += 1
    t *= x
    t *= _ROOT
    np.tanh(t, out=t)

    def backward(g, y, needs):
        slope = np.asarray(x * x)  # u′ in the making
        np.minimum(slope, _FAR, out=slope)
        slope *= 0.134145
        slope += 1
        slope *= _ROOT
        slope *= 1 - t * t  # tanh′
        slope *= x
        slope += 1 + t
        slope *= 0.5 * g
        return (slope,)

    y = 1 + t
    y *= x
    y *= 0.5
    return y, backward


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

    The row t is the truth (one-hot, smoothed, or as it was given) divided by n, the number of rows
    that count: so the sum is the mean. log softmax has the VJP g - p Σ g (chapter 3.6), here with
    g = -t, and the t of a row that counts sum to 1/n:

        ∂L/∂z = p/n - t        (0 in a row that does not count)

    The gradient is prediction minus truth. It is 0 only if the two are equal, however sure the
    model is.

    With weights, t is multiplied by them, and n is the sum of the weights of the rows' classes. (If
    the truth is given as probabilities, n stays the number of rows. So one-hot rows do not give the
    loss that their classes give.) With "sum" and "none" n is 1. Then ∂L/∂z = p Σ t - t.

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


def _truth(logits, targets, ignore_index, label_smoothing, weight, reduction):
    """t, as the docstring above says, and which rows count, (…, 1)."""
    shape = logits.shape
    if not 0.0 <= label_smoothing < 1.0:
        raise ValueError(f"label_smoothing lies between 0 and 1, but is {label_smoothing}")
    if shape and targets.shape == shape and targets.dtype.kind == "f":
        _refuse_what_is_no_distribution(targets, ignore_index)
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


def _refuse_what_is_no_distribution(targets, ignore_index):
    if ignore_index is not None:
        raise ValueError("ignore_index is for targets that are classes: these are probabilities")
    if not ((targets >= 0).all() and np.allclose(targets.sum(axis=-1), 1, rtol=0, atol=0.01)):
        raise ValueError(
            "targets of the logits' shape are probabilities, in rows that sum to 1: these are not"
        )


def check_reduction(reduction: str) -> None:
    """Refuse a word that a loss does not know."""
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
    return np.array(values)


def number_for_mean(weights: Array, reduction: str) -> Any:
    """n: the number by which the sum over the rows is divided. It is 1 if the sum was asked for."""
    if reduction != "mean":
        return 1
    n = float(weights.sum())
    if not n > 0:
        raise ValueError("no target is left to take the mean over")
    return n
