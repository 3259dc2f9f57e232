"""Pictures · Bars: the weights of a query above, and the gradient at its scores below."""

import numpy as np

from attention.scaling import typical_query
from demos.pictures import shapes
from minigrad import Tensor, gradients, softmax


def bars() -> str:
    """Return a picture: the weights of a query above, and the gradient at its scores below."""
    q, k, v, g = typical_query(512, keys=5, rng=np.random.default_rng(0))
    scores = Tensor((q @ k.T / np.sqrt(512)).ravel(), requires_grad=True)
    weights = softmax(scores)
    (back,) = gradients(weights, [scores], (g @ v.T).ravel())
    parts = []
    for i, heights in enumerate(zip(130 * weights.data, 130 * back, strict=True)):
        weight, gradient = np.round(heights, 1)
        x = 10 + 46 * i
        parts.append(shapes.rect(x, 60 - weight, 36, weight, "forward"))
        parts.append(shapes.rect(x, 95 - max(gradient, 0), 36, abs(gradient), "backward"))
    return shapes.drawing(240, 150, parts)
