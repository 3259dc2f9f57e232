"""16.8 · Results: what is left of a sweep that was killed.

A sweep (chapter 16.11) may take an hour. What is left when it is killed after fifty minutes? All
that it had measured, if each result is written as soon as it is known, to the end of one file. The
file is text, one line of JSON for each result. Its first line says which sweep it belongs to:

    {"sweep": {"measure": "attention.scaling.saturation", "seed": 0, …}, "crc32": 2391417437}
    {"settings": {"d_k": 4, "repeat": 0}, "result": {"d_k": 4, "entropy": 0.67, …}, "crc32": …}

What can happen to such a file, and what `results_file` does about it:

    the program was killed inside a line   The last line has no end: it is dropped, and its cell
                                           is measured again.
    the disk is full                       The part of a line that was written is taken back, and
                                           the sweep stops with a sentence.
    two programs write to one file         The first locks it, and the second is refused. (The
                                           system releases the lock of a program that was killed.)
    it belongs to another sweep            It is refused, and the sentence says what differs. The
                                           code counts too: after any change in `attention/` or
                                           `minigrad/`, even of a comment, nobody can know whether
                                           an old result is still right. (What else your own file
                                           imports does not count, see chapter 16.9.)
    somebody changed a line                Its checksum `crc32` no longer fits, and the sentence
                                           says which line it is.
    two files were put into one            A line that is not a result is refused. Equal lines are
                                           one result, and different ones of a cell are refused.
    it is removed while the sweep runs,    The sweep stops with a sentence at the next result.
    or another program changes it

A result is a frozen dataclass, as `Saturation` of chapter 16 is. Its fields are numbers, text,
other such dataclasses, and lists or tuples of them. JSON keeps each float64 exactly, because Python
writes the shortest decimal number that is read back as the same one:

    >>> from attention.laboratory.results import as_text, from_text
    >>> from attention.scaling import saturation
    >>> measured = saturation(4, 0.5, queries=32, rng=np.random.default_rng(0))
    >>> from_text(type(measured), as_text(measured)) == measured
    True

NaN and infinity are kept too, as the words NaN and Infinity. Python reads them back; a program that
follows JSON's standard to the letter may refuse them.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import zlib
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import UnionType
from typing import Any, BinaryIO, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

try:
    import fcntl
except ImportError:  # on Windows, where nobody notices that two programs write to one file
    fcntl = None  # type: ignore[assignment]

Record = dict[str, Any]
Result = TypeVar("Result")


class SweepError(RuntimeError):
    """A sweep cannot begin, or cannot go on: one sentence for the person who started it."""


class LostFile(SweepError):
    """What a sweep has measured is not kept in its file any more."""


@contextlib.contextmanager
def results_file(
    path: str | Path, about: Record
) -> Iterator[tuple[list[Record], Callable[[Record], None]]]:
    """Open the file of the sweep `about`: what it holds already, and a function that appends.

    A file that does not exist, or is empty, begins with `about`. SweepError if the file cannot be
    written, is being written by another program, belongs to another sweep, or is damaged; then its
    bytes are as they were.
    """
    path = Path(path)
    with contextlib.closing(_opened(path)) as file:
        first = _line({"sweep": about})
        content = file.read()
        if first.startswith(content):  # it is new, or its first line is torn
            content, records = b"", []
        else:
            # What follows the last end of a line is torn.
            content = content[: content.rfind(b"\n") + 1]
            records = _read(path, content, about)
        file.truncate(len(content))
        file.seek(len(content))

        def append(record: Record) -> None:
            _write(path, file, _line(record))

        if not content:
            append({"sweep": about})
        yield records, append


def as_text(result: object) -> str:
    """A result as JSON; TypeError if `from_text` would not give the same result back."""
    if not is_dataclass(result) or isinstance(result, type):
        raise TypeError(f"a measurement returns a dataclass: got {type(result).__name__}")
    kind = type(result)
    values = _plain(result, kind.__name__)
    text = json.dumps(values)
    back = from_text(kind, text)
    for name, returned in _plain(back, kind.__name__).items():
        if repr(value := values[name]) != repr(
            returned
        ):  # (a repr has every digit, and NaN is NaN)
            raise TypeError(
                f"{kind.__name__}.{name} would not come back: {value!r} would be {returned!r}"
            )
    return text


def from_text(kind: type[Result], text: str) -> Result:
    """The result of the class `kind` whose fields stand in a JSON text.

    JSON has no tuples and no dataclasses. A field that is declared as one gets one, and so does
    what is inside it.
    """
    return _built(kind, json.loads(text))  # type: ignore[no-any-return]


# A first reading may stop here. What follows is how a line and a file are written and read.


def _plain(value: Any, where: str) -> Any:
    """A field's value, if JSON can write it; a NumPy number becomes Python's, exactly."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in (list, tuple):
        return type(value)(_plain(each, where) for each in value)
    if is_dataclass(value) and not isinstance(value, type):
        return {
            each.name: _plain(getattr(value, each.name), f"{where}.{each.name}")
            for each in fields(value)
        }
    if type(value) not in (bool, int, float, str, type(None)):
        remedy = ": use .tolist()" if isinstance(value, np.ndarray) else ""
        raise TypeError(
            f"{where} must be a number, text, or a list of them: got {type(value).__name__}{remedy}"
        )
    return value


