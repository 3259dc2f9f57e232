"""2.3 · Derivatives: functions in, functions out.

What can be asked of a function? For y = f(x) with Jacobian J = ∂y/∂x, six things, all of them
made of replays:

    grad, value_and_grad   ∂f/∂x for a scalar f                     one replay
    vjp                    Jᵀ g, for any g                          one replay for each g
    jvp                    J u, for any u                           two
    jacobian               J itself                                 one for each row
    hessian                the Jacobian of ∂f/∂x                    one, and one more for each row
    hvp                    the Hessian times v                      two

Only `jvp` needs an idea. Reverse mode can only multiply by Jᵀ: it carries a row from the output
back. How can it push a direction u forward? The map g ↦ Jᵀ g is linear in g, and *its* Jacobian is
Jᵀ. So reverse mode through that map multiplies by Jᵀᵀ = J: run the first replay with a seed g that
requires a gradient, and differentiate ⟨Jᵀ g, u⟩ with respect to g. That is J u. (⟨a, b⟩ = Σ aᵢ bᵢ.)
For two inputs and two outputs,

    J = [[a, b], [c, d]]    Jᵀ g = (a g₁ + c g₂, b g₁ + d g₂)
    ⟨Jᵀ g, u⟩ = g₁ (a u₁ + b u₂) + g₂ (c u₁ + d u₂)

and the factors of g₁ and g₂ are J u. The value of g does not matter, so zeros will do.

If you pass arrays you get arrays; if a positional argument is a Tensor you get Tensors. There is
one exception: if f also uses a Tensor from outside that requires a gradient, you get recorded
Tensors, which can be differentiated with respect to that Tensor. That is why `grad(grad(grad(f)))`
works to any depth.

    >>> import numpy as np
    >>> from minigrad import grad, hessian, hvp
    >>> f = lambda x: np.exp(x[0]) * x[1] ** 2
    >>> grad(f)([0.0, 3.0]), hessian(f)([0.0, 3.0])
    (array([9., 6.]), array([[9., 6.],
           [6., 2.]]))
    >>> hvp(f, [0.0, 3.0], [1.0, 0.0])                          # the first column
    array([9., 6.])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from minigrad.engine.autograd import check_seed, collect
from minigrad.engine.record import is_recording, recording
from minigrad.engine.replay import ends
from minigrad.engine.tensor import Tensor, as_operand, now


class _Call:
    """One call of f, with a record: its output y, and the gradients of its variables.

    `since` is a time after the variables are made and before f runs: all that f computes is newer.
    `uses_others` says that y also depends on other tensors that require a gradient. Then the
    derivative of f depends on them too, and has to be recorded.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        inputs: Sequence[Any],
        options: dict[str, Any],
        variables: Sequence[Tensor],
        needs: str,
    ) -> None:
        self.variables = variables
        self.since = now()
        with recording():
            y = f(*inputs, **options)
        if not isinstance(y, Tensor | np.ndarray | np.number | float | int):
            raise TypeError(f"{needs}: f returned {type(y).__name__}")
        if not isinstance(y, Tensor):  # f may ignore its arguments
            y = Tensor(y, dtype=None if np.asarray(y).dtype.kind == "f" else float)
        self.y: Tensor = y
        self.uses_others = _uses_others(y, variables, self.since)

    @property
    def value(self) -> Any:
        """The value of f: a recorded Tensor if it depends on other tensors, otherwise an array."""
        return self.y if self.uses_others else self.y.data.copy()

    def gradients(self, seed: Any, *, create_graph: bool, keep: bool = False) -> tuple[Any, ...]:
        """Return the variables' gradients by one replay; `keep` keeps the record for another."""
        keep = keep or create_graph
        xs, since = self.variables, self.since
        return collect(self.y, seed, xs, create_graph=create_graph, retain_graph=keep, since=since)


def grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Return the derivative of f as a function: `grad(f)(x)` is ∂f/∂x at x, for a scalar f.

    `argnums` chooses the argument; a tuple of them gives a tuple of gradients. ValueError if f
    returns more than one element, or argnums asks for an argument that is not there; TypeError if f
    returns something else than a tensor, an array or a number.

    >>> grad(lambda x: x**2)(3.0)
    array(6.)
    >>> grad(lambda x, y: x * y, argnums=(0, 1))(3.0, 5.0)
    (array(5.), array(3.))
    >>> grad(lambda x: x * grad(lambda y: x * y)(1.0))(3.0)     # x · x, through the inner grad
    array(6.)
    """
    if not callable(f):
        raise TypeError("grad takes a function: of a tensor y, gradients(y, [x]) are the gradients")
    both = value_and_grad(f, argnums)
    return lambda *args, **options: both(*args, **options)[1]


def value_and_grad(f: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Return a function that returns (f(x), ∂f/∂x): as `grad`, with the value.

    >>> value_and_grad(lambda x: x**2)(3.0)
    (array(9.), array(6.))
    """
    chosen = argnums if isinstance(argnums, tuple) else (argnums,)

    def both(*args: Any, **options: Any) -> Any:
        inputs, xs = _with_variables(args, chosen, "grad")
        call = _Call(f, inputs, options, xs, "grad(f) needs a scalar")
        if call.y.size != 1:
            raise ValueError(f"grad(f) needs a scalar: f returned shape {call.y.shape}, not ()")
        found = call.gradients(np.ones(call.y.shape, call.y.dtype), create_graph=call.uses_others)
        value, *slopes = _as_given([call.value, *found], args)
        return value, tuple(slopes) if isinstance(argnums, tuple) else slopes[0]

    return both


