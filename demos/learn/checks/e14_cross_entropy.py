"""Exercise 14 · The check: log-softmax, then the loss; and scores of a thousand."""

import numpy as np

from demos.learn._telling import given, law, numbers, right_derivatives, same
from minigrad import grad

HINTS = (
    "Begin with log_softmax: the derivative of log Σⱼ exp(xⱼ) with respect to one xⱼ is a weight "
    "of the softmax, and this weight is exp(y). For the loss, how does a row's -log p move if the "
    "score of its true class rises, and how if another score rises?",
    "log_softmax: yᵢ moves with its own xᵢ by 1, and with each xⱼ by -exp(yⱼ). So the VJP has g, "
    "and the sum of g over the row. The loss is linear in log_softmax(logits): put its g into that "
    "VJP, and see what remains.",
    "log_softmax: g - exp(y) Σ g, with the sum over the last axis, `keepdims=True`. cross_entropy: "
    "(p - truth) / n, times the g that arrives. Against overflow, subtract the largest of a row.",
)


def check(answer):
    """Check log_softmax, then the loss, both with scores that overflow in exp."""
    log_softmax = given(answer, "log_softmax")
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 5))
    log_p = x - np.log(np.exp(x).sum(axis=-1, keepdims=True))
    asked = "log_softmax(x) for x of shape (3, 5)"
    g = rng.standard_normal(x.shape)
    laws = lambda: raised("log_softmax", lambda x: (g * log_softmax(x)).sum(), x)
    right_derivatives(log_softmax, x, value=log_p, asked=asked, laws=laws)
    laws()
    _large("log_softmax(x)", log_softmax, [[0.0, -1000.0, -2000.0], [-1000.0, 0.0, -1000.0]])
    cross_entropy = given(answer, "cross_entropy")
    targets = np.array([1, 4, 1])
    asked = "cross_entropy(logits, [1, 4, 1]) for logits of shape (3, 5)"
    value = -log_p[[0, 1, 2], targets].mean()
    loss = lambda x: cross_entropy(x, targets)
    laws = lambda: raised("cross_entropy", loss, x)
    right_derivatives(loss, x, value=value, asked=asked, laws=laws)
    laws()
    loss = lambda x: cross_entropy(x, np.array([1, 2]))
    _large("cross_entropy(logits, [1, 2])", loss, 1000.0)


def raised(name, function, x):
    """Check that the gradients of a row sum to 0, since raising the whole row changes nothing."""
    totals = grad(function)(x).sum(axis=-1)
    law(
        f"if all scores of a row rise together {name} does not change: so the gradients of a row "
        "sum to 0",
        np.allclose(totals, 0),
        f"for scores of shape {x.shape} the sums are {numbers(totals)}",
    )


def _large(words, function, expected):
    """Check value and gradient at scores whose exp is infinite, or whose weights underflow to 0."""
    scores = np.array([[1000.0, 0.0, -1000.0], [-1000.0, 0.0, -1000.0]])
    y, to_x = np.asarray(function(scores)), grad(lambda x: (function(x) * 1.0).sum())(scores)
    for what, found in (("its value", y), ("its gradient", to_x)):
        law(
            f"for scores of 1,000 {words} stays finite",
            np.isfinite(found).all(),
            f"{what} is {_shown(found)} for the scores {_shown(scores)}",
        )
    same(f"{words} for the scores {_shown(scores)}", y, expected)


def _shown(x):
    return str(np.round(x, 4).tolist())
