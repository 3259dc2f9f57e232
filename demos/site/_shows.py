"""Site · Shows: the pages of the exercises, the museum, the demos, and the words of others.

What they say is computed when they are written: messages by the exercises' checks, numbers by the
museum's exhibits.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path

from demos import KINDS, files
from demos.__main__ import said, seconds
from demos.learn import EXERCISES, GROUPS, PATH
from demos.learn._mistakes import MISTAKES, mistaken
from demos.learn._running import judged
from demos.learn.exercises import FOLDER, number, stub, title
from demos.museum.exhibits import NAMES, Exhibit, exhibit
from demos.site._chapters import Book, notebook
from demos.site._exhibits import html as exhibited
from demos.site._source import Source, cells, resolve
from demos.site._templates import Page, fill, fold, formula, inline, plain, row, sentence, top, turn
from minigrad.engine.hints import INSTEAD, OTHER_NAMES, OTHER_WORDS
from minigrad.engine.words import PLAIN, RECORDED, name_of

DEMOS = Path(__file__).parents[1]
PATHS = re.compile(r"(?<![`\w/])([\w/]+/\w+\.py|__+)(?!`)")  # not to be set as formulas
Names = Sequence[tuple[str, str]]  # addresses and names of pages that follow one another


def _page(
    here: str, names: Names, place: int, title: str, sub: str, *body: str, facts: Sequence[str] = ()
) -> Page:
    """Return one of the pages of a kind, of which the first is their list."""
    file, name = names[place]
    above = f'<a href="{names[0][0]}">{here}</a> · {place} of {len(names) - 1}' if place else here
    near = [turn(names[1:], place - 1)] * bool(place)
    return Page(
        file, name, [top(above, title, sub, facts), *body, *near], plain(sub), here, "shows"
    )


def _tile(address: str, above: str, title: str, text: str) -> str:
    link = f'<p class="kicker">{above}</p><h3><a href="{address}">{title}</a></h3>'
    return f'<div class="tile">{link}<p>{text}</p></div>'


def _list(items: Iterable[str]) -> str:
    return f'<ul class="list">{"".join(f"<li>{item}</li>" for item in items)}</ul>'


# ---------------------------------------------------------------- exercises


def exercises(book: Book) -> list[Page]:
    """Return the list of the exercises, and a page for each."""
    called = {name: title(name).partition(": ") for name in EXERCISES}
    address = {name: f"exercise-{number(name)}.html" for name in EXERCISES}
    names = [("exercises.html", "Exercises")]
    names += [(address[x], f"{number(x)} {called[x][0]}") for x in EXERCISES]
    claim, how, *_ = said(files()["learn"]).split("\n\n")
    stop = '<li><a href="{}"><b>{}</b> {}</a></li>'
    route = "".join(stop.format(address[x], number(x), called[x][0]) for x in PATH)
    groups = ""
    for group, members in GROUPS.items():
        tiles = (
            _tile(
                *(address[x], f"Exercise {number(x)}{' ★' * (x in PATH)}"),
                *(called[x][0], sentence(called[x][2])),
            )
            for x in members
        )
        groups += f'<h2>{group.capitalize()}</h2><div class="tiles">{"".join(tiles)}</div>'
    told = _told("e13_softmax")
    body = fill("exercises", how=book.prose(how), told=told, route=route, groups=groups)
    pages = [_exercise(book, place, names) for place in range(1, len(names))]
    return [_page("Exercises", names, 0, "Write it, and be answered", inline(claim), body), *pages]


def _exercise(book: Book, place: int, names: Names) -> Page:
    name = EXERCISES[place - 1]
    short, _, question = title(name).partition(": ")
    file = Source(f"demos.learn.exercises.{name}", f"{name}.py", stub(name))
    _, *task, letters, last = file.docstring.split("\n\n")
    chapters = [book.chapters[x] for x in re.findall(r"hapter (\d+(?:\.\d+)?)", last)]
    links = [f'chapter <a href="{x.page}">{x.number} {formula(x.title)}</a>' for x in chapters]
    hints = importlib.import_module(f"demos.learn.checks.{name}").HINTS
    left = [book.prose("\n\n".join(task)), _letters(letters)]
    left += [fold(f"Hint {i} of 3", book.prose(hint)) for i, hint in enumerate(hints, 1)]
    code = book.code(file, (file.tree.body[0].end_lineno or 0) + 1, len(file.lines))
    shown = {"name": name, "place": place, "code": code, "told": _told(name)}
    body = fill("exercise", left="".join(left), **shown)
    book.index.append((names[place][1], "exercise", names[place][0]))
    facts = [*links, *["★ for a first contact"] * (name in PATH)]
    return _page("Exercises", names, place, short, sentence(question), body, facts=facts)


def _told(name: str) -> str:
    """Return a typical mistake in an exercise, and what its check says of it."""
    found = judged(FOLDER / f"{name}.py", name, mistaken(name))
    mistake = escape(MISTAKES[name][1], quote=False)
    words = escape(f"{found.kind}: {found.said}" if found.kind else found.said, quote=False)
    return (
        f"<p>Whoever writes <code>{mistake}</code> in exercise {name[1:3].lstrip('0')} is told:</p>"
        f'<pre class="plain told" tabindex="0">{words}</pre>'
    )


def _letters(text: str) -> str:
    """Return what the letters of an exercise mean: two columns, or a line as wide as both."""
    lines = re.sub(r"\n     +", " ", text).split("\n")
    rows = [list(map(inline, re.split(" {2,}", line.strip(), maxsplit=1))) for line in lines]
    cells = [f"<td{' colspan=2' * (len(row) < 2)}>{'</td><td>'.join(row)}</td>" for row in rows]
    return f'<table class="letters"><tr>{"</tr><tr>".join(cells)}</tr></table>'


# ---------------------------------------------------------------- museum


def museum(book: Book) -> list[Page]:
    """Return the list of the exhibits, each by what it does, and a page for each."""
    rooms = [exhibit(name) for name in NAMES]
    names = [("museum.html", "Museum")]
    names += [(f"exhibit-{each.number}.html", f"Exhibit {each.number}") for each in rooms]
    claim, why, *_ = said(files()["museum"]).split("\n\n")
    tiles = ""
    for each in rooms:
        meant = (inspect.getdoc(each.module.broken) or "").partition("   ")[0]
        tiles += _tile(*names[each.number], inline(meant), _seen(each))
    body = book.prose(why.removeprefix("Claim. "))
    body += f'<h2>The exhibits</h2><div class="tiles">{tiles}</div>'
    pages = [_exhibit(book, each, names) for each in rooms]
    return [
        _page("Museum", names, 0, "Sixteen mistakes, and no error", inline(claim), body),
        *pages,
    ]


def _seen(each: Exhibit) -> str:
    """Return what is seen of an exhibit's mistake."""
    return inline(inspect.getdoc(each.module.symptom) or "")


