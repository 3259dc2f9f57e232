"""1.4 · Words: what a Tensor answers to.

Where do `a + b`, `t.sum()` and `np.exp(t)` find the operation that records them? Here, and only
here. Python turns an operator into a method call, `a.__add__(b)`; NumPy turns a call of one of its
functions into `t.__array_ufunc__(np.exp, …)` or `t.__array_function__(np.reshape, …)`, before it
computes anything. So the class below is a table with methods for lines: each hands its arguments to
an operation of chapter 3, or to a function of chapter 6. `Tensor` inherits it.

What is in no table is refused by name. Nothing falls through to NumPy's usual way, which would be
to ask for an array and forget where it came from.

    >>> from minigrad import Tensor
    >>> t = Tensor([1.0, 4.0], requires_grad=True)
    >>> np.sqrt(t), t.sum() / 5, np.array([2.0, 0.5]) * t
    (Tensor([1., 2.], node=sqrt), Tensor(1., node=divide), Tensor([2., 2.], node=multiply))
    >>> t > 2                           # no derivative: a plain array
    array([False,  True])
    >>> np.median(t)
    Traceback (most recent call last):
    TypeError: np.median has no rule for Tensors: use np.sort and an index
    >>> t.numel
    Traceback (most recent call last):
    AttributeError: a Tensor speaks NumPy's words: instead of t.numel use t.size
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

# The one seam in the import order. The operations are made for Tensors, so their chapters need the
# class; the class needs the operations. Their names are therefore looked up in the package when a
# method is called, by when every chapter has been read.
import minigrad

if TYPE_CHECKING:
    from minigrad.tensor import Array, Tensor

# Where readers come from PyTorch, which has other words for some of NumPy's.
OTHER_WORDS = {
    "add_": "t = t + u",
    "cat": "np.concatenate([t, u], axis)",
    "chunk": "np.split(t, n, axis)",
    "clone": "t.copy()",
    "contiguous": "t itself",
    "cpu": "t itself",
    "cuda": "t itself: there is no other device",
    "dim": "t.ndim",
    "double": "t.astype(np.float64)",
    "expand": "np.broadcast_to(t, shape)",
    "float": "t.astype(np.float32)",
    "gather": "np.take_along_axis(t, indices, axis)",
    "grad_fn": "t.node",
    "is_leaf": "t.node is None",
    "masked_fill": "np.where(mask, value, t)",
    "mm": "t @ u",
    "mul_": "t = t * u",
    "numel": "t.size",
    "numpy": "t.data",
    "permute": "t.transpose(axes)",
    "requires_grad_": "t.requires_grad = True",
    "scatter_add": "minigrad.scatter_add(values, shape, index)",
    "to": "t.astype(dtype)",
    "type": "t.astype(dtype)",
    "unsqueeze": "np.expand_dims(t, axis)",
    "view": "t.reshape(shape)",
    "zero_": "t.grad = None for a gradient, t.data = values for a leaf",
}


class Words:
    """The operators, methods and NumPy functions of a Tensor."""

    __slots__ = ()

    # ---------------------------------------------------------------- NumPy's functions

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        if "out" in options:
            raise TypeError(
                f"{name} in place, or with out=, cannot be recorded: make a new array or tensor"
            )
        if "where" in options:
            raise TypeError(f"{name} with where= cannot be recorded: use np.where")
        if method == "__call__" and not options:
            rule = minigrad.functional.vocabulary.NUMPY.get(ufunc)
            if rule is not None:
                return rule(*args)
            if ufunc in minigrad.functional.vocabulary.PLAIN:
                return ufunc(*[_plain(x) for x in args])
        _unknown(ufunc, name + "".join(f" with {option}=" for option in options))

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        rule = minigrad.functional.vocabulary.NUMPY.get(function)
        if rule is not None:
            if options:
                _refuse_unknown_options(function, rule, options)
            return rule(*args, **options)
        if function in minigrad.functional.vocabulary.PLAIN:
            plain = {name: _plain(x) for name, x in options.items()}
            return function(*[_plain(x) for x in args], **plain)
        _unknown(function, _name(function))

    # ---------------------------------------------------------------- operators

    def __add__(self, other: Any) -> Tensor:
        return minigrad.ops.add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return minigrad.ops.add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return minigrad.ops.subtract(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return minigrad.ops.subtract(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return minigrad.ops.multiply(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return minigrad.ops.multiply(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return minigrad.ops.divide(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return minigrad.ops.divide(other, self)

    def __mod__(self, other: Any) -> Tensor:
        return minigrad.ops.remainder(self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return minigrad.ops.remainder(other, self)

    def __pow__(self, other: Any) -> Tensor:
        return minigrad.ops.power(self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return minigrad.ops.power(other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return minigrad.ops.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return minigrad.ops.matmul(other, self)

    def __neg__(self) -> Tensor:
        return minigrad.ops.negative(self)

    def __pos__(self) -> Tensor:
        return minigrad.ops.positive(self)

    def __abs__(self) -> Tensor:
        return minigrad.ops.abs(self)

    def __getitem__(self, index: Any) -> Tensor:
        return minigrad.ops.getitem(self, index)

    # Comparisons and whole steps have no useful derivative (0 almost everywhere): plain arrays.

    def __eq__(self, other: Any) -> Any:
        return np.equal(self, other)  # type: ignore[call-overload]

    def __ne__(self, other: Any) -> Any:
        return np.not_equal(self, other)  # type: ignore[call-overload]

    def __lt__(self, other: Any) -> Any:
        return np.less(self, other)  # type: ignore[call-overload]

    def __le__(self, other: Any) -> Any:
        return np.less_equal(self, other)  # type: ignore[call-overload]

    def __gt__(self, other: Any) -> Any:
        return np.greater(self, other)  # type: ignore[call-overload]

    def __ge__(self, other: Any) -> Any:
        return np.greater_equal(self, other)  # type: ignore[call-overload]

    def __floordiv__(self, other: Any) -> Any:
        return np.floor_divide(self, other)  # type: ignore[call-overload]

    def __rfloordiv__(self, other: Any) -> Any:
        return np.floor_divide(other, self)  # type: ignore[call-overload]

    # Two tensors are the same only if they are one object: `==` compares elements, as in NumPy.
    __hash__ = object.__hash__

    # ---------------------------------------------------------------- methods

    def sum(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """See `minigrad.sum`."""
        return minigrad.ops.sum(self, axis=axis, keepdims=keepdims)

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """See `minigrad.mean`."""
        return minigrad.ops.mean(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """See `minigrad.max`."""
        return minigrad.ops.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """See `minigrad.min`."""
        return minigrad.functional.min(self, axis=axis, keepdims=keepdims)

    def prod(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        """See `minigrad.prod`."""
        return minigrad.functional.prod(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Tensor:
        """See `minigrad.var`."""
        return minigrad.functional.var(self, axis=axis, ddof=ddof, keepdims=keepdims)

    def std(self, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Tensor:
        """See `minigrad.std`."""
        return minigrad.functional.std(self, axis=axis, ddof=ddof, keepdims=keepdims)

    def cumsum(self, axis: int | None = None) -> Tensor:
        """See `minigrad.cumsum`."""
        return minigrad.ops.cumsum(self, axis=axis)

    def clip(self, a_min: Any = None, a_max: Any = None, **limits: Any) -> Tensor:
        """See `minigrad.clip`."""
        return minigrad.functional.clip(self, a_min, a_max, **limits)

    def dot(self, other: Any) -> Tensor:
        """See `minigrad.dot`."""
        return minigrad.functional.dot(self, other)

    def trace(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """See `minigrad.trace`."""
        return minigrad.functional.trace(self, offset, axis1, axis2)

    def diagonal(self, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
        """See `minigrad.diagonal`."""
        return minigrad.functional.diagonal(self, offset, axis1, axis2)

    def reshape(self, *shape: Any) -> Tensor:
        """See `minigrad.reshape`; the shape as a tuple or as several integers."""
        return minigrad.ops.reshape(self, shape=shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Tensor:
        """See `minigrad.ravel`."""
        return minigrad.functional.ravel(self)

    def flatten(self) -> Tensor:
        """As `ravel`: all elements along one axis."""
        return minigrad.functional.ravel(self)

    def squeeze(self, axis: Any = None) -> Tensor:
        """See `minigrad.squeeze`."""
        return minigrad.functional.squeeze(self, axis)

    def transpose(self, *axes: Any) -> Tensor:
        """See `minigrad.transpose`; the axes as a tuple or as several integers."""
        return minigrad.ops.transpose(self, axes=axes[0] if len(axes) == 1 else axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """See `minigrad.swapaxes`."""
        return minigrad.ops.swapaxes(self, axis1=axis1, axis2=axis2)

    def repeat(self, repeats: Any, axis: int | None = None) -> Tensor:
        """See `minigrad.repeat`."""
        return minigrad.functional.repeat(self, repeats, axis)

    def take(self, indices: Any, axis: int | None = None) -> Tensor:
        """See `minigrad.take`."""
        return minigrad.functional.take(self, indices, axis)

    def astype(self, dtype: Any) -> Tensor:
        """See `minigrad.astype`: another floating dtype, recorded."""
        return minigrad.ops.astype(self, dtype=dtype)

    def copy(self) -> Tensor:
        """The same values in memory of their own, recorded."""
        array = _plain(self)
        if array.dtype.kind == "b":  # NumPy has no + for booleans
            return minigrad.Tensor(array.copy())
        return minigrad.ops.positive(self)

    @property
    def T(self) -> Tensor:
        """All axes reversed. For a stack of matrices see `mT`."""
        return minigrad.ops.transpose(self)

    @property
    def mT(self) -> Tensor:
        """Each matrix of the stack transposed: the last two axes swapped."""
        return minigrad.ops.swapaxes(self, axis1=-1, axis2=-2)

    # Questions, answered with plain arrays.

    def argmax(self, axis: int | None = None) -> Any:
        """The place of the largest element, an integer array."""
        return np.argmax(_plain(self), axis)

    def argmin(self, axis: int | None = None) -> Any:
        """The place of the smallest element, an integer array."""
        return np.argmin(_plain(self), axis)

    def argsort(self, axis: int = -1) -> Array:
        """The places of the elements in rising order, an integer array."""
        return np.argsort(_plain(self), axis)

    def all(self, axis: Any = None) -> Any:
        """Whether no element is 0, a boolean array."""
        return np.all(_plain(self), axis)

    def any(self, axis: Any = None) -> Any:
        """Whether some element is not 0, a boolean array."""
        return np.any(_plain(self), axis)

    def tolist(self) -> Any:
        """The values as Python numbers in lists, without a record."""
        return _plain(self).tolist()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Python asks here for what was not found: say what it is called in NumPy's words."""
            if name in OTHER_WORDS:
                advice = f": instead of t.{name} use {OTHER_WORDS[name]}"
            elif name in minigrad.ops.__all__ or name in minigrad.functional.__all__:
                where = "np" if hasattr(np, name) else "minigrad"
                advice = f": {name} is a function, {where}.{name}(t)"
            else:
                raise AttributeError(f"a Tensor has no attribute {name!r}")
            raise AttributeError(f"a Tensor speaks NumPy's words{advice}")


