"""Cache: keys and values that are not computed again.

What does a model compute again and again while it writes a text? Under a causal mask a position
sees only itself and those before it. So its key and its value are the same in every later step, and
a layer that keeps them computes only those of the new position: for a text of n tokens n positions
instead of 1 + 2 + … + n = n (n + 1) / 2.

Why are the queries not kept? A query is used once, for the output at its own position. That output
stays as it is, and later positions look at the key and the value there, and never at the query.

One new position needs no mask: it may see everything before it. Several at once do:
mask=causal_mask(T, cache.length + T), without which each would see those after it.

    >>> import numpy as np
    >>> from attention import MultiHeadAttention, causal_mask
    >>> from attention.cache import KVCache
    >>> from minigrad import no_grad
    >>> layer = MultiHeadAttention(6, 3, rng=np.random.default_rng(0))
    >>> x = Tensor(np.random.default_rng(1).standard_normal((2, 5, 6)))
    >>> whole, cache = layer(x, mask=causal_mask(5)), KVCache()
    >>> with no_grad():
    ...     steps = [layer(x[:, :2], mask=causal_mask(2), cache=cache)]      # two at once
    ...     steps += [layer(x[:, 2:4], mask=causal_mask(2, 4), cache=cache)]
    ...     steps += [layer(x[:, 4:], cache=cache)]                          # one
    >>> cache.length, np.allclose(np.concatenate(steps, axis=1), whole)
    (5, True)
"""

from __future__ import annotations

from typing import Any

from minigrad import Tensor, concatenate


class KVCache:
    """The keys and values of the positions that a layer has seen, for use in later steps.

    k, v  Tensors (…, H_kv, S, d_k) and (…, H_kv, S, d_v), or None as long as the cache is empty
    real  which of the S positions are tokens, boolean (B, S), if the model was given padding; None
          if all are. The model keeps it here and masks the keys of padding in each later step

    They stay right if the mask is causal, the parameters do not change and there is no dropout.
    Pass the same cache to the same layer at each step, with the new positions alone (another batch
    or layer needs another cache), and do so under `no_grad()`: with recording on, the cache would
    keep the record of every step.
    """

    def __init__(self) -> None:
        self.k: Tensor | None = None
        self.v: Tensor | None = None
        self.real: Any = None

    @property
    def length(self) -> int:
        """The number of positions that the cache holds."""
        return 0 if self.k is None else self.k.shape[-2]

    def joined(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Return the keys and values of all positions, the new ones last, for the layer to set."""
        if self.k is None or self.v is None:
            return k, v
        return concatenate([self.k, k], axis=-2), concatenate([self.v, v], axis=-2)
