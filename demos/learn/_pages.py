"""Learn · Pages: the list of the exercises, and a page for each.

What they say is computed when they are written: messages by the exercises' checks.
"""

from __future__ import annotations

import re
from functools import cache
from textwrap import dedent

from markupsafe import Markup

from demos._files import docstring, files
from demos.learn import EXERCISES, GROUPS, PATH
from demos.learn._mistakes import MISTAKES, mistaken
from demos.learn._running import KILLED, Answer, check_of, judged, limit_of, not_interrupted
from demos.learn.exercises import FOLDER, chapters, number, stub, title
from demos.pages.book import Book
from demos.pages.page import Names, Page, one_of
from demos.pages.source import Source
from demos.pages.templates import fill, parts
from demos.pages.text import columns, formula, inline, sentence

LIVE = ("aside", "exercises")  # the scripts of a page on which an exercise can be written


def pages(book: Book) -> list[Page]:
    """Return the list of the exercises, and a page for each."""
    called = {name: title(name).partition(": ") for name in EXERCISES}
    address = {name: f"exercise-{number(name)}.html" for name in EXERCISES}
    names = [("exercises.html", "Exercises")]
    names += [(address[x], f"{number(x)} {called[x][0]}") for x in EXERCISES]
    claim, _, how = docstring(files()["learn"]).partition("\n")
    route = [(address[x], number(x), called[x][0]) for x in PATH]
    groups = []
    for group, members in GROUPS.items():
        tiles = []
        for name in members:
            star = " ★" if name in PATH else ""
            short, _, question = called[name]
            above = f"Exercise {number(name)}{star}"
            tiles.append(parts.tile(address[name], above, short, sentence(question)))
        groups.append(parts.tiles(group.capitalize(), tiles))
    body = fill(
        "learn/exercises.html",
        how=book.prose(how),
        told=_mistake("e13_softmax"),
        route=route,
        groups=groups,
    )
    first = one_of("Exercises", names, 0, "Write it, and be answered", inline(claim), body)
    first.live = LIVE
    return [first, *(_exercise(book, place, names) for place in range(1, len(names)))]


def _exercise(book: Book, place: int, names: Names) -> Page:
    name = EXERCISES[place - 1]
    short, _, question = title(name).partition(": ")
    file = Source(f"demos.learn.exercises.{name}", f"{name}.py", stub(name))
    named = [book.chapters[number] for number in chapters(name)]
    links = ["chapter " + parts.link(x.page, f"{x.number} " + formula(x.title)) for x in named]
    hints = check_of(name).HINTS
    left = []
    for part in file.docstring.partition("\n")[2].split("\n\n"):
        is_table = len(columns(dedent(part).split("\n"))) > 2
        is_legend = part.startswith("    ") and not is_table
        left.append(_letters(part) if is_legend else book.prose(part))
    left += [parts.fold(f"Hint {i} of 3", book.prose(hint)) for i, hint in enumerate(hints, 1)]
    above = file.tree.body[0].end_lineno or 0
    while not file.lines[above].strip():
        above += 1
    seconds = limit_of(name)
    body = fill(
        "learn/exercise.html",
        left=Markup("").join(left),
        name=name,
        place=place,
        given=stub(name),
        above=above,
        seconds=seconds + KILLED,
        late=f"{name}.py: {not_interrupted(seconds)}",
        next=_next_on_path(name, names),
        code=book.code(file, above + 1, len(file.lines)),
        told=_mistake(name),
    )
    book.index.append((names[place][1], "exercise", names[place][0]))
    if name in PATH:
        links.append("★ for a first contact")
    page = one_of("Exercises", names, place, short, sentence(question), body, facts=links)
    page.live = LIVE
    return page


def _next_on_path(name: str, names: Names) -> tuple[str, str]:
    """Return the address and the name of what follows an exercise on the path of eight."""
    following = PATH[PATH.index(name) + 1 :] if name in PATH else ()
    return names[EXERCISES.index(following[0]) + 1] if following else ("", "")


@cache
def answer_to_mistake(name: str) -> Answer:
    """Return what an exercise's check says of the typical mistake."""
    return judged(FOLDER / f"{name}.py", name, mistaken(name))


def _mistake(name: str) -> Markup:
    """Return a typical mistake in an exercise, and what its check says of it."""
    answer = answer_to_mistake(name)
    words = f"{answer.kind}: {answer.said}" if answer.kind else answer.said
    place = name[1:3].lstrip("0")
    return fill("learn/told.html", mistake=MISTAKES[name][1], place=place, answer=words)


def _letters(text: str) -> Markup:
    """Return what the letters of an exercise mean: two columns, or a line as wide as both."""
    lines = re.sub(r"\n     +", " ", text).split("\n")
    rows = [list(map(inline, re.split(" {2,}", line.strip(), maxsplit=1))) for line in lines]
    return fill("learn/letters.html", rows=rows)
