"""Names: what a drawing calls each tensor.

A terminal has the names of the program, and t and a number for the rest: `t3`. A page has what a
person would say: q·kᵀ. Tensors of one name are numbered, x#1 and x#2, so that each name is one
tensor's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set

from minigrad.graphs.model import Vertex

LONGEST = 12  # characters of a composed name


def unique_names(vertices: Sequence[Vertex]) -> list[str]:
    """Return a name for each vertex, to be used in text: its title, or t and its number.

    If several have the title x, they are x#1, x#2, and so on. A small constant is called by its
    values.
    """
    values = {v.title for v in vertices if v.kind == "constant" and v.title != "constant"}
    titles = []
    for v in vertices:
        plain = f"t{v.number}" if v.operation else f"{v.kind} {v.shape}"
        titles.append(v.title if v.named or v.title in values else plain)
    return numbered(titles, values - {v.title for v in vertices if v.named})


def spoken(vertices: Sequence[Vertex]) -> list[str]:
    """Return what a person calls each tensor: its name, or one composed of up to twelve characters.

    The result of q @ k.mT is called q·kᵀ. If that is too long, the name has only the last
    input: × c. The result of a layer that is one operation is called by the layer's name, as its
    box is.
    """
    names: list[str] = []
    inside = Counter(s for v in vertices if v.operation and not v.facts.moves for s in v.modules)
    composed: set[int] = set()  # names of several letters, which may need brackets
    shortened: set[int] = set()  # of × c nothing can be composed
    for v in vertices:
        inputs = [names[i] for i in v.inputs]
        layer = next((scope.path for scope in v.modules if inside[scope] == 1), "")
        unknown = {vertices[i].operation for i in v.inputs if not vertices[i].named} & {*inputs}
        if layer and not v.facts.moves:
            names.append(layer)
            continue
        if v.named or not v.facts.said or unknown or (v.facts.moves and not v.transposes):
            names.append(v.title)
            continue
        whole, short = _composed(v.facts.said, inputs, [i in composed for i in v.inputs])
        if shortened & {*v.inputs}:
            whole = ""
        name = next((x for x in (whole, short) if 0 < len(x) <= LONGEST), v.operation)
        if name != whole:
            shortened.add(v.number)
        elif re.search("[ ·]", whole):
            composed.add(v.number)
        names.append(name)
    constants = {v.title for v in vertices if v.kind == "constant" and not v.named}
    return numbered(names, constants - {"constant"})


def _composed(said: str, inputs: Sequence[str], long: Sequence[bool]) -> tuple[str, str]:
    """Return a name composed of the inputs' names, and a short one; "" if there is no short one.

    `said` is how a person writes the result (`Facts`). `long` says which inputs have names of
    several letters: these stand in brackets where they could be misread.
    """
    short = ""
    if len(inputs) > 1:
        short = said.removeprefix("{}").strip().format(inputs[-1])
    elif said[0] != "{":
        short = said.split()[0]  # Σ, mean
    if said == "{} × {}" and all(x.isalpha() and len(x) == 1 for x in inputs):
        return "{} {}".format(*inputs), short  # w x, as on paper
    names = []
    for position, name in enumerate(inputs):
        is_sum = " + " in name or " - " in name
        binds = said in ("{}ᵀ", "{}·{}") or (said == "{} / {}" and position == 1)
        parts = said not in ("{} + {}", "{} - {}") or (said == "{} - {}" and position == 1)
        needed = long[position] and (binds or (is_sum and parts))
        names.append(f"({name})" if needed else name)
    return said.format(*names), short


def numbered(titles: Sequence[str], alone: Set[str] = frozenset()) -> list[str]:
    """Return the titles, and x#1, x#2, … for those that occur several times (but for `alone`)."""
    count = Counter(titles)
    met = Counter[str]()
    names = []
    for title in titles:
        met[title] += 1
        is_one = count[title] == 1 or title in alone
        names.append(title if is_one else f"{title}#{met[title]}")
    return names
