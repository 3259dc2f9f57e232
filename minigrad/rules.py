"""1.3 · Rules: a value and its derivatives, side by side.

How does a formula become an operation that records itself? `primitive` turns a **rule** into one: a
function that returns its value and then one VJP for each tensor input.

    @primitive
    def multiply(a, b, /):
        return a * b, lambda g, y: g * b, lambda g, y: g * a

A rule is written in NumPy's words, and that has a consequence. In the forward pass it gets
plain arrays: the closures hold arrays, and a first backward pass runs at NumPy's speed with no
`Tensor` in sight. When the derivative itself is to be differentiated, chapter 2 asks the same
rule again, with Tensors in place of the arrays. `g * a` then means `Tensor.__mul__`, is
recorded like everything else, and can be replayed in turn. One text serves every order.

So a rule is a pure function. It draws no random numbers and keeps no state, because it may be
asked twice and must give the same answer.

    >>> @primitive
    ... def cube(x, /):
    ...     return x**3, lambda g, y: g * 3 * x**2
    >>> from minigrad import grad
    >>> grad(cube)(2.0), grad(grad(cube))(2.0)              # 3x² and 6x
    (array(12.), array(12.))
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from minigrad.record import WATCHERS, Node, is_recording, watched
from minigrad.tensor import _NEVER, Array, Tensor, _now, _real_array, _wrap, describe


def primitive(rule: Callable[..., Any]) -> Callable[..., Tensor]:
    """Turn a rule into an operation on Tensors.

    Tensor inputs stand before `/` (or as `*xs`), options after it. The rule returns its value
    and then one VJP `(g, y) → ∂L/∂input` for each tensor input, or None for an input that has
    no derivative, such as a mask. The engine hands in y, the operation's own output, so that
    no closure needs to capture it. A VJP whose result still carries broadcast axes is summed
    back to its input's shape by the engine (chapter 2); no rule does that itself.

    The operation's result is read-only. Numbers take the dtype of the tensor beside them. TypeError
    if the rule has no `/`, or returns too few or too many VJPs, or a Tensor; NumPy's ValueError or
    IndexError, with the operation and the shapes in front.

    The value may also be a function of no arguments, for what only arrays can say (`np.cbrt` is
    no operation of chapter 3): it is called once, in the forward pass, and never with Tensors.

    Your own operation takes three lines, and is drawn under its own name (chapter 5):

    >>> @primitive
    ... def cbrt(x, /):
    ...     return lambda: np.cbrt(x), lambda g, y: g / (3 * y * y)     # from y³ = x
    >>> from minigrad import grad
    >>> grad(cbrt)(8.0), grad(grad(cbrt))(8.0)                          # 1/12 and -1/144
    (array(0.08333333), array(-0.00694444))
    """
    return _operation(rule)


def fused(
    *, definition: Callable[..., Any]
) -> Callable[[Callable[..., Any]], Callable[..., Tensor]]:
    """Turn a rule that does several steps at once into one operation, and one node.

    `definition` is the same function of the same arguments, composed of other operations. The
    rule returns its value and one function `backward(g, y, needs)`, which gives a tuple: for
    each tensor input its gradient, or None where `needs` says that nobody wants it. One function
    for all inputs, because fused derivatives share their work. It speaks to arrays only, so it may
    write in place to arrays of its own (g and y cannot be written) and use what the forward pass
    has saved.

    Such tricks cannot be differentiated again. Where a derivative of the derivative is wanted,
    the engine goes back to the definition. So does `unfused()`, for a drawing of all the steps.

    >>> def scaled_sum(a, b, /):
    ...     return 2.0 * (a + b)
    >>> @fused(definition=scaled_sum)
    ... def fast_scaled_sum(a, b, /):
    ...     return 2.0 * (a + b), lambda g, y, needs: (2.0 * g, 2.0 * g)
    >>> x = Tensor(3.0, requires_grad=True)
    >>> y = fast_scaled_sum(x, x)
    >>> y.backward()
    >>> y, x.grad
    (Tensor(12., node=fast_scaled_sum), array(4.))
    """

    if not callable(definition):
        raise TypeError(f"a definition is a function: got {type(definition).__name__}")

    def decorate(rule: Callable[..., Any]) -> Callable[..., Tensor]:
        rule.definition = definition  # type: ignore[attr-defined]
        return _operation(rule)

    return decorate


_unfused: ContextVar[bool] = ContextVar("unfused", default=False)


@contextmanager
def unfused() -> Iterator[None]:
    """Inside, fused operations are computed by their definitions: for drawing all their steps.

    >>> def thrice(x, /):
    ...     return x + x + x
    >>> fast_thrice = fused(definition=thrice)(lambda x, /: (3 * x, lambda g, y, needs: (3 * g,)))
    >>> x = Tensor(2.0, requires_grad=True)
    >>> fast_thrice(x).node.inputs is not None
    True
    >>> with unfused():
    ...     fast_thrice(x)
    Tensor(6., node=add)
    """
    token = _unfused.set(True)
    try:
        yield
    finally:
        _unfused.reset(token)


def _operation(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The function that computes and records: (1) options by name, (2) arrays of one dtype, (3) the
    rule's answer, (4) what memory the value shares, (5) the node.
    """
    parameters = inspect.signature(rule).parameters.values()
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    arity = sum(p.kind is p.POSITIONAL_ONLY for p in parameters)
    option_names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    is_fused = hasattr(rule, "definition")
    if not variadic and not arity:
        raise TypeError(f"{rule.__name__} names no tensor input: put its tensors before a '/'")

    @functools.wraps(rule)
    def operation(*args: Any, **options: Any) -> Any:
        # Every operation of every model passes here, so this one function is written out at
        # length (what it costs: python -m tests.benchmark).
        inputs = args  # (1)
        if len(args) != arity and not variadic:
            inputs = args[:arity]
            options = _by_name(rule, option_names, args, len(inputs), options)
        if is_fused and _unfused.get():
            inputs = tuple([x if isinstance(x, Tensor) else np.asarray(x) for x in inputs])
            return rule.definition(*inputs, **options)  # type: ignore[attr-defined]
        arrays: list[Any] = []  # (2)
        dtype = None
        mixed, constants, requires_grad = False, False, False
        for x in inputs:
            if isinstance(x, Tensor):
                a = x._array
                if dtype is None:
                    dtype = a.dtype
                elif a.dtype is not dtype:
                    mixed = True
                if x._requires_grad:
                    requires_grad = True
                arrays.append(a)
            else:
                constants = True
                arrays.append(x)
        if mixed:
            arrays = _in_one_dtype(rule, inputs, arrays, _dtype_beside(inputs))
        elif constants:
            beside = dtype if dtype is not None and dtype.kind == "f" else None
            arrays = _in_one_dtype(rule, inputs, arrays, beside)
        try:  # (3)
            answer = rule(*arrays, **options)
            if type(answer) is not tuple or len(answer) != (2 if is_fused else 1 + len(inputs)):
                raise _not_an_answer(rule, inputs, answer)
            value = answer[0]
            if type(value) is not np.ndarray:
                value = _as_array(rule, value)
            if value.dtype.kind not in "fiub":
                raise TypeError(
                    f"the rule {rule.__name__} must return a value of real numbers, "
                    f"but it returned dtype {value.dtype}"
                )
            if is_fused and not callable(answer[1]):
                raise _not_an_answer(rule, inputs, answer)
        except (ValueError, IndexError) as error:
            raise _explained(error, rule, inputs) from error
        if dtype is None:  # a rule may call primitives on arrays: then it wants an array back
            return value
        for a in arrays:  # (4)
            if value is a:
                value = value.view()  # it will be read-only, which must not happen to an input
        shared = None if value.base is None else _shared_time(value, inputs)
        if not requires_grad or not is_recording():
            if WATCHERS:
                watched(rule, inputs, value, None)
            return _wrap(value, None, shared or [0, 0])
        value.flags.writeable = False  # (5)
        if constants:
            inputs = tuple(
                [x if isinstance(x, Tensor) else a for x, a in zip(inputs, arrays, strict=True)]
            )
        vjps = answer[1] if is_fused else answer[1:]
        node = Node(rule, inputs, options, vjps, _now())
        if WATCHERS:
            watched(rule, inputs, value, node)
        return _wrap(value, node, shared or _NEVER)

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


