"""Saving: a file is written whole or not at all.

What is left when the program that was writing a file is killed half-way? With a plain
`open(path, "wb")`: half a file, under the name of the good file that was there before. So the bytes
are written to a temporary file in the same folder, which is renamed when all of them are on disk.
Renaming within one folder is atomic: a program that opens the name gets the old file or the new
one. What a killed program leaves is a temporary file, `.….part`, which you may delete.
"""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path


def write_whole(path: str | Path, content: bytes | str) -> Path:
    """Write the content to path, whole or not at all, and return the path.

    A file that is replaced keeps its permissions. A link stays a link: the file that it leads to is
    replaced. OSError if it cannot be written; then the file that was there is still there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(f"{folder}/hello.txt", "hello").read_text()
    'hello'
    """
    path = Path(path)
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} to write {path.name} to")
    # (`tempfile` would make a file that only its owner may read.)
    beside = target.with_name(f".{secrets.token_hex(8)}.part")
    try:
        with open(beside, "xb") as file:
            if target.exists():
                shutil.copymode(target, beside)
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())  # the content is on disk before the file gets its name
        os.replace(beside, target)
    except BaseException:  # Ctrl-C too
        beside.unlink(missing_ok=True)
        raise
    return path
