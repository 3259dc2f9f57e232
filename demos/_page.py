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
and so has a page that computes; its policy allows this script alone.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path

from minigrad.runs.saving import write_whole

STYLE = """
:root { --paper: #fff; --ink: #1d1d22; --soft: #55555f; --line: #d5d5dc; --box: #f5f5f7;
  --on: #0b57d0; --wrong: #fbdcd5; --right: #d3ecd9; }
@media (prefers-color-scheme: dark) { :root { --paper: #17171b; --ink: #ececf1; --soft: #b5b5c0;
  --line: #4a4a55; --box: #24242a; --on: #8ab4f8; --wrong: #5a2a22; --right: #1f4a2c; } }
* { box-sizing: border-box; }
body { font: 17px/1.55 Georgia, 'DejaVu Serif', serif; color: var(--ink); background: var(--paper);
  max-width: 64rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; overflow-wrap: anywhere; }
h1, h2, figcaption, summary, table, nav, .claim, .warning { font-family: system-ui, sans-serif; }
h1, h2 { line-height: 1.2; }
h2 { margin-top: 2.4rem; border-top: 1px solid var(--line); padding-top: 1rem; font-size: 1.25rem; }
p { max-width: 44rem; }
a { color: var(--on); }
.claim { font-size: 1.1rem; border-left: 4px solid var(--on); padding-left: .8rem; }
.warning { background: #fff3c4; color: #4a3800; padding: .5rem .8rem; border-radius: 6px; }
code, pre { font: 14px/1.45 ui-monospace, 'DejaVu Sans Mono', monospace; }
pre { background: var(--box); padding: .8rem 1rem; overflow-x: auto; border-radius: 6px; }
.scroll { overflow-x: auto; margin: .6rem 0 1.2rem; }
figure .scroll { margin: 0 0 .3rem; }
td, th { white-space: nowrap; } th.words, td.words { text-align: left; white-space: normal;
  overflow-wrap: normal; min-width: 13rem; }
td code.lines { white-space: pre; display: inline-block; text-align: left; }
del, ins { text-decoration: none; display: block; margin: 0 -1rem; padding: 0 1rem; }
del { background: var(--wrong); } ins { background: var(--right); }
.pictures { display: flex; flex-wrap: wrap; gap: 1.2rem; align-items: flex-start; }
figure { margin: 0 0 1rem; flex: 1 1 18rem; min-width: 0; max-width: 100%; }
figure svg, figure img { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { svg.light, .slider img { mix-blend-mode: screen;
  filter: invert(1) hue-rotate(180deg); } }
figcaption, summary, output { font-size: .9rem; color: var(--soft); }
.slider input { width: 100%; max-width: 40rem; min-height: 28px; accent-color: var(--on); }
.slider img { display: block; }
.slider [hidden] { display: none; }
output { display: block; font-family: system-ui, sans-serif; }
summary { cursor: pointer; min-height: 24px; }
details { margin: .6rem 0 1rem; }
details.ask { border: 1px solid var(--line); border-radius: 8px; padding: .6rem .9rem;
  max-width: 46rem; }
details.ask.whole[open] { max-width: none; }
details.ask > summary { font-size: 1rem; color: var(--ink); }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums;
  margin-bottom: 1rem; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: right;
  vertical-align: top; }
th:first-child, td:first-child, td.text { text-align: left; }
caption { text-align: left; color: var(--soft); padding-bottom: .3rem;
  max-width: calc(100vw - 2.2rem); }
iframe { width: 100%; height: 56rem; border: 1px solid var(--line); border-radius: 8px; }
.kind { font-size: .8rem; border: 1px solid; border-radius: 999px; padding: .1rem .6rem;
  vertical-align: .08em; }
th[colspan] { text-align: center; } th.next, td.next { border-left: 1px solid var(--line); }
dl { display: grid; grid-template-columns: 6rem 1fr; gap: .3rem 1rem; max-width: 46rem;
  margin: .4rem 0 .8rem; }
dt { font: .85rem/1.85 system-ui, sans-serif; color: var(--soft); }
dd { margin: 0; grid-column: 2; }
h3 { font: 600 1.02rem/1.35 system-ui, sans-serif; margin: 1.6rem 0 .4rem; max-width: 44rem; }
@media (max-width: 40rem) { .pictures { flex-direction: column; } iframe { height: 62rem; }
  figure { flex-basis: auto; width: 100%; }
  figure svg { min-width: min(34rem, var(--width, 34rem)); } .slider img { min-width: 34rem; }
  dl { grid-template-columns: 1fr; } dd { grid-column: 1; }
  th.words, td.words { min-width: 9rem; } td.wide { white-space: normal; min-width: 7rem; } }
@media print { details { display: block; } iframe { display: none; } a { color: inherit; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
  pre { white-space: pre-wrap; } figure, tr { break-inside: avoid; }
  .slider input, .slider output, .slider img { display: none; }
  .slider img:last-of-type, .slider img:last-of-type[hidden] { display: block; } }
"""