def _not_an_answer(rule: Callable[..., Any], inputs: tuple[Any, ...], answer: Any) -> TypeError:
    """What is wrong with what a rule returned."""
    if type(answer) is not tuple:
        return TypeError(
            f"the rule {rule.__name__} must return its value and then its VJPs, as a "
            f"tuple, but it returned {type(answer).__name__}"
        )
    if hasattr(rule, "definition"):
        return TypeError(
            f"the fused rule {rule.__name__} must return its value and one function "
            f"backward(g, y, needs), but it returned "
            + (f"{len(answer)} things" if len(answer) != 2 else type(answer[1]).__name__)
        )
    return TypeError(
        f"the rule {rule.__name__} must return one VJP for each of its "
        f"{len(inputs)} tensor inputs, but it returned {len(answer) - 1}"
    )


def _as_array(rule: Callable[..., Any], value: Any) -> Array:
    """A rule's value as an array, where it is none yet."""
    if callable(value):
        value = value()
    if isinstance(value, Tensor):
        raise TypeError(
            f"the rule {rule.__name__} got arrays and returned a Tensor: it reaches for a "
            "Tensor outside, which belongs among its inputs"
        )
    return np.asarray(value)  # NumPy turns 0-d results into scalars


def _dtype_beside(inputs: tuple[Any, ...]) -> np.dtype[Any] | None:
    """The dtype that numbers take: the floating tensors', of those with axes if there are any."""
    floating = [x for x in inputs if isinstance(x, Tensor) and x.dtype.kind == "f"]
    beside = [x.dtype for x in floating if x.ndim] or [x.dtype for x in floating]
    return np.result_type(*beside) if beside else None


