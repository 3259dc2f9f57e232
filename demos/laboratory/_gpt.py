"""Laboratory · GPT: how large the gradient is at each part of each of twelve blocks.

The model is GPT-2's, small, with the weights that it begins with: `attention` is not fused, so that
its steps can be walked through.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from attention import attention, gpt2
from minigrad import Steps, cross_entropy
from minigrad.graphs.scale import Limits, colour, limits_around

BLOCKS, TOKENS = 12, 4
HIGH = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
STEPPED = "gpt-steps.html"  # the page of its steps
# Of a block, in the order in which it computes: a part's name for a reader, the layer whose result
# it is, and the layer to be opened for a look at it.
PARTS = (
    ("attention, in", "norm_attention", "attention"),
    ("attention, out", "attention", "attention"),
    ("feed forward, in", "norm_feed_forward", "feed_forward"),
    ("feed forward, out", "feed_forward", "feed_forward"),
)


@dataclass(frozen=True)
class Cell:
    """The gradient at one part of a block: its RMS, and where its step is shown."""

    part: str
    rms: float
    address: str

    @property
    def colour(self) -> str:
        """The colour of its gradient."""
        return colour(self.rms, limits())

    @property
    def number(self) -> str:
        """The RMS as a reader writes it: 0.20, or 9.1·10⁻⁵."""
        if self.rms >= 0.001:
            return f"{self.rms:#.2g}"
        digits, _, power = f"{self.rms:.1e}".partition("e-")
        return f"{digits}·10⁻{power.lstrip('0').translate(HIGH)}"


@cache
def steps() -> Steps:
    """Return both passes of the model."""
    rng = np.random.default_rng(0)
    model = gpt2(11, TOKENS, d_model=8, num_heads=4, num_blocks=BLOCKS, attend=attention, rng=rng)
    words = np.arange(TOKENS + 1)[None]
    with Steps(model) as noted:
        loss = cross_entropy(model(words[:, :-1]), words[:, 1:])
    noted.backward(loss)
    return noted


@cache
def columns() -> list[list[Cell]]:
    """Return the cells of each block, first to last."""
    noted = steps()
    results = {scope.path: v for v in noted.vertices for scope in v.modules}
    start = sum(bool(v.operation) for v in noted.vertices) + 1
    arrived = {c.target: n for n, c in enumerate(noted.contributions, start)}
    blocks = []
    for i in range(BLOCKS):
        cells = []
        for part, layer, opened in PARTS:
            result = results[f"blocks.{i}.{layer}"]
            step = arrived[result.number]
            address = f"{STEPPED}#step={step}&open=blocks.{i}.{opened}"
            assert result.grad_rms is not None
            cells.append(Cell(part, result.grad_rms, address))
        blocks.append(cells)
    return blocks


def limits() -> Limits:
    """Return the gradients at the ends of the scale of colours, for the cells and for the steps."""
    return limits_around(cell.rms for cells in columns() for cell in cells)
