"""3.7 · Fused operations: several steps, one node.

What does it cost to compose? Layer normalisation, written as a formula, records nine nodes and
walks fourteen VJPs. Derived on paper, its gradient is one line that needs one array of the
input's size, and one number for each row. So the operations below, which Transformers run at every
step, have rules that do all steps at once. In all but `linear` and `rotate_pairs`, one function
`backward` returns the gradients of all inputs, because these gradients share most of their work
(chapter 1.3).

Beside each such operation is its `definition`, the same function composed of other operations. The
definition says what is meant, and it is used where the derivative itself is differentiated.
`gradcheck` (chapter 4.3) compares the operation with it:

    >>> from minigrad import gradcheck
    >>> bool(gradcheck(layer_norm, [[1.0, 3.0, 4.0]], [1.0, 2.0, 3.0], [0.0, 0.0, 0.0]))
    True

The nine nodes and the fourteen VJPs of the first sentence:

    >>> from minigrad import Tensor, unfused
    >>> from minigrad.engine.replay import behind
    >>> x, gain, bias = (Tensor([1.0, 3.0], requires_grad=True) for _ in range(3))
    >>> with unfused():
    ...     nodes = [t.node for t in behind(layer_norm(x, gain, bias)) if t.node]
    >>> len(nodes), sum(t.requires_grad for node in nodes for t in node.inputs)
    (9, 14)

Exercise 15 of `python -m demos learn`: write the three VJPs of layer normalisation.
"""

import math
from typing import Any

import numpy as np

from minigrad.engine.rules import fused, primitive
from minigrad.engine.tensor import Tensor, describe, frozen
from minigrad.ops.elementwise import floats
from minigrad.ops.shape import broadcasts_to
from minigrad.ops.softmaxes import softmax


def _layer_norm(x, gain, bias, /, eps=1e-5):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return _rms_norm(centred, gain, eps) + bias


def _rms_norm(x, gain, /, eps=1e-5):
    x = floats(x)
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + float(eps)) * gain


@fused(definition=_layer_norm)
def layer_norm(x, gain, bias, /, eps=1e-5):
    """y = n ⊙ gain + bias, with n = (x - μ)/σ: rows of mean 0 and variance 1, rescaled.

    μ is the mean of the row, σ² its variance plus eps (Ba et al. 2016). (…, d), (d,), (d,) → (…, d)

    Move x by dx. The mean moves by dμ = mean(dx). From σ² = mean((x - μ)²) + eps follows
    2σ dσ = 2 mean((x - μ)(dx - dμ)), and as x - μ has mean 0, dμ drops out: dσ = mean(n ⊙ dx). So

        dn = (dx - dμ)/σ - (x - μ)/σ² dσ = (dx - mean(dx) - n mean(n ⊙ dx))/σ

    Apart from the division by σ, dn is dx without its part along (1, …, 1) and without its part
    along n: n does not change when a row is moved up, or stretched. (Of the part along n, eps/σ² is
    left, since mean(n²) = 1 - eps/σ²: with an eps, stretching changes n a little.) The map from dx
    to dn is symmetric, as each of its parts is, so h = g ⊙ gain goes back by the same formula:

        ∂L/∂x = (h - mean(h) - n mean(n ⊙ h))/σ
        ∂L/∂gain = g ⊙ n        ∂L/∂bias = g        (summed over the rows by the engine)

    The gradient is divided by σ: a row twice as large gets a gradient half as large.

    >>> layer_norm([[1.0, 3.0]], [1.0, 1.0], [0.0, 10.0], eps=0.0)
    array([[-1., 11.]])
    """
    x = floats(x)
    n = x - x.mean(axis=-1, keepdims=True)
    sigma = _root_mean_square(n, eps)
    n /= sigma

    def backward(g, y, needs):
        h = None
        if needs[0]:
            h = g * gain
            along = np.vecdot(h, n)[..., None] / n.shape[-1]
            h -= h.mean(axis=-1, keepdims=True)
            h -= n * along
            h /= sigma
        return h, g * n if needs[1] else None, g if needs[2] else None

    return n * gain + bias, backward


def _root_mean_square(x, eps):
    """Return √(mean(x²) + eps) of each row, without an array of all squares."""
    # (A NumPy float64 would make float32 wider, and so eps is one of Python's.)
    return np.sqrt(np.vecdot(x, x)[..., None] / x.shape[-1] + float(eps))


@fused(definition=_rms_norm)
def rms_norm(x, gain, /, eps=1e-5):
    """y = n ⊙ gain with n = x/σ, σ² = mean(x²) + eps (Zhang & Sennrich 2019).   → (…, d)

    It is `layer_norm` without the mean, and so is its gradient. From 2σ dσ = 2 mean(x ⊙ dx) follows
    dσ = mean(n ⊙ dx) and dn = (dx - n mean(n ⊙ dx))/σ. With h = g ⊙ gain,

        ∂L/∂x = (h - n mean(n ⊙ h))/σ        ∂L/∂gain = g ⊙ n

    >>> rms_norm([[1.0, 7.0]], [1.0, 10.0], eps=0.0)        # σ = 5
    array([[ 0.2, 14. ]])
    """
    x = floats(x)
    sigma = _root_mean_square(x, eps)
    n = x / sigma

    def backward(g, y, needs):
        h = None
        if needs[0]:
            h = g * gain
            h -= n * (np.vecdot(h, n)[..., None] / n.shape[-1])
            h /= sigma
        return h, g * n if needs[1] else None

    return n * gain, backward


