"""Pages · Text: Markdown, and formulas set from Unicode, as HTML in which all text is escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from html import escape
from itertools import pairwise
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from demos.pages.templates import parts

MARKDOWN = MarkdownIt("zero").enable(["emphasis", "backticks", "code", "list"])
LOW = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₌ᵢⱼₖₗₘₙₜₓ", "0123456789+−=ijklmntx", strict=True))
HIGH = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼ⁿᵀᵃᵇᵗˣᶻ", "0123456789+−=nTabtxz", strict=True))
PLAIN = str.maketrans(LOW | HIGH)
RAISED = str.maketrans({plain: high for high, plain in HIGH.items()})  # of a text: 12 as ¹²
ASCII = "_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
GREEK = "αβγδεθλμνπρστφωΦ"
# What else may stand in a text. A letter that is not here cannot be set, and ends the build.
SIGNS = "ΔΣ∫∂∇√∛∞±×·⊙∘≤≥≠≈∝∈ℝ→←↦⟨⟩‖′″½¼¾…–’“”−µ─│└▶éäöüè"
OPERATORS = "=+-−·⊙×∘/<>≤≥≠≈∝∈^"
ITEM = re.compile(
    # An abbreviation, the end of a word, a number; and a name of code, but not a variable's.
    r"(?P<whole>e\.g\.|i\.e\.|['’]s\b|\de[-+]?\d+|(?!head_)[A-Za-z]{2,}_\w+(?:=\w*|\(\))?)"
    rf"|(?P<word>[A-Za-zéäöüèµ]+(?:['’]s)?|[{GREEK}])"
    rf"(?P<index>(?:_[A-Za-z0-9]+)*[{''.join(LOW)}]*)"
    rf"|(?P<low>[{''.join(LOW)}]+)|(?P<high>[{''.join(HIGH)}]+)"
    r"|\^(?P<power>\((?:[^()]|\([^()]*\))*\)|[-−]?[\w½.]*[\w½])"
    r"|(?P<minus>(?<![\w)\]’=\[])-(?=[\w.√∂½¼¾∞(⟨‖ΣΔ])|(?<= )-(?= ))"
)
Links = Callable[[str], Markup]  # a text, as HTML whose chapters and exercises are links


@cache
def formula(text: str) -> Markup:
    """Return the text as HTML: variables in italics, indices and exponents where they belong.

    A single letter is a variable. But a, A and I are words, unless they touch an operator, an index
    or a bracket.

    >>> from demos.pages.text import formula
    >>> print(formula("a row yᵢ, times 1/√d_k"))
    a row <var>y</var><sub><var>i</var></sub>, times 1/√<var>d</var><sub><var>k</var></sub>
    """
    if wrong := {c for c in text if ord(c) > 127} - {*GREEK, *SIGNS, *LOW, *HIGH}:
        raise ValueError(f"a formula cannot be set: {''.join(wrong)} in {text!r}")
    html = []
    last = 0
    for m in ITEM.finditer(text):
        html += [escape(text[last : m.start()], quote=False), _item(m)]
        last = m.end()
    html.append(escape(text[last:], quote=False))
    whole = "".join(html)
    if "^" in whole or re.search(r"(?<!\w)_|_(?!\w)", whole):
        raise ValueError(f"a formula cannot be set: an index or exponent is missing in {text!r}")
    return Markup(whole)


def _item(m: re.Match[str]) -> str:
    if m["whole"]:
        return f"<code>{m[0]}</code>" if "_" in m[0] else m[0].replace("'", "’")
    if m["low"] or m["high"]:
        tag, letters = ("sub", m["low"]) if m["low"] else ("sup", m["high"])
        return f"<{tag}>{''.join(map(_letters, letters.translate(PLAIN)))}</{tag}>"
    if m["power"]:
        inside = m["power"][1:-1] if m["power"][0] == "(" else m["power"]
        return f"<sup>{formula(inside)}</sup>"
    if m["minus"]:
        return "−"
    word, mark, owner = re.fullmatch(r"([^'’]+)(['’]?)(s?)", m["word"]).groups()
    names = [_letters(name) for name in re.findall("_([A-Za-z0-9]+)", m["index"])]
    index = "".join([*names, *map(_letters, m["index"].lstrip(ASCII).translate(PLAIN))])
    if re.fullmatch("d[a-df-np-tv-zA-Z]", word):  # a differential: dx
        word = f"<var>{word}</var>"
    if len(word) == 1 and (index or mark or not _is_word(m.string, word, m.start(), m.end())):
        word = f"<var>{word}</var>"
    if index:
        word += f"<sub>{index}</sub>"
    return word + mark.replace("'", "’") + owner


def _is_word(text: str, letter: str, start: int, end: int) -> bool:
    """Whether a single letter is a word: T of T5, or an a, A or I that nothing touches."""
    before = text[:start].rstrip(" ")[-1:]
    after = text[end:]
    if letter not in "aAI" or re.match(r"\.\d", after):  # T5, section A.1, the C library, J.S
        initial = re.search(r"\w\.$", text[:start])
        return bool(initial or re.match(r"\.?\d| library", after, re.ASCII))
    near = after.lstrip(" ")[:1] in {*OPERATORS, *"⟩‖@"}
    if letter == "A":
        if before in {"", *'.?!:()"“”'} or (before == "·" and re.match(" [a-z]{2}", after)):
            return not (near or re.match(" [A-Z] =", after))
        return False  # (a sentence does not begin here)
    function = before in {*"(,+-−="} and re.match(" (cos|sin|exp|log)\\b", after)
    product = re.match(rf" [a-z{GREEK}][{''.join(LOW)}]", after)
    touched = before in {*OPERATORS, *"√∂⟨⟩‖@"} or text[:start][-1:].isdecimal()
    return not (
        function or product or touched or near or after[:1] in {"", *"([.,)]:;", *HIGH, "′"}
    )


def _letters(text: str) -> str:
    """Return an index as HTML: numbers, T and words upright, other single letters as variables."""
    return re.sub(r"(?<![^\W\d_])([^\W\d_T])(?![^\W\d_])", r"<var>\1</var>", text)


def inline(text: str, links: Links = formula) -> Markup:
    """Return a paragraph of Markdown as HTML. In `code` nothing is set."""
    html = MARKDOWN.renderInline(" ".join(text.split("\n")), {"links": links})
    return Markup(re.sub(r"<em>([aAI])</em>", r"<var>\1</var>", html))


def display(text: str, links: Links = formula, *, names: bool = False) -> Markup:
    """Return lines that were laid out with spaces: a formula a line, or a table by its columns.

    names  whether the first column has names of code, such as parameters
    """
    lines = text.split("\n")
    lines = [line[min(len(x) - len(x.lstrip()) for x in lines) :] for line in lines]
    if re.search("[─│└]", text) or re.match(r"\s*python -m ", text):
        return parts.plain("\n".join(lines))
    cuts = columns(lines)
    if len(cuts) == 2:
        broken = Markup("<wbr> = ")  # (there a long line may break)
        set_line = lambda line: [
            inline(x, links).replace(" = ", broken) for x in re.split(" {3,}", line)
        ]
        return parts.formulas([set_line(line) for line in lines])
    rows: list[list[str]] = []
    for line in lines:
        cells = [line[a:b].strip() for a, b in pairwise(cuts)]
        if rows and not cells[0]:  # the line above goes on
            rows[-1] = [" ".join(filter(None, pair)) for pair in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    if names:
        rows = [[re.sub(r"([*\w]+)", r"`\1`", first), *more] for first, *more in rows]
    return parts.display([[(_kind(x), inline(x, links)) for x in cells] for cells in rows])


def columns(lines: Sequence[str]) -> list[int]:
    """Return where the columns of a table begin, and the table's width.

    Two blanks or more separate columns in every line, and a wide gap is nowhere else.
    """
    width = max(map(len, lines))
    full = [line.ljust(width) for line in lines] if len(lines) > 1 else []
    blank = "".join(" " if {x[i] for x in full} == {" "} else "x" for i in range(width))
    cuts = [m.end() for m in re.finditer(" {2,}", blank)]
    gaps = [m.span() for line in full for m in re.finditer(r"(?<=\S) {4,}(?=\S)", line)]
    table = all(any(a < cut <= b for cut in cuts) for a, b in gaps)
    return [0, *cuts, width] if table else [0, width]


def _kind(cell: str) -> str:
    """Return the class of a table's cell: a number, or a text that is short enough for a line."""
    number = re.fullmatch(r"[-−]?[\d.,]+(e-?\d+)?", cell)
    if number:
        return "number"
    return "short" if len(cell) < 18 else ""


