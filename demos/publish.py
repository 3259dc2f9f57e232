"""Demos · Publish: a script says each thing once, on the terminal and on its page.

    page = publish(chosen)
    drawn = page.figure(figure, "loss", alt="The loss falls from 2.3 to 0.1.")
    page.finding(f"The head answers {right:.0%} of the questions.", drawn)
    page.ask("Which share would a guess answer?", "6 %.", guesses=("6 %", "50 %"))
    page.end()

What is said is printed. `end` writes out/index.html, one file that looks like a page of the site:
claim, finding, question, and the script's cells in their order: heading and comment, what the cell
has said, its code. Text is Markdown. In a notebook each part shows itself, and there is no page.
"""

from __future__ import annotations

import base64
import io
import re
import shutil
import sys
import textwrap
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from attention.figures import save_figure
from demos._list import PAGE, QUICK, refuse_others, renew_list
from demos._markup import hash_of
from demos._training import Marks
from demos.site._source import Source, coloured
from demos.site._templates import FOLDER, MARKDOWN, fill, fold, formula, inline, markdown, row, top
from minigrad.runs.saving import write_whole

CELL = re.compile(r"# %% ?(.*)\n((?:#.*\n)*)\n*((?:.*\n?)*)")  # heading, comment, code
NUMBER = re.compile(r"[-−+]?[\d.,]+(e[-+]?\d+)?( ?%| times)?( ± [\d.]+)?")


@dataclass(eq=False)
class Part:
    """A part of what a script has said: its HTML, the line that said it, its place on the page."""

    html: str
    line: int
    place: str  # left or right in its cell; on top: finding, picture or question


def publish(chosen: Namespace) -> Published:
    """Begin the page of the script that calls; `chosen` is what `options` returned."""
    return Published(chosen, sys._getframe(1).f_globals)


