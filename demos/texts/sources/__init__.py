"""Demos · The five source texts: what each of them prints, as text, and ours beside it.

A number counts as reproduced if it comes out the same *as text*: every digit that the source
prints, formatted as its library formats it. So each of the modules here holds

    TITLE          what the text is
    PRINTED        a name → the numbers printed under it, as they are in the text
    ours()         a name → our array of the same numbers, computed with this project; it leaves
                   out those names of PRINTED of which nothing is computed
    as_text        how the text's library prints an array
    LOST           a name of PRINTED whose numbers cannot come back → which these are, and why
    COMPLETED      the steps that the text leaves undone and our demo does, a sentence each
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from attention import MultiHeadAttention
from minigrad import Tensor

Pair = tuple[str, str | None]  # a printed number and ours; None if it is not computed


def parsed(printed: str) -> np.ndarray:
    """Return the numbers that a text prints under one name, in one row."""
    return np.array(printed.split(), dtype=float)


def compared(text: ModuleType) -> dict[str, tuple[tuple[int, ...], list[Pair]]]:
    """Return the shape and the pairs of numbers of each array that the text prints."""
    arrays = {}
    ours = text.ours()
    for name, printed in text.PRINTED.items():
        theirs: list[str] = printed.split()
        if name in ours:
            pairs = list(zip(theirs, text.as_text(ours[name]), strict=True))
            arrays[name] = ours[name].shape, pairs
        else:
            arrays[name] = (len(theirs),), [(number, None) for number in theirs]
    return arrays


def counted(text: ModuleType) -> tuple[int, int]:
    """Count the text's printed numbers that come back as text, and all that it prints."""
    pairs = [pair for _, pairs in compared(text).values() for pair in pairs]
    return sum(theirs == ours for theirs, ours in pairs), len(pairs)


def returning(text: ModuleType) -> int:
    """Count the text's printed numbers without those that are lost."""
    return sum(len(text.PRINTED[name].split()) for name in text.PRINTED.keys() - text.LOST.keys())


def as_numpy_prints(array: np.ndarray) -> list[str]:
    """Return the array's numbers as NumPy prints them, to 8 digits, each as its own text."""
    text = np.array2string(
        array,
        max_line_width=10_000,
        precision=8,
        suppress_small=False,
        separator=" ",
        threshold=10**6,
        sign="-",
        floatmode="maxprec",
    )
    return text.replace("[", " ").replace("]", " ").split()


def as_torch_prints(array: np.ndarray) -> list[str]:
    """Return the array's numbers as PyTorch prints them where none is large: with four decimals."""
    return [f"{number:.4f}" for number in np.ravel(array)]


def agreeing(printed: str, ours: list[str]) -> int:
    """Count the numbers of a printed array that are the same text in ours."""
    return sum(a == b for a, b in zip(printed.split(), ours, strict=True))


def of_weights(layer: MultiHeadAttention, **options: Any) -> Callable[..., Tensor]:
    """Return the layer as a function of its input and its four weights, which gradcheck needs."""

    def f(x: Tensor, *weights: Tensor) -> Tensor:
        projections = (layer.w_q, layer.w_k, layer.w_v, layer.w_o)
        for projection, weight in zip(projections, weights, strict=True):
            projection.weight = weight
        return layer(x, **options)

    return f
