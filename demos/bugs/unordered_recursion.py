"""Demos · Museum: recursion without order.

Met in micrograd's first days (its issue 2), and offered to it again as a simplification (its pull
request 64). `+=` is there, so a value used twice gets both shares. But it passes on what it has
after each of them, and the first goes down the graph a second time, with the second. Leaves pass
nothing on: only a *result* used twice shows it, as in b = a + a, c = b + b.
"""

from demos.bugs._engine import Value, in_order

REPAIR = (
    "Put the values in an order, each before all it was made of, and pass on once. (To hand each "
    "share down by itself is right too, and takes 2ⁿ⁺¹ - 2 steps for n doublings.)"
)


def broken(root):
    """Pass root.grad on to every value behind the root."""
    for x, slope in root.edges:
        x.grad += slope * root.grad
        broken(x)


def repaired(root):
    """Pass root.grad on to every value behind the root."""
    for v in in_order(root):
        for x, slope in v.edges:
            x.grad += slope * v.grad


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
        seen[f"∂y/∂a for y = {2**times} a, made by doubling"] = a.grad
    return seen


def check(pass_on, rng):
    """A central difference, of an expression that uses a result more than once."""
    f, at, h = lambda a: doubled(a * a, 2), rng.uniform(1.0, 2.0), 1e-5
    a = Value(at)
    y = f(a)
    y.grad = 1.0
    pass_on(y)
    moved = (f(Value(at + h)).data - f(Value(at - h)).data) / (2 * h)
    assert abs(a.grad - moved) < 1e-6, f"∂y/∂a = {a.grad:.4f}, but y moves by {moved:.4f}"
