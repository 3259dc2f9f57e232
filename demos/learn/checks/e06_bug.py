"""Exercise 6 · The check: doublings, and every gradient against a central difference."""

from demos.learn._telling import given, law, same

CHAPTER = "2.1"
HINTS = (
    "Follow the second doubling with a pencil. c = b + b passes 1 on to b. What does b do at once, "
    "and what does it do after c has passed on the second 1?",
    "b passes its gradient on twice: first 1, then 2, which has the first 1 in it. A value should "
    "pass its gradient on once, when it is complete.",
    "Go through order(root) in a loop instead of calling pass_on again. Inside, the loop over the "
    "inputs stays, with `value` where `root` is.",
)


def counted(function, calls):
    """The function, which notes each of its calls."""
    return lambda g: (calls.append(g), function(g))[1]


def check(answer):
    """y = 2ⁿ a by n doublings, and a polynomial in which results are used again."""
    Value, pass_on = given(answer, "Value"), given(answer, "pass_on")
    for times in (1, 2, 8, 40):
        a = y = Value(3.0)
        made = [a]
        for _ in range(times):
            y = y + y
            made.append(y)
        calls = []
        for value in made:
            value.functions = tuple(counted(function, calls) for function in value.functions)
        y.grad = 1.0
        pass_on(y)
        law(
            "the slope of 2ⁿ a is 2ⁿ",
            a.grad == 2**times,
            f"after {times} doubling{'s' * (times > 1)} of a, ∂y/∂a is {a.grad:g}",
        )
        law(
            "every value between keeps its gradient, too",
            all(value.grad == 2 ** (times - i) for i, value in enumerate(made)),
            f"after {times} doubling{'s' * (times > 1)} of a they are, from a to y, "
            f"{', '.join(f'{value.grad:g}' for value in made)}",
        )
        law(
            "a value passes its gradient on once, when it is complete",
            len(calls) == 2 * times,
            f"{times} doubling{'s' * (times > 1)} have {2 * times} functions, and they were called "
            f"{len(calls)} times",
        )

    def polynomial(a):
        b = a * a
        c = b * a + b
        return c * b + c, (b, c)

    a, h = Value(1.25), 1e-5
    y, (b, c) = polynomial(a)
    y.grad = 1.0
    pass_on(y)
    moved = [polynomial(Value(1.25 + step))[0].number for step in (h, -h)]
    slope = (moved[0] - moved[1]) / (2 * h)
    asked = "for b = a², c = a b + b and y = b c + c, ∂y/∂"
    same(f"{asked}c", c.grad, b.number + 1)
    same(f"{asked}a", a.grad, slope, rtol=1e-6)
