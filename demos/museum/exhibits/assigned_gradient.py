"""Demos · Museum: = for +=.

This mistake is made on the first evening with one's own engine. A value used once gets its whole
gradient, so every chain is right. A value used twice gets two contributions, and the second
replaces the first.
"""

from demos.museum.exhibits._engine import Value, in_order

REPAIR = "Add each contribution to `.grad`, which has to be 0 when the pass begins."


def broken(root):
    """Give every value that the root was made of its ∂root/∂value, as `.grad`."""
    root.grad = 1.0
    for v in in_order(root):
        for x, vjp in zip(v.inputs, v.vjps, strict=True):
            x.grad = vjp(v.grad)


def repaired(root):
    """Give every value that the root was made of its ∂root/∂value, as `.grad`."""
    root.grad = 1.0
    for v in in_order(root):
        for x, vjp in zip(v.inputs, v.vjps, strict=True):
            x.grad = x.grad + vjp(v.grad)


def symptom(backward, rng):
    """At a = 3 the gradient of a chain is right. Where *a* is used twice it is wrong."""
    two, one = Value(2.0), Value(1.0)
    cases = {
        "2 · (a + 1), with the derivative 2": lambda a: two * (a + one),
        "a + a, with the derivative 2": lambda a: a + a,
        "a · a, with the derivative 6": lambda a: a * a,
        "a + 2 · a, with the derivative 3": lambda a: a + two * a,
    }
    seen = {}
    for name, f in cases.items():
        a = Value(3.0)
        backward(f(a))
        seen[name] = float(a.grad)
    return seen


def check(backward, rng):
    """Compare with a central difference, for an expression that uses its input more than once.
    (It uses each *result* once, so recursion without order passes. The next check catches that.)
    """
    f, at, h = lambda a: a * a + a, rng.uniform(1.0, 2.0), 1e-5
    a = Value(at)
    backward(f(a))
    moved = (f(Value(at + h)).array - f(Value(at - h)).array) / (2 * h)
    assert abs(a.grad - moved) < 1e-6, f"∂y/∂a = {a.grad:.4f}, but y moves by {moved:.4f}"
