"""Exercise 1 · The check: each number has the same share, and the shares sum to 1."""

import numpy as np

from demos.learn._telling import given, law, same

HINTS = ("Which number has the largest share?", "The shares sum to 1.", "There are x.size shares.")


def check(answer):
    """Check a short array, then the law for a long one."""
    gradient = given(answer, "gradient")
    same("gradient of three numbers", gradient(np.array([1.0, 5.0, 2.0])), np.full(3, 1 / 3))
    total = gradient(np.arange(100.0)).sum()
    law("shares sum to 1", abs(total - 1) < 1e-9, f"those of 100 numbers sum to {total:.3g}")
