"""Demos · Learn: one check of one file, and whatever goes wrong there as one sentence.

`run` checks the file in another process, which is interrupted when its time is up, and killed if it
goes on. Its stdout is what the file prints. The answer is written to a file that `run` has named,
so nothing that the learner's file prints, also at its end, can be taken for it.
"""

from __future__ import annotations

import _thread
import contextlib
import importlib
import io
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from json import dumps, loads
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import NamedTuple, NoReturn

from demos.learn import EXERCISES
from demos.learn._telling import Unsolved
from demos.learn.exercises import number

SECONDS = 10.0  # how long a check may take; checks/NAME.py may have a SECONDS of its own
KILLED = 3.0  # seconds later a file is killed that goes on when it is interrupted
LETTERS, LINES = 4000, 20  # how much is shown of what a file prints, and of its warnings
INIT = "`python -m demos learn init FOLDER` writes it as it was given"
REMARKS = {
    "EOFError": "nobody can answer input() here, so write the value into the file",
    "RecursionError": "a function calls itself too often",
    "ModuleNotFoundError": "the exercises need no more than numpy and minigrad",
    "read-only": "an array that you are given stays as it is: += and the like would write to it",
}


class Answer(NamedTuple):
    """The answer of a check: whether the exercise is solved, and the reason if it is not."""

    solved: bool
    said: str = ""
    kind: str = ""  # "value", "derivative", "law", or "" if the check did not get so far
    warned: tuple[str, ...] = ()
    printed: str = ""


def shortened(text: str) -> str:
    """Return the first lines of a text, and "…" in the place of the others."""
    text = text.rstrip()
    first = "".join(text[:LETTERS].splitlines(keepends=True)[:LINES])
    return text if first == text else f"{first.rstrip()}\n…"


def shown(answer: Answer) -> Answer:
    """Return an answer with its texts as short as they are shown."""
    warned = shortened("\n".join(answer.warned)).splitlines()
    said, printed = shortened(answer.said), shortened(answer.printed)
    return Answer(answer.solved, said, answer.kind, tuple(warned), printed)


def limit_of(name: str) -> float:
    """Return how many seconds the check of an exercise may take."""
    check = importlib.import_module(f"demos.learn.checks.{name}")
    return getattr(check, "SECONDS", SECONDS)


def not_interrupted(seconds: float) -> str:
    """Return what is said of a file that goes on when its time is up."""
    still = f"still at work after {seconds + KILLED:g} s, and nothing interrupts it"
    return f"{still}: does a loop catch every exception?"


# ---------------------------------------------------------------- in this process


def text_of(path: Path) -> str:
    """Return the text of the learner's file; raise Unsolved if there is none."""
    if not path.exists():
        raise Unsolved(f"{path.name} is not there: {INIT}")
    if not path.is_file():  # (a device may have no end)
        raise Unsolved(f"{path.name} is a folder or a device: rename it, and {INIT}")
    text = path.read_text("utf-8-sig", "replace")
    if "\0" in text:
        raise Unsolved(f"{path.name} has null bytes, as UTF-16 has: save the file as UTF-8")
    return text


def loaded(text: str, path: Path) -> ModuleType:
    """Return the learner's text as a module, which may import the other files of its folder."""
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    module.__dict__["__text__"] = text
    known = set(sys.modules)
    folder = str(path.parent)
    sys.path.append(folder)  # at the end, where no file of the learner's hides one of Python's
    try:
        exec(compile(text, str(path), "exec", dont_inherit=True), module.__dict__)
    finally:
        sys.path.remove(folder)
        for name in {*EXERCISES} & set(sys.modules) - known:  # another folder has them, too
            del sys.modules[name]
    return module


def judged(path: Path, name: str, text: str | None = None) -> Answer:
    """Return the answer of an exercise's check for the learner's file, in this process."""
    check = importlib.import_module(f"demos.learn.checks.{name}").check
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            check(loaded(text_of(path) if text is None else text, path))
            answer = Answer(True)
        except Unsolved as unsolved:
            answer = Answer(False, str(unsolved), unsolved.kind)
        except (Exception, SystemExit) as error:
            answer = Answer(False, _explained(error, path))
    theirs = [warning for warning in caught if Path(warning.filename).parent == path.parent]
    lines = [f"{Path(w.filename).name}, line {w.lineno}: {w.message}" for w in theirs]
    return answer._replace(warned=tuple(" ".join(line.split()) for line in dict.fromkeys(lines)))


