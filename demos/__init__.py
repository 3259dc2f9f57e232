"""Demos: each states a claim, runs it, and shows what it saw.

`python -m demos` lists them, `python -m demos NAME` runs one. A demo is a script in cells
(`# %%`): a plain program, and a notebook in editors that know the mark. Each demo is in the folder
of its kind, and its name is the name of its file. This module holds what the demos share: the list
of their files, their options, and an output folder that is tested before the work starts.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import NoReturn

KINDS = ("first", "tasks", "texts", "museum")  # the folders, in the order of README


def files() -> dict[str, Path]:
    """Where each demo is, by its name."""
    found = (sorted((Path(__file__).parent / kind).glob("[!_]*.py")) for kind in KINDS)
    return {path.stem: path for paths in found for path in paths}


def options(name: str, claim: str, *, steps: int = 0, quick: int = 0) -> argparse.Namespace:
    """The options that every demo takes, from the command line.

    Every demo has `--out`, `--seed` and `--quick`, which enforces no pass mark. A demo that trains
    also has `--steps`, whose default is `steps`, and `--resume`, which continues a stopped run.
    With `--quick` it takes `quick` steps. The result has the attributes `steps` and `quick` always.
    """
    parser = argparse.ArgumentParser(prog=f"python -m demos {name}", description=claim)
    parser.add_argument(
        "--out", type=Path, default=Path("out") / name, help="folder for the pictures (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of every draw (%(default)s)")
    parser.add_argument(
        "--quick", action="store_true", help="only test whether everything runs; no pass marks"
    )
    if steps:
        parser.add_argument("--steps", type=int, help=f"training steps ({steps})")
        parser.add_argument(
            "--resume", action="store_true", help="continue the run that was stopped"
        )
    chosen = parser.parse_args()
    if chosen.seed < 0:
        stop(f"--seed must be 0 or larger: got {chosen.seed}")
    asked = getattr(chosen, "steps", None)
    chosen.steps = asked if asked is not None else quick if chosen.quick else steps
    if steps and chosen.steps < 1:
        stop(f"--steps must be 1 or larger: got {chosen.steps}")
    writable(chosen.out)
    if steps:  # these facts distinguish the checkpoints of one run from those of another
        source = hashlib.sha256(files()[name].read_bytes())
        chosen.demo, chosen.source = name, source.hexdigest()[:8]
        chosen.begun = None if chosen.resume else datetime.now().isoformat()
    return chosen


def writable(folder: Path) -> None:
    """Make the folder and write to it once, so that an error comes before the work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        stop(f"cannot write to the output folder {folder}: {error.strerror}; choose one with --out")


def stop(sentence: str, *, code: int = 2) -> NoReturn:
    """End with one sentence on stderr and a non-zero exit, without a traceback."""
    print(sentence, file=sys.stderr)
    raise SystemExit(code)
