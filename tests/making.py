"""The small tensors that many tests begin with."""

import numpy as np

from minigrad import Tensor, no_grad

A = np.array([0.3, 0.7, 1.1])
B = np.array([1.9, -0.4, 0.6])
M = np.array([[0.7, 1.3, 0.2], [2.1, 0.4, 1.9]])  # (2, 3): two primes, and no value twice


def leaf(values=A, name="t"):
    return Tensor(values, requires_grad=True, name=name)


def put_other_data(p):
    p.data = p.data - 1.0


def step(p):
    with no_grad():
        p -= 1.0
