"""Pictures · One gradient, shared by sum, mean and maximum (chapter 3.4)."""

import numpy as np

import minigrad
from demos.pictures import box, drawing, figure, line, number, text
from minigrad import Tensor, gradients


def picture() -> str:
    """Return the figure: three reductions of the same four numbers, and what each sends back."""
    parts, told = [], []
    for n, rule in enumerate((minigrad.sum, minigrad.mean, minigrad.max)):
        x = Tensor([1.0, 4.0, 2.0, 3.0], requires_grad=True)
        y = rule(x)
        (back,) = gradients(y, [x], np.float64(2.0))
        left = 20 + 220 * n
        for i, (value, share) in enumerate(zip(x.data, back, strict=True)):
            a = left + 24 + 47 * i
            if share:
                parts.append(line([(left + 94, 114), (a, 64)], "back", tip=True))
            else:
                parts.append(line([(left + 94, 114), (a, 64)], "soft"))
            parts.append(box(a, 46, number(value), "", 40))
            parts.append(text(a, 22, number(share), "back"))
        name = rule.__name__
        parts.append(box(left + 94, 130, f"{name} = {number(y.item())}", "", 100))
        parts.append(text(left + 94, 168, "g = 2", "back"))
        told.append(f"{name} sends back {', '.join(map(number, back))}")
    alt = f"The numbers 1, 4, 2, 3, and a gradient of 2 at their result: {'; '.join(told)}."
    says = (
        "Each input gets g times its own influence: 1 in a sum, 1/n in a mean, all or nothing in "
    )
    says += "a maximum."
    return figure("shared", drawing(670, 185, parts, alt), says)
