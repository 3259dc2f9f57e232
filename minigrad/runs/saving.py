"""9.1 · Saving: a file is written whole or not at all.

What is left when the program that was writing a file is killed half-way? With a plain
`open(path, "wb")`: half a file, under the name of the good file that was there before. So the bytes
are written to a temporary file in the same folder, which is renamed when all of them are on disk.
Renaming within one folder is atomic: a program that opens the name gets the old file or the new
one.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path


def write_whole(path: str | Path, content: bytes | str) -> Path:
    """Write the content to path, whole or not at all, and return the path.

    A file that is replaced keeps its permissions. A symbolic link stays a link, and the file that
    it points to is replaced. A missing folder is a FileNotFoundError that names the folder.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/hello.txt", "hello").read_text()
    'hello'
    """
    path = Path(path)
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to")
    if target.exists() and not target.is_file():
        raise OSError(f"{path} is not a regular file: it would be replaced by one")
    data = content.encode() if isinstance(content, str) else content
    mode = target.stat().st_mode if target.exists() else 0o666 & ~_umask()
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # on disk before it has the name, not some time after
        os.chmod(beside, mode)
        os.replace(beside, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):  # renamed already, or gone with its folder
            os.unlink(beside)
        raise
    return path


def _umask() -> int:
    """The permissions this process withholds; mkstemp makes files that only their owner reads."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
