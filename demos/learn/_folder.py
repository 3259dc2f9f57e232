"""Demos · Learn: the learner's folder, in which nothing of the learner's is ever lost.

The folder holds a file for each exercise, README.txt, and one hidden file with what has been
solved and which hints have been shown. Every file is written whole or not at all. A file that has
to make room is renamed, to a name that no file has.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Callable
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


def _spoken(error: OSError) -> str:
    return error.strerror or str(error)


def beside(path: Path) -> Path:
    """Return a path beside this one that no file has yet."""
    n = 1
    while os.path.lexists(other := path.with_name(f"{path.name}.old-{n}")):
        n += 1
    return other


class Folder:
    """A folder with the learner's files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def file(self, name: str) -> Path:
        """Return the path of the learner's file of an exercise."""
        return self.path / f"{name}.py"

    def bytes(self, name: str) -> bytes | None:
        """Return the bytes of the learner's file of an exercise; None if there is none to read."""
        path = self.file(name)
        return path.read_bytes() if path.is_file() else None

    def is_one(self) -> bool:
        """Return True if this is a learner's folder. (The repository has files of these names.)"""
        inside = self.path.resolve().is_relative_to(ROOT)
        names = (KEPT, *(f"{name}.py" for name in EXERCISES))
        return not inside and any(os.path.lexists(self.path / name) for name in names)

    def write(self, name: str, text: str) -> None:
        """Write a file of the folder, whole or not at all."""
        try:
            write_whole(self.path / name, text)
        except OSError as error:
            stop(f"cannot write {self.path / name}: {_spoken(error)}")

    # ---------------------------------------------------------------- what is remembered

    def kept(self) -> dict[str, dict[str, object]]:
        """Return each solved exercise's number of its file, and the number of hints shown."""
        path = self.path / KEPT
        if not path.exists():
            return {"solved": {}, "hints": {}}
        return json.loads(path.read_text(encoding="utf-8"))

    def aside(self, path: Path) -> Path:
        """Rename what is at a path, so that the path is free; the new name."""
        other = beside(path)
        try:
            os.rename(path, other)
        except OSError as error:
            stop(f"cannot rename {path}: {_spoken(error)}")
        return other

    def _change(self, change: Callable[[dict[str, dict[str, object]]], None]) -> None:
        """Change what is remembered."""
        kept = self.kept()
        change(kept)
        self.write(KEPT, json.dumps(kept, indent=1) + "\n")

    def hints(self, name: str) -> int:
        """Return the number of hints of an exercise that have been shown."""
        return self.kept()["hints"].get(name, 0)

    def next_hint(self, name: str, most: int) -> int:
        """Count the next hint as shown, and return how many had been shown before it."""
        shown = self.hints(name)
        self._change(lambda kept: kept["hints"].update({name: min(shown + 1, most)}))
        return shown

    def state(self, name: str) -> str:
        """Return "solved", "changed" (since it was solved), or "" if it was not solved."""
        known = self.kept()["solved"].get(name)
        if known is None:
            return ""
        return "solved" if known == self.fingerprint(name) else "changed"

    def solved(self, name: str, fingerprint: str) -> None:
        """Remember that an exercise is solved, by the file with this fingerprint."""
        self._change(lambda kept: kept["solved"].update({name: fingerprint}))

    def fingerprint(self, name: str) -> str:
        """Return a hash of the learner's file and of the check of it, or "" without a file."""
        check = Path(__file__).parent / "checks" / f"{name}.py"
        text = self.bytes(name)
        return hashlib.sha256(text + check.read_bytes()).hexdigest()[:16] if text else ""

    # ---------------------------------------------------------------- files

    def reset(self, name: str) -> Path | None:
        """Give an exercise as at the beginning; where the learner's file is now, if it differed."""
        path, other = self.file(name), None
        if os.path.lexists(path):
            if self.bytes(name) == stub(name).encode():
                return None
            other = self.aside(path)
        self.write(path.name, stub(name))
        return other


def make(text: str) -> tuple[Folder, int]:
    """Make a learner's folder; return it and the number of exercises that were written to it.

    Files that are there already stay as they are.
    """
    path = Path(text).expanduser()
    folder = Folder(path)
    if path.resolve().is_relative_to(ROOT):
        stop(f"{path} is inside of the repository: choose a folder outside, which is yours alone")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        stop(f"cannot make the folder {path}: {_spoken(error)}")
    return folder, _filled(folder)


def _filled(folder: Folder) -> int:
    """Write the exercises that are missing in a folder, and return their number."""
    path = folder.path
    others = next(path.iterdir(), None)
    if others and not folder.is_one():
        stop(f"{path} has other files in it, such as {others.name}: choose a new or empty folder")
    words = f"python -m demos learn --in {shlex.quote(str(path.resolve()))}"
    texts = {KEPT: json.dumps({"solved": {}, "hints": {}}, indent=1) + "\n"}  # first: it is ours
    texts |= {f"{name}.py": stub(name) for name in EXERCISES}
    texts["README.txt"] = README.format(command=words)
    missing = {name: text for name, text in texts.items() if not os.path.lexists(path / name)}
    for name, content in missing.items():
        folder.write(name, content)
    return sum(name.endswith(".py") for name in missing)


def find(text: str | None) -> Folder:
    """Return the learner's folder: the one named, or the current one, or one that it is in."""
    if text is not None:
        path = Path(text).expanduser()
        folder = Folder(path.resolve())
        if not folder.is_one():
            words = f"python -m demos learn init {shlex.quote(text)}"
            stop(f"{path} is not a folder of exercises: `{words}` makes one")
        return folder
    here = Path.cwd()
    for path in (here, *here.parents):
        if Folder(path).is_one():
            return Folder(path)
    stop(
        "there are no exercises here: `python -m demos learn init FOLDER` makes a folder of them, "
        "and --in FOLDER names it from elsewhere"
    )
