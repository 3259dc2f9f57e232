"""Live · Definitions: a reader's lines take the place of a definition, wherever it is known.

A function is known in its module, in modules that import it, in tables, defaults and closures. So
the old function gets the new one's code, which reaches all of them.
"""

from __future__ import annotations
import __future__  # (the module, for the flag that our files are compiled with)

import ast
import importlib
import textwrap
import traceback
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from demos.live import _chapter_0, _judging, _loop
from demos.live._answers import OWN
from demos.live._examples import (
    RUNS,
    Post,
    Printed,
    Spaces,
    examples_of,
    executed,
    remember,
    same,
    sentence,
    trace,
)

Place = tuple[str, str]  # a module, and the name of a definition in it: "softmax", "Value.__init__"
LINES: dict[Place, str] = {}  # what readers have put in its place
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)


def define(message: dict[str, Any], post: Post, spaces: Spaces) -> dict[str, Any] | None:
    """Put `message["define"]` in the place of `message["name"]` of `message["of"]`; judge it.

    The answer, or None after {failed}, is the verdict of _judging.py, and

        examples  those of the page that no longer print what the book says, in their order: what
                  is typed, and what is printed now
        loop      of chapter 0's `backward`: its steps, and what is said of them (_loop.py)
    """
    place = message["of"], message["name"]
    try:
        put(place, message["define"])
    except BaseException as error:
        post(failed=sentence(error), trace=trace(error))
        return None
    of, name = place
    others = [
        dotted for other, dotted in LINES if (other, dotted) != place and is_new(other, dotted)
    ]
    loop = None
    if place == ("minigrad.idea", "backward"):
        loop = _loop.walked() | {"text": message["define"]}
        if loop["is_endless"]:  # (what runs it again would not end, either)
            nothing = {"reason": "", "numbers": None, "message": "", "picture": None}
            heading = {"right": False, "heading": loop["says"], "examples": []}
            return nothing | heading | {"loop": loop}
    if of == "minigrad.idea":
        verdict = _chapter_0.judged(name, alone=not others)
    else:
        verdict = _judging.judged(of, name)
    examples = list(changed(of))
    if verdict["right"]:
        yours, books = values(place, message["define"])
        verdict |= of_the_value(verdict["heading"], yours, books, len(examples))
    elif verdict["numbers"]:
        yours, books = values(place, message["define"])
        if differs(yours, books):
            verdict["reason"] = (
                f"The value is not the book's: {both_values(yours, books)} A VJP belongs to a "
                f"value, so look at that first. {verdict['reason']}"
            )
    if others and not verdict["right"]:
        told = f"Look at your other lines that are in use: {', '.join(others)}."
        verdict["reason"] = f"{verdict['reason']} {told}".lstrip()
    return verdict | {"examples": examples, "loop": loop}


def values(place: Place, text: str) -> tuple[float, float]:
    """Return what the small program computes with a reader's lines, and with the book's."""
    of, name = place
    computed = []
    for lines in (lines_of(of, name), text):  # (at the end the reader's are in use)
        put(place, lines)
        in_chapter_0 = of == "minigrad.idea"
        computed.append(_chapter_0.end() if in_chapter_0 else _judging.end(of, name))
    books, yours = computed
    return yours, books


def differs(yours: float, books: float) -> bool:
    """Return whether two results of the small program differ by more than rounding."""
    return not np.isclose(yours, books, rtol=1e-6, atol=0)


def both_values(yours: float, books: float) -> str:
    """Return a sentence that says what the small program computes."""
    return f"The small program's L is {yours:.4g}, and {books:.4g} with our lines."


def of_the_value(heading: str, yours: float, books: float, changed: int) -> dict[str, Any]:
    """Return what a verdict says instead if the derivatives are right, and the value is not.

    changed  how many examples of the page print something else
    """
    fault, reasons = "not all is as in the book", []
    if differs(yours, books):
        fault = "it computes something else"
        reasons.append(both_values(yours, books))
    if changed == 1:
        reasons.append("An example of this page prints something else.")
    elif changed:
        reasons.append(f"{changed} examples of this page print something else.")
    if not reasons:
        return {}
    heading = f"{heading.removesuffix('.')}, but {fault}."
    return {"right": None, "heading": heading, "reason": " ".join(reasons)}


def is_new(of: str, name: str) -> bool:
    """Return whether lines that are in use say something else than the book's."""
    yours, books = (ast.parse(textwrap.dedent(x)) for x in (LINES[of, name], lines_of(of, name)))
    return ast.dump(yours) != ast.dump(books)


def judges(of: str, name: str) -> bool:
    """Return whether a small program uses a definition, so that something can be told of it."""
    if of == "minigrad.idea":
        return name not in ("", "main")
    return _judging.program_for(of, name) is not None


def put(place: Place, text: str) -> None:
    """Execute lines in the module of a definition, and let them take its place.

    Where they fail, the module's names and the definition are as they were.
    """
    of, dotted = place
    module = importlib.import_module(of)
    *around, name = dotted.split(".")
    owner: Any = module
    for part in around:
        owner = getattr(owner, part)
    names, before = dict(vars(module)), LINES.get(place) or lines_of(*place)
    try:
        made = made_by(textwrap.dedent(text), module, dotted)
        if name not in made:
            raise NameError(f"these lines define nothing that is called {name}")
        new = made.pop(name)
        if owner is module:
            vars(module).update(made)  # (what the lines define beside it)
        take_place(owner, name, new)
        decorate_again(place)
    except BaseException:  # (the lines, or a decorator that they define)
        vars(module).clear()
        vars(module).update(names)
        take_place(owner, name, made_by(textwrap.dedent(before), module, dotted)[name])
        decorate_again(place)
        raise
    LINES[place] = text


