"""Demos · The command `python -m demos [NAME]`: list the demos, or run one of them."""

from __future__ import annotations

import difflib
import io
import os
import runpy
import signal
import sys
from pathlib import Path

from demos._files import COMMANDS, DEMOS, KINDS, docstring, files, resumable, seconds, stop


def main() -> None:
    """List the demos, or run one as if it were the program."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a √ that cannot be printed becomes a ?
    if sys.flags.optimize > 1:
        stop("a demo prints sentences of its docstring: run it without -OO")
    # Several threads make small products slower, above all on a busy machine. (NumPy reads this
    # when it is imported.)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    known = files()
    commands = {name: DEMOS / folder / f"{name}.py" for name, folder in COMMANDS.items()}
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(
            "python -m demos NAME [--out DIR] [--seed N] [--steps N] [--quick] [--marks] [--resume]"
        )
        for kind in KINDS:
            print(f"\n{docstring(DEMOS / kind / '__init__.py').partition(' · ')[2]}\n")
            for name, path in known.items():
                if path.parent.name == kind:
                    line = docstring(path).splitlines()[0]
                    print(f"  {name:<18}{seconds(path):>4} s   {line}")
        for name, path in commands.items():
            print(f"\n  {name:<18}       {docstring(path).splitlines()[0]}")
        print("\n(--steps and --resume: only for demos that train)")
        pages = Path("out") / "index.html"
        if pages.is_file():
            print(f"Pages of the demos that you have run: {pages}")
        sys.stdout.flush()  # (so that a reader who has gone is met here)
        return
    name = sys.argv[1]
    known |= commands
    if name not in known:
        close = difflib.get_close_matches(name, known, n=1)
        meant = f" (did you mean {close[0]}?)" if close else ""
        stop(f"there is no demo {name!r}{meant}: the demos are {', '.join(known)}")
    del sys.argv[1]
    kind = known[name].parent.name
    # What schedulers send ends a demo as Ctrl-C does. (A training handles both by itself.)
    ended_by = [signal.SIGINT]

    def end(number: int, frame: object) -> None:
        ended_by.append(signal.Signals(number))
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, end)
    try:
        runpy.run_module(f"demos.{kind}.{name}", run_name="__main__", alter_sys=False)
        sys.stdout.flush()
    except OSError as error:
        if error.errno is None:  # a sentence of our own
            stop(f"{name}: {error}")
        raise
    except KeyboardInterrupt as error:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one would hide the sentence
        again = "; --resume keeps the trainings that are done" if resumable(known[name]) else ""
        stop(f"{str(error) or 'stopped'}{again}", code=128 + ended_by[-1])
    except ImportError as error:
        if error.name is None:  # a sentence of our own
            stop(f"{name}: {error}")
        extras = {
            "sklearn": "digits",
            "nbformat": "site",
            "distributed": "cluster",
        } | dict.fromkeys(
            ("matplotlib", "tqdm", "jinja2", "markdown_it", "markupsafe", "pygments"),
            "demos",
        )
        missing = (error.name or "").split(".")[0]
        if missing not in extras:
            raise
        stop(f'{name} needs {missing}: pip install -e ".[{extras[missing]}]"')


if __name__ == "__main__":
    try:
        main()
    except BrokenPipeError:  # the reader, such as `head`, has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(141) from None
