"""Demos · List: whose index.html a file is, what a page says of a later run, and the list of pages.

A demo replaces a page or a list that a demo wrote, and no other file of that name. As long as the
run that began last in a page's folder has not written a page, the page says so at its top, with
what is known of that run. (If there was no page yet when that run began, nothing can say it.)
"""

from __future__ import annotations

import os
import re
import sys
from argparse import Namespace
from datetime import datetime
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import demos
from demos._markup import document, marked
from minigrad.runs.saving import write_whole

PAGE, LIST = "minigrad, a page", "minigrad, a list of pages"  # who wrote a file, as it says itself
NAV = '<nav><a href="../index.html">All pages</a></nav>'
BEFORE = {NAV: PAGE, "<h1>Pages of the demos</h1>": LIST}  # what older ones have instead
QUICK = "This is a --quick run, which only tests whether everything runs: its numbers mean nothing."
UNKNOWN = "It has not written its page: it was stopped, or it still runs."


def read(path: Path) -> tuple[str, str]:
    """The text of a file, and what it is: PAGE, LIST, or "" if no demo wrote it."""
    text = path.read_text(encoding="utf-8", errors="replace")
    said = re.search(r'<meta name="generator" content="([^"]*)">', text)
    if said:
        return text, said[1] if said[1] in (PAGE, LIST) else ""
    return text, next((kind for mark, kind in BEFORE.items() if mark in text), "")


def refuse_others(path: Path) -> None:
    """End with a sentence if a page cannot be put where something else is."""
    if not os.path.lexists(path):
        return
    try:
        kind = read(path)[1]
        with path.open("r+b"):
            pass
    except OSError as error:
        demos.stop(f"cannot write the page {path}: {error.strerror}; choose a folder with --out")
    if not kind:
        demos.stop(
            f"{path} was not written by a demo, and its page would replace it: choose another "
            "folder with --out"
        )


# ---------------------------------------------------------------- what a page says of a later run


class Later(NamedTuple):
    """A run that began later than the one that a page shows."""

    demo: str
    begun: str  # in UTC, so that the later one is the larger
    became: str  # what is known of it


_SAID = re.compile(
    r'<p class="warning" data-demo="([^"]*)" data-begun="([^"]*)" data-became="([^"]*)">.*?</p>\n'
)


def later_run(text: str) -> Later | None:
    """The later run of which a page speaks."""
    found = _SAID.search(text)
    return Later(*map(unescape, found.groups())) if found else None


def said_of(later: Later | None, shown: str) -> str:
    """The paragraph about a later run, on the page of a run of the demo `shown`."""
    if later is None:
        return ""
    which = "this demo" if later.demo == shown else f"`{later.demo}`"
    at = datetime.fromisoformat(later.begun).astimezone()
    text = (
        f"A later run of {which} began in this folder on {at:%Y-%m-%d} at {at:%H:%M:%S}. "
        f"{later.became} The page shows a run that began before it; pictures and checkpoints "
        "beside the page may be of either."
    )
    data = "".join(f' data-{name}="{escape(x)}"' for name, x in later._asdict().items())
    return f'<p class="warning"{data}>{marked(text)}</p>\n'


def shown_demo(text: str) -> str:
    """The demo whose run a page shows."""
    found = re.search(r'<meta name="demo" content="(\w*)">', text)
    return found[1] if found else ""


def tell(chosen: Namespace, became: str = UNKNOWN) -> None:
    """Say on the folder's page, if it has one, that this run began later; "" takes it back."""
    path = chosen.out / "index.html"
    text, kind = read(path) if path.is_file() else ("", "")
    known = later_run(text)
    if kind != PAGE or (known and known.begun > chosen.begun):
        return
    later = Later(chosen.demo, chosen.begun, became) if became else None
    before, heading, after = _SAID.sub("", text).partition("</h1>\n")
    write_whole(path, before + heading + said_of(later, shown_demo(text)) + after)


# ---------------------------------------------------------------- the list


def above(folder: Path) -> Path:
    """The folder that holds a folder, however that is named: ".", "a/..", or a link."""
    return folder.resolve().parent if ".." in folder.parts else folder.absolute().parent


def renew_list(folder: Path) -> None:
    """index.html of the folder that holds the pages: each of them by its title and its claim.

    Other runs may do the same at this moment, each with the pages that it has seen. So the pages
    are listed again after the writing, until there is no new one: the last one to write sees all.
    """
    path = folder / "index.html"
    try:
        if os.path.lexists(path) and read(path)[1] != LIST:
            said = "that file is a demo's page" if read(path)[1] else "no demo wrote that file"
            print(f"There is no list of pages in {path}: {said}.", file=sys.stderr)
            return
        written = None
        while (body := _body(folder)) != written:
            write_whole(path, document("Pages of the demos", body, marks={"generator": LIST}))
            written = body
    except OSError as error:
        print(f"The list of pages was not renewed: {error}", file=sys.stderr)


def _body(folder: Path) -> list[str]:
    """The list: first the demos in their order, then what is in folders of other names."""
    rows: dict[str, str] = {}
    for path in folder.glob("*/index.html"):
        try:
            text, kind = read(path)
        except OSError:  # a folder of this name, or a file that may not be read
            continue
        if kind == PAGE:
            rows[path.parent.name] = _row(path.parent.name, text)
    known = [rows[name] for name in demos.files() if name in rows]
    others = [rows[name] for name in sorted(rows.keys() - demos.files().keys())]
    body = ["<h1>Pages of the demos</h1>", f"<ul>{''.join(known)}</ul>" * bool(known)]
    return [*body, "<h2>In other folders</h2>", f"<ul>{''.join(others)}</ul>"] if others else body


def _row(name: str, text: str) -> str:
    """A page's title, which leads to it, what is to be known of it, and its claim."""
    title, claim = (
        unescape(re.sub("<[^>]*>", "", found[1])) if found else ""
        for found in (
            re.search("<title>(.*?)</title>", text, re.DOTALL),
            re.search('<p class="claim">(.*?)</p>', text, re.DOTALL),
        )
    )
    known = [f"<code>{escape(name)}</code>"] if name not in demos.files() else []
    known += ['<span class="kind">--quick</span>'] * (f"{escape(QUICK)}</p>" in text)
    known += ['<span class="kind">a later run began</span>'] * bool(_SAID.search(text))
    address = quote(os.fsencode(name)) + "/index.html"
    words = " ".join([f'<a href="{address}">{escape(title or name)}</a>', *known])
    return f"<li><p>{words}<br>{escape(claim)}</p></li>"
