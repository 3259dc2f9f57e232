"""Exercise 1 · The check: a straight line, and how the error shrinks with the step."""

from demos.learn._telling import given, law, same

HINTS = (
    "f is evaluated twice: at x + h and at x - h. How far apart are these two places?",
    "A slope is the change of f, divided by the distance over which it changed: rise over run.",
    "The change is f(x + h) - f(x - h), and it happened over a distance of 2 h. Mind the brackets "
    "below the line of the fraction.",
)


def check(answer):
    """Check the one slope of a line; then that the error on a curve shrinks with h²."""
    slope = given(answer, "slope")
    same("slope(f, 2.0, 0.5) for f(x) = 3 x + 1", slope(lambda x: 3 * x + 1, 2.0, 0.5), 3.0)
    same("slope(f, 2.0, 0.25) for f(x) = 7", slope(lambda x: 7.0, 2.0, 0.25), 0.0)
    found = [slope(lambda x: x**3, 1.0, h) for h in (0.1, 0.05)]
    error, smaller = (abs(each - 3.0) for each in found)
    law(
        "the step is h, so for a curve another h gives another result",
        found[0] != found[1],
        f"for f(x) = x³ at x = 1 the result is {found[0]:.6g}, whatever h is",
    )
    law(
        "with half the step, the error of a central difference is a quarter",
        3.9 < error / (smaller or 1) < 4.1,
        f"for f(x) = x³ at x = 1 the error is {error:.4f} with h = 0.1, and {smaller:.4f} with "
        "h = 0.05",
    )
