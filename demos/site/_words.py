"""Site · Words: the page of PyTorch's and NumPy's words, and of all names of this project."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import cast

from demos.pages.page import Page, fill, one_of
from demos.pages.source import resolve
from demos.pages.text import inline
from demos.site._book import Book
from minigrad.engine.hints import INSTEAD, OTHER_NAMES, OTHER_WORDS
from minigrad.engine.words import PLAIN, RECORDED, name_of


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
            # (Public names are functions and classes, and not variables.)
            definition = cast(ast.FunctionDef | ast.ClassDef, file.defined[inner])
            line = (ast.get_docstring(definition) or "").partition("\n")[0]
            yield f"{link(name, package, name)}<br>{inline(line, book.links)}"

    functions = [f for f in RECORDED if not hasattr(f, "__objclass__")]  # (methods of arrays have)
    taken = sorted((name_of(f), RECORDED[f]) for f in functions)
    body = fill(
        Path(__file__).with_name("words.html"),
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
    return one_of("Book", [("words.html", "Words")], 0, "What is it called here?", sub, body)


def _list(items: Iterable[str]) -> str:
    return f'<ul class="list">{"".join(f"<li>{item}</li>" for item in items)}</ul>'
