"""Pictures · A line of code, and a node appears (chapter 1.2)."""

from demos.pictures import box, drawing, figure, line, number, text
from minigrad import Tensor

CODE = ("x = Tensor([1, 2, 3], …)", "y = x * x", "L = y.sum()", "with no_grad(): x * x")


def picture() -> str:
    """Return the figure: three lines and what each of them leaves; a fourth leaves nothing."""
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    loss = y.sum()
    parts, heights = [], (36, 100, 164, 228)
    for i, (code, height) in enumerate(zip(CODE, heights, strict=True)):
        parts.append(text(20, height + 5, code, "start mono"))
        if i < 3:
            parts.append(line([(230, height), (300, height)], "soft"))
    parts += [
        box(360, 36, "x", "", 90),
        text(420, 41, "a leaf: it has no node", "start soft"),
        text(320, 233, "no node: nothing to go back by", "start soft"),
    ]
    named = {id(x): "x", id(y): "y"}
    for name, t, height in (("y", y, 100), ("L", loss, 164)):
        node = t.node
        inputs = ", ".join(named[id(each)] for each in node.inputs)
        parts.append(box(360, height, f"{name}: {node.name}", "", 110))
        says = f"inputs {inputs} · {len(node.vjps)} VJP{'s' * (len(node.vjps) > 1)}"
        parts.append(text(428, height + 5, says, "start soft"))
    parts += [line([(a, 84 - 2), (a, 53)], "back", tip=True) for a in (350, 370)]
    parts.append(line([(360, 148), (360, 117)], "back", tip=True))
    alt = "x is a leaf. y = x x leaves a node multiply with the inputs x and x and two VJPs; "
    alt += f"L = {number(loss.item())} leaves a node sum with one. Under no_grad none is left."
    says = "A line that computes something leaves a node, which knows the way back to its inputs."
    return figure("node", drawing(620, 260, parts, alt), says)
