"""Pages · Publish: a script says each thing once, on the terminal and on its page.

    page = publish(chosen)
    drawn = page.figure(figure, "loss", alt="The loss falls from 2.3 to 0.1.")
    page.finding(f"The head answers {right:.0%} of the questions.", drawn)
    page.ask("Which share would a guess answer?", "6 %.", guesses=("6 %", "50 %"))
    page.end()

What is said is printed. `end` writes out/NAME/index.html, one file that looks like a page of the
site: claim, finding, question, and the script's cells in their order: heading and comment, what the
cell has said, its code. Text is Markdown. In a notebook each part shows itself, and there is no
page.
"""

from __future__ import annotations

import base64
import io
import os
import re
import sys
import textwrap
from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from attention.figures import save_figure
from demos._files import stop
from demos._training import Marks
from demos.pages import tables
from demos.pages.page import LIST, PAGE, page_alone, written_by
from demos.pages.source import Cell, Source, cells, coloured
from demos.pages.tables import inlined, printed
from demos.pages.templates import fill, parts
from demos.pages.text import inline, markdown, set_text, slug
from minigrad.runs.saving import write_whole

QUICK = "This is a --quick run, which only tests whether everything runs: its numbers mean nothing."
TITLE, CLAIM = "<title>(.*?)</title>", '<p class="claim">(.*?)</p>'


@dataclass(eq=False)
class Part:
    """A part of what a script has said: its HTML, the line that said it, its place on the page."""

    html: Markup
    line: int
    place: str  # left, right or below in its cell; on top: finding, picture or question
    drawn: Any = None  # the figure of matplotlib or the Graph that it shows


def publish(chosen: Namespace) -> Published:
    """Begin the page of the script that calls; `chosen` is what `options` returned."""
    import_module("matplotlib")  # (its first picture comes after the work, and is then refused)
    refuse_to_replace(chosen.out / "index.html")
    return Published(chosen, sys._getframe(1).f_globals)


