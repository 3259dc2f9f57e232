"""Pictures · Random numbers that both languages draw alike: `draws.js` draws the same."""

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def uniform(seed: int, count: int) -> Array:
    """Return numbers in [0, 1) by mulberry32: hashes of a counter that grows by 0x6D2B79F5."""
    state = np.uint32(seed) + np.uint32(0x6D2B79F5) * np.arange(1, count + 1, dtype=np.uint32)
    t = (state ^ (state >> 15)) * (state | 1)  # (uint32 wraps around at 2³², as it should)
    t = (t + (t ^ (t >> 7)) * (t | 61)) ^ t
    return (t ^ (t >> 14)) / 2.0**32


def normal(seed: int, count: int) -> Array:
    """Return numbers of mean 0 and variance 1 by Box-Muller: two from each two uniform ones."""
    one, other = uniform(seed, count).reshape(-1, 2).T
    length, angle = np.sqrt(-2 * np.log(1 - one)), 2 * np.pi * other
    return np.stack([length * np.cos(angle), length * np.sin(angle)], axis=-1).ravel()
