"""Wrong answers to the exercises: for each, lines for the hole, and words that the check says.

An exercise with several holes has a tuple of texts, one for each hole.
"""

WRONG = {
    "e01_slope": [
        ("return (f(x + h) - f(x)) / h", "half the step"),
        ("return (f(x + h) - f(x - h)) / h", "3 x + 1 is 6; 3 was expected"),
        ("return (f(x - h) - f(x + h)) / (2 * h)", "is -3; 3 was expected"),
        ("return (f(x + h) - f(x - h)) / 2 * h", "is 0.75; 3 was expected"),
    ],
    "e02_product": [
        ("return a * b, lambda g: g * a, lambda g: g * b", "input 0"),
        ("return a * b, lambda g: b, lambda g: a", "input 0"),
        ("return a * b, lambda g: g * b, lambda g: -g * a", "input 1"),
        ("return a * b", "returns three results"),
        ("return a + b, lambda g: g, lambda g: g", "differs in 15 of 15 elements"),
    ],
    "e03_chain": [
        (
            "functions = []\n"
            "for rule in rules:\n"
            "    x, function = rule(x)\n"
            "    functions.append(function)\n"
            "for function in functions:\n"
            "    g = function(g)\n"
            "return x, g",
            "the last rule's is the first. But those of these rules were called, counted from 0: "
            "[0, 1, 2]",
        ),
        (
            "for rule in rules:\n    y, function = rule(x)\n    g = function(g)\nreturn y, g",
            "the value of chain(x, [first, second, third], g) differs",
        ),
        (
            "for rule in rules:\n    x, function = rule(x)\nreturn x, function(g)",
            "called, counted from 0: [2]",
        ),
    ],
    "e04_two_uses": [
        ("gradient = to_factor(g)", "back through the product alone"),
        ("gradient = to_x(to_sine(g))", "back through the sine alone"),
        ("gradient = to_factor(g) * to_x(to_sine(g))", "the product of what comes back"),
        ("gradient = to_factor(g) + to_sine(g)", "the gradient of twice(x, g) differs"),
    ],
    "e05_order": [
        (
            "found, waiting = [], [root]\n"
            "while waiting:\n"
            "    value = waiting.pop(0)\n"
            "    found.append(value)\n"
            "    waiting += value.inputs\n"
            "return found",
            "in the order once. But for b = a · a, c = b · b the order is c, b, b, a, a",
        ),
        (
            "found, waiting = [], [root]\n"
            "while waiting:\n"
            "    value = waiting.pop()\n"
            "    if value not in found:\n"
            "        found.append(value)\n"
            "        waiting += value.inputs\n"
            "return found",
            "the order is d, a, c, b, and b was made from a",
        ),
        (
            "found = {root}\n"
            "for x in root.inputs:\n"
            "    found |= set(order(x))\n"
            "return sorted(found, key=lambda value: value.time)",
            "all values that were made from it. But for c = a + b the order is a, b, c",
        ),
        (
            "found, done = [], set()\n"
            "def visit(value):\n"
            "    if value not in done:\n"
            "        done.add(value)\n"
            "        for x in value.inputs:\n"
            "            visit(x)\n"
            "        found.append(value)\n"
            "visit(root)\n"
            "return found[::-1]",
            "RecursionError",
        ),
    ],
    "e06_bug": [
        (
            "for value in order(root):\n"
            "    for x, function in zip(value.inputs, value.functions, strict=True):\n"
            "        x.grad = function(value.grad)",
            "the slope of 2ⁿ a is 2ⁿ",
        ),
        (
            "for value in reversed(order(root)):\n"
            "    for x, function in zip(value.inputs, value.functions, strict=True):\n"
            "        x.grad = x.grad + function(value.grad)",
            "after 2 doublings of a, ∂y/∂a is 0",
        ),
        (
            "for x, function in zip(root.inputs, root.functions, strict=True):\n"
            "    x.grad = x.grad + function(root.grad)\n"
            "    pass_on(x)\n"
            "    if x.inputs:\n"
            "        x.grad = 0.0",
            "every value between keeps its gradient",
        ),
    ],
}