# A slider shows one picture of several, at first the first one. Without the script, and in print,
# the last one is shown.
SLIDER = """
for (const slider of document.querySelectorAll(".slider")) {
  const bar = slider.querySelector("input"), said = slider.querySelector("output");
  const pictures = [...slider.querySelectorAll("img")];
  const show = () => {
    pictures.forEach((picture, i) => { picture.hidden = i !== Number(bar.value); });
    said.textContent = pictures[bar.value].dataset.label;
    bar.setAttribute("aria-valuetext", said.textContent);
  };
  bar.value = 0;
  bar.hidden = false;
  bar.addEventListener("input", show);
  show();
}
"""

NAV = '<nav><a href="../index.html">All pages</a></nav>'
OUTDATED = (
    "A later run of this demo began and did not end. The page shows the run before it; pictures "
    "and checkpoints beside the page may be of either."
)


class Page:
    """What a demo shows, in the order in which it is added."""

    def __init__(self, title: str, *, claim: str) -> None:
        self.title, self.claim = title, claim
        self._parts: list[str] = []
        self._pictures = 0
        self._script = self._style = ""  # those of a slider or of a program, if there is one

    def section(self, heading: str, *, name: str = "") -> None:
        """A new heading. `#name` leads to it, if it has a name."""
        anchor = f' id="{escape(name)}"' if name else ""
        self._parts.append(f"<h2{anchor}>{_marked(heading)}</h2>")

    def head(self, heading: str) -> None:
        """A heading inside a section."""
        self._parts.append(f"<h3>{_marked(heading)}</h3>")

    def say(self, *paragraphs: str) -> None:
        """Paragraphs of text."""
        self._parts += [f"<p>{_marked(text)}</p>" for text in paragraphs]

    def ask(self, question: str, answer: str) -> None:
        """A question, whose answer is shown when the reader has guessed and opens it."""
        summary = f"<summary><b>What do you expect?</b> {_marked(question)}</summary>"
        self._parts.append(f'<details class="ask">{summary}<p>{_marked(answer)}</p></details>')

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
        starts = {sum(width for _, width in groups[:i]) for i in range(1, len(groups))}
        texts = [[cell if isinstance(cell, str) else str(cell) for cell in row] for row in rows]
        side = []
        for column in range(len(header)):
            kinds = ["next"] * (column in starts)
            kinds += sorted({_kind(row[column]) for row in texts} - {""}, reverse=True)[:1]
            side.append(f' class="{" ".join(kinds)}"' if kinds else "")
        above = "".join(
            f'<th class="next" scope="colgroup" colspan="{width}">{_marked(name)}</th>'
            if name
            else f'<td colspan="{width}"></td>'
            for name, width in groups
        )
        lines = [above] if groups else []
        lines.append(
            "".join(
                f'<th scope="col"{at}>{_marked(name)}</th>' if name else f"<td{at}></td>"
                for name, at in zip(header, side, strict=True)
            )
        )
        for row in texts:
            cells = zip(row, side, strict=True)
            lines.append("".join(f"<td{at}>{_cell(cell)}</td>" for cell, at in cells))
        self._parts.append(
            f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(caption)}"><table>'
            f"<caption>{_marked(caption)}</caption><tr>{'</tr><tr>'.join(lines)}</tr></table></div>"
        )

    def figure(self, path: Path, *, alt: str, caption: str = "") -> None:
        """An SVG, as a part of the page. `alt` says what it shows, for who cannot see it."""
        self.figures([(path, alt, caption)])

    def figures(self, pictures: Sequence[tuple[Path, str, str]]) -> None:
        """Several SVGs side by side, below each other on a narrow screen: path, alt, caption."""
        shown = [
            f'<figure role="group"><div class="scroll" tabindex="0">{self._inline(path, alt)}</div>'
            f"<figcaption>{_marked(caption)}</figcaption></figure>"
            for path, alt, caption in pictures
        ]
        self._parts.append(f'<div class="pictures">{"".join(shown)}</div>')

    def slider(self, animation: Path, labels: Sequence[str], *, alt: str, caption: str) -> None:
        """The frames of an animation, to be moved through by hand: a label and a picture each.

        `alt` says what the frames show from the first to the last.
        """
        frames = _frames(animation)
        if len(frames) != len(labels):
            raise ValueError(f"{len(frames)} frames need {len(frames)} labels: got {len(labels)}")
        last = len(frames) - 1
        shown = "".join(
            f'<img src="data:image/png;base64,{frame}" data-label="{escape(label)}" '
            f'alt="{escape(f"{label}. {alt}")}"{" hidden" * (i < last)}>'
            for i, (frame, label) in enumerate(zip(frames, labels, strict=True))
        )
        self._parts.append(
            f'<figure class="slider" role="group"><input type="range" min="0" max="{last}" '
            f'value="{last}" aria-label="{escape(caption)}" hidden>'
            f'<output>{escape(labels[-1])}</output><div class="scroll" tabindex="0">{shown}</div>'
            f"<figcaption>{_marked(caption)}</figcaption></figure>"
        )
        self._script = SLIDER

    def program(self, markup: str, *, script: str, style: str) -> None:
        """HTML that a script of the page's own fills, when the reader moves something."""
        self._parts.append(markup)
        self._script, self._style = script, style

    def fold(self, summary: str, text: str) -> None:
        """Columns of text behind a line that opens them."""
        shown = f"<summary>{_marked(summary)}</summary><pre tabindex='0'>{escape(text)}</pre>"
        self._parts.append(f"<details>{shown}</details>")

    @contextmanager
    def folded(self, summary: str, *, asked: bool = False, opened: bool = False) -> Iterator[None]:
        """Whatever is added inside is behind a line that opens it, which may be a question.

        If it is `opened`, a program of the page may close it.
        """
        kind = ' class="ask whole"' * asked + " open" * opened
        self._parts.append(f"<details{kind}><summary>{_marked(summary)}</summary>")
        yield
        self._parts.append("</details>")

    def code(self, lines: Sequence[str], *, marked: bool = False) -> None:
        """Lines of a program. If they are marked, "- " begins a wrong line, "+ " its repair."""
        shown = ""
        for line in lines:
            kind = {"- ": "del", "+ ": "ins"}.get(line[:2]) if marked else None
            shown += f"<{kind}>{escape(line)}</{kind}>" if kind else f"{escape(line)}\n"
        self._parts.append(f"<pre tabindex='0'>{shown}</pre>")

    def steps(self, path: Path, *, title: str) -> None:
        """A page of both passes (chapter 5.10), to be walked through inside this one."""
        inside = escape(path.read_text(encoding="utf-8"), quote=True)
        self._parts.append(f'<iframe title="{escape(title)}" srcdoc="{inside}"></iframe>')
        self._parts.append(
            f'<p>The same on <a href="{escape(path.name)}">a page of its own</a>.</p>'
        )

    def list(self, items: Sequence[str]) -> None:
        """Sentences, each with a mark."""
        shown = "".join(f"<li><p>{_marked(text)}</p></li>" for text in items)
        self._parts.append(f"<ul>{shown}</ul>")

    def facts(self, facts: Mapping[str, Sequence[str]]) -> None:
        """Names, and beside each name its sentences."""
        shown = "".join(
            f"<dt>{_marked(name)}</dt>" + "".join(f"<dd>{_marked(text)}</dd>" for text in texts)
            for name, texts in facts.items()
        )
        self._parts.append(f"<dl>{shown}</dl>")

    def conclude(self, conclusion: str, try_it: Sequence[str]) -> None:
        """What to conclude, and changes to try."""
        self.section("What to conclude")
        self.say(conclusion)
        self.section("Try it")
        self.list(try_it)

    def write(self, folder: Path, *, quick: bool = False, note: str = "") -> Path:
        """Write index.html to the folder, whole or not at all, and renew the list above it.

        A page of a `--quick` run says so at its top; `note` is what else is to be said there.
        """
        warnings = [
            "This is a --quick run, which only tests whether everything runs: its numbers mean "
            "nothing."
        ] * quick
        warnings += [note] * bool(note)
        body = [
            NAV,
            f"<h1>{_marked(self.title)}</h1>",
            *[f'<p class="warning">{_marked(text)}</p>' for text in warnings],
            f'<p class="claim">{_marked(self.claim)}</p>',
            *self._parts,
        ]
        content = _document(self.title, body, self._script, self._style)
        path = write_whole(folder / "index.html", content)
        renew_list(folder.parent)
        return path

    def _inline(self, path: Path, alt: str) -> str:
        """The SVG with ids of its own, and with the page's ink and paper."""
        self._pictures += 1
        svg = path.read_text(encoding="utf-8")
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