class Published:
    """A script's words and pictures: shown at once, and written on its page at the end."""

    def __init__(self, chosen: Namespace, script: dict[str, Any]) -> None:
        self.chosen = chosen
        self.script = script
        self.notebook = "get_ipython" in script
        self.source = Source(chosen.demo, chosen.file, Path(chosen.file).read_text("utf-8"))
        self.marks = Marks(chosen)
        self.parts: list[Part] = []
        self.folding = False
        self.allowed: set[str] = set()  # hashes of the scripts of pages inside this one
        if chosen.shortened:
            print(QUICK)
        self.style = ""  # of this page, besides the site's
        self.scripts: list[str] = []

    def say(self, text: str) -> Part:
        """Say paragraphs, lists, and displays, whose lines begin with four spaces."""
        return self.html(markdown(text, set_text), printed(text))

    def finding(self, text: str, figure: Part | None = None) -> None:
        """Say what stands on top of the page, beside what `figure` or `slider` returned."""
        part = self.say(text)
        part.html, part.place = parts.finding(part.html), "finding"
        if figure:
            figure.place = "picture"

    def ask(self, question: str, answer: str, guesses: Sequence[str] = ()) -> None:
        """Ask what the finding has not said; a reader takes a guess, or opens the answer."""
        choices = [inline(guess, set_text) for guess in guesses]
        html = parts.question(inline(question, set_text), choices, markdown(answer, set_text))
        offered = f" ({', '.join(guesses)}?)" if guesses else ""
        text = f"{printed(question + offered)}\n{textwrap.indent(printed(answer), '   ')}"
        place = "left" if any(part.place == "question" for part in self.parts) else "question"
        self.html(html, text, place)

    def table(self, head: Sequence[str], rows: Sequence[Any], caption: str = "") -> Part:
        """Show a table; columns of numbers are aligned to the right."""
        html = tables.table(head, rows, caption)
        return self.html(html, tables.columns(head, rows, caption), "right")

    def figure(self, figure: Any, name: str, alt: str, caption: str = "") -> Part:
        """Show a figure of matplotlib or a Graph; save both files. `alt` says it with numbers."""
        path = self.chosen.out / name
        if hasattr(figure, "savefig"):
            save_figure(figure, path)
        else:
            figure.save(f"{path}.svg")
            figure.save(f"{path}.png")
        svg = inlined(Path(f"{path}.svg").read_text("utf-8"), alt, name)
        part = self.html(
            tables.figure(svg, caption), printed(f"{name}.png: {caption or alt}"), "right"
        )
        part.drawn = figure
        return part

    def slider(
        self, figures: list[Any], name: str, labels: list[str], alt: list[str], caption: str
    ) -> Part:
        """Show one of several figures of matplotlib, at first the last, which is also saved."""
        pictures = []
        for figure, label, description in zip(figures, labels, alt, strict=True):
            png = io.BytesIO()
            figure.savefig(png, format="png", dpi=110)
            data = base64.b64encode(png.getvalue()).decode()
            width = f"{110 * figure.get_figwidth():.0f}"
            pictures.append({"data": data, "label": label, "alt": description, "width": width})
        save_figure(figures[-1], self.chosen.out / name)
        text = printed(f"{name}.png: {caption}. {labels[-1]}: {alt[-1]}")
        part = self.html(tables.figure(parts.slider(caption, pictures), caption), text, "right")
        part.drawn = figures[-1]
        return part

    def embed(self, path: Path) -> Part:
        """Show a page of both passes inside this one."""
        text = path.read_text("utf-8")
        self.allowed |= {*re.findall("'sha256-[^']*'", text.partition("<title>")[0])}
        html = tables.figure(parts.frame(path.stem, text), "")
        return self.html(html, f"Both passes: {path}", "right")

    def html(self, html: str, text: str = "", place: str = "left") -> Part:
        """Show HTML that the caller made; a terminal gets the text. Return the part.

        place  "left", in the column of prose; "right", beside it; "below", as wide as both;
               "question", on top of the page, below the finding
        """
        part = Part(Markup(html), 0, place)
        if self.notebook and not self.folding:
            from IPython.display import HTML, display

            display(HTML(str(part.html)))
        elif not self.notebook:
            if text and not self.folding:
                print(f"\n{text}")
            frame = sys._getframe(1)
            while frame.f_globals is not self.script or frame.f_code.co_name != "<module>":
                frame = frame.f_back  # the cell that called a function of the script
            part.line = frame.f_lineno
        self.parts.append(part)
        return part

    @contextmanager
    def folded(self, summary: str, place: str = "left") -> Iterator[None]:
        """Fold what is said inside behind a line; the terminal leaves it to the page."""
        outside = self.parts
        in_a_fold = self.folding
        self.parts = []
        self.folding = True
        yield
        html = Markup("").join(part.html for part in self.parts)
        self.parts = outside
        self.folding = in_a_fold
        title = inline(summary, set_text)
        self.html(parts.fold(title, html), f"{printed(summary)}: on the page", place)

    def program(self, markup: str, *, script: str, style: str = "") -> Part:
        """Show HTML that a script of its own fills when the reader moves something."""
        self.scripts.append(script)
        self.style += style
        return self.html(markup)

    def end(self) -> None:
        """Write the page and say where it is; then end as `Marks.end` does."""
        if not self.notebook:
            drawn = [part for part in self.parts if part.drawn]
            drawn.sort(key=lambda part: part.place != "picture")  # the one beside the finding
            if drawn:
                save_small(drawn[0].drawn, self.chosen.out)
            path = self.chosen.out / "index.html"
            write_whole(path, self._document())
            renew_list(self.chosen.out.resolve().parent)
            print(f"\nThe page: {path}")
        self.marks.end()

    def _document(self) -> bytes:
        """Return the whole file."""
        marks = self.marks
        chosen = self.chosen
        title, _, text = self.source.docstring.partition("\n")
        name, _, line = title.rstrip(".").partition(": ")
        claim, _, more = text.partition("    python -m")
        facts = [parts.code(f"python -m demos {chosen.demo}"), f"seed {chosen.seed}"]
        if chosen.steps:
            facts.append(f"{chosen.steps} steps")
        sub = inline(line[:1].upper() + line[1:], set_text)
        body = [parts.top("Demo", inline(name, set_text), sub, facts)]
        warnings = [QUICK] if chosen.shortened else []
        if marks.note:
            warnings += [marks.note, *marks.failed]
        body += [parts.warning(text) for text in warnings]
        left = markdown(claim.strip().removeprefix("Claim. "), set_text)
        left = left.replace("<p>", Markup('<p class="claim">'))
        body.append(parts.row(left + self._placed("finding"), self._placed("picture")))
        body.append(self._placed("question"))
        body += [markdown(more.partition("\n")[2], set_text), *self._cells()]
        passed = f"{len(marks.rows) - len(marks.failed)} of {len(marks.rows)} checks passed"
        head = ["Check", "this run", "pass mark", "result"]
        rows = []
        for what, got, mark, verdict in marks.rows:
            mark = mark.replace("at least", "≥").replace("at most", "≤")
            rows.append([what, got, mark, verdict])
        if not marks.failed:  # (then each result is the same)
            head = head[:3]
            rows = [row[:3] for row in rows]
        body.append(parts.fold(passed, tables.table(head, rows)))
        return page_alone(
            name,
            body,
            demo=chosen.demo,
            style=self.style,
            scripts=self.scripts,
            allowed=sorted(self.allowed),
        )

    def _placed(self, place: str) -> Markup:
        """Return the parts that have this place."""
        return Markup("").join(part.html for part in self.parts if part.place == place)

    def _cells(self) -> list[Markup]:
        """Return the cells: prose and what a cell said, what it showed beside that, and code."""
        html = []
        for cell in cells(self.source.text):
            places = ("left", "right", "below", "finding", "picture", "question")
            at = dict.fromkeys(places, Markup(""))
            for part in self.parts:
                if part.line in cell.lines:
                    at[part.place] += part.html
            left = markdown(cell.comment, set_text) + at["left"]
            if cell.heading:
                heading = inline(cell.heading, set_text)
                left = parts.heading(slug(cell.heading), heading) + left
            code = _code(cell)
            if code and (any(at.values()) or cell.heading == "Set-up"):
                code = parts.fold("The code", code)
            if at["right"]:
                html += [parts.row(left, at["right"], "rule"), at["below"], code]
            else:
                html += [parts.row(left, code, "rule"), at["below"]]
        return html


