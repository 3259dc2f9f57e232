"""6.4 · Learning: losses, lookups and dropout, composed.

What does a model need before it can learn? A number that says how wrong it is. A loss is a function
like any other. The losses of classifiers, chapter 3.10's `cross_entropy` and the binary one below,
take the *logits*, the scores before any softmax or sigmoid. A probability that has underflowed to 0
has an infinite logarithm, and its gradient is lost. Its logit is an ordinary number, and the
gradient with respect to the logit is prediction minus truth, which is not 0 while the two differ.
`nll` is for a model that gives log-probabilities already, `kl_div` for a truth that is itself a
distribution, `mse` for plain numbers, and `huber` for numbers among which some are far off.

Every loss is the mean over its targets (over rows for the losses of classes, over elements for the
others), so that its gradient does not grow with the batch. With `reduction="sum"` it is their sum,
with `reduction="none"` it is not one number but the loss of each target: for weights of your own,
or to see which target is hard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.engine.tensor import Array, Tensor, describe, refuse_masked
from minigrad.functional.arranging import take_along_axis
from minigrad.functional.curves import clip, square
from minigrad.ops import (
    getitem,
    log,
    logaddexp,
    mean,
    multiply,
    subtract,
    sum,
    where,
)
from minigrad.ops.classification import check_reduction, number_for_mean, weight_of_rows
from minigrad.ops.elementwise import floats
from minigrad.ops.indexing import counted_targets, integers_below


def mse(prediction: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """The mean squared error. Both must have the same shape.

    (n, 1) against (n,) would broadcast to n × n differences, and the model would train badly. So
    two shapes are refused.

    >>> mse([1.0, 2.0], [1.0, 4.0])
    array(2.)
    >>> mse([1.0, 2.0], [1.0, 4.0], reduction="none")
    array([0., 4.])
    """
    _check_equal_shapes(prediction, target, "mse")
    return _reduced(square(subtract(floats(prediction), floats(target))), reduction)


def huber(prediction: Any, target: Any, *, delta: float = 1.0, reduction: str = "mean") -> Tensor:
    """The mean of ½ d², d = prediction - target, and of δ (|d| - ½ δ) where |d| > δ.

    Beyond δ the loss grows like |d|, and an outlier pulls no harder than with δ (Huber 1964). With
    c, which is d between -δ and δ, and -δ or δ outside, both formulas are c (d - ½ c), which has no
    kink: its slope is c.

    >>> huber([0.0, 0.0], [1.0, 11.0], delta=2.0)              # (½ + 2 (11 - 1)) / 2
    array(10.25)
    """
    _check_equal_shapes(prediction, target, "huber")
    if not delta > 0:
        raise ValueError(f"huber changes from a square to a line at delta > 0: got {delta}")
    d = subtract(floats(prediction), floats(target))
    c = clip(d, -delta, delta)
    return _reduced(multiply(c, subtract(d, multiply(0.5, c))), reduction)


def nll(
    log_p: Any,
    targets: Any,
    *,
    ignore_index: int | None = None,
    weight: Any = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean of -log p(target): how surprised the model is by the truth.   (…, C), (…) → ()

    `nll(log_softmax(z), t)` is `cross_entropy(z, t)`.

    log_p    (…, C): log-probabilities of C classes, from `log_softmax`
    targets  (…): integers from 0 to C - 1
    ignore_index  a target that counts for nothing, such as the padding of a sentence
    weight, reduction  as for `cross_entropy`

    >>> nll(np.log([[0.5, 0.5], [0.25, 0.75]]), [0, 1]).round(6)      # (log 2 + log 4/3) / 2
    np.float64(0.490415)
    """
    refuse_masked(targets, "nll")
    given = np.asarray(targets)
    if given.shape != np.shape(log_p)[:-1] or not np.ndim(log_p):
        raise ValueError(
            f"nll takes log-probabilities (…, C) and a target for each row: they have shapes "
            f"{np.shape(log_p)} and {given.shape}"
        )
    check_reduction(reduction)
    num_classes = np.shape(log_p)[-1]
    chosen, counts = counted_targets(given, num_classes, ignore_index, "nll")
    weights = weight_of_rows(weight, chosen, counts, num_classes)
    picked = take_along_axis(floats(log_p), np.expand_dims(chosen, -1), -1)[..., 0]
    losses = multiply(where(weights != 0, picked, 0), -weights.astype(picked.dtype))
    total = losses if reduction == "none" else sum(losses)
    return multiply(total, 1 / number_for_mean(weights, reduction))


