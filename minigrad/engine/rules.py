"""1.3 · Rules: a value and its derivatives, side by side.

In chapter 0: `value, *vjps = rule(*[x.array for x in inputs])`.

How does a formula become an operation that records itself? It is written as a **rule**: a function
that returns its value and then one VJP for each tensor input. (A VJP gets g and the value, y.)

    >>> def multiply(a, b, /):
    ...     return a * b, lambda g, y: g * b, lambda g, y: g * a

`primitive` turns a rule into an operation. Its simplest form is `simplest`, below. The operation
that it returns calls the rule with the inputs' arrays, and writes a `Node` (chapter 1.2) that holds
the VJPs:

    >>> from minigrad import Tensor
    >>> from minigrad.engine.record import Node
    >>> from minigrad.engine.tensor import result       # makes a Tensor of an array and its node
    >>> def simplest(rule):
    ...     def operation(*inputs):
    ...         value, *vjps = rule(*[x.data for x in inputs])
    ...         return result(value, Node(rule, inputs, {}, tuple(vjps)))   # ({}: no options)
    ...
    ...     return operation
    >>> x = Tensor([3.0], requires_grad=True)
    >>> y = simplest(multiply)(x, x)
    >>> y.backward([1.0])                               # y has one element, and L is this element
    >>> x.grad                                          # 3 from each factor
    array([6.])

A rule is written with NumPy's functions and operators, which work on arrays and on Tensors. In the
forward pass the engine calls the rule with plain arrays. So its VJPs hold arrays, and a first
backward pass uses no Tensor and runs at NumPy's speed. If the derivative itself is to be
differentiated, the engine calls the same rule again, with Tensors in place of the arrays, and takes
its VJPs. Then `g * a` means `Tensor.__mul__`, is recorded like everything else, and can be
differentiated in turn. The same code serves first, second and higher derivatives.

So a rule is a pure function. It draws no random numbers and keeps no state, because it may be
called twice and must give the same answer.

Exercises 7 and 12 of `python -m demos learn`: a first rule of your own, and one to repair.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any, ParamSpec, overload

import numpy as np

from minigrad.engine.hints import complete
from minigrad.engine.options import check_floating
from minigrad.engine.record import WATCHERS, Node, is_recording, setting
from minigrad.engine.tensor import Array, Tensor, as_operand, describe, real_array, result

P = ParamSpec("P")  # an operation takes what its rule takes


@overload
def primitive(rule: Callable[P, Any], /) -> Callable[P, Tensor]: ...
@overload
def primitive(*, name: str) -> Callable[[Callable[P, Any]], Callable[P, Tensor]]: ...
def primitive(rule: Any = None, /, *, name: str | None = None) -> Any:
    """Turn a rule into an operation on Tensors: `@primitive`, or `@primitive(name="matmul")`.

    Your own operation takes three lines:

    >>> @primitive
    ... def cube(x, /):
    ...     return x**3, lambda g, y: g * 3 * x**2
    >>> from minigrad import grad
    >>> grad(cube)(3.0), grad(grad(cube))(3.0)              # 3x² and 6x
    (array(27.), array(18.))

    Tensor inputs stand before `/` (or as `*xs`), options after it. The rule returns its value and
    then one VJP `(g, y) → ∂L/∂input` for each tensor input, or None for an input that has no
    derivative, such as a mask. y is the operation's own output. `name` is what errors and graphs
    show; by default it is the rule's own name.

    If broadcasting stretched an input, say from (3,) to the output's shape (2, 3), its VJP may
    return a gradient of the output's shape: the engine sums it back to the input's shape (chapter
    2.1). `_operation`, below, says what else a rule may do, and what is an error.
    """
    if rule is None:
        return functools.partial(primitive, name=name)
    return _operation(rule, name)


# ---------------------------------------------------- A first reading may stop here.
# What follows: the operation that `primitive` makes, with options, numbers beside tensors, and
# fused rules, which do several steps at once; dtypes; and what is wrong with a wrong rule.


def _operation(rule: Callable[..., Any], name: str | None) -> Callable[..., Tensor]:
    """Return the function that computes and records. Every operation of every model is one.

    The value must be an array of the rule's own, or one of its inputs, because the result becomes
    read-only. Called with arrays only, the operation returns an array. (`_in_one_dtype` says of
    which dtype.) TypeError if the rule has no `/`, or returns too few or too many VJPs, or a
    Tensor. NumPy's ValueError or IndexError is raised with the operation and the shapes in front.

    The engine sums a gradient over axes of the output only. In y = (x ⊙ w).sum(axis=0), with x of
    shape (n, 2) and w of shape (2,), w is stretched along an axis that y does not have. There the
    VJP of w sums itself: `g * x.sum(axis=0)`.

    Some NumPy functions have no operation here, such as `np.exp2`, and are an error for a Tensor.
    A rule that needs one writes its value as a function of no arguments, `lambda: np.exp2(x)`. This
    function is called once, in the forward pass. When the rule is called again with Tensors, only
    its VJPs are used:

    >>> @primitive
    ... def exp2(x, /):
    ...     return lambda: np.exp2(x), lambda g, y: g * y * np.log(2.0)  # from 2ˣ = exp(x log 2)
    >>> from minigrad import grad
    >>> grad(exp2)(1.0), grad(grad(exp2))(1.0)                           # 2 log 2 and 2 (log 2)²
    (array(1.38629436), array(0.96090603))
    """
    parameters = inspect.signature(rule).parameters.values()
    variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    arity = sum(p.kind is p.POSITIONAL_ONLY for p in parameters)
    option_names = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    definition: Any = getattr(rule, "definition", None)
    is_fused = definition is not None
    # The length of an answer: a value, and a VJP for each input. (-1: always take a second look.)
    usual = 1 + arity if not (variadic or is_fused) else -1
    rule.__name__ = name or rule.__name__
    if not variadic and not arity:
        raise TypeError(f"{rule.__name__} names no tensor input: put its tensors before a '/'")

    @functools.wraps(rule)
    def operation(*inputs: Any, **options: Any) -> Any:
        if len(inputs) != arity and not variadic:  # options were given by position
            given = dict(zip(option_names, inputs[arity:], strict=False))
            if len(inputs) > arity + len(given) or given.keys() & options.keys():
                rule(*inputs, **options)  # raises Python's own TypeError, which names what is wrong
            inputs, options = inputs[:arity], options | given  # the record keeps them by name
        if is_fused and _unfused.get():
            return definition(*[as_operand(x, rule.__name__) for x in inputs], **options)
        arrays, dtype, requires_grad, ready = _arrays(rule, inputs)
        if not ready:  # there are numbers, arrays, or tensors of several dtypes
            arrays = _in_one_dtype(rule, inputs, dtype)
        try:
            answer = rule(*arrays, **options)
            value = answer[0] if type(answer) is tuple and len(answer) == usual else None
            if type(value) is not np.ndarray or value.dtype is not dtype:
                value = _second_look(rule, inputs, answer)  # unusual, or an error
        except (ValueError, IndexError) as error:
            shapes = " and ".join(describe(x) for x in inputs)
            raise type(error)(f"{rule.__name__} of {shapes}: {error}") from error
        except TypeError as error:
            complete(error, rule, options)
            raise
        if requires_grad is None:  # no Tensor: a rule may call an operation, and needs an array
            return value
        value.setflags(False)  # type: ignore[call-arg]  # write=False: arrays never change
        node = None
        if requires_grad and is_recording():
            inputs = inputs if ready else _as_tensors(inputs, arrays)
            vjps = answer[1] if is_fused else answer[1:]
            node = Node(rule, inputs, options, vjps)
        for look in WATCHERS.get():
            look(rule, inputs, value, node)
        return result(value, node)

    return operation


def fused(
    *, definition: Callable[..., Any], name: str | None = None
) -> Callable[[Callable[P, Any]], Callable[P, Tensor]]:
    """Turn a rule that does several steps at once into one operation, and one node.

    `definition` is the same function of the same arguments, composed of other operations. The rule
    returns its value and one function `backward(g, y, needs)`. This function returns a tuple: for
    each tensor input its gradient, or None where `needs` is False. It is one function for all
    inputs, because fused derivatives share their work. It gets arrays only, so it may write in
    place to arrays of its own (g and y cannot be written) and use what the forward pass has saved.

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

    `gradcheck` (chapter 4.3) compares the rule's value with its definition's, and its derivatives
    with finite differences.
    """

    def decorate(rule: Callable[P, Any]) -> Callable[P, Tensor]:
        rule.definition = definition  # type: ignore[attr-defined]
        return _operation(rule, name)

    return decorate


_unfused: ContextVar[bool] = ContextVar("unfused", default=False)


def unfused() -> AbstractContextManager[None]:
    """Compute fused operations by their definitions inside the block, to draw all their steps.

    (Chapter 3.7 begins with an example.)
    """
    return setting(_unfused, True)


def _arrays(
    rule: Callable[..., Any], inputs: tuple[Any, ...]
) -> tuple[list[Array], Any, bool | None, bool]:
    """Return the Tensors' arrays and dtype, whether one requires a gradient, and if all is ready.

    If the dtypes differ, the dtype is that of `_dtype_beside`. The third answer is None if there is
    no Tensor. Inputs are not ready for the rule if one is not a Tensor, or if their dtypes differ.
    """
    arrays: list[Array] = []
    dtype = requires_grad = None
    ready = alike = True
    for x in inputs:
        if isinstance(x, Tensor):
            a = x._array
            arrays.append(a)
            if not requires_grad:
                requires_grad = x._requires_grad
            if a.dtype is not dtype:
                alike = alike and dtype is None
                dtype = a.dtype
        else:
            ready = False
    if alike:
        return arrays, dtype, requires_grad, ready
    return arrays, _dtype_beside(rule, inputs), requires_grad, False


def _in_one_dtype(rule: Callable[..., Any], inputs: tuple[Any, ...], dtype: Any) -> list[Array]:
    """Return the inputs' arrays; numbers and arrays take the dtype of the tensors beside them.

    A rule may return one of its inputs, and the result is made read-only. So arrays of the caller's
    are given to it as views.

    **The dtype rule.** What is floating is float32 or float64. Half precision would need other
    sums, other norms and another ε in Adam, so float16 is refused, in functions of arrays too.

    A number or a plain array, of float16 too, takes the dtype of the floating tensor beside it.
    Otherwise `x * np.sqrt(d_k)` would turn a float32 model into a float64 one, since np.sqrt gives
    a float64 scalar, and NumPy keeps an array's dtype only beside Python's int and float. A number
    is whatever has no axes, also a Tensor: a learned temperature does not change a model's dtype.

    A float64 constant with axes is refused beside a float32 tensor, because the whole model would
    become float64, and slower, and nothing would show it. If both tensors require a gradient, the
    result is float64, and each gradient has the dtype of its tensor.
    """
    beside = dtype if dtype is not None and dtype.kind == "f" else None
    arrays = []
    for x in inputs:
        kind = type(x)
        keeps = False
        if kind is np.ndarray and x.dtype.kind in "fiub":
            a = x.view()
        elif beside is not None and (kind is float or kind is int):
            a = np.array(x, beside)
        elif isinstance(x, Tensor):
            a = x._array
            keeps = a.ndim > 0 and a.dtype.kind == "f"
        else:
            a = real_array(x, rule.__name__).view()
        if beside is None:
            check_floating(a.dtype, rule.__name__)
        elif not keeps and a.dtype is not beside and a.dtype.kind != "b":
            a = a.astype(beside)
        arrays.append(a)
    return arrays


def _dtype_beside(rule: Callable[..., Any], inputs: tuple[Any, ...]) -> np.dtype[Any] | None:
    """Return the dtype that numbers take: the floating tensors', of those with axes if any."""
    floating = [x for x in inputs if isinstance(x, Tensor) and x._array.dtype.kind == "f"]
    floating = [x for x in floating if x._array.ndim] or floating
    dtypes = {x._array.dtype for x in floating}
    for x in floating:
        wide = len(dtypes) > 1 and x._array.ndim and x._array.dtype == np.float64
        if wide and not x._requires_grad:
            raise TypeError(
                f"{rule.__name__} of float32 would become float64 beside the constant "
                f"{describe(x)}, which is slower: use .astype(np.float32) on the constant"
            )
    return np.result_type(*dtypes) if dtypes else None