def _built(kind: Any, values: Record) -> Any:
    """The dataclass `kind` with these fields, as JSON has them."""
    hints = get_type_hints(kind)
    own = {each.name for each in fields(kind) if not each.init}  # such fields set themselves
    given = {name: value for name, value in values.items() if name not in own}
    return kind(**{name: _typed(hints[name], value) for name, value in given.items()})


def _typed(hint: Any, value: Any) -> Any:
    """A value from JSON, with the tuples and dataclasses that its declaration asks for."""
    if not isinstance(value, list | dict):
        return value
    kind, inner = get_origin(hint), get_args(hint)
    if kind in (Union, UnionType):  # such as tuple[float, ...] | None
        of_several = (each for each in inner if get_origin(each) or is_dataclass(each))
        return _typed(next(of_several, None), value)
    if isinstance(value, dict):
        return _built(hint, value) if is_dataclass(hint) else value
    if kind is tuple:
        each = [inner[0]] * len(value) if inner[-1] is Ellipsis else inner
        return tuple(_typed(h, v) for h, v in zip(each, value, strict=True))
    return [_typed(inner[0] if inner else None, each) for each in value]


def _line(record: Record) -> bytes:
    """A record with its checksum, as a line of the file."""
    checksum = zlib.crc32(json.dumps(record).encode())
    return json.dumps(record | {"crc32": checksum}).encode() + b"\n"


def _record(line: bytes) -> Record | None:
    """The record of a line; None if it is not a line that was written here."""
    try:
        record = json.loads(line)
        del record["crc32"]
        return record if _line(record) == line + b"\n" else None
    except (ValueError, TypeError, KeyError, RecursionError):
        return None


def _opened(path: Path) -> BinaryIO:
    """The file, locked, open for reading from its beginning and for writing at its end."""
    if not path.parent.is_dir():
        raise SweepError(f"there is no folder {path.parent} to write {path.name} to")
    with contextlib.ExitStack() as stack:
        try:
            # Without a buffer: what is written is out of the program's hands at once.
            file = stack.enter_context(open(path, "a+b", buffering=0))
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SweepError(f"{path} is not a regular file")
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SweepError(f"another sweep is writing to {path}: wait for its end") from None
        except OSError as error:
            raise SweepError(f"{path} cannot be written: {error.strerror}") from None
        stack.pop_all()  # from here on the caller closes it
    file.seek(0)
    return file


def _read(path: Path, content: bytes, about: Record) -> list[Record]:
    """The records of a file of whole lines, if they are of the sweep `about`."""
    first, *lines = content.split(b"\n")[:-1] or [b""]
    header = _record(first)
    if header is None or list(header) != ["sweep"] or not isinstance(header["sweep"], dict):
        raise SweepError(f"{path} is not a file of results, or its first line is damaged")
    if differences := _differences(header["sweep"], about):
        raise SweepError(
            f"{path} belongs to another sweep ({'; '.join(differences)}): "
            "remove this file, or choose another path (for a demo another folder, with --out)"
        )
    records = []
    for number, line in enumerate(lines, start=2):
        record = _record(line)
        if record is None:
            raise SweepError(
                f"line {number} of {path} is damaged: remove this line, and its cell is measured "
                "again"
            )
        if list(record) != ["settings", "result"]:
            raise SweepError(f"line {number} of {path} does not hold a result: remove this line")
        records.append(record)
    return records


def _differences(there: Record, here: Record) -> list[str]:
    """The parts in which two descriptions of sweeps differ; parts of parts one by one."""
    found = []
    for name in there | here:
        one, other = there.get(name), here.get(name)
        if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
            found += _differences(one, other)
        elif (said := json.dumps(one)) != json.dumps(other):
            found.append(f"{name} is {said} there and {json.dumps(other)} here")
    return found


def _write(path: Path, file: BinaryIO, line: bytes) -> None:
    """Append a line, or nothing."""
    size, links = os.fstat(file.fileno()).st_size, os.fstat(file.fileno()).st_nlink
    if links == 0:
        raise LostFile(f"{path} was removed while the sweep ran, and its results are lost")
    if size != file.tell():
        raise LostFile(f"{path} was changed by another program while the sweep ran")
    rest = line
    try:
        while rest:  # (a full disk takes a part of the line, and refuses the rest)
            rest = rest[file.write(rest) :]
    except OSError as error:
        with contextlib.suppress(OSError):
            file.truncate(size)
        raise SweepError(f"{path} cannot be written: {error.strerror}") from None
