"""Exercise 2 · A product: the gradient of each factor.

Let y = a ⊙ b, element by element, be a step on the way to a number L. You are
given g = ∂L/∂y, the gradient of the result. What is ∂L/∂a, and what is ∂L/∂b?
Return the value, then for each factor a function that takes g and returns the
gradient of this factor. Chapter 0, where all operations have this form, calls
such a function a VJP.

    a, b    arrays of one shape, for example (3, 5)
    g       an array of the shape of y
    product(a, b) → y, a function g ↦ ∂L/∂a, a function g ↦ ∂L/∂b

Chapter 0, minigrad/idea.py.
"""


def product(a, b):
    """y = a ⊙ b, and what it passes back to a and to b."""
    # Your lines begin.
    return a * b, lambda g: g * b, lambda g: g * a
    # Your lines end.
