"""Laboratory · GPT: how large the gradient is at each part of each of twelve blocks.

The model is GPT-2's, small, with the weights that it begins with: `attention` is not fused, so that
its steps can be walked through.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from attention import attention, gpt2
from demos.pages.text import RAISED
from minigrad import Steps, cross_entropy
from minigrad.graphs.scale import Limits, colour, limits_around

BLOCKS, TOKENS = 12, 4
STEPPED = "gpt-steps.html"  # the page of its steps
# Of a block, in the order in which it computes: a part's name for a reader, the layer whose result
# it is, and the layer to be opened for a look at it.
PARTS = (
    ("attention, in", "norm_attention", "attention"),
    ("attention, out", "attention", "attention"),
    ("feed forward, in", "norm_feed_forward", "feed_forward"),
    ("feed forward, out", "feed_forward", "feed_forward"),
)


class Cell(NamedTuple):
    """The gradient at one part of a block: its RMS, and where its step is shown."""

    part: str
    rms: float
    address: str

    @property
    def number(self) -> str:
        """Return the RMS as a reader writes it: 0.20, or 9.1·10⁻⁵."""
        if self.rms >= 0.001:
            return f"{self.rms:#.2g}"
        digits, _, power = f"{self.rms:.1e}".partition("e-")
        return f"{digits}·10⁻{power.lstrip('0').translate(RAISED)}"

    @property
    def colour(self) -> str:
        """Return the colour of the gradient, on the scale that the steps have."""
        return colour(self.rms, limits())


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

    def cell(block: int, part: str, layer: str, opened: str) -> Cell:
        result = results[f"blocks.{block}.{layer}"]
        step = arrived[result.number]
        address = f"{STEPPED}#step={step}&open=blocks.{block}.{opened}"
        return Cell(part, result.grad_rms or 0.0, address)

    return [[cell(block, *part) for part in PARTS] for block in range(BLOCKS)]


def limits() -> Limits:
    """Return the gradients at the ends of the scale of colours, for the cells and for the steps."""
    return limits_around(cell.rms for cells in columns() for cell in cells)
