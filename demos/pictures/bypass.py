"""Pictures · What the bypass of a residual keeps of a gradient: its direction (chapter 15.1)."""

import numpy as np

from attention import FeedForward
from demos.pictures import figure, line, text
from minigrad import Tensor, gradients
from minigrad.nn import LayerNorm

BLOCKS, WIDTH = 12, 32


def directions(seed: int, *, bypass: bool) -> list[float]:
    """Return cos of the angle to ∂L/∂y, y the last output, at the input of each block, last first.

    Each block is f(x) = feed(norm(x)), with its initial weights, or x + f(x).
    """
    rng = np.random.default_rng(seed)
    x = Tensor(rng.standard_normal((1, WIDTH)), requires_grad=True)
    inputs = []
    for _ in range(BLOCKS):
        norm, feed = LayerNorm(WIDTH), FeedForward(WIDTH, 4 * WIDTH, rng=rng)
        inputs.append(x)
        change = feed(norm(x))
        x = x + change if bypass else change
    sent = rng.standard_normal(x.shape)
    sent /= np.linalg.norm(sent)
    arrived = reversed(gradients(x, inputs, sent))
    return [float((g * sent).sum() / np.linalg.norm(g)) for g in arrived]


def picture() -> str:
    """Return the figure: the direction of the gradient, block by block on its way back."""
    rows = {"x + f(x)": directions(0, bypass=True), "f(x) alone": directions(0, bypass=False)}
    parts = []
    for row, (name, cosines) in enumerate(rows.items()):
        kind, base = ("back", 92) if row == 0 else ("cross", 212)
        parts.append(text(12, base - 56, name, f"start big {kind}"))
        parts += [line([(462, base), (434, base)], "soft", tip=True), text(450, base + 20, "g")]
        for i, cosine in enumerate(cosines):
            x, up = 414 - 34 * i, np.sqrt(1 - cosine**2)
            parts.append(line([(x, base), (x - 28 * cosine, base - 28 * up)], kind, tip=True))
        for i in (0, BLOCKS - 1):
            x = 404 - 34 * i
            parts.append(text(x, base + 20, f"{BLOCKS - i}", "soft"))
            parts.append(text(x, base - 36, f"cos {cosines[i]:.2f}", f"small {kind}"))
    ends = {name: f"{cosines[-1]:.2f}" for name, cosines in rows.items()}
    alt = f"A gradient goes back through {BLOCKS} blocks. The cosine of its angle to the gradient "
    alt += f"that was sent is {rows['x + f(x)'][0]:.2f} after one block and {ends['x + f(x)']} "
    alt += f"after all with x + f(x), and {rows['f(x) alone'][0]:.2f} after one with f(x) alone."
    says = (
        "g goes back through twelve untrained blocks. An arrow is turned from g as far as the "
        "gradient at the input of that block is. The bypass passes g on unchanged, so what f adds "
        "turns it slowly. With f alone nothing of its direction is left after one block."
    )
    return figure("bypass", (478, 244), parts, alt, says)