def _in_one_dtype(
    rule: Callable[..., Any],
    inputs: tuple[Any, ...],
    arrays: list[Any],
    beside: np.dtype[Any] | None,
) -> list[Any]:
    """Constants become arrays; numbers take the dtype of the floating tensor beside them.

    Without that rule `x * np.sqrt(d_k)` would turn a float32 model into a float64 one, since
    np.sqrt gives a float64 scalar, and NumPy lets only Python's own numbers give way. A number
    is whatever has no axes, also a tensor: a learned temperature does not change a model's dtype.
    """
    for i, x in enumerate(inputs):
        kind = type(x)
        if beside is not None and (kind is float or kind is int):
            arrays[i] = np.array(x, beside)
            continue
        a = arrays[i]
        if not isinstance(x, Tensor) and (kind is not np.ndarray or a.dtype.kind not in "fiub"):
            a = arrays[i] = _real_array(x, rule.__name__.strip("_"))
        if a.ndim == 0 and beside is not None and a.dtype is not beside and a.dtype.kind != "b":
            arrays[i] = a.astype(beside)
    return arrays


def _shared_time(value: Array, inputs: tuple[Any, ...]) -> list[int] | None:
    """A view shares its memory with an input, and so the time of that memory's last write."""
    for x in inputs:
        if isinstance(x, Tensor) and (
            value.base is x._array or np.may_share_memory(value, x._array)
        ):
            return x._written
    return None


def _explained(error: Exception, rule: Callable[..., Any], inputs: tuple[Any, ...]) -> Exception:
    """NumPy's complaint, preceded by the operation and the inputs it was about."""
    shapes = " and ".join(describe(x) for x in inputs)
    kind = ValueError if isinstance(error, ValueError) else IndexError
    return kind(f"{rule.__name__.strip('_')} of {shapes}: {error}")
