"""Demos · Gradients without the scale over those with it, at each station of the way back.

A head with the scale 1/√d_k and the same head without it get the same random q, k, v and
∂L/∂output. At each station from L back to q, the median gradient over all queries without the scale
is divided by the median with it. The middle 8 of 10 queries at q, divided by the same median, are a
bar.
"""

import math

import numpy as np

from demos.pages.text import RAISED
from minigrad import Tensor, gradients, softmax

STATIONS = ("q", "q·kᵀ", "scores", "weights", "output", "L")
CASES = ((64, 64), (5, 512))  # keys and d_k: the usual case, and an extreme one
DRAWS, EACH = 8, 1001
QUERIES = DRAWS * EACH


def gradient_sizes(q, k, v, g, scale):
    """Return the RMS of each query's gradient at q, q·kᵀ, scores and weights.   → 4 times (N,)"""
    q = Tensor(q, requires_grad=True)
    dots = q @ Tensor(k).mT  # (N, 1, n)
    scores = dots * scale
    weights = softmax(scores)
    found = gradients(weights @ Tensor(v), [q, dots, scores, weights], g)
    return [np.sqrt(np.einsum("...i,...i->...", x, x) / x.shape[-1])[:, 0] for x in found]


def measure(keys, d_k, seed=0):
    """Return a case: the ratio at each station, and the two ends of the bars with and without."""
    scaled_draws, raw_draws = [], []
    for draw in range(DRAWS):
        rng = np.random.default_rng(seed + draw)
        q, k, v, g = (rng.standard_normal((EACH, n, d_k)) for n in (1, keys, keys, 1))
        scaled_draws.append(gradient_sizes(q, k, v, g, d_k**-0.5))
        raw_draws.append(gradient_sizes(q, k, v, g, 1.0))
    scaled = np.concatenate(scaled_draws, axis=-1)  # (4, QUERIES)
    raw = np.concatenate(raw_draws, axis=-1)
    unit = np.median(scaled, axis=-1)
    line = [*(np.median(raw, axis=-1) / unit), 1, 1]  # g is given at output, and at L it is 1
    bars = [np.quantile(x[0], [0.1, 0.9]) / unit[0] for x in (scaled, raw)]
    found = {"line": line, "with": bars[0], "without": bars[1]}
    rounded = {name: [float(f"{x:.4g}") for x in ratios] for name, ratios in found.items()}
    return {"keys": keys, "d_k": d_k, **rounded}


def number(x):
    """Return a number with two digits that count; of a huge one only its power of ten."""
    rounded = float(f"{x:.2g}")
    if x < 1e6:
        return f"{rounded:,.{rounded < 10:d}f}"
    power = str(math.floor(math.log10(x)))
    return "10" + power.translate(RAISED)


def facts(case):
    """Return what is said of a case, by name."""
    (end, _, passed, *_), root = case["line"], math.sqrt(case["d_k"])
    near = float(f"{max(end, 1 / end):.1g}")
    folds = {name: case[name][1] / case[name][0] for name in ("with", "without")}
    return {
        "keys": f"{case['keys']} keys",
        "d_k": f"d_k = {case['d_k']}",
        "end": f"about {near:,.0f} times {'larger' if end > 1 else 'smaller'}",
        "passed": f"{passed:.1g}" if passed > 0.01 else f"1/{number(1 / passed)}",
        "root": f"√{case['d_k']} {'=' if root % 1 == 0 else '≈'} {root:.0f}",
    } | {name: f"{x:.0f}-fold" if x < 10 else f"{number(x)}-fold" for name, x in folds.items()}


def alt(case):
    """Return a case in words."""
    said = facts(case)
    return (
        "The gradient without 1/√d_k, divided by the gradient with it, from L back to q. "
        f"{said['keys']}, {said['d_k']}: softmax passes on {said['passed']}, and at q it is "
        f"{said['end']}; the middle 8 of 10 differ {said['without']}, with the scale "
        f"{said['with']}."
    )