# ---------------------------------------------------- A first reading may stop here.
# What follows: a linear layer, masked softmax, GELU, and the turn of rotary positions.


@primitive
def linear(x, w, b, /):
    """Y = X W + b, for the rows of X.   (…, d_in), (d_in, d_out), (d_out,) → (…, d_out)

    The rules of `matmul` and `add`, for all rows of a batch in one product. b was copied to every
    row, so its gradient is the sum of the rows of G: a product with a row of ones, the fastest sum
    that there is.

        ∂L/∂X = G Wᵀ        ∂L/∂W = Xᵀ G        ∂L/∂b = (1 … 1) G

    (No step is shared by the three, so it is a rule like those of the chapters before, which can be
    differentiated again, and needs no definition.)

    >>> linear([[1.0, 2.0]], [[1.0], [10.0]], [100.0])
    array([[121.]])
    """
    if x.ndim < 1 or w.ndim != 2 or x.shape[-1] != w.shape[0] or b.shape != w.shape[1:]:
        raise ValueError("x (…, d_in), w (d_in, d_out) and b (d_out,) are asked for")

    def value():
        y = np.matmul(_rows(x), w, dtype=np.result_type(np.result_type(x, w), b))
        y += b
        return y.reshape(*x.shape[:-1], w.shape[1])

    return (
        value,
        lambda g, y: (_rows(g) @ w.T).reshape(x.shape),
        lambda g, y: _rows(x).T @ _rows(g),
        lambda g, y: np.ones(math.prod(g.shape[:-1]), g.dtype) @ _rows(g),
    )


def _rows(x):
    """Return all rows of x as one matrix.   (…, d) → (N, d)"""
    return x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def masked_softmax(z: Any, mask: Any) -> Tensor:
    """Softmax over those elements of each row where the mask is True; the others are 0.

    A forbidden z counts as -∞, and exp(-∞) is 0. That breaks in a row with nothing else: -∞ - (-∞)
    is NaN. Such a row is 0 everywhere, and gets no gradient. In the others the VJP is softmax's
    (chapter 3.6). There y is 0 where z was forbidden, so g does not count there:

        ∂L/∂z = y ⊙ (g - ⟨g, y⟩)

    A NaN where the mask is True makes its row NaN there. Where the mask is False, the row and its
    gradient are 0 whatever the numbers are. The definition records three nodes: a softmax between
    two `where`s.

    >>> masked_softmax([[1.0, 5.0, 1.0], [1.0, 2.0, 3.0]], [[True, False, True], [False] * 3])
    array([[0.5, 0. , 0.5],
           [0. , 0. , 0. ]])
    """
    mask = np.asarray(mask)
    if not np.ndim(z) or mask.dtype != bool or not broadcasts_to(mask.shape, np.shape(z)):
        raise ValueError(
            f"masked_softmax takes rows, (…, n), and a boolean mask that broadcasts to them: got "
            f"{describe(z)} and {mask.dtype} {mask.shape}"
        )
    return _masked_softmax(floats(z), mask=frozen(mask))


def _composed_masked_softmax(z, /, mask):
    nowhere = ~mask.any(axis=-1, keepdims=True)
    forbidden = np.where(nowhere, 0.0, -np.inf)  # (a row of -∞ would give NaN)
    return np.where(mask, softmax(np.where(mask, z, forbidden)), 0.0)


@fused(definition=_composed_masked_softmax, name="masked_softmax")
def _masked_softmax(z, /, mask):
    # Of a number and NaN fmin takes the number. Where the mask is smaller than z, this takes a
    # seventh to a half of the time of np.where(mask, z, -np.inf).
    y = np.fmin(z, np.where(mask, z.dtype.type(np.nan), z.dtype.type(-np.inf)))
    if y.size:
        y -= np.maximum(y.max(axis=-1, keepdims=True), np.finfo(z.dtype).min)  # (-∞ if no key)
        np.exp(y, out=y)
        total = np.where(mask.any(axis=-1, keepdims=True), y.sum(axis=-1, keepdims=True), 1)
        y /= total
        if np.isnan(total).any():
            y[~np.broadcast_to(mask, y.shape)] = 0

    def backward(g, y, needs):
        with np.errstate(over="ignore", invalid="ignore"):
            found = g - np.vecdot(g, y)[..., None]
            found *= y
        if np.isfinite(found).all():
            return (found,)
        # g or y is not finite, or g has overflowed. Where the mask is False, this does not count.
        g = np.where(mask, g, 0)
        return (np.where(mask, y * (g - np.vecdot(g, y)[..., None]), 0),)

    return y, backward


