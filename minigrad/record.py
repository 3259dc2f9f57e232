"""1.2 · Record: what an operation leaves behind.

What must an operation remember, so that someone can go back through it later? Which rule ran,
on which inputs, and how to send a gradient back. That is a `Node`, and `primitive` is what makes
one: it turns a **rule** into an operation on Tensors. A rule returns its value and its
derivatives, side by side:

    @primitive
    def multiply(a, b, /):
        return a * b, lambda g, y: g * b, lambda g, y: a * g

For each input there is one VJP (vector-Jacobian product): a function of g = ∂L/∂y, the
gradient that arrives at the output y, which gives ∂L/∂input, the gradient that leaves. (g as a
row times the Jacobian is, as a column, Jᵀ g: the chapters write whichever is shorter.) L is
whatever scalar you will differentiate later; a rule never needs to know it.

A rule is written in NumPy's words, and that is the second idea. In the forward pass it gets
plain arrays: the closures hold arrays, and a first backward pass runs at NumPy's speed with no
`Tensor` in sight. When the derivative itself is to be differentiated, chapter 2 asks the same
rule again, with Tensors in place of the arrays. `a * g` then means `Tensor.__mul__`, is
recorded like everything else, and can be replayed in turn. One text serves every order.

So a rule is a pure function. It draws no random numbers and keeps no state, because it may be
asked twice and must give the same answer.

    >>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = (x * x).sum()               # two nodes: multiply, then sum
    >>> node = y.node.inputs[0].node
    >>> node.name, [vjp(np.ones(3), None) for vjp in node.vjps]     # x, for each of the two uses
    ('multiply', [array([1., 2., 3.]), array([1., 2., 3.])])
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from minigrad.tensor import _CLOCK, _NEVER, Array, Tensor, _real_array, _wrap, describe

# Whether operations leave a record. A context variable is private to each thread and each
# asynchronous task, so one thread's no_grad() never silences another's training.
_recording: ContextVar[bool] = ContextVar("recording", default=True)

is_recording = _recording.get


@contextmanager
def recording(yes: bool) -> Iterator[None]:
    """Switch the record on or off for what runs inside."""
    token = _recording.set(yes)
    try:
        yield
    finally:
        _recording.reset(token)


@contextmanager
def no_grad() -> Iterator[None]:
    """Compute without a record: `with no_grad():`, or `@no_grad()` above a function.

    Results inside do not require a gradient, and nothing is kept alive for a backward pass. It
    holds for the code that runs until the block ends; a generator that yields inside the block
    lets its caller run there too.

    >>> w = Tensor(2.0, requires_grad=True)
    >>> with no_grad():
    ...     (w * w).requires_grad
    False
    """
    with recording(False):
        yield


class Node:
    """The record of one operation: the rule, its inputs and options, one VJP for each input.

    `inputs` holds Tensors, and plain arrays for constants. The node does not hold its own
    output: the output holds the node. References then point only from results to what they
    were made of, never round in a circle, and Python frees a graph with its last result.

    `spent` is None until a backward pass has replayed the node and let its inputs go; then it
    is that pass, so that an error about a second pass can say what happened to the first.
    """

    __slots__ = ("inputs", "made", "options", "rule", "spent", "vjps")

    def __init__(
        self,
        rule: Callable[..., Any],
        inputs: tuple[Any, ...],
        options: dict[str, Any],
        vjps: tuple[Any, ...],
        made: int,
    ) -> None:
        self.rule = rule
        self.inputs = inputs
        self.options = options
        self.vjps = vjps
        self.made = made  # by the clock of writes (chapter 1.1)
        self.spent: Any = None

    @property
    def name(self) -> str:
        """The operation's name, as NumPy spells it where NumPy has it."""
        return self.rule.__name__.strip("_")


def primitive(rule: Callable[..., Any]) -> Callable[..., Tensor]:
    """Turn a rule into an operation on Tensors.

    Tensor inputs stand before `/` (or as `*xs`), options after it. The rule returns its value
    and then one VJP `(g, y) → ∂L/∂input` for each tensor input, or None for an input that has
    no derivative, such as a mask. The engine hands in y, the operation's own output, so that
    no closure needs to capture it. A VJP whose result still carries broadcast axes is summed
    back to its input's shape by the engine (chapter 2); no rule does that itself.

    The value may also be a function of no arguments, for what only arrays can say (`np.sin` is
    no operation of chapter 3): it is called once, in the forward pass, and never with Tensors.

    Your own operation takes three lines, and is drawn under its own name (chapter 5):

    >>> @primitive
    ... def sine(x, /):
    ...     return lambda: np.sin(x), lambda g, y: g * cosine(x)
    >>> @primitive
    ... def cosine(x, /):
    ...     return lambda: np.cos(x), lambda g, y: -g * sine(x)
    >>> from minigrad import grad
    >>> grad(sine)(0.0), grad(grad(grad(sine)))(0.0)
    (array(1.), array(-1.))
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
        if len(inputs) < len(args):
            options = _by_name(rule, option_names, args, len(inputs), options)
        arrays = _arrays(rule, inputs)
        value, vjps = _answer(rule, inputs, arrays, options)
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        if not tensors:  # a rule may call primitives on arrays: then it wants an array back
            return value
        shared = None if value.base is None else _shared_time(value, tensors)
        if not (is_recording() and any(x._requires_grad for x in tensors)):
            return _wrap(value, None, shared or [0, 0])
        value.flags.writeable = False
        if len(tensors) < len(inputs):
            inputs = tuple(
                [x if isinstance(x, Tensor) else a for x, a in zip(inputs, arrays, strict=True)]
            )
        return _wrap(value, Node(rule, inputs, options, vjps, _CLOCK[0]), shared or _NEVER)

    return operation


def _by_name(
    rule: Callable[..., Any],
    names: list[str],
    args: tuple[Any, ...],
    arity: int,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Options given by position, under their names, which is how the record keeps them."""
    given = dict(zip(names, args[arity:], strict=False))
    if len(args) > arity + len(given) or given.keys() & options.keys():
        rule(*args, **options)  # raises Python's own TypeError, which names what is wrong
    return options | given


