"""Exercise 3 · The check: values, the order of the way back, and a gradient."""

import numpy as np

from demos.learn._telling import given, law, results, same

CHAPTER = "2.1"
HINTS = (
    "There are two loops: one over the rules, and one over the functions that the rules returned.",
    "Keep each rule's function in a list while you go forward. The gradient of the last value is "
    "known first, so the last rule's function is needed first.",
    "`for function in reversed(functions): g = function(g)`",
)


def noting(rule, given_to, called, i):
    """Return rule i, changed to note the inputs and results of the rule and of its function."""

    def noted(x):
        y, function = rule(x)
        given_to.append((i, x, y))

        def noted_function(g):
            found = function(g)
            called.append((i, g, found))
            return found

        return y, noted_function

    return noted


def not_handed_on(calls, first):
    """Return the indices of the rules that were not called with the previous rule's result."""
    before = [first, *(found for _, _, found in calls)]
    pairs = zip(calls, before, strict=False)
    return [i for (i, given_to, _), x in pairs if not np.array_equal(given_to, x)]


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
    one = chain(x, rules[:1], g)
    same("chain(x, [one rule], g)", one, (m @ x, m.T @ g))
    given_to, called = [], []
    asked = "chain(x, [first, second, third], g)"
    got = chain(x, [noting(rule, given_to, called, i) for i, rule in enumerate(rules)], g)
    order = [i for i, *_ in given_to]
    law(
        "on the way forward each rule is called once, in the order of the list",
        order == [0, 1, 2],
        f"those of these rules were called, counted from 0: {order or 'none'}",
    )
    others = not_handed_on(given_to, x)
    law(
        "each rule is called with the value of the rule before it, and the first one with x",
        not others,
        f"something else was given to these rules, counted from 0: {others}",
    )
    value, gradient = results(asked, got, 2)
    s = np.sin(m @ x)
    same(f"result 0 of {asked}", value, s**2)
    order = [i for i, *_ in called]
    law(
        "on the way back each rule's function is called once, and the last rule's is the first",
        order == [2, 1, 0],
        f"those of these rules were called, counted from 0: {order or 'none'}",
    )
    others = not_handed_on(called, g)
    law(
        "on the way back each function is called with what the one after it in the list returned, "
        "and the last one with g",
        not others,
        f"something else was given to the functions of these rules, counted from 0: {others}",
    )
    same(f"result 1 of {asked}", gradient, m.T @ (2 * s * g * np.cos(m @ x)))
