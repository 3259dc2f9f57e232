"""Exercise 18 · The check: one sequence, then a batch: sums, and which query felt what."""

import numpy as np

from demos.learn._telling import array, given, law, numbers, same

HINTS = (
    "Print the shape of scores for one sequence and for a batch. Which axis are the keys in each?",
    "Axis 1 is the keys' axis as long as there are two axes. A batch axis in front makes it the "
    "queries' axis. From which end does the keys' axis have one number in both cases?",
    "The keys are the last axis, `axis=-1`, both where the largest score is taken and in the sum.",
)


def check(answer):
    """Check that the weights of a query sum to 1, and that no other query changes them."""
    weights = given(answer, "weights")
    rng = np.random.default_rng(0)
    q, k = rng.standard_normal((2, 3, 7)), rng.standard_normal((2, 5, 7))
    e = np.exp(q @ k.mT / np.sqrt(7))
    expected = e / e.sum(axis=-1, keepdims=True)
    same("for one sequence, weights(q, k)", weights(q[0], k[0]), expected[0])
    p, shapes = weights(q, k), "for q (2, 3, 7) and k (2, 5, 7)"
    array(f"{shapes}, weights(q, k)", p, (2, 3, 5))
    sums = p.sum(axis=-1)[0]
    law(
        "the weights of each query sum to 1",
        np.allclose(sums, 1),
        f"{shapes} those of the first three queries sum to {numbers(sums, '.3f')}",
    )
    moved = q.copy()
    moved[0, 2] += 1.0
    other = np.abs(weights(moved, k) - p)[0].max(axis=-1)
    law(
        "the weights of a query do not depend on any other query",
        not other[:2].any(),
        f"{shapes} the weights of query 0 move by up to {other[0]:.3f} when only query 2 is "
        "changed",
    )
    same(f"{shapes}, weights(q, k)", p, expected)
    heads = [np.stack([x, x], axis=1) for x in (q, k, expected)]
    same("with an axis of heads as well, weights(q, k)", weights(*heads[:2]), heads[2])
    large = weights(1e4 * q, k)
    scores = 1e4 * q @ k.mT / np.sqrt(7)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    law(
        "weights are finite, however large the scores are",
        np.isfinite(large).all(),
        f"when q is 10,000 times larger, {np.isnan(large).sum()} of {large.size} weights are NaN",
    )
    same("when q is 10,000 times larger, weights(q, k)", large, e / e.sum(axis=-1, keepdims=True))
