"""0 · The idea: backpropagation through the weights of attention, in forty lines.

What is the least that can differentiate the weights of attention? L is the number at the end, for
example a loss. ∂L/∂x is the slope of L when x moves and all else stays; for an array x it is an
array of the same shape, called the **gradient** of L with respect to x, or for short the gradient
of x.

Three things are enough. A **value** remembers its inputs. For each input it keeps one function, a
**VJP**, which takes g, the gradient of the value, and returns what this value contributes to the
gradient of the input: one step of the chain rule. And a loop goes from L back to older and older
values. (VJP is short for vector-Jacobian product. The vector is g, whose numbers are thought of as
one row. The Jacobian is the table of all slopes ∂yᵢ/∂xⱼ of a value y, and a VJP multiplies g by
this table without building it: chapter 2.1.)

That is all of it, and it runs:

    python -m minigrad.idea

In the code g is ∂L/∂y, the gradient of a result y. For matrices we write capitals: C = A B, and
G = ∂L/∂C.

    >>> from minigrad import idea
    >>> x = idea.Value([[3.0]])
    >>> y = idea.matmul(x, x)               # x², and both factors are x
    >>> idea.backward(y)
    >>> x.grad                              # 3 from each factor
    array([[6.]])

Exercise 2 of `python -m demos learn` is an operation of this form.

The rest of the book is there because these lines lack something. The last lines of the file say
what, and which chapter adds it. A chapter that replaces one line of this file begins with that
line.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

clock = itertools.count()  # gives 0, 1, 2, …


class Value:
    """An array, the inputs that it was made from, and one VJP for each of them."""

    def __init__(self, array: Any, inputs: Sequence[Value] = (), vjps: Sequence[Any] = ()) -> None:
        self.array = np.asarray(array, float)
        self.inputs, self.vjps = inputs, vjps
        self.time = next(clock)  # a result is newer than its inputs
        self.grad = np.zeros_like(self.array)


def operation(rule: Callable[..., tuple[Any, ...]]) -> Callable[..., Value]:
    """Run the rule on arrays, and keep its VJPs, and its inputs, beside its value."""

    def run(*inputs: Value) -> Value:
        value, *vjps = rule(*[x.array for x in inputs])
        return Value(value, inputs, vjps)

    return run


@operation
def matmul(a: Any, b: Any) -> tuple[Any, ...]:
    """C = A B: ∂L/∂A = G Bᵀ and ∂L/∂B = Aᵀ G (why: chapter 3.5)."""
    return a @ b, lambda g: g @ b.T, lambda g: a.T @ g


@operation
def transpose(a: Any) -> tuple[Any, ...]:
    """B = Aᵀ: ∂L/∂A = Gᵀ."""
    return a.T, lambda g: g.T


@operation
def multiply(a: Any, b: Any) -> tuple[Any, ...]:
    """y = a ⊙ b, element by element: each factor's gradient is g times the other factor."""
    return a * b, lambda g: g * b, lambda g: g * a


@operation
def minus_log(p: Any) -> tuple[Any, ...]:
    """y = -log p: large where p is small. Its slope is -1/p."""
    return -np.log(p), lambda g: -g / p


@operation
def softmax(x: Any) -> tuple[Any, ...]:
    """yᵢ = exp xᵢ / Σⱼ exp xⱼ: every y feels every x, through the sum (why: chapter 3.6)."""
    e = np.exp(x)
    y = e / e.sum(axis=-1, keepdims=True)
    return y, lambda g: y * (g - (y * g).sum(axis=-1, keepdims=True))


def backward(root: Value) -> None:
    """Give every value behind the root its gradient: the newest value first.

    Every result is newer than its inputs. So when the loop reaches a value, all results on the way
    from this value to the root have been handled already, and its gradient is complete.
    """
    root.grad = np.ones_like(root.array)  # ∂L/∂L = 1
    waiting = {root}
    while waiting:
        y = max(waiting, key=lambda value: value.time)
        waiting.remove(y)
        for x, vjp in zip(y.inputs, y.vjps, strict=True):
            x.grad = x.grad + vjp(y.grad)  # a value used twice gets the sum
            waiting.add(x)


def attention_weights(q: Value, k: Value) -> Value:
    """softmax(Q Kᵀ/√d_k), how much each query looks at each key.   (T, d_k), (S, d_k) → (T, S)

    There are T queries and S keys, each with d_k numbers. The weights of a query sum to 1.
    """
    # A table of equal numbers, because `multiply` does not broadcast.
    scale = np.full((len(q.array), len(k.array)), 1 / np.sqrt(q.array.shape[1]))
    return softmax(multiply(matmul(q, transpose(k)), Value(scale)))


def main() -> None:
    """Print -∂L/∂q for L = -log(weight of key 2), and the same by moving q's elements."""
    draws = np.random.default_rng(0)
    q, k = Value(draws.standard_normal((1, 4))), Value(draws.standard_normal((3, 4)))
    pick_2 = Value([[0.0], [0.0], [1.0]])  # weights @ pick_2 is the weight of key 2

    def loss(q: Value) -> Value:
        return minus_log(matmul(attention_weights(q, k), pick_2))

    backward(loss(q))
    print("by these lines  ", -q.grad)
    steps = 1e-6 * np.eye(4)
    moved = [loss(Value(q.array + h)).array - loss(Value(q.array - h)).array for h in steps]
    slopes = np.array(moved).reshape(1, 4) / 2e-6  # the loss's change, over the length moved
    print("by differences  ", -slopes)


if __name__ == "__main__":
    main()

# What these lines lack                                          The chapter that adds it
#
# an array that changes between forward and backward spoils it   1.1 arrays never change
# a value keeps everything that it was made from                 1.2 no_grad, 2.1 memory
# options, numbers beside values, float32, errors that explain   1.3 rules
# a + b, x.sum(), np.exp(x): only these five operations work     1.4 words, and 3 and 6
# a second `backward` meets the gradients of the first           2.1 a table for each pass
# `max` looks at every value that waits                          2.1 a heap: the newest on top
# a gradient of an input that was broadcast must be summed       2.1 un-broadcasting
# a gradient that can itself be differentiated                   1.3 and 2.2 second derivatives
# exp(800) is infinite, and ∞/∞ is not a number                  3.6 subtract the largest
# a difference agrees to some digits, but not known to how many  4 a check that knows
# heads, masks, layers, models, training                         7, 8, and 11 to 15
