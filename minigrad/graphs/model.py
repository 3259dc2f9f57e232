"""5.2 · Graph model: a record as plain data.

What does a drawing need? Which tensors there are, what each was computed from, and how large the
gradient at each is. This chapter collects that as plain data, a `Vertex` for each tensor, in the
order in which the tensors were computed. A drawing reads only this list, and no longer the record.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from minigrad.engine.replay import inputs_of
from minigrad.engine.tensor import Tensor
from minigrad.graphs.summary import Summary, dtype_name, shown


class Scope(NamedTuple):
    """A module that was being called: its dotted name in the network, and its class.

    The name ends in #2 in the second call of a module that was called several times.
    """

    path: str
    kind: str


@dataclass(frozen=True)
class Vertex:
    """One tensor of a record: a leaf, a constant, or the result of an operation.

    kind      "leaf" (one that requires a gradient), "constant", "operation", or "unrecorded" (the
              result of an operation under `no_grad`, which only `Steps` of chapter 5.13 can see)
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


def walk(y: Tensor) -> list[Tensor]:
    """All tensors behind y, in the order in which they were computed.

    The results are collected from y backwards, and sorted by their times (chapter 2.1). A leaf or a
    constant comes before the first result that was computed from it.
    """
    results: set[Tensor] = set()
    stack = [y] if y.node is not None else []
    while stack:
        t = stack.pop()
        if t not in results:
            results.add(t)
            stack += [x for x in inputs_of(t) if x.node is not None and x not in results]
    order: dict[Tensor, None] = {}  # (used as a set that keeps its order)
    for t in sorted(results, key=attrgetter("_time")):
        order |= dict.fromkeys(x for x in inputs_of(t) if x.node is None)
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
        fused=hasattr(node and node.rule, "definition") and plain != "recompute",
        **known,
    )


def unique_names(vertices: Sequence[Vertex]) -> list[str]:
    """A name for each vertex, to be used in text: its title, if it has one, or t and its number.

    Of several that have one title the first is x#1, and so on.
    """
    plain = [f"t{v.number}" if v.operation else _unnamed(v) for v in vertices]
    return numbered([v.title if v.named else None for v in vertices], plain)


def numbered(titles: Sequence[str | None], plain: Sequence[str]) -> list[str]:
    """The titles, those that occur several times as x#1, x#2, …; for None what is plain.

    >>> from minigrad.graphs.model import numbered
    >>> numbered(["x", None, "x", "loss"], ["t0", "t1", "t2", "t3"])
    ['x#1', 't1', 'x#2', 'loss']
    """
    count, met = Counter(titles), Counter[str]()
    names = []
    for title, otherwise in zip(titles, plain, strict=True):
        if title is not None:
            met[title] += 1
        name = otherwise if title is None else title
        names.append(f"{name}#{met[name]}" if title is not None and count[title] > 1 else name)
    return names


def _unnamed(v: Vertex) -> str:
    return v.title if v.title not in ("leaf", "constant") else f"{v.title} {v.shape}"


# ---------------------------------------------------- A first reading may stop here.
# What follows: options as text, and formulas from docstrings.


def options_shown(rule: Any, options: Mapping[str, Any], shape: tuple[int, ...]) -> str:
    """The options to show: not those with the usual value, and not the shape, shown below.

    The usual value is the default of the rule, or of the public function of that name.
    """
    if not options:
        return ""
    usual = _usual(rule)
    return ", ".join(
        f"{name}={_option(value)}"
        for name, value in options.items()
        if not (
            any(name in known and _same(value, known[name].default) for known in usual)
            or (name == "shape" and isinstance(value, tuple) and value == shape)
        )
    )


@functools.lru_cache(512)
def _usual(rule: Any) -> list[Mapping[str, inspect.Parameter]]:
    return [inspect.signature(f).parameters for f in (rule, _public(rule))]


def formulas(rule: Any) -> tuple[str, str]:
    """An operation's formula, and how its gradient goes back, from the operation's docstring.

    >>> import minigrad
    >>> from minigrad.graphs.model import formulas
    >>> formulas(minigrad.softmax(minigrad.Tensor([1.0], requires_grad=True)).node.rule)
    ('yᵢ = exp(xᵢ) / Σⱼ exp(xⱼ): turn scores into weights that are positive and sum to 1.',
    '∂L/∂x = J g = y ⊙ g - y (yᵀ g) = y ⊙ (g - ⟨y, g⟩)')
    """
    place = (rule.__module__, rule.__name__)
    if place not in _FORMULAS:
        lines = (inspect.getdoc(_public(rule)) or "").splitlines()
        first = lines[0] if lines else ""
        back = [" ".join(x.split()) for x in lines if x.startswith("    ") and _WAY_BACK.search(x)]
        _FORMULAS[place] = first, "; ".join(back) or (first if _WAY_BACK.search(first) else "")
    return _FORMULAS[place]


_FORMULAS: dict[tuple[str, str], tuple[str, str]] = {}
_WAY_BACK = re.compile("∂L/∂|∂y/∂|f′")


def _public(rule: Any) -> Any:
    """The function of the operation's name in the module of its rule, or the rule itself."""
    public = getattr(sys.modules.get(rule.__module__), rule.__name__, None)
    return public if callable(public) else rule


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
