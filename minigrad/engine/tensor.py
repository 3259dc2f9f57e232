"""1.1 · Tensor: an array that remembers where it came from.

In chapter 0: `self.array = np.asarray(array, float)`.

How can a program know the derivative of what it has just computed? It keeps a record. A `Tensor` is
a NumPy array together with a **node**, which says which operation made the array, and from which
other tensors. Those tensors may have nodes too. The way back ends at the **leaves**, the tensors
without a node: usually the ones that you made yourself. Chapter 1.3 writes the nodes, chapter 2
follows them backwards, and that is all of backpropagation.

The last result of a record is usually one number, the **loss** L, which says how wrong a model is.
∂L/∂x is the **gradient** of x (chapter 0): an array of the shape of x, with one slope for each
element.

    >>> import numpy as np
    >>> from minigrad import Tensor, no_grad
    >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True, name="x")
    >>> y = np.exp(x).sum()
    >>> y
    Tensor(30.19287485, node=sum)
    >>> y.node.inputs                   # the tensor whose elements were summed
    (Tensor([ 2.71828183,  7.3890561 , 20.08553692], node=exp),)
    >>> y.backward()
    >>> x.grad                          # ∂(Σ exp x)/∂x = exp x
    array([ 2.71828183,  7.3890561 , 20.08553692])
    >>> y.node.inputs                   # after `backward` the record is gone, and its memory free
    ()

**Arrays never change.** The record holds arrays that the way back will need. If one of them were
overwritten between the forward and the backward pass, the gradient would be wrong, and nothing
would show it. So nobody can write to an array through its tensor, and training gives a leaf
*another* array. There are two ways:

    >>> x.data = x.data - 0.1 * x.grad
    >>> with no_grad():
    ...     x -= 0.1 * x.grad

Outside `no_grad` (chapter 1.2), `x -= …` is an error: it would make x the name of a new result,
and the leaf would stay as it was. `x.data -= …` looks like the first way, but it would write into
the array itself. NumPy refuses that:

    >>> x.data -= 0.1 * x.grad
    Traceback (most recent call last):
    ValueError: output array is read-only

There is one exception. A tensor that never required a gradient is a **constant**, and it does not
copy your array. If you write to your array, the constant changes too, so do not do that between the
forward and the backward pass (`detect_anomaly` can look for it).

    >>> a = np.array([1.0, 2.0])
    >>> c = Tensor(a)
    >>> a[0] = 7.0
    >>> c
    Tensor([7., 2.])
"""

from __future__ import annotations

import itertools
import mmap
import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from minigrad.engine.options import check_floating, converted
from minigrad.engine.record import is_recording
from minigrad.engine.words import TensorWords

if TYPE_CHECKING:
    from minigrad.engine.record import Node

Array = np.ndarray[Any, Any]


