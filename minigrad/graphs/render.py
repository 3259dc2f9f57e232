"""5.3 · Rendering: DOT text in, picture out.

Which program computes where the boxes go? One of Graphviz's: the system's `dot` if it is on PATH,
otherwise `graphviz-pure`, a wheel that contains the same layout engine. The wheel draws SVG and
PNG; PDF needs the system's `dot`. Either program reads DOT and writes bytes.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from pathlib import Path

# graphviz-pure prints a line like this for a symbol outside ASCII in a label, whose width it has to
# guess. The guess is near enough.
HARMLESS = "Warning: Warning: no"


def render(source: str, format: str) -> bytes:
    """The picture of some DOT text, in "svg", "png" or "pdf".

    ImportError, with what to install, if there is no program, or none that draws the format.
    """
    program, is_pure = _program()
    if is_pure and format == "pdf":
        raise ImportError(
            "graphviz-pure draws svg and png: for pdf, install the system's Graphviz "
            "(on Debian: apt install graphviz)"
        )
    # 110 dots an inch: a PNG then has the size that a screen shows the SVG at, a little sharper.
    command = [program, f"-T{format}", *(["-Gdpi=110"] if format == "png" else [])]
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=False)
    complaints = [
        line for line in done.stderr.decode().splitlines() if not line.startswith(HARMLESS)
    ]
    if done.returncode or not done.stdout:
        raise RuntimeError(f"{Path(program).name} could not draw the graph: {complaints}")
    return done.stdout


def _program() -> tuple[str, bool]:
    """The program that draws, and whether it is graphviz-pure's.

    pip puts the wheel's program beside python, in a folder that need not be on PATH.
    """
    if system := shutil.which("dot"):
        return system, False
    scripts = sysconfig.get_path("scripts")
    if pure := shutil.which("graphviz-pure", path=scripts) or shutil.which("graphviz-pure"):
        return pure, True
    raise ImportError(
        "drawing needs a Graphviz program, and neither the system's dot nor graphviz-pure is "
        'here: pip install "minigrad-attention[draw]"'
    )