def _exhibit(book: Book, each: Exhibit, names: Names) -> Page:
    address, name = names[each.number]
    file = Source(each.module.__name__, "", inspect.getsource(each.module))
    check = file.defined["check"]
    text = range(check.body[0].lineno, check.body[0].end_lineno + 1)
    code = book.code(file, check.lineno, check.end_lineno, text)
    body = exhibited(each, book.prose, code, "mistake", "h2")
    book.index.append((each.title, f"museum, exhibit {each.number}", address))
    return _page("Museum", names, each.number, name, _seen(each), body)


# ---------------------------------------------------------------- demos


def demos(book: Book, folder: Path) -> list[Page]:
    """Return the list of the demos, and a page for each. `folder` has the pages of those run."""
    known = files()
    names = [("demos.html", "Demos"), *((f"demo-{name}.html", name) for name in known)]
    body = ""
    for kind in KINDS:
        heading, _, about = said(DEMOS / kind / "__init__.py").partition(" · ")[2].partition(": ")
        cards = "".join(_card(path, folder) for path in known.values() if path.parent.name == kind)
        body += f'<h2>{heading}</h2><p>{sentence(about)}</p><div class="cards">{cards}</div>'
    sub = (
        "Each demo states a claim and runs it. One that has been run here leads to what it showed."
    )
    pages = [_demo(book, place, names) for place in range(1, len(names))]
    return [_page("Demos", names, 0, "Claims that run", sub, body), *pages]


