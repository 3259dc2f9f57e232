"""Other words: the one table of PyTorch's, for errors and for the site's page of words.

A word that ends in "=" is an option. Every other one is what PyTorch's Tensor has under that name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

# (PyTorch passes the gradient of an intermediate result to a hook. Here `gradients` gives that
# gradient, and `graph(loss, grads=True)` draws all.)
OTHER_WORDS: dict[str, str] = {
    "add_": "t = t + u",
    "cat": "np.concatenate([t, u], axis)",
    "chunk": "np.split(t, n, axis)",
    "clone": "t.copy()",
    "contiguous": "t itself",
    "cpu": "t itself",
    "cuda": "t itself: there is no other device",
    "dim": "t.ndim",
    "dim=": "axis=",
    "double": "t.astype(np.float64)",
    "expand": "np.broadcast_to(t, shape)",
    "float": "t.astype(np.float32)",
    "gather": "np.take_along_axis(t, indices, axis)",
    "grad_fn": "t.node",
    "is_leaf": "t.node is None",
    "keepdim=": "keepdims=",
    "masked_fill": "np.where(mask, value, t)",
    "mm": "t @ u",
    "mul_": "t = t * u",
    "numel": "t.size",
    "numpy": "t.data",
    "permute": "t.transpose(axes)",
    "register_hook": "minigrad.gradients(loss, [t])",
    "repeat": "np.tile(t, n)",
    "requires_grad_": "t.requires_grad = value",
    "retain_grad": "minigrad.gradients(loss, [t])",
    "scatter_add": "minigrad.scatter_add(values, shape, index)",
    "t": "t.T",
    "to": "t.astype(dtype)",
    "type": "t.astype(dtype)",
    "unsqueeze": "np.expand_dims(t, axis)",
    "view": "t.reshape(shape)",
    "weight_decay=": "decay= of AdamW",
    "zero_": "t.grad = None for a gradient, t.data = values for a leaf",
}


def complete(error: TypeError, options: Iterable[str]) -> None:
    """Add to Python's error what an option with PyTorch's name is called here."""
    for word in [f"{option}=" for option in options if f"'{option}'" in str(error)]:
        if word in OTHER_WORDS:
            error.args = (f"{error}; instead of {word} use {OTHER_WORDS[word]}",)


def in_our_words(function: F) -> F:
    """Return the function; its error for an option of PyTorch's says what to write instead."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            complete(error, options)
            raise

    return called  # type: ignore[return-value]
