"""7 · Layers: functions that own their parameters.

What does a layer add to a function? Its parameters, so that an optimizer can find them. A
`Module` is an object whose attributes are parameters (leaf tensors that require a gradient) or
further modules, or lists or dicts of them. Their names fall out of the attributes' names:
`block.w_q.weight` is the attribute `weight` of the attribute `w_q` of the attribute `block`.

    >>> import numpy as np
    >>> layer = Linear(3, 2, rng=np.random.default_rng(0))
    >>> [(name, p.shape) for name, p in layer.named_parameters()]
    [('weight', (3, 2)), ('bias', (2,))]
    >>> layer(Tensor(np.ones((5, 3)))).shape
    (5, 2)

Chapter 7 holds only what attention needs so far: `Module` and `Linear`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minigrad.tensor import Tensor, describe


class Module:
    """An object with parameters. Subclasses set them as attributes and define `__call__`."""

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        """Every parameter with its dotted name, in the order the attributes were set.

        A list, tuple or dict counts through its members, `blocks.0.weight`. A parameter
        that is reached by two names comes once, under the first.
        """
        yield from _members(self, prefix, set())

    def parameters(self) -> list[Tensor]:
        """Every parameter, in the same order."""
        return [parameter for _, parameter in self.named_parameters()]


def _members(owner: Any, prefix: str, seen: set[int]) -> Iterator[tuple[str, Tensor]]:
    """The parameters among an owner's attributes or members, and within those not yet seen."""
    seen.add(id(owner))
    if isinstance(owner, Module | dict):
        held: Any = (vars(owner) if isinstance(owner, Module) else owner).items()
    else:
        held = enumerate(owner)
    for name, value in held:
        if id(value) in seen:
            continue
        if isinstance(value, Tensor) and value.requires_grad and value.node is None:
            seen.add(id(value))
            yield f"{prefix}{name}", value
        elif isinstance(value, Module | dict | list | tuple):
            yield from _members(value, f"{prefix}{name}.", seen)


class Linear(Module):
    """y = x W + b   (…, d_in) → (…, d_out)

    `weight` is (d_in, d_out), so that the code reads as the paper writes it, x W. (PyTorch
    stores the transpose.) It is drawn by Xavier's uniform rule (Glorot & Bengio 2010, section
    4.2.1): between ±√(6 / (d_in + d_out)), which has variance 2 / (d_in + d_out). With
    d_in = d_out = d that is 1/d: each product of an input of variance 1 with a weight has
    variance 1/d, and the d of them in a sum give variance 1.
    """

    def __init__(
        self,
        d_in: int,
        d_out: int,
        *,
        bias: bool = True,
        rng: np.random.Generator,
        dtype: Any = float,
    ) -> None:
        bound = np.sqrt(6 / (d_in + d_out))
        weight = rng.uniform(-bound, bound, (d_in, d_out))
        self.weight = Tensor(weight, requires_grad=True, dtype=dtype, name="weight")
        self.bias = (
            Tensor(np.zeros(d_out), requires_grad=True, dtype=dtype, name="bias") if bias else None
        )

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the layer to the last axis of x."""
        if x.ndim == 0 or x.shape[-1] != self.weight.shape[0]:
            raise ValueError(
                f"Linear takes {self.weight.shape[0]} features on the last axis: got {describe(x)}"
            )
        y = x @ self.weight
        return y if self.bias is None else y + self.bias