class Published:
    """A script's words and pictures: shown at once, and written on its page at the end."""

    def __init__(self, chosen: Namespace, script: dict[str, Any]) -> None:
        self.chosen, self.script, self.notebook = chosen, script, "get_ipython" in script
        self.source = Source(chosen.demo, chosen.file, Path(chosen.file).read_text("utf-8"))
        self.marks = Marks(chosen)
        self.parts: list[Part] = []
        self.allowed: set[str] = set()  # hashes of the scripts of pages inside this one

    def say(self, text: str) -> Part:
        """Say paragraphs, lists, and displays, whose lines begin with four spaces."""
        return self._add(markdown(text, _set), printed(text))

    def finding(self, text: str, figure: Part | None = None) -> None:
        """Say what stands on top of the page, beside what `figure` or `slider` returned."""
        part = self.say(text)
        part.html, part.place = f'<div class="finding">{part.html}</div>', "finding"
        if figure:
            figure.place = "picture"

    def ask(self, question: str, answer: str, guesses: Sequence[str] = ()) -> None:
        """Ask what the finding has not said; a reader takes a guess, or opens the answer."""
        buttons = "".join(f'<button type="button">{inline(x, _set)}</button>' for x in guesses)
        html = f"<p>{inline(question, _set)}</p>"
        html += f'<div class="choice" hidden>{buttons}</div>' * bool(guesses)
        html += fold("The answer", markdown(answer, _set), "ask")
        offered = f" ({', '.join(guesses)}?)" * bool(guesses)
        text = f"{printed(question + offered)}\n{textwrap.indent(printed(answer), '   ')}"
        place = "left" if any(part.place == "question" for part in self.parts) else "question"
        self._add(f'<div class="play"><div class="question">{html}</div></div>', text, place)

    def table(self, head: Sequence[str], rows: Sequence[Any], caption: str = "") -> Part:
        """Show a table; columns of numbers are aligned to the right."""
        return self._add(*_table(head, rows, caption), "right")

    def figure(self, figure: Any, name: str, alt: str, caption: str = "") -> Part:
        """Show a figure of matplotlib or a Graph; save both files. `alt` says it with numbers."""
        path = self.chosen.out / name
        if hasattr(figure, "savefig"):
            save_figure(figure, path)
        else:
            figure.save(f"{path}.svg")
            figure.save(f"{path}.png")
        svg = inlined(Path(f"{path}.svg").read_text("utf-8"), alt, name)
        return self._add(_figure(svg, caption), printed(f"{name}.png: {caption or alt}"), "right")

    def slider(
        self, figures: list[Any], name: str, labels: list[str], alt: list[str], caption: str
    ) -> Part:
        """Show one of several figures of matplotlib, at first the last, which is also saved."""
        last = len(figures) - 1
        shown = f'<input type="range" max="{last}" value="{last}" aria-label="{escape(caption)}"'
        shown += f" hidden><output>{escape(labels[-1])}</output>"
        for i, (figure, label, said) in enumerate(zip(figures, labels, alt, strict=True)):
            drawn = io.BytesIO()
            figure.savefig(drawn, format="png", dpi=110)
            data = base64.b64encode(drawn.getvalue()).decode()
            shown += f'<img src="data:image/png;base64,{data}" data-label="{escape(label)}"'
            shown += f' alt="{escape(f"{label}. {said}")}"{" hidden" * (i < last)}>'
        save_figure(figures[-1], self.chosen.out / name)
        text = printed(f"{name}.png: {caption}. {labels[-1]}: {alt[-1]}")
        return self._add(_figure(f'<div class="slider">{shown}</div>', caption), text, "right")

    def embed(self, path: Path) -> Part:
        """Show a page of both passes inside this one."""
        text = path.read_text("utf-8")
        self.allowed |= {*re.findall("'sha256-[^']*'", text.partition("<title>")[0])}
        html = f'<iframe title="{escape(path.stem)}" srcdoc="{escape(text)}"></iframe>'
        return self._add(_figure(html, ""), f"Both passes: {path}", "right")

    def end(self) -> None:
        """Write the page and say where it is; then end as `Marks.end` does."""
        if not self.notebook:
            path = self.chosen.out / "index.html"
            refuse_others(path)
            write_whole(path, self._document().encode(errors="replace"))
            renew_list(self.chosen.out.resolve().parent)
            print(f"\nThe page: {path}")
        self.marks.end()

    def _add(self, html: str, text: str, place: str = "left") -> Part:
        """Print a part, or show it in a notebook; keep it with the line of the script."""
        if self.notebook:
            from IPython.display import HTML, display

            display(HTML(html))
            return Part(html, 0, place)
        print(f"\n{text}")
        frame = sys._getframe(1)
        while frame.f_globals is not self.script or frame.f_code.co_name != "<module>":
            frame = frame.f_back  # the cell that called a function of the script
        self.parts.append(Part(html, frame.f_lineno, place))
        return self.parts[-1]

    def _document(self) -> str:
        """Return the whole file."""
        marks, chosen = self.marks, self.chosen
        title, _, text = self.source.docstring.partition("\n")
        name, _, says = title.rstrip(".").partition(": ")
        claim, _, more = text.partition("    python -m")
        facts = [f"<code>python -m demos {escape(chosen.demo)}</code>", f"seed {chosen.seed}"]
        facts += [f"{chosen.steps} steps"] * bool(chosen.steps)
        body = [top("Demo", inline(name, _set), inline(says[:1].upper() + says[1:], _set), facts)]
        warnings = [QUICK] * chosen.shortened + [marks.note, *marks.failed] * bool(marks.note)
        body += [f'<p class="warning">{escape(x, quote=False)}</p>' for x in warnings]
        left = markdown(claim.strip().removeprefix("Claim. "), _set)
        left = left.replace("<p>", '<p class="claim">')
        placed = lambda place: "".join(x.html for x in self.parts if x.place == place)
        body += [row(left + placed("finding"), placed("picture")), placed("question")]
        body += [markdown(more.partition("\n")[2], _set), *self._cells()]
        passed = f"{len(marks.rows) - len(marks.failed)} of {len(marks.rows)} checks passed"
        table, _ = _table(["Check", "this run", "pass mark", "result"], marks.rows)
        body.append(fold(passed, table))
        read = lambda name: (FOLDER / name).read_text("utf-8")
        return fill(
            "demo",
            allowed=" ".join(sorted({*self.allowed, hash_of(read("demo.js"))})),
            generator=PAGE,
            begun=chosen.begun or "",  # (a later run asks whether this one is over)
            title=escape(name),
            style=read("site.css") + read("demo.css"),
            body="\n".join(body),
            demo=escape(chosen.demo),
            script=read("demo.js"),
        )

    def _cells(self) -> list[str]:
        """Return the cells: prose and what a cell said, what it showed beside that, and code."""
        shown, after = [], 1
        for cell in re.split("^(?=# %%)", self.source.text, flags=re.MULTILINE):
            first, after = after, after + cell.count("\n")
            if not (found := CELL.fullmatch(cell)):
                continue  # the docstring
            said = dict.fromkeys(("left", "right", "finding", "picture", "question"), "")
            for part in self.parts:
                said[part.place] += part.html * (first <= part.line < after)
            heading, comment = inline(found[1], _set), re.sub("(?m)^# ?", "", found[2])
            left = f"<h2>{heading}</h2>" * bool(heading) + markdown(comment, _set) + said["left"]
            code = found[3].rstrip().removesuffix("page.end()").rstrip()
            lines = coloured(code, {}) if code else []
            start = first + cell.count("\n", 0, found.start(3))
            code = "".join(
                f'<div class="ln" data-n="{n}">{x or " "}</div>' for n, x in enumerate(lines, start)
            )
            code = f'<div class="code" tabindex="0">{code}</div>' * bool(lines)
            if lines and (any(said.values()) or found[1] == "Set-up"):
                code = fold("The code", code)
            shown += [row(left, said["right"] or code, "rule"), code * bool(said["right"])]
        return shown


