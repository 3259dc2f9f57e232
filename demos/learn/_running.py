"""Demos · Learn: one check of one file, and whatever goes wrong there as one sentence.

`run` checks the file in another process, which is interrupted when its time is up, and killed if it
goes on. Its stdout is what the file prints. The answer is written to a file that `run` has named,
and begins with a word that `run` has drawn, so nothing that the learner's file prints or writes,
also at its end, can be taken for it.

In that process the learner's code meets no name of ours: before it begins, `demos` and `tests` go
out of `sys.modules`, and their files cannot be imported or opened any more.
"""

from __future__ import annotations

import _thread
import contextlib
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
from ast import literal_eval
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from time import monotonic
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

from demos.learn._telling import Unsolved
from demos.learn.exercises import COURSES, number, open_course, stub

SECONDS = 10.0  # how long a check may take; checks/NAME.py may have a SECONDS of its own
KILLED = 3.0  # seconds later a file is killed that goes on when it is interrupted
ROOT = Path(__file__).resolve().parents[2]
CLOSED = ("demos", "tests")  # the folders that the learner's code does not see
LETTERS, LINES = 4000, 20  # how much is shown of what a file prints, and of its warnings
START = "from demos.learn._running import main; main()"
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
    state: str = "not yet"  # or "solved", "out of time", "missing", "error", "tampered"


def shortened(text: str) -> str:
    """Return the first lines of a text, and "…" in the place of the others."""
    text = text.rstrip()
    first = "".join(text[:LETTERS].splitlines(keepends=True)[:LINES])
    return text if first == text else f"{first.rstrip()}\n…"


def shown(answer: Answer) -> Answer:
    """Return an answer with its texts as short as they are shown."""
    warned = shortened("\n".join(answer.warned)).splitlines()
    said, printed = shortened(answer.said), shortened(answer.printed)
    return answer._replace(said=said, warned=tuple(warned), printed=printed)


@cache
def check_of(name: str) -> Any:
    """Return the module of an exercise's check, under a name that no import statement can ask for.

    It is not in `sys.modules`, so whoever has its name cannot change its functions.
    """
    file = COURSES[name] / "checks" / f"{name}.py"
    loader = SourceFileLoader(f"the check of {name}", str(file))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def limit_of(name: str) -> float:
    """Return how many seconds the check of an exercise may take."""
    return getattr(check_of(name), "SECONDS", SECONDS)


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
        for name in {*COURSES} & set(sys.modules) - known:  # another folder has them, too
            del sys.modules[name]
    return module


def judged(path: Path, name: str, text: str | None = None) -> Answer:
    """Return the answer of an exercise's check for the learner's file, in this process."""
    check = check_of(name).check
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            check(loaded(text_of(path) if text is None else text, path))
            answer = Answer(True, state="solved")
        except Unsolved as unsolved:
            answer = Answer(False, str(unsolved), unsolved.kind)
        except (Exception, SystemExit) as error:
            answer = Answer(False, _explained(error, path), state="error")
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
    if isinstance(error, ModuleNotFoundError) and error.name in COURSES:
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


def in_time(path: Path, name: str, seconds: float, clock: Clock, text: str | None = None) -> Answer:
    """Return `judged` of a file, or where it was when the clock interrupted it.

    `clock(file, seconds)` is a block in which KeyboardInterrupt is raised after these seconds.
    """
    begin = monotonic()
    try:
        with clock(str(path), seconds):
            return judged(path, name, text)
    except BaseException as error:  # a KeyboardInterrupt, or what `judged` does not catch
        sentence, state = _explained(error, path), "error"
        if monotonic() - begin >= seconds:
            where = [path.name, *_places(error, path)][-1]
            still = f"still at work after {seconds:g} s, and stopped there: does a loop never end?"
            sentence, state = f"{where}: {still}", "out of time"
        return Answer(False, sentence, state=state)


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


class Refuses:
    """The first place where Python looks for a module: it refuses ours."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> None:
        """Raise ModuleNotFoundError for the closed packages."""
        if name.partition(".")[0] in CLOSED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def close_our_files(course: str) -> None:
    """Let no code of this process import `demos` or `tests` any more, or open a check's files.

    A finder can be taken away, and this hook cannot: it has no name, and Python keeps it.
    """
    for module in [x for x in sys.modules if x.partition(".")[0] in CLOSED]:
        del sys.modules[module]
    sys.modules["__main__"] = ModuleType("__main__")
    sys.meta_path.insert(0, Refuses)
    ours = tuple(str(folder) + os.sep for folder in (*(ROOT / name for name in CLOSED), course))

    def look(event: str, arguments: tuple[Any, ...]) -> None:
        if event != "open" or not isinstance(arguments[0], str | bytes | os.PathLike):
            return
        if os.path.realpath(os.fsdecode(arguments[0])).startswith(ours):
            raise PermissionError("the files of the checks are closed while a file is checked")

    sys.addaudithook(look)


def main() -> NoReturn:
    """Judge a file that stdin names, write the answer to another one, and end the process."""
    file, name, course, seconds, wrong, to, word = literal_eval(sys.stdin.read())
    path = Path(file)
    if name not in COURSES:
        open_course(course)
    printed = Printed()
    sys.path[:] = [folder or str(ROOT) for folder in sys.path]  # wherever the learner's code goes
    for used in (name, *getattr(check_of(name), "USES", ())):  # (and NumPy, before the clock)
        check_of(used)
        stub(used)  # (which is remembered: its file is closed next)
    close_our_files(course)
    if path.parent.is_dir():
        os.chdir(path.parent)  # what a file writes beside itself is not written into the project
    signal.signal(signal.SIGINT, signal.default_int_handler)  # (a shell may have turned it off)
    with open(to, "wb", buffering=0) as out:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            answer = in_time(path, name, seconds, as_ctrl_c)
            if wrong and answer.solved and in_time(path, name, seconds, as_ctrl_c, wrong).solved:
                said = f"{path.name}: the check accepts a wrong answer too, after this file has run"
                answer = Answer(False, said, state="tampered")
        # (No function of a module that the learner's code may have replaced.)
        out.write(f"{(word, *answer)!r}".encode())
    os._exit(0)  # the learner's threads and functions of `atexit` are not waited for


def run(path: Path, name: str, *, seconds: float | None = None, wrong: str = "") -> Answer:
    """Return the answer of an exercise's check for the learner's file, from another process.

    If the check accepts a `wrong` answer after the learner's, the state is "tampered".
    """
    limit = seconds or limit_of(name)
    word, printed = os.urandom(16).hex(), ""
    with tempfile.TemporaryDirectory() as folder:
        to = Path(folder, "answer")
        try:
            done = subprocess.run(
                [sys.executable, "-u", "-B", "-c", START],
                input=ascii((str(path), name, str(COURSES[name]), limit, wrong, str(to), word)),
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
                cwd=ROOT,
                check=False,
                timeout=(2 * limit if wrong else limit) + KILLED,
            )
            printed, state = done.stdout, "error"
            sentence = f"the process ended with {done.returncode} before the check had an answer"
        except subprocess.TimeoutExpired:
            sentence, state = not_interrupted(limit), "out of time"
        try:
            text = to.read_text("utf-8")
            if not text.startswith(f"({word!r}, "):
                raise ValueError("this answer is not the check's")
            _, *fields = literal_eval(text)
        except (OSError, SyntaxError, TypeError, ValueError):  # no answer, or not the check's
            return shown(Answer(False, f"{path.name}: {sentence}", printed=printed, state=state))
    return shown(Answer(*fields)._replace(printed=printed))
