"""1.4 · Words: what a Tensor answers to.

In chapter 0: `matmul(q, transpose(k))`.

Where do `a + b`, `t.sum()` and `np.exp(t)` find the operation that records them? Here, and only
here. Python turns an operator into a method call, `a.__add__(b)`; NumPy turns a call of one of its
functions into `t.__array_ufunc__(np.exp, …)` or `t.__array_function__(np.reshape, …)`, before it
computes anything. So the class below is a table whose lines are methods: each passes its arguments
to an operation of chapter 3, or to a function of chapter 6. `Tensor` inherits it. Which of NumPy's
functions finds which operation is a table in `minigrad/functional/vocabulary.py`.

What is in no table is refused by name. Otherwise NumPy would ask the Tensor for its array, and the
result would have no record.

    >>> from minigrad import Tensor
    >>> t = Tensor([1.0, 4.0], requires_grad=True)
    >>> np.sqrt(t), t.sum() / 5, np.array([2.0, 0.5]) * t
    (Tensor([1., 2.], node=sqrt), Tensor(1., node=divide), Tensor([2., 2.], node=multiply))
    >>> t > 2                           # no derivative: a plain array
    array([False,  True])
    >>> np.nansum(t)
    Traceback (most recent call last):
    TypeError: np.nansum has no rule for Tensors: use np.where(np.isnan(x), 0, x).sum()
    >>> t.numel
    Traceback (most recent call last):
    AttributeError: a Tensor speaks NumPy's words: instead of t.numel use t.size
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from minigrad.engine.other_words import in_our_words

# The one circle among the imports. The operations are made for Tensors, so their chapters import
# the class; the class needs the operations. So this module imports none of these five: when all
# chapters have been imported, `minigrad/__init__.py` sets them here. A method looks its operation
# up when it is called.
if TYPE_CHECKING:
    import minigrad
    from minigrad.engine.tensor import Tensor
    from minigrad.functional import vocabulary

    backward = minigrad.backward
    functional = minigrad.functional
    ops = minigrad.ops


class Words(NDArrayOperatorsMixin):
    """The operators, methods and NumPy functions of a Tensor.

    The operators that are not here come from NumPy's mixin, where `a <= b` means
    `np.less_equal(a, b)`, which is answered by `__array_ufunc__` below.
    """

    __slots__ = ("__weakref__",)  # (a Tensor takes weak references)

    # One of each kind: an operator, a comparison (which has no derivative), a method, and the two
    # methods that NumPy calls.

    def __add__(self, other: Any) -> Tensor:
        return ops.add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return ops.add(other, self)

    def __gt__(self, other: Any) -> Any:
        return np.greater(self, other)  # type: ignore[call-overload]  # (by __array_ufunc__ below)

    def sum(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return ops.sum(self, axis=axis, keepdims=keepdims)

    def backward(self, gradient: Any = None, *, retain_graph: bool = False) -> None:
        """Add ∂(this)/∂leaf to the `.grad` of every leaf behind it. See `minigrad.backward`."""
        return backward(self, gradient, retain_graph=retain_graph)  # type: ignore[arg-type]

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        table: Any = vocabulary
        if method == "__call__" and not options:
            if ufunc in table.NUMPY:
                return table.NUMPY[ufunc](*args)
            if ufunc in table.PLAIN:
                return ufunc(*[_plain(x) for x in args])
        table.refuse_ufunc(ufunc, method, options)  # always raises

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        table: Any = vocabulary
        if function in table.NUMPY:
            if options:
                table.refuse_unknown_options(function, options)
            return table.NUMPY[function](*args, **options)
        if function in table.PLAIN:
            plain = {name: _plain(x) for name, x in options.items()}
            return function(*[_plain(x) for x in args], **plain)
        table.refuse_unknown(function)  # always raises

    # ------------------------------------------------ A first reading may stop here.
    # What follows is more of the same: operators, comparisons, methods.

    def __sub__(self, other: Any) -> Tensor:
        return ops.subtract(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return ops.subtract(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return ops.multiply(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return ops.multiply(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return ops.divide(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return ops.divide(other, self)

    def __pow__(self, other: Any) -> Tensor:
        return ops.power(self, other)

    def __matmul__(self, other: Any) -> Tensor:
        return ops.matmul(self, other)

    def __neg__(self) -> Tensor:
        return ops.negative(self)

    def __getitem__(self, index: Any) -> Tensor:
        return ops.getitem(self, index)

    # (Comparisons have no useful derivative, it is 0 almost everywhere: plain arrays.)

    def __eq__(self, other: Any) -> Any:
        if isinstance(other, str):  # as in `scale == "auto"`: Python then says that they differ
            return NotImplemented
        return np.equal(self, other)  # type: ignore[call-overload]

    def __ne__(self, other: Any) -> Any:
        if isinstance(other, str):
            return NotImplemented
        return np.not_equal(self, other)  # type: ignore[call-overload]

    # Two tensors are the same only if they are one object: `==` compares elements, as in NumPy.
    __hash__ = object.__hash__

    # ---------------------------------------------------------------- methods
    # Each is the function of minigrad with its name, whose docstring says what it does.

    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return ops.mean(self, axis=axis, keepdims=keepdims)

    def max(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return ops.max(self, axis=axis, keepdims=keepdims)

    def min(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return ops.min(self, axis=axis, keepdims=keepdims)

    def var(self, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Tensor:
        return functional.var(self, axis=axis, ddof=ddof, keepdims=keepdims)

    def std(self, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Tensor:
        return functional.std(self, axis=axis, ddof=ddof, keepdims=keepdims)

    def prod(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return functional.prod(self, axis=axis, keepdims=keepdims)

    def cumsum(self, axis: int | None = None) -> Tensor:
        return ops.cumsum(self, axis=axis)

    def clip(self, a_min: Any = None, a_max: Any = None, **limits: Any) -> Tensor:
        return functional.clip(self, a_min, a_max, **limits)

    def reshape(self, *shape: Any) -> Tensor:
        return ops.reshape(self, shape=shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Tensor:
        return functional.ravel(self)

    def flatten(self) -> Tensor:
        """Return all elements along one axis, as `ravel` does."""
        return functional.ravel(self)

    def squeeze(self, axis: Any = None) -> Tensor:
        return functional.squeeze(self, axis)

    def transpose(self, *axes: Any) -> Tensor:
        if len(axes) == 2:
            vocabulary.refuse_to_exchange(self, axes)
        return ops.transpose(self, axes=axes[0] if len(axes) == 1 else axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        return ops.swapaxes(self, axis1=axis1, axis2=axis2)

    def astype(self, dtype: Any) -> Tensor:
        return ops.astype(self, dtype=dtype)

    def copy(self) -> Tensor:
        """Return the same values in memory of their own, recorded."""
        return ops.positive(self)

    @property
    def T(self) -> Tensor:
        """All axes reversed. For a stack of matrices see `mT`."""
        return ops.transpose(self)

    @property
    def mT(self) -> Tensor:
        """Each matrix of the stack transposed: the last two axes swapped."""
        return ops.swapaxes(self, axis1=-1, axis2=-2)

    def argmax(self, axis: int | None = None) -> Any:
        """Return the index of the largest element, along an axis or of all (then a flat index)."""
        return np.argmax(_plain(self), axis)

    def tolist(self) -> Any:
        """Return the values as Python numbers in lists, without a record."""
        return _plain(self).tolist()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError with NumPy's word for an attribute that Python did not find."""
            # (With name= and obj=, Python adds no guess of its own.)
            raise AttributeError(vocabulary.advice(name), name=name, obj=None)


# Python's errors then speak of `Tensor.sum()`, the name that a caller knows.
for _name, _word in tuple(vars(Words).items()):
    if isinstance(_word, FunctionType):
        _word.__qualname__ = f"Tensor.{_name}"
        if "axis" in _word.__code__.co_varnames:
            setattr(Words, _name, in_our_words(_word))


def _plain(x: Any) -> Any:
    """Return the array of a Tensor, and anything else as it is."""
    return x._array if isinstance(x, Tensor) else x
