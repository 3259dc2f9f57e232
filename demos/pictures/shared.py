"""Pictures · One gradient, shared by sum, mean and maximum (chapter 3.4)."""

import numpy as np

import minigrad
from demos.pictures import box, figure, line, number, text
from minigrad import Tensor, gradients


def picture() -> str:
    """Return the figure: three reductions of the same four numbers, and what each sends back."""
    parts, shares = [], []
    for n, rule in enumerate((minigrad.sum, minigrad.mean, minigrad.max)):
        x = Tensor([1.0, 4.0, 2.0, 3.0], requires_grad=True)
        y = rule(x)
        (back,) = gradients(y, [x], np.float64(2.0))
        middle = 79 + 156 * n
        for i, (value, share) in enumerate(zip(x.data, back, strict=True)):
            a, kind = middle - 54 + 36 * i, "back" if share else "soft"
            parts.append(line([(middle, 122), (a, 66)], kind, tip=bool(share)))
            parts.append(box(a, 48, number(value), "", 32) + text(a, 24, number(share), kind))
        parts.append(box(middle, 138, f"{rule.__name__} = {number(y.item())}", "", 100))
        parts.append(text(middle, 176, "g = 2", "back"))
        shares.append(f"{rule.__name__} sends back {', '.join(map(number, back))}")
    alt = f"The numbers 1, 4, 2, 3, and a gradient of 2 at their result: {'; '.join(shares)}."
    says = "Each input gets g times its own influence: 1 in a sum, 1/n in a mean. In a maximum the "
    says += "influence of the largest is 1, and that of the others 0."
    return figure("shared", (470, 194), parts, alt, says)
