"""Live · Try: a page with an editor, and programs to begin with.

Four are README's, of which two also print something of ours. The fifth is the example at the head
of the chapter on steps, whose page is then saved.
"""

from __future__ import annotations

import doctest
import importlib
import re

from markupsafe import Markup

from demos._files import DEMOS
from demos.pages.page import Page
from demos.pages.templates import fill, parts

README = DEMOS.parent / "README.md"
STEP = "    optimizer.step()\n"  # after it, the classifier prints its loss
LOSS = """    if step % 10 == 0:
        print(f"{step:3}  {loss.item():.3f}  " + "■" * round(50 * loss.item()))
"""
# The names of the programs: under which of README's headings they stand, and what comes after them.
PROGRAMS = {
    "A graph": ("", ""),
    "A large graph": ("Draw", ""),
    "Your own rule": ("Your own rule", 'print("its derivatives are right")\n'),
    "Your own model": ("Your own model", ""),
}


def programs() -> dict[str, str]:
    """Return the programs by their names."""
    found = {name: _of_readme(heading) + more for name, (heading, more) in PROGRAMS.items()}
    before, step, after = found["Your own model"].partition(STEP)
    if not step:
        raise ValueError(f"README's own model has no line {STEP.strip()!r}")
    found["Your own model"] = before + STEP + LOSS + after
    found["Both passes of your own code"] = _of_steps() + 'steps.save("passes.html")\n'
    return found


def _of_readme(heading: str) -> str:
    """Return the program below a heading of README; "" is the top of the page."""
    for part in re.split(r"^## ", README.read_text("utf-8"), flags=re.MULTILINE):
        block = re.search(r"```python\n(.*?)```", part, re.DOTALL)
        if part.startswith(f"{heading}\n" if heading else "# ") and block:
            return block[1]
    raise ValueError(f"README has no program under {heading!r}")


def _of_steps() -> str:
    """Return the example at the head of the chapter on steps, without what it prints."""
    chapter = importlib.import_module("minigrad.graphs.steps")
    examples = doctest.DocTestParser().get_examples(chapter.__doc__ or "")
    return "".join(re.sub(" *# doctest:.*", "", each.source) for each in examples)


def page() -> Page:
    """Return the page."""
    says = "Programs to change and to run, in your own browser."
    top = parts.top("Try", "Change it, and run it", says)
    body = fill("live/try.html", programs=programs())
    live = ("aside", "try")
    return Page("try.html", "Try", [top, Markup(body)], says, "Try", "shows", "minigrad", live)