def _answer(
    rule: Callable[..., Any],
    inputs: tuple[Any, ...],
    arrays: list[Any],
    options: dict[str, Any],
) -> tuple[Array, tuple[Any, ...]]:
    """Ask the rule: its value, as an array of its own, and its VJPs, one for each input."""
    try:
        answer = rule(*arrays, **options)
        if type(answer) is not tuple:
            raise TypeError(
                f"the rule {rule.__name__} must return its value and then its VJPs, as a "
                f"tuple, but it returned {type(answer).__name__}"
            )
        value = answer[0]() if callable(answer[0]) else answer[0]
    except (ValueError, IndexError) as error:
        raise _explained(error, rule, inputs) from error
    if len(answer) != 1 + len(inputs):
        raise TypeError(
            f"the rule {rule.__name__} must return one VJP for each of its "
            f"{len(inputs)} tensor inputs, but it returned {len(answer) - 1}"
        )
    if type(value) is not np.ndarray:
        if isinstance(value, Tensor):
            raise TypeError(
                f"the rule {rule.__name__} got arrays and returned a Tensor: it reaches for a "
                "Tensor outside, which belongs among its inputs"
            )
        value = np.asarray(value)  # NumPy turns 0-d results into scalars
    for a in arrays:
        if value is a:
            value = value.view()  # it will be made read-only, which must not happen to an input
    return value, answer[1:]


def _arrays(rule: Callable[..., Any], inputs: tuple[Any, ...]) -> list[Any]:
    """What the rule computes with: the arrays of Tensors, and constants as arrays."""
    arrays: list[Any] = []
    dtype = None
    alike = True
    for x in inputs:
        if isinstance(x, Tensor):
            alike = alike and (dtype is None or x._array.dtype is dtype)
            dtype = x._array.dtype
            arrays.append(x._array)
        else:
            alike = False
            arrays.append(x)
    return arrays if alike else _in_one_dtype(rule, inputs, arrays)


def _in_one_dtype(
    rule: Callable[..., Any], inputs: tuple[Any, ...], arrays: list[Any]
) -> list[Any]:
    """Constants become arrays; numbers take the dtype of the floating tensor beside them.

    Without that rule `x * np.sqrt(d_k)` would turn a float32 model into a float64 one, since
    np.sqrt gives a float64 scalar, and NumPy lets only Python's own numbers give way. A number
    is whatever has no axes, also a tensor: a learned temperature does not change a model's dtype.
    """
    floating = [x._array for x in inputs if isinstance(x, Tensor) and x._array.dtype.kind == "f"]
    beside = max(floating, key=lambda a: a.ndim > 0, default=None)
    for i, x in enumerate(inputs):
        if type(x) in (float, int) and beside is not None:
            arrays[i] = np.array(x, beside.dtype)
        elif not isinstance(x, Tensor):
            a = arrays[i] = _real_array(x, rule.__name__.strip("_"))
            if a.ndim == 0 and a.dtype.kind != "b" and beside is not None:
                arrays[i] = a.astype(beside.dtype)
        elif x.ndim == 0 and x.dtype.kind != "b" and beside is not None and beside.ndim:
            arrays[i] = arrays[i].astype(beside.dtype)
    return arrays


def _shared_time(value: Array, tensors: list[Tensor]) -> list[int] | None:
    """A view shares its memory with an input, and so the time of that memory's last write."""
    for x in tensors:
        if value.base is x._array or np.may_share_memory(value, x._array):
            return x._written
    return None


def _explained(error: Exception, rule: Callable[..., Any], inputs: tuple[Any, ...]) -> Exception:
    """NumPy's complaint, preceded by the operation and the inputs it was about."""
    shapes = " and ".join(describe(x) for x in inputs)
    kind = ValueError if isinstance(error, ValueError) else IndexError
    return kind(f"{rule.__name__.strip('_')} of {shapes}: {error}")
