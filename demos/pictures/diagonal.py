"""Pictures · A diagonal Jacobian is an elementwise product (chapter 3.1)."""

import numpy as np

from demos.pictures import figure, number, shapes, text
from minigrad import Tensor, gradients

SIDE = 34


def cells(x: float, y: float, numbers: np.ndarray, kind: str) -> list[str]:
    """Return a matrix of numbers, its zeros pale, from its corner on."""
    parts = []
    for (i, j), value in np.ndenumerate(np.atleast_2d(numbers)):
        a, b = x + SIDE * j, y + SIDE * i
        parts.append(shapes.rect(a, b, SIDE, SIDE))
        parts.append(text(a + SIDE / 2, b + SIDE / 2 + 5, number(value), kind if value else "soft"))
    return parts


def picture() -> str:
    """Return the figure: g times the Jacobian of y = x², and the product that it comes to."""
    x, g = Tensor([1.0, -2.0, 0.5, 3.0], requires_grad=True), np.array([1.0, 0.5, -1.0, 2.0])
    (back,) = gradients(x**2, [x], g)
    slopes = 2 * x.data
    middle = 34 + 2 * SIDE
    parts = [*cells(6, middle - SIDE / 2, g, "back"), text(74, middle - 28, "g", "back")]
    parts += [text(154, middle + 5, "×"), *cells(167, 34, np.diag(slopes), "fore")]
    parts += [text(235, 22, "J, the Jacobian of y = x²", "fore"), text(315, middle + 5, "=")]
    parts += [*cells(328, middle - SIDE / 2, back, "back")]
    parts += [text(396, middle - 28, "g ⊙ 2x = ∂L/∂x", "back")]
    numbers = ", ".join(map(number, back))
    alt = f"A row g times a 4 × 4 matrix with 2x on its diagonal and 0 elsewhere gives {numbers}."
    says = "Of sixteen slopes twelve are 0. So no matrix is built: multiply element by element."
    return figure("diagonal", (470, 184), parts, alt, says)