class Html(str):
    """Text that is HTML already, and is not escaped again."""


def link(words: str, address: str) -> Html:
    """Words that lead to another page, or to a place on this one."""
    return Html(f'<a href="{escape(address)}">{_marked(words)}</a>')


def outdate(folder: Path) -> None:
    """Say at the top of the folder's page, if it has one, that a later run began.

    The page that the later run writes at its end replaces it, so only a run that is interrupted
    leaves the sentence.
    """
    path = folder / "index.html"
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if NAV in text and OUTDATED not in text:
        before, heading, after = text.partition("</h1>\n")
        warning = f'<p class="warning">{OUTDATED}</p>\n'
        write_whole(path, before + heading + warning + after)


def renew_list(folder: Path) -> None:
    """index.html of the folder that holds the pages: each of them by its title."""
    rows = []
    for page in sorted(folder.glob("*/index.html")):
        found = re.search("<title>(.*?)</title>", page.read_text(encoding="utf-8"), re.DOTALL)
        title = found[1] if found else escape(page.parent.name)
        rows.append(f'<li><a href="{escape(page.parent.name)}/index.html">{title}</a></li>')
    body = ["<h1>Pages of the demos</h1>", f"<ul>{''.join(rows)}</ul>"]
    write_whole(folder / "index.html", _document("Pages of the demos", body))


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


def _document(title: str, body: Sequence[str], script: str = "", style: str = "") -> str:
    found = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'sha256-{found}'"
    )
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        + f'<meta http-equiv="Content-Security-Policy" content="{policy}">' * bool(script)
        + f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head><body>\n"
    )
    end = f"<script>{script}</script>" * bool(script)
    return head + "<main>\n" + "\n".join(body) + f"\n</main>{end}</body></html>\n"


def _kind(text: str) -> str:
    """Whether a cell holds words that need several lines, or numbers that do on a narrow screen."""
    plain = re.sub("<[^>]*>", "", text) if isinstance(text, Html) else text
    if len(plain) <= 24 or "\n" in plain:
        return ""
    return "words" if re.search(r"[^\W\d]{2}", plain) else "wide"


def _cell(text: str) -> str:
    """A table's cell; a text of several lines is shown in columns."""
    return f'<code class="lines">{escape(text)}</code>' if "\n" in text else _marked(text)


def _marked(text: str) -> str:
    """Escaped text, in which `this` is code and *this* is stressed."""
    if isinstance(text, Html):
        return text
    escaped = re.sub("`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
    return re.sub(r"(?<![\w*])\*(\w+)\*(?![\w*])", r"<em>\1</em>", escaped)
