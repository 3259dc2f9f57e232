"""Pictures · A row times a column: what an element reaches, and what comes back (chapter 3.5)."""

import numpy as np

from demos.pages.text import inline
from demos.pictures import data, figure, number, shapes, text
from minigrad import Tensor, gradients

SIDE = 40
PLACES = {"A": (36, 152), "B": (190, 18), "C": (190, 152), "G": (316, 152)}
LEGEND = {"now": "the element", "reached": "what it reaches", "used": "its factors"}
STILL = {"A": "now", "B": "used", "C": "reached", "G": "reached"}  # of A₁₁ (in B: of its row 1)


def numbers() -> dict[str, np.ndarray]:
    """Return A, B, C, the gradient G at C, and the gradients of A and B."""
    a = Tensor([[1.0, 2.0, 0.0], [3.0, -1.0, 1.0]], requires_grad=True)
    b = Tensor([[2.0, 1.0], [0.0, 1.0], [1.0, -2.0]], requires_grad=True)
    c, g = a @ b, np.array([[1.0, 0.5], [-1.0, 2.0]])
    of_a, of_b = gradients(c, [a, b], g)
    return {"A": a.data, "B": b.data, "C": c.data, "G": g, "∂L/∂A": of_a, "∂L/∂B": of_b}


def picture() -> str:
    """Return the figure: four matrices, and the sum for A₁₁; another element can be pointed at."""
    arrays, parts = numbers(), []
    for name, (x, y) in PLACES.items():
        parts.append(text(x - 18, y + SIDE * len(arrays[name]) / 2 + 5, f"*{name}*", "big"))
        for (i, j), value in np.ndenumerate(arrays[name]):
            a, b = x + SIDE * j, y + SIDE * i
            kind = f"cell {STILL[name]}" if i == 0 and (j == 0 or name != "A") else "cell"
            edge = shapes.rect(a + 2, b + 2, SIDE - 4, SIDE - 4)
            inside = text(a + 20, b + 25, number(value), "back" if name == "G" else "fore")
            parts.append(shapes.group([edge, inside], kind, {"m": name, "i": i, "j": j}))
    for i, (kind, words) in enumerate(LEGEND.items()):
        edge = shapes.rect(18, 22 + 28 * i, 16, 16)
        parts.append(shapes.group([edge, text(42, 35 + 28 * i, words, "start soft")], kind))
    parts += [text(304, 62, "C = A B", "start soft"), text(304, 90, "G = ∂L/∂C", "start soft")]
    terms = f"∂L/∂A₁₁ = 1 · 2 + 0.5 · 1 = {number(arrays['∂L/∂A'][0, 0])}"
    parts.append(text(210, 266, terms, "big", sum=""))
    of_a, of_b = (arrays[name].ravel().tolist() for name in ("∂L/∂A", "∂L/∂B"))
    alt = f"A (2 × 3), B (3 × 2), C = A B, and G = ∂L/∂C, with ∂L/∂A: {of_a}; ∂L/∂B: {of_b}."
    given = {name: array.tolist() for name, array in arrays.items() if len(name) == 1}
    says = "An element of A reaches one row of C, an element of B one column. Its gradient is that "
    says += "row or column of G times the element’s factors."
    moved = inline("Point at an element of A or B.") + data(given)
    return figure("product", (420, 284), parts, alt, says, moved)
