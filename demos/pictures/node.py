"""Pictures · A line of code, and a node appears (chapter 1.2)."""

from demos.pictures import drawing, figure, line, number, text
from minigrad import Tensor, no_grad

CODE = ("x = Tensor([1.0, 2.0, 3.0], requires_grad=True)", "y = x * x", "L = y.sum()")
CODE = (*CODE, "with no_grad(): z = x * x")
SAYS = {"x": "a leaf: nothing made it, so no node", "z": "no node: no way back"}
SAYS |= {"y": "VJPs: g · x, g · x", "L": "VJP: g, repeated"}


def picture() -> str:
    """Return the figure: four lines and the tensors they make, two of which hold a node."""
    x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * x
    loss = y.sum()
    with no_grad():
        z = x * x
    named, parts = {"x": x, "y": y, "L": loss, "z": z}, []
    for i, ((name, t), code) in enumerate(zip(named.items(), CODE, strict=True)):
        top, end = 22 + 86 * i, 44 + 34 * t.size
        parts += [text(16, top + 4, code, "start mono"), text(26, top + 37, name, "big")]
        parts.append(f'<rect x="44" y="{top + 18}" width="{end - 44}" height="28"/>')
        for j, value in enumerate(t.data.ravel()):
            parts.append(text(61 + 34 * j, top + 37, number(value), "fore"))
        if node := t.node:
            inputs = [key for each in node.inputs for key in named if named[key] is each]
            parts.append(f'<rect x="232" y="{top - 8}" width="172" height="68" rx="7"/>')
            says = (f"node: {node.name}", f"inputs: {', '.join(inputs)}", SAYS[name])
            for row, (words, kind) in enumerate(zip(says, ("", "", " back"), strict=True)):
                parts.append(text(244, top + 12 + 20 * row, words, f"start{kind}"))
            parts.append(line([(end, top + 32), (231, top + 32)], "soft", tip=True))
            parts.append(text(190, top + 50, f"{name}.node", "mono"))
            for j in range(len(inputs)):
                ends = [(231, top + 13 - 10 * j), (103 + 24 * j, top - 38)]
                parts.append(line(ends, "back", tip=True))
        else:
            parts.append(text(end + 14, top + 37, SAYS[name], "start soft"))
    alt = "x is a leaf: it has no node. y = x x holds a node multiply with the inputs x and x and "
    alt += f"two VJPs; L = {number(loss.item())} holds a node sum with the input y and one VJP. "
    alt += "z = x x, made under no_grad, holds none."
    says = "A tensor that was computed holds a node: the operation, its inputs, and a VJP for each "
    says += "of them. A leaf holds none."
    return figure("node", drawing(420, 340, parts, alt), says)
