"""1 · Tensor: an array that remembers where it came from.

How can a program know the derivative of what it has just computed? It keeps a record. Every
operation on a `Tensor` computes its value with NumPy, as usual, and leaves behind one `Node`:
which rule ran, on which inputs, and how to send a gradient back through it. Chapter 2 replays
that record in reverse, and that is all of backpropagation.

A **rule** says what an operation is. It returns its value and its derivatives, side by side:

    @primitive
    def multiply(a, b, /):
        return a * b, lambda g, y: g * b, lambda g, y: a * g

For each input there is one VJP (vector-Jacobian product): a function of g = ∂L/∂y, the
gradient that arrives at the output y, which gives ∂L/∂input, the gradient that leaves. L is
whatever scalar you will differentiate later; a rule never needs to know it.

A rule is written in NumPy's words, and that is the second idea. In the forward pass it gets
plain arrays: the closures hold arrays, and a first backward pass runs at NumPy's speed with no
`Tensor` in sight. When the derivative itself is to be differentiated, chapter 2 asks the same
rule again, with Tensors in place of the arrays. `a * g` then means `Tensor.__mul__`, is
recorded like everything else, and can be replayed in turn. One text serves every order.

So a rule is a pure function. It draws no random numbers and keeps no state, because it may be
asked twice and must give the same answer.

    >>> import numpy as np
    >>> from minigrad import Tensor
    >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True, name="x")
    >>> y = (x * x).sum()               # two nodes: multiply, then sum
    >>> y
    Tensor(14., node=sum)
    >>> y.node.inputs[0].node.name
    'multiply'
    >>> y.backward()
    >>> x.grad                          # ∂(Σ x²)/∂x = 2x
    array([2., 4., 6.])
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NoReturn

import numpy as np

Array = np.ndarray[Any, Any]

# Whether operations leave a record. A context variable is private to each thread and each
# asynchronous task, so one thread's no_grad() never silences another's training.
_recording: ContextVar[bool] = ContextVar("recording", default=True)

# A recorded output is read-only, so its count of writes is 0 for ever and all can share it.
_NEVER_WRITTEN = [0]


@contextmanager
def _recorded(yes: bool = True) -> Iterator[None]:
    token = _recording.set(yes)
    try:
        yield
    finally:
        _recording.reset(token)


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute without a record: `with no_grad():`, or `@no_grad()` above a function.

    Results inside do not require a gradient, and nothing is kept alive for a backward pass.

    >>> w = Tensor(2.0, requires_grad=True)
    >>> with no_grad():
    ...     (w * w).requires_grad
    False
    """
    with _recorded(False):
        yield


class Node:
    """The record of one operation: the rule, its inputs and options, one VJP for each input.

    `inputs` holds Tensors, and plain arrays for constants. The node does not hold its own
    output: the output holds the node. References then point only from results to what they
    were made of, never round in a circle, and Python frees a graph with its last result.

    `spent` is None until a backward pass has replayed the node and let its inputs go; then it
    is that pass, so that an error about a second pass can say what happened to the first.
    """

    __slots__ = ("inputs", "options", "rule", "spent", "vjps", "writes")

    def __init__(
        self,
        rule: Callable[..., Any],
        inputs: tuple[Any, ...],
        options: dict[str, Any],
        vjps: tuple[Any, ...],
        writes: int,
    ) -> None:
        self.rule = rule
        self.inputs = inputs
        self.options = options
        self.vjps = vjps
        self.writes = writes  # how often the inputs had been written when this node was made
        self.spent: Any = None

    @property
    def name(self) -> str:
        """The operation's name, as NumPy spells it where NumPy has it."""
        return self.rule.__name__.strip("_")


