"""Demos · The page: one HTML file that shows what a demo found, and needs no other file.

A page is written from the top: a title, the claim, and then paragraphs, tables, figures, questions.
Everything is inside the file, so it can be mailed or moved alone. Long columns of numbers are
folded, so that the pictures are seen first. All text is escaped; `backticks` become code, and a
`link` leads to another page. Pictures are part of the page and follow its colours, light or dark.
`write` also renews the list of pages in the folder above.

    page = Page("Reverse", claim="With positions, one head learns to write backwards.")
    page.figure(path, alt="The weights are an anti-diagonal.", caption="After 500 steps")
    page.write(chosen.out, quick=chosen.quick)

A page is text and pictures, and runs no script. Only a page with a slider has one, of a few lines,
and so has a page that computes, or one that holds a page of both passes. Its policy allows these
scripts alone.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import demos
from demos._list import (
    PAGE,
    QUICK,
    refuse_others,
    renew_list,
)
from demos._markup import SIDEWAYS, SLIDER, Html, document, link, marked
from minigrad.runs.saving import write_whole

__all__ = ["Html", "Page", "link", "try_it"]


class Page:
    """What a demo shows, in the order in which it is added."""

    def __init__(self, title: str, *, claim: str) -> None:
        self.title, self.claim = title, claim
        self._parts: list[str] = []
        self._pictures = 0
        self._scripts: list[str] = []  # those of a slider or of a program
        self._allowed: list[str] = []  # hashes of scripts in pages inside this one
        self._style = ""

    def section(self, heading: str, *, name: str = "") -> None:
        """A new heading. `#name` leads to it, if it has a name."""
        anchor = f' id="{escape(name)}"' if name else ""
        self._parts.append(f"<h2{anchor}>{marked(heading)}</h2>")

    def head(self, heading: str) -> None:
        """A heading inside a section."""
        self._parts.append(f"<h3>{marked(heading)}</h3>")

    def say(self, *paragraphs: str) -> None:
        """Paragraphs of text."""
        self._parts += [f"<p>{marked(text)}</p>" for text in paragraphs]

    def ask(self, question: str, answer: str) -> None:
        """A question, whose answer is shown when the reader has guessed and opens it."""
        summary = f"<summary><b>What do you expect?</b> {marked(question)}</summary>"
        self._parts.append(f'<details class="ask">{summary}<p>{marked(answer)}</p></details>')

    def table(
        self,
        header: Sequence[str],
        rows: Sequence[Sequence[object]],
        *,
        caption: str,
        groups: Sequence[tuple[str, int]] = (),
    ) -> None:
        """A real table. The first column is text, and numbers stand to the right.

        groups   names above the header, each with the number of columns that it is for
        """
        header = list(header)
        texts = [[cell if isinstance(cell, str) else str(cell) for cell in row] for row in rows]
        if odd := {len(row) for row in texts} - {len(header)}:
            raise ValueError(f"a row under {len(header)} names has {min(odd)} cells")
        if groups and (total := sum(width for _, width in groups)) != len(header):
            raise ValueError(f"the groups above {len(header)} columns are for {total} of them")
        starts = {sum(width for _, width in groups[:i]) for i in range(1, len(groups))}
        side = []
        for column in range(len(header)):
            kinds = ["next"] * (column in starts)
            kinds += sorted({_kind(row[column]) for row in texts} - {""}, reverse=True)[:1]
            side.append(f' class="{" ".join(kinds)}"' if kinds else "")
        above = "".join(
            f'<th class="next" scope="colgroup" colspan="{width}">{marked(name)}</th>'
            if name
            else f'<td colspan="{width}"></td>'
            for name, width in groups
        )
        lines = [above] if groups else []
        lines.append(
            "".join(
                f'<th scope="col"{at}>{marked(name)}</th>' if name else f"<td{at}></td>"
                for name, at in zip(header, side, strict=True)
            )
        )
        for row in texts:
            cells = zip(row, side, strict=True)
            lines.append("".join(f"<td{at}>{_cell(cell)}</td>" for cell, at in cells))
        self._parts.append(
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}">'
            f'<table style="--letters: {_letters(texts, header)}">'
            f"<caption>{marked(caption)}</caption><tr>{'</tr><tr>'.join(lines)}</tr></table></div>"
        )

    def figure(self, path: Path, *, alt: str, caption: str = "") -> None:
        """An SVG, as a part of the page. `alt` says what it shows, for who cannot see it."""
        self.figures([(path, alt, caption)])

    def figures(self, pictures: Sequence[tuple[Path, str, str]]) -> None:
        """Several SVGs side by side, below each other on a narrow screen: path, alt, caption."""
        drawn = [(self._inline(path, alt), caption) for path, alt, caption in pictures]
        shown = [
            f'<figure role="group"><div class="scroll" tabindex="0">{svg}</div>'
            f"{_sideways(svg)}<figcaption>{marked(caption)}</figcaption></figure>"
            for svg, caption in drawn
        ]
        self._parts.append(f'<div class="pictures">{"".join(shown)}</div>')

    def slider(
        self, animation: Path, labels: Sequence[str], *, alts: Sequence[str], caption: str
    ) -> None:
        """The frames of an animation, to be moved through by hand: a label and a picture each.

        Each of `alts` says what one frame shows.
        """
        frames = _frames(animation)
        if not len(frames) == len(labels) == len(alts):
            raise ValueError(
                f"{len(frames)} frames need as many labels and alts: got {len(labels)} and "
                f"{len(alts)}"
            )
        last = len(frames) - 1
        shown = "".join(
            f'<img src="data:image/png;base64,{frame}" data-label="{escape(label)}" '
            f'alt="{escape(f"{label}. {alt}")}"{" hidden" * (i < last)}>'
            for i, (frame, label, alt) in enumerate(zip(frames, labels, alts, strict=True))
        )
        self._parts.append(
            f'<figure class="slider" role="group"><input type="range" min="0" max="{last}" '
            f'value="{last}" aria-label="{escape(caption)}" hidden>'
            f'<output>{escape(labels[-1])}</output><div class="scroll" tabindex="0">{shown}</div>'
            f"<figcaption>{marked(caption)}</figcaption></figure>"
        )
        if SLIDER not in self._scripts:  # (one script moves all sliders)
            self._scripts.append(SLIDER)

    def program(self, markup: str, *, script: str, style: str) -> None:
        """HTML that a script of the page's own fills, when the reader moves something."""
        self._parts.append(markup)
        self._scripts.append(script)
        self._style += style

    def fold(self, summary: str, text: str) -> None:
        """Columns of text behind a line that opens them."""
        shown = f"<summary>{marked(summary)}</summary>{_columns(escape(text), text)}"
        self._parts.append(f"<details>{shown}</details>")

    @contextmanager
    def folded(self, summary: str, *, asked: bool = False, opened: bool = False) -> Iterator[None]:
        """Whatever is added inside is behind a line that opens it, which may be a question.

        If it is `opened`, a program of the page may close it.
        """
        kind = ' class="ask whole"' * asked + " open" * opened
        self._parts.append(f"<details{kind}><summary>{marked(summary)}</summary>")
        yield
        self._parts.append("</details>")

    def code(self, lines: Sequence[str], *, marked: bool = False) -> None:
        """Lines of a program. If they are marked, "- " begins a wrong line, "+ " its repair."""
        shown = ""
        for line in lines:
            kind = {"- ": "del", "+ ": "ins"}.get(line[:2]) if marked else None
            shown += f"<{kind}>{escape(line)}</{kind}>" if kind else f"{escape(line)}\n"
        self._parts.append(_columns(shown, "\n".join(lines)))

    def steps(self, path: Path, *, title: str) -> None:
        """A page of both passes, to be walked through inside this one."""
        text = path.read_text(encoding="utf-8")
        self._allowed += re.findall("'sha256-[^']*'", text.partition("<title>")[0])
        self._parts.append(f'<iframe title="{escape(title)}" srcdoc="{escape(text)}"></iframe>')
        self._parts.append(
            f'<p>The same on <a href="{quote(path.name)}">a page of its own</a>.</p>'
        )

    def list(self, items: Sequence[str]) -> None:
        """Sentences, each with a mark."""
        shown = "".join(f"<li><p>{marked(text)}</p></li>" for text in items)
        self._parts.append(f"<ul>{shown}</ul>")

    def facts(self, facts: Mapping[str, Sequence[str]]) -> None:
        """Names, and beside each name its sentences."""
        shown = "".join(
            f"<dt>{marked(name)}</dt>" + "".join(f"<dd>{marked(text)}</dd>" for text in texts)
            for name, texts in facts.items()
        )
        self._parts.append(f"<dl>{shown}</dl>")

    def conclude(self, conclusion: str, try_it: Sequence[str]) -> None:
        """What to conclude, and changes to try."""
        self.section("What to conclude")
        self.say(conclusion)
        self.section("Try it")
        if demos.running:
            file = Path(demos.running.file).resolve()
            self.say(
                f"The file is `{file.parent.parent.name}/{file.parent.name}/{file.name}`, if no "
                "other one is named."
            )
        self.list(try_it)

    def write(
        self, folder: Path, *, quick: bool = False, note: str = "", name: str = "index.html"
    ) -> Path:
        """Write the page to the folder, whole or not at all, and renew the list above it.

        A page of a `--quick` run says so at its top if the run was shorter for it; `note` is what
        else is to be said there. When the run began is in the page's head, so that a stopped run in
        this folder is told from one that is over.
        """
        path, run = folder / name, demos.running
        if run is None or run.out != folder:  # no demo writes this page: a test, or a program
            run = None
        refuse_others(path)
        warnings = [QUICK] * (quick and (run is None or run.shortened)) + [note] * bool(note)
        body = [
            f"<h1>{marked(self.title)}</h1>",
            *[f'<p class="warning">{marked(text)}</p>' for text in warnings],
            f'<p class="claim">{marked(self.claim)}</p>',
            *self._parts,
        ]
        content = document(
            self.title,
            body,
            marks={"generator": PAGE},
            scripts=self._scripts,
            allowed=self._allowed,
            style=self._style,
        )
        write_whole(path, content)
        renew_list(folder.resolve().parent)
        return path

    def _inline(self, path: Path, alt: str) -> str:
        """The SVG with ids of its own, and with the page's ink and paper."""
        self._pictures += 1
        svg = path.read_text(encoding="utf-8")
        _refuse_scripts(svg, path)
        svg = svg[svg.index("<svg") :]
        kind = "" if 'class="drawn"' in svg else ' class="light"'  # (it has no dark colours)
        if width := re.match(r'<svg\b[^>]*? width="([\d.]+pt)"', svg):
            kind += f' style="--width: {width[1]}"'
        prefix = f"p{self._pictures}-"
        svg = re.sub(r'\bid="([^"]+)"', lambda m: f'id="{prefix}{m[1]}"', svg)
        svg = re.sub(r'(href="#|url\(#)', lambda m: f"{m[1]}{prefix}", svg)
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        svg = re.sub(r'^<svg\b([^>]*?) aria-label="[^"]*"', r"<svg\1", svg)
        svg = re.sub(r'^<svg\b([^>]*?) role="img"', r"<svg\1", svg)
        return svg.replace("<svg", f'<svg{kind} role="img" aria-label="{escape(alt)}"', 1)