def vjp(f: Callable[..., Any], *xs: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """f(*xs), and the function g ↦ Jᵀ g, a tuple with one gradient for each x.

    That function keeps the record, so it can be called with many g, also from several threads. g
    has the shape of the output.

    >>> y, back = vjp(lambda a, b: a @ b, [[1.0, 2.0]], [[3.0], [4.0]])
    >>> y, back([[1.0]])
    (array([[11.]]), (array([[3., 4.]]), array([[1.],
           [2.]])))
    """
    variables = [_variable(x) for x in xs]
    call = _Call(f, variables, {}, variables, "vjp(f) needs one Tensor")

    def back(g: Any) -> tuple[Any, ...]:
        seed = check_seed(call.y, g, "vjp", recorded=True)
        again = is_recording() and (call.uses_others or getattr(seed, "requires_grad", False))
        if isinstance(seed, Tensor) and not again:
            seed = seed.data
        found = call.gradients(seed, create_graph=again, keep=True)
        return tuple(_as_given(found, (*xs, g)))

    return _as_given([call.value], xs)[0], back


def jvp(f: Callable[..., Any], xs: Any, us: Any) -> tuple[Any, Any]:
    """f(x), and J u: how f moves when x moves along u.

    xs and us are tuples for a function of several arguments, and have equal shapes (ValueError
    otherwise). Why differentiating twice in reverse goes forward: see the head of this chapter.

    >>> jvp(lambda x: x * x, [1.0, 2.0], [10.0, 1.0])
    (array([1., 4.]), array([20.,  4.]))
    """
    xs, us = _pairs(xs, us, "jvp")
    variables = [_variable(x) for x in xs]
    call = _Call(f, variables, {}, variables, "jvp(f) needs one Tensor")
    g = Tensor(np.zeros(call.y.shape), dtype=call.y.dtype, requires_grad=True)

    with recording():
        pairs = zip(call.gradients(g, create_graph=True), us, strict=True)
        along_u = sum((to_x * u).sum() for to_x, u in pairs)  # ⟨Jᵀ g, u⟩
    again = call.uses_others or _uses_others(along_u, [g, *variables], call.since)
    seed = np.ones((), along_u.dtype)
    (pushed,) = collect(along_u, seed, [g], create_graph=again, retain_graph=True, since=call.since)
    value, pushed = _as_given([call.value, pushed], (*xs, *us))
    return value, pushed


def jacobian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """∂y/∂x as a function: an array of shape `y.shape + x.shape`, one replay for each element of y.

    >>> jacobian(lambda x: x * x)([1.0, 2.0])
    array([[2., 0.],
           [0., 4.]])
    """

    def rows(*args: Any, **options: Any) -> Any:
        inputs, (x,) = _with_variables(args, (argnums,), "jacobian")
        call = _Call(f, inputs, options, [x], "jacobian(f) needs one Tensor")
        y = call.y
        found = []
        for unit in np.eye(y.size, dtype=y.dtype).reshape(y.size, *y.shape):
            (row,) = call.gradients(unit, create_graph=call.uses_others, keep=True)
            found.append(row.reshape(1, *x.shape))
        # (concatenate is chapter 3's, and for recorded rows it records)
        block = np.concatenate(found) if found else np.zeros((0, *x.shape), x.dtype)
        return _as_given([block.reshape((*y.shape, *x.shape))], args)[0]

    return rows


def hessian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """∂²f/∂x∂x as a function, of shape x.shape + x.shape, for a scalar-valued f.

    It is the Jacobian of the gradient.

    >>> hessian(lambda x: x[0] ** 2 * x[1])([3.0, 5.0])
    array([[10.,  6.],
           [ 6.,  0.]])
    """
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

    def along_v(*inputs: Any) -> Any:
        return sum((g * v).sum() for g, v in zip(grad(f, argnums)(*inputs), vs, strict=True))

    found = tuple(_as_given(grad(along_v, argnums)(*xs), (*xs, *vs)))
    return found if several else found[0]


# ---------------------------------------------------- A first reading may stop here.
# What follows: f's arguments as variables of their own, and what else f depends on.


def _variable(x: Any) -> Tensor:
    """Return a new tensor that stands for f's argument x.

    If f also uses the caller's x by its name, that x and this argument must be two variables.
    `+x` is a new result whose record leads back to x, so outer derivatives still find x.
    """
    if isinstance(x, Tensor) and x.requires_grad and is_recording():
        return +x  # type: ignore[no-any-return]  # (NumPy's types do not know Tensors)
    values = x.data if isinstance(x, Tensor) else np.asarray(x)
    dtype = float if values.dtype.kind in "iub" else None
    return Tensor(values, requires_grad=True, dtype=dtype)


def _uses_others(y: Tensor, variables: Sequence[Tensor], since: int) -> bool:
    """Return whether y depends on older tensors that require a gradient, beside the variables."""
    if any(x.node is not None for x in variables):  # +x, of a tensor that leads further back
        return True
    if not is_recording():
        return False
    inside = set(variables)
    return any(t not in inside and t._time <= since for t in ends(y, since))


def _with_variables(
    args: tuple[Any, ...], chosen: tuple[int, ...], asked: str
) -> tuple[list[Any], list[Tensor]]:
    """Return f's arguments with variables in the chosen places, and those variables."""
    inputs = list(args)
    for i in chosen:
        if not isinstance(i, int | np.integer):
            raise TypeError(f"{asked}: argnums is a number, for grad also a tuple: got {i!r}")
        if not -len(args) <= i < len(args):
            raise ValueError(
                f"{asked}: argnums asks for argument {i}, but f got {len(args)} by position"
            )
        inputs[i] = _variable(args[i])
    return inputs, [inputs[i] for i in chosen]


def _as_given(found: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Return the results; as Tensors if one of the arguments is a Tensor, otherwise as they are."""
    if any(isinstance(x, Tensor) for x in args):
        return [x if isinstance(x, Tensor) else Tensor(x) for x in found]
    return list(found)


def _pairs(xs: Any, us: Any, asked: str) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return inputs and directions as two tuples; ValueError if their shapes differ."""
    xs, us = (each if isinstance(each, tuple) else (each,) for each in (xs, us))
    shapes = [[np.shape(x) for x in each] for each in (xs, us)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{asked}: the directions have shapes {shapes[1]}, but the inputs {shapes[0]}"
        )
    return xs, tuple(as_operand(u, asked) for u in us)
