"""9.1 · Saving: a file is written whole or not at all.

What is left when the program that was writing a file is killed half-way? With a plain
`open(path, "wb")`: half a file, under the name of the good file that was there before. So the bytes
are written to a temporary file in the same folder, which is renamed when all of them are on disk.
Renaming within one folder is atomic: a program that opens the name gets the old file or the new
one.

A program that is killed cannot remove its temporary file, so the next one that writes the same name
removes it. How does it know that the file belongs to no living program? A writer locks its
temporary file, and the system releases the lock when a process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows, where files that a killed program left stay
    fcntl = None  # type: ignore[assignment]


def write_whole(path: str | Path, content: bytes | str) -> Path:
    """Write the content to path, whole or not at all, and return the path.

    A file that is replaced keeps its permissions. A symbolic link stays a link, and the file that
    it points to is replaced. OSError, in a sentence, if the folder is missing, or if
    `open(path, "wb")` would not be allowed; then the file that was there is still there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/hello.txt", "hello").read_text()
    'hello'
    """
    path = Path(path)
    target = Path(os.path.realpath(path))
    if target.is_symlink():
        raise OSError(f"{path} is a link that leads back to itself: remove it first")
    if not target.parent.is_dir():
        where = f"{path.parent} to write {path.name} to"
        if path.is_symlink():
            where = f"{target.parent}, to which the link {path} points"
        raise FileNotFoundError(f"there is no folder {where}")
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is not a regular file: it would be replaced by one")
    data = content.encode() if isinstance(content, str) else content
    mode = None
    try:
        if target.exists():
            os.close(os.open(target, os.O_WRONLY))  # may it be written at all?
            mode = target.stat().st_mode
        handle, beside = _temporary(target)
    except PermissionError as error:
        raise PermissionError(f"{path} cannot be written: {error.strerror}") from None
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # on disk before it has the name, not some time after
            if mode is not None:
                os.chmod(beside, mode)
            os.replace(beside, target)  # before the lock is given back
    except BaseException:
        with contextlib.suppress(FileNotFoundError):  # renamed already, or gone with its folder
            os.unlink(beside)
        raise
    return path


def _temporary(target: Path) -> tuple[int, Path]:
    """A new file in target's folder, locked; those that dead programs left there are removed."""
    # (A hash, because the name itself may be as long as names can be.)
    prefix = f".{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}."
    while True:
        beside = target.with_name(f"{prefix}{secrets.token_hex(4)}.part")
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        if fcntl is None:
            return handle, beside
        with contextlib.suppress(OSError):  # some file systems have no locks
            fcntl.flock(handle, fcntl.LOCK_EX)
        if beside.exists():  # else another writer took it for a dead one's, before it was locked
            break
        os.close(handle)
    for other in target.parent.glob(f"{prefix}*.part"):
        if other != beside:
            _remove_if_dead(other)
    return handle, beside


def _remove_if_dead(left: Path) -> None:
    """Remove a temporary file, unless a living program has it locked."""
    with contextlib.suppress(OSError):  # locked, or gone by now, or somebody else's
        handle = os.open(left, os.O_WRONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(left)
        finally:
            os.close(handle)
