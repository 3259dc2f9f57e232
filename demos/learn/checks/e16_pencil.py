"""Exercise 16 · The check: the engine's numbers, and from which line a wrong one comes."""

import numbers

import numpy as np

from demos.learn._telling import Unsolved, given, law
from minigrad import Tensor, gradients, softmax

HINTS = (
    "exp(ln 2) is 2, and exp(0) is 1. If one of two weights is twice the other, what are they? "
    "Going back, take the steps of the way forward in the opposite order: first o, then p, then z.",
    "∂L/∂vⱼ is pⱼ g, and ∂L/∂pⱼ is g·vⱼ. A score gets its weight times (its g·vⱼ minus the average "
    "of both under the weights). For q and the keys the scale ½ is a further factor.",
    "∂L/∂q = ½ (∂L/∂z₁ k₁ + ∂L/∂z₂ k₂) and ∂L/∂k₂ = ½ ∂L/∂z₂ q, where ∂L/∂z₂ = -∂L/∂z₁. ∂L/∂q "
    "points toward the key whose value raises the loss more than the average. A step goes against "
    "the gradient.",
)


def check(answer):
    """Check one number after the other; then the direction of a step, by the engine."""
    names = ("q", "k_1", "k_2", "v_1", "v_2", "g")
    q, k_1, k_2, v_1, v_2, g = (np.array(given(answer, name), float) for name in names)
    scale = 1 / np.sqrt(len(q))
    query, keys, values = (Tensor(x, requires_grad=True) for x in (q, [k_1, k_2], [v_1, v_2]))
    z = scale * (keys @ query)
    p = softmax(z)
    o = p @ values
    to_p, to_z, to_q, to_k, to_v = gradients(o, [p, z, query, keys, values], g)
    p_1, p_2 = p.data
    average, unscaled = g @ o.data, softmax(keys.data @ q)[0]
    no_scale, no_weight = "the scale is missing", "the weight is missing"
    unscaled = {unscaled: "the scale is missing in the scores", p_2: "this is the weight of key 2"}
    early = {p_1 * to_p[0]: "the weight does not belong here yet", to_p[1]: "this is ∂L/∂p₂"}
    plain = {to_p.mean(): "this is the plain average, and the two weights are not equal"}
    direct = {p_1 * to_p[0]: "the average is not subtracted", to_p[0] - average: no_weight}
    for name, right, line, mistakes in (
        ("p_1", p_1, "p = softmax(z), with zⱼ = scale · q·kⱼ", unscaled),
        ("dp_1", to_p[0], "∂L/∂pⱼ = g·vⱼ", early),
        ("average", average, "p₁ ∂L/∂p₁ + p₂ ∂L/∂p₂, which is g·o", plain),
        ("dz_1", to_z[0], "∂L/∂zⱼ = pⱼ (∂L/∂pⱼ - average)", direct),
        ("dq", to_q[1], "∂L/∂q = scale · (∂L/∂z₁ k₁ + ∂L/∂z₂ k₂)", {to_q[1] / scale: no_scale}),
        ("dk_2", to_k[1, 0], "∂L/∂k₂ = scale · ∂L/∂z₂ q", {to_k[1, 0] / scale: no_scale}),
        ("dv_1", to_v[0, 0], "∂L/∂v₁ = p₁ g", {g[0]: no_weight}),
    ):
        told(answer, name, right, line, mistakes)
    away = given(answer, "away")
    if away not in ("k_1", "k_2"):
        raise Unsolved(f'away is {away!r}: write "k_1" or "k_2"', "value")
    before, after = keys.data @ q, keys.data @ (q - 0.01 * to_q)
    pairs = zip("₁₂", before, after, strict=True)
    moves = " and ".join(f"q·k{i} goes from {b:.3g} to {a:.3g}" for i, b, a in pairs)
    i = ("k_1", "k_2").index(away)
    law(
        "a step goes against the gradient, and so away from the key whose value raises the loss "
        "more than the average: its score falls",
        after[i] < before[i],
        f"in a step with the rate 0.01, {moves}",
    )
    print(f"In a step with the rate 0.01, {moves}.")


def told(answer, name, right, line, mistakes):
    """Raise Unsolved, with the mistake behind the number, unless it has three right digits."""
    value = given(answer, name)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise Unsolved(f"{name} is {value!r}: write a number, such as 2/7 or 0.286", "value")
    close = lambda number: abs(float(value) - number) <= 0.004 * abs(number)
    if close(right):
        return
    known = [words for number, words in mistakes.items() if close(number)]
    known += ["the sign is the other one"] * bool(close(-right))
    guess = f" ({known[0]})" if known else ""
    raise Unsolved(f"{name} = {float(value):.4g} is not right{guess}. Its line is {line}", "value")
