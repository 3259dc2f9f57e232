"""2.3 · Derivatives: functions in, functions out.

What can be asked of a function? For y = f(x) with Jacobian J = ∂y/∂x, five things, all of them
made of replays:

    grad, value_and_grad   ∂f/∂x for a scalar f                     one replay
    vjp                    Jᵀ g, for any g                          one replay for each g
    jvp                    J u, for any u                           two
    jacobian               J itself                                 one for each row
    hessian                the Jacobian of ∂f/∂x                    one, and one for each row
    hvp                    the Hessian times v                      two

The trick is in `jvp`. Reverse mode can only multiply by Jᵀ: it carries a row from the output back.
How can it push a direction u forward? The map g ↦ Jᵀ g is linear, so *its* Jacobian is Jᵀ,
whatever g is, and reverse mode through that map multiplies by Jᵀᵀ = J. So: run the first replay
with a seed g that requires a gradient, and differentiate ⟨Jᵀ g, u⟩ with respect to g. That is J u.
The value of g never matters, so zeros will do.

Handed arrays or numbers, everything here returns arrays; handed Tensors, Tensors. If the result
depends on a tensor outside that requires a gradient, it is a recorded Tensor in either case. That
lets `grad(grad(grad(f)))` nest to any depth, and lets f reach for outer variables.

    >>> f = lambda x: np.exp(x[0]) * x[1] ** 2
    >>> grad(f)([0.0, 3.0]), hessian(f)([0.0, 3.0])
    (array([9., 6.]), array([[9., 6.],
           [6., 2.]]))
    >>> hvp(f, [0.0, 3.0], [1.0, 0.0])                          # the first column
    array([9., 6.])
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad.autograd import check_seed, collect
from minigrad.record import is_recording, recording
from minigrad.replay import leaves
from minigrad.tensor import Tensor, _now, _real_array


def grad(
    f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """The derivative of f as a function: `grad(f)(x)` is ∂f/∂x at x, for a scalar-valued f.

    `argnums` chooses the argument; a tuple of them gives a tuple of gradients. With
    `has_aux=True` f returns (value, anything), and the derivative (gradient, anything).
    ValueError if f returns no scalar, or argnums asks for an argument that is not there.

    >>> grad(lambda x: x**2)(3.0)
    array(6.)
    >>> grad(lambda x, y: x * y, argnums=(0, 1))(3.0, 5.0)
    (array(5.), array(3.))
    >>> grad(lambda x: x * grad(lambda y: x * y)(1.0))(3.0)     # x · x, through the inner grad
    array(6.)
    """
    both = value_and_grad(f, argnums, has_aux=has_aux)

    def derivative(*args: Any, **options: Any) -> Any:
        value, gradient = both(*args, **options)
        return (gradient, value[1]) if has_aux else gradient

    return derivative


def value_and_grad(
    f: Callable[..., Any], argnums: int | tuple[int, ...] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """As `grad`, with the value: a function that returns (f(x), ∂f/∂x).

    With `has_aux=True` it returns ((f(x), anything), ∂f/∂x).

    >>> value_and_grad(lambda x: x**2)(3.0)
    (array(9.), array(6.))
    """
    chosen = _chosen(argnums)

    def both(*args: Any, **options: Any) -> Any:
        start = _now()
        inputs, xs = _with_fresh(args, chosen, "grad")
        with recording(True):
            y = f(*inputs, **options)
        aux = None
        if has_aux:
            if not isinstance(y, tuple) or len(y) != 2:
                raise TypeError(
                    f"with has_aux=True f returns a pair (value, aux): got {type(y).__name__}"
                )
            y, aux = y
        y = _as_output(y, "grad(f) needs a scalar")
        if y.size != 1:
            raise ValueError(f"grad(f) needs a scalar: f returned shape {y.shape}, not ()")
        outside = _outside(y, xs, start)
        seed = np.ones(y.shape, y.dtype)
        found = collect(y, seed, xs, outside, outside, borders=True, since=start)
        _retire(xs)
        value, *slopes = _as_given([y if outside else y.data.copy(), *found], args)
        slope = tuple(slopes) if isinstance(argnums, tuple) else slopes[0]
        return ((value, aux) if has_aux else value), slope

    return both


def vjp(f: Callable[..., Any], *xs: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """f(*xs), and the function g ↦ Jᵀ g, a tuple with one gradient for each x.

    It keeps the record, so it can be called with many g. g has the shape of the output.

    >>> y, back = vjp(lambda a, b: a @ b, [[1.0, 2.0]], [[3.0], [4.0]])
    >>> y, back([[1.0]])
    (array([[11.]]), (array([[3., 4.]]), array([[1.],
           [2.]])))
    """
    start = _now()
    inputs, y = _forward(f, xs, "vjp")
    outside = _outside(y, inputs, start)
    _retire(inputs)

    def back(g: Any) -> tuple[Any, ...]:
        seed = check_seed(y, g, "vjp", recorded=True)
        of_seed = isinstance(seed, Tensor) and seed.requires_grad
        again = is_recording() and (outside or of_seed)
        seed = seed.data if of_seed and not again else seed
        _retire(inputs, False)  # variables again, for as long as this takes
        try:
            found = collect(y, seed, inputs, again, True, borders=True, since=start)
        finally:
            _retire(inputs)
        return tuple(_as_given(found, (*xs, g)))

    return _as_given([y if outside else y.data.copy()], xs)[0], back


def jvp(f: Callable[..., Any], xs: Any, us: Any) -> tuple[Any, Any]:
    """f(x), and J u: how f moves when x moves along u.

    xs and us are tuples for a function of several arguments, and have equal shapes (ValueError
    otherwise). Why differentiating twice in reverse goes forward: see the head of this chapter.

    >>> jvp(lambda x: x * x, [1.0, 2.0], [10.0, 1.0])
    (array([1., 4.]), array([20.,  4.]))
    """
    xs, us = _pairs(xs, us, "jvp")
    start = _now()
    inputs, y = _forward(f, xs, "jvp")
    g = Tensor(np.zeros(y.shape), dtype=y.dtype, requires_grad=True)
    with recording(True):
        pairing = _pairing(collect(y, g, inputs, True, True, borders=True, since=start), us)
    outside = _outside(y, inputs, start) or _outside(pairing, [g, *inputs], start)
    (pushed,) = collect(pairing, np.ones((), pairing.dtype), [g], outside, True, since=start)
    _retire([g, *inputs])
    value, pushed = _as_given([y if outside else y.data.copy(), pushed], (*xs, *us))
    return value, pushed


def jacobian(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """∂y/∂x as a function: an array of shape y.shape + x.shape, one replay for each element of y.

    A tuple of argnums gives a tuple of them.

    >>> jacobian(lambda x: x * x)([1.0, 2.0])
    array([[2., 0.],
           [0., 4.]])
    """
    chosen = _chosen(argnums)

    def rows(*args: Any, **options: Any) -> Any:
        start = _now()
        inputs, xs = _with_fresh(args, chosen, "jacobian")
        with recording(True):
            y = _as_output(f(*inputs, **options), "jacobian(f) needs one Tensor")
        outside = _outside(y, xs, start)
        units = np.eye(y.size, dtype=y.dtype).reshape(y.size, *y.shape)
        found = [collect(y, unit, xs, outside, True, borders=True, since=start) for unit in units]
        _retire(xs)
        blocks: list[Any] = []
        for k, x in enumerate(xs):
            row = [each[k].reshape(1, *x.shape) for each in found]
            # (concatenate is chapter 3's, and for recorded rows it records)
            block = np.concatenate(row) if row else np.zeros((0, *x.shape), x.dtype)
            blocks.append(block.reshape((*y.shape, *x.shape)))
        blocks = _as_given(blocks, args)
        return tuple(blocks) if isinstance(argnums, tuple) else blocks[0]

    return rows


def hessian(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """∂²f/∂x∂x as a function, of shape x.shape + x.shape, for a scalar-valued f.

    It is the Jacobian of the gradient. A tuple of argnums gives a tuple of rows of blocks.

    >>> hessian(lambda x: x[0] ** 2 * x[1])([3.0, 5.0])
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    if isinstance(argnums, tuple):
        blocks = [jacobian(grad(f, i), argnums) for i in argnums]
        return lambda *args, **options: tuple(block(*args, **options) for block in blocks)
    return jacobian(grad(f, argnums), argnums)


