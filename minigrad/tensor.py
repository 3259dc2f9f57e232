"""1.1 · Tensor: an array that remembers where it came from.

How can a program know the derivative of what it has just computed? It keeps a record. A
`Tensor` is a NumPy array with one thing more: its **node**, which says what operation made it
and from what. The inputs of that operation have nodes of their own, and so on back to the
tensors you made yourself, the **leaves**. Nothing more is needed: chapter 1.3 writes the nodes,
chapter 2 replays them in reverse, and that is all of backpropagation.

A `Tensor` speaks NumPy: its operators, methods and functions work on it, and each leaves a node
(chapter 1.4). What has no derivative gives a plain array (`t > 0`). What would quietly lose the
record, `float(t)` or `t[0] = 1`, is refused in a sentence, and so is any function without a rule.

∂L/∂x is the slope of L when only x moves. For an array x it is an array of the same shape, one
slope for each element: the **gradient** of L.

    >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True, name="x")
    >>> y = np.exp(x).sum()
    >>> y
    Tensor(30.19287485, node=sum)
    >>> y.node.inputs                   # what y was summed from
    (Tensor([ 2.71828183,  7.3890561 , 20.08553692], node=exp),)
    >>> y.backward()
    >>> x.grad                          # ∂(Σ exp x)/∂x = exp x
    array([ 2.71828183,  7.3890561 , 20.08553692])
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

import minigrad
from minigrad.words import Words

if TYPE_CHECKING:
    from minigrad.record import Node

Array = np.ndarray[Any, Any]

# What the record orders itself by: every node that is made and every write to a tensor's data
# has a time of its own. A tensor remembers the time of its last write and a node the time it was
# made, so a node knows which inputs are newer than it (what for: chapter 1.5), and everything
# behind a node is older than it. (`next` on a counter is one step, which threads cannot split.)
_now: Callable[[], int] = itertools.count(1).__next__
_LAST_WRITE = [0]  # the time of the last write to anything
# A recorded result is read-only: it is never written, and all of them can share that.
_NEVER = [0, 0]


class Tensor(Words):
    """An n-dimensional array, and the node it came from.

    Tensor(values, *, requires_grad=False, dtype=None, name=None)

    A **leaf** is a tensor you make yourself; its `node` is None. With `requires_grad=True` it
    copies its values, everything computed from it is recorded, and `backward()` accumulates
    ∂L/∂leaf in `.grad`, a plain array. Without, it shares the memory of the array you give: do
    not change that array between the forward and the backward pass (chapter 1.5).
    `name` appears in errors and in graphs. Values are real: TypeError for complex numbers or
    objects, and for an integer tensor that is asked to require a gradient.

    Operators, methods and NumPy's own functions (`np.exp(t)`, `array * t`) all record. What
    would quietly lose the record, `np.asarray(t)`, `float(t)` or `t[0] = 1`, is refused.

    >>> Tensor([1, 2, 3], requires_grad=True)
    Traceback (most recent call last):
    TypeError: an integer tensor cannot require a gradient: dtype is int64; pass dtype=float
    """

    __slots__ = (
        "__weakref__",
        "_array",
        "_hooks",
        "_requires_grad",
        "_written",
        "grad",
        "name",
        "node",
    )

    _array: Array
    _requires_grad: bool
    # [time of the last write in place, time of the last move to other memory]: one list for all
    # tensors that share the memory.
    _written: list[int]
    # What is to be called with the gradient when a replay has completed it; almost always None.
    _hooks: list[Callable[[Any], Any]] | None
    node: Node | None
    grad: Array | None
    name: str | None

    def __init__(
        self,
        values: Any,
        *,
        requires_grad: bool = False,
        dtype: Any = None,
        name: str | None = None,
    ) -> None:
        written = None
        if isinstance(values, Tensor):
            if values._requires_grad:
                raise TypeError(
                    "Tensor(t) would cut t out of its record: use t itself, or t.detach()"
                )
            written = values._written  # the two share one memory
            values = values._array
        self._array = _real_array(values, "Tensor", dtype)
        self._requires_grad = False
        self._written = [0, 0] if written is None else written
        self._hooks = None
        self.node = None
        self.grad = None
        self.name = name
        if requires_grad:
            self.requires_grad = True

    # ---------------------------------------------------------------- what it holds

    @property
    def data(self) -> Array:
        """The array itself, without a record. Read-only for a recorded result.

        An optimizer writes `p.data -= step`. Python then calls the setter, which notes the time
        of the write; a node that still needs the old values notices when it is replayed. A write
        to elements, `p.data[0] = 1`, calls no setter and cannot be noticed.
        """
        return self._array

    @data.setter
    def data(self, values: Any) -> None:
        if self.node is not None:
            raise TypeError(f"only a leaf can be written: this is the result of {self.node.name}")
        array = _real_array(values, "data")
        if array.shape != self.shape:
            raise ValueError(f"data of shape {self.shape} cannot become {array.shape}")
        if array is self._array:  # p.data -= step: all who share this memory see the write
            self._written[0] = _LAST_WRITE[0] = _now()
        else:
            self._move(array.astype(self.dtype))

    def _move(self, array: Array) -> None:
        """Take other memory. Whoever shares the old one keeps it, and its time of writing."""
        _LAST_WRITE[0] = _now()
        self._array, self._written = array, [self._written[0], _LAST_WRITE[0]]

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded. A leaf's can be set.

        When it is switched on the leaf takes a copy of its values: nobody else holds that
        memory, so nobody else can change a value that the record will need.
        """
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if self.node is not None:
            raise TypeError(
                f"requires_grad is a leaf's to choose: this is the result of {self.node.name}; "
                "use detach()"
            )
        if value and self.dtype.kind != "f":
            kind = "a boolean" if self.dtype.kind == "b" else "an integer"
            raise TypeError(
                f"{kind} tensor cannot require a gradient: dtype is {self.dtype}; pass dtype=float"
            )
        if value and not self._requires_grad:
            self._move(self._array.copy())
        self._requires_grad = bool(value)

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

    def item(self) -> float:
        """The one element as a Python number, without a record."""
        return self._array.item()  # type: ignore[no-any-return]

    def detach(self) -> Tensor:
        """The same values (no copy) as a constant: no gradient flows back through it."""
        return _wrap(self._array, None, [0, 0] if self._written is _NEVER else self._written)

    def register_hook(self, hook: Callable[[Any], Any]) -> Hook:
        """Call `hook(g)` with ∂L/∂(this) in every backward pass, as soon as it is complete.

        What the hook returns takes the gradient's place on the way further back; None leaves it.
        g is an array that cannot be written, or a Tensor with `create_graph=True`. The hook is
        called until `.remove()` is called on what is returned here. TypeError if this tensor
        does not require a gradient.

        >>> x = Tensor([3.0, 4.0], requires_grad=True)
        >>> y = x * 2.0
        >>> hook = y.register_hook(lambda g: g.clip(-1.0, 1.0))
        >>> y.backward([10.0, 0.5])
        >>> x.grad
        array([2., 1.])
        """
        if not self._requires_grad:
            raise TypeError(
                f"a hook waits for a gradient, and {describe(self)} does not require one"
            )
        if not callable(hook):
            raise TypeError(f"a hook is a function of the gradient: got {type(hook).__name__}")
        called = Hook(self, hook)
        self._hooks = [*(self._hooks or []), called]
        return called

    def retain_grad(self) -> None:
        """Let `backward()` leave the gradient in `.grad` here too, although this is no leaf."""
        if not self._requires_grad:
            raise TypeError(f"{describe(self)} does not require a gradient: none will be retained")
        self._hooks = [*(self._hooks or []), _retain]

    def backward(self, gradient: Any = None, *, retain_graph: bool = False) -> None:
        """Add ∂(this)/∂leaf to the `.grad` of every leaf behind it. See `minigrad.backward`."""
        minigrad.autograd.backward(self, gradient, retain_graph=retain_graph)

    def __repr__(self) -> str:
        """Values, the dtype where it is not float64, and where the tensor came from.

        >>> Tensor([1.0, 2.0], dtype=np.float32, requires_grad=True, name="w")
        Tensor([1., 2.], dtype=float32, requires_grad=True, name='w')
        """
        values = np.array2string(self._array, separator=", ", prefix="Tensor(")
        parts = [values]
        if self.size == 0:
            parts.append(f"shape={self.shape}")
        if self.dtype not in (np.float64, np.int64, np.bool_):
            parts.append(f"dtype={self.dtype}")
        if self.node is not None:
            parts.append(f"node={self.node.name}")
        elif self._requires_grad:
            parts.append("requires_grad=True")
        if self.name:
            parts.append(f"name={self.name!r}")
        return f"Tensor({', '.join(parts)})"

    # ---------------------------------------------------------------- what would lose the record

    def _refuse(self, what: str) -> NoReturn:
        raise TypeError(
            f"{what} would drop the gradient of {describe(self)}: "
            "use .item() for a number, .data for the array, .detach() for a constant tensor, and "
            "np.stack or np.concatenate to join tensors"
        )

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self._requires_grad:
            self._refuse("a conversion to a NumPy array")
        return np.array(self._array, dtype, copy=copy)

    def __float__(self) -> float:
        if self._requires_grad:
            self._refuse("float()")
        return float(self._array)

    def __int__(self) -> int:
        if self._requires_grad:
            self._refuse("int()")
        return int(self._array)

    def __index__(self) -> int:
        return self._array.__index__()

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError(f"the truth of a tensor of shape {self.shape} is ambiguous")
        return bool(self._array.item())

    def _rebound(self, result: Tensor) -> Tensor:
        """`loss += term` binds the name to a new tensor. A parameter would be left behind by it."""
        if self._requires_grad and self.node is None:
            raise TypeError(
                f"an assignment like += or -= would leave the leaf {describe(self)} behind: write "
                "w.data -= ... to change the leaf, or w = w - ... to compute something new"
            )
        return result

    def __iadd__(self, other: Any) -> Tensor:
        return self._rebound(self + other)

    def __isub__(self, other: Any) -> Tensor:
        return self._rebound(self - other)

    def __imul__(self, other: Any) -> Tensor:
        return self._rebound(self * other)

    def __itruediv__(self, other: Any) -> Tensor:
        return self._rebound(self / other)

    def __imod__(self, other: Any) -> Tensor:
        return self._rebound(self % other)

    def __ifloordiv__(self, other: Any) -> Any:
        return self._rebound(self // other)

    def __ipow__(self, other: Any) -> Tensor:
        return self._rebound(self**other)

    def __imatmul__(self, other: Any) -> Tensor:
        return self._rebound(self @ other)

    def __reduce__(self) -> Any:
        """How a leaf is copied and pickled.

        A copied result would carry copies of its leaves, and backward() would fill the copies'
        `.grad`.
        """
        if self.node is not None:
            raise TypeError(
                f"the result of {self.node.name} cannot be copied or pickled with its record: "
                "use detach()"
            )
        return _restored, (self._array.copy(), self._requires_grad, self.name, self.grad)

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            "a Tensor cannot be changed in place, its record would be wrong: "
            "build a new one with np.where or concatenate"
        )

    def __format__(self, spec: str) -> str:
        if spec and self.size != 1:
            raise TypeError(f"the format {spec!r} is for one element: this has shape {self.shape}")
        return format(self._array.item(), spec) if spec else str(self)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))


