"""Exercise 22 · Attention backward: five gradients, and no engine.

The way forward has three steps: the scores Z = scale · Q Kᵀ, the weights
P = softmax(Z) of each row, and the output O = P V. `weights` gives P, and G
is ∂L/∂O. Write the way back. `scores_back` goes through the last two steps,
from G to ∂L/∂Z. `backward` has ∂L/∂Z, and needs three more products. Decide
for each which factor is transposed, and on which side it stands. The shapes
tell, except where T = S: there think of what the rows mean. A forbidden key
has the weight 0 and needs no line of its own: why?

    Q, K, V      arrays (…, T, d_k), (…, S, d_k) and (…, S, d_v)
    P, G         (…, T, S) and (…, T, d_v); … are the same batch axes in all
    may_look     booleans (T, S): True where query t may look at key s
    scores_back(P, V, G) → ∂L/∂Z, (…, T, S)
    backward(Q, K, V, G, scale, may_look) → ∂L/∂Q, ∂L/∂K, ∂L/∂V

Chapter 11, attention/scaled_dot_product.py.
"""

import numpy as np


def weights(Q, K, scale, may_look):
    """P: softmax over the keys that each query may look at; 0 without any."""
    Z = scale * Q @ K.mT
    e = may_look * np.exp(Z - Z.max(axis=-1, keepdims=True))
    total = e.sum(axis=-1, keepdims=True)
    return e / np.where(total == 0, 1, total)


def scores_back(P, V, G):
    """∂L/∂Z, from G = ∂L/∂O with O = P V and P = softmax(Z)."""
    # Your lines begin.
    dP = G @ V.mT
    return P * (dP - (P * dP).sum(axis=-1, keepdims=True))
    # Your lines end.


def backward(Q, K, V, G, scale, may_look=True):
    """∂L/∂Q, ∂L/∂K and ∂L/∂V of attention, from G = ∂L/∂O."""
    P = weights(Q, K, scale, may_look)
    dZ = scores_back(P, V, G)
    # Your lines begin.
    dQ = scale * dZ @ K
    dK = scale * dZ.mT @ Q
    dV = P.mT @ G
    # The learner gets the names.
    # Your lines end.
    return dQ, dK, dV
