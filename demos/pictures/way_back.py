"""Pictures · The way back through attention, for the query that is pointed at (chapter 11)."""

import numpy as np

from demos.pictures import data, drawing, figure, line, number, text
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
    back = dict(zip(named, gradients(L, [*named.values()]), strict=True))
    found = {name: x.data for name, x in named.items()} | {"part": part.data, "L": L.data}
    average = (p.data * back["p"]).sum(axis=-1)
    return found | {f"∂L/∂{name}": x for name, x in back.items()} | {"average": average}


def shown(x: np.ndarray) -> str:
    """Return numbers as the picture shows them; what is 0 on paper is 0."""
    numbers = ", ".join(number(0.0 if abs(y) < 1e-12 else float(y), 4) for y in np.ravel(x))
    return f"({numbers})" if np.size(x) > 1 else numbers


def picture() -> str:
    """Return the figure: the lane forward, the lane back, and the first query's numbers in both."""
    found = passes()
    found |= {"∂L/∂L": np.ones(len(Q)), "t": np.arange(1.0, len(Q) + 1)}
    total = f"{' + '.join(map(shown, found['part']))} = {shown(found['L'])}"
    parts = [text(16, 25, "forward, of query", "start fore"), text(226, 25, "back", "start back")]
    parts.append(text(143, 25, shown(found["t"][0]), "start fore", value="t"))
    for kind, (x, gradient, rules) in LANES.items():
        for i, letter in enumerate("qzpoL"):
            name, y = gradient + letter, 36 + 74 * i
            parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="198" height="32" rx="7"/>')
            parts.append(text(x + 12, y + 21, name, f"start {kind}"))
            value, at = (total, {}) if name == "L" else (shown(found[name][0]), {"value": name})
            parts.append(text(x + 188, y + 21, value, f"end {kind}", **at))
            if i < 4:
                ends = [(x + 24, y + 34), (x + 24, y + 72)][:: 1 if kind == "fore" else -1]
                parts.append(line(ends, kind, tip=True))
                parts.append(text(x + 36, y + 58, rules[i], "start soft"))
    parts.append(line([(214, 348), (225, 348)], "back", tip=True))
    parts.append(text(204, 316, shown(found["part"][0]), "end fore", value="part"))
    for j, low in enumerate("₁₂"):
        parts.append(text(16 + 210 * j, 394, f"k{low} = {shown(K[j])}", "start"))
        parts.append(text(16 + 210 * j, 416, f"v{low} = {shown(V[j])}", "start"))
    alt = f"Query {shown(Q[0])}: "
    alt += ", ".join(f"{name} {shown(found[name][0])}" for name in ("z", "p", "o", "average"))
    alt += "".join(f", ∂L/∂{name} {shown(found[f'∂L/∂{name}'][0])}" for name in "pzq") + "."
    buttons = "".join(f'<button type="button">query {i + 1}</button> ' for i in range(len(Q)))
    kept = {"Q": Q.tolist(), "K": K.tolist(), "V": V.tolist(), "G": G.tolist(), "scale": SCALE}
    says = "L is the sum of g·o over three queries, each with its own g. A score’s gradient is its "
    says += "weight times how far its ∂L/∂p is above the average, which is g·o. The query’s is "
    says += "1/√d_k = ½ times the sum of the keys, each times its score’s gradient."
    moved = f'{buttons}<p aria-live="polite"></p>{data(kept)}'
    return figure("way_back", drawing(440, 430, parts, alt), says, moved)
