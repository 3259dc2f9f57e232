"""Exercise 22 · The check: known mistakes, laws, finite differences, batches and masks."""

import numpy as np

from attention import attention_backward
from demos.learn._telling import array, asking, given, law, results, right_derivatives, same
from minigrad import primitive, softmax

HINTS = (
    "Go back in the opposite order, and write the shapes down. O = P V is a product of matrices: "
    "it passes back to both factors, as in exercise 10. P = softmax(Z) is exercise 13. Then Z = "
    "scale · Q Kᵀ is a product again.",
    "From O = P V come ∂L/∂P = G Vᵀ and ∂L/∂V = Pᵀ G. Softmax passes back to each score its weight "
    "times (its ∂L/∂P minus the row's average under the weights). Both factors of Q Kᵀ get the "
    "scale. Each gradient has the shape of what it belongs to.",
    "`dP = G @ V.mT`, and ∂L/∂Z is `P * (dP - (P * dP).sum(axis=-1, keepdims=True))`. Then `dQ = "
    "scale * dZ @ K`. In dK, dZ is transposed and Q takes the place of K. `dV = P.mT @ G`.",
)


SCALED = "a score is scale · q·k, so the scale is a factor of ∂L/∂Q and of ∂L/∂K"
TURNED = "row t of P and of ∂L/∂Z belongs to query t, and column s to key s and value s"


def check(answer):
    """Check the scores' gradient first, as the others need it, and T = S before other sizes."""
    scores_back, backward = given(answer, "scores_back"), given(answer, "backward")
    rng = np.random.default_rng(0)
    for *batch, T, S in ((3, 3), (3, 5), (2, 3, 3), (2, 3, 5)):
        pairs = ((T, 7), (S, 7), (S, 11), (T, 11))
        Q, K, V, G = (rng.standard_normal((*batch, *pair)) for pair in pairs)
        right_scores(scores_back, Q @ K.mT / np.sqrt(7), V, G)
        right_inputs(backward, scores_back, Q, K, V, G, 1 / np.sqrt(7))
    masked(backward, rng)


def right_scores(scores_back, Z, V, G):
    """Check ∂L/∂Z: a law, with the mistakes that break it, and a finite difference."""
    P, dP = softmax(Z), G @ V.mT
    asked = f"for P {P.shape} and V {V.shape}, scores_back(P, V, G)"
    with asking(asked):
        dZ = array(asked, scores_back(P, V, G), Z.shape)
    seen = f"{asked} has a first row that sums to {dZ.sum(axis=-1).flat[0]:.3g}"
    if np.allclose(dZ, P * dP):
        seen = "here it is P ⊙ ∂L/∂P, and the average of each row is still in it"
    if np.allclose(dZ, P * (dP - dP.mean(axis=-1, keepdims=True))):
        seen = "here the plain mean of each row is subtracted, and the weights are not equal"
    law(
        "if all scores of a query rise together, no weight changes: so each row of ∂L/∂Z sums to 0",
        np.allclose(dZ.sum(axis=-1), 0),
        seen,
    )

    @primitive(name="scores_back")
    def read(Z, /):
        P = softmax(Z)
        return P @ V, lambda G, y: scores_back(P, V, G)

    right_derivatives(read, Z, order=1, asked=f"{asked}, as the VJP of softmax(Z) V")


def right_inputs(backward, scores_back, Q, K, V, G, scale):
    """Check ∂L/∂Q, ∂L/∂K, ∂L/∂V: the mistakes that are known, a law, and finite differences."""
    asked = f"for Q {Q.shape}, K {K.shape} and V {V.shape}, backward(Q, K, V, G, scale)"
    P = softmax(scale * Q @ K.mT)
    dZ = scores_back(P, V, G)
    with asking(asked):
        dQ, dK, dV = found = results(asked, backward(Q, K, V, G, scale), 3)
        for name, gradient, x in zip(("∂L/∂Q", "∂L/∂K", "∂L/∂V"), found, (Q, K, V), strict=True):
            array(f"{name}, {asked},", gradient, x.shape)
    mistakes = [
        (SCALED, dQ, dZ @ K, "∂L/∂Q is ∂L/∂Z K here"),
        (SCALED, dK, dZ.mT @ Q, "∂L/∂K is (∂L/∂Z)ᵀ Q here"),
    ]
    if P.shape == P.mT.shape:  # T = S
        mistakes += [
            (TURNED, dQ, scale * dZ.mT @ K, "∂L/∂Q is scale · (∂L/∂Z)ᵀ K here"),
            (TURNED, dK, scale * dZ @ Q, "∂L/∂K is scale · ∂L/∂Z Q here"),
            (TURNED, dV, P @ G, "∂L/∂V is P G here"),
        ]
    for sentence, gradient, wrong, seen in mistakes:
        law(sentence, not np.allclose(gradient, wrong), seen)
    alike = backward(Q, K, np.ones_like(V), G, scale)[0]
    law(
        "if all values are equal, the output is the same for every query: so ∂L/∂Q is 0",
        np.allclose(alike, 0),
        f"its largest element is {np.abs(alike).max():.3g}",
    )

    @primitive
    def attend(Q, K, V, /):
        y = softmax(scale * Q @ K.mT) @ V
        return y, *(lambda G, y, i=i: backward(Q, K, V, G, scale)[i] for i in range(3))

    right_derivatives(attend, Q, K, V, order=1, asked=f"{asked}, as the VJPs of attention")


def masked(backward, rng):
    """Check a mask that leaves the last of 4 queries no key and the last of 5 keys no query."""
    shapes = ((2, 4, 7), (2, 5, 7), (2, 5, 11), (2, 4, 11))
    Q, K, V, G = (rng.standard_normal(shape) for shape in shapes)
    may_look = np.array([[1, 0, 1, 0, 0], [1, 1, 1, 1, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]], bool)
    asked = "for 4 queries and 5 keys, backward(Q, K, V, G, 0.3, may_look)"
    found = results(asked, backward(Q, K, V, G, 0.3, may_look), 3)
    for sentence, rows in (
        ("a query without a key gets the gradient 0", found[0][:, 3]),
        ("a key that no query may look at gets the gradient 0", found[1][:, 4]),
        ("a value that no query may look at gets the gradient 0", found[2][:, 4]),
    ):
        law(sentence, not rows.any(), f"its largest element is {np.abs(rows).max():.3g}")
    same(asked, found, attention_backward(Q, K, V, G, scale=0.3, may_look=may_look))
