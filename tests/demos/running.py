"""Running demos as a user runs them: in a process of their own, without a display."""

import contextlib
import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

from demos.__main__ import main

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "DISPLAY"} | {
    "PYTHONUTF8": "1",
    "OPENBLAS_NUM_THREADS": "1",  # so that the same seed gives the same bits
}


def python(*arguments, cwd=ROOT, **environment):
    """Run `python …` to its end."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        env=ENVIRONMENT | environment,
    )


def demo(*arguments):
    """Run `python -m demos …` to its end."""
    return python("-m", "demos", *arguments)


def demo_here(*arguments):
    """Run `python -m demos …` in this process, for sentences that a demo says before its work."""
    argv, code = sys.argv, 0
    handlers = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    stdout, stderr = io.StringIO(), io.StringIO()
    sys.argv = ["demos", *map(str, arguments)]
    try:
        with (
            contextlib.redirect_stdout(stdout),
            contextlib.redirect_stderr(stderr),
            np.errstate(),  # (`recall` sets what NumPy warns of)
        ):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = argv
        for each, handler in handlers.items():
            signal.signal(each, handler)
    return subprocess.CompletedProcess(arguments, code, stdout.getvalue(), stderr.getvalue())


def assert_light(folder):
    """Assert that pictures and pages are below 2 MB. (Checkpoints may be larger.)"""
    sizes = {p.name: p.stat().st_size for p in folder.rglob("*.*") if p.suffix != ".safetensors"}
    assert all(0 < size < 2_000_000 for size in sizes.values()), sizes


def whole(name, tmp_path_factory, *arguments):
    """Run a demo to its end, with all marks kept; return its folder and its printed text."""
    folder = tmp_path_factory.mktemp(name)
    done = demo(name, "--out", folder, *arguments)
    assert done.returncode == 0, done.stderr
    return folder, done.stdout