def _code(cell: Cell) -> Markup:
    """Return a cell's lines with their numbers, but for the last call; "" if it has none."""
    code = cell.code.removesuffix("page.end()").rstrip()
    if not code:
        return Markup("")
    return parts.lines(coloured(code, {}), cell.lines.start)


def save_small(figure: Any, folder: Path) -> None:
    """Save the picture that stands for the page in a list: a plot's first panel, or a Graph."""
    if not hasattr(figure, "savefig"):
        figure.save(folder / "small.svg")
        return
    panel = figure.axes[0].get_window_extent().transformed(figure.dpi_scale_trans.inverted())
    dpi = min(480 / panel.width, 300 / panel.height)  # twice the size at which it is shown
    png = io.BytesIO()
    figure.savefig(png, format="png", dpi=dpi, bbox_inches=panel.padded(3 / dpi))
    write_whole(folder / "small.png", png.getvalue())


def refuse_to_replace(path: Path) -> None:
    """End with a sentence if a page would replace a file that is not a demo's page."""
    if path.exists() and not written_by(path, PAGE):
        stop(
            f"{path} is not a demo's page, and a page would replace it: choose another folder "
            "with --out"
        )


# ---------------------------------------------------------------- the list


def renew_list(folder: Path) -> None:
    """Write index.html of the folder that holds the pages: each page by its title and its claim."""
    path = folder / "index.html"
    try:
        if path.exists() and not written_by(path, LIST):
            print(f"There is no list of pages in {path}: it is another file.", file=sys.stderr)
            return
        paths = sorted(folder.glob("*/index.html"))
        pages = [path for path in paths if written_by(path, PAGE)]
        body = fill("pages/html/list.html", pages=map(_listed, pages))
        write_whole(path, page_alone("Pages of the demos", [body], generator=LIST))
    except OSError as error:
        print(f"The list of pages was not renewed: {error}", file=sys.stderr)


def _listed(path: Path) -> dict[str, str]:
    """Return what the list says of a page: its title, its folder's name and address, its claim."""
    name = path.parent.name
    text = path.read_text("utf-8")
    title = re.search(TITLE, text, re.DOTALL)
    claim = re.search(CLAIM, text, re.DOTALL)
    return {
        "name": name,
        "address": quote(os.fsencode(name)),
        "title": Markup(title[1]) if title else name,  # (HTML, as the page has it)
        "claim": Markup(claim[1]) if claim else "",
    }
