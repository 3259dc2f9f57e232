"""Demos · Learn: the learner's folder, in which nothing of the learner's is ever lost.

The folder holds a file for each exercise, README.txt, and one hidden file with what has been
solved and which hints have been shown. Every file is written whole or not at all. A file that has
to make room is renamed, to a name that no file has.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import Path

from demos import stop
from demos.learn import EXERCISES
from demos.learn.exercises import stub
from minigrad.runs.saving import write_whole

ROOT = Path(__file__).parents[2]
KEPT = ".minigrad-learn.json"  # what is solved, and how many hints were shown
README = """\
Exercises of minigrad
=====================

Each file e01_….py to e24_….py is an exercise. Read its first lines, and write
what is missing between "Your lines begin." and "Your lines end." Save, and
run in the folder of the repository:

    {command}

This checks the first exercise that is not solved. With more words:

    --watch       checks again whenever you save; Ctrl-C ends it
    --hint        the next of three hints
    --solution    our lines and yours, line by line
    --list        what is solved
    --path        eight of them for a first contact, in an order of their own
    7             exercise 7, whichever is the first
    --reset 7     exercise 7 as it was given; your file is kept under another name

Nothing here is overwritten, so change what you like.
"""


class Folder:
    """A folder with the learner's files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str) -> Path:
        """Return the path of the learner's file of an exercise."""
        return self.path / f"{name}.py"

    def is_one(self) -> bool:
        """Return True if this is a learner's folder. (The repository has files of these names.)"""
        known = (self.path / KEPT, *map(self.file, EXERCISES))
        return not inside(self.path) and any(path.exists() for path in known)

    def write_missing(self) -> list[str]:
        """Write the files that are missing, and return the names of these exercises."""
        if not (self.path / KEPT).exists():
            self.keep({"solved": {}, "hints": {}})
        if not (self.path / "README.txt").exists():
            command = f"python -m demos learn --in {shlex.quote(str(self.path.resolve()))}"
            write_whole(self.path / "README.txt", README.format(command=command))
        missing = [name for name in EXERCISES if not self.file(name).exists()]
        for name in missing:
            write_whole(self.file(name), stub(name))
        return missing

    def reset(self, name: str) -> Path | None:
        """Give an exercise as at the beginning; where the learner's file is now, if it differed."""
        path, other = self.file(name), None
        if path.exists():
            if path.read_bytes() == stub(name).encode():
                return None
            n = 1
            while (other := path.with_name(f"{path.name}.old-{n}")).exists():
                n += 1
            path.rename(other)
        write_whole(path, stub(name))
        return other

    # ---------------------------------------------------------------- what is remembered

    def kept(self) -> dict[str, dict[str, object]]:
        """Return each solved exercise's fingerprint, and the number of hints shown."""
        path = self.path / KEPT
        if not path.exists():
            return {"solved": {}, "hints": {}}
        return json.loads(path.read_text(encoding="utf-8"))

    def keep(self, kept: dict[str, dict[str, object]]) -> None:
        """Remember this."""
        write_whole(self.path / KEPT, json.dumps(kept, indent=1) + "\n")

    def state(self, name: str) -> str:
        """Return "solved", "changed" (since it was solved), or "" if it was not solved."""
        known = self.kept()["solved"].get(name)
        if known is None:
            return ""
        return "solved" if known == self.fingerprint(name) else "changed"

    def fingerprint(self, name: str) -> str:
        """Return a hash of the learner's file, if there is one, and of its check."""
        files = (self.file(name), Path(__file__).parent / "checks" / f"{name}.py")
        text = b"".join(path.read_bytes() for path in files if path.exists())
        return hashlib.sha256(text).hexdigest()[:16]


def inside(path: Path) -> bool:
    """Return True if a path is inside of the repository."""
    return path.resolve().is_relative_to(ROOT)


def make(text: str) -> tuple[Folder, int]:
    """Make a learner's folder; return it and the number of exercises that were written to it.

    Files that are there already stay as they are.
    """
    path = Path(text).expanduser()
    folder = Folder(path)
    if inside(path):
        stop(f"{path} is inside of the repository: choose a folder outside, which is yours alone")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        stop(f"cannot make the folder {path}: {error.strerror}")
    others = next(path.iterdir(), None)
    if others and not folder.is_one():
        stop(f"{path} has other files in it, such as {others.name}: choose a new or empty folder")
    return folder, len(folder.write_missing())


def find(text: str | None) -> Folder:
    """Return the learner's folder: the one named, or the current one, or one that it is in."""
    here = Path.cwd() if text is None else Path(text).expanduser().resolve()
    for path in (here, *here.parents) if text is None else (here,):
        if Folder(path).is_one():
            return Folder(path)
    if text is not None:
        words = f"python -m demos learn init {shlex.quote(text)}"
        stop(f"{text} is not a folder of exercises: `{words}` makes one")
    stop(
        "there are no exercises here: `python -m demos learn init FOLDER` makes a folder of them, "
        "and --in FOLDER names it from elsewhere"
    )
