"""Exercise 1 · A slope: how fast a function moves.

How fast does f move at x? Go a small step h to the right of x and the same
step to the left, and divide the change of f by the distance between the two
places. This is the central difference. Every derivative of this book is
compared with it.

    f       a function: number → number
    x, h    numbers
    slope(f, x, h) → a number

Chapter 4.1, minigrad/checks/differences.py.
"""


def slope(f, x, h):
    """How fast f moves at x: a central difference with the step h."""
    # Your lines begin.
    return (f(x + h) - f(x - h)) / (2 * h)
    # Your lines end.
