"""Exercise 3 · The check: values, the order of the way back, and a gradient."""

import numpy as np

from demos.learn._telling import given, law, same

CHAPTER = "2.1"
HINTS = (
    "There are two loops: one over the rules, and one over the functions that the rules returned.",
    "Keep each rule's function in a list while you go forward. The gradient of the last value is "
    "known first, so the last rule's function is needed first.",
    "for function in reversed(functions): g = function(g)",
)


def noting(rule, called, i):
    """A rule that notes in `called` when its function is called, by the number i."""

    def noted(x):
        y, function = rule(x)
        return y, lambda g: (called.append(i), function(g))[1]

    return noted


def check(answer):
    """A matrix and a curve do not commute, so the order on the way back can be seen."""
    chain = given(answer, "chain")
    rng = np.random.default_rng(0)
    x, g, m = rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal((3, 3))
    rules = [
        lambda x: (m @ x, lambda g: m.T @ g),
        lambda x: (np.sin(x), lambda g: g * np.cos(x)),
        lambda x: (x * x, lambda g: 2 * x * g),
    ]
    one = chain(x, rules[:1], g)
    same("chain(x, [one rule], g)", one, (m @ x, m.T @ g))
    called = []
    got = chain(x, [noting(rule, called, i) for i, rule in enumerate(rules)], g)
    s = np.sin(m @ x)
    same("the value of chain(x, [first, second, third], g)", got[0], s**2)
    law(
        "on the way back each rule's function is called once, and the last rule's is the first",
        called == [2, 1, 0],
        f"those of these rules were called, counted from 0: {called or 'none'}",
    )
    same(
        "the gradient of chain(x, [first, second, third], g)",
        got[1],
        m.T @ (2 * s * g * np.cos(m @ x)),
    )
