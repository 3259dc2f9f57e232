"""Exercise 3 · The check: values, the order of the way back, and a gradient."""

import numpy as np

from demos.learn._telling import given, law, results, same

HINTS = (
    "There are two loops: one over the rules, and one over the functions that the rules returned.",
    "Keep each rule's function in a list while you go forward. The gradient of the last value is "
    "known first, so the last rule's function is needed first.",
    "`for function in reversed(functions): g = function(g)`",
)


def noting(rule, forward, back, i):
    """Return rule i, changed to note its input and value, and those of its function."""

    def noted(x):
        y, function = rule(x)
        forward.append((i, x, y))

        def noted_function(g):
            back.append((i, g, function(g)))
            return back[-1][2]

        return y, noted_function

    return noted


def check(answer):
    """Check the order on the way back, with a matrix and a curve, which do not commute."""
    chain = given(answer, "chain")
    rng = np.random.default_rng(0)
    x, g, m = rng.standard_normal(3), rng.standard_normal(3), rng.standard_normal((3, 3))
    rules = [
        lambda x: (m @ x, lambda g: m.T @ g),
        lambda x: (np.sin(x), lambda g: g * np.cos(x)),
        lambda x: (x * x, lambda g: 2 * x * g),
    ]
    same("chain(x, [one rule], g)", chain(x, rules[:1], g), (m @ x, m.T @ g))
    forward, back = [], []
    asked = "chain(x, [first, second, third], g)"
    got = chain(x, [noting(rule, forward, back, i) for i, rule in enumerate(rules)], g)
    handed_on(
        forward,
        x,
        [0, 1, 2],
        "on the way forward each rule is called once, in the order of the list",
        "each rule is called with the value of the rule before it, and the first one with x",
        "these rules",
    )
    value, gradient = results(asked, got, 2)
    s = np.sin(m @ x)
    same(f"result 0 of {asked}", value, s**2)
    handed_on(
        back,
        g,
        [2, 1, 0],
        "on the way back each rule's function is called once, and the last rule's is the first",
        "on the way back each function is called with what the one after it in the list returned, "
        "and the last one with g",
        "the functions of these rules",
    )
    same(f"result 1 of {asked}", gradient, m.T @ (2 * s * g * np.cos(m @ x)))


def handed_on(calls, first, expected, in_order, with_result, who):
    """Check that the calls are in this order, each with the result of the one before."""
    order = [i for i, *_ in calls]
    seen = f"those of these rules were called, counted from 0: {order or 'none'}"
    law(in_order, order == expected, seen)
    before = [first, *(found for *_, found in calls)]
    others = [i for (i, x, _), y in zip(calls, before, strict=False) if not np.array_equal(x, y)]
    seen = f"something else was given to {who}, counted from 0: {others}"
    law(with_result, not others, seen)