def _refuse_scripts(svg: str, path: Path) -> None:
    """A picture on a page shows something and does nothing."""
    try:
        parts = list(ElementTree.fromstring(svg).iter())
    except ElementTree.ParseError as error:
        raise ValueError(f"{path} is not an SVG that a page can hold: {error}") from None
    for part in parts:
        name = part.tag.rpartition("}")[2].lower()
        acting = [at for at in part.attrib if at.lower().startswith("on")]
        if name == "script" or acting:
            what = "a <script>" if name == "script" else f"an attribute {acting[0]}="
            raise ValueError(f"{path} has {what}: a picture on a page has no scripts")


def try_it(file: str) -> list[str]:
    """The changes to try that a demo's file lists at its end."""
    _, _, end = Path(file).read_text(encoding="utf-8").rpartition("\n# %% Try it\n")
    items = re.split(r"^# - ", end, flags=re.MULTILINE)[1:]
    return [" ".join(item.replace("\n#", "\n").split()) for item in items]


def _frames(animation: Path) -> list[str]:
    """The frames of a GIF as PNGs, in base64."""
    from PIL import Image, ImageSequence

    found = []
    with Image.open(animation) as opened:
        for frame in ImageSequence.Iterator(opened):
            content = io.BytesIO()
            frame.convert("RGB").quantize(64).save(content, format="png", optimize=True)
            found.append(base64.b64encode(content.getvalue()).decode())
    return found


