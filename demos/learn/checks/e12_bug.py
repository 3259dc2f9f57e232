"""Exercise 12 · The check: what the training leaves behind, the gradients, and other points."""

import numpy as np

from demos.learn._telling import array, given, law, results, right_derivatives, same, shaped
from minigrad import primitive

CHAPTER = "2.1"
HINTS = (
    "Print the shapes of w and b at the end of each step of the training. Which of them is not "
    "what the docstring says?",
    "b - rate * g_b has the shape of g_b, and no error is raised, since b can be stretched to it. "
    "From then on each example has a bias of its own, and learns its target by heart. What is the "
    "gradient of one b that is copied to B examples?",
    "Each example sends a gradient back to the same b, and these add up: a sum over the axis of "
    "the examples. (A mean would have the right shape, and be B times too small.)",
)


def check(answer):
    """A bias for each example; then the numbers; then errors where nothing was learned."""
    backward, trained = given(answer, "backward"), given(answer, "trained")
    rng = np.random.default_rng(0)
    x = np.indices((2, 2, 2)).reshape(3, 8).T - 0.5  # the corners of a cube
    w, b = 3 * rng.standard_normal((3, 2)), rng.standard_normal(2)
    asked = "backward(x, w, b, g)"
    for i, gradient in enumerate(results(asked, backward(x, w, b, x @ w), 2)):
        array(f"result {i} of {asked}", gradient, np.shape(gradient))
    found = trained(x, x @ w + b)
    law(
        "a layer has one bias for all of its examples",
        np.shape(found[1]) == b.shape,
        f"after the training on 8 examples b has the shape {np.shape(found[1])}; it was {b.shape}",
    )
    g = rng.standard_normal((8, 2))
    for name, value, gradient in zip("wb", (w, b), backward(x, w, b, g), strict=True):
        shaped(f"∂L/∂{name} for {name} of shape {value.shape}", gradient, value.shape)

    @primitive
    def layer(w, b, /):
        y = x @ w + b
        return y, lambda g, y: backward(x, w, b, g)[0], lambda g, y: backward(x, w, b, g)[1]

    right_derivatives(
        layer, w, b, order=1, asked="layer(w, b) = x w + b, with the VJPs that backward gives"
    )
    few, g = x[:5], rng.standard_normal((5, 2))
    asked = "backward(x, w, b, g) for 5 examples"
    same(asked, backward(few, w, b, g), (few.T @ g, g.sum(axis=0)))
    others = rng.standard_normal((8, 3))
    error = float(np.abs(others @ found[0] + found[1] - (others @ w + b)).max())
    law(
        "a plane that is learned from eight points is known everywhere",
        error < 0.01,
        f"at eight other points the largest error is {error:.3g}",
    )