def take_place(owner: Any, name: str, new: Any) -> None:
    """Let a new definition do what a module or a class has an old one for.

    TypeError if it cannot: other modules know the old one. (Chapter 0 alone knows its own.)
    """
    if replaced_in_place(vars(owner)[name], new):
        return
    if isinstance(owner, ModuleType) and owner.__name__ != "minigrad.idea":
        raise TypeError(
            f"these lines make another kind of thing than the book's {name}: is its decorator "
            "missing?"
        )
    setattr(owner, name, new)


def decorate_again(place: Place) -> None:
    """Put the functions that a definition decorates in their own places."""
    of, decorator = place
    for name in decorated(of, decorator):
        put((of, name), LINES.get((of, name)) or lines_of(of, name))


def made_by(text: str, module: ModuleType, dotted: str) -> dict[str, Any]:
    """Return what lines define when they are executed in a module. (`global` changes it.)

    The lines of a method are executed in a class of the same name.
    """
    file = f"{OWN}{dotted}, {next(RUNS)}>"
    remember(file, text)
    tree = ast.parse(text, file)
    *around, _ = dotted.split(".")
    if around:
        wrapper: Any = ast.parse(f"class {around[-1]}: pass").body[0]
        wrapper.body = tree.body
        tree.body = [wrapper]
    made: dict[str, Any] = {}
    flags = __future__.annotations.compiler_flag  # (as in every module of ours)
    exec(compile(tree, file, "exec", flags, dont_inherit=True), vars(module), made)
    return dict(vars(made[around[-1]])) if around else made


def replaced_in_place(old: Any, new: Any) -> bool:
    """Make an old function or class do what a new one does; return whether that is possible."""
    if isinstance(old, type) and isinstance(new, type):
        for name, method in vars(new).items():
            if not isinstance(method, FunctionType):
                continue
            if not replaced_in_place(vars(old).get(name), method):
                setattr(old, name, method)
        return True
    if not (isinstance(old, FunctionType) and isinstance(new, FunctionType)):
        return False
    names = old.__code__.co_freevars
    if names != new.__code__.co_freevars or old.__globals__ is not new.__globals__:
        return False
    old.__code__ = new.__code__
    old.__defaults__, old.__kwdefaults__ = new.__defaults__, new.__kwdefaults__
    old.__dict__.update(new.__dict__)
    for cell, other in zip(old.__closure__ or (), new.__closure__ or (), strict=True):
        cell.cell_contents = other.cell_contents
    return True


def decorated(of: str, decorator: str) -> Iterator[str]:
    """Yield the name of each function of a module that is decorated by another."""
    for node in source(of).body:
        if isinstance(node, ast.FunctionDef):
            parts = [part for each in node.decorator_list for part in ast.walk(each)]
            if decorator in [part.id for part in parts if isinstance(part, ast.Name)]:
                yield node.name


def text_of(of: str) -> str:
    """Return the text of a module's file."""
    spec: Any = importlib.import_module(of).__spec__
    return str(spec.loader.get_source(of))


def source(of: str) -> ast.Module:
    """Return a module's file, parsed."""
    return ast.parse(text_of(of))


def lines_of(of: str, dotted: str) -> str:
    """Return the lines of a definition as they stand in its file, without its docstring."""
    node: Any = source(of)
    for part in dotted.split("."):
        node = next(x for x in node.body if isinstance(x, DEFINITIONS) and x.name == part)
    first = min(each.lineno for each in [node, *node.decorator_list])
    said: Any = node.body[0] if ast.get_docstring(node) is not None else None
    skipped = range(said.lineno, said.end_lineno + 1) if said else range(0)
    numbers = range(first, (node.end_lineno or first) + 1)
    lines = text_of(of).splitlines()
    kept = [lines[n - 1] for n in numbers if n not in skipped]
    return textwrap.dedent("\n".join(kept)) + "\n"


def changed(of: str) -> Iterator[dict[str, str]]:
    """Yield each example of a module's page that does not print what stands in the book."""
    space = Spaces()[of]
    for docstring in docstrings(source(of)):
        for step in examples_of(docstring, f"example, run {next(RUNS)}"):
            out, example = Printed(lambda **_: None), step.example
            error = executed(step.code, space, out, out.post)
            printed, want = out.taken(), example.want
            if error is not None:
                words = traceback.format_exception_only(error)[-1]
                printed, want = words, example.exc_msg or ""
            if not same(printed, example, want):
                now = printed if error is None else printed.partition("\n")[0]
                yield {"typed": example.source, "now": now}
            if error is not None and not example.exc_msg:
                break  # (what follows in the docstring lacks what this line makes)


def docstrings(node: Any) -> Iterator[str]:
    """Yield the docstrings of a module and of what it defines, in the order of its page."""
    yield ast.get_docstring(node) or ""
    for each in node.body:
        if isinstance(each, DEFINITIONS):
            yield from docstrings(each)
