"""1.4 · Words: what a Tensor answers to.

In chapter 0: `matmul(q, transpose(k))`.

Where do `a + b`, `t.sum()` and `np.exp(t)` find the operation that records them? In one table,
`RECORDED`. Each row has a word of NumPy's, and the operation that does the same for Tensors and
writes a node. Three of its rows:

    np.add: ops.add        np.sum: ops.sum        np.exp: ops.exp

The table stands in this chapter, and starts empty. Its rows name the operations of chapters 3 and
6, which are made for Tensors and so come later; `minigrad/functional/table.py` adds them. Words of
three kinds are looked up:

- An operator: Python turns `a + b` into `a.__add__(b)`, which is `RECORDED[np.add](a, b)`.
- A method: `t.sum(axis=0)` is `RECORDED[np.sum](t, axis=0)`.
- A function: `np.exp(t)` calls NumPy's code, not ours. But NumPy looks at the arguments before it
  computes anything. If one of them has a method `__array_ufunc__` or `__array_function__`, NumPy
  calls this method with `np.exp` itself as an argument, and returns the method's result.

So the class below, which `Tensor` inherits, contains no operation. It only looks up words.

    >>> import minigrad
    >>> from minigrad import Tensor
    >>> from minigrad.engine.words import RECORDED
    >>> RECORDED[np.sqrt] is minigrad.sqrt
    True
    >>> t = Tensor([1.0, 4.0], requires_grad=True)
    >>> np.sqrt(t), t.sum() / 5, np.array([2.0, 0.5]) * t
    (Tensor([1., 2.], node=sqrt), Tensor(1., node=divide), Tensor([2., 2.], node=multiply))

A second table, `PLAIN`, has the functions without a derivative, or with one that is 0 wherever it
exists. They give plain arrays:

    >>> t > 2, np.round(t / 3)
    (array([False,  True]), array([0., 1.]))

What is in neither table is refused by name. Otherwise NumPy would ask the Tensor for its array, and
the result would have no record. If another way is known, the error says it:

    >>> np.exp2(t)
    Traceback (most recent call last):
    TypeError: np.exp2 has no rule for Tensors: use 2.0**x
    >>> t.numel
    Traceback (most recent call last):
    AttributeError: a Tensor speaks NumPy's words: instead of t.numel use t.size

A row of your own teaches every Tensor a word (chapter 1.3 explains this rule):

    >>> @minigrad.primitive
    ... def exp2(x, /):
    ...     return lambda: np.exp2(x), lambda g, y: g * y * np.log(2.0)
    >>> RECORDED[np.exp2] = exp2
    >>> np.exp2(t)
    Tensor([ 2., 16.], node=exp2)
    >>> del RECORDED[np.exp2]

(A type checker reads what NumPy declares, and takes np.exp(t) for an array. It knows that
minigrad.exp(t) is a Tensor.)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from minigrad.engine.hints import INSTEAD, OTHER_WORDS, in_our_words

if TYPE_CHECKING:
    from minigrad.engine.tensor import Tensor

# This is the table: a word of NumPy's, and the operation that records it.
RECORDED: dict[Any, Callable[..., Tensor]] = {}
# And the functions of NumPy's that give plain arrays.
PLAIN: set[Any] = set()


class TensorWords(NDArrayOperatorsMixin):
    """The operators, methods and NumPy functions of a Tensor.

    The operators that are not here come from NumPy's mixin. There `a <= b` means
    `np.less_equal(a, b)`, which `__array_ufunc__` answers. `a + b` could go that way too, but it is
    faster to look up its row at once.
    """

    __slots__ = ("__weakref__",)  # (a Tensor takes weak references)

    _array: np.ndarray[Any, Any]  # (chapter 1.1)

    # One of each kind: an operator, a comparison (which has no derivative), a method, the two
    # methods that NumPy calls, and `backward` (chapter 2.2).

    def __add__(self, other: Any) -> Tensor:
        return RECORDED[np.add](self, other)

    def __radd__(self, other: Any) -> Tensor:
        return RECORDED[np.add](other, self)

    def __gt__(self, other: Any) -> Any:
        return np.greater(self, other)  # type: ignore[call-overload]  # (by __array_ufunc__ below)

    @in_our_words  # (the error for PyTorch's `dim=` then says `axis=`)
    def sum(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return RECORDED[np.sum](self, axis=axis, keepdims=keepdims)

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        if method == "__call__" and not options:
            if ufunc in RECORDED:
                return RECORDED[ufunc](*args)
            if ufunc in PLAIN:
                return ufunc(*[_plain(x) for x in args])
        _refuse_ufunc(ufunc, method, options)  # always raises

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function in RECORDED:
            if options:
                _refuse_unknown_options(function, options)
            return RECORDED[function](*args, **options)
        if function in PLAIN:
            plain = {name: _plain(x) for name, x in options.items()}
            return function(*[_plain(x) for x in args], **plain)
        _refuse_unknown(function)  # always raises

    def backward(self, gradient: Any = None, *, retain_graph: bool = False) -> None:
        """Add ∂(this)/∂leaf to the `.grad` of every leaf behind it. See `minigrad.backward`."""
        # The one circle among the imports: a Tensor has a method that goes back, and going back
        # (chapter 2.2) needs Tensors. So the method imports it when it is called.
        from minigrad.engine.autograd import backward

        backward(self, gradient, retain_graph=retain_graph)  # type: ignore[arg-type]

    # ------------------------------------------------ A first reading may stop here.
    # What follows is more of the same: operators, comparisons, methods; then what the errors say.

    def __sub__(self, other: Any) -> Tensor:
        return RECORDED[np.subtract](self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return RECORDED[np.subtract](other, self)

    def __mul__(self, other: Any) -> Tensor:
        return RECORDED[np.multiply](self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return RECORDED[np.multiply](other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return RECORDED[np.divide](self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return RECORDED[np.divide](other, self)

    def __pow__(self, other: Any) -> Tensor:
        return RECORDED[np.power](self, other)

    def __matmul__(self, other: Any) -> Tensor:
        return RECORDED[np.matmul](self, other)

    def __neg__(self) -> Tensor:
        return RECORDED[np.negative](self)

    def __getitem__(self, index: Any) -> Tensor:
        return RECORDED[np.ndarray.__getitem__](self, index)

    # (The derivative of a comparison is 0 almost everywhere, so comparisons give plain arrays.)

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

    @in_our_words
    def mean(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return RECORDED[np.mean](self, axis=axis, keepdims=keepdims)

    @in_our_words
    def max(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return RECORDED[np.max](self, axis=axis, keepdims=keepdims)

    @in_our_words
    def min(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return RECORDED[np.min](self, axis=axis, keepdims=keepdims)

    @in_our_words
    def var(self, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Tensor:
        return RECORDED[np.var](self, axis=axis, ddof=ddof, keepdims=keepdims)

    @in_our_words
    def std(self, axis: Any = None, *, ddof: int = 0, keepdims: bool = False) -> Tensor:
        return RECORDED[np.std](self, axis=axis, ddof=ddof, keepdims=keepdims)

    @in_our_words
    def prod(self, axis: Any = None, *, keepdims: bool = False) -> Tensor:
        return RECORDED[np.prod](self, axis=axis, keepdims=keepdims)

    @in_our_words
    def cumsum(self, axis: int | None = None) -> Tensor:
        return RECORDED[np.cumsum](self, axis=axis)

    def clip(
        self, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
    ) -> Tensor:
        return RECORDED[np.clip](self, a_min, a_max, min=min, max=max)

    def reshape(self, *shape: Any) -> Tensor:
        return RECORDED[np.reshape](self, shape=shape[0] if len(shape) == 1 else shape)

    def ravel(self) -> Tensor:
        return RECORDED[np.ravel](self)

    def flatten(self) -> Tensor:
        """Return all elements along one axis, as `ravel` does."""
        return RECORDED[np.ravel](self)

    @in_our_words
    def squeeze(self, axis: Any = None) -> Tensor:
        return RECORDED[np.squeeze](self, axis)

    def transpose(self, *axes: Any) -> Tensor:
        if len(axes) == 2:
            _refuse_to_exchange(self, axes)
        return RECORDED[np.transpose](self, axes=axes[0] if len(axes) == 1 else axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        return RECORDED[np.swapaxes](self, axis1=axis1, axis2=axis2)

    def astype(self, dtype: Any) -> Tensor:
        return RECORDED[np.ndarray.astype](self, dtype=dtype)

    def copy(self) -> Tensor:
        """Return the same values in memory of their own, recorded."""
        return RECORDED[np.positive](self)

    @property
    def T(self) -> Tensor:
        """All axes reversed. For a stack of matrices see `mT`."""
        return RECORDED[np.transpose](self)

    @property
    def mT(self) -> Tensor:
        """Each matrix of the stack transposed: the last two axes swapped."""
        return RECORDED[np.swapaxes](self, axis1=-1, axis2=-2)

    @in_our_words
    def argmax(self, axis: int | None = None) -> Any:
        """Return the index of the largest element, along an axis or of all (then a flat index)."""
        return self._array.argmax(axis)

    def tolist(self) -> Any:
        """Return the values as Python numbers in lists, without a record."""
        return self._array.tolist()

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError with NumPy's word for an attribute that Python did not find."""
            # (With name= and obj=, Python adds no guess of its own.)
            raise AttributeError(_advice(name), name=name, obj=None)


