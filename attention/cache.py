"""13.1 · Cache: keys and values that are not computed again.

What does a model compute again and again while it writes a text? Under a causal mask a position
sees only itself and those before it. So its key and its value are the same in every later step, and
a layer that keeps them needs to compute only those of the new position. The saving is large: for a
text of n tokens a layer computes n positions instead of 1 + 2 + … + n = n (n + 1) / 2.

Legend: B batch, H heads, S keys so far, d_k features of a key.

    >>> import numpy as np
    >>> from attention import MultiHeadAttention, causal_mask
    >>> from attention.cache import KVCache
    >>> from minigrad import no_grad
    >>> layer = MultiHeadAttention(6, 3, rng=np.random.default_rng(0))
    >>> x = Tensor(np.random.default_rng(1).standard_normal((2, 5, 6)))
    >>> whole, cache = layer(x, mask=causal_mask(5)), KVCache()
    >>> with no_grad():
    ...     steps = [layer(x[:, t : t + 1], cache=cache) for t in range(5)]
    >>> cache.length, np.allclose(np.concatenate(steps, axis=1), whole)
    (5, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from minigrad import Tensor, concatenate


class KVCache:
    """The keys and values of the positions that a layer has seen, for use in later steps.

    They stay the same under a causal mask, while the parameters do not change and nothing is
    dropped. Pass the same cache to the same layer at each step, with the new positions alone, under
    `no_grad()`: otherwise the cache holds the record of every step. A cache is for self-attention;
    cross-attention projects the memory anew each time. `GPT.caches` makes one for each block, and
    `generate` (chapter 15.4) uses them. Each call of the layer adds positions, so two threads need
    two caches.
    """

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None

    @property
    def length(self) -> int:
        """How many positions the cache holds."""
        return 0 if self.k is None else self.k.shape[-2]

    def joined(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The keys and values of all positions, the new ones last. The cache stays as it is."""
        if self.k is None or self.v is None:
            return k, v
        if self.k.shape[:-2] != k.shape[:-2]:
            raise ValueError(
                f"the cache holds keys (…, H, S, d_k) of shape {self.k.shape}, the new ones have "
                f"{k.shape}: another batch needs another cache"
            )
        all_k = concatenate([self.k, k], axis=-2)  # (…, S, d_k)
        all_v = concatenate([self.v, v], axis=-2)  # (…, S, d_v)
        return all_k, all_v

    def rewind(self, length: int) -> None:
        """Forget all but the first `length` positions."""
        if not isinstance(length, int | np.integer) or not 0 <= length <= self.length:
            raise ValueError(f"the cache holds {self.length} positions, and not {length}")
        if self.k is not None and self.v is not None:
            self.k, self.v = self.k[..., :length, :], self.v[..., :length, :]


def cached_length(caches: list[KVCache] | None, blocks: Sequence[Any]) -> int:
    """How many positions the caches of some blocks hold, one cache for each block."""
    if caches is not None and len(caches) != len(blocks):
        raise ValueError(f"{len(blocks)} blocks need as many caches: got {len(caches)}")
    return caches[0].length if caches else 0
