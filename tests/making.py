"""Small tensors, every derivative, and the ways to change a leaf, for many tests."""

import numpy as np

from minigrad import Tensor, grad, hessian, hvp, jacobian, jvp, no_grad, value_and_grad, vjp

A = np.array([0.3, 0.7, 1.1])
B = np.array([1.9, -0.4, 0.6])
M = np.array([[0.7, 1.3, 0.2], [2.1, 0.4, 1.9]])  # (2, 3): two primes, and no value twice


def leaf(values=A, name="t"):
    return Tensor(values, requires_grad=True, name=name)


DERIVATIVES = {  # of f at x; v is a direction, or what vjp sends back
    "grad": lambda f, x, v: grad(lambda x: f(x).sum())(x),
    "value_and_grad": lambda f, x, v: value_and_grad(lambda x: f(x).sum())(x)[1],
    "vjp": lambda f, x, v: vjp(f, x)[1](v)[0],
    "jvp": lambda f, x, v: jvp(f, x, v)[1],
    "jacobian": lambda f, x, v: jacobian(f)(x),
    "hessian": lambda f, x, v: hessian(lambda x: f(x).sum())(x),
    "hvp": lambda f, x, v: hvp(lambda x: f(x).sum(), x, v),
}
CHANGES = {  # of a leaf p, between its forward and its backward pass
    "other data": "p.data = p.data - 1.0",
    "a step": "with no_grad(): p -= 1.0",
    "twice": "p.data = p.data - 1.0\nwith no_grad(): p -= 1.0",
    "of a detached tensor": "d = p.detach(); d.data = d.data - 1.0",
    "requires_grad off and on": "p.requires_grad = False; p.requires_grad = True",
}
NOT_OF_P = {"of a detached tensor", "requires_grad off and on"}  # p itself holds what it held


def change(p, how):
    exec(CHANGES[how], {"p": p, "no_grad": no_grad})
