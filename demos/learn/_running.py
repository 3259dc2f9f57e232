"""Demos · Learn: one check of one file, and whatever goes wrong there as one sentence.

`run` checks the file in another process, `python -m demos.learn._running FILE NAME SECONDS`, which
is stopped when its time is up, and answers with one line of JSON.
"""

from __future__ import annotations

import _thread
import contextlib
import importlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
import traceback
import warnings
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from demos.learn import EXERCISES
from demos.learn.exercises import number

ROOT = Path(__file__).parents[2]
SECONDS = 10.0  # how long a check may take; checks/NAME.py may have a SECONDS of its own
STARTING = 20.0  # seconds more, in which Python imports NumPy, before the process is killed
LINES, WIDTH = 20, 200  # how much is shown of what a file prints
LETTERS = 600  # and of the words of an exception
REMARKS = {
    "EOFError": "nobody can answer input() here, so write the value into the file",
    "RecursionError": "a function calls itself too often",
    "ModuleNotFoundError": "the exercises need no more than numpy and minigrad",
}


class Answer(NamedTuple):
    """The answer of a check: whether the exercise is solved, and the reason if it is not."""

    solved: bool
    said: str = ""
    kind: str = ""  # "value", "derivative", "law", or "" if the check did not get so far
    warned: tuple[str, ...] = ()
    printed: str = ""


# ---------------------------------------------------------------- in this process


def loaded(text: str, path: Path) -> ModuleType:
    """Return the learner's text as a module, which may import the other files of its folder."""
    module = ModuleType(path.stem)
    module.__file__, module.__dict__["__text__"] = str(path), text
    known, folder = set(sys.modules), str(path.parent)
    sys.modules[path.stem] = module  # where a dataclass looks for its module
    sys.path.append(folder)  # at the end, where no file of the learner's hides one of Python's
    try:
        exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    finally:
        sys.path.remove(folder)
        for name in set(sys.modules) - known:  # another folder may have others of these names
            if Path(getattr(sys.modules[name], "__file__", None) or "").parent == path.parent:
                del sys.modules[name]
    return module


def judged(path: Path, name: str, text: str | None = None) -> Answer:
    """Return the answer of an exercise's check for the learner's file, in this process."""
    from demos.learn._telling import During, Unsolved

    check = importlib.import_module(f"demos.learn.checks.{name}").check
    try:
        text = path.read_bytes().decode("utf-8-sig") if text is None else text
    except FileNotFoundError:
        again = f"--reset {number(name)} writes it as it was given"
        return Answer(False, f"{path.name} is not there: {again}")
    except UnicodeDecodeError as error:
        line, byte = error.object[: error.start].count(b"\n") + 1, error.object[error.start]
        wrong = f"{path.name}, line {line}: the byte {byte:#x} is not UTF-8"
        return Answer(False, f"{wrong}: save the file as UTF-8, which every editor offers")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            check(loaded(text, path))
            answer = Answer(True)
        except Unsolved as unsolved:
            answer = Answer(False, str(unsolved), unsolved.kind)
        except SyntaxError as error:
            answer = Answer(False, _unreadable(error, path))
        except During as during:
            answer = Answer(False, f"{during}.\n{_explained(during.__cause__ or during, path)}")
        except (Exception, SystemExit) as error:
            answer = Answer(False, _explained(error, path))
    theirs = [each for each in caught if Path(each.filename).parent == path.parent]
    said = [f"{Path(w.filename).name}, line {w.lineno}: {w.message}" for w in theirs]
    return answer._replace(warned=tuple(dict.fromkeys(said)))


def _unreadable(error: SyntaxError, path: Path) -> str:
    """Return the sentence of a SyntaxError, with its line and Python's mark below."""
    code = "".join(traceback.format_exception_only(error)[1:-1])
    said = f"{Path(error.filename or path).name}, line {error.lineno or 1}"
    return f"{said}: {type(error).__name__}: {error.msg}\n{code}".rstrip()