def markdown(text: str, links: Links = formula) -> Markup:
    """Return paragraphs, lists and displays (four spaces) as HTML."""
    html = MARKDOWN.render(text.strip("\n"), {"links": links}).rstrip("\n")
    return Markup(re.sub(r"<em>([aAI])</em>", r"<var>\1</var>", html))


def _text(renderer: Any, tokens: Sequence[Token], i: int, options: Any, env: Any) -> str:
    """Return a piece of text, set; the s of a plural behind `code` is not a variable."""
    text = tokens[i].content
    plural = i and tokens[i - 1].type == "code_inline" and re.match(r"s\b", text)
    letters = "s" if plural else ""
    html = letters + env["links"](text[len(letters) :])
    return re.sub(" {3,}", "<br>", html)  # (shapes stand apart)


def _displays(renderer: Any, tokens: Sequence[Token], i: int, options: Any, env: Any) -> str:
    """Return what is indented by four spaces: a display for each part that blank lines separate."""
    parts = re.split(r"\n\s*\n", tokens[i].content.rstrip())
    names = tokens[i].info == "names"
    return "".join(f"{display(part, env['links'], names=names)}\n" for part in parts)


def _one_line(state: Any) -> None:
    """Make each paragraph one line, in which formulas are set, or a display if it has columns."""
    for i, token in enumerate(state.tokens):
        if token.type != "inline":
            continue
        if len(columns(token.content.split("\n"))) > 2:  # parameters, and what they mean
            state.tokens[i - 1].hidden = state.tokens[i + 1].hidden = True  # (no paragraph)
            token.type = "code_block"
            token.info = "names"
        else:
            token.content = token.content.replace("\n", " ")


