"""Demos · List: which index.html a demo may replace, and the list of pages.

A demo replaces a page or a list that a demo wrote, and no other file of that name.
"""

from __future__ import annotations

import os
import re
import sys
from html import escape
from pathlib import Path
from urllib.parse import quote

import demos
from minigrad.runs.saving import write_whole

PAGE, LIST = "minigrad, a page", "minigrad, a list of pages"  # who wrote a file, as it says itself
TITLE, CLAIM = "<title>(.*?)</title>", '<p class="claim">(.*?)</p>'
QUICK = "This is a --quick run, which only tests whether everything runs: its numbers mean nothing."


def read(path: Path) -> tuple[str, str]:
    """Return the text of a file, and what it is: PAGE, LIST, or "" if no demo wrote it."""
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
    from demos.site._templates import page_alone  # (the list of demos needs no markdown-it)

    path = folder / "index.html"
    try:
        if os.path.lexists(path) and read(path)[1] != LIST:
            said = "that file is a demo's page" if read(path)[1] else "no demo wrote that file"
            print(f"There is no list of pages in {path}: {said}.", file=sys.stderr)
            return
        write_whole(path, page_alone("Pages of the demos", _body(folder), generator=LIST))
    except OSError as error:
        print(f"The list of pages was not renewed: {error}", file=sys.stderr)


def _body(folder: Path) -> list[str]:
    """Return the list: first the demos in their order, then what is in folders of other names."""
    pages = {path.parent.name: read(path) for path in sorted(folder.glob("*/index.html"))}
    order = [*demos.files(), *(pages.keys() - demos.files().keys())]
    rows = [
        _row(name, pages[name][0]) for name in order if name in pages and pages[name][1] == PAGE
    ]
    return ["<h1>Pages of the demos</h1>", f'<ul class="list">{"".join(rows)}</ul>']


def _row(name: str, text: str) -> str:
    """Return a page's title, which leads to it, whether it is of a --quick run, and its claim."""
    found = [re.search(tag, text, re.DOTALL) for tag in (TITLE, CLAIM)]
    title, claim = (each[1] if each else "" for each in found)  # (HTML, as the page has it)
    quick = " (--quick)" * (escape(QUICK) in text)
    address = quote(os.fsencode(name)) + "/index.html"
    shown = f"<code>{escape(name)}</code>{quick}<br>{claim}"
    return f'<li><a href="{address}">{title or escape(name)}</a> {shown}</li>'
