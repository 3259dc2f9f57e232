"""Learn · Grading: the folders of a class, a row for each, and nothing is written into them.

Each check has a process of its own (demos/learn/_running.py), and a copy of the folder's Python
files. After a file is solved, the same process checks the typical mistake of its exercise: if the
check accepts that one too, the file has changed what the check stands on, and is "tampered".
"""

from __future__ import annotations

import csv
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

from demos._files import stop
from demos.learn._mistakes import mistaken
from demos.learn._running import Answer, run
from demos.learn.exercises import number

MARKS = {
    "solved": "x",
    "not yet": ".",
    "out of time": "t",
    "missing": "-",
    "error": "e",
    "tampered": "T",
}


class Row(NamedTuple):
    """A folder's name, its answers by exercise, and how many of them are solved."""

    folder: str
    answers: dict[str, Answer]
    solved: int


def graded(folder: Path, name: str) -> Answer:
    """Return the answer to one exercise of a folder."""
    try:
        if not (folder / f"{name}.py").is_file():
            return Answer(False, f"{name}.py is not there", state="missing")
        with tempfile.TemporaryDirectory() as copy:
            for file in folder.glob("*.py"):
                if file.is_file():
                    shutil.copyfile(file, Path(copy, file.name))
            return run(Path(copy, f"{name}.py"), name, wrong=mistaken(name))
    except OSError as error:  # a file that may not be read
        return Answer(False, f"{name}.py cannot be checked: {error.strerror}", state="error")


def rows(folders: dict[Path, str], names: tuple[str, ...], jobs: int) -> Iterator[Row]:
    """Yield the row of each folder as soon as its checks have ended, `jobs` of them at a time."""
    with ThreadPoolExecutor(jobs) as pool:
        pairs = product(folders, names)
        answers = pool.map(lambda pair: graded(*pair), pairs)
        for called in folders.values():
            its = dict(zip(names, islice(answers, len(names)), strict=True))
            yield Row(called, its, sum(answer.solved for answer in its.values()))


def grade(texts: dict[str, str], names: tuple[str, ...], *, jobs: int, form: str) -> bool:
    """Print a row for each folder as a table, "csv" or "json"; return True if all is solved.

    `texts` has each path as it was typed, and what its row is called. A folder that was typed twice
    has one row.
    """
    folders: dict[Path, str] = {}
    for text, called in texts.items():
        folders.setdefault(Path(text).resolve(), called)
        if not Path(text).is_dir():
            stop(f"{text} is not a folder: grade takes the folders of the learners")
    write = {"csv": as_csv, "json": as_json}.get(form, as_table)
    is_solved = True
    for row in write(rows(folders, names, jobs), names):
        is_solved = is_solved and row.solved == len(names)
    return is_solved


def as_table(found: Iterator[Row], names: tuple[str, ...]) -> Iterator[Row]:
    """Print a mark for each exercise below its number, and what the marks mean; yield the rows."""
    print(*(f"{number(name):>2}" for name in names), "solved  folder")
    for row in found:
        marks = (f"{MARKS[answer.state]:>2}" for answer in row.answers.values())
        print(*marks, f"{row.solved:>6}  {row.folder}", flush=True)
        yield row
    print("   ".join(f"{mark} {state}" for state, mark in MARKS.items()))


def as_csv(found: Iterator[Row], names: tuple[str, ...]) -> Iterator[Row]:
    """Print the rows as a table for a spreadsheet, with a state in each cell; yield them."""
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(["folder", *names, "solved"])
    for row in found:
        table.writerow([row.folder, *(x.state for x in row.answers.values()), row.solved])
        sys.stdout.flush()
        yield row


def as_json(found: Iterator[Row], names: tuple[str, ...]) -> Iterator[Row]:
    """Print all rows as one list, with what each check said; yield them."""
    listed = []
    for row in found:
        exercises = {x: {"state": a.state, "said": a.said} for x, a in row.answers.items()}
        listed.append({"folder": row.folder, "exercises": exercises, "solved": row.solved})
        yield row
    print(json.dumps(listed, indent=1, ensure_ascii=False))
