"""7.3 · Layers: the ones that every model is built of.

Which functions come with parameters so often that they have names? A matrix product (`Linear`), a
table of rows (`Embedding`), and a normalisation with a learned scale. Each is a few lines: it makes
its parameters, and passes them to a function of an earlier chapter.

    >>> rng = np.random.default_rng(0)
    >>> model = Sequential(Embedding(11, 6, rng=rng), LayerNorm(6), Linear(6, 2, rng=rng))
    >>> model([[1, 2, 3]]).shape
    (1, 3, 2)
    >>> [name for name, _ in model.named_parameters()][:3]
    ['layers.0.weight', 'layers.1.gain', 'layers.1.bias']
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from minigrad.engine.options import as_number
from minigrad.engine.tensor import Tensor, as_operand, describe
from minigrad.functional import dropout, embedding
from minigrad.nn.initial import normal, xavier_uniform
from minigrad.nn.module import Module
from minigrad.ops import layer_norm, linear, rms_norm


class Linear(Module):
    """y = x W + b   (…, d_in) → (…, d_out)

    `weight` is (d_in, d_out), so that the code reads as the paper writes it, x W. (PyTorch
    stores the transpose.) It is drawn by Xavier's uniform rule (`xavier_uniform`), the bias is 0.
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
        sizes = (as_number("d_in", d_in, 1, whole=True), as_number("d_out", d_out, 1, whole=True))
        self.weight = _parameter(xavier_uniform(sizes, rng=rng), dtype, "weight")
        self.bias = _parameter(np.zeros(d_out), dtype, "bias") if bias else None

    def __call__(self, x: Tensor) -> Tensor:
        """Apply the layer to the last axis of x; ValueError if that is not d_in long."""
        x = _of_width(x, self.weight, "Linear")
        return x @ self.weight if self.bias is None else linear(x, self.weight, self.bias)


class Embedding(Module):
    """One row of numbers for each of V tokens.   (…) integers → (…, d_model)

    Rows are Gaussian with standard deviation `std`: 1 by default, as in PyTorch.

    padding_idx  the token that stands for nothing. Its row is 0 at first, and gets no gradient from
                 here. If a head uses the same matrix, the row also gives this token's scores, and
                 the head trains it; the token's vector is 0 nevertheless. (In PyTorch it is then
                 the row.) It may be set later: `model.tokens.padding_idx = 0`.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        std: float = 1.0,
        padding_idx: int | None = None,
        rng: np.random.Generator,
        dtype: Any = float,
    ) -> None:
        rows = normal((vocab_size, d_model), std, rng=rng)
        if padding_idx is not None:
            rows[as_number("padding_idx", padding_idx, 0, vocab_size, whole=True)] = 0
        self.weight = _parameter(rows, dtype, "weight")
        self.padding_idx = padding_idx

    def __call__(self, indices: Any) -> Tensor:
        """Return the rows of the tokens that the indices name."""
        return embedding(self.weight, indices, padding_idx=self.padding_idx)


class LayerNorm(Module):
    """(x - μ)/σ ⊙ gain + bias over the last axis (Ba et al. 2016).   (…, d) → (…, d)

    The derivation is chapter 3.7's.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5, dtype: Any = float) -> None:
        self.gain = _parameter(np.ones(d_model), dtype, "gain")
        self.bias = _parameter(np.zeros(d_model), dtype, "bias")
        self.eps = as_number("eps", eps, 0)

    def __call__(self, x: Tensor) -> Tensor:
        """Normalise each row of x."""
        return layer_norm(_of_width(x, self.gain, "LayerNorm"), self.gain, self.bias, eps=self.eps)


class RMSNorm(Module):
    """x/√(mean(x²) + eps) ⊙ gain over the last axis (Zhang & Sennrich 2019).   (…, d) → (…, d)

    LayerNorm without the mean: what matters, they find, is that the size is fixed. The derivation
    is chapter 3.7's.
    """

    def __init__(self, d_model: int, *, eps: float = 1e-5, dtype: Any = float) -> None:
        self.gain = _parameter(np.ones(d_model), dtype, "gain")
        self.eps = as_number("eps", eps, 0)

    def __call__(self, x: Tensor) -> Tensor:
        """Bring each row of x to mean square 1, then scale it."""
        return rms_norm(_of_width(x, self.gain, "RMSNorm"), self.gain, eps=self.eps)


class Dropout(Module):
    """A layer that sets elements to 0 with probability p, only while training (chapter 6.4).

    The generator belongs to the layer and moves on with each call. Give all layers the one that
    the run's checkpoint keeps.
    """

    def __init__(self, p: float, *, rng: np.random.Generator) -> None:
        self.p = as_number("dropout", p, 0, 1)
        self.rng = rng

    def __call__(self, x: Tensor) -> Tensor:
        """Drop elements if the model is being trained (`train`, `eval`); otherwise return x."""
        return dropout(x, self.p, rng=self.rng) if self.training and self.p else x


class Sequential(Module):
    """Layers, or any functions, one after the other."""

    def __init__(self, *layers: Callable[[Any], Any]) -> None:
        self.layers = list(layers)

    def __call__(self, x: Any) -> Any:
        """Apply the layers in order, and return the last one's output."""
        for layer in self.layers:
            x = layer(x)
        return x


def _parameter(values: Any, dtype: Any, name: str) -> Tensor:
    return Tensor(values, requires_grad=True, dtype=dtype, name=name)


def _of_width(x: Any, parameter: Tensor, layer: str) -> Tensor:
    """Return x; ValueError if its rows are not as long as the parameter: a gain would broadcast."""
    x = as_operand(x, layer)
    if x.ndim == 0 or x.shape[-1] != parameter.shape[0]:
        raise ValueError(
            f"{layer} takes {parameter.shape[0]} features on the last axis: got {describe(x)}"
        )
    return x  # type: ignore[no-any-return]