class Tensor(TensorWords):
    """An n-dimensional array, and the node it came from.

    Tensor(values, *, requires_grad=False, dtype=None, name=None)

    `node` is None for a leaf. Three kinds of tensors are leaves:

    - a tensor that you make;
    - a detached one (`detach`);
    - a result that is computed from constants only, or inside a `no_grad` block (chapter 1.2).

    With `requires_grad=True` the leaf copies its values, everything computed from it is recorded,
    and `backward()` (chapter 2.2) adds ∂L/∂leaf to its `.grad`, a plain array. Without it, the
    tensor is a constant. `name` appears in errors and in graphs. A floating Tensor is float32 or
    float64, and nothing else (chapter 1.3).

    Operators, methods and NumPy's own functions (`t * 2`, `t.sum()`, `np.exp(t)`) all record
    (chapter 1.4). What has no derivative gives a plain array (`t > 0`). What would silently lose
    the record, `float(t)` or `t[0] = 1`, raises an error that says what to write instead.

    >>> Tensor([1, 2, 3], requires_grad=True)
    Traceback (most recent call last):
    TypeError: an integer tensor cannot require a gradient: dtype is int64; pass dtype=float
    """

    __slots__ = ("_array", "_grad", "_parameter", "_requires_grad", "_time", "name", "node")

    _array: Array
    _requires_grad: bool
    _parameter: bool  # whether it has ever required a gradient: a frozen leaf is still a parameter
    _time: int  # when it got its array (chapter 2.1)
    _grad: Array | None
    node: Node | None
    name: str | None

    def __init__(
        self,
        values: Any,
        *,
        requires_grad: bool = False,
        dtype: Any = None,
        name: str | None = None,
    ) -> None:
        if isinstance(values, Tensor):
            if values._requires_grad:
                raise TypeError(
                    "Tensor(t) would cut t out of its record: use t itself, or t.detach()"
                )
            values = values._array
        self._array = read_only(real_array(values, "Tensor", dtype))
        check_floating(self._array.dtype, "Tensor")
        self._time = now()
        self._requires_grad = self._parameter = False
        self.node = None
        self._grad = None
        self.name = name
        if requires_grad:
            self.requires_grad = True

    @property
    def data(self) -> Array:
        """The array itself, read-only and without a record. A leaf can be given another one.

        `p.data = values` keeps the leaf's shape and dtype. It makes a copy if your program could
        still write to the array of values.
        """
        return self._array

    @data.setter
    def data(self, values: Any) -> None:
        self._take(self._checked(values), self.dtype)

    def _take(self, array: Array, dtype: Any) -> None:
        """Hold these values from now on. Whoever holds the old array keeps it unchanged."""
        array = frozen(array, dtype)
        if array is not self._array:
            self._array, self._time = array, now()

    def item(self) -> float:
        """Return the one element as a Python number, without a record."""
        return self._array.item()  # type: ignore[no-any-return]

    def detach(self) -> Tensor:
        """Return the same values (no copy) as a constant: no gradient flows back through it."""
        return result(self._array, None)

    # ------------------------------------------------ A first reading may stop here.
    # What follows: which arrays a leaf can be given, shapes and dtypes, conversions (those that
    # would lose the record raise an error), and the helpers used above. `now` is the clock,
    # `real_array` checks values, `frozen` and `read_only` make arrays that nobody can write to, and
    # `result` makes a tensor of an array.

    def _checked(self, values: Any) -> Array:
        """Return the values as an array, if this tensor can be given them.

        It must be a leaf, the shape must stay, and floats cannot become integers. `_take` then
        copies values that somebody could still write to. It takes an array without a copy if the
        array is read-only and not a view of a writable one: a memory-mapped file of weights, or an
        array after `a.setflags(write=False)`. Only one thread at a time may give a leaf another
        array, while no other thread computes with it.
        """
        if self.node is not None:
            raise TypeError(
                f"only a leaf can be given data: this is the result of {self.node.name}"
            )
        array = real_array(values, "data")
        if array.shape != self.shape:
            raise ValueError(f"data of shape {self.shape} cannot become {array.shape}")
        if not np.can_cast(array.dtype, self.dtype, "same_kind"):
            raise TypeError(f"data of dtype {self.dtype} cannot become {array.dtype}")
        return converted(array, self.dtype, "data")

    @property
    def requires_grad(self) -> bool:
        """True if operations on this tensor are recorded. A leaf's can be set.

        When it is switched on, a leaf that still shares its memory with you takes a copy.
        """
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if self.node is not None:
            raise TypeError(
                f"requires_grad can be set only on a leaf: this is the result of {self.node.name}; "
                "use detach()"
            )
        if value and self.dtype.kind != "f":
            raise TypeError(
                "an integer tensor cannot require a gradient: "
                f"dtype is {self.dtype}; pass dtype=float"
            )
        if value:
            self._take(self._array, self.dtype)
            self._parameter = True
        self._requires_grad = bool(value)

    @property
    def grad(self) -> Any:
        """∂L/∂(this leaf), an array, once `backward` (chapter 2.2) was called; before it None.

        RuntimeError for a result; so `hasattr(result, "grad")` raises it, too.
        """
        if self.node is not None:
            # (Not an AttributeError: after one Python would ask `TensorWords.__getattr__`.)
            raise RuntimeError(
                f"only a leaf has a .grad, and {describe(self)} is the result of {self.node.name}: "
                "its gradient is minigrad.gradients(loss, [t]), without loss.backward(); to train "
                "it, make a leaf of the finished array, Tensor(t.data, requires_grad=True)"
            )
        return self._grad

    @grad.setter
    def grad(self, value: Array | None) -> None:
        self._grad = value

    @property
    def shape(self) -> tuple[int, ...]:
        """The length of each axis."""
        return self._array.shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self._array.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._array.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of the elements."""
        return self._array.dtype  # type: ignore[no-any-return]

    def __repr__(self) -> str:
        """Show the values, an unusual dtype, the operation or requires_grad, and the name."""
        parts = [np.array2string(self._array, separator=", ", prefix="Tensor(")]
        if self.dtype not in (np.float64, np.int64, np.bool_):
            parts.append(f"dtype={self.dtype}")
        if self.node is not None:
            parts.append(f"node={self.node.name}")
        elif self._requires_grad:
            parts.append("requires_grad=True")
        if self.name:
            parts.append(f"name={self.name!r}")
        return f"Tensor({', '.join(parts)})"

    def _without_record(self, what: str) -> Array:
        if self._requires_grad:
            raise TypeError(
                f"{what} would drop the gradient of {describe(self)}: "
                "use .item() for a number, .data for the array, .detach() for a constant tensor, "
                "and np.stack or np.concatenate to join tensors"
            )
        return self._array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.array(self._without_record("a conversion to a NumPy array"), dtype, copy=copy)

    def __float__(self) -> float:
        return float(self._without_record("float()"))

    def __int__(self) -> int:
        return int(self._without_record("int()"))

    def __index__(self) -> int:
        return operator.index(self._array)

    def __round__(self, digits: int = 0) -> Any:
        return np.round(self._array, digits)

    def __bool__(self) -> bool:
        return bool(self._array)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            "a Tensor cannot be changed in place, its record would be wrong: "
            "build a new tensor with np.where or concatenate"
        )

    def __reduce__(self) -> Any:
        """Copy and pickle a leaf; refuse a result.

        A copied result would hold copies of its leaves, and backward() would fill the `.grad` of
        those copies, not of your leaves.
        """
        if self.node is not None:
            raise TypeError(
                f"the result of {self.node.name} cannot be copied or pickled with its record: "
                "use detach(); to plot it, use .data"
            )
        grad = None if self.grad is None else self.grad.copy()
        slots = {"_parameter": self._parameter, "name": self.name, "grad": grad}
        slots["requires_grad"] = self._requires_grad
        return type(self), (self._array.copy(),), (None, slots)

    def __format__(self, spec: str) -> str:
        return format(self._array.item(), spec) if spec else str(self)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    def _assign(self, value: Tensor) -> Tensor:
        """Return what `t -= other` gives the name t: for a leaf under no_grad(), the leaf itself.

        `loss += term` gives the name `loss` to a new, recorded tensor. For a leaf that requires a
        gradient this would be a mistake: the model or the optimizer still holds the leaf, and would
        not see the change. So it is refused while operations are recorded. Under no_grad() a leaf
        is given another array, as by `t.data = …`.
        """
        if self.node is not None or (is_recording() and not self._requires_grad):
            return value
        if is_recording():
            raise TypeError(
                f"an assignment like += or -= would leave the leaf {describe(self)} behind: write "
                "w.data = w.data - ... (or w -= ... under no_grad()) to change the leaf, or "
                "w = w - ... to compute something new"
            )
        self.data = value
        return self

    def __iadd__(self, other: Any) -> Tensor:
        return self._assign(self + other)

    def __isub__(self, other: Any) -> Tensor:
        return self._assign(self - other)

    def __imul__(self, other: Any) -> Tensor:
        return self._assign(self * other)

    def __itruediv__(self, other: Any) -> Tensor:
        return self._assign(self / other)

    def __ipow__(self, other: Any) -> Tensor:
        return self._assign(self**other)

    def __imatmul__(self, other: Any) -> Tensor:
        return self._assign(self @ other)


# ---------------------------------------------------------------- arrays, and tensors made of them

# A counter: each call gives the next number, to no two threads the same one.
now: Callable[[], int] = itertools.count(1).__next__
_new: Callable[[type[Tensor]], Tensor] = object.__new__


def result(array: Array, node: Node | None) -> Tensor:
    """Return a tensor around a read-only array, without the checks of `Tensor(…)`, for speed."""
    tensor = _new(Tensor)
    tensor._array = array
    tensor._time = now()
    tensor._requires_grad = node is not None
    tensor._parameter = False
    tensor.node = node
    tensor._grad = None
    tensor.name = None
    return tensor


def read_only(array: Array) -> Array:
    """Return the array, or a view of it, through which nobody can write. No copy is made."""
    if array.flags.writeable:
        array = array.view()
        array.setflags(write=False)
    return array


def frozen(array: Array, dtype: Any = None) -> Array:
    """Return the array if nobody can write to its memory; otherwise a read-only copy."""
    held: Any = array
    while isinstance(held, np.ndarray) and not held.flags.writeable:
        held = held.base  # whose memory it is a view of; None for an array with its own
    known = held is None or isinstance(held, (bytes, mmap.mmap, memoryview))
    if not known or (dtype is not None and array.dtype != dtype):
        array = array.astype(array.dtype if dtype is None else dtype)  # always a copy
        array.setflags(write=False)
    return array


def real_array(values: Any, asked: str, dtype: Any = None) -> Array:
    """Return values as an array, without a copy if they are one in this machine's byte order.

    TypeError for values that have no real derivative (complex numbers, objects, text), and for a
    masked array, whose mask would be ignored. With a dtype the values are `converted`.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{asked} would ignore the mask of a masked array: use np.where first")
    array = np.asarray(values)
    if dtype is not None and array.dtype.kind in "fiub":
        array = converted(array, np.dtype(dtype), asked)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{asked} takes real numbers, but got an array of dtype {array.dtype}")
    if not array.dtype.isnative:  # its bytes are in the order of another machine, as in ">f4"
        array = array.astype(array.dtype.newbyteorder("="))
    return array


def as_operand(x: Any, asked: str) -> Any:
    """Return a Tensor as it is, and anything else as an array of real numbers."""
    return x if isinstance(x, Tensor) else real_array(x, asked)


def describe(x: Any) -> str:
    """Return the words by which errors name a tensor: its owner's name for it, and its shape."""
    name = getattr(x, "name", None)
    return f"{name!r} {np.shape(x)}" if name else f"{np.shape(x)}"