def _explained(error: BaseException, path: Path) -> str:
    """Return an exception as one sentence: the learner's line, and the exception's own words."""
    if isinstance(error, SyntaxError):  # with Python's mark below its line
        code = "".join(traceback.format_exception_only(error)[1:-1])
        where = f"{Path(error.filename or path).name}, line {error.lineno or 1}"
        return f"{where}: {type(error).__name__}: {error.msg}\n{code}".rstrip()
    words = " ".join(" ".join([str(error), *getattr(error, "__notes__", ())]).split())
    sentence = f"{type(error).__name__}: {words}".removesuffix(": ")
    remark = next((REMARKS[sign] for sign in REMARKS if sign in sentence), "")
    if isinstance(error, ModuleNotFoundError) and error.name in EXERCISES:
        remark = f"exercise {number(error.name)} is used here: {INIT}"
    if remark:
        sentence += f" ({remark})"
    asked = vars(error).get("asked", "")  # (demos/learn/_telling.py puts it there)
    if asked:
        asked += ".\n"
    # (The engine says of which VJP NumPy's complaint is; the learner's line is in its cause.)
    places = _places(error, path) or _places(error.__cause__, path)
    if not places and re.match("the (rule|VJP of) ", str(error)):  # the engine has refused it
        return f"{asked}{path.name}: {words}"
    where = places[-1] if places else f"the check cannot go on with what {path.name} gives it"
    return f"{asked}{where}: {sentence}"


def _places(error: BaseException | None, path: Path) -> list[str]:
    """Return the places of a traceback that are in the learner's folder, the last one innermost."""
    frames = traceback.extract_tb(error.__traceback__) if error else []
    places = []
    for frame in frames:
        file = Path(frame.filename)
        if file.parent == path.parent:
            function = "" if frame.name == "<module>" else f", in {frame.name}"
            places.append(f"{file.name}, line {frame.lineno}{function}")
    return places


Clock = Callable[[str, float], AbstractContextManager[object]]  # for a file, and its seconds


def in_time(path: Path, name: str, seconds: float, clock: Clock) -> Answer:
    """Return `judged` of a file, or where it was when the clock interrupted it.

    `clock(file, seconds)` is a block in which KeyboardInterrupt is raised after these seconds.
    """
    begin = monotonic()
    try:
        with clock(str(path), seconds):
            return judged(path, name)
    except BaseException as error:  # a KeyboardInterrupt, or what `judged` does not catch
        sentence = _explained(error, path)
        if monotonic() - begin >= seconds:
            where = [path.name, *_places(error, path)][-1]
            still = f"still at work after {seconds:g} s, and stopped there: does a loop never end?"
            sentence = f"{where}: {still}"
        return Answer(False, sentence)


# ---------------------------------------------------------------- in a process of its own


@contextlib.contextmanager
def as_ctrl_c(file: str, seconds: float) -> Iterator[None]:
    """Interrupt this process after some seconds, as if Ctrl-C were pressed."""
    clock = threading.Timer(seconds, _thread.interrupt_main)
    clock.daemon = True
    clock.start()
    try:
        yield
    finally:
        clock.cancel()


class Printed(io.TextIOBase):
    """A stdout that passes the first letters on, and forgets those that follow."""

    left = 2 * LETTERS  # (so `shortened` sees that something follows)

    def write(self, text: str) -> int:
        """Print as much of the text as is left."""
        print(text[: self.left], end="", file=sys.__stdout__)
        self.left = max(self.left - len(text), 0)
        return len(text)


def main(file: str, name: str, seconds: float, to: str) -> NoReturn:
    """Judge a file, write the answer to another one, and end the process."""
    path = Path(file)
    printed = Printed()
    importlib.import_module(f"demos.learn.checks.{name}")  # (and NumPy, before the clock)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # (a shell may have turned it off)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        answer = in_time(path, name, seconds, as_ctrl_c)
    Path(to).write_text(dumps(answer), encoding="utf-8")
    os._exit(0)  # the learner's threads and functions of `atexit` are not waited for


def run(path: Path, name: str, *, seconds: float | None = None) -> Answer:
    """Return the answer of an exercise's check for the learner's file, from another process."""
    limit = seconds or limit_of(name)
    printed = ""
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder, "answer.json")
        words = ("-u", "-B", "-m", "demos.learn._running", str(path), name, str(limit), str(to))
        try:
            done = subprocess.run(
                [sys.executable, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                errors="replace",
                cwd=Path(__file__).parents[2],
                check=False,
                timeout=limit + KILLED,
            )
            printed = done.stdout
            sentence = f"the process ended with {done.returncode} before the check had an answer"
        except subprocess.TimeoutExpired:
            sentence = not_interrupted(limit)
        try:
            solved, sentence, kind, warned, _ = loads(to.read_text("utf-8"))
        except (OSError, TypeError, ValueError):  # there is no answer, or it is not one
            return shown(Answer(False, f"{path.name}: {sentence}", printed=printed))
    return shown(Answer(solved, sentence, kind, tuple(warned), printed))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4])