def _explained(error: BaseException, path: Path) -> str:
    """Return an exception as one sentence: the learner's line, and the exception's own words."""
    kind = "MemoryError" if isinstance(error, MemoryError) else type(error).__name__
    words = " ".join(str(error).split())
    words = words if len(words) <= LETTERS else f"{words[:LETTERS]}…"
    if isinstance(error, SystemExit):
        kind, words = "the file ends the program", "without sys.exit() the check could go on"
    remark = REMARKS.get(kind)
    if "read-only" in words:
        remark = "an array that you are given stays as it is: += and the like would write to it"
    if isinstance(error, ModuleNotFoundError) and error.name in EXERCISES:
        used = number(error.name)
        remark = f"exercise {used} is used here: --reset {used} writes it"
    words = " ".join([words, *getattr(error, "__notes__", ())]).strip()
    said = f"{kind}: {words}" if words else kind
    said += f" ({remark})" * bool(remark)
    # (The engine says of which VJP NumPy's complaint is; the learner's line is in its cause.)
    lines = _own_lines(error, path) or _own_lines(error.__cause__, path)
    if not lines and re.match("the (rule|VJP of) ", words):  # the engine has refused it
        return f"{path.name}: {words}"
    if not lines:
        return f"the check cannot go on with what {path.name} gives it: {said}"
    where, (first, *_), (last, *_) = _place(lines), lines[0], lines[-1]
    if lines[0][:2] != lines[-1][:2] and kind != "RecursionError":
        where += f", called from line {lines[0][1]}" + f" of {first}" * (first != last)
    return f"{where}: {said}"


def _own_lines(error: BaseException | None, path: Path) -> list[tuple[str, int, str]]:
    """Return the places of a traceback that are in the learner's folder: file, line, function."""
    found, trace = [], error.__traceback__ if error else None
    while trace is not None:
        code = trace.tb_frame.f_code
        if Path(code.co_filename).parent == path.parent:
            found.append((Path(code.co_filename).name, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    return found


def _place(lines: list[tuple[str, int, str]]) -> str:
    """Return the words for the last of these places."""
    file, line, function = lines[-1]
    return f"{file}, line {line}" + f", in {function}" * (function != "<module>")


# ---------------------------------------------------------------- in a process of its own


class Printed(io.StringIO):
    """The first lines that a file prints, and the number of all lines."""

    lines = 0

    def write(self, text: str) -> int:
        """Keep the text, if it is among the first lines."""
        if self.lines <= LINES:
            super().write(text)
        self.lines += text.count("\n")
        return len(text)

    def beginning(self) -> str:
        """Return the first lines, and the number of those that follow."""
        lines = self.getvalue().splitlines()
        shown = [line[:WIDTH] for line in lines[:LINES]]
        more = max(self.lines, len(lines)) - len(shown)
        return "\n".join([*shown, *[f"… and {more:,} more lines"] * bool(more)])


def _late(where: str, seconds: float) -> Answer:
    """Return the answer for a file that is still at work when its time is up."""
    never = f"still at work after {seconds:g} s, and stopped there: does a loop never end?"
    return Answer(False, f"{where}: {never}")


def main(file: str, name: str, seconds: float) -> None:
    """Judge a file, and print the answer."""
    path, printed = Path(file), Printed()
    importlib.import_module(f"demos.learn.checks.{name}")  # (and NumPy, before the clock)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # (a shell may have turned it off)
    clock = threading.Timer(seconds, _thread.interrupt_main)  # as if Ctrl-C were pressed
    clock.daemon = True
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            clock.start()
            answer = judged(path, name)
            clock.cancel()
    except KeyboardInterrupt as late:
        lines = _own_lines(late, path)
        answer = _late(_place(lines) if lines else path.name, seconds)
    print(json.dumps(answer._asdict() | {"printed": printed.beginning()}))


def run(path: Path, name: str, *, seconds: float | None = None) -> Answer:
    """Return the answer of an exercise's check for the learner's file, from another process."""
    check = importlib.import_module(f"demos.learn.checks.{name}")
    seconds = seconds or getattr(check, "SECONDS", SECONDS)
    module = ["-P", "-B", "-m", "demos.learn._running", str(path), name, str(seconds)]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    try:
        done = subprocess.run(
            [sys.executable, *module],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=path.parent,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
            timeout=seconds + STARTING,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _late(path.name, seconds + STARTING)
    if done.returncode or not done.stdout:
        how = f"with the exit code {done.returncode} before the check had an answer"
        return Answer(False, f"{path.name}: the process ended {how}")
    found = json.loads(done.stdout)
    return Answer(**found | {"warned": tuple(found["warned"])})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
