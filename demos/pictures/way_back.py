"""Pictures · The way back through attention, for the query that is pointed at (chapter 11)."""

import numpy as np

from demos.pictures import data, drawing, figure, line, number, text
from minigrad import Tensor, gradients, softmax

LN3 = float(np.log(3.0))  # the first query, the keys and the values are those of chapter 11
Q = np.array([[2.0, 0.0, 0.0, 0.0], [0.0, LN3 / 2, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
K = np.array([[LN3, 0.0, 0.0, 0.0], [0.0, 4.0, 0.0, 0.0]])
V = np.array([[4.0, 0.0], [0.0, 4.0]])
G, SCALE = np.array([[1.0, -1.0], [1.0, 1.0], [0.0, 1.0]]), 0.5
LANES = {  # of each lane: where it is, its boxes, and what is on the arrow between two of them
    "fore": (16, "q z p o L", ["zⱼ = ½ q·kⱼ", "softmax", "o = Σⱼ pⱼ vⱼ", "L = Σ g·o, here"]),
    "back": (
        272,
        "∂L/∂q ∂L/∂z ∂L/∂p ∂L/∂o ∂L/∂L",
        ["½ Σⱼ ∂L/∂zⱼ kⱼ", "pⱼ (∂L/∂pⱼ - average)", "∂L/∂pⱼ = g·vⱼ", "g"],
    ),
}


def passes() -> dict[str, np.ndarray]:
    """Return what the engine finds in both passes: a row for each query, key or value."""
    q, k, v = (Tensor(x, requires_grad=True) for x in (Q, K, V))
    z = SCALE * (q @ k.mT)
    p = softmax(z)
    o = p @ v
    part = (G * o).sum(axis=-1)
    L = part.sum()
    named = {"q": q, "z": z, "p": p, "o": o, "k": k, "v": v}
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
    found |= {name: np.full(len(Q), value) for name, value in (("L", found["L"]), ("∂L/∂L", 1.0))}
    parts = []
    for kind, (x, names, rules) in LANES.items():
        for i, name in enumerate(names.split()):
            y = 16 + 74 * i
            parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="232" height="32" rx="7"/>')
            parts.append(text(x + 12, y + 21, name, f"start {kind}"))
            parts.append(text(x + 220, y + 21, shown(found[name][0]), f"end {kind}", value=name))
            if i < 4:
                ends = [(x + 24, y + 34), (x + 24, y + 72)][:: 1 if kind == "fore" else -1]
                parts.append(line(ends, kind, tip=True))
                parts.append(text(x + 40, y + 58, rules[i], "start soft"))
    parts.append(line([(248, 328), (270, 328)], "back", tip=True))
    parts.append(text(236, 296, shown(found["part"][0]), "end fore", value="part"))
    parts.append(text(492, 148, shown(found["average"][0]), "end back", value="average"))
    for i in range(len(K)):
        both = f"k{'₁₂'[i]} = {shown(K[i])}, v{'₁₂'[i]} = {shown(V[i])}"
        parts.append(text(16 + 256 * i, 376, both, "start"))
    alt = f"Query {shown(Q[0])}: "
    alt += ", ".join(f"{name} {shown(found[name][0])}" for name in ("z", "p", "o", "average"))
    alt += "".join(f", ∂L/∂{name} {shown(found[f'∂L/∂{name}'][0])}" for name in "pzq") + "."
    buttons = "".join(f'<button type="button">query {i + 1}</button> ' for i in range(len(Q)))
    kept = {"Q": Q.tolist(), "K": K.tolist(), "V": V.tolist(), "G": G.tolist(), "scale": SCALE}
    says = "A score’s gradient is its weight times how far its ∂L/∂p is above the average. The "
    says += "query’s is ½ times the sum of the keys with these factors."
    moved = f'{buttons}<p aria-live="polite"></p>{data(kept)}'
    return figure("way_back", drawing(520, 392, parts, alt), says, moved)
