"""Demos · Learn: a typical mistake in each exercise, as a change of our own lines."""

from __future__ import annotations

from demos.learn.exercises import solution, stub

MISTAKES = {  # of each exercise: what stands in our lines, and what is often written instead
    "e01_slope": ("(f(x + h) - f(x - h)) / (2 * h)", "(f(x + h) - f(x)) / h"),
    "e02_product": ("lambda g: g * b, lambda g: g * a", "lambda g: b, lambda g: a"),
    "e03_chain": ("for function in reversed(functions):", "for function in functions:"),
    "e04_two_uses": ("to_factor(g) + to_x(to_sine(g))", "to_factor(g) * to_x(to_sine(g))"),
    "e05_order": (
        "sorted(found, key=lambda value: value.time, reverse=True)",
        "sorted(found, key=lambda value: value.time)",
    ),
    "e06_bug": ("x.grad = x.grad + function(value.grad)", "x.grad = function(value.grad)"),
    "e07_exp": ("lambda g, y: g * y", "lambda g, y: g * x * np.exp(x - 1)"),
    "e08_sum": (
        "lambda g, y: np.broadcast_to(g.reshape(kept), x.shape)",
        "lambda g, y: g * np.ones(x.shape)",
    ),
    "e09_unbroadcast": (
        "return g.sum(axis=tuple(stretched), keepdims=True)",
        "return g.sum(axis=tuple(stretched))",
    ),
    "e10_matmul": ("lambda g, y: g @ b.mT", "lambda g, y: g @ b"),
    "e11_pick": ("np.add.at(gradient, index, g)", "gradient[index] += g"),
    "e12_double": ("lambda g, y: g * x / y", "lambda g, y: 2 * g * x / y"),
    "e13_softmax": (
        "lambda g, y: y * (g - (y * g).sum(axis=axis, keepdims=True))",
        "lambda g, y: g * y * (1 - y)",
    ),
    "e14_cross_entropy": (
        "lambda g, y: g - np.exp(y) * g.sum(axis=-1, keepdims=True)",
        "lambda g, y: g - np.exp(y) * g",
    ),
    "e15_layer_norm": (
        "h = h - h.mean(axis=-1, keepdims=True)\n"
        "        return (h - n * (n * h).mean(axis=-1, keepdims=True)) / sigma",
        "return h / sigma",
    ),
    "e16_pencil": ("p_1 = 2 / 3", "p_1 = 4 / 5"),
    "e17_predict": ('dead = "rises"', 'dead = "more"'),
    "e18_bug": (
        "largest = scores.max(axis=-1, keepdims=True)",
        "largest = scores.max(axis=1, keepdims=True)",
    ),
    "e19_attention": ("scores = q @ k.mT / np.sqrt(q.shape[-1])", "scores = q @ k.mT"),
    "e20_mask": (
        "return where(mask, softmax(allowed), 0.0)",
        "return softmax(where(mask, scores, -np.inf))",
    ),
    "e21_heads": (
        "return heads.swapaxes(-3, -2).reshape(*batch, T, num_heads * d_k)",
        "return heads.reshape(*batch, T, num_heads * d_k)",
    ),
    "e22_backward": (
        "return P * (dP - (P * dP).sum(axis=-1, keepdims=True))",
        "return P * (dP - dP.mean(axis=-1, keepdims=True))",
    ),
    "e23_optimizer": (
        "corrected_m, corrected_v = m / (1 - b1**t), v / (1 - b2**t)",
        "corrected_m, corrected_v = m, v",
    ),
    "e24_reverse": (
        'h = x + matmul(merge(attention(q, k, v, softmax)), p["w_o"])',
        'h = matmul(merge(attention(q, k, v, softmax)), p["w_o"])',
    ),
}


def mistaken(name: str) -> str:
    """Return an exercise's file with the typical mistake in it; that of a course as it is given."""
    if name not in MISTAKES:
        return stub(name)
    ours, theirs = MISTAKES[name]
    text = solution(name)
    if text.count(ours) != 1:
        raise ValueError(f"the solution of {name} does not have {ours!r} once")
    return text.replace(ours, theirs)
