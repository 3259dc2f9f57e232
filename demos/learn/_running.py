"""Demos · Learn: one check in a process of its own, and whatever goes wrong there as one sentence.

The learner's file may loop for ever, end the process or print without end. So it runs in another
process, `python -m demos.learn._running FILE NAME`, whose standard output is kept for the answer,
one line of JSON: what the file prints goes to standard error. If the time is up, the interpreter
writes where the file was, and ends.
"""

from __future__ import annotations

import ast
import contextlib
import faulthandler
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import warnings
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, NamedTuple

from demos.learn import EXERCISES
from demos.learn.exercises import number

ROOT = Path(__file__).parents[2]
SECONDS = 10.0  # how long a check may take; checks/NAME.py may have a SECONDS of its own
HARD = 150.0  # after so many seconds the process is killed, whatever it says
MEMORY = 2 << 30  # bytes
LINES, WIDTH = 20, 200  # how much is shown of what a file prints
LETTERS = 600  # and of the words of an exception
HERE = "<your file>"


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
    known, folder = dict(sys.modules), str(path.parent)
    sys.modules[path.stem] = module  # where a dataclass looks for its module
    sys.path.append(folder)  # at the end, where no file of the learner's hides one of Python's
    try:
        # (Without its name, since Python takes the line of a SyntaxError from the file of this
        # name, which may have been saved again meanwhile.)
        tree = ast.parse(text, HERE)
        exec(compile(tree, str(path), "exec", dont_inherit=True), module.__dict__)
    finally:
        sys.path.remove(folder)
        del sys.modules[path.stem]
        sys.modules.update({path.stem: known[path.stem]} if path.stem in known else {})
        for name in set(sys.modules) - set(known):  # another folder may have others of these names
            if getattr(sys.modules[name], "__file__", None) == str(path.parent / f"{name}.py"):
                del sys.modules[name]
    return module


def judged(path: Path, name: str, text: str | None = None) -> Answer:
    """Return the answer of an exercise's check for the learner's file, in this process."""
    from demos.learn._telling import During, Unsolved

    check = importlib.import_module(f"demos.learn.checks.{name}").check
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            text = _read(path) if text is None else text
            check(loaded(text, path))
            answer = Answer(True)
        except Unsolved as unsolved:
            answer = Answer(False, str(unsolved), unsolved.kind)
        except SyntaxError as error:
            answer = Answer(False, _unreadable_syntax(error, path))
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            byte = error.object[error.start]
            answer = Answer(
                False,
                f"{path.name}, line {line}: the byte {byte:#x} is not UTF-8: save the file as "
                "UTF-8, which every editor offers",
            )
        except FileNotFoundError as error:
            gone = error.filename == str(path)
            answer = Answer(False, _missing(path, name) if gone else _explained(error, path))
        except OSError as error:
            own = error.filename == str(path)
            said = f"{path.name} cannot be read: {error.strerror}"
            answer = Answer(False, said if own else _explained(error, path))
        except During as during:
            asked, error = str(during), during.__cause__ or during
            answer = Answer(False, f"{asked}.\n{_explained(error, path)}")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            answer = Answer(False, _explained(error, path))
    theirs = [each for each in caught if Path(each.filename).parent == path.parent]
    said = [f"{Path(w.filename).name}, line {w.lineno}: {w.message}" for w in theirs]
    return answer._replace(warned=tuple(dict.fromkeys(said)))


def _read(path: Path) -> str:
    """Return the text of a Python file."""
    content = path.read_bytes()
    try:
        return decode_source(content)
    except SyntaxError:  # (so Python calls bytes in the first two lines that are not UTF-8)
        content.decode()
        raise


def _missing(path: Path, name: str) -> str:
    return f"{path.name} is not there: --reset {int(name[1:3])} writes it as it was given"


def _unreadable_syntax(error: SyntaxError, path: Path) -> str:
    """Return the sentence of a SyntaxError, with its line and a mark below."""
    own = error.filename in (None, HERE, str(path))
    file = path.name if own else Path(error.filename or "").name
    said = f"{file}, line {error.lineno or 1}: {type(error).__name__}: {error.msg}"
    code = (error.text or "").rstrip("\n")
    if not code:
        return said
    shown = code.lstrip()
    at = max((error.offset or 1) - 1 - (len(code) - len(shown)), 0)
    end = error.end_offset if error.end_lineno == error.lineno else None
    marks = max((end or 0) - (error.offset or 0), 1)
    return f"{said}\n    {shown}\n    {' ' * at}{'^' * min(marks, max(len(shown) - at, 1))}"


REMARKS = {
    "EOFError": "nobody can answer input() here, so write the value into the file",
    "RecursionError": "a function calls itself too often",
    "MemoryError": f"a check has {MEMORY >> 30} GB",
    "ModuleNotFoundError": "the exercises need no more than numpy and minigrad",
}


def printable(text: str) -> str:
    """Return a text without characters that move the cursor of a terminal, or clear it."""
    return "".join(c if c.isprintable() or c in "\n\t" else "�" for c in text)


