"""Exercise 13 · The check: weights, derivatives, and what a softmax promises."""

from functools import partial

import numpy as np

from demos.learn._telling import given, law, numbers, right_derivatives
from minigrad import grad

HINTS = (
    "Every weight depends on every score of its row, through the sum below the line. So the VJP "
    "needs a sum over the row, too. Which one?",
    "∂yᵢ/∂xⱼ is -yᵢ yⱼ, and if i = j there is a further yᵢ. Multiply by gᵢ and add up over i: one "
    "part is yⱼ gⱼ, the other is yⱼ times a number that is the same in the whole row.",
    "This number is s = Σᵢ yᵢ gᵢ, along `axis` and with `keepdims=True`. ∂L/∂x = y ⊙ (g - s). For "
    "large scores, subtract the largest of each row before exp: that changes no weight.",
)


def check(answer):
    """Check both axes; then rows of gradients, a shift, and scores that are large or -∞."""
    softmax = given(answer, "softmax")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 5))
    for words, options in (("softmax(x)", {}), ("softmax(x, axis=0)", {"axis": 0})):
        asked = f"{words} for x of shape {x.shape}"
        e = np.exp(x)
        axis = options.get("axis", -1)
        y = e / e.sum(axis=axis, keepdims=True)
        laws = partial(raised, softmax, x, options)
        along = range(x.ndim)[axis]
        sums = [np.asarray(softmax(x, **options)).sum(axis=i) for i in (along, 1 - along)]
        law(
            "the weights sum to 1 along `axis`",
            np.allclose(sums[0], 1) or not np.allclose(sums[1], 1),
            f"those of {asked} sum to 1 along axis {1 - along}, not along axis {along}",
        )
        right_derivatives(softmax, x, value=y, asked=asked, laws=laws, **options)
    raised(softmax, rng.standard_normal((2, 3, 5)), {"axis": 1})
    large, low = np.array([[1000.0, 1001.0, 1003.0]]), np.array([[0.0, 1.0, 3.0]])
    weights = softmax(large)
    law(
        "scores that all rise by 1,000 keep their weights",
        np.allclose(weights, softmax(low)),
        f"for the scores 1000, 1001, 1003 the weights are {numbers(weights)}",
    )
    low, large = softmax(np.concatenate([low, large]))
    law(
        "a row's weights do not depend on other rows: 0, 1, 3 and 1000, 1001, 1003 have the same",
        np.allclose(low, large),
        f"as two rows of one array they have {numbers(low)} and {numbers(large)}",
    )
    scores = np.array([0.0, -np.inf, 1.0])
    weights, g = softmax(scores), np.array([1.0, 2.0, 3.0])
    to_x = grad(lambda x: (softmax(x) * g).sum())(scores)
    law(
        "a score of -∞ gets the weight 0, and the gradient 0",
        bool(weights[1] == 0 and to_x[1] == 0 and np.isfinite([weights, to_x]).all()),
        f"for the scores 0, -∞, 1 the weights are {numbers(weights)} and the gradients "
        f"{numbers(to_x)}",
    )


def raised(softmax, x, options):
    """Check that the weights sum to 1, and the gradients of a row to 0."""
    axis = options.get("axis", -1)
    words = f"axis {axis} of x of shape {x.shape}"
    totals = np.asarray(softmax(x, **options)).sum(axis=axis)
    law(
        "the weights sum to 1 along the axis",
        np.allclose(totals, 1),
        f"along {words} a sum is {totals.flat[np.abs(totals - 1).argmax()]:.6g}",
    )
    g = np.random.default_rng(1).standard_normal(x.shape)
    totals = grad(lambda x: (g * softmax(x, **options)).sum())(x).sum(axis=axis)
    law(
        "if all scores rise together no weight changes: so the gradients of a row sum to 0",
        np.allclose(totals, 0),
        f"along {words} a sum is {totals.flat[np.abs(totals).argmax()]:.6g}",
    )
