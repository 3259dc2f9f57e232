"""Hints: what to write instead of a word that is not here, for errors and the site's page of words.

`OTHER_WORDS` has methods and attributes of PyTorch's Tensor; a word that ends in "=" is an option.
`OTHER_NAMES` has names in PyTorch's modules; a name after a dot is one of a model. `INSTEAD` has
functions of NumPy's that no table of chapter 1.4 has.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, NoReturn, TypeVar

import numpy as np

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
    "decay=": "weight_decay= of AdamW",  # (AdamW's option, before it was renamed)
    "dim": "t.ndim",
    "dim=": "axis=",
    "double": "t.astype(np.float64)",
    "expand": "np.broadcast_to(t, shape)",
    "float": "t.astype(np.float32)",
    "gather": "np.take_along_axis(t, indices, axis)",
    "grad_fn": "t.node",
    "is_leaf": "t.node is None",
    "keepdim=": "keepdims=",
    "long": "t.data.astype(int)",
    "masked_fill": "np.where(mask, value, t)",
    # (an option of AdamW, before there were groups)
    "matrices_only=": 'groups: [{"params": matrices}, {"params": others, "weight_decay": 0.0}]',
    "mm": "t @ u",
    "mul_": "t = t * u",
    "numel": "t.size",
    "numpy": "t.data",
    "permute": "t.transpose(axes)",
    "pow": "t**n",
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
    "weight=": "class_weights=",
    "weight_decay=": "weight_decay= of AdamW",
    "zero_": "t.grad = None for a gradient, t.data = values for a leaf",
}


# Names with one answer share a row; {} is the name in small letters.
_NAMES = {
    ".cpu .cuda .to": "the model itself, as there is one device, or model.astype(dtype)",
    ".double .float .half": "model.astype(np.float64), or np.float32",
    ".register_buffer .register_parameter": "an attribute, self.name = Tensor(values)",
    ".requires_grad_": "p.requires_grad = value for each p in model.parameters()",
    "BCEWithLogitsLoss": "minigrad.binary_cross_entropy_with_logits(logits, targets)",
    "CosineAnnealingLR LambdaLR lr_scheduler": "optimizer.lr = warmup_cosine(step, …)",
    "CrossEntropyLoss": "minigrad.cross_entropy(logits, targets)",
    "GELU ReLU SiLU Sigmoid Softmax Softplus Tanh": "the function minigrad.{}",
    "MSELoss": "minigrad.mse(predictions, targets)",
    "ModuleDict ModuleList ParameterList": "a list, or a dict: a Module finds what it holds",
    "MultiHeadAttention MultiheadAttention": "from attention import MultiHeadAttention",
    "Parameter": "Tensor(values, requires_grad=True)",
    "as_tensor from_numpy tensor": "minigrad.Tensor(values)",
    "clip_grad_norm_ utils": "minigrad.optim.clip_gradients(parameters, max_norm)",
    "device": "nothing, as there is one device, the processor",
    "functional": "minigrad itself, as in minigrad.cross_entropy",
    "init": "minigrad.nn.normal and minigrad.nn.xavier_uniform",
    "load save": "minigrad.save_checkpoint(path, model=…, optimizer=…), load_checkpoint",
    "manual_seed rand randint randn": "rng = np.random.default_rng(seed), and its methods",
}
OTHER_NAMES = {x: here.format(x.lower()) for names, here in _NAMES.items() for x in names.split()}

INSTEAD: dict[Any, str] = {
    np.append: "np.concatenate",
    np.array_split: "np.split, at the places",
    np.block: "np.concatenate, once for each axis",
    np.broadcast_arrays: "np.broadcast_to",
    np.column_stack: "np.stack with axis=1 for vectors, np.hstack for matrices",
    np.copysign: "np.where(np.signbit(y), -np.abs(x), np.abs(x))",
    np.copyto: "np.where",
    np.cosh: "(np.exp(x) + np.exp(-x)) / 2",
    np.delete: "x[keep], with the indices or a mask of what stays",
    np.diag: "np.diagonal of a matrix, x * np.eye(n) of a vector",
    np.exp2: "2.0**x",
    np.fliplr: "x[:, ::-1]",
    np.flipud: "x[::-1]",
    np.inner: "x @ y.T",
    np.insert: "np.concatenate([x[:i], values, x[i:]])",
    np.linspace: "start + (stop - start) * np.linspace(0, 1, n)",
    np.log10: "np.log(x) / np.log(10)",
    np.log2: "np.log(x) / np.log(2)",
    np.nanmean: "np.where(np.isnan(x), 0, x).sum() / (~np.isnan(x)).sum()",
    np.nansum: "np.where(np.isnan(x), 0, x).sum()",
    np.ptp: "x.max() - x.min()",
    np.put: "scatter_add or np.where",
    np.reciprocal: "1 / x",
    np.remainder: "x - y * (x // y)",
    np.tan: "np.sin(x) / np.cos(x)",
    np.tensordot: "np.einsum",
    np.trace: "np.diagonal(x).sum(axis=-1)",
    np.vdot: "np.sum(x * y)",
    np.vecdot: "np.sum(x * y, axis=-1)",
}


def refuse_name(module: str, name: str) -> NoReturn:
    """Raise AttributeError; if the name is PyTorch's, say what to write here."""
    said = f"module {module!r} has no attribute {name!r}"
    here = OTHER_NAMES.get(name) or (f"np.{name}" if name in np.__all__ else OTHER_WORDS.get(name))
    if here is None or name.startswith("_"):
        raise AttributeError(said)  # (Python may add a guess. With name= and obj= it adds none.)
    raise AttributeError(f"{said}: use {here}", name=name, obj=None)


def complete(error: TypeError, function: Callable[..., Any], options: Iterable[str]) -> None:
    """Complete Python's error about a call of the function, if another word or `rng` is meant.

    A former name of an option, or PyTorch's, gets our word: another option of this function, if it
    has that option, or whatever else the row says. A missing `rng` gets the way to make one.
    """
    said = str(error).partition(". Did you mean")[0]  # (the guess of Python 3.13)
    if not said.startswith(f"{function.__qualname__}() "):  # an error inside of it
        return
    for option in options:
        here = OTHER_WORDS.get(f"{option}=", "")
        is_there = here[-1:] != "=" or here[:-1] in inspect.signature(function).parameters
        if here and is_there and f"'{option}'" in said:
            error.args = (f"{said}; instead of {option}= use {here}",)
    if " missing " in said and said.endswith("'rng'"):
        error.args = (f"{said}; pass rng=np.random.default_rng(seed)",)


def in_our_words(function: F) -> F:
    """Return the function with its errors completed (`complete`)."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            complete(error, function, options)
            raise

    return called  # type: ignore[return-value]
