"""Demos · Learn: what a check can say of an answer.

A check says what to look at, and not the answer. Its sentences are of three kinds: a value that is
another one, a derivative that a finite difference contradicts, and a law that is broken.
"""

from __future__ import annotations

import ast
import functools
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from demos.learn.exercises import stub
from minigrad import GradientError, Tensor, gradcheck
from minigrad.engine.slips import TURNED
from minigrad.engine.tensor import read_only


class Unsolved(Exception):
    """An exercise is not solved: one sentence why. `kind` is "value", "derivative" or "law"."""

    def __init__(self, sentence: str, kind: str = "") -> None:
        super().__init__(sentence)
        self.kind = kind


@contextmanager
def asking(asked: str) -> Iterator[None]:
    """Name the call that was asked for, if the learner's code raises an exception in this block.

    NumPy's words on shapes give way to ours, if the function has a `.T` and a stack of matrices.
    """
    try:
        yield
    except Exception as error:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            arrays = [x for x in frame.f_locals.values() if isinstance(x, np.ndarray)]
            turned = "T" in frame.f_code.co_names and any(x.ndim > 2 for x in arrays)
            if turned and isinstance(error, ValueError):
                error.args = (TURNED,)
        vars(error)["asked"] = asked
        raise


def given(answer: ModuleType, name: str) -> Any:
    """Return the learner's object of this name; raise Unsolved if it is missing or still empty."""
    file = Path(answer.__file__ or "").name
    if not hasattr(answer, name):
        raise Unsolved(f"{file} defines no {name}: it was there at the beginning")
    line = _empty(getattr(answer, "__text__", ""), name, stub(Path(file).stem))
    if line:
        raise Unsolved(f"the lines of {name} are still to be written: {file}, line {line}")
    function = getattr(answer, name)
    if not isinstance(function, FunctionType):
        return function

    @functools.wraps(function)
    def called(*inputs: Any, **options: Any) -> Any:  # with views of arrays that are read-only
        views = (read_only(x) if isinstance(x, np.ndarray) else x for x in inputs)
        return function(*views, **options)

    return called


def _empty(text: str, name: str, given_text: str) -> int:
    """Return the first line of the definition of `name` that is a `...` of ours; 0 if none is."""
    empty = {line.strip() for line in given_text.splitlines() if "..." in line}
    lines = text.splitlines()
    for node in ast.parse(text).body:
        targets = [getattr(target, "id", "") for target in getattr(node, "targets", [])]
        if name in (getattr(node, "name", ""), *targets):
            for n in range(node.lineno, node.end_lineno + 1):
                if lines[n - 1].strip() in empty:
                    return n
    return 0


def same(asked: str, got: Any, expected: Any, *, rtol: float = 1e-7) -> None:
    """Raise Unsolved unless got equals expected: first in its shape, then in every element.

    `asked` is the call as the learner would type it. Elements may differ by `rtol` of the largest
    expected one. Several results are compared as tuples.
    """
    if isinstance(expected, tuple):
        got = results(asked, got, len(expected))
        for i, (mine, ours) in enumerate(zip(got, expected, strict=True)):
            same(f"result {i} of {asked}", mine, ours, rtol=rtol)
        return
    ours = np.asarray(expected.data if isinstance(expected, Tensor) else expected, float)
    mine = shaped(asked, got, ours.shape).astype(float)
    size = np.abs(ours[np.isfinite(ours)]).max(initial=0.0)
    wrong = ~np.isclose(mine, ours, rtol=0.0, atol=rtol * size + 1e-12, equal_nan=True)
    if not wrong.any():
        return
    if not ours.ndim:
        raise Unsolved(f"{asked} is {_short(mine)}; {_short(ours)} was expected", "value")
    with np.errstate(invalid="ignore"):
        apart = np.where(wrong, np.nan_to_num(np.abs(mine - ours), nan=np.inf), -1.0)
    worst = np.unravel_index(int(apart.argmax()), ours.shape)
    raise Unsolved(
        f"{asked} differs in {wrong.sum()} of {wrong.size} elements: element {place(worst)} is "
        f"{_short(mine[worst])}; {_short(ours[worst])} was expected",
        "value",
    )


def place(index: Any) -> list[int]:
    """Return an index as a learner would write it."""
    return [int(i) for i in index]


def numbers(x: Any, form: str = ".4g") -> str:
    """Return the numbers of an array as text."""
    return ", ".join(f"{number:{form}}" for number in np.ravel(x))


def returned(asked: str, got: Any) -> None:
    """Raise Unsolved if the learner's function returned nothing."""
    if got is None:
        raise Unsolved(f"{asked.rstrip(',')} returned None: is a return missing?", "value")


def results(asked: str, got: Any, count: int) -> Any:
    """Return the results. Raise Unsolved if there are not `count` of them."""
    returned(asked, got)
    if not isinstance(got, tuple | list) or len(got) != count:
        many = isinstance(got, tuple | list) and len(got) != 1
        came = f"{len(got)} results" if many else "1 result, " + _kind(got)
        raise Unsolved(f"{asked} should return {count} results; it returned {came}", "value")
    return got


