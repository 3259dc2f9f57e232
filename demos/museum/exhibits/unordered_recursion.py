"""Demos · Museum: recursion without order.

This mistake was in micrograd in its first days (issue 2), and was proposed again as a
simplification (pull request 64). Contributions are added, so a value used twice gets both. But the
value passes its gradient on after each contribution, and so the first one twice. A leaf passes
nothing on. So the error appears only where a *result* is used twice, as in b = a + a, c = b + b.
"""

from demos.museum.exhibits._engine import Value, in_order

REPAIR = (
    "Sort the values, each before the values it was made of, and pass each gradient on once. (To "
    "pass each contribution on by itself is right too, but takes 2ⁿ⁺¹ - 2 steps for n doublings.)"
)


def broken(root):
    """Pass root.grad on to every value that the root was made of."""
    for x, vjp in zip(root.inputs, root.vjps, strict=True):
        x.grad = x.grad + vjp(root.grad)
        broken(x)


def repaired(root):
    """Pass root.grad on to every value that the root was made of."""
    for v in in_order(root):
        for x, vjp in zip(v.inputs, v.vjps, strict=True):
            x.grad = x.grad + vjp(v.grad)


def doubled(a, times):
    """b = a + a, c = b + b, and so on."""
    for _ in range(times):
        a = a + a
    return a


def symptom(pass_on, rng):
    """One doubling is right. From the second on every gradient is wrong, and the error grows."""
    seen = {}
    for times in (1, 2, 3, 8):
        a = Value(3.0)
        y = doubled(a, times)
        y.grad = 1.0
        pass_on(y)
        seen[f"∂y/∂a for y = {2**times} a, made by doubling"] = float(a.grad)
    return seen


def check(pass_on, rng):
    """Compare with a central difference, for an expression that uses a result more than once."""
    f, at, h = lambda a: doubled(a * a, 2), rng.uniform(1.0, 2.0), 1e-5
    a = Value(at)
    y = f(a)
    y.grad = 1.0
    pass_on(y)
    moved = (f(Value(at + h)).array - f(Value(at - h)).array) / (2 * h)
    assert abs(a.grad - moved) < 1e-6, f"∂y/∂a = {a.grad:.4f}, but y moves by {moved:.4f}"
