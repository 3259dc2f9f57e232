"""Learn · Moving: a learner's exercises as one file, from a page of the site to a folder and back.

The file is JSON, and a page's Save and Load (demos/live/frames/exercises.js) know it too:

    {"minigrad exercises": 1, "files": {NAME: TEXT}, "solved": [NAME], "read": [PAGE]}

A page writes `read` too, the chapters that have been read there. A folder does not know them, and a
page that loads a file without them keeps its own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from demos._files import stop
from demos.learn import EXERCISES

MARK = "minigrad exercises"


def packed(texts: dict[str, str], solved: list[str]) -> str:
    """Return the learner's files, and the names of those that are solved, as one text."""
    return json.dumps({MARK: 1, "files": texts, "solved": solved}, indent=1, ensure_ascii=False)


def unpacked(file: Path) -> tuple[dict[str, str], list[str]]:
    """Return the learner's files and the names of those that are solved."""
    try:
        found: Any = json.loads(file.read_text("utf-8"))
        texts = {name: found["files"][name] for name in EXERCISES if name in found["files"]}
        solved = [name for name in texts if name in found["solved"]]
        is_ours = found[MARK] == 1 and all(isinstance(text, str) for text in texts.values())
    except OSError as error:
        stop(f"{file} cannot be read: {error}")
    except (KeyError, TypeError, ValueError):
        is_ours = False
    if not is_ours:
        stop(f"{file} is not a file that a page's Save or --save has written")
    return texts, solved