def _sideways(svg: str) -> str:
    """A hint under a picture that a narrow screen shows a part of: the style sheet keeps it at its
    width, or at 34rem if it is wider."""
    width = re.search(r"--width: ([\d.]+)pt", svg)
    pixels = float(width[1]) * 4 / 3 if width else 0
    kind = "wide" if pixels >= 544 else "narrow" if pixels > 368 else ""
    return SIDEWAYS.format(kind) if kind else ""


def _columns(shown: str, text: str) -> str:
    """Text in columns. On paper its letters are as small as its longest line needs."""
    longest = max([len(line) for line in text.splitlines()], default=1)
    # (A browser leaves out a first line that is empty: this one.)
    return f'<pre tabindex="0" style="--letters: {longest}">\n{shown}</pre>'


def _letters(rows: Sequence[Sequence[str]], header: Sequence[str]) -> int:
    """How many letters a table is wide, with two for the space around each column."""
    longest = lambda text: max(map(len, text.splitlines() or [""]))
    columns = zip(header, *rows, strict=True)
    return sum(2 + min(max(map(longest, column)), 24) for column in columns)


def _kind(text: str) -> str:
    """Whether a cell holds words that need several lines, or numbers that do on a narrow screen."""
    plain = re.sub("<[^>]*>", "", text) if isinstance(text, Html) else text
    if len(plain) <= 24 or "\n" in plain:
        return ""
    return "words" if re.search(r"[^\W\d]{2}", plain) else "wide"


def _cell(text: str) -> str:
    """A table's cell; a text of several lines is shown in columns."""
    return f'<code class="lines">{escape(text)}</code>' if "\n" in text else marked(text)