def array(asked: str, got: Any, shape: tuple[int, ...]) -> Any:
    """Return the result. Raise Unsolved unless it is an array of numbers, and of this shape."""
    shaped(asked, got, shape)
    if not isinstance(got, np.ndarray | np.generic):
        raise Unsolved(f"{asked} is {_kind(got)}; an array was expected", "value")
    return got


def tensor(asked: str, got: Any, shape: tuple[int, ...], back_to: str) -> Tensor:
    """Return the result. Raise Unsolved unless it is a Tensor of numbers, and of this shape."""
    shaped(asked, got, shape)
    if not isinstance(got, Tensor):
        sentence = f"{asked} is {_kind(got)}, not a Tensor: the gradient of {back_to} is lost"
        raise Unsolved(sentence, "value")
    return got


def _kind(value: Any) -> str:
    """Return the kind of a value in words: an array, a Tensor, a list, …"""
    if isinstance(value, np.ndarray | np.generic):
        return "an array"
    kind = type(value).__name__
    return f"an {kind}" if kind[0] in "aeiou" else f"a {kind}"


def shaped(asked: str, got: Any, shape: tuple[int, ...]) -> Any:
    """Return the result as an array. Raise Unsolved unless it has numbers, and this shape."""
    returned(asked, got)
    if isinstance(got, tuple) and any(map(callable, got)):
        sentence = f"{asked} is a tuple with a function in it: is @primitive missing above it?"
        raise Unsolved(sentence, "value")
    try:
        mine = np.asarray(got.data if isinstance(got, Tensor) else got)
        if mine.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        sentence = f"{asked} is {_short(got)}, which is neither a number nor an array of numbers"
        raise Unsolved(sentence, "value") from None
    if mine.shape != shape:
        sentence = f"{asked} has the shape {mine.shape}; the shape {shape} was expected"
        raise Unsolved(sentence, "value")
    return mine


def _short(value: Any) -> str:
    """Return a value in a few letters."""
    if isinstance(value, float | np.floating) or (isinstance(value, np.ndarray) and not value.ndim):
        return f"{float(value):.6g}"
    text = " ".join(repr(value).split())
    return text if len(text) < 60 else f"{text[:57]}…"


def right_derivatives(
    operation: Callable[..., Any],
    *inputs: Any,
    value: Any = None,
    order: int = 2,
    asked: str = "",
    laws: Callable[[], None] | None = None,
    **options: Any,
) -> None:
    """Raise Unsolved, in gradcheck's own sentences, unless the operation's derivatives are right.

    `asked` is the call as the learner would type it. If the operation's `value` is given, it is
    checked first. If gradcheck has no diagnosis, `laws` is called: a law that is broken says more
    than two numbers that differ. Other options are the operation's.
    """
    called = functools.partial(operation, **options)
    if value is not None:
        same(asked, called(*inputs), value)
    lines = [f"{asked}."] if asked else []
    # (The checks draw their inputs with the number 0, and so does gradcheck its g. If g equals an
    # input, Aᵀ G is symmetric, and a transposed gradient looks right.)
    rng = np.random.default_rng(43)
    try:
        report = gradcheck(called, *inputs, order=order, rng=rng)
    except GradientError as error:
        sentences = _worth_telling(error)
        if not error.diagnoses and laws is not None and "gradient is nan" not in sentences[-1]:
            laws()
        raise Unsolved("\n".join(lines + sentences), "derivative") from None
    except Exception as error:
        # What the engine refuses. (What NumPy does not do, inside a VJP, keeps its own line.)
        if error.__cause__ or not str(error).startswith("the VJP of"):
            vars(error)["asked"] = asked
            raise
        lines.append(str(error)[0].upper() + str(error)[1:])
        raise Unsolved("\n".join(lines), "derivative") from None
    if not report:
        lines.append(f"A finite difference is too coarse to tell here: {report.unresolved[0]}")
        raise Unsolved("\n".join(lines), "derivative")


def _worth_telling(error: GradientError) -> list[str]:
    """Return gradcheck's sentences without its table, and its heading only if it is needed."""
    compared = error.elements
    message = str(error)
    heading, *rest = message.removesuffix(compared.table if compared else "").splitlines()
    if error.diagnoses:
        return rest
    if error.rule is None or compared is None or error.order == 2 or not compared.differing:
        return [*rest, heading]
    place = ""
    if compared.index:
        place = f" Element {compared.index} is one of those that are furthest off."
    numbers = (
        f"the gradient is {compared.analytic:.6g}, "
        f"and a central difference {compared.numerical:.6g}"
    )
    return [*rest, f"{compared.how_many}.{place} There {numbers}."]


def law(sentence: str, holds: bool, seen: str) -> None:
    """Raise Unsolved unless the law holds; `seen` is what was found instead."""
    if not holds:
        raise Unsolved(f"{sentence}. But {seen}", "law")