MARKDOWN.core.ruler.before("inline", "one_line", _one_line)
MARKDOWN.add_render_rule("text", _text)
MARKDOWN.add_render_rule("code_block", _displays)


def sections(text: str, links: Links = formula) -> dict[str, Markup]:
    """Return the parts of a Markdown file as HTML, each by the word that is its heading."""
    pieces = re.split(r"^# (\w+)\n", text, flags=re.MULTILINE)[1:]
    pairs = zip(pieces[::2], pieces[1::2], strict=True)
    return {name: markdown(words, links) for name, words in pairs}


def set_text(text: str) -> Markup:
    """Return a text with its formulas; escaped as it is, if they cannot be set."""
    try:
        pieces = re.split(r"(--\w+|_{2,})", text)  # (an option is not a formula, nor is a blank)
        return Markup("").join(x if x[:2] in ("--", "__") else formula(x) for x in pieces)
    except ValueError:
        return Markup.escape(text)


def plain(html: str) -> str:
    """Return the text of HTML, for titles, descriptions and the index of Find."""
    return re.sub("<[^>]*>", "", str(html))


def slug(text: str) -> str:
    """Return a text as an address."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def sentence(text: str, links: Links = formula) -> Markup:
    """Return a line of a docstring as a sentence."""
    end = "" if text.endswith("?") else "."
    return inline(f"{text[:1].upper()}{text[1:].rstrip('.')}{end}", links)
