"""Pages · Content: a demo's page without its frame: the demo's file, and what a run of it has said.

`publish` sets it in a page that needs no other file, and saves it beside that page. The site reads
it there and sets it in its own frame, where chapters and names in code are links.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup

from demos.pages import tables
from demos.pages.page import PAGE
from demos.pages.source import Source, cells
from demos.pages.templates import parts
from demos.pages.text import Links, inline, markdown, slug
from minigrad.runs.saving import write_whole

FOLDER = "demos"  # of the site, in which a run has a folder of its name
SAVED = "content.json"


@dataclass(eq=False)
class Part:
    """A part of what a script has said: its HTML, the line that said it, its place on the page."""

    html: Markup
    line: int
    place: str  # left, right or below in its cell; on top: finding, picture or question
    at_site: Markup = field(default_factory=Markup)  # its HTML where the site's pages are beside it
    drawn: Any = None  # the figure of matplotlib or the Graph that it shows


@dataclass
class Content:
    """A demo's file, and what a run has said; without a run, the file alone."""

    source: Source
    facts: list[str] = field(default_factory=list)  # how it was run, and none if it was not
    warnings: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    checks: list[list[str]] = field(default_factory=list)  # what, this run, pass mark, result
    style: str = ""  # of this page, besides that of all demos

    @property
    def title(self) -> tuple[str, str]:
        """Return the title, and the sentence below it."""
        name, _, line = self.source.docstring.partition("\n")[0].rstrip(".").partition(": ")
        return name, line[:1].upper() + line[1:]

    def save(self, folder: Path) -> None:
        """Write what a run has said, as the site shows it."""
        said = [(part.at_site, part.line, part.place) for part in self.parts]
        fields = vars(self) | {"generator": PAGE, "source": self.source.text, "parts": said}
        write_whole(folder / SAVED, json.dumps(fields).encode())

    def body(
        self, links: Links, code: Callable[[range], Markup], facts: Sequence[str]
    ) -> list[Markup]:
        """Return the page below its title: the finding and its picture, the question, the cells.

        links  sets a text
        code   returns lines of the file as HTML
        facts  what stands below the question
        """
        claim, more = self.source.docstring.partition("\n")[2], ""
        if self.facts:  # (these have the command)
            claim, _, more = claim.partition("    python -m")
        claims = markdown(claim.strip().removeprefix("Claim. "), links)
        claims = claims.replace("<p>", Markup('<p class="claim">'))
        return [
            *(parts.warning(text) for text in self.warnings),
            parts.row(self._placed("finding") + claims, self._placed("picture"), "opening"),
            self._placed("question"),
            parts.facts(facts),
            markdown(more.partition("\n")[2], links),
            *self._cells(links, code),
            *([self._checked()] if self.facts else []),
        ]

    def _placed(self, place: str, lines: range | None = None) -> Markup:
        """Return the parts that have this place, of all cells or of one."""
        placed = [part for part in self.parts if part.place == place]
        return Markup("").join(x.html for x in placed if lines is None or x.line in lines)

    def _cells(self, links: Links, code: Callable[[range], Markup]) -> list[Markup]:
        """Return the cells: prose and what a cell said, what it showed beside that, and code."""
        html = []
        for cell in cells(self.source.text):
            right, below = self._placed("right", cell.lines), self._placed("below", cell.lines)
            left = markdown(cell.comment, links) + self._placed("left", cell.lines)
            if cell.heading:
                left = parts.heading(slug(cell.heading), inline(cell.heading, links)) + left
            text = cell.code.removesuffix("page.end()").rstrip()
            program = code(cell.lines[: text.count("\n") + 1]) if text else Markup("")
            if program and (self.facts or cell.heading == "Set-up"):
                program = parts.fold("The code", program)
            if right:
                html += [parts.row(left, right, "rule"), below, program]
            else:
                html += [parts.row(left, program, "rule"), below]
        return html

    def _checked(self) -> Markup:
        """Return the checks of the run, folded."""
        sign = lambda mark: mark.replace("at least", "≥").replace("at most", "≤")
        rows = [[what, got, sign(mark), verdict] for what, got, mark, verdict in self.checks]
        passed = sum(row[-1] == "passed" for row in rows)
        columns = 3 if passed == len(rows) else 4  # (each result is the same, or is shown)
        head = ["Check", "this run", "pass mark", "result"]
        table = tables.table(head[:columns], [row[:columns] for row in rows])
        return Markup(parts.fold(f"{passed} of {len(rows)} checks passed", table))


def saved(source: Source, folder: Path | None) -> Content:
    """Return what the run of a demo has left in a folder, if it was a run of this very file."""
    path = folder / SAVED if folder else None
    if not path or not path.exists():
        return Content(source)
    fields = json.loads(path.read_text("utf-8"))
    if fields["source"] != source.text:
        print(f"{source.path} has changed since its run: the site shows it without results")
        return Content(source)
    del fields["generator"]
    parts = [Part(Markup(html), line, place) for html, line, place in fields["parts"]]
    return Content(**fields | {"source": source, "parts": parts})
