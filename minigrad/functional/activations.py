"""6.1 · Activations: elementwise functions, composed.

Which formula of a function should the computer use? On paper sinh(x) is ½(exp(x) - exp(-x)). For a
tiny x this difference loses all digits of x; ½(expm1(x) - expm1(-x)) keeps them. The derivative is
computed from the same formula, so it is as accurate, or as inaccurate. Where a formula was chosen
to avoid cancellation, overflow, or 0 · ∞, the docstring says so.

**Kinks.** relu, abs and clip have a corner, where the slope jumps and no number is right. The slope
used there is finite, and each docstring gives it. The rules of chapter 3 take the mean of both
sides, which treats a tie evenly; relu takes the slope below, so that a unit that is exactly off
stays off, as in PyTorch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from minigrad.engine.tensor import Tensor
from minigrad.ops import (
    add,
    erf,
    expm1,
    logaddexp,
    maximum,
    minimum,
    multiply,
    negative,
    sigmoid,
    subtract,
    where,
)
from minigrad.ops.elementwise import floats


def square(x: Any) -> Tensor:
    """x².

    >>> square(3.0)
    array(9.)
    """
    return multiply(x, x)


def sinh(x: Any) -> Tensor:
    """½ (eˣ - e⁻ˣ), from expm1: the two ones that cancel are never added.

    >>> sinh(1e-20)
    array(1.e-20)
    """
    x = floats(x)
    return multiply(0.5, subtract(expm1(x), expm1(negative(x))))


def clip(
    x: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Tensor:
    """min(max(x, a_min), a_max): inside the limits x itself, outside a constant and no gradient.

    At exactly a limit the slope is ½, by the convention for ties. NumPy's newer names for a_min
    and a_max are min= and max=.

    >>> clip([-2.0, 0.5, 2.0], 0.0, 1.0)
    array([0. , 0.5, 1. ])
    """
    a_min = a_min if min is None else min
    a_max = a_max if max is None else max
    if a_min is None and a_max is None:
        raise ValueError("clip needs a limit: a_min and a_max are both None")
    y = x if a_min is None else maximum(x, a_min)
    return y if a_max is None else minimum(y, a_max)


def relu(x: Any) -> Tensor:
    """x where it is positive, else 0. At 0 the slope used is 0.

    >>> relu([-1.0, 2.0])
    array([0., 2.])
    """
    return where(np.less_equal(x, 0), 0, x)  # x ≤ 0 is false for a NaN, so the NaN is kept


def softplus(x: Any) -> Tensor:
    """log(1 + eˣ): relu without its kink. Its slope is the sigmoid.

    >>> softplus([0.0, 800.0]).round(6)
    array([6.93147e-01, 8.00000e+02])
    """
    return logaddexp(x, 0)


def silu(x: Any) -> Tensor:
    """x σ(x), also called swish.

    >>> silu(0.0)
    array(0.)
    """
    return multiply(x, sigmoid(x))


def gelu(x: Any) -> Tensor:
    """x Φ(x), where Φ(x) is the probability that a standard normal number is below x.

    Hendrycks & Gimpel 2016. A relu keeps x or drops it; this weights x by the probability that a
    standard normal threshold lies below it. (Below -8 the 1 + erf in Φ cancels to 0; the error
    stays under 1e-15.) `gelu_tanh`, chapter 3.7, is near to it and faster.

    >>> gelu([-10.0, 0.0, 10.0])
    array([-0.,  0., 10.])
    """
    return multiply(x, multiply(0.5, add(1, erf(multiply(1 / math.sqrt(2), x)))))
