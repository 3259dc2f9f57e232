"""Demos · The command `python -m demos [NAME]`: list the demos, or run one of them."""

from __future__ import annotations

import ast
import difflib
import io
import re
import runpy
import sys
from pathlib import Path

from demos import stop


def demos() -> dict[str, str]:
    """Every demo's name and docstring, read without running it."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if not path.stem.startswith("_"):
            said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            found[path.stem] = said
    return found


def seconds(said: str) -> str:
    """How long a demo takes, which its docstring says behind its command."""
    found = re.search(r"^ +python -m demos .*# (\d+) s$", said, re.MULTILINE)
    return found[1] if found else "?"


def main() -> None:
    """List, or run one as if it were the program."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a √ is no reason to end
    known = demos()
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("python -m demos NAME [--out FOLDER] [--seed N] [--steps N] [--quick] [--resume]\n")
        for name, said in known.items():
            print(f"  {name:<15}{seconds(said):>3} s   {said.splitlines()[0]}")
        print("\n(--steps and --resume: those that train)")
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
        again = "; --resume keeps the trainings that are done" if "--resume" in known[name] else ""
        stop(f"stopped{again}", code=130)
    except ImportError as error:
        if error.name is None:  # a sentence of our own
            stop(f"{name}: {error}")
        extras = {"sklearn": "digits"} | dict.fromkeys(("matplotlib", "tqdm", "graphviz"), "demos")
        missing = (error.name or "").split(".")[0]
        if missing not in extras:
            raise
        stop(f'{name} needs {missing}: pip install -e ".[{extras[missing]}]"')


if __name__ == "__main__":
    main()