def binary_cross_entropy_with_logits(
    logits: Any, targets: Any, *, reduction: str = "mean"
) -> Tensor:
    """The mean of -t log σ(z) - (1 - t) log(1 - σ(z)), for targets t between 0 and 1.

    log σ(z) = z - log(1 + eᶻ) and log(1 - σ(z)) = -log(1 + eᶻ): together log(1 + eᶻ) - t z, in
    which nothing overflows.

    >>> binary_cross_entropy_with_logits([0.0, 800.0], [1.0, 1.0])       # log 2 and 0
    array(0.34657359)
    """
    if np.shape(logits) != np.shape(targets):
        raise ValueError(
            f"binary cross-entropy compares equal shapes: the logits have {np.shape(logits)}, "
            f"the targets {np.shape(targets)}"
        )
    refuse_masked(targets, "binary_cross_entropy_with_logits")
    values = targets.data if isinstance(targets, Tensor) else np.asarray(targets)
    outside = values[(values < 0) | (values > 1)]
    if outside.size:
        raise ValueError(f"targets are 0 or 1, or probabilities between: got {outside[0]}")
    if values.dtype.kind in "iub":
        targets = values.astype(getattr(logits, "dtype", float))  # float32 stays float32
    return _reduced(subtract(logaddexp(logits, 0), multiply(targets, logits)), reduction)


def kl_div(log_q: Any, p: Any, *, reduction: str = "mean") -> Tensor:
    """The mean over rows of KL(p ‖ q) = Σ p (log p - log q).   (…, C), (…, C) → ()

    How far a model's distribution q is from the truth p, in the information that is lost when q is
    taken for p. It is 0 if they are equal, else positive. A class with p = 0 adds 0. (PyTorch calls
    the mean over rows "batchmean"; its "mean" divides by C as well.)

    log_q  (…, C): log-probabilities of C classes, from `log_softmax`
    p      (…, C): probabilities

    >>> kl_div(np.log([[0.5, 0.5]]), [[1.0, 0.0]]).round(6)            # log 2
    np.float64(0.693147)
    """
    if np.shape(log_q) != np.shape(p) or not np.ndim(p):
        raise ValueError(
            f"kl_div compares two distributions (…, C): the log-probabilities have "
            f"{np.shape(log_q)}, the probabilities {np.shape(p)}"
        )
    p = floats(p)
    if np.less(p, 0).any():
        raise ValueError(
            "kl_div: p holds probabilities, and some are negative; of log-probabilities take np.exp"
        )
    never = np.equal(p, 0)
    lost = multiply(p, subtract(log(where(never, 1, p)), where(never, 0, log_q)))
    return _reduced(sum(lost, axis=-1), reduction)


def one_hot(indices: Any, num_classes: int, *, dtype: Any = float) -> Array:
    """A row of zeros with a 1 at each index. (…) → (…, num_classes), a plain array.

    >>> one_hot([2, 0], 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    places = integers_below(indices, num_classes, "one_hot")
    rows: Array = np.equal(places[..., None], np.arange(num_classes)).astype(dtype)
    return rows


def embedding(weight: Any, indices: Any) -> Tensor:
    """The rows of weight that the indices name. (V, d), (…) → (…, d)

    It is one_hot(indices) @ weight without the zeros: row i gets the gradients of all its uses.
    Unlike `weight[indices]` it refuses negative indices, because no token has one.

    >>> embedding([[1.0, 2.0], [3.0, 4.0]], [1, 1]).sum()
    np.float64(14.0)
    """
    if np.ndim(weight) != 2:
        raise ValueError(f"embedding takes a table (V, d): got {describe(weight)}")
    return getitem(weight, integers_below(indices, np.shape(weight)[0], "embedding"))


def dropout(x: Any, p: float, *, rng: np.random.Generator) -> Tensor:
    """Each element is 0 with probability p, else multiplied by 1/(1 - p): the mean stays.

    The mask is drawn here and multiplied in as a constant. A rule must not draw it: when the rule
    is called again for the second derivative, it would draw another one. (Srivastava et al. 2014.)
    Threads that share rng get masks that depend on which of them draws first.

    >>> dropout(np.ones(5), 0.5, rng=np.random.default_rng(0))
    array([2., 0., 0., 0., 2.])
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"dropout needs rng=np.random.default_rng(seed): got {type(rng).__name__}")
    check_probability(p)
    kept = rng.random(np.shape(x)) >= p
    x = floats(x)
    dtype = x.dtype
    return multiply(x, kept.astype(dtype) / np.asarray(1 - p, dtype))


def check_probability(p: float) -> None:
    """Refuse a p that is not a probability below 1: at 1 no element is left to scale up."""
    if not isinstance(p, int | float | np.integer | np.floating) or not 0.0 <= p < 1.0:
        raise ValueError(f"dropout drops with a probability p, 0 ≤ p < 1: got {p}")


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    """One number for many losses, or the losses themselves."""
    check_reduction(reduction)
    return losses if reduction == "none" else (mean if reduction == "mean" else sum)(losses)


def _check_equal_shapes(prediction: Any, target: Any, asked: str) -> None:
    """Refuse a target that would have to be broadcast."""
    if np.shape(prediction) != np.shape(target):
        raise ValueError(
            f"{asked} compares equal shapes: the prediction has {np.shape(prediction)}, "
            f"the target {np.shape(target)}"
        )
