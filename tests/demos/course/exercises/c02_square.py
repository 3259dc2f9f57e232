"""Exercise 2 · A square: repair the factor.

x    (N,)
gradient(x) → (N,), the gradient of (x ** 2).sum() for x
"""


def gradient(x):
    """Return how much the sum of squares grows with each number."""
    # Your lines begin.
    return 2 * x
    # The learner gets:
    #     return x
    # Your lines end.
