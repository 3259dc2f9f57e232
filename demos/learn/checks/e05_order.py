"""Exercise 5 · The check: what an order has to keep, on graphs where walks go wrong."""

from demos.learn._telling import given, law, returned

HINTS = (
    "There are two tasks: to find all values behind the root, and to sort them. For the first, "
    "keep a list of those whose inputs you have not looked at yet.",
    "A value is always newer than its inputs. So in which order of their times is each value after "
    "all that were made from it?",
    "Collect the values in a set, with a list of those still to look at: take one from the list, "
    "and put those of its inputs on it that are not in the set. Then `sorted(found, key=…, "
    "reverse=True)`, where the key of a value is its time.",
)


# Small graphs in which a value is used twice: for each value the values that it is made from.
GRAPHS = {
    "c = a + b": {"c": "ab"},
    "b = a · a, c = b · b": {"b": "aa", "c": "bb"},
    "b = sin(a), c = sin(b), d = c · a": {"b": "a", "c": "b", "d": "ca"},
    "b = sin(a), c = sin(b), d = a · c": {"b": "a", "c": "b", "d": "ac"},
    "b = sin(a), c = cos(a), d = c · b, e = d · b": {"b": "a", "c": "a", "d": "cb", "e": "db"},
}


def check(answer):
    """Check that each value is there once, and after those made from it; then a long chain."""
    Value, order = given(answer, "Value"), given(answer, "order")
    for words, inputs in GRAPHS.items():
        values = {}
        for name, made_from in inputs.items():
            values[name] = Value(*(values.setdefault(x, Value()) for x in made_from))
        names = {value: name for name, value in values.items()}
        got = order(values[name])
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
    chain = [Value()]  # a list lets the newest go first, and no value is freed inside of another
    for _ in range(5000):
        chain.append(Value(chain[-1], chain[-1]))
    try:
        found = len(order(chain[-1]))
    finally:
        # A function that calls itself is in a circle, and keeps what it saw for the collector, who
        # would free the chain inside of itself. That ends a browser's Python, whatever runs then.
        for value in chain:
            value.inputs = ()
    law("every value behind the root is in the order", found == 5001, f"of 5,001 it has {found}")
