"""Pictures · The gradient is a record too, so it has a gradient (chapter 2.3)."""

from demos.pictures import box, figure, line, number, text
from minigrad import Tensor, gradients


def picture() -> str:
    """Return the figure: y = x³, its gradient as a second record, and the gradient of that."""
    x = Tensor(1.0, requires_grad=True)
    y = x**3
    (slope,) = gradients(y, [x], create_graph=True)
    (curvature,) = gradients(slope, [x])
    parts = [
        line([(92, 40), (176, 40)], "fore", tip=True),
        box(60, 40, "x = 1", "", 64),
        box(226, 40, f"y = x³ = {number(y.item())}", "", 100),
        line([(276, 54), (330, 100)], "back", tip=True),
        text(354, 66, "the way back"),
        box(356, 118, f"∂y/∂x = 3x² = {number(slope.item())}", "", 150),
        line([(72, 58), (280, 114)], "fore", tip=True),
        text(128, 108, "uses x again", "fore"),
        line([(282, 132), (184, 184)], "back", tip=True),
        text(300, 170, "its own way back", "back"),
        box(112, 200, f"∂²y/∂x² = 6x = {number(curvature.item())}", "", 160),
    ]
    alt = f"At x = 1: y = x³ is {number(y.item())}. Its gradient 3x² = {number(slope.item())} is "
    alt += f"computed from x too, and its own gradient is 6x = {number(curvature.item())}."
    says = (
        "With `create_graph=True` the gradient of y is computed from x by recorded operations. So "
        "it is a result like any other, and can be differentiated again."
    )
    return figure("curvature", (470, 226), parts, alt, says)
