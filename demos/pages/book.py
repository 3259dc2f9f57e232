"""Pages · Book: what the owner of pages may ask of the book in which they are bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from markupsafe import Markup

from demos.pages.source import Source


class Chapter(Protocol):
    """A chapter, as other pages name it."""

    number: str
    title: str

    @property
    def page(self) -> str:
        """Return the file name of its page."""


class Book(Protocol):
    """The book that an owner's `pages(book)` is given. The site makes it."""

    index: list[tuple[str, str, str]]  # of Find: a name, what it is, its address

    @property
    def chapters(self) -> Mapping[str, Chapter]:
        """Return the chapters by their numbers, in their order."""

    def links(self, text: str) -> Markup:
        """Return a text as HTML whose chapters and exercises are links."""

    def prose(self, text: str) -> Markup:
        """Return the paragraphs of a text as HTML."""

    def code(self, source: Source, first: int, last: int, skip: range = range(0)) -> Markup:
        """Return lines first to last of a file as HTML, without those of `skip`."""
