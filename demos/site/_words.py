"""Site · Words: the page of PyTorch's and NumPy's words, and of all names of this project."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from typing import cast

from markupsafe import Markup

from demos.pages.page import Page, one_of
from demos.pages.source import resolve
from demos.pages.templates import fill, parts
from demos.pages.text import inline
from demos.site._book import Book
from minigrad.engine.hints import INSTEAD, OTHER_NAMES, OTHER_WORDS
from minigrad.engine.words import PLAIN, RECORDED, name_of


def words(book: Book) -> Page:
    """Return the page of PyTorch's and NumPy's words, and of all names of this project."""

    def link(word: str, module: str, name: str) -> Markup:
        definition = resolve(book.files, module, name)
        address = book.address(*definition) if definition and definition[1] else ""
        code = parts.code(word)
        return parts.link(address, code) if address else code

    def public(package: str) -> Iterator[tuple[Markup, Markup]]:
        """Yield each name of a package, and the first line of its docstring."""
        for name in importlib.import_module(package).__all__:
            file, inner = resolve(book.files, package, name)
            # (Public names are functions and classes, and not variables.)
            definition = cast(ast.FunctionDef | ast.ClassDef, file.defined[inner])
            line = (ast.get_docstring(definition) or "").partition("\n")[0]
            yield link(name, package, name), inline(line, book.links)

    functions = [f for f in RECORDED if not hasattr(f, "__objclass__")]  # (methods of arrays have)
    taken = sorted((name_of(f), RECORDED[f]) for f in functions)
    packages = ("minigrad", "minigrad.nn", "minigrad.optim", "attention")
    body = fill(
        "site/words.html",
        others=[(x if x[-1] == "=" else f"t.{x}", y) for x, y in OTHER_WORDS.items()],
        names=[(f"model{x}" if x[0] == "." else x, y) for x, y in OTHER_NAMES.items()],
        taken=[link(word, f.__module__, f.__name__) for word, f in taken],
        plain=sorted(map(name_of, PLAIN)),
        instead=[(name_of(f), x) for f, x in INSTEAD.items()],
        packages=[(package, public(package)) for package in packages],
    )
    book.index.append(("Words", "of PyTorch and NumPy", "words.html"))
    sub = "PyTorch’s names, NumPy’s, and all of ours."
    return one_of("Book", [("words.html", "Words")], 0, "What is it called here?", sub, body)
