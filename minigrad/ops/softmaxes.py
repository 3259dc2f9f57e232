"""3.6 · Softmax: derivatives worth doing by hand.

In chapter 0: `e = np.exp(x)`.

Why derive by hand what could be composed? Composed of `exp`, `sum` and `log`, the three operations
here would be right on paper, and so would their gradients. But the composed record keeps three to
five nodes where one formula suffices, exp overflows at 710 (in float32 at 89), and above all the
formula shows what the composed record hides: when attention stops learning.

All three subtract the largest element first. That changes nothing in the result, since
exp(xᵢ - m) / Σ exp(xⱼ - m) has exp(-m) above and below, and it keeps every exponent at or
under 0. *That* is the numerical stability which texts often credit to attention's scale 1/√d_k.

Exercises 13 and 14 of `python -m demos learn`: write the rules of softmax and of its logarithm.
"""

import numpy as np

from minigrad.engine.rules import primitive
from minigrad.ops.elementwise import floats
from minigrad.ops.reduce import kept_shape


@primitive
def softmax(x, /, axis=-1):
    """yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ): turn scores into weights that are positive and sum to 1.

    Every output feels every input, through the shared sum. With Z = Σⱼ exp(xⱼ), and δᵢⱼ = 1 if
    i = j, else 0, the quotient rule gives ∂yᵢ/∂xⱼ = δᵢⱼ exp(xᵢ)/Z - exp(xᵢ) exp(xⱼ)/Z², that is

        ∂yᵢ/∂xⱼ = yᵢ (δᵢⱼ - yⱼ)        J = diag(y) - y yᵀ

    J is n × n, but we only ever want it multiplied by g = ∂L/∂y (J is symmetric):

        ∂L/∂x = J g = y ⊙ g - y (yᵀ g) = y ⊙ (g - ⟨y, g⟩)

    ⟨y, g⟩ = Σᵢ yᵢ gᵢ is the average of g under the weights y. So each score gets

        its weight × (its g - the average g)

    For y = (.9, .1) and g = (1, 0) the average is .9, and the scores get .9 × (1 - .9) = .09 and
    .1 × (0 - .9) = -.09. They sum to 0, as always, because raising all scores together changes no
    weight.

    When y is nearly one-hot (one weight is 1 - ε, the rest at most ε), the average is nearly the g
    of the large weight, so its score gets almost nothing. The other scores get almost nothing
    either, because their weights are near 0. So ∂L/∂x is at most 2ε times as long as g. (The
    absolute values in row i of J sum to 2 yᵢ (1 - yᵢ) ≤ 2ε. The largest of these sums bounds every
    eigenvalue of J, and J is symmetric, so no g becomes longer by a larger factor.) This is where
    √d_k enters (chapter 16).

    x has any shape; the weights sum to 1 along `axis`. (A row of nothing but -∞ gives NaN.)

    >>> softmax([0.0, np.log(3.0)])
    array([0.25, 0.75])
    >>> from minigrad import grad
    >>> grad(lambda x: softmax(x)[0])(np.log([0.9, 0.1]))       # L is y₀, so g = (1, 0)
    array([ 0.09, -0.09])
    """
    x = floats(x)  # integers become float64
    e = np.exp(x - _largest(x, axis))
    return (
        e / e.sum(axis=axis, keepdims=True),
        lambda g, y: y * (g - (y * g).sum(axis=axis, keepdims=True)),
    )


@primitive
def log_softmax(x, /, axis=-1):
    """yᵢ = xᵢ - log Σⱼ exp(xⱼ): the logarithm of softmax, without ever forming a weight.

    Taking the log afterwards fails where it matters: a weight that underflowed to 0 has log
    -∞, and its gradient is NaN. Here the smallest yᵢ of finite scores is a plain negative number.
    With Z = Σⱼ exp(xⱼ) the chain rule gives ∂(log Z)/∂xⱼ = exp(xⱼ)/Z = pⱼ, where p = exp(y) is the
    softmax. So

        ∂yᵢ/∂xⱼ = δᵢⱼ - pⱼ        ∂L/∂x = g - p Σᵢ gᵢ

    The usual loss for guessing the true class c is L = -y_c (cross-entropy). Then g is -1 at c
    and 0 elsewhere, and ∂L/∂x = p - onehot(c), where onehot(c) is 1 at c and 0 elsewhere:
    prediction minus truth. This gradient is 0 only where the two are equal.

    >>> np.exp(log_softmax([0.0, np.log(3.0)]))
    array([0.25, 0.75])
    """
    x = floats(x)  # integers become float64
    shifted = x - _largest(x, axis)
    with np.errstate(divide="ignore"):  # the log of 0, where an axis has no elements
        log_sum = np.log(np.exp(shifted).sum(axis=axis, keepdims=True))
    return shifted - log_sum, lambda g, y: g - np.exp(y) * g.sum(axis=axis, keepdims=True)


# ---------------------------------------------------- A first reading may stop here.
# What follows: the logarithm of the sum alone, and rows without elements.


@primitive
def logsumexp(x, /, axis=None, *, keepdims=False):
    """y = log Σⱼ exp(xⱼ): a smooth maximum, between max(x) and max(x) + log n.

    The chain rule through log and Σ gives exp(xⱼ)/Σ exp, which is a softmax:

        ∂y/∂xⱼ = exp(xⱼ - y)        ∂L/∂xⱼ = g exp(xⱼ - y)

    So softmax is the gradient of logsumexp, as one-hot is the gradient of max. If every xⱼ is
    -∞ (nothing to sum), y is -∞ and the gradient 0.

    >>> np.exp(logsumexp([0.0, np.log(3.0)])).round(12)     # 1 + 3
    np.float64(4.0)
    """
    x = floats(x)  # integers become float64
    largest = _largest(x, axis)
    shift = np.where(np.isfinite(largest), largest, 0)
    total = np.exp(x - shift).sum(axis=axis, keepdims=True)

    def vjp(g, y):
        shape = kept_shape(x.shape, axis)
        y = np.where(y == -np.inf, 0, y).reshape(shape)
        return g.reshape(shape) * np.exp(x - y)

    with np.errstate(divide="ignore"):  # the log of an empty sum is -∞, and meant
        y = np.log(total) + shift
    # This sum runs over axes of length 1: it adds nothing up, it only drops them.
    return y.sum(axis=axis, keepdims=keepdims), vjp


def _largest(x, axis):
    """Return the largest xᵢ over the axis, which stays with length 1; 0 if x has no elements."""
    if x.size:
        return x.max(axis=axis, keepdims=True)
    return np.zeros(kept_shape(x.shape, axis), x.dtype)
