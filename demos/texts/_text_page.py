"""Demos · Texts: the page of a source text, with its numbers beside ours and its doubtful lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from types import ModuleType

import numpy as np

from demos._page import Html, Page
from demos._training import Marks
from demos.texts.sources import KINDS, Teller, agreeing, counted, kinds

WIDEST = 16  # numbers in a row of a table
LEGEND = {
    "wrong": "what the text says, prints or runs is not so",
    "unclear": "it can be read in two ways, or a name says something else",
    "left open": "nothing is wrong, but a condition, a choice or a further case is not mentioned",
}


class TextPage(Page):
    """A page that knows the content of a module of `demos.texts.sources`."""

    def __init__(self, text: ModuleType, title: str, *, claim: str) -> None:
        super().__init__(title, claim=claim)
        self.text, self.ours = text, text.ours()

    def numbers(
        self, *first: str, names: Mapping[str, tuple[Sequence[str], Sequence[str]]] | None = None
    ) -> None:
        """Say how many numbers come back, and show `first` beside ours and all others folded.

        names   for an array, the names of its rows and of its columns
        """
        names = names or {}
        same, printed = counted(self.text)
        self.section("Its numbers beside ours")
        self.say(
            f"The text prints {printed} numbers, and {same} of them come out of minigrad as the "
            "same text, in every printed digit."
            + (f" What cannot come back: {self.text.LOST}." if self.text.LOST else "")
        )
        for name in first:
            self._beside(name, *names.get(name, ((), ())))
        with self.folded(f"All {printed} numbers, array by array"):
            rows = []
            for name, numbers in self.text.PRINTED.items():
                count, mine = len(numbers.split()), self.ours.get(name)
                came = 0 if mine is None else agreeing(numbers, self.text.as_text(mine))
                shape = "" if mine is None else " × ".join(map(str, mine.shape)) or "1"
                rows.append([name, shape, count, came])
            caption = "Every array that the text prints, and how many of its numbers come back"
            self.table(["array", "shape", "numbers", "the same"], rows, caption=caption)
            for name in self.ours:
                if name not in first:
                    self._beside(name, *names.get(name, ((), ())))

    def _beside(self, name: str, rows: Sequence[str], columns: Sequence[str]) -> None:
        """Show one array as the text prints it, and as we compute it."""
        array = self.ours[name]
        theirs, mine = self.text.PRINTED[name].split(), self.text.as_text(array)
        width = array.shape[-1] if array.ndim else 1
        caption = f"{name}: {agreeing(self.text.PRINTED[name], mine)} of {len(mine)} the same"
        if width > WIDEST:
            self.say(f"{caption}.")
            self.code(["the text  " + " ".join(theirs), "ours      " + " ".join(mine)])
            return
        columns = columns or [str(n + 1) for n in range(width)]
        if array.ndim < 2:
            both = [["the text", *theirs], ["ours", *mine]]
            self.table(["", *columns], both, caption=caption)
            return
        lines = []
        for start, index in zip(
            range(0, len(mine), width), np.ndindex(array.shape[:-1]), strict=True
        ):
            label = rows[len(lines)] if rows else ", ".join(str(n + 1) for n in index)
            lines.append([label, *theirs[start : start + width], *mine[start : start + width]])
        groups = [("", 1), ("the text", width), ("ours", width)]
        self.table(["", *columns, *columns], lines, caption=caption, groups=groups)

    def doubts(self, tell: Teller) -> None:
        """Show each line that is wrong, unclear or left open, with its computation."""
        self.section("What is wrong in it, unclear or left open")
        found = dict(zip(KINDS, kinds(self.text), strict=True))
        rows = [[kind, LEGEND[kind], count] for kind, count in found.items()]
        self.table(["kind", "meaning", "entries"], rows, caption="Three kinds of entries")
        for number, (slip, shown, printed) in enumerate(tell.doubts, 1):
            kind = escape(slip.kind)
            label = f'<span class="kind {kind.replace(" ", "-")}">{kind}</span>'
            self.head(Html(f"{number} {label}"))
            facts = {"The text": [slip.says], "What is so": [slip.so], "Computed": shown}
            self.facts({name: sentences for name, sentences in facts.items() if sentences})
            if printed:
                self.code(printed.splitlines())

    def judged(self, marks: Marks) -> None:
        """Show every number of the run that has a pass mark, beside its mark, folded."""
        with self.folded(f"{len(marks.rows)} numbers of this run, each beside its pass mark"):
            marks.table(self, "What the claims of this page rest on, and what would refute them")