class Hook:
    """What `register_hook` returns: `remove()` ends the calls."""

    def __init__(self, tensor: Tensor, hook: Callable[[Any], Any]) -> None:
        self._tensor, self._hook = weakref.ref(tensor), hook

    def __call__(self, g: Any) -> Any:
        return self._hook(g)

    def remove(self) -> None:
        """Call the hook no more. A second time does nothing."""
        tensor = self._tensor()
        if tensor is not None:
            tensor._hooks = [hook for hook in tensor._hooks or [] if hook is not self] or None


def _retain(g: Any) -> None:
    """Among a tensor's hooks, the sign that `backward()` should fill its `.grad`."""


def _real_array(values: Any, asked: str, dtype: Any = None) -> Array:
    """Values as an array, without a copy where they are one.

    Refused before it spreads: what has no real derivative, complex numbers and objects, and a
    masked array, whose mask would be ignored.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{asked} would ignore the mask of a masked array: use np.where first")
    array = np.asarray(values, dtype)
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{asked} takes real numbers, but got an array of dtype {array.dtype}")
    return array


def describe(x: Any) -> str:
    """How errors speak of a tensor: by the name its owner gave it, and by its shape."""
    name = getattr(x, "name", None)
    return f"{name!r} {np.shape(x)}" if name else f"{np.shape(x)}"


def _restored(values: Array, requires_grad: bool, name: str | None, grad: Array | None) -> Tensor:
    tensor = Tensor(values, requires_grad=requires_grad, name=name)
    tensor.grad = None if grad is None else grad.copy()
    return tensor


def _wrap(array: Array, node: Node | None, written: list[int]) -> Tensor:
    """An operation's result. It skips the checks of `Tensor(…)`, which its inputs passed."""
    tensor = _new(Tensor)
    tensor._array = array
    tensor._requires_grad = node is not None
    tensor._written = written
    tensor._hooks = None
    tensor.node = node
    tensor.grad = None
    tensor.name = None
    return tensor


_new: Callable[[type[Tensor]], Tensor] = object.__new__
