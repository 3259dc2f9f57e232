"""Pictures · The graph of chapter 5, drawn from the DOT that the chapter prints."""

import re

import minigrad.graphs
from demos.pictures import figure, line, shapes, text

BOX = re.compile(r'(t\d+) \[label="(\w+) (\(.*?\)) grad (\S+)" fillcolor="\S+ (\S+) 1"\]')
ARROW = re.compile(r"(t\d+) -> (t\d+)")


def picture() -> str:
    """Return the figure: a box for each box of the DOT, an arrow for each arrow."""
    dot = minigrad.graphs.__doc__ or ""
    dot = dot[dot.index("\n    digraph") : dot.index("\n    }\n")]
    boxes = {
        name: (label, shape, rms, shade) for name, label, shape, rms, shade in BOX.findall(dot)
    }
    arrows = ARROW.findall(dot)
    depth = dict.fromkeys(boxes, 0)  # how far a box is from the result
    for below, above in arrows:
        depth[below] = max(depth[below], depth[above] + 1)
    low = max(depth.values())
    parts = []
    heights = {name: 34 + 84 * (low - n) for name, n in depth.items()}
    for start, end in sorted(set(arrows)):
        count = arrows.count((start, end))
        for i in range(count):
            x = 150 + 36 * (i - (count - 1) / 2)
            parts.append(line([(x, heights[start] + 24), (x, heights[end] - 25)], "fore", tip=True))
    for name, (label, shape, rms, shade) in boxes.items():
        y = heights[name]
        parts.append(shapes.rect(70, y - 24, 160, 48, f"shade-{float(shade) * 4:.0f}", rx=7))
        parts.append(text(150, y - 4, f"{label} {shape}", "mono"))
        parts.append(text(150, y + 15, f"grad {rms}", "back"))
    said = ", ".join(
        f"{label} {shape} with the gradient {rms}" for label, shape, rms, _ in boxes.values()
    )
    alt = f"Boxes for {said}. Two arrows lead from x to multiply."
    says = (
        "The three boxes and three arrows of the text that `draw` prints. x is used twice, so two "
        "arrows leave it, and two contributions come back to it."
    )
    return figure("record", (300, heights["t0"] + 40), parts, alt, says)
