"""Live · Examples: run a block of the book, or a reader's own lines, and compare what it prints.

Doctest itself takes a block apart and compares. Nothing here knows of JavaScript or of a page.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import doctest
import importlib
import io
import linecache
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

Post = Callable[..., None]  # sends its keywords as one message
Space = dict[str, Any]
Files = dict[Path, tuple[int, int]]  # of each file: its time and its size

LETTERS = 20_000  # how much of what a block prints is sent
TRACE = 4_000  # letters of a traceback
PAUSE = 0.05  # seconds between two messages with output
PRELUDE = """import numpy as np
from minigrad import *
from minigrad.nn import *
from minigrad.optim import *
from attention import *"""  # what every example may use
TEXTS = (".svg", ".html", ".json", ".dot", ".txt", ".csv")  # files that are sent as text
OPTIONS = doctest.NORMALIZE_WHITESPACE
RUNS = count(1)


class Spaces(dict[str, Space]):
    """The namespace of each page: its module's names, and those that every example may use."""

    def __missing__(self, module: str) -> Space:
        space: Space = {}
        exec(PRELUDE, space)
        # (After it: on the page of chapter 0, softmax is chapter 0's.)
        space |= vars(importlib.import_module(module)) | {"__name__": "__main__"}
        self[module] = space
        return space


class Step(NamedTuple):
    """One example of a block, or one statement of plain code."""

    code: CodeType
    example: doctest.Example | None  # what the book says, if it says something
    above: int  # how many lines of the block stand above its text


