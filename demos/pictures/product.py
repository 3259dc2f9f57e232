"""Pictures · A row times a column: what an element reaches, and what comes back (chapter 3.5)."""

import numpy as np

from demos.pictures import data, drawing, figure, number, text
from minigrad import Tensor, gradients

SIDE = 44
PLACES = {"A": (40, 158), "B": (210, 20), "C": (210, 158), "G": (400, 158)}


def numbers() -> dict[str, np.ndarray]:
    """Return A, B, C, the gradient G at C, and the gradients of A and B."""
    a = Tensor([[1.0, 2.0, 0.0], [3.0, -1.0, 1.0]], requires_grad=True)
    b = Tensor([[2.0, 1.0], [0.0, 1.0], [1.0, -2.0]], requires_grad=True)
    c, g = a @ b, np.array([[1.0, 0.5], [-1.0, 2.0]])
    of_a, of_b = gradients(c, [a, b], g)
    return {"A": a.data, "B": b.data, "C": c.data, "G": g, "∂L/∂A": of_a, "∂L/∂B": of_b}


def picture() -> str:
    """Return the figure: four matrices; an element of A or B is a button."""
    found, parts = numbers(), []
    for name, (x, y) in PLACES.items():
        parts.append(text(x - 16, y + SIDE * len(found[name]) / 2 + 5, name, "big"))
        for (i, j), value in np.ndenumerate(found[name]):
            a, b = x + SIDE * j, y + SIDE * i
            at = f'class="cell" data-m="{name}" data-i="{i}" data-j="{j}"'
            says = f"{name}, row {i + 1}, column {j + 1}: {number(value)}"
            at += f' tabindex="0" role="button" aria-label="{says}"' * (name in "AB")
            kind = "back" if name == "G" else "fore"
            shape = f'<rect x="{a}" y="{b}" width="{SIDE}" height="{SIDE}"/>'
            middle = text(a + SIDE / 2, b + SIDE / 2 + 5, number(value), kind)
            parts.append(f"<g {at}>{shape}{middle}</g>")
    parts.append(text(330, 60, "Point at an element", "start soft"))
    parts.append(text(330, 80, "of A or of B.", "start soft"))
    shown = "; ".join(f"{x}: {found[x].ravel().tolist()}" for x in ("∂L/∂A", "∂L/∂B"))
    alt = f"A (2 × 3), B (3 × 2), C = A B, and G = ∂L/∂C, with {shown}."
    first = f"{number(1.0)} · {number(2.0)} + {number(0.5)} · {number(1.0)}"
    told = f'<p aria-live="polite">∂L/∂A₁₁ = {first} = {number(found["∂L/∂A"][0, 0])}</p>'
    kept = {name: array.tolist() for name, array in found.items() if len(name) == 1}
    says = "An element of A reaches one row of C, and an element of B one column."
    return figure("product", drawing(520, 275, parts, alt), says, told + data(kept))
