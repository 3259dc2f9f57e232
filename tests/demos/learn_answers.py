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
}