def hvp(f: Callable[..., Any], xs: Any, vs: Any) -> Any:
    """H v, the Hessian times a direction, without the Hessian: the gradient of ⟨∂f/∂x, v⟩.

    It costs two replays, whatever the size of x. xs and vs are tuples, and so is the result, for
    a function of several arguments.

    >>> hvp(lambda x: x[0] ** 2 * x[1], [3.0, 5.0], [1.0, 0.0])
    array([10.,  6.])
    """
    several = isinstance(xs, tuple)
    xs, vs = _pairs(xs, vs, "hvp")
    argnums = tuple(range(len(xs)))

    def along_v(*inputs: Any) -> Tensor:
        return _pairing(grad(f, argnums)(*inputs), vs)

    found = grad(along_v, argnums)(*xs)
    return found if several else found[0]


def _chosen(argnums: Any) -> tuple[int, ...]:
    return tuple(map(operator.index, argnums if isinstance(argnums, tuple) else (argnums,)))


def _with_fresh(
    args: tuple[Any, ...], chosen: tuple[int, ...], asked: str
) -> tuple[list[Any], list[Tensor]]:
    """f's arguments with tensors of their own in the chosen places, and those tensors."""
    inputs = list(args)
    for i in chosen:
        if not -len(args) <= i < len(args):
            raise ValueError(
                f"{asked}: argnums asks for argument {i}, but f got {len(args)} by position"
            )
        inputs[i] = _fresh(args[i])
    return inputs, [inputs[i] for i in chosen]


