"""Site · Sections: for Find, the words of the prose below each heading of every page."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from html.parser import HTMLParser

from demos.pages.page import Page

WORD = re.compile(r"[^\W\d_][\w-]*[^\W_]")  # of two letters or more: d_k, one-hot, float32
HEADINGS = ("h1", "h2", "h3")
SKIPPED = ("script", "style", "nav", "button", "svg", "pre")  # what is not prose
VOID = ("br", "img", "input", "source", "wbr")  # elements without an end


class Section:
    """A heading with its address, and the words that stand below it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.heading = ""
        self.words: set[str] = set()


class Sections(HTMLParser):
    """The sections of a page. One whose heading has no address of its own has the page's."""

    def __init__(self, page: Page) -> None:
        super().__init__()
        self.file = page.file
        self.sections = [Section(page.file)]
        self.open: list[str] = []  # the elements around, "" for one that is skipped
        self.feed("\n".join(page.body))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Enter an element; begin a section at each heading."""
        if tag in VOID:
            return
        about = dict(attrs)
        is_code = (about.get("class") or "").partition(" ")[0] == "code"
        self.open.append("" if tag in SKIPPED or is_code else tag)
        if tag in HEADINGS and "" not in self.open:
            fragment = f"#{about['id']}" if "id" in about else ""
            self.sections.append(Section(f"{self.file}{fragment}"))

    def handle_endtag(self, tag: str) -> None:
        """Leave an element."""
        if tag not in VOID:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        """Add a text to its section."""
        if "" in self.open:
            return
        section = self.sections[-1]
        if any(tag in self.open for tag in HEADINGS):
            section.heading += data.replace("¶", "")
        section.words.update(word.lower() for word in WORD.findall(data))


def sections(page: Page) -> list[Section]:
    """Return the sections of a page that have words."""
    return [section for section in Sections(page).sections if section.words]


def script(pages: Iterable[Page]) -> str:
    """Return the script with the sections of all pages: title, and address, heading and words."""
    listed = []
    for page in pages:
        rows = [(x.address, x.heading.strip(), " ".join(sorted(x.words))) for x in sections(page)]
        listed.append((page.title, rows))
    text = json.dumps(listed, ensure_ascii=False, separators=(",", ":"))
    return f"window.SECTIONS={text};\n"
