"""Pages · Publish: a script says each thing once, on the terminal and on its page.

    page = publish(chosen)
    drawn = page.figure(figure, "loss", alt="The loss falls from 2.3 to 0.1.")
    page.finding(f"The head answers {right:.0%} of the questions.", drawn)
    page.ask("Which share would a guess answer?", "6 %.", guesses=("6 %", "50 %"))
    page.end()

What is said is printed. `end` writes out/NAME/index.html, one file that looks like a page of the
site: finding, claim, question, and the script's cells in their order: heading and comment, what the
cell has said, its code. The same content is saved beside it for the site. Text is Markdown. In a
notebook each part shows itself, and there is no page.
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
from importlib import import_module
from pathlib import Path
from typing import Any
from urllib.parse import quote

from markupsafe import Markup

from attention.figures import save_figure
from demos._files import stop
from demos._training import Marks
from demos.pages import tables
from demos.pages.content import FOLDER, SAVED, Content, Part
from demos.pages.page import LIST, PAGE, page_alone, written_by
from demos.pages.source import Source, coloured
from demos.pages.tables import inlined, printed
from demos.pages.templates import fill, parts
from demos.pages.text import inline, markdown, set_text
from minigrad.runs.saving import write_whole

QUICK = "This is a --quick run, which only tests whether everything runs: its numbers mean nothing."
TITLE, CLAIM = "<title>(.*?)</title>", '<p class="claim">(.*?)</p>'


def publish(chosen: Namespace) -> Published:
    """Begin the page of the script that calls; `chosen` is what `options` returned."""
    import_module("matplotlib")  # (its first picture comes after the work, and is then refused)
    for name in ("index.html", SAVED):
        refuse_to_replace(chosen.out / name)
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
        self.programs: list[tuple[str, str]] = []  # of each, its script and its style

    def say(self, text: str) -> Part:
        """Say paragraphs, lists, and displays, whose lines begin with four spaces."""
        return self.html(markdown(text, set_text), printed(text))

    def finding(self, text: str, figure: Part | None = None) -> None:
        """Say what stands on top of the page, beside what `figure` or `slider` returned."""
        self.html(parts.finding(markdown(text, set_text)), printed(text), "finding")
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
        frame = lambda source: tables.figure(parts.frame(path.stem, source), "")
        html = frame(Markup('srcdoc="{}"').format(text))
        at_site = frame(Markup('src="{}/{}/{}"').format(FOLDER, self.chosen.demo, path.name))
        return self.html(html, f"Both passes: {path}", "right", at_site)

    def html(
        self, html: str, text: str = "", place: str = "left", at_site: str | None = None
    ) -> Part:
        """Show HTML that the caller made; a terminal gets the text. Return the part.

        place    "left", in the column of prose; "right", beside it; "below", as wide as both;
                 "question", on top of the page, below the finding
        at_site  what the site shows instead, where other pages are beside this one
        """
        part = Part(Markup(html), 0, place, Markup(html if at_site is None else at_site))
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
        title = inline(summary, set_text)
        html = parts.fold(title, Markup("").join(part.html for part in self.parts))
        at_site = parts.fold(title, Markup("").join(part.at_site for part in self.parts))
        self.parts = outside
        self.folding = in_a_fold
        self.html(html, f"{printed(summary)}: on the page", place, at_site)

    def program(self, markup: str, *, script: str, style: str = "", at_site: str) -> Part:
        """Show HTML that a script of its own fills when the reader moves something.

        `at_site` leads to the page that the site has of the program.
        """
        self.programs.append((script, style))
        return self.html(markup, at_site=at_site)

    def end(self) -> None:
        """Write the page and say where it is; then end as `Marks.end` does."""
        if not self.notebook:
            drawn = [part for part in self.parts if part.drawn]
            drawn.sort(key=lambda part: part.place != "picture")  # the one beside the finding
            if drawn:
                save_small(drawn[0].drawn, self.chosen.out)
            path = self.chosen.out / "index.html"
            content = self._content()
            content.save(self.chosen.out)
            write_whole(path, self._alone(content))
            renew_list(self.chosen.out.resolve().parent)
            print(f"\nThe page: {path}")
        self.marks.end()

    def _content(self) -> Content:
        """Return what was said, and how this run was made."""
        facts = [f"seed {self.chosen.seed}"]
        if self.chosen.steps:
            facts.append(f"{self.chosen.steps} steps")
        warnings = [QUICK] if self.chosen.shortened else []
        if self.marks.note:
            warnings += [self.marks.note, *self.marks.failed]
        return Content(self.source, facts, warnings, self.parts, self.marks.rows, self.style)

    def _alone(self, content: Content) -> bytes:
        """Return the whole file of a page alone."""
        command = parts.code(f"python -m demos {self.chosen.demo}")
        lines = coloured(self.source.text, {})
        code = lambda of: parts.lines(lines[of.start - 1 : of.stop - 1], of.start)
        top = parts.top("Demo", *(inline(text, set_text) for text in content.title))
        return page_alone(
            content.title[0],
            [top, *content.body(set_text, code, [command, *content.facts])],
            demo=self.chosen.demo,
            style="".join([content.style, *(style for _, style in self.programs)]),
            scripts=[script for script, _ in self.programs],
            allowed=sorted(self.allowed),
        )


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