def _as_tensors(inputs: tuple[Any, ...], arrays: list[Array]) -> tuple[Tensor, ...]:
    """Return the inputs as the record keeps them: numbers and arrays become constants."""
    tensors = list(inputs)
    for i, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            arrays[i].setflags(write=False)  # a view, or an array made of a number
            tensors[i] = result(arrays[i], None)
    return tuple(tensors)


def _second_look(rule: Callable[..., Any], inputs: tuple[Any, ...], answer: Any) -> Array:
    """Return a rule's value as an array of real numbers; TypeError for a malformed answer."""
    is_fused = hasattr(rule, "definition")
    n = len(inputs)
    if type(answer) is not tuple or len(answer) != (2 if is_fused else 1 + n):
        if is_fused:
            vjps = "one function backward(g, y, needs)"
        elif n == 1:
            vjps = "one VJP for its input"
        else:
            vjps = f"one VJP for each of its {n} tensor inputs"
        if answer is None:
            got = "None: is a return missing?"
        elif type(answer) is tuple:
            got = f"a tuple of {len(answer)}"
        else:
            got = type(answer).__name__
        raise TypeError(
            f"the rule {rule.__name__} must return its value and {vjps}, as a tuple, "
            f"but it returned {got}"
        )
    value = answer[0]() if callable(answer[0]) else answer[0]
    value = real_array(value, f"the value of {rule.__name__}")
    check_floating(value.dtype, f"the value of {rule.__name__}")
    return value
