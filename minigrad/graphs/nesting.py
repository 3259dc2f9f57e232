"""5.3 · Nesting: the operations of a pass, by the layers that called them.

What does a network look like from outside? As a block, and then another block; and inside of a
block, as an attention layer and a feed-forward layer. `Steps` knows for each operation which layers
were being called (chapter 5.14). Operations of one call follow each other, so the list of
operations is turned into a tree by opening a group where a call begins, and closing it where it
ends.

    >>> from minigrad.graphs.model import Scope
    >>> from minigrad.graphs.nesting import nested
    >>> block, norm = Scope("blocks.0", "Block"), Scope("blocks.0.norm", "LayerNorm")
    >>> root = nested([10, 11, 12, 13], [(), (block,), (block, norm), (block,)])
    >>> root.items[0], root.items[1].scope.path, root.items[1].items[1].items
    (10, 'blocks.0', [12])
    >>> list(root.operations()), root.items[1].items[1].name_within(root.items[1])
    ([10, 11, 12, 13], 'norm')
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from minigrad.graphs.model import Scope


@dataclass
class Group:
    """The operations (by number) of one call of a layer, and the groups of the layers it calls."""

    scope: Scope | None  # None for all that is outside of every layer
    items: list[Item] = field(default_factory=list)

    def operations(self) -> Iterator[int]:
        """All operations in it, in order."""
        stack: list[Item] = [self]
        while stack:
            item = stack.pop()
            if isinstance(item, int):
                yield item
            else:
                stack += reversed(item.items)

    @property
    def path(self) -> str:
        """The layer's dotted name, without the number of the call."""
        return "" if self.scope is None else self.scope.layer

    @property
    def stem(self) -> str:
        """The layer's class, and its name without numbers: equal layers have equal ones."""
        return "" if self.scope is None else f"{self.scope.kind} {re.sub('[0-9]+', '', self.path)}"

    def name_within(self, parent: Group) -> str:
        """The layer's name as the layer around it calls it."""
        assert self.scope is not None
        return self.scope.path.removeprefix(f"{parent.path}.")


Item = Group | int


def nested(operations: Sequence[int], scopes: Sequence[tuple[Scope, ...]]) -> Group:
    """The tree of operations whose scopes are known, for each the outermost first.

    A call is one group, also if something from elsewhere stands between its operations.
    """
    root = Group(None)
    groups: dict[tuple[Scope, ...], Group] = {(): root}
    for operation, around in zip(operations, scopes, strict=True):
        for depth, scope in enumerate(around):
            if around[: depth + 1] not in groups:
                groups[around[: depth + 1]] = Group(scope)
                groups[around[:depth]].items.append(groups[around[: depth + 1]])
        groups[around].items.append(operation)
    return root


def inside(item: Item) -> list[int]:
    """The operations of an item."""
    return [item] if isinstance(item, int) else list(item.operations())