# Python's errors then say Tensor.sum, as a program does, and not TensorWords.sum.
for method in filter(inspect.isfunction, vars(TensorWords).values()):
    inspect.unwrap(method).__qualname__ = f"Tensor.{method.__name__}"


def _plain(x: Any) -> Any:
    """Return the array of a Tensor, and anything else as it is."""
    return x._array if isinstance(x, TensorWords) else x


# ---------------------------------------------------------------- what the errors say

# How a function of minigrad's is called: "softmax" is minigrad.softmax, and "exp" is np.exp.
# (`minigrad/functional/table.py` fills it, too.)
CALLED: dict[str, str] = {}


def name_of(function: Any) -> str:
    """Return the name by which a program calls one of NumPy's functions: np.linalg.norm."""
    module = getattr(function, "__module__", "numpy")  # (NumPy 2.0's ufuncs have none)
    name = getattr(function, "__qualname__", function.__name__)
    return f"{module}.{name}".replace("numpy", "np", 1)


def _advice(name: str) -> str:
    """Return a sentence with the word to use instead of `t.name`, which no Tensor t has."""
    if name in OTHER_WORDS:
        return f"a Tensor speaks NumPy's words: instead of t.{name} use {OTHER_WORDS[name]}"
    if name in CALLED:
        return f"a Tensor speaks NumPy's words: {name} is a function, {CALLED[name]}(t)"
    return f"a Tensor has no attribute {name!r}"


