"""Pictures · The way back through attention, for the query that is pointed at (chapter 11)."""

import numpy as np
from markupsafe import Markup

from demos.pictures import data, figure, line, number, shapes, text
from minigrad import Tensor, gradients, softmax

LN3 = float(np.log(3.0))  # the first query, the keys and the values are those of chapter 11
Q = np.array([[2.0, 0.0, 0.0, 0.0], [0.0, LN3 / 2, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
K = np.array([[LN3, 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]])
V = np.array([[4.0, 0.0], [0.0, 4.0]])
G, SCALE = np.array([[1.0, -1.0], [1.0, 1.0], [0.0, 1.0]]), 0.5
LANES = {  # of each lane: where it is, its names, and what is on the arrow between two boxes
    "fore": (16, "", ["zⱼ = ½ q·kⱼ", "softmax", "o = Σⱼ pⱼ vⱼ", "its part g·o of L"]),
    "back": (226, "∂L/∂", ["½ Σⱼ ∂L/∂zⱼ kⱼ", "pⱼ (∂L/∂pⱼ - g·o)", "∂L/∂pⱼ = g·vⱼ", "∂L/∂o = g"]),
}


def passes() -> dict[str, np.ndarray]:
    """Return what the engine finds in both passes: a row for each query, key or value."""
    q = Tensor(Q, requires_grad=True)
    z = SCALE * (q @ K.T)
    p = softmax(z)
    o = p @ V
    part = (G * o).sum(axis=-1)
    L = part.sum()
    named = {"q": q, "z": z, "p": p, "o": o}
    arrays = {"part": part.data, "L": L.data}
    for (name, x), of_x in zip(named.items(), gradients(L, [q, z, p, o]), strict=True):
        arrays[name] = x.data
        arrays[f"∂L/∂{name}"] = of_x
    arrays["average"] = (p.data * arrays["∂L/∂p"]).sum(axis=-1)
    return arrays


def numbers(x: np.ndarray) -> str:
    """Return numbers as the picture shows them; what is 0 on paper is 0."""
    listed = ", ".join(number(0.0 if abs(y) < 1e-12 else float(y), 4) for y in np.ravel(x))
    return f"({listed})" if np.size(x) > 1 else listed


def picture() -> str:
    """Return the figure: the lane forward, the lane back, and the first query's numbers in both."""
    arrays = passes()
    first = {name: numbers(x[0]) for name, x in arrays.items() if name != "L"}
    first["∂L/∂L"] = "1"
    total = f"{' + '.join(map(numbers, arrays['part']))} = {numbers(arrays['L'])}"
    parts = [text(16, 25, "forward, of query", "start fore"), text(226, 25, "back", "start back")]
    parts.append(text(143, 25, "1", "start fore", value="t"))
    for kind, (x, gradient, rules) in LANES.items():
        for i, letter in enumerate("qzpoL"):
            name, y = gradient + letter, 36 + 74 * i
            parts.append(shapes.rect(x, y, 198, 32, kind, rx=7))
            parts.append(text(x + 12, y + 21, name, f"start {kind}"))
            if name == "L":
                parts.append(text(x + 188, y + 21, total, f"end {kind}"))
            else:
                parts.append(text(x + 188, y + 21, first[name], f"end {kind}", value=name))
            if i < 4:
                ends = [(x + 24, y + 34), (x + 24, y + 72)]
                if kind == "back":
                    ends.reverse()
                parts.append(line(ends, kind, tip=True))
                parts.append(text(x + 36, y + 58, rules[i], "start soft"))
    parts.append(line([(214, 348), (225, 348)], "back", tip=True))
    parts.append(text(204, 316, first["part"], "end fore", value="part"))
    for j, low in enumerate("₁₂"):
        parts.append(text(16 + 210 * j, 394, f"k{low} = {numbers(K[j])}", "start"))
        parts.append(text(16 + 210 * j, 416, f"v{low} = {numbers(V[j])}", "start"))
    names = ("z", "p", "o", "average", "∂L/∂p", "∂L/∂z", "∂L/∂q")
    alt = f"Query {first['q']}: {', '.join(f'{name} {first[name]}' for name in names)}."
    buttons = [shapes.button(f"query {i + 1}") for i in range(len(Q))]
    given = {"Q": Q.tolist(), "K": K.tolist(), "V": V.tolist(), "G": G.tolist(), "scale": SCALE}
    says = "L is the sum of g·o over three queries, each with its own g. A score’s gradient is its "
    says += "weight times how far its ∂L/∂p is above the average, which is g·o. The query’s is "
    says += "1/√d_k = ½ times the sum of the keys, each times its score’s gradient."
    moved = Markup(" ").join([*buttons, shapes.answer() + data(given)])
    return figure("way_back", (440, 430), parts, alt, says, moved)
