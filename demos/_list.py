"""Demos · List: which index.html a demo may replace, and the list of pages.

A demo replaces a page or a list that a demo wrote, and no other file of that name.
"""

from __future__ import annotations

import os
import re
import sys
from html import escape, unescape
from pathlib import Path
from urllib.parse import quote

import demos
from demos._markup import document
from minigrad.runs.saving import write_whole

PAGE, LIST = "minigrad, a page", "minigrad, a list of pages"  # who wrote a file, as it says itself
NAV = '<nav><a href="../index.html">All pages</a></nav>'
QUICK = "This is a --quick run, which only tests whether everything runs: its numbers mean nothing."


def read(path: Path) -> tuple[str, str]:
    """The text of a file, and what it is: PAGE, LIST, or "" if no demo wrote it."""
    text = path.read_text(encoding="utf-8", errors="replace")
    said = re.search(r'<meta name="generator" content="([^"]*)">', text)
    return text, said[1] if said and said[1] in (PAGE, LIST) else ""


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


# ---------------------------------------------------------------- the list


def renew_list(folder: Path) -> None:
    """Write index.html of the folder that holds the pages: each page by its title and its claim."""
    path = folder / "index.html"
    try:
        if os.path.lexists(path) and read(path)[1] != LIST:
            said = "that file is a demo's page" if read(path)[1] else "no demo wrote that file"
            print(f"There is no list of pages in {path}: {said}.", file=sys.stderr)
            return
        body = _body(folder)
        write_whole(path, document("Pages of the demos", body, marks={"generator": LIST}))
    except OSError as error:
        print(f"The list of pages was not renewed: {error}", file=sys.stderr)


def _body(folder: Path) -> list[str]:
    """The list: first the demos in their order, then what is in folders of other names."""
    rows: dict[str, str] = {}
    for path in folder.glob("*/index.html"):
        text, kind = read(path)
        if kind == PAGE:
            rows[path.parent.name] = _row(path.parent.name, text)
    known = [rows[name] for name in demos.files() if name in rows]
    others = [rows[name] for name in sorted(rows.keys() - demos.files().keys())]
    body = ["<h1>Pages of the demos</h1>", f"<ul>{''.join(known)}</ul>" * bool(known)]
    return [*body, "<h2>In other folders</h2>", f"<ul>{''.join(others)}</ul>"] if others else body


def _row(name: str, text: str) -> str:
    """A page's title, which leads to it, what is to be known of it, and its claim."""
    title, claim = (
        unescape(re.sub("<[^>]*>", "", found[1].replace("<sub>", "_"))) if found else ""
        for found in (
            re.search("<title>(.*?)</title>", text, re.DOTALL),
            re.search('<p class="claim">(.*?)</p>', text, re.DOTALL),
        )
    )
    known = [f"<code>{escape(name)}</code>"] if name not in demos.files() else []
    known += ['<span class="kind">--quick</span>'] * (f"{escape(QUICK)}</p>" in text)
    address = quote(os.fsencode(name)) + "/index.html"
    words = " ".join([f'<a href="{address}">{escape(title or name)}</a>', *known])
    return f"<li><p>{words}<br>{escape(claim)}</p></li>"
