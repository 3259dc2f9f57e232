"""Demos · Museum: recursion without order.

Met in micrograd's first days (its issue 2), and offered to it again as a simplification (its pull
request 64). Contributions are added, so a value used twice gets both. But the value passes on what
it has after each of them, and so passes the first one on twice. Leaves pass nothing on: only a
*result* used twice shows it, as in b = a + a, c = b + b.
"""

from demos.museum.exhibits._engine import Value, in_order

REPAIR = (
    "Put the values in an order, each before all it was made of, and pass on once. (To pass each "
    "contribution on by itself is right too, and takes 2ⁿ⁺¹ - 2 steps for n doublings.)"
)


def broken(root):
    """Pass root.grad on to every value behind the root."""
    for x, vjp in zip(root.inputs, root.vjps, strict=True):
        x.grad = x.grad + vjp(root.grad)
        broken(x)


def repaired(root):
    """Pass root.grad on to every value behind the root."""
    for v in in_order(root):
        for x, vjp in zip(v.inputs, v.vjps, strict=True):
            x.grad = x.grad + vjp(v.grad)


def doubled(a, times):
    """b = a + a, c = b + b, and so on."""
    for _ in range(times):
        a = a + a
    return a


def symptom(pass_on, rng):
    """One doubling comes out right. From the second on nothing does, and it grows."""
    seen = {}
    for times in (1, 2, 3, 8):
        a = Value(3.0)
        y = doubled(a, times)
        y.grad = 1.0
        pass_on(y)
        seen[f"∂y/∂a for y = {2**times} a, made by doubling"] = float(a.grad)
    return seen


def check(pass_on, rng):
    """A central difference, of an expression that uses a result more than once."""
    f, at, h = lambda a: doubled(a * a, 2), rng.uniform(1.0, 2.0), 1e-5
    a = Value(at)
    y = f(a)
    y.grad = 1.0
    pass_on(y)
    moved = (f(Value(at + h)).array - f(Value(at - h)).array) / (2 * h)
    assert abs(a.grad - moved) < 1e-6, f"∂y/∂a = {a.grad:.4f}, but y moves by {moved:.4f}"
