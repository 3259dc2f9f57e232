"""Demos · The command `python -m demos [NAME]`: list the demos, or run one of them."""

from __future__ import annotations

import ast
import difflib
import io
import re
import runpy
import sys
from pathlib import Path

from demos import KINDS, files, stop

# The former names of the texts were numbers.
FORMER = {
    "text_000": "love_transformers",
    "text_001": "love_you",
    "text_002": "sky_is_blue",
    "text_003": "your_journey",
    "text_004": "mammal_and_reptile",
}


def said(path: Path) -> str:
    """A module's docstring, read without running the module."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def seconds(docstring: str) -> str:
    """How many seconds a demo takes: its docstring has them after the command."""
    found = re.search(r"^ +python -m demos .*# (\d+) s$", docstring, re.MULTILINE)
    return found[1] if found else "?"


def main() -> None:
    """List the demos, or run one as if it were the program."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a √ that cannot be printed becomes a ?
    known = files()
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print("python -m demos NAME [--out DIR] [--seed N] [--steps N] [--quick] [--resume]")
        for kind in KINDS:
            print(f"\n{said(Path(__file__).parent / kind / '__init__.py').partition(' · ')[2]}\n")
            for name, path in known.items():
                if path.parent.name == kind:
                    docstring = said(path)
                    line = docstring.splitlines()[0]
                    print(f"  {name:<18}{seconds(docstring):>4} s   {line}")
        print("\n(--steps and --resume: only for demos that train)")
        return
    name = FORMER.get(sys.argv[1], sys.argv[1])
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        stop(f"there is no demo {name!r}{meant}: the demos are {', '.join(known)}")
    del sys.argv[1]
    kind, docstring = known[name].parent.name, said(known[name])
    try:
        runpy.run_module(f"demos.{kind}.{name}", run_name="__main__", alter_sys=False)
    except KeyboardInterrupt:
        again = "; --resume keeps the trainings that are done" if "--resume" in docstring else ""
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
