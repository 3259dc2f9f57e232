"""Pictures · A model is a tree, and a parameter's name is the way to it (chapter 7.1)."""

import numpy as np

from demos.pictures import figure, line, shapes, text
from minigrad.nn import LayerNorm, Linear, Module, Sequential


class Small(Module):
    """A model of two layers and a norm."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.stack = Sequential(Linear(4, 8, rng=rng), Linear(8, 2, bias=False, rng=rng))
        self.norm = LayerNorm(2)


def picture() -> str:
    """Return the figure: attributes as branches, parameters as leaves with their shapes."""
    leaves = {n: p.shape for n, p in Small(np.random.default_rng(0)).named_parameters()}
    parts = [text(14, 27, "model", "start big")]
    rows = {"": 22}  # of each path through the attributes: where it is drawn
    for name, shape in leaves.items():
        steps = name.split(".")
        for depth, step in enumerate(steps):
            path = ".".join(steps[: depth + 1])
            if path in rows:
                continue
            x, y = 26 + 46 * depth, 22 + 30 * len(rows)
            above = rows[".".join(steps[:depth])]
            parts.append(line([(x, above + 12), (x, y), (x + 14, y)], "soft"))
            if path == name:
                parts.append(shapes.rect(x + 14, y - 12, 62, 24, "seen", rx=12))
                parts.append(text(x + 45, y + 4, step, "mono"))
                parts.append(text(x + 84, y + 4, str(shape), "mono start fore"))
                parts.append(text(518, y + 4, name, "mono end"))
            else:
                parts.append(text(x + 18, y + 4, step, "mono start"))
            rows[path] = y
    listed = ", ".join(f"{name} {shape}" for name, shape in leaves.items())
    alt = f"A tree of attributes with its leaves: {listed}."
    says = (
        "Nothing is registered. `named_parameters` walks through the attributes, and the way to a "
        "leaf is its name (at the right)."
    )
    return figure("tree", (530, 20 + 30 * len(rows)), parts, alt, says)
