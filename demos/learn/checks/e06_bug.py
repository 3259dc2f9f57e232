"""Exercise 6 · The check: doublings, and every gradient against a central difference."""

from demos.learn._telling import given, law, numbers, same

HINTS = (
    "Follow the second doubling with a pencil. c = b + b passes 1 on to b. What does b do at once, "
    "and what does it do after c has passed on the second 1?",
    "b passes its gradient on twice: first 1, then 2, which has the first 1 in it. A value should "
    "pass its gradient on once, when it is complete.",
    "Go through `order(root)` in a loop instead of calling `pass_on` again. Inside, the loop over "
    "the inputs stays, with `value` where `root` is.",
)


def check(answer):
    """Check y = 2ⁿ a by n doublings, and a polynomial in which results are used again."""
    Value, pass_on = given(answer, "Value"), given(answer, "pass_on")
    for times in (1, 2, 8, 40):
        made = [Value(3.0)]
        for _ in range(times):
            made.append(made[-1] + made[-1])
        words = f"after {times} doubling{'s' * (times > 1)} of a"
        given_to = passed_on(pass_on, made)
        slope = made[0].grad
        seen = f"{words}, ∂y/∂a is {slope:g}. 2 a passed on {numbers(given_to[made[1]], 'g')}"
        law("the slope of 2ⁿ a is 2ⁿ", slope == 2**times, seen)
        law(
            "every value between keeps its gradient, too",
            all(value.grad == 2 ** (times - i) for i, value in enumerate(made)),
            f"{words} they are, from a to y, {numbers([x.grad for x in made], 'g')}",
        )
        once(given_to, f"{words},", {value: f"{2**i:,} a" for i, value in enumerate(made)})
    a, h = 1.25, 1e-5
    names = dict(zip(polynomial(Value(a)), ("a", "b", "a b", "c", "b c", "y"), strict=True))
    given_to = passed_on(pass_on, list(names))
    words = "for b = a², c = a b + b and y = b c + c"
    once(given_to, f"{words},", names)
    x, b, _, c, _, _ = names
    moved = [polynomial(Value(a + step))[-1].number for step in (h, -h)]
    same(f"{words}, ∂y/∂c", c.grad, b.number + 1)
    same(f"{words}, ∂y/∂a", x.grad, (moved[0] - moved[1]) / (2 * h), rtol=1e-6)


def polynomial(a):
    """Return a, b = a², a b, c = a b + b, b c and y = b c + c."""
    b = a * a
    product = b * a
    c = product + b
    last = c * b
    return a, b, product, c, last, last + c


def passed_on(pass_on, values):
    """Call pass_on of the last value; return what the functions of each value were given."""
    given_to = {value: [] for value in values}

    def noted(value, function):
        def call(g):
            given_to[value].append(g)
            return function(g)

        return call

    for value in values:
        value.functions = tuple(noted(value, function) for function in value.functions)
    values[-1].grad = 1.0
    pass_on(values[-1])
    return given_to


def once(given_to, words, names):
    """Check that each function of a value is called once, with the value's gradient at the end."""
    for value, found in given_to.items():
        count = len(value.inputs)
        seen = (
            f"{words} {names[value]} has {count} inputs, and at the end the gradient "
            f"{value.grad:g}. It passed on {numbers(found, 'g') or 'nothing'}"
        )
        right = "a value passes its gradient on once to each input, when it is complete"
        if len(found) > count and sum(found) == count * value.grad:
            right = f"the gradients are right, and {right}"
            seen += ": n doublings take 2ⁿ calls"
        law(right, found == [value.grad] * count, seen)