def _explained(error: BaseException, path: Path) -> str:
    """Return an exception as one sentence: the learner's line, and the exception's own words."""
    kind = "MemoryError" if isinstance(error, MemoryError) else type(error).__name__
    try:
        words = printable(" ".join(str(error).split()))
    except Exception:
        words = ""
    words = words if len(words) <= LETTERS else f"{words[:LETTERS]}…"
    if isinstance(error, SystemExit):
        kind, words = "the file ends the program", "without sys.exit() the check could go on"
    remark = REMARKS.get(kind)
    if "read-only" in words:
        remark = "an array that you are given stays as it is: += and the like would write to it"
    if isinstance(error, ModuleNotFoundError) and error.name in EXERCISES:
        remark = (
            f"exercise {number(error.name)} is used here: --reset {number(error.name)} writes it"
        )
    words = " ".join([words, *getattr(error, "__notes__", ())]).strip()
    said = f"{kind}: {words}" if words else kind
    said += f" ({remark})" * bool(remark)
    lines = _own_lines(error.__traceback__, path)
    if not lines and error.__cause__:  # the engine has said of which VJP NumPy's complaint is
        lines = _own_lines(error.__cause__.__traceback__, path)
    if not lines and re.match("the (rule|VJP of) ", words):  # the engine has refused it
        return f"{path.name}: {words}"
    if not lines:
        return f"the check cannot go on with what {path.name} gives it: {said}"
    file, line, function = lines[-1]
    where = f"{file}, line {line}" + f", in {function}" * (function != "<module>")
    first = lines[0]
    if first[:2] != (file, line) and kind != "RecursionError":
        where += f", called from line {first[1]}" + f" of {first[0]}" * (first[0] != file)
    return f"{where}: {said}"


def _own_lines(trace: TracebackType | None, path: Path) -> list[tuple[str, int, str]]:
    """Return the places of a traceback that are in the learner's folder: file, line, function."""
    found = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if Path(code.co_filename).parent == path.parent:
            found.append((Path(code.co_filename).name, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    return found


# ---------------------------------------------------------------- in a process of its own


def main() -> None:
    """Judge a file, and write the answer to what was standard output when we began."""
    sys.stdout.flush()
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the file prints goes where errors go
    path, name = Path(sys.argv[1]), sys.argv[2]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 0.0
    check = importlib.import_module(f"demos.learn.checks.{name}")  # (and NumPy, before the clock)
    seconds = seconds or getattr(check, "SECONDS", SECONDS)
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    faulthandler.enable(channel)
    faulthandler.dump_traceback_later(seconds, exit=True, file=channel)
    answer = judged(path, name)
    faulthandler.cancel_dump_traceback_later()
    channel.write(f"\n{json.dumps(answer._asdict())}\n")
    channel.flush()
    sys.stdout.flush()
    os._exit(0)  # threads that the file began would keep the process


def run(path: Path, name: str, *, seconds: float | None = None) -> Answer:
    """Return the answer of an exercise's check for the learner's file, from a separate process."""
    command = [sys.executable, "-P", "-B", "-u", "-m", "demos.learn._running", str(path), name]
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [*command, *([str(seconds)] if seconds else [])],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=path.parent,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUTF8": "1"},
        start_new_session=True,  # so that Ctrl-C reaches this process alone, which ends the other
    )
    code = None
    try:
        told, printed = _Reader(process.stdout), _Reader(process.stderr)
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(HARD)
    finally:
        _end(process)
    answer = _answer(path, told.text(), code)
    return answer._replace(printed=printed.beginning())


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process, and all that it began."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


class _Reader(threading.Thread):
    """A thread that reads a pipe to its end, and keeps the first megabyte."""

    def __init__(self, pipe: IO[bytes] | None) -> None:
        super().__init__(daemon=True)
        self.pipe, self.kept, self.lines = pipe, b"", 0
        self.start()

    def run(self) -> None:
        """Read to the end, so that the process never waits until somebody reads."""
        assert self.pipe is not None
        with self.pipe:
            while chunk := os.read(self.pipe.fileno(), 1 << 16):
                self.lines += chunk.count(b"\n")
                if len(self.kept) < 1 << 20:
                    self.kept += chunk

    def text(self) -> str:
        """Return the text that was kept."""
        self.join(1.0)
        return self.kept.decode("utf-8", "replace")

    def beginning(self) -> str:
        """Return the first lines, and the number of those that follow."""
        lines = self.text().splitlines()
        shown = [line[:WIDTH] for line in lines[:LINES]]
        more = max(self.lines, len(lines)) - len(shown)
        return printable("\n".join([*shown, *[f"… and {more:,} more lines"] * bool(more)]))


def _answer(path: Path, told: str, code: int | None) -> Answer:
    """Return the answer that a process has told, or say how it ended (None: we ended it)."""
    answers = [line for line in told.splitlines() if line.startswith("{")]
    if answers:
        found = json.loads(answers[-1])
        return Answer(**found | {"warned": tuple(found["warned"])})
    places = re.findall(r'^ +File "([^"]*)", line (\d+) in (\S+)', told, re.MULTILINE)
    own = [place for place in places if Path(place[0]).parent == path.parent]
    where = path.name
    if own:
        file, line, function = own[0]
        where = f"{Path(file).name}, line {line}" + f", in {function}" * (function != "<module>")
    late = re.search(r"Timeout \((\S+?)\)!", told)
    if late or code is None:
        hours, minutes, seconds = (float(x) for x in late[1].split(":")) if late else (0, 0, HARD)
        took = 3600 * hours + 60 * minutes + seconds
        said = f"{where}: still at work after {took:g} s, and stopped there: does a loop never end?"
        return Answer(False, said)
    how = f"with the exit code {code}"
    if code < 0:
        how = f"by the signal {-code} ({signal.strsignal(-code)})"
    return Answer(False, f"{where}: the process ended {how} before the check had an answer")


if __name__ == "__main__":
    main()
