"""Demos · Museum: transpose that moves nothing.

This mistake is made in code that comes from PyTorch, where `k.transpose(-2, -1)` exchanges two
axes. NumPy's transpose takes the order of all axes, and (-2, -1) is the order that they have. With
as many keys as features, q times k has the shape of q times kᵀ. The weights are positive and sum to
1, and on one text the wrong layer learns as well as the right one.
"""

import numpy as np

from minigrad import Tensor, gradients, softmax

REPAIR = (
    "Write `k.mT`, or `k.swapaxes(-2, -1)`, and test with more keys than features. Then q times k "
    "does not fit, and NumPy raises an error."
)


def broken(q, k):  # (T, d_k), (S, d_k) → (T, S)
    """How much each query looks at each key."""
    scores = q @ np.transpose(k, (-2, -1)) / np.sqrt(q.shape[-1])
    return softmax(scores)


def repaired(q, k):  # (T, d_k), (S, d_k) → (T, S)
    """How much each query looks at each key."""
    scores = q @ k.mT / np.sqrt(q.shape[-1])
    return softmax(scores)


def text(rng):
    """Eight keys at right angles, and the key that each of eight queries is to find."""
    return np.linalg.qr(rng.standard_normal((8, 8)))[0] * np.sqrt(8), rng.permutation(8)


def symptom(weights, rng):
    """Each query is one of the keys times a matrix w, which is trained to find this key in one
    text. There both losses fall alike. In other texts the broken version misses most of the keys.
    """
    (keys, wanted), w = text(rng), Tensor(np.zeros((8, 8)), requires_grad=True)
    losses = []
    for _ in range(60):
        p = weights(keys[wanted] @ w, Tensor(keys))
        loss = -np.log(p[np.arange(8), wanted]).mean()
        losses.append(loss.item())
        w.data = w.data - gradients(loss, [w])[0]
    hits = []
    for keys, wanted in (text(rng) for _ in range(100)):
        hits += [*(weights(keys[wanted] @ w, Tensor(keys)).argmax(axis=-1) == wanted)]
    return {
        "shape of the weights": p.shape,
        "sum of a query's weights": p.data.sum(axis=-1).mean(),
        "keys that are found in 100 other texts": f"{np.mean(hits):.0%}",
        "loss, from step 1 to step 60": np.array(losses),
    }


def check(weights, rng):
    """Compare with a loop: each score is the product of one query and one key."""
    q, k = rng.standard_normal((2, 4, 4))
    p = weights(Tensor(q), Tensor(k)).data
    for t in range(4):
        e = np.exp([q[t] @ key / 2 for key in k])
        off = abs(p[t] - e / e.sum()).max()
        assert off < 1e-9, f"a weight of query {t} is off by {off:.2f}"


def refusal():
    """The same is typed as in PyTorch, as a method."""
    q, k = Tensor(np.ones((4, 4))), Tensor(np.ones((4, 4)))
    return q @ k.transpose(-2, -1)
