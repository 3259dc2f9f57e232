"""Demos · The five source texts: what each of them prints, as text, and ours beside it.

A number counts as reproduced if it comes out the same *as text*: every digit that the source
prints, formatted as its library formats it. So each of the modules here holds

    TITLE          what the text is
    PRINTED        a name → the numbers printed under it, as they are in the text
    ours()         a name → our array of the same numbers, computed with this project; it leaves
                   out those names of PRINTED whose numbers cannot come back
    as_text        how the text's library prints an array
    LOST           which numbers cannot come back, and why; and which are taken over from the text
                   and not computed ("" if all of them come back)
    SLIPS          what a reader should know before trusting a line, each with its kind (`Slip`)
    COMPLETED      the steps that the text leaves undone and our demo does, a sentence each
"""

from __future__ import annotations

import io
import sys
import textwrap
from collections.abc import Callable, Iterable
from contextlib import ExitStack, redirect_stdout
from types import ModuleType
from typing import Any, Literal, NamedTuple, TextIO, get_args

import numpy as np

from attention import MultiHeadAttention
from minigrad import Tensor

Kind = Literal["wrong", "unclear", "left open"]
KINDS: tuple[Kind, ...] = get_args(Kind)


class Slip(NamedTuple):
    """A line of a text that can mislead its reader, by its own fault or not.

    wrong      what the text says, prints or runs is not so
    unclear    the text can be read in two ways, or a name says something else
    left open  nothing is wrong: a condition, a choice or a further case is not mentioned
    """

    kind: Kind
    says: str  # what the text says or does, or leaves out
    so: str  # what is so

    @property
    def sentence(self) -> str:
        """Return both parts, one after the other."""
        return f"{self.says} {self.so}"

    def __str__(self) -> str:
        return f"{self.kind}: {self.sentence}"


def kinds(text: ModuleType) -> list[int]:
    """Count the text's slips of each of `KINDS`."""
    return [sum(slip.kind == kind for slip in text.SLIPS) for kind in KINDS]


def numbers(printed: str) -> np.ndarray:
    """Return the numbers that a text prints under one name, in one row."""
    return np.array(printed.split(), dtype=float)


def counted(text: ModuleType) -> tuple[int, int]:
    """Count the text's printed numbers that come back as text, and all that it prints."""
    reproduced = sum(agreeing(text.PRINTED[n], text.as_text(a)) for n, a in text.ours().items())
    return reproduced, sum(len(printed.split()) for printed in text.PRINTED.values())


def as_numpy_prints(array: np.ndarray) -> list[str]:
    """Return the array's numbers as NumPy prints them, to 8 digits, each as its own text."""
    options = {"precision": 8, "suppress_small": False, "floatmode": "maxprec", "sign": "-"}
    text = np.array2string(array, separator=" ", max_line_width=10_000, threshold=10**6, **options)
    return text.replace("[", " ").replace("]", " ").split()


def as_torch_prints(array: np.ndarray) -> list[str]:
    """Return the array's numbers as PyTorch prints them where none is large: with four decimals."""
    return [f"{number:.4f}" for number in np.ravel(array)]


def agreeing(printed: str, ours: list[str]) -> int:
    """Count the numbers of a printed array that are the same text in ours."""
    return sum(a == b for a, b in zip(printed.split(), ours, strict=True))


def say(sentence: str, first: str = "   ", rest: str = "   ") -> None:
    """Print a sentence in lines of 98."""
    print(textwrap.fill(sentence, 98, initial_indent=first, subsequent_indent=rest))


class Doubt(NamedTuple):
    """A slip, with the sentences that show it and the printed computation."""

    slip: Slip
    shown: tuple[str, ...]
    printed: str


class Teller:
    """A printer of a text's slips, one at each call, that keeps what is printed below each.

    The page of the text shows this again, without the pass marks, which have a table (`judged`).
    `bullet` precedes a slip, with its number or without.

        tell = Teller(source.SLIPS)
        tell("a sentence that shows the first slip")
        print("a computation that shows it, too")
        tell.end()  # what is printed from here on belongs to no slip
    """

    def __init__(self, slips: Iterable[Slip], *, bullet: str = "   - ", gap: bool = True) -> None:
        self.doubts: list[Doubt] = []
        self._left, self._bullet, self._gap = iter(slips), bullet, gap
        self._listening = ExitStack()

    def __call__(self, *shown: str) -> None:
        """Print the next slip, and below it the sentences that show it."""
        self.end()
        slip = next(self._left)
        first = self._bullet.format(len(self.doubts) + 1)
        indent = " " * len(first)
        if self._gap:
            print()
        say(str(slip), first, indent)
        for sentence in shown:
            say(sentence, f"{indent}→ ", f"{indent}  ")
        copy = _Copy(sys.stdout)
        self.doubts.append(Doubt(slip, shown, ""))
        self._listening.callback(self._keep, copy)
        self._listening.enter_context(redirect_stdout(copy))

    def end(self) -> None:
        """Stop keeping the printed lines."""
        self._listening.close()

    def _keep(self, copy: io.StringIO) -> None:
        lines = copy.getvalue().split("\n")
        others = "\n".join(line for line in lines if ": expected at " not in line)  # not the marks
        self.doubts[-1] = self.doubts[-1]._replace(printed=textwrap.dedent(others).strip("\n"))


class _Copy(io.StringIO):
    """A stream that keeps a copy of the text it writes to another one (None if that is closed)."""

    def __init__(self, stream: TextIO | None) -> None:
        super().__init__()
        self._stream = stream

    def write(self, text: str) -> int:
        if self._stream is not None:
            self._stream.write(text)
        return super().write(text)

    def flush(self) -> None:
        if self._stream is not None:
            self._stream.flush()


def beside(name: str, printed: str, array: np.ndarray, ours: list[str]) -> str:
    """Put a printed array beside ours, row by row; ours below where that is too wide."""
    width = max(len(number) for number in (*printed.split(), *ours)) + 1
    lines = [f"   {name} {array.shape}"]
    columns = array.shape[-1] if array.ndim else 1
    between = "   ours" if 2 * (8 + columns * width) <= 100 else "\n   ours"
    for start in range(0, len(ours), columns):
        rows = (side[start : start + columns] for side in (printed.split(), ours))
        left, right = ("".join(f"{number:>{width}}" for number in row) for row in rows)
        lines.append(f"   text {left}{between} {right}")
    return "\n".join(lines)


def of_weights(layer: MultiHeadAttention, **options: Any) -> Callable[..., Tensor]:
    """Return the layer as a function of its input and its four weights, which gradcheck needs."""

    def f(x: Tensor, *weights: Tensor) -> Tensor:
        projections = (layer.w_q, layer.w_k, layer.w_v, layer.w_o)
        for projection, weight in zip(projections, weights, strict=True):
            projection.weight = weight
        return layer(x, **options)

    return f
