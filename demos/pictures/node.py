"""Pictures · A line of code, and a node appears (chapter 1.2)."""

from demos.pictures import figure, line, number, shapes, text
from minigrad import Tensor, no_grad

ROWS = (  # of each tensor: its name, the line that makes it, and what is said of it
    ("x", "x = Tensor([1.0, 2.0, 3.0], requires_grad=True)", "a leaf: nothing made it, so no node"),
    ("y", "y = x * x", "VJPs: g · x, g · x"),
    ("L", "L = y.sum()", "VJP: g, repeated"),
    ("z", "with no_grad(): z = x * x", "no node: no way back"),
)


def picture() -> str:
    """Return the figure: four lines and the tensors they make, two of which hold a node."""
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    loss = y.sum()
    with no_grad():
        z = x * x
    named, parts = {"x": x, "y": y, "L": loss, "z": z}, []
    for i, (name, code, says) in enumerate(ROWS):
        t = named[name]
        top, end = 22 + 86 * i, 44 + 34 * t.size
        parts += [text(16, top + 4, code, "start mono"), text(26, top + 37, name, "big")]
        parts.append(shapes.rect(44, top + 18, end - 44, 28))
        for j, value in enumerate(t.data.ravel()):
            parts.append(text(61 + 34 * j, top + 37, number(value), "fore"))
        if node := t.node:
            inputs = [key for x in node.inputs for key in named if named[key] is x]
            parts.append(shapes.rect(232, top - 8, 172, 68, rx=7))
            parts.append(text(244, top + 12, f"node: {node.name}", "start"))
            parts.append(text(244, top + 32, f"inputs: {', '.join(inputs)}", "start"))
            parts.append(text(244, top + 52, says, "start back"))
            parts.append(line([(end, top + 32), (231, top + 32)], "soft", tip=True))
            parts.append(text(190, top + 50, f"{name}.node", "mono"))
            for j in range(len(inputs)):
                ends = [(231, top + 13 - 10 * j), (103 + 24 * j, top - 38)]
                parts.append(line(ends, "back", tip=True))
        else:
            parts.append(text(end + 14, top + 37, says, "start soft"))
    alt = "x is a leaf: it has no node. y = x x holds a node multiply with the inputs x and x and "
    alt += f"two VJPs; L = {number(loss.item())} holds a node sum with the input y and one VJP. "
    alt += "z = x x, made under no_grad, holds none."
    says = "A tensor that was computed holds a node: the operation, its inputs, and a VJP for each "
    says += "of them. A leaf holds none."
    return figure("node", (420, 340), parts, alt, says)
