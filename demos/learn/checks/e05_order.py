"""Exercise 5 · The check: what an order has to keep, on graphs where walks go wrong."""

from demos.learn._telling import given, law, returned

CHAPTER = "2.1"
HINTS = (
    "There are two tasks: to find all values behind the root, and to sort them. For the first, "
    "keep a list of those whose inputs you have not looked at yet.",
    "A value is always newer than its inputs. So in which order of their times is each value after "
    "all that were made from it?",
    "Collect the values in a set, with a list of those still to look at: take one from the list, "
    "and put those of its inputs on it that are not in the set. Then `sorted(found, key=…, "
    "reverse=True)`, where the key of a value is its time.",
)


def graphs(Value):
    """Yield small graphs with a value that is used twice: words, and a name for each value."""
    a, b = Value(), Value()
    c = Value(a, b)
    yield "c = a + b", {"a": a, "b": b, "c": c}
    a = Value()
    b = Value(a, a)
    yield "b = a · a, c = b · b", {"a": a, "b": b, "c": Value(b, b)}
    for swapped in (False, True):
        a = Value()
        b = Value(a)
        c = Value(b)
        d = Value(a, c) if swapped else Value(c, a)
        words = "d = a · c" if swapped else "d = c · a"
        yield f"b = sin(a), c = sin(b), {words}", {"a": a, "b": b, "c": c, "d": d}
    a = Value()
    b, c = Value(a), Value(a)
    d = Value(c, b)
    yield (
        "b = sin(a), c = cos(a), d = c · b, e = d · b",
        {
            "a": a,
            "b": b,
            "c": c,
            "d": d,
            "e": Value(d, b),
        },
    )


def check(answer):
    """Check that each value is there once, and after those made from it; then a long chain."""
    Value, order = given(answer, "Value"), given(answer, "order")
    for words, values in graphs(Value):
        names = {value: name for name, value in values.items()}
        *_, root = values.values()
        got = order(root)
        returned("order(root)", got)
        got = [names.get(value, "?") for value in got]
        shown = f"for {words} the order is {', '.join(got) or 'empty'}"
        law("every value behind the root is in the order", set(got) == set(values), shown)
        law("every value is in the order once", len(got) == len(values), shown)
        for name, value in values.items():
            for x in value.inputs:
                law(
                    "a value comes after all values that were made from it",
                    got.index(names[x]) > got.index(name),
                    f"{shown}, and {name} was made from {names[x]}",
                )
    root = Value()
    for _ in range(5000):
        root = Value(root, root)
    found = len(order(root))
    law("every value behind the root is in the order", found == 5001, f"of 5,001 it has {found}")