def _picture(name: str) -> str:
    """Return a demo's small picture, if it has one."""
    image = f'<img src="pictures/small/{name}.svg" alt="" width="240" height="150">'
    return image * (DEMOS / "pictures" / "small" / f"{name}.svg").exists()


def _card(path: Path, folder: Path) -> str:
    name, text = path.stem, said(path)
    run = f"<code>python -m demos {name}</code> · {seconds(text)} s"
    if (folder / "demos" / name / "index.html").exists():
        run += f'<br><a href="demos/{name}/index.html">What it showed</a>'
    image = f'<a class="picture" href="demo-{name}.html" aria-hidden="true" tabindex="-1">'
    image = f"{image}{_picture(name)}</a>" * bool(_picture(name))
    link = f'<h3><a href="demo-{name}.html">{name}</a></h3><p>{inline(text.splitlines()[0])}</p>'
    return f'<div class="card">{image}{link}<p>{run}</p></div>'


def _demo(book: Book, place: int, names: Names) -> Page:
    page, name = names[place]
    path = files()[name]
    where = path.relative_to(DEMOS.parent)
    file = Source(".".join(where.with_suffix("").parts), where.as_posix(), path.read_text("utf-8"))
    claim, _, text = file.docstring.partition("\n")
    prose = lambda text: book.prose(PATHS.sub(r"`\1`", text))
    body = [row(prose(text), f"<figure>{_picture(name)}</figure>" * bool(_picture(name)))]
    for cell in cells(file.text):
        code = book.code(file, cell.lines.start, cell.lines.stop - 1)
        code = fold(f"{len(cell.lines)} lines", code) if cell.heading == "Set-up" else code
        heading = inline(PATHS.sub(r"`\1`", cell.heading))
        left = f"<h2>{heading}</h2>" * bool(heading) + prose(cell.comment)
        body.append(row(left, code))
    facts = [f"{seconds(file.docstring)} s", f"<code>{file.path}</code>"]
    facts += [notebook(name)] * (name != "learn")  # (which asks for a folder on its command line)
    book.index.append((name, "demo", page))
    return _page("Demos", names, place, f"<code>{name}</code>", inline(claim), *body, facts=facts)


# ---------------------------------------------------------------- words


def words(book: Book) -> Page:
    """Return the page of PyTorch's and NumPy's words, and of all names of this project."""
    code = lambda text: f"<code>{escape(text, quote=False)}</code>"

    def link(shown: str, module: str, name: str) -> str:
        found = resolve(book.files, module, name)
        there = book.address(*found) if found and found[1] else ""
        return f'<a href="{there}">{code(shown)}</a>' if there else code(shown)

    def public(package: str) -> Iterator[str]:
        for name in importlib.import_module(package).__all__:
            file, inner = resolve(book.files, package, name)
            line = (ast.get_docstring(file.defined[inner]) or "").partition("\n")[0]
            yield f"{link(name, package, name)}<br>{inline(line, book.links)}"

    functions = [f for f in RECORDED if not hasattr(f, "__objclass__")]  # (methods of arrays have)
    taken = sorted((name_of(f), RECORDED[f]) for f in functions)
    body = fill(
        "words",
        others=_list(
            f"{code(x if x[-1] == '=' else f't.{x}')}<br>{code(y)}" for x, y in OTHER_WORDS.items()
        ),
        names=_list(
            f"{code(f'model{x}' if x[0] == '.' else x)}<br>{code(y)}"
            for x, y in OTHER_NAMES.items()
        ),
        taken="".join(link(shown, f.__module__, f.__name__) for shown, f in taken),
        plain="".join(code(name_of(f)) for f in sorted(PLAIN, key=name_of)),
        instead=_list(f"{code(name_of(f))}<br>{code(x)}" for f, x in INSTEAD.items()),
    )
    for package in ("minigrad", "minigrad.nn", "minigrad.optim", "attention"):
        body += f'<h2 id="{package}">All names of {code(package)}</h2>{_list(public(package))}'
    book.index.append(("Words", "of PyTorch and NumPy", "words.html"))
    sub = "PyTorch’s names, NumPy’s, and all of ours."
    return _page("Book", [("words.html", "Words")], 0, "What is it called here?", sub, body)