def _plain(x: Any) -> Any:
    """The array of a Tensor; anything else as it is."""
    return x._array if isinstance(x, minigrad.Tensor) else x


def _name(function: Any) -> str:
    return f"{function.__module__}.{function.__name__}".replace("numpy", "np", 1)


def _unknown(function: Any, name: str) -> NoReturn:
    instead = minigrad.functional.vocabulary.INSTEAD.get(function)
    remedy = (
        f"use {instead}"
        if instead
        else (
            "compose it from what minigrad has, write a @primitive, or pass t.data if no "
            "gradient is wanted"
        )
    )
    raise TypeError(f"{name} has no rule for Tensors: {remedy}")


def _refuse_unknown_options(
    function: Any, rule: Callable[..., Any], options: dict[str, Any]
) -> None:
    """NumPy's functions have options that make no record possible, or that nobody needs here."""
    for option in options:
        if option == "out":
            raise TypeError(f"{_name(function)} with out= cannot be recorded: make a new tensor")
        if option not in _parameters(rule):
            optional = [p.name for p in _parameters(rule).values() if p.default is not p.empty]
            raise TypeError(
                f"{_name(function)} with {option}= has no rule for Tensors: "
                f"its options here are {', '.join(optional) or 'none'}"
            )


@cache
def _parameters(rule: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(rule).parameters
