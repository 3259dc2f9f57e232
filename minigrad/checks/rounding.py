"""Rounding: how large the numbers are whose rounding moves a result.

Chapter 4.2 says what is added up. A rule is called once more with Tensors, and a fused rule's
definition in its place, so that the results inside the rule are seen, too.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from minigrad.checks.differences import EPS
from minigrad.engine.replay import behind, replay
from minigrad.engine.tensor import Array, Tensor


@np.errstate(all="ignore")
def largest_part(phi: Tensor) -> float:
    """Return the largest Σ |∂φ/∂t ⊙ t| of all results t on the way to φ, also inside of rules."""
    size = 0.0
    parts = list(replay(phi, np.ones(()), set(behind(phi)), retain_graph=True).items())
    while parts:
        t, g = parts.pop()
        part = np.abs(g * t.data) * (np.finfo(t.dtype).eps / EPS)
        size = max(size, float(part[np.isfinite(part)].sum()))
        if t.node is not None:
            with suppress(Exception):  # a rule that does not take Tensors has no record inside
                parts += _inside(t, g).items()
    return size


def _inside(t: Tensor, g: Array) -> dict[Tensor, Any]:
    """Return the gradient of every step inside of t's rule: the rule is called with Tensors."""
    node: Any = t.node
    since = max([x._time for x in node.inputs])  # what the rule computes is newer
    variables = [x if x.requires_grad else x.data for x in node.inputs]
    value = getattr(node.rule, "definition", node.rule)(*variables, **node.options)
    value = value[0] if isinstance(value, tuple) else value
    steps = {step for step in behind(value, since) if step._time > since and step is not value}
    found = replay(value, g, steps, retain_graph=True, since=since)
    return {step: found[step] for step in steps}
