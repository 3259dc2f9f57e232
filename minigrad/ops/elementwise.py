"""3.1 · Elementwise operations: diagonal Jacobians.

In chapter 0: `return a * b, lambda g: g * b, lambda g: g * a`.

What is the derivative of an operation that never mixes elements? If yᵢ = f(xᵢ), then the Jacobian,
the table of all ∂yᵢ/∂xⱼ, has f′(xᵢ) on its diagonal and 0 elsewhere. A vector times a diagonal
matrix is an elementwise product, so every VJP of this chapter has one form:

    ∂L/∂x = g ⊙ f′(x)        g = ∂L/∂y

With two inputs, yᵢ = f(aᵢ, bᵢ), the same holds for each: ∂L/∂a = g ⊙ ∂f/∂a. All that is left
to derive is the ordinary derivative f′, and that is what the docstrings below do. Where f′ is
shorter when it is written with the output y, as for y = exp(x), the rule uses y, which the engine
passes to the VJP. Then nothing is computed twice, and the closure holds no array.

If broadcasting stretched *a* or b to the output's shape, its VJP returns a gradient of that shape.
The engine sums it back to the input's shape (chapter 2.1), so the rules below ignore broadcasting.

Exercise 7 of `python -m demos learn`: write the rule of exp, your first.
"""

from typing import Any

import numpy as np

from minigrad.engine.rules import primitive
from minigrad.engine.tensor import Tensor


@primitive
def add(a, b, /):
    """y = a + b. Each input moves y by as much as it moves itself: ∂y/∂a = ∂y/∂b = 1.

    The gradient passes through a sum unchanged, to both sides: in x + f(x), x always has one
    undamped way back.
    """
    return a + b, _unchanged, _unchanged


def _unchanged(g, y):
    return g


@primitive
def subtract(a, b, /):
    """y = a - b: ∂y/∂a = 1 and ∂y/∂b = -1."""
    return a - b, _unchanged, _negated


def _negated(g, y):
    return -g


@primitive
def multiply(a, b, /):
    """y = a ⊙ b: ∂y/∂a = b and ∂y/∂b = a. Each side's gradient is scaled by the other side.

    A constant that shrinks values on the way forward shrinks their gradient on the way back.
    """
    return a * b, lambda g, y: g * b, lambda g, y: g * a


@primitive
def divide(a, b, /):
    """y = a / b: ∂y/∂a = 1/b, and ∂y/∂b = -a/b² = -y/b."""
    return a / b, lambda g, y: g / b, lambda g, y: -g * y / b


@primitive
def negative(x, /):
    """y = -x: f′ = -1."""
    return -x, lambda g, y: -g


@primitive
def exp(x, /):
    """y = exp(x): f′ = y, the function that is its own derivative."""
    return np.exp(floats(x)), lambda g, y: g * y


@primitive
def log(x, /):
    """y = log(x): from exp(y) = x follows exp(y) ∂y/∂x = 1, so f′ = 1/x."""
    return np.log(floats(x)), lambda g, y: g / x


@primitive
def sqrt(x, /):
    """y = √x: from y² = x follows 2y ∂y/∂x = 1, so f′ = 1/(2y). Infinite at 0."""
    return np.sqrt(floats(x)), lambda g, y: g / (2 * y)


@primitive
def tanh(x, /):
    """y = sinh(x)/cosh(x): every number is brought between -1 and 1.

    As sinh′ = cosh and cosh′ = sinh, the quotient rule gives

        f′ = (cosh² x - sinh² x)/cosh² x = 1 - y²

    The slope is 1 at 0 and dies as |y| → 1. There tanh is **saturated**: no gradient passes.
    """
    return np.tanh(floats(x)), lambda g, y: g * (1 - y * y)


@primitive
def maximum(a, b, /):
    """y = max(a, b): the larger input is copied, so it gets the gradient and the other gets 0.

    At a tie the slope for *a* is 1 if *a* moves up, and 0 if it moves down. The slope used is the
    mean of the two, ½ for each input. The two gradients then still sum to g. So `maximum(x, 0)` has
    slope ½ at exactly 0. (The `relu` of chapter 6.1 has the same values, and the slope 0 there.)
    """
    return (
        np.maximum(a, b),
        lambda g, y: np.where(a > b, g, np.where(a < b, 0, g / 2)),  # neither: a tie, or a NaN
        lambda g, y: np.where(b > a, g, np.where(b < a, 0, g / 2)),
    )


# ---------------------------------------------------- A first reading may stop here.
# What follows: the power, whose formula needs care at 0, and more of the same.
#
# Why `_unchanged` and `_negated` are functions: a VJP is usually a lambda, made anew for each
# operation. The VJPs of `add` and `subtract` need no array, and records have many of them. So they
# are made once, which saves work for Python's cycle collector.


