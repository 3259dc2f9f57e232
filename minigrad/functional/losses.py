"""6.4 · Losses: how wrong a model is; and lookups and dropout, composed.

What does a model need before it can learn? A number that says how wrong it is. A loss is a function
like any other. The losses of classifiers, chapter 3.10's `cross_entropy` and the binary one below,
take the *logits*, the scores before any softmax or sigmoid. A probability that has underflowed to 0
has an infinite logarithm, and its gradient is lost. Its logit is an ordinary number, and the
gradient with respect to the logit is prediction minus truth, which is not 0 while the two differ.
`mse` is for plain numbers.

Every loss is the mean over its targets (over rows for the losses of classes, over elements for the
others), so that its gradient does not grow with the batch. With `reduction="sum"` it is their sum,
with `reduction="none"` it is not one number but the loss of each target: for weights of your own,
or to see which target is hard.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.engine.hints import in_our_words
from minigrad.engine.options import as_number
from minigrad.engine.tensor import Array, Tensor, describe
from minigrad.functional.activations import square
from minigrad.ops import getitem, logaddexp, mean, multiply, subtract, sum, where
from minigrad.ops.classification import check_reduction
from minigrad.ops.elementwise import floats
from minigrad.ops.indexing import integers_below


def mse(prediction: Any, target: Any, *, reduction: str = "mean") -> Tensor:
    """Return the mean squared error of two tensors of the same shape.

    (n, 1) against (n,) would broadcast to n × n differences, and the model would train badly. So
    two different shapes are refused.

    >>> mse([1.0, 2.0], [1.0, 4.0])
    array(2.)
    >>> mse([1.0, 2.0], [1.0, 4.0], reduction="none")
    array([0., 4.])
    """
    _check_equal_shapes(prediction, target, "mse")
    return _reduced(square(subtract(floats(prediction), floats(target))), reduction)


def binary_cross_entropy_with_logits(
    logits: Any, targets: Any, *, reduction: str = "mean"
) -> Tensor:
    """Return the mean of -t log σ(z) - (1 - t) log(1 - σ(z)), for targets t between 0 and 1.

    log σ(z) = z - log(1 + eᶻ) and log(1 - σ(z)) = -log(1 + eᶻ): together log(1 + eᶻ) - t z, in
    which nothing overflows.

    >>> binary_cross_entropy_with_logits([0.0, 800.0], [1.0, 1.0])       # log 2 and 0
    array(0.34657359)
    """
    _check_equal_shapes(logits, targets, "binary_cross_entropy_with_logits")
    values = targets.data if isinstance(targets, Tensor) else np.asarray(targets)
    if ((values < 0) | (values > 1)).any():
        raise ValueError("targets are 0 or 1, or probabilities between: these are not")
    if values.dtype.kind in "iub":
        targets = values.astype(getattr(logits, "dtype", float))  # float32 stays float32
    return _reduced(subtract(logaddexp(logits, 0), multiply(targets, logits)), reduction)


def one_hot(indices: Any, num_classes: int, *, dtype: Any = float) -> Array:
    """Return a row of zeros with a 1 for each index. (…) → (…, num_classes), a plain array.

    >>> one_hot([2, 0], 3)
    array([[0., 0., 1.],
           [1., 0., 0.]])
    """
    places = integers_below(indices, num_classes, "one_hot")
    rows: Array = np.equal(places[..., None], np.arange(num_classes)).astype(dtype)
    return rows


def embedding(weight: Any, indices: Any, *, padding_idx: int | None = None) -> Tensor:
    """Return the rows of weight that the indices name. (V, d), (…) → (…, d)

    It is one_hot(indices) @ weight without the zeros: row i gets the gradients of all its uses.
    Unlike `weight[indices]` it refuses negative indices, because no token has one.

    The token `padding_idx` stands for nothing: its vector is 0, and its row gets no gradient.

    >>> embedding([[1.0, 2.0], [3.0, 4.0]], [1, 1]).sum()
    np.float64(14.0)
    >>> embedding([[1.0, 2.0], [3.0, 4.0]], [1, 0], padding_idx=0)
    array([[3., 4.],
           [0., 0.]])
    """
    shape = np.shape(weight)
    if len(shape) != 2:
        raise ValueError(f"embedding takes a table of rows, (V, d): got {describe(weight)}")
    places = integers_below(indices, shape[0], "embedding")
    rows = getitem(weight, places)
    if padding_idx is None:
        return rows
    padding_idx = as_number("padding_idx", padding_idx, 0, shape[0], whole=True)
    return where(np.equal(places, padding_idx)[..., None], 0, rows)


@in_our_words
def dropout(x: Any, p: float, *, rng: np.random.Generator) -> Tensor:
    """Set each element to 0 with probability p, else multiply it by 1/(1 - p): the mean stays.

    The mask is drawn here and multiplied in as a constant. A rule must not draw it: when the rule
    is called again for the second derivative, it would draw another one. (Srivastava et al. 2014.)
    Threads that share rng get masks that depend on which of them draws first.

    >>> dropout(np.ones(5), 0.5, rng=np.random.default_rng(0))
    array([2., 0., 0., 0., 2.])
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"dropout needs rng=np.random.default_rng(seed): got {type(rng).__name__}")
    p = as_number("dropout", p, 0, 1)  # (at 1 no element would be left to scale up)
    stays = rng.random(np.shape(x)) >= p
    x = floats(x)
    dtype = x.dtype
    return multiply(x, stays.astype(dtype) / np.asarray(1 - p, dtype))


def _reduced(losses: Tensor, reduction: str) -> Tensor:
    """Return the mean or the sum of the losses, or the losses themselves."""
    check_reduction(reduction)
    if reduction == "none":
        return losses
    return mean(losses) if reduction == "mean" else sum(losses)


def _check_equal_shapes(prediction: Any, target: Any, asked: str) -> None:
    """Refuse a target whose shape is not that of the prediction."""
    if np.shape(prediction) != np.shape(target):
        raise ValueError(
            f"{asked} compares equal shapes, but got {np.shape(prediction)} and {np.shape(target)}"
        )
