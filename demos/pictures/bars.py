"""Pictures · Bars: the weights of a query above, and the gradient at its scores below."""

import numpy as np

from attention.scaling import typical_query
from minigrad import Tensor, gradients, softmax


def bars() -> str:
    """Return a picture: the weights of a query above, and the gradient at its scores below."""
    q, k, v, g = typical_query(512, keys=5, rng=np.random.default_rng(0))
    scores = Tensor((q @ k.T / np.sqrt(512)).ravel(), requires_grad=True)
    weights = softmax(scores)
    (back,) = gradients(weights, [scores], (g @ v.T).ravel())
    bar = '<rect class="{}" x="{}" y="{:.1f}" width="36" height="{:.1f}"/>'
    shown = ""
    for i, (weight, gradient) in enumerate(zip(130 * weights.data, 130 * back, strict=True)):
        shown += bar.format("forward", 10 + 46 * i, 60 - weight, weight)
        shown += bar.format("backward", 10 + 46 * i, 95 - max(gradient, 0), abs(gradient))
    return f'<svg viewBox="0 0 240 150" aria-hidden="true">{shown}</svg>'
