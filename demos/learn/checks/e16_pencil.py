"""Exercise 16 · The check: the engine's numbers, and from which step a wrong one comes."""

import numbers

import numpy as np

from demos.learn._telling import Unsolved, given, law
from minigrad import Tensor, gradients, softmax

HINTS = (
    "exp(ln 2) is 2, and exp(0) is 1. If one of two weights is twice the other, what are they? "
    "Going back, take the steps of the way forward in the opposite order: first o, then p, then z.",
    "∂L/∂vⱼ is pⱼ g, and ∂L/∂pⱼ is g·vⱼ. A score gets its weight times (its g·vⱼ minus the average "
    "of both under the weights). For q and the keys the scale ½ is a further factor.",
    "∂L/∂q = ½ (∂L/∂z₁ k₁ + ∂L/∂z₂ k₂) and ∂L/∂k₂ = ½ ∂L/∂z₂ q, where ∂L/∂z₂ = -∂L/∂z₁. A step of "
    "q subtracts a multiple of key 1 and adds the same multiple of key 2. What happens to q·k₁ if "
    "both keys point the same way, and key 2 is the longer one?",
)
RATE = 0.01


def check(answer):
    """Check one number after the other; then what a step of q lowers, by the engine."""
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
    for name, right, step, mistakes in (
        ("p_1", p_1, "from the scores to the weights", unscaled),
        ("dp_1", to_p[0], "from o back to the weights", early),
        ("average", average, "in the middle of softmax's way back", plain),
        ("dz_1", to_z[0], "from the weights back to the scores", direct),
        ("dq", to_q[1], "from the scores back to q", {to_q[1] / scale: no_scale}),
        ("dk_2", to_k[1, 0], "from the scores back to the keys", {to_k[1, 0] / scale: no_scale}),
        ("dv_1", to_v[0, 0], "from o back to the values", {g[0]: no_weight}),
    ):
        told(answer, name, right, step, mistakes)
    falls = given(answer, "falls")
    if falls not in ("loss", "scores"):
        raise Unsolved(f'falls is {falls!r}: write "loss" or "scores"', "value")
    alike = np.array([[1.0, 0.0], [3.0, 0.0]])  # keys that share a direction
    (before, after), _ = stepped(np.array([1.0, 0.0]), alike, values, g, scale)
    law(
        "the step lowers the score of each key whose value raises the loss more than the average",
        falls == "loss",
        "take q = (1, 0) and the keys (1, 0) and (3, 0), and all else as above: in a step with the "
        f"rate {RATE}, q·k₁ goes from {before[0]:.3g} to {after[0]:.3g}",
    )
    (before, after), losses = stepped(q, keys.data, values, g, scale)
    print(
        f"In a step with the rate {RATE}, the loss goes from {losses[0]:.3g} to {losses[1]:.3g}; "
        f"rate · ‖∂L/∂q‖² is {RATE * to_q @ to_q:.3g}. As these two keys are orthogonal, q·k₁ "
        f"falls too, from {before[0]:.3g} to {after[0]:.3g}."
    )


def stepped(q, keys, values, g, scale):
    """Return q·k of each key before and after a step of descent of q, and the loss likewise."""
    query = Tensor(q, requires_grad=True)
    loss = lambda x: g @ (softmax(scale * (keys @ x)) @ values)
    (slope,) = gradients(loss(query), [query])
    after = q - RATE * slope
    return (keys @ q, keys @ after), (loss(query).item(), loss(Tensor(after)).item())


def told(answer, name, right, step, mistakes):
    """Raise Unsolved, with the mistake behind the number, unless it has three right digits."""
    value = given(answer, name)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise Unsolved(f"{name} is {value!r}: write a number, such as 2/7 or 0.286", "value")
    close = lambda number: abs(float(value) - number) <= 0.004 * abs(number)
    if close(right):
        return
    known = [words for number, words in mistakes.items() if close(number)]
    if close(-right):
        known.append("the sign is the other one")
    why = known[0] if known else f"look again at the step {step}, and give three digits"
    raise Unsolved(f"{name} = {float(value):.4g} is not right: {why}", "value")
