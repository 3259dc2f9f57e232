"""Pictures · Values that wait, and why the newest is taken first (chapter 2.1)."""

from demos.pictures import box, drawing, figure, line, number, text
from minigrad import Tensor, gradients

PLACES = ((44, 108, 56), (140, 50, 90), (198, 108, 118), (364, 108, 80))  # x, a, b and L
ARROWS = {  # of what is sent: where it leaves, where it arrives, and its label
    "La": ((364, 91), (364, 50), (187, 50), (275, 43)),
    "Lb": ((323, 108), (259, 108), (291, 101)),
    "ba": ((182, 91), (159, 68), (182, 82)),
    "bx": ((138, 108), (74, 108), (106, 101)),
    "ax": ((114, 67), (68, 91), (74, 76)),
}


def picture() -> str:
    """Return the figure: what each value sends back, and the sums that two orders give."""
    x = Tensor(3.0, requires_grad=True)
    a = x * x
    b = a + x
    of_x, of_a, of_b = (float(g) for g in gradients(a * b, [x, a, b]))
    slope = 2 * x.item()  # of a = x²
    sent = {"La": b.item(), "Lb": a.item(), "ba": of_b, "bx": of_b, "ax": slope * of_a}
    early = slope * sent["La"]  # what a sends if it is taken before b
    made, parts = ["x = 3", f"a = x² = {number(a.item())}", f"b = a + x = {number(b.item())}"], []
    for way, (*points, label) in ARROWS.items():
        parts += [line(points, "back", tip=True), text(*label, number(sent[way]), "back")]
    for i, (name, (left, y, width)) in enumerate(zip([*made, "L = a b"], PLACES, strict=True)):
        parts.append(box(left, y, name, "", width))
        parts.append(text(left, y + (-24 if i == 1 else 33), f"time {i + 1}", "soft"))
    told = f"L sends b = {number(b.item())} to *a*, and a = {number(a.item())} to b. Now both wait."
    parts.append(text(16, 172, told, "start"))
    from_b = f"b sends {number(of_b)} to *a*, {number(of_b)} to x"
    newest = f"""First b, the newest\n{from_b}
        *a* has {number(sent["La"])} + {number(of_b)} = {number(of_a)}
        *a* sends {number(of_a)} · 2x = {number(sent["ax"])}
        ∂L/∂x = {number(of_b)} + {number(sent["ax"])} = {number(of_x)}"""
    older = f"""First *a*: wrong
        *a* sends {number(sent["La"])} · 2x = {number(early)}\n{from_b}
        {number(of_b)} comes too late for *a*
        x gets {number(early)} + {number(of_b)} = {number(early + of_b)}"""
    for left, kind, rows in ((16, "", newest), (216, "cross", older)):
        parts.append(
            f'<g class="{kind}"><rect x="{left}" y="188" width="188" height="132" rx="7"/>'
        )
        for i, row in enumerate(rows.split("\n")):
            parts.append(text(left + 10, 212 + 24 * i, row.strip(), f"start {kind}"))
        parts.append("</g>")
    alt = (
        f"a is used by b and by L. The newest first, b, gives {number(of_x)} for ∂L/∂x: a has both "
    )
    alt += (
        f"contributions when it sends. With a first, x gets {number(early + of_b)}, which is wrong."
    )
    says = "When the newest is taken, all that was made from it has sent: its gradient is complete."
    return figure("waiting", drawing(420, 336, parts, alt), says)
