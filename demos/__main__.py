"""Demos · The command `python -m demos [NAME]`: list the demos, or run one of them."""

from __future__ import annotations

import ast
import difflib
import re
import runpy
import sys
from pathlib import Path

from demos import stop


def demos() -> dict[str, tuple[str, str]]:
    """Every demo's name, the seconds it takes and its first line, read without running it."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.stem.startswith("_"):
            said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            seconds = re.search(rf"^ +python -m demos {path.stem} .*# (\d+) s$", said, re.MULTILINE)
            found[path.stem] = (seconds[1] if seconds else "?", said.splitlines()[0])
    return found


def main() -> None:
    """List, or run one as if it were the program."""
    known = demos()
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("python -m demos NAME [--out FOLDER] [--seed N] [--steps N] [--quick] [--resume]\n")
        for name, (seconds, line) in known.items():
            print(f"  {name:<15}{seconds:>3} s   {line}")
        return
    name = sys.argv[1]
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        stop(f"there is no demo {name!r}{meant}: the demos are {', '.join(known)}")
    del sys.argv[1]
    try:
        runpy.run_module(f"demos.{name}", run_name="__main__", alter_sys=False)
    except KeyboardInterrupt:
        stop("stopped; a training that was finished before can be kept with --resume", code=130)
    except ModuleNotFoundError as error:
        extras = {"sklearn": "digits"} | dict.fromkeys(("matplotlib", "tqdm", "graphviz"), "demos")
        missing = (error.name or "").split(".")[0]
        if missing not in extras:
            raise
        stop(f'{name} needs {missing}: pip install -e ".[{extras[missing]}]"')


if __name__ == "__main__":
    main()
