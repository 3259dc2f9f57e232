"""Initial values: where the first weights come from.

How large should a random weight be? An output of x W is a sum of d_in products. If inputs and
weights are independent with mean 0, variances multiply in each product and add in the sum:

    Var(y) = d_in · Var(w) · Var(x)

Twenty layers with d_in Var(w) = 2 make the variance 2²⁰ times larger, and with d_in Var(w) = ½ they
make it 2²⁰ times smaller. So Var(w) = 1/d_in keeps the size of what goes forward. The gradient goes
back through Wᵀ, a sum of d_out products, and needs 1/d_out instead. d_in is the **fan-in** and
d_out the **fan-out** of a weight (d_in, d_out); for several matrices in one array they are the last
two axes.

    Var(w) is, for

    xavier    2/(d_in + d_out): between the two (Glorot & Bengio 2010, section 4.2.1)
    kaiming   2/d_in: a relu sets half of what it is given to 0, and half of the mean square
              with it, so twice the variance goes in (He et al. 2015, section 2.2)

A uniform number between -b and b has variance b²/3, hence b = √(3 Var(w)), for xavier √(6/(d_in +
d_out)).

    >>> rng = np.random.default_rng(0)
    >>> w = normal((400, 300), np.sqrt(2 / 400), rng=rng)              # kaiming
    >>> x = rng.standard_normal((1000, 400))
    >>> round(float(np.mean(np.maximum(x @ w, 0) ** 2)), 1)     # ½ of twice the mean square of x
    1.0
"""

from __future__ import annotations

from typing import Any

import numpy as np

from minigrad.engine.tensor import Array


def xavier_uniform(shape: tuple[int, ...], *, rng: np.random.Generator) -> Array:
    """Draw evenly between ±√(6/(d_in + d_out)), for a weight (…, d_in, d_out)."""
    _check_rng(rng)
    if len(shape) < 2:
        raise ValueError(f"fan-in and fan-out are the last two axes of a weight: got shape {shape}")
    bound = np.sqrt(6 / (shape[-2] + shape[-1]))
    return rng.uniform(-bound, bound, shape)


def normal(shape: tuple[int, ...], std: Any = 0.02, *, rng: np.random.Generator) -> Array:
    """Draw Gaussian values with mean 0 and a given standard deviation; GPT-2 takes 0.02."""
    _check_rng(rng)
    return std * rng.standard_normal(shape)  # type: ignore[no-any-return]


def _check_rng(rng: Any) -> None:
    if not hasattr(rng, "standard_normal"):
        raise TypeError(f"weights are drawn from rng=np.random.default_rng(seed): got {rng!r}")
