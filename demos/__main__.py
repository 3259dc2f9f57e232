"""Demos · The command `python -m demos [NAME]`: list the demos, or run one of them."""

from __future__ import annotations

import ast
import difflib
import runpy
import sys
from pathlib import Path

from demos import stop


def demos() -> dict[str, str]:
    """Every demo's name and the first line of its docstring, read without running it."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.stem.startswith("_"):
            said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            found[path.stem] = said.splitlines()[0]
    return found


def main() -> None:
    """List, or run one as if it were the program."""
    known = demos()
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("python -m demos NAME [--out FOLDER] [--seed N] [--steps N] [--quick]\n")
        for name, line in known.items():
            print(f"  {name:<15} {line}")
        return
    name = sys.argv[1]
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        stop(f"there is no demo {name!r}{meant}: the demos are {', '.join(known)}")
    del sys.argv[1]
    try:
        runpy.run_module(f"demos.{name}", run_name="__main__", alter_sys=False)
    except ModuleNotFoundError as error:
        if error.name and error.name.split(".")[0] in ("matplotlib", "tqdm", "graphviz"):
            stop(f'{name} needs {error.name}: pip install -e ".[demos]"')
        raise


if __name__ == "__main__":
    main()