def _gelu_tanh(x, /):
    near = np.clip(x, -_FAR, _FAR)
    return 0.5 * x * (1 + np.tanh(_ROOT * near * (1 + 0.044715 * near * near)))


_ROOT = math.sqrt(2 / math.pi)
_FAR = 10.0  # from |x| = 10 on tanh(u) is rounded to ±1, so x is cut off there: x³ cannot overflow


@fused(definition=_gelu_tanh)
def gelu_tanh(x, /):
    """y = x s with s = ½ (1 + tanh u), u = √(2/π) (x + 0.044715 x³): GELU as GPT-2 computes it.

    s is near Φ(x), the probability that a standard normal number is below x (see `gelu`,
    chapter 6.1). As tanh u = (exp(u) - exp(-u))/(exp(u) + exp(-u)), s is the sigmoid of 2u, and its
    slope is s (1 - s) 2u′. With e = exp(-2u), and r for 1 - s, the product rule gives

        s = 1/(1 + e)        r = e/(1 + e)
        y′ = s + x s r 2u′ = 1 - r + y r 2u′        u′ = √(2/π) (1 + 0.134145 x²)

    >>> from minigrad import gelu
    >>> x = np.linspace(-5.0, 5.0, 101)
    >>> np.abs(gelu_tanh(x) - gelu(x)).max() < 5e-4
    np.True_
    """
    flat = floats(x).ravel()
    r, y = np.empty_like(flat), np.empty_like(flat)
    for part in _parts(flat):
        x_part, r_part, y_part = flat[part], r[part], y[part]
        # (e may be ∞. Then y is -0, and the true one is nearer to 0 than 1e-37.)
        with np.errstate(over="ignore", invalid="ignore"):
            np.multiply(x_part, x_part, out=r_part)
            r_part *= -2 * _ROOT * 0.044715
            r_part -= 2 * _ROOT
            r_part *= x_part
            np.exp(r_part, out=r_part)  # e
            np.add(r_part, 1, out=y_part)
            r_part /= y_part
        np.fmin(r_part, 1, out=r_part)  # 1 where e is ∞ and ∞/∞ is NaN
        np.divide(x_part, y_part, out=y_part)

    def backward(g, y, needs):
        g, y, slope = g.ravel(), y.ravel(), np.empty_like(flat)
        space = np.empty(min(_AT_ONCE, flat.size), flat.dtype)
        for part in _parts(flat):
            x_part, r_part, f = flat[part], r[part], slope[part]
            # y r first: it is 0 where |x| is so large that x² would overflow.
            np.multiply(y[part], r_part, out=f)
            squared_term = np.multiply(f, x_part, out=space[: len(f)])
            squared_term *= x_part
            squared_term *= 2 * _ROOT * 0.134145
            f *= 2 * _ROOT
            f += squared_term  # y r 2u′
            f += 1
            f -= r_part
            f *= g[part]
        return (slope.reshape(x.shape),)

    return y.reshape(x.shape), backward


# Each of many steps over a large array reads it from memory and writes it back. A part of 2¹⁶
# numbers stays in the processor's cache between the steps. For a million numbers of float64 this
# takes about .7 of the time.
_AT_ONCE = 2**16


def _parts(flat):
    return [slice(start, start + _AT_ONCE) for start in range(0, flat.size, _AT_ONCE)]


@primitive
def rotate_pairs(x, /, cos, sin, pairs="neighbours"):
    """(a, b) → (a cos θ - b sin θ, a sin θ + b cos θ) for each pair of features.   (…, d) → (…, d)

    cos, sin  of the angle of each pair, (…, d/2): constants, which are not copied
    pairs     which features are pair i: "neighbours" for 2i and 2i + 1, "halves" for i and i + d/2

    A turn by θ is a matrix whose transpose is the turn by -θ, so g is turned back:

        [[cos θ, -sin θ], [sin θ, cos θ]]ᵀ = [[cos θ, sin θ], [-sin θ, cos θ]]

    >>> rotate_pairs([1.0, 2.0, 3.0, 4.0], 0.0, 1.0)        # by 90°
    array([-2.,  1., -4.,  3.])
    """
    return (
        lambda: _rotated(floats(x), cos, sin, pairs),
        lambda g, y: rotate_pairs(g, cos=cos, sin=-sin, pairs=pairs),
    )


def _rotated(x, cos, sin, pairs):
    cos, sin = np.asarray(cos, x.dtype), np.asarray(sin, x.dtype)
    half = x.shape[-1] // 2
    if pairs == "halves":
        first, second = slice(half), slice(half, None)
    else:
        first, second = slice(0, None, 2), slice(1, None, 2)
    a, b = x[..., first], x[..., second]
    y = np.empty_like(x)
    np.subtract(a * cos, b * sin, out=y[..., first])
    np.add(a * sin, b * cos, out=y[..., second])
    return y