class Printed(io.TextIOBase):
    """The stdout of a block: it sends its text on, a few times a second, and not too much of it."""

    def __init__(self, post: Post) -> None:
        self.post = post
        self.printed: list[str] = []  # since the last `taken`
        self.waiting: list[str] = []
        self.left, self.last, self.is_cut = LETTERS, 0.0, False

    def write(self, text: str) -> int:
        """Keep the text; send what waits if it ends a line and the last message was a while ago."""
        kept = text[: self.left]
        self.left -= len(kept)
        if kept:
            self.printed.append(kept)
            self.waiting.append(kept)
        if len(kept) < len(text) and not self.is_cut:
            self.is_cut = True
            self.waiting.append(f"\n… (only the first {LETTERS:,} letters are shown)\n")
            self.flush()
        elif kept.endswith("\n") and time.monotonic() - self.last > PAUSE:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what waits."""
        if self.waiting:
            self.post(out="".join(self.waiting))
        self.waiting, self.last = [], time.monotonic()

    def taken(self) -> str:
        """Send what waits, and return what was printed since the last call."""
        self.flush()
        text, self.printed = "".join(self.printed), []
        return text


def run(message: dict[str, Any], post: Post, spaces: Spaces) -> bool:
    """Run a block; return whether all that it printed is what stands in the book."""
    space, before, right = spaces[message["of"]], files(), True
    # (A name of its own, since the lines of a name are remembered.)
    name = f"{message.get('name', 'example')}, run {next(RUNS)}"
    try:
        steps = list(taken_apart(message["run"], name))
    except Exception as error:  # (of doctest too, and of lines that are too long for Python)
        post(failed=sentence(error), trace=trace(error))
        return False
    above = {step.code.co_filename: step.above for step in steps}
    out = Printed(post)
    for i, step in enumerate(steps):
        post(begin=i)
        example = step.example
        error = executed(step.code, space, out, post, before if example is None else None)
        printed = out.taken()
        if error is not None:
            words = traceback.format_exception_only(error)[-1]
            if not (example and example.exc_msg and same(words, example, example.exc_msg)):
                post(failed=sentence(error, above), trace=trace(error))
                right = False
                break
            post(out=f"Traceback (most recent call last):\n    ...\n{words}")
        elif example is not None and not same(printed, example):
            post(differs=i)
            right = False
    show(before, post)
    return right


def executed(
    code: CodeType, space: Space, out: Printed, post: Post, before: Files | None = None
) -> BaseException | None:
    """Execute a statement whose value is printed, as Python's prompt does; return its error.

    before  for a reader's own lines: the files before the run. The path of a newer one is not
            printed, since the file is shown
    """

    def display(value: Any) -> None:
        if value is None:
            return
        if before is not None and isinstance(value, Path) and value.resolve() in newer(before):
            return
        space["_"] = value
        print(repr(value))
        picture = getattr(value, "_repr_svg_", None)
        if picture and not isinstance(value, type) and (svg := picture()):
            out.flush()
            post(shown="picture.svg", text=svg)

    hook, sys.displayhook = sys.displayhook, display
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            exec(code, space)
    except BaseException as error:  # (exit() too: it would end Python)
        return error
    finally:
        sys.displayhook = hook
    return None


def taken_apart(text: str, name: str) -> Iterator[Step]:
    """Yield the examples of a doctest, or the statements of plain code."""
    if text.lstrip().startswith(">>>"):
        yield from examples_of(text, name)
        return
    file = f"<{name}>"
    remember(file, text)
    for node in ast.parse(text, file).body:
        code = compile(ast.Interactive([node]), file, "single", dont_inherit=True)
        yield Step(code, None, 0)


def examples_of(text: str, name: str) -> Iterator[Step]:
    """Yield the examples of a doctest or of a docstring."""
    above = 0
    for i, each in enumerate(doctest.DocTestParser().get_examples(text)):
        file = f"<doctest {name}[{i}]>"  # (the names and lines that doctest gives)
        remember(file, each.source)
        yield Step(compile(each.source, file, "single", dont_inherit=True), each, above)
        above += each.source.count("\n")


def same(printed: str, example: doctest.Example, want: str = "") -> bool:
    """Return whether doctest takes what was printed for what stands in the book.

    In a browser NumPy's integers have 32 bits, and NumPy says so where the book has 64.
    """
    options = OPTIONS
    for flag, is_on in example.options.items():
        options = options | flag if is_on else options & ~flag
    check = doctest.OutputChecker().check_output
    with_64 = printed.replace(", dtype=int32", "").replace("int32", "int64")
    return any(check(want or example.want, text, options) for text in (printed, with_64))


def remember(file: str, text: str) -> None:
    """Give a text a file name under which tracebacks and graphs find its lines."""
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


def sentence(error: BaseException, above: Mapping[str, int] | None = None) -> str:
    """Return an exception as one sentence: the reader's line, and the exception's own words.

    An error that says more, in lines, is returned in lines.

    above  of each text of a block, by its file name: how many lines of the block stand above it.
           A line in another text, as in a function of another block, is not named
    """
    frames = traceback.extract_tb(error.__traceback__)
    known = {f.filename: 0 for f in frames if is_readers(f.filename)} if above is None else above
    lines = [known[f.filename] + (f.lineno or 1) for f in frames if f.filename in known]
    said = str(error)
    if isinstance(error, SyntaxError):
        said = error.msg
        lines = lines or [error.lineno or 1]
    words = " ".join([said, *getattr(error, "__notes__", ())])
    if "\n" not in said.strip():
        words = " ".join(words.split())
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {words}".removesuffix(": ")


def trace(error: BaseException) -> str:
    """Return a traceback that begins in the reader's lines, shortened in its middle."""
    tb = error.__traceback__
    while tb and not is_readers(tb.tb_frame.f_code.co_filename):
        tb = tb.tb_next
    text = "".join(traceback.format_exception(type(error), error, tb))
    if len(text) > TRACE:
        text = f"{text[: TRACE // 2]}\n…\n{text[-TRACE // 2 :]}"
    return text


def is_readers(file: str) -> bool:
    """Return whether a file name is one that `remember` was given, and not Python's own."""
    return file.startswith("<") and file in linecache.cache


def nobody_answers(prompt: object = "", /) -> str:
    """Raise an EOFError, in the place of `input`: a page has no place to answer in."""
    raise EOFError("input() has nobody to answer here: write the value into the lines")


def files() -> Files:
    """Return the files in the working folder and in folders there, with their times and sizes."""
    found = {}
    for path in Path.cwd().rglob("*"):
        if path.is_file():
            found[path] = (path.stat().st_mtime_ns, path.stat().st_size)
    return found


def newer(before: Files) -> list[Path]:
    """Return the files that were written since."""
    return sorted(path for path, state in files().items() if before.get(path) != state)


def show(before: Files, post: Post) -> None:
    """Send each file that was written since."""
    for path in newer(before):
        name = path.relative_to(Path.cwd()).as_posix()
        if path.suffix in TEXTS:
            post(shown=name, text=path.read_text("utf-8", "replace"))
        else:
            post(shown=name, base64=base64.b64encode(path.read_bytes()).decode())