def _refuse_to_exchange(t: Any, axes: tuple[Any, Any]) -> None:
    """Refuse `t.transpose(-2, -1)` in PyTorch's sense; in NumPy's it is the order of two axes."""
    in_order = t.ndim == 2 and axes[0] in (0, -2) and axes[1] in (1, -1)
    if t.ndim > 2 or in_order:
        name = f"{t.name!r} " if t.name else ""
        raise ValueError(
            f"transpose{axes} of {name}{t.shape} does not exchange two axes: it takes the order of "
            f"all, as NumPy's does; use .mT, or .swapaxes{axes}"
        )


def _refuse_ufunc(ufunc: Any, method: str, options: Mapping[str, Any]) -> NoReturn:
    """Raise TypeError with the reason why this call of a ufunc cannot be recorded."""
    name = f"np.{ufunc.__name__}"
    if method != "__call__":
        name += f".{method}"
    if getattr(np, ufunc.__name__, None) is not ufunc:
        name = f"{ufunc.__name__}, which is not NumPy's,"
    if "out" in options:
        raise TypeError(
            f"{name} in place, or with out=, cannot be recorded: make a new array or tensor"
        )
    _refuse_unknown(ufunc, name + "".join(f" with {option}=" for option in options))


def _refuse_unknown(function: Any, name: str | None = None) -> NoReturn:
    """Raise TypeError for a function without a rule, with a remedy."""
    remedy = (
        "compose it from what minigrad has, write a @primitive, or pass t.data if no gradient is "
        "wanted"
    )
    if function in INSTEAD:
        remedy = f"use {INSTEAD[function]}"
    elif function not in RECORDED and function.__name__ in CALLED:  # (SciPy's erf)
        remedy = f"use {CALLED[function.__name__]}"
    raise TypeError(f"{name or name_of(function)} has no rule for Tensors: {remedy}")


def _refuse_unknown_options(function: Any, options: Mapping[str, Any]) -> None:
    """Refuse options of NumPy's that cannot be recorded, or that our operation does not have."""
    parameters = _parameters(RECORDED[function])
    for option in options:
        if option == "out":
            raise TypeError(f"{name_of(function)} with out= cannot be recorded: make a new tensor")
        if option not in parameters:
            optional = [p.name for p in parameters.values() if p.default is not p.empty]
            raise TypeError(
                f"{name_of(function)} with {option}= has no rule for Tensors: its options here are "
                + (", ".join(optional) or "none")
            )


@cache
def _parameters(operation: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(operation).parameters
