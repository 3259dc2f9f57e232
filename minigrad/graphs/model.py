"""5.2 · Graph model: a record as plain data.

What does a drawing need? Which tensors there are, what each was computed from, and how large the
gradient at each is. This chapter collects that as plain data, a `Vertex` for each tensor, in the
order in which the tensors were computed. A drawing reads only this list, and no longer the record.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from minigrad.engine.replay import inputs_of
from minigrad.engine.tensor import Tensor
from minigrad.graphs.summary import Summary, dtype_name, shown


class Scope(NamedTuple):
    """A module that was being called: its dotted name in the network, and its class.

    The name ends in #2 in the second call of a module that was called several times; `call` is that
    ending.
    """

    path: str
    kind: str
    call: str = ""

    @property
    def layer(self) -> str:
        """The dotted name alone, without the number of the call."""
        return self.path.removesuffix(self.call)


@dataclass(frozen=True)
class Vertex:
    """One tensor of a record: a leaf, a constant, or the result of an operation.

    kind      "leaf" (one that requires a gradient), "constant", "operation", or "unrecorded" (the
              result of an operation under `no_grad`, which only `Steps` of chapter 5.14 can see)
    title     the name its owner gave it, the operation's name, or a small constant's values
    operation the operation's name, "" for leaves and constants
    options   the options the operation was called with, as text; not those with the usual value
    inputs    the numbers of the tensors it was computed from, one for each use
    value     what is kept of its array (chapter 5.1)
    gradient  what is kept of ∂L/∂(this tensor); None if none was asked for or none reaches it
    named     whether the title is a name that somebody gave
    parameter whether it is a leaf that a layer holds
    modules   the modules that were being called when it was computed, the outermost first
    line      the line of source that computed it, "demos/one.py, line 12"
              (modules and line are known from `Steps` alone)
    formula   the first line of the operation's docstring, and `vjp` the lines in it that say how
              the gradient goes back
    fused     whether the operation does several steps at once, which `unfused()` shows
    moves     whether it only moves numbers, as `reshape` does, and `averages`, whether it is a mean
    called    in a graph that is drawn with steps: what `print(steps)` calls it
    likeness  equal for operations with equal options, also where the text is shortened
    """

    number: int
    kind: str
    title: str
    operation: str
    options: str
    shape: tuple[int, ...]
    dtype: str
    inputs: tuple[int, ...]
    value: Summary
    gradient: Summary | None = None
    named: bool = False
    parameter: bool = False
    modules: tuple[Scope, ...] = ()
    line: str = ""
    formula: str = ""
    vjp: str = ""
    fused: bool = False
    moves: bool = False
    averages: bool = False
    called: str = ""
    likeness: int = 0

    @property
    def grad_rms(self) -> float | None:
        """√mean(g²) for g = ∂L/∂(this tensor); NaN or ∞ if an element is."""
        return None if self.gradient is None else self.gradient.rms

    @property
    def grad_norm(self) -> float | None:
        """√Σg², the length of the gradient."""
        return None if self.gradient is None else self.gradient.statistics.norm

    def data(self) -> dict[str, Any]:
        """The same for JSON."""
        found = {name: x for name, x in vars(self).items() if x not in ("", None, (), False)}
        found["number"], found["value"] = self.number, self.value.data()
        found.pop("likeness", None)
        if self.gradient is not None:
            found["gradient"] = self.gradient.data()
        if self.modules:
            found["modules"] = [scope.path for scope in self.modules]
        return found


class Arrow(NamedTuple):
    """One use of tensor `source` (by number) as input `position` of the operation `target`."""

    source: int
    target: int
    position: int


Names = Mapping[str, Tensor] | Iterable[tuple[str, Tensor]]
# The names that the layers of chapter 7.3 give their own leaves.
OF_LAYERS = ("weight", "bias", "gain")
SHAPES = ("broadcast_to", "expand_dims", "reshape", "squeeze", "swapaxes", "transpose")
AVERAGING = ("cross_entropy", "mean")


def model(y: Tensor, gradients: Mapping[Tensor, Any], names: Mapping[Tensor, str]) -> list[Vertex]:
    """A vertex for each tensor behind y. `gradients` are the arrays of those that have one."""
    found = walk(y)
    numbers = {x: number for number, x in enumerate(found)}
    return [
        vertex(
            x,
            numbers[x],
            tuple([numbers[z] for z in _inputs(x)]),
            gradient=gradients.get(x),
            given=names.get(x),
        )
        for x in found
    ]


def walk(y: Tensor, inputs: Callable[[Tensor], tuple[Tensor, ...]] = inputs_of) -> list[Tensor]:
    """All tensors behind y, in the order in which they were computed.

    The results are collected from y backwards, and sorted by their times (chapter 2.1). A leaf or a
    constant comes before the first result that was computed from it. `inputs` says of a result
    which of its inputs are wanted.
    """
    results: set[Tensor] = set()
    stack = [y] if y.node is not None else []
    while stack:
        t = stack.pop()
        if t not in results:
            results.add(t)
            stack += [x for x in inputs(t) if x.node is not None and x not in results]
    order: dict[Tensor, None] = {}  # (used as a set that keeps its order)
    for t in sorted(results, key=attrgetter("_time")):
        order |= dict.fromkeys(x for x in inputs(t) if x.node is None)
        order[t] = None
    return list(order) or [y]


def _inputs(t: Tensor) -> tuple[Tensor, ...]:
    return () if t.node is None else inputs_of(t)


def vertex(
    t: Tensor,
    number: int,
    inputs: tuple[int, ...],
    *,
    gradient: Any = None,
    given: str | None = None,
    **known: Any,
) -> Vertex:
    """A tensor as data. `given` is a name that it has besides its own."""
    node, name = t.node, given or t.name
    if node is not None:
        kind, plain = "operation", node.name
    elif t.requires_grad:
        kind, plain = "leaf", "leaf"
    else:
        kind, plain = "constant", shown(t._array) if t.size <= 4 else "constant"
    is_parameter = kind == "leaf" and (
        given is not None or (name is not None and ("." in name or name in OF_LAYERS))
    )
    return Vertex(
        number=number,
        kind=kind,
        title=str(name or plain),
        operation=node.name if node is not None else "",
        options=options_shown(node.rule, node.options, t.shape) if node is not None else "",
        shape=t.shape,
        dtype=dtype_name(t.dtype),
        inputs=inputs,
        value=Summary.of(t._array),
        gradient=None if gradient is None else Summary.of(np.asarray(gradient)),
        named=bool(name),
        parameter=is_parameter,
        formula=formulas(node.rule)[0] if node is not None else "",
        vjp=formulas(node.rule)[1] if node is not None else "",
        **(_of_rule(node.rule, node.options) if node is not None else {}),
        **known,
    )


def without_record(made: Vertex, rule: Any) -> Vertex:
    """The vertex of a result under `no_grad`, which has no node that says how it was made."""
    name = rule.__name__
    known = _of_rule(rule, {})
    return replace(made, kind="unrecorded", title=name, operation=name, **known)


def _of_rule(rule: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """What an operation's rule says. (A rule of a user's may have the name of one of ours.)"""
    name, ours = rule.__name__, rule.__module__.startswith("minigrad.")
    return {
        "fused": hasattr(rule, "definition") and name != "recompute",
        "moves": ours and name in SHAPES,
        "averages": ours and name in AVERAGING,
        # (A hash is another number in each process. It is only compared, and never written.)
        "likeness": hash(tuple((key, _whole(x)) for key, x in options.items())),
    }


def _whole(option: Any) -> Any:
    """An option as something to compare, not shortened."""
    if isinstance(option, np.ndarray):
        return (option.shape, option.dtype.str, option.tobytes())
    if isinstance(option, tuple | list):
        return tuple(map(_whole, option))
    return repr(option)


# ---------------------------------------------------- A first reading may stop here.
# What follows: options as text, and formulas from docstrings.


def options_shown(rule: Any, options: Mapping[str, Any], shape: tuple[int, ...]) -> str:
    """The options to show: not those with the usual value, and not the shape, shown below.

    The usual value is the default of the rule, or of the public function of that name.
    """
    if not options:
        return ""
    usual = [inspect.signature(f).parameters for f in (rule, _public(rule))]
    return ", ".join(
        f"{name}={_option(value)}"
        for name, value in options.items()
        if not (
            any(name in known and _same(value, known[name].default) for known in usual)
            or (name == "shape" and isinstance(value, tuple) and value == shape)
        )
    )


def formulas(rule: Any) -> tuple[str, str]:
    """An operation's formula, and how its gradient goes back, from the operation's docstring.

    >>> import minigrad
    >>> from minigrad.graphs.model import formulas
    >>> formulas(minigrad.softmax(minigrad.Tensor([1.0], requires_grad=True)).node.rule)
    ('yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ): turn scores into weights that are positive and sum to 1.',
    '∂L/∂x = J g = y ⊙ g - y (yᵀ g) = y ⊙ (g - ⟨y, g⟩)')
    """
    if rule not in _FORMULAS:
        lines = (inspect.getdoc(_public(rule)) or "").splitlines()
        first = lines[0] if lines else ""
        marked = [_GAP.sub("; ", x) for x in lines if x.startswith("    ") and _WAY_BACK.search(x)]
        back = [" ".join(x.split()) for x in marked]
        _FORMULAS[rule] = first, "; ".join(back) or (first if _WAY_BACK.search(first) else "")
    return _FORMULAS[rule]


# (Weak: a rule may be a closure that holds much.)
_FORMULAS: WeakKeyDictionary[Any, tuple[str, str]] = WeakKeyDictionary()
_WAY_BACK = re.compile("∂L/∂|∂y/∂|f′")
_GAP = re.compile(r"(?<=\S) {2,}(?=∂|.′ =)")  # between two formulas on a line


def _public(rule: Any) -> Any:
    """The function that a user calls: the rule's own operation, or ours that calls the rule."""
    public = getattr(sys.modules.get(rule.__module__), rule.__name__, None)
    ours = rule.__module__.startswith(("minigrad.", "attention."))
    is_it = callable(public) and (ours or getattr(public, "__wrapped__", None) is rule)
    return public if is_it else rule


def _same(value: Any, default: Any) -> bool:
    """Whether an option has its default, which may be an array or NaN."""
    if isinstance(value, np.ndarray) or isinstance(default, np.ndarray):
        return value is default or np.array_equal(value, default)
    return type(value) is type(default) and repr(value) == repr(default)


def _option(value: Any) -> str:
    """An option as short text: slices as they are typed, long arrays by their shape."""
    if isinstance(value, tuple):
        inside = ", ".join(_option(v) for v in value)
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, slice):
        ends = ["" if v is None else str(v) for v in (value.start, value.stop)]
        return ":".join(ends) + ("" if value.step is None else f":{value.step}")
    if value is Ellipsis:
        return "..."
    if isinstance(value, np.ndarray) and value.size > 4:
        return f"array {value.shape}"
    text = str(value) if not isinstance(value, str) else repr(value)
    return text if len(text) <= 32 else text[:31] + "…"
