"""Pages · Page: the file around a page, and the parts that many pages have.

A page asks for nothing from outside: its style and its scripts are files beside it. Its policy
allows these and no script inside of it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template

from demos.pages.text import plain

FOLDER = Path(__file__).parent
TEMPLATE = cache(lambda path: Template(path.read_text("utf-8")))
PAGE, LIST = "minigrad, a page", "minigrad, a list of pages"  # who wrote a file, as it says itself
Names = Sequence[tuple[str, str]]  # addresses and names of pages that follow one another


def fill(path: Path, /, **values: object) -> str:
    """Return a template with its values."""
    return TEMPLATE(path).substitute(values)


def row(left: str, right: str = "", kind: str = "") -> str:
    """Return prose, and what stands beside it."""
    kind = f" {kind}" * bool(kind)
    if not right:
        return f'<div class="prose{kind}">{left}</div>' if left else ""
    left = f'<div class="prose">{left}</div>'
    return f'<div class="row{kind}">{left}<div class="beside">{right}</div></div>'


def fold(title: str, inside: str, kind: str = "fold") -> str:
    """Return what a reader opens by its title."""
    return f'<details class="{kind}"><summary>{title}</summary>{inside}</details>'


def top(kicker: str, title: str, sub: str, facts: Sequence[str] = ()) -> str:
    """Return the top of a page: the line above the title, the title, a sentence and facts."""
    shown = f'<p class="kicker">{kicker}</p><h1>{title}</h1><p class="sub">{sub}</p>'
    listed = "".join(f"<div>{fact}</div>" for fact in facts)
    return shown + f'<div class="facts">{listed}</div>' * bool(facts)


def turn(pages: Sequence[tuple[str, str]], place: int) -> str:
    """Return links to the pages before and after one; of each page: its address and its name."""
    near = [f'<a href="{x}" rel="prev">← {y}</a>' for x, y in pages[:place][-1:]]
    near += [f'<a href="{x}" rel="next">{y} →</a>' for x, y in pages[place + 1 :][:1]]
    return f'<nav class="turn" aria-label="Before and after">{"".join(near)}</nav>'


# ---------------------------------------------------------------- the file


@dataclass
class Page:
    """A page of the site: its file, its title and its text; `here` is its place in the header."""

    file: str
    title: str
    body: Sequence[str]
    description: str
    here: str = ""
    kind: str = ""  # a class of the body, for the style sheet


def one_of(
    here: str, names: Names, place: int, title: str, sub: str, *body: str, facts: Sequence[str] = ()
) -> Page:
    """Return one of the pages of a kind, of which the first is their list."""
    file, name = names[place]
    above = f'<a href="{names[0][0]}">{here}</a> · {place} of {len(names) - 1}' if place else here
    parts = [top(above, title, sub, facts), *body]
    if place:
        parts.append(turn(names[1:], place - 1))
    return Page(file, name, parts, plain(sub), here, "shows")


def tile(address: str, above: str, title: str, text: str) -> str:
    """Return a card of a list: a line above its title, which leads to an address, and a text."""
    link = f'<p class="kicker">{above}</p><h3><a href="{address}">{title}</a></h3>'
    return f'<div class="tile">{link}<p>{text}</p></div>'


def page_alone(
    title: str,
    body: Sequence[str],
    *,
    generator: str = PAGE,
    footer: str = "",
    style: str = "",
    scripts: Sequence[str] = (),
    allowed: Sequence[str] = (),
) -> bytes:
    """Return a file that needs no other one: its style and its scripts are inside of it.

    allowed  what the policies of pages inside of this one call their scripts
    """
    read = lambda name: (FOLDER / name).read_text("utf-8")
    scripts, above = list(scripts), ""
    if generator == PAGE:
        scripts.append(read("demo.js"))
        above = '<a href="../index.html">All pages</a>'
    names = {policy_name(script) for script in scripts}
    return fill(
        FOLDER / "html" / "demo.html",
        allowed=" ".join(sorted({*allowed, *names})) or "'none'",
        generator=generator,
        title=escape(title),
        style=read("site.css") + read("demo.css") + style,
        above=above,
        body="\n".join(body),
        footer=footer,
        scripts="".join(f"<script>{script}</script>" for script in scripts),
    ).encode(errors="replace")  # (half of a surrogate pair becomes a ?)


def data(found: object) -> str:
    """Return JSON for a page, in which nothing can end the script element around it."""
    return json.dumps(found, separators=(",", ":")).replace("<", "\\u003c")


def policy_name(script: str) -> str:
    """Return what a page's policy calls a script that it allows."""
    return f"'sha256-{b64encode(sha256(script.encode()).digest()).decode()}'"


def written_by(path: Path, generator: str) -> bool:
    """Return whether a file says of itself that this generator wrote it."""
    text = path.read_text("utf-8", errors="replace")
    return f'<meta name="generator" content="{generator}">' in text
