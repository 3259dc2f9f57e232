"""Demos: each states a claim, runs it, and shows what it saw.

`python -m demos` lists them, `python -m demos NAME` runs one. A demo is a script in cells
(`# %%`): a plain program, and a notebook in editors that know the mark. Each demo is in the folder
of its kind, and its name is the name of its file. This module holds what the demos share: their
options, and an output folder that is tested before the work starts.
"""

from __future__ import annotations

import os
import sys

# `python -m` looks first in the current folder, where a file such as json.py would hide Python's.
if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    here = os.path.realpath(sys.path[0] or ".")
    if here != os.path.dirname(os.path.dirname(os.path.realpath(__file__))):
        del sys.path[0]
if sys.stderr is None:  # (`2>&-`; a progress bar writes there)
    sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from demos._files import KINDS, files, stop

__all__ = ["KINDS", "files", "options", "stop"]


def options(
    name: str,
    claim: str,
    *,
    steps: int = 0,
    quick: int | bool = 0,
    add: Callable[[argparse.ArgumentParser], object] | None = None,
) -> argparse.Namespace:
    """Return the options that every demo takes.

    They come from the command line, in a notebook from their defaults. Every demo has `--out`,
    `--seed`, `--marks`, which prints each check with its pass mark, and `--quick`, which enforces
    no pass mark. A demo that trains also has `--steps`, whose default is `steps`, and `--resume`,
    which continues a stopped run. With `--quick` it takes `quick` steps; `quick` is True if
    something else is smaller then. Such a run has a folder of its own, so that it replaces nothing.
    The result has the attributes `steps` and `quick` always. `add` is a function that adds a demo's
    own options to the parser.
    """
    caller = sys._getframe(1).f_globals
    file = caller.get("__file__") or str(files()[name])  # (a notebook has none)
    name = Path(file).stem
    parser = argparse.ArgumentParser(prog=f"python -m demos {name}", description=claim)
    where = f"out/{name}, with --quick out/quick/{name}" if quick else f"out/{name}"
    parser.add_argument("--out", type=Path, help=f"folder for the pictures ({where})")
    parser.add_argument("--seed", type=int, default=0, help="seed of every draw (%(default)s)")
    parser.add_argument(
        "--quick", action="store_true", help="only test whether everything runs; no pass marks"
    )
    parser.add_argument(
        "--marks", action="store_true", help="print each check and its pass mark, not only a count"
    )
    if steps:
        parser.add_argument("--steps", type=int, help=f"training steps ({steps})")
        parser.add_argument(
            "--resume",
            action="store_true",
            help="continue a stopped run (the code must be the same; this is not checked)",
        )
    if add is not None:
        add(parser)
    # The arguments of a notebook are those of its kernel, so a cell takes the defaults. IPython
    # gives `get_ipython` to the cells of every kernel, and not to a script, nor to a file that
    # `%run` starts with arguments. (`__file__` does not tell: VS Code sets it for cells, too.)
    chosen = parser.parse_args([] if "get_ipython" in caller else None)
    if not 0 <= chosen.seed < 2**32:
        stop(f"--seed must be 0 or larger, and below 2**32: got {chosen.seed}")
    asked = getattr(chosen, "steps", None)
    chosen.steps = asked if asked is not None else int(quick if chosen.quick and steps else steps)
    if steps and chosen.steps < 1:
        stop(f"--steps must be 1 or larger: got {chosen.steps}")
    chosen.demo, chosen.shortened = name, bool(chosen.quick and quick)
    if chosen.out is None:
        chosen.out = Path("out/quick" if chosen.shortened else "out", name)
    chosen.file = file  # (its page shows the cells of this file)
    writable(chosen.out)
    if steps and chosen.resume:
        if not any(chosen.out.glob("*.safetensors")):
            stop(f"there is no training to resume in {chosen.out}: start without --resume")
        chosen.earlier = []
    elif steps:
        from demos._training import checkpoints  # (the list of demos needs no NumPy)

        chosen.earlier = checkpoints(chosen)  # a Run removes them when it has begun
    return chosen


def writable(folder: Path) -> None:
    """Make the folder and write to it once, so that an error comes before the work."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        stop(f"cannot write to the output folder {folder}: {error.strerror}; choose one with --out")
