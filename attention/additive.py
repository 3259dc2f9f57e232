"""11.2 · Additive attention: the predecessor.

What did attention look like before it was a matrix product? Bahdanau, Cho & Bengio 2014 compared
a query with a key by a small network: project both, add them, squash the sum, and weigh its
features,

    score(q, k) = wᵀ tanh(q + k)          (their section A.1.2, with W q and U k taken as q and k)

Every pair of a query and a key needs d values of tanh, T · S · d of them in memory, while q·k is
one number of one fast matrix product. Vaswani et al. 2017 (section 3.2.1) report, after Britz et
al. 2017, that the two perform alike for small d, and that the unscaled product performs worse for
large d. Here |score| is at most Σ |wᵢ|, however long q and k become, and a w drawn with variance
1/d keeps the scores near size 1 at every d. So w sets the size of the scores, and w is learned. The
product has no w, and needs the factor 1/√d_k instead.

Legend: T queries, S keys, d features of a projected query or key, d_v features of a value.

    >>> q, k = Tensor([[0.0]]), Tensor([[0.0], [np.arctanh(0.5)]])
    >>> additive_attention(q, k, Tensor([[1.0], [5.0]]), Tensor([2 * np.log(3.0)]))    # 1 : 3
    Tensor([[4.]])
"""

from __future__ import annotations

from typing import Any

import numpy as np

from attention.scaled_dot_product import over_keys
from minigrad import Tensor, tanh


def additive_attention(q: Tensor, k: Tensor, v: Tensor, w: Tensor, *, mask: Any = None) -> Tensor:
    """Average v under softmax(wᵀ tanh(q + k)).   (…, T, d), (…, S, d), (…, S, d_v) → (…, T, d_v)

    q and k are projected already (a `Linear` each); w (d,) weighs the features of their sum. mask
    is boolean, True = may look, as for `attention`.
    """
    if q.ndim < 2 or k.ndim < 2 or not q.shape[-1:] == k.shape[-1:] == w.shape:
        raise ValueError(
            "q (…, T, d), k (…, S, d) and w (d,) must agree in d: they have shapes "
            f"{q.shape}, {k.shape} and {w.shape}"
        )
    pairs = tanh(np.expand_dims(q, -2) + np.expand_dims(k, -3))  # (…, T, S, d)
    scores = pairs @ w  # (…, T, S)
    return over_keys(scores, mask) @ v  # (…, T, d_v)