@primitive
def power(a, b, /):
    """y = aᵇ = exp(b log a): by the chain rule, y times the derivative of the exponent b log a.

        ∂y/∂a = y · b/a = b aᵇ⁻¹        ∂y/∂b = y log a

    At a = 0 the formulas give 0 · ∞ in two cases: ∂y/∂a if b = 0, and ∂y/∂b if b > 0. In both the
    function is constant in that input, so the rule returns 0, at every order. (At a = b = 0 it
    returns 0 for ∂y/∂b too, where 0ᵇ jumps.) `x**0.5` keeps its infinite slope at 0, and the log of
    a negative base is NaN, as in NumPy.
    """
    exponent = b
    if b.ndim == 0 and a.dtype.kind == "f":
        exponent = b.item()  # NumPy is fastest with a number: x**2 is x * x
    if isinstance(b, np.ndarray) and b.ndim == 0 and b != 0:
        slope = lambda: exponent * a ** (exponent - 1)
    else:
        slope = lambda: b * a ** np.where((a == 0) & (b == 0), 1, b - 1)
    return (
        lambda: a**exponent,
        lambda g, y: g * slope(),
        lambda g, y: g * y * np.log(floats(np.where((a == 0) & (b >= 0), 1, a))),
    )


@primitive
def positive(x, /):
    """y = +x: f′ = 1. A new tensor of the same values: so `grad` (chapter 2.3) makes variables."""
    return +x, lambda g, y: g


@primitive
def expm1(x, /):
    """y = exp(x) - 1: f′ = exp(x) = y + 1. Near 0, where exp(x) - 1 cancels, it keeps all digits.

    >>> expm1(0.0), expm1(1e-20)
    (array(0.), array(1.e-20))
    """
    return lambda: np.expm1(floats(x)), lambda g, y: g * (y + 1)


@primitive
def log1p(x, /):
    """y = log(1 + x): f′ = 1/(1 + x). Near 0, where 1 + x drops digits of x, it keeps all digits.

    >>> log1p(0.0), log1p(1e-20)
    (array(0.), array(1.e-20))
    """
    return lambda: np.log1p(floats(x)), lambda g, y: g / (1 + x)


@primitive
def sigmoid(x, /):
    """y = 1/(1 + exp(-x)): every number is brought between 0 and 1.

    With s = 1 + exp(-x), ∂y/∂x = exp(-x)/s² = (1/s) (1 - 1/s), that is

        f′ = y (1 - y)

    The slope is ¼ at 0 and dies on both sides, as tanh's does: y = ½ (1 + tanh(x/2)). The value is
    computed as exp(-logaddexp(0, -x)), and logaddexp never forms exp(-x), which could overflow.
    """
    return lambda: np.exp(-np.logaddexp(0, -floats(x))), lambda g, y: g * y * (1 - y)


@primitive
def sin(x, /):
    """y = sin(x): f′ = cos(x)."""
    return lambda: np.sin(floats(x)), lambda g, y: g * cos(x)


@primitive
def cos(x, /):
    """y = cos(x): f′ = -sin(x)."""
    return lambda: np.cos(floats(x)), lambda g, y: -g * sin(x)


@primitive
def abs(x, /):
    """y = |x|: f′ = sign(x), and 0 at the kink, the mean of the slopes on its two sides."""
    return lambda: np.abs(x), lambda g, y: g * sign(x)


@primitive
def sign(x, /):
    """y = -1, 0 or 1: flat, so f′ = 0 (at the jump too, where no number would be right)."""
    return lambda: np.sign(x), lambda g, y: 0 * g


@primitive
def logaddexp(a, b, /):
    """y = log(exp(a) + exp(b)): a maximum without its kink. softplus(x) is logaddexp(x, 0).

    ∂y/∂a = exp(a)/(exp(a) + exp(b)) = 1/(1 + exp(b - a)) = σ(a - b), a's part of the sum; b has the
    rest. (On paper that is exp(a - y) too. But y is rounded: at a = b = 1e7 in float32 it is a + 1,
    and exp(a - y) is 0.37 for both.) Where both are -∞ the sum is empty, y is -∞, and the gradient
    0 (as in `logsumexp`, chapter 3.6).
    """

    def part(x, other, y):
        infinite = (x == other) & np.isinf(x)  # where the difference would be NaN
        difference = np.where(infinite, 0, x) - np.where(infinite, 0, other)
        return np.where(y == -np.inf, 0, sigmoid(difference))

    return (
        lambda: np.logaddexp(floats(a), floats(b)),
        lambda g, y: g * part(a, b, y),
        lambda g, y: g * part(b, a, y),
    )


@primitive
def minimum(a, b, /):
    """y = min(a, b): the smaller input is copied. It is maximum's rule, seen from below."""
    return (
        np.minimum(a, b),
        lambda g, y: np.where(a < b, g, np.where(a > b, 0, g / 2)),
        lambda g, y: np.where(b < a, g, np.where(b > a, 0, g / 2)),
    )


def floats(x: Any) -> Any:
    """Return integers and booleans as float64, and a floating array or Tensor as it is.

    NumPy computes with what it is given: -x of unsigned integers wraps around, and exp(x) of an
    int8 array is a float16, which no Tensor holds. A rule that does either asks for floats first.

    >>> from minigrad.ops.elementwise import floats
    >>> floats(np.array([1, 2], np.uint8))
    array([1., 2.])
    """
    if not isinstance(x, (np.ndarray, Tensor)):
        x = np.asarray(x)
    return x if x.dtype.kind == "f" else x.astype(float)