def printed(text: str) -> str:
    """Return Markdown for a terminal: in lines that fit, and without its marks."""
    width, out = min(shutil.get_terminal_size().columns, 100), []
    for part in re.split(r"\n\s*\n|\n(?=- )", text.strip("\n")):
        if not part.startswith("    "):
            line = MARKDOWN.parseInline(" ".join(part.split("\n")))[0]
            words = "".join(token.content for token in line.children or [])
            part = textwrap.fill(words, width, break_on_hyphens=False)
        out.append(part)
    return "\n\n".join(out)


def inlined(svg: str, alt: str, name: str) -> str:
    """Return an SVG as a part of a page: its ids begin with its name, and `alt` says what it is."""
    svg = re.sub("<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = re.sub(r'\bid="', f'id="{name}-', svg)
    svg = re.sub(r'(href="#|url\(#)', rf"\1{name}-", svg)
    svg = re.sub(' (role="img"|aria-label="[^"]*")', "", svg, count=2)  # (of a Graph)
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(alt)}"', 1)


def _figure(shown: str, caption: str) -> str:
    said = f"<figcaption>{inline(caption, _set)}</figcaption>" * bool(caption)
    return f'<figure><div class="wide" tabindex="0">{shown}</div>{said}</figure>'


def _table(head: Sequence[str], rows: Sequence[Any], caption: str = "") -> tuple[str, str]:
    """Return a table as HTML, and as text."""
    texts = [list(head), *([str(cell) for cell in cells] for cells in rows)]
    lines, html = [""] * len(texts), [""] * len(texts)
    for cells in zip(*texts, strict=True):
        plain = [printed(cell) for cell in cells]
        is_number = len(cells) > 1 and all(map(NUMBER.fullmatch, plain[1:]))
        side, width = (">" if is_number else "<"), max(map(len, plain))
        kind = ' class="number"' * is_number
        for i, cell in enumerate(cells):
            lines[i] += f"   {plain[i]:{side}{width}}"
            tag = "td" if i or not cell else "th"
            html[i] += f"<{tag}{kind}>{inline(cell, _set)}</{tag}>"
    named = f"<caption>{inline(caption, _set)}</caption>" * bool(caption)
    body = "".join(f"<tr>{cells}</tr>" for cells in html)
    shown = f'<div class="wide" tabindex="0"><table class="data">{named}{body}</table></div>'
    text = [printed(caption)] * bool(caption) + [line.rstrip() for line in lines]
    return shown, "\n".join(text)


def _set(text: str) -> str:
    """Return a text with its formulas; escaped as it is, if they cannot be set."""
    try:
        parts = re.split(r"(--\w+)", text)  # (an option is not a formula)
        return "".join(x if x.startswith("--") else formula(x) for x in parts)
    except ValueError:
        return escape(text, quote=False)
