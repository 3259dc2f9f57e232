"""Slips: a sentence of ours for what is often written by mistake in a VJP."""

from __future__ import annotations

import re
from traceback import walk_tb
from typing import Any

import numpy as np

TURNED = "`.T` of a stack turns all axes around, not the last two alone: is `.mT` meant?"
PRODUCT = "is a matrix product (@) written where * belongs?"


def note_slip(error: Exception, node: Any, i: int, y: Any) -> None:
    """Add a note to an error: the rule in whose VJP it was raised, and the shapes.

    Three slips are seen in the names that the VJP uses, or in the shapes. Their own sentence is
    raised instead.
    """
    trace: Any = error.__traceback__
    if "positional argument" in str(error) and trace.tb_next is None:  # (raised by the call itself)
        error.args = (f"{error}: a VJP takes (g, y)",)
    shapes = ", ".join(str(x.shape) for x in node.inputs)
    how = slip = ""
    words = {word for f, _ in walk_tb(trace) for word in f.f_code.co_names}
    in_product = isinstance(error, ValueError) and re.search("matmul|remapped", str(error))
    if in_product and "T" in words and y.ndim > 2:
        slip = TURNED
    elif in_product and all(x.shape == y.shape for x in node.inputs):
        slip = PRODUCT
    if not isinstance(y, np.ndarray):
        how = ", as Tensors for a second derivative"
        if "full" in words and isinstance(error, TypeError):
            slip = "np.full does not take a Tensor: write np.broadcast_to"
    said = (
        f"(in the VJP of {node.name} for input {i}, which takes g and y of shape {y.shape}{how}; "
        f"the inputs have {shapes})"
    )
    if slip:
        raise type(error)(f"{slip} {said}") from error
    error.add_note(said)