def _fresh(x: Any) -> Tensor:
    """A tensor of its own for f's argument.

    If f also reaches the caller's x by name, that x and this argument must stay two variables.
    `+x` is a new result whose record leads back to x, so outer derivatives still find x.
    """
    if isinstance(x, Tensor) and x.requires_grad and is_recording():
        return +x
    values = x.data if isinstance(x, Tensor) else np.asarray(x)
    dtype = float if values.dtype.kind in "iub" else None
    return Tensor(values, requires_grad=True, dtype=dtype)


def _forward(f: Callable[..., Any], xs: Sequence[Any], asked: str) -> tuple[list[Tensor], Tensor]:
    inputs = [_fresh(x) for x in xs]
    with recording(True):
        return inputs, _as_output(f(*inputs), f"{asked}(f) needs one Tensor")


def _as_output(y: Any, needs: str) -> Tensor:
    """What f returned, as a Tensor; f may ignore its arguments."""
    if not isinstance(y, Tensor | np.ndarray | np.number | float | int):
        raise TypeError(f"{needs}: f returned {type(y).__name__}")
    if isinstance(y, Tensor):
        return y
    return Tensor(y, dtype=None if np.asarray(y).dtype.kind == "f" else float)


def _retire(xs: Sequence[Tensor], yes: bool = True) -> None:
    """f's own variables are nobody else's: once its derivative is known, they are constants."""
    for x in xs:
        if x.node is None:
            x._requires_grad = not yes


def _outside(y: Tensor, xs: list[Tensor], since: int) -> bool:
    """Whether y depends on tensors other than xs: then a derivative does too, and is recorded."""
    inside = {id(x) for x in xs}
    if any(x.node is not None for x in xs):  # +x, of a tensor that leads further back
        return True
    return is_recording() and bool(leaves(y, inside, since) - inside)


def _as_given(found: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Arrays for whoever gave arrays, Tensors for whoever gave a Tensor; recorded ones stay."""
    if any(isinstance(x, Tensor) for x in args):
        return [x if isinstance(x, Tensor) else Tensor(x) for x in found]
    return list(found)


def _pairs(xs: Any, us: Any, asked: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Inputs and directions as two tuples of equal shapes."""
    if isinstance(xs, tuple) != isinstance(us, tuple):
        raise TypeError(f"{asked} takes two tuples, or one array and one direction")
    xs, us = (xs, us) if isinstance(xs, tuple) else ((xs,), (us,))
    shapes = [[np.shape(x) for x in each] for each in (xs, us)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{asked}: the directions have shapes {shapes[1]}, but the inputs {shapes[0]}"
        )
    return xs, tuple(u if isinstance(u, Tensor) else _real_array(u, asked) for u in us)


def _pairing(gradients: Sequence[Any], us: Sequence[Any]) -> Tensor:
    """Σ ⟨gradient, u⟩ over all inputs."""
    total: Any = Tensor(0.0)
    for g, u in zip(gradients, us, strict=True):
        total = total + ((g if isinstance(g, Tensor) else Tensor(g)) * u).sum()
    return total  # type: ignore[no-any-return]
