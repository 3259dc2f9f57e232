"""Live: the blocks of examples of the book, as a page has them."""

from functools import cache
from html.parser import HTMLParser
from typing import NamedTuple

from demos.site._book import Book
from demos.site._chapters import page_of_chapter, page_of_tool
from demos.site._contents import book


class Block(NamedTuple):
    """A block, its module, its page, and its place on the page from 1."""

    module: str
    page: str
    place: int
    text: str


class Consoles(HTMLParser):
    """The lines of each block of a page."""

    def __init__(self, html):
        super().__init__()
        self.found, self.depth = [], 0
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        """Begin a block, or a line of it."""
        if tag != "div":
            return
        if self.depth == 0 and dict(attrs).get("class") == "code console":
            self.found.append([])
            self.depth = 1
        elif self.depth:
            self.found[-1].append("")
            self.depth += 1

    def handle_endtag(self, tag):
        """End a block, or a line."""
        if tag == "div" and self.depth:
            self.depth -= 1

    def handle_data(self, data):
        """Add to a line."""
        if self.depth == 2:
            self.found[-1][-1] += data


@cache
def blocks():
    """Return all blocks of the book, in the order of the pages."""
    contents = Book(*book())
    pages = [page_of_chapter(contents, each) for each in contents.chapters.values()]
    pages += [page_of_tool(contents, each) for each in contents.tools]
    found = []
    for page in pages:
        for place, lines in enumerate(Consoles("\n".join(page.body)).found, 1):
            typed = ("<BLANKLINE>" if line == " " else line for line in lines)
            found.append(Block(page.module, page.file, place, "\n".join(typed) + "\n"))
    return found
