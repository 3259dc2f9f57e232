"""Demos · Markup: what all pages share: the style, the file around a text, and marks in the text.

No page asks for anything from outside. The policy of a page allows the scripts that the page was
given and no others. Most pages have none.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from html import escape

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
.scroll::-webkit-scrollbar, pre::-webkit-scrollbar { height: 10px; }
.scroll::-webkit-scrollbar-track, pre::-webkit-scrollbar-track { background: var(--line); }
.scroll::-webkit-scrollbar-thumb, pre::-webkit-scrollbar-thumb { background: var(--soft); }
td, th { white-space: nowrap; } th.words, td.words { text-align: left; white-space: normal;
  overflow-wrap: normal; min-width: 13rem; }
td code.lines { white-space: pre; display: inline-block; text-align: left; }
del, ins { text-decoration: none; display: block; margin: 0 -1rem; padding: 0 1rem; }
del { background: var(--wrong); } ins { background: var(--right); }
.pictures { display: flex; flex-wrap: wrap; gap: 1.2rem; align-items: flex-start; }
figure { margin: 0 0 1rem; flex: 1 1 18rem; min-width: 0; max-width: 100%; }
figure svg, figure img { max-width: 100%; height: auto; }
@media (prefers-color-scheme: dark) { .slider img { mix-blend-mode: screen;
  filter: invert(1) hue-rotate(180deg); }
  svg.light text { fill: var(--ink); } svg.light .node text:not([fill]) { fill: #000; }
  svg.light .graph > [fill="white"] { fill: var(--paper); }
  svg.light :is(.node, .edge, .cluster) > [stroke]:not([stroke="none"]) { stroke: var(--soft); }
  svg.light .edge > [fill="#555555"] { fill: var(--soft); } }
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
.sideways { display: none; font: .85rem system-ui, sans-serif; color: var(--soft); margin: 0; }
@media (max-width: 36rem) { .sideways.wide { display: block; } }
@media (max-width: 25rem) { .sideways.narrow { display: block; } }
@media (max-width: 40rem) { .pictures { flex-direction: column; } iframe { height: 62rem; }
  figure { flex-basis: auto; width: 100%; }
  figure svg { min-width: min(34rem, var(--width, 34rem)); } .slider img { min-width: 34rem; }
  dl { grid-template-columns: 1fr; } dd { grid-column: 1; }
  th.words, td.words { min-width: 9rem; } td.wide { white-space: normal; min-width: 7rem; } }
@media print { details { display: block; } iframe { display: none; } a { color: inherit; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
  .scroll, pre { overflow: visible; } h1, h2, h3 { break-after: avoid; }
  table { font-size: min(.8rem, calc(95vw / var(--letters) / .62)); }
  th, td { padding: .2em .6em; } caption { font-size: .8rem; max-width: none; }
  pre { font-size: min(14px, calc(90vw / var(--letters) / .62)); padding: .6em 0; }
  del, ins { margin: 0; padding: 0; } figure, tr { break-inside: avoid; }
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

NONE = "'none'"
SIDEWAYS = '<p class="sideways {}">Scroll the picture sideways to see all of it →</p>'


class Html(str):
    """Text that is HTML already, and is not escaped again."""


def link(words: str, address: str) -> Html:
    """Words that lead to another page, or to a place on this one."""
    return Html(f'<a href="{escape(address)}">{marked(words)}</a>')


def document(
    title: str,
    body: Sequence[str],
    *,
    marks: Mapping[str, str],
    scripts: Sequence[str] = (),
    allowed: Sequence[str] = (),
    style: str = "",
) -> bytes:
    """A whole file: its text, and the scripts that run in it.

    marks    what programs read of the file, by name
    allowed  hashes of further scripts, which a page inside this one has: it obeys both policies
    """
    hashes = [*allowed, *map(hash_of, scripts)]
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src {' '.join(dict.fromkeys(hashes)) or NONE}"
    )
    head = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        + "".join(f'<meta name="{name}" content="{escape(x)}">' for name, x in marks.items())
        + f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<title>{escape(title)}</title><style>{STYLE}{style}</style></head><body>\n"
    )
    end = "".join(f"<script>{script}</script>" for script in scripts)
    text = head + "<main>\n" + "\n".join(body) + f"\n</main>{end}</body></html>\n"
    return text.encode(errors="replace")  # (half of a surrogate pair becomes a ?)


def hash_of(script: str) -> str:
    """A script's name in a content security policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def marked(text: str) -> str:
    """Escaped text, in which `this` is code and *this* is stressed, but not inside of code."""
    if isinstance(text, Html):
        return text
    parts = re.split("`([^`]+)`", text)
    return "".join(
        f"<code>{escape(part, quote=False)}</code>" if inside else _stressed(part)
        for part, inside in zip(parts, itertools.cycle((False, True)), strict=False)
    )


def _stressed(text: str) -> str:
    stress = r"(?<![\w*])\*([^*\s](?:[^*\n]*[^*\s])?)\*(?![\w*])"
    return re.sub(stress, r"<em>\1</em>", escape(text, quote=False))


def plus_minus(mean: float, spread: float) -> str:
    """A mean and its spread, both with as many decimals as the spread's first digit needs.

    >>> from demos._markup import plus_minus
    >>> [plus_minus(*both) for both in ((1026.2, 9.9), (0.000979, 9.4e-6), (0.25, float("nan")))]
    ['1026 ± 10', '0.000979 ± 0.000009', '0.25']
    """
    if math.isnan(spread):  # of a single value
        return f"{mean:.4g}"
    decimals = 0 if spread == 0 else min(max(-math.floor(math.log10(spread)), 0), 6)
    return f"{mean:.{decimals}f} ± {spread:.{decimals}f}"
