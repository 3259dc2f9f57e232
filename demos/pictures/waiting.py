"""Pictures · Values that wait, and why the newest is taken first (chapter 2.1)."""

from demos.pictures import box, figure, line, number, shapes, text
from minigrad import Tensor, gradients

PLACES = ((44, 108, 56), (140, 50, 90), (198, 108, 118), (364, 108, 80))  # x, a, b and L
ARROWS = (  # of what is sent: the points of its arrow, and of its label
    ((364, 91), (364, 50), (187, 50), (275, 43)),  # by L to a
    ((323, 108), (259, 108), (291, 101)),  # by L to b
    ((182, 91), (159, 68), (182, 82)),  # by b to a
    ((138, 108), (74, 108), (106, 101)),  # by b to x
    ((114, 67), (68, 91), (74, 76)),  # by a to x
)


def picture() -> str:
    """Return the figure: what each value sends back, and the sums that two orders give."""
    x = Tensor(3.0, requires_grad=True)
    a = x * x
    b = a + x
    of_x, of_a, of_b = (float(g) for g in gradients(a * b, [x, a, b]))
    to_a, to_b, slope = b.item(), a.item(), 2 * x.item()  # what L sends, and da/dx = 2x
    late, early = slope * of_a, slope * to_a  # what a sends after b and before b
    parts = []
    for (*points, label), sent in zip(ARROWS, (to_a, to_b, of_b, of_b, late), strict=True):
        parts.append(line(points, "back", tip=True))
        parts.append(text(*label, number(sent), "back"))
    made = ("x = 3", f"a = x² = {to_b:g}", f"b = a + x = {to_a:g}", "L = a b")
    for i, (name, (left, y, width)) in enumerate(zip(made, PLACES, strict=True)):
        parts.append(box(left, y, name, "", width))
        parts.append(text(left, y + (-24 if i == 1 else 33), f"time {i + 1}", "soft"))
    from_L = f"L sends b = {to_a:g} to *a*, and a = {to_b:g} to b. Now both wait."
    parts.append(text(16, 172, from_L, "start"))
    from_b = f"b sends {of_b:g} to *a*, {of_b:g} to x"
    newest = (
        "First b, the newest",
        from_b,
        f"*a* has {to_a:g} + {of_b:g} = {of_a:g}",
        f"*a* sends {of_a:g} · 2x = {late:g}",
        f"∂L/∂x = {of_b:g} + {late:g} = {of_x:g}",
    )
    older = (
        "First *a*: wrong",
        f"*a* sends {to_a:g} · 2x = {early:g}",
        from_b,
        f"{of_b:g} comes too late for *a*",
        f"x gets {early:g} + {of_b:g} = {early + of_b:g}",
    )
    for left, kind, rows in ((16, "", newest), (216, "cross", older)):
        parts.append(shapes.group([shapes.rect(left, 188, 188, 132, rx=7)], kind))
        for i, row in enumerate(rows):
            parts.append(text(left + 10, 212 + 24 * i, row, f"start {kind}"))
    alt = f"a is used by b and by L. The newest first, b, gives {of_x:g} for ∂L/∂x: a has both its "
    alt += f"contributions when it sends. With a first, x gets {early + of_b:g}, which is wrong."
    says = "The newest value that waits is taken first. All values that were made from it are "
    says += (
        "newer, so they have sent it their gradients: its sum is complete. (A loop in which *a* "
    )
    says += f"waits again when {of_b:g} has come sends it twice: x gets {early + of_b + late:g}.)"
    return figure("waiting", (420, 336), parts, alt, says)