def primitive(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Turn a rule into an operation on Tensors.

    Tensor inputs stand before `/` (or as `*xs`), options after it. The rule returns its value
    and then one VJP `(g, y) → ∂L/∂input` for each tensor input, or None for an input that has
    no derivative, such as a mask. The engine hands in y, the operation's own output, so that
    no closure needs to capture it. A VJP whose result still carries broadcast axes is summed
    back to its input's shape by the engine (chapter 2); no rule does that itself.

    The value may also be a function of no arguments, for what only arrays can say; it is then
    called once, in the forward pass.

    Your own operation takes five lines, and is drawn under its own name (chapter 5):

    >>> @primitive
    ... def sine(x, /):
    ...     return np.sin(x), lambda g, y: g * cosine(x)
    >>> @primitive
    ... def cosine(x, /):
    ...     return np.cos(x), lambda g, y: -g * sine(x)
    >>> x = Tensor(0.0, requires_grad=True)
    >>> sine(x).backward()
    >>> x.grad
    array(1.)
    """
    parameters = inspect.signature(rule).parameters.values()
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    arity = sum(p.kind is p.POSITIONAL_ONLY for p in parameters)
    option_names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    if not variadic and not arity:
        raise TypeError(f"{rule.__name__} names no tensor input: put its tensors before a '/'")

    @functools.wraps(rule)
    def operation(*args: Any, **options: Any) -> Any:
        inputs = args if variadic else args[:arity]
        arrays: list[Any] = []
        has_tensor = has_plain = requires_grad = False
        writes = 0
        for x in inputs:
            if isinstance(x, Tensor):
                has_tensor = True
                requires_grad = requires_grad or x._requires_grad
                writes += x._writes[0]
                arrays.append(x._array)
            else:
                has_plain = True
                arrays.append(x)
        if has_plain:
            arrays = _plain_to_arrays(rule, inputs, arrays)
        if len(args) > arity and not variadic:
            options.update(zip(option_names, args[arity:], strict=False))
        try:
            value, *vjps = rule(*arrays, **options)
            if callable(value):
                value = value()
        except (ValueError, IndexError) as error:
            raise _explained(error, rule, inputs) from error
        if type(value) is not np.ndarray:
            if isinstance(value, Tensor):
                return value  # asked again inside a rule that was handed Tensors
            value = np.asarray(value)  # NumPy turns 0-d results into scalars
        if not has_tensor:  # a rule may call primitives on arrays: then it wants an array back
            return value
        if not (requires_grad and _recording.get()):
            return _wrap(value, None, _share_writes(value, inputs) or [0])
        if len(vjps) != len(inputs):
            raise TypeError(
                f"the rule {rule.__name__} must return one VJP for each of its "
                f"{len(inputs)} tensor inputs, but it returned {len(vjps)}"
            )
        if has_plain:
            inputs = tuple(
                x if isinstance(x, Tensor) else a for x, a in zip(inputs, arrays, strict=True)
            )
        value.flags.writeable = False
        return _wrap(
            value,
            Node(rule, inputs, options, tuple(vjps), writes),
            _NEVER_WRITTEN if value.base is None else _share_writes(value, inputs) or [0],
        )

    return operation


def _plain_to_arrays(
    rule: Callable[..., Any], inputs: tuple[Any, ...], arrays: list[Any]
) -> list[Any]:
    """Constants become arrays; a number takes the dtype of the floating tensor beside it.

    Without that rule `x * np.sqrt(d_k)` would turn a float32 model into a float64 one, since
    np.sqrt gives a float64 scalar, and NumPy lets only Python's own numbers give way.
    """
    beside = None
    for x in inputs:
        if isinstance(x, Tensor) and x._array.dtype.kind == "f":
            beside = x._array.dtype
    for i, x in enumerate(inputs):
        if type(x) is float and beside is not None:
            arrays[i] = np.array(x, beside)
        elif not isinstance(x, Tensor):
            array = _checked(np.asarray(x), rule.__name__.strip("_"))
            is_number = array.ndim == 0 and array.dtype.kind != "b"
            arrays[i] = array.astype(beside) if is_number and beside is not None else array
    return arrays


def _checked(array: Array, asked: str) -> Array:
    """Refuse what has no real derivative, before it spreads: complex numbers and objects."""
    if array.dtype.kind not in "fiub":
        raise TypeError(f"{asked} takes real numbers, but got an array of dtype {array.dtype}")
    return array


def _share_writes(value: Array, inputs: tuple[Any, ...]) -> list[int] | None:
    """A view shares its memory with an input, so it shares that input's count of writes."""
    if value.base is not None:
        for x in inputs:
            if isinstance(x, Tensor) and (value.base is x._array or value.base is x._array.base):
                return x._writes
    return None


def _explained(error: Exception, rule: Callable[..., Any], inputs: tuple[Any, ...]) -> Exception:
    """NumPy's complaint, preceded by the operation and the inputs it was about."""
    shapes = " and ".join(describe(x) for x in inputs)
    kind = ValueError if isinstance(error, ValueError) else IndexError
    return kind(f"{rule.__name__.strip('_')} of {shapes}: {error}")


def describe(x: Any) -> str:
    """How errors speak of a tensor: by the name its owner gave it, and by its shape."""
    name = getattr(x, "name", None)
    return f"{name!r} {np.shape(x)}" if name else f"{np.shape(x)}"


def _wrap(array: Array, node: Node | None, writes: list[int]) -> Tensor:
    """An operation's result. It skips the checks of `Tensor(…)`, which its inputs passed."""
    tensor = _new(Tensor)
    tensor._array = array
    tensor._requires_grad = node is not None
    tensor._writes = writes
    tensor.node = node
    tensor.grad = None
    tensor.name = None
    return tensor


_new: Callable[[type], Any] = object.__new__


class Tensor:
    """An n-dimensional array, and the node it came from.

    Tensor(values, *, requires_grad=False, dtype=None, name=None)

    A **leaf** is a tensor you make yourself; its `node` is None. With `requires_grad=True` it
    copies its values, everything computed from it is recorded, and `backward()` accumulates
    ∂L/∂leaf in `.grad`, a plain array. Without, it shares the memory of the array you give.
    `name` appears in errors and in graphs. Values are real: TypeError for complex numbers or
    objects, and for an integer tensor that is asked to require a gradient.

    Operators, methods and NumPy's own functions (`np.exp(t)`, `array * t`) all record. What
    would quietly lose the record, `np.asarray(t)`, `float(t)` or `t[0] = 1`, is refused.

    >>> Tensor([1, 2, 3], requires_grad=True)
    Traceback (most recent call last):
    TypeError: an integer tensor cannot require a gradient: dtype is int64; pass dtype=float
    """

    __slots__ = ("__weakref__", "_array", "_requires_grad", "_writes", "grad", "name", "node")

    _array: Array
    _requires_grad: bool
    _writes: list[int]
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
        if isinstance(values, Tensor):
            if values._requires_grad:
                raise TypeError(
                    "Tensor(t) would cut t out of its record: use t itself, or t.detach()"
                )
            values = values._array
        array = np.array(values, dtype) if requires_grad else np.asarray(values, dtype)
        self._array = _checked(array, "Tensor")
        self._writes = [0]
        self.node = None
        self.grad = None
        self.name = name
        self.requires_grad = requires_grad

    # ---------------------------------------------------------------- what it holds

    @property
    def data(self) -> Array:
        """The array itself, without a record. Read-only for a recorded result.

        An optimizer writes `p.data -= step`. Python then calls the setter, which counts the
        write; a node that still needs the old values notices when it is replayed. A write to
        elements, `p.data[0] = 1`, calls no setter and cannot be noticed.
        """
        return self._array

    @data.setter
    def data(self, values: Any) -> None:
        if self.node is not None:
            raise TypeError(f"only a leaf can be written: this is the result of {self.node.name}")
        array = np.asarray(values)
        if array.shape != self.shape:
            raise ValueError(f"data of shape {self.shape} cannot become {array.shape}")
        if array is not self._array:
            # A copy, for the same reason as in __init__: nobody else may write to it.
            self._array = np.array(array, self.dtype)
        self._writes[0] += 1

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded. Can be set on a leaf."""
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
                f"{kind} tensor cannot require a gradient: dtype is {self.dtype}; "
                "pass dtype=float"
            )
        self._requires_grad = bool(value)

    @property
    def shape(self) -> tuple[int, ...]:
        return self._array.shape

    @property
    def ndim(self) -> int:
        return self._array.ndim

    @property
    def size(self) -> int:
        return self._array.size

    @property
    def dtype(self) -> np.dtype[Any]:
        return self._array.dtype

    def item(self) -> float:
        """The one element as a Python number, without a record."""
        return self._array.item()  # type: ignore[no-any-return]

    def detach(self) -> Tensor:
        """The same values (no copy) as a constant: no gradient flows back through it."""
        return _wrap(self._array, None, self._writes)

    def backward(self, gradient: Any = None, *, retain_graph: bool = False) -> None:
        """Add ∂(this)/∂leaf to the `.grad` of every leaf below. See `minigrad.backward`."""
        autograd.backward(self, gradient, retain_graph=retain_graph)

    def __repr__(self) -> str:
        """Values, the dtype where it is not float64, and where the tensor came from.

        >>> Tensor([1.0, 2.0], dtype=np.float32, requires_grad=True, name="w")
        Tensor([1., 2.], dtype=float32, requires_grad=True, name='w')
        """
        values = np.array2string(self._array, separator=", ", prefix="Tensor(")
        parts = [values]
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
            "use .item() for a number, .data for the array, .detach() for a constant tensor"
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

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise TypeError(
            "a Tensor cannot be changed in place, its record would be wrong: "
            "build a new one with np.where or concatenate"
        )

    def __format__(self, spec: str) -> str:
        return format(self._array.item(), spec) if self.size == 1 and spec else str(self)

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Tensor]:
        return (self[i] for i in range(len(self)))

    # Two tensors are the same only if they are one object: `==` compares elements, as in NumPy.
    __hash__ = object.__hash__

    # ---------------------------------------------------------------- NumPy's words
    # The table below is the whole vocabulary of operators and methods. NumPy's functions find
    # their way here through the two protocols; what is not in ops.NUMPY is refused by name.

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **options: Any) -> Any:
        name = f"np.{ufunc.__name__}" + ("" if method == "__call__" else f".{method}")
        if options:
            raise TypeError(f"{name} with {', '.join(options)}= cannot be recorded: leave it out")
        if method == "__call__":
            if ufunc in ops.NUMPY:
                return ops.NUMPY[ufunc](*args)
            if ufunc in ops.PLAIN:
                return ufunc(*(x._array if isinstance(x, Tensor) else x for x in args))
        _unknown(name)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        if function in ops.NUMPY:
            if "out" in options:
                raise TypeError(f"np.{function.__name__} with out= cannot be recorded: leave it out")
            return ops.NUMPY[function](*args, **options)
        if function in ops.PLAIN:
            return function(*(x._array if isinstance(x, Tensor) else x for x in args), **options)
        _unknown(f"np.{function.__name__}")

    def __add__(self, other: Any) -> Tensor:
        return ops.add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return ops.add(other, self)

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

    def __rpow__(self, other: Any) -> Tensor:
        return ops.power(other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return ops.matmul(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return ops.matmul(other, self)

    def __neg__(self) -> Tensor:
        return ops.negative(self)

    def __pos__(self) -> Tensor:
        return ops.positive(self)

    def __getitem__(self, index: Any) -> Tensor:
        return ops.getitem(self, index)

    # Comparisons have no useful derivative (0 almost everywhere), so they give plain arrays.

    def __eq__(self, other: Any) -> Any:
        return np.equal(self, other)

    def __ne__(self, other: Any) -> Any:
        return np.not_equal(self, other)

    def __lt__(self, other: Any) -> Any:
        return np.less(self, other)

    def __le__(self, other: Any) -> Any:
        return np.less_equal(self, other)

    def __gt__(self, other: Any) -> Any:
        return np.greater(self, other)

    def __ge__(self, other: Any) -> Any:
        return np.greater_equal(self, other)

    def sum(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        return ops.sum(self, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        return ops.mean(self, axis, keepdims)

    def max(self, axis: Any = None, keepdims: bool = False) -> Tensor:
        return ops.max(self, axis, keepdims)

    def reshape(self, *shape: Any) -> Tensor:
        return ops.reshape(self, shape[0] if len(shape) == 1 else shape)

    def transpose(self, *axes: Any) -> Tensor:
        return ops.transpose(self, axes[0] if len(axes) == 1 else axes or None)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        return ops.swapaxes(self, axis1, axis2)

    def astype(self, dtype: Any) -> Tensor:
        return ops.astype(self, dtype)

    @property
    def T(self) -> Tensor:
        """All axes reversed. For a stack of matrices see `mT`."""
        return ops.transpose(self)

    @property
    def mT(self) -> Tensor:
        """Each matrix of the stack transposed: the last two axes swapped."""
        return ops.swapaxes(self, -1, -2)


def _unknown(name: str) -> NoReturn:
    raise TypeError(
        f"{name} has no rule, so a Tensor cannot go through it: compose it from what "
        "minigrad has, write a @primitive, or pass t.data if no gradient is wanted"
    )


# The one seam in the import order. A rule is made with `primitive`, so ops needs this module;
# `Tensor.__add__` needs ops.add. Importing here, below both definitions, satisfies each.
from minigrad import autograd, ops  # noqa: E402
