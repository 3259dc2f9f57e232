"""Pages · Page: the file around a page, and the parts that many pages have.

A page of the site has its style and its scripts in files beside it. A page alone has both inside of
it, and its policy names the hashes of its scripts. Neither asks for anything from outside.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from markupsafe import Markup

from demos.pages.templates import fill, parts
from demos.pages.text import plain

FOLDER = Path(__file__).parent
PAGE, LIST = "minigrad, a page", "minigrad, a list of pages"  # who wrote a file, as it says itself
Names = Sequence[tuple[str, str]]  # addresses and names of pages that follow one another


def turn(pages: Names, place: int) -> Markup:
    """Return links to the pages before and after one; of each page: its address and its name."""
    return parts.turn(pages[:place][-1:], pages[place + 1 :][:1])


# ---------------------------------------------------------------- the file


@dataclass
class Page:
    """A page of the site: its file, its title and its text; `here` is its place in the header."""

    file: str
    title: str
    body: Sequence[Markup]
    description: str
    here: str = ""
    kind: str = ""  # a class of the body, for the style sheet
    module: str = ""  # whose examples it shows
    live: Sequence[str] = ()  # scripts of demos/live/frames/, where the site has a runtime


def one_of(
    here: str,
    names: Names,
    place: int,
    title: str,
    sub: str,
    *body: Markup,
    facts: Sequence[str] = (),
) -> Page:
    """Return one of the pages of a kind, of which the first is their list."""
    file, name = names[place]
    above = here
    if place:
        above = parts.link(names[0][0], here) + f" · {place} of {len(names) - 1}"
    html = [parts.top(above, title, sub, facts), *body]
    if place:
        html.append(turn(names[1:], place - 1))
    return Page(file, name, html, plain(sub), here, "shows")


def page_alone(
    title: str,
    body: Sequence[Markup],
    *,
    generator: str = PAGE,
    demo: str = "",
    style: str = "",
    scripts: Sequence[str] = (),
    allowed: Sequence[str] = (),
) -> bytes:
    """Return a file that needs no other one: its style and its scripts are inside of it.

    demo     the name of the demo that made it
    allowed  what the policies of pages inside of this one call their scripts
    """
    scripts = list(scripts)
    if generator == PAGE:
        scripts.append(_beside("demo.js"))
    names = {policy_name(script) for script in scripts}
    html = fill(
        "pages/html/demo.html",
        allowed=" ".join(sorted({*allowed, *names})) or "'none'",
        generator=generator,
        title=title,
        kind="shows demo",
        style=_beside("site.css") + _beside("demo.css") + style,
        listed=generator == PAGE,
        body=Markup("\n").join(body),
        demo=demo,
        scripts=scripts,
    )
    return f"{html}\n".encode(errors="replace")  # (half of a surrogate pair becomes a ?)


def _beside(name: str) -> str:
    """Return the text of a file in this folder."""
    return (FOLDER / name).read_text("utf-8")


def data(value: object) -> str:
    """Return JSON for a page, in which nothing can end the script element around it."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")


def policy_name(script: str) -> str:
    """Return what a page's policy calls a script that it allows."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def written_by(path: Path, generator: str) -> bool:
    """Return whether a file says of itself that this generator wrote it."""
    text = path.read_text("utf-8", errors="replace")
    return bool(re.search(f'"generator"( content=|: )"{generator}"', text))
