"""Site · Document: the file around a page of the site, and the files beside it."""

import shutil
from html import escape
from pathlib import Path

from demos._files import DEMOS
from demos.pages.page import PAGE, Page, fill

HEADER = (
    ("Book", "book.html"),
    ("Explore", "explore.html"),
    ("Exercises", "exercises.html"),
    ("Museum", "museum.html"),
    ("Demos", "demos.html"),
)


def document(page: Page, footer: str, *, head: str = "") -> str:
    """Return the whole file."""
    nav = ""
    for name, file in HEADER:
        now = ' aria-current="page"' if name == page.here else ""
        nav += f'<a href="{file}"{now}>{name}</a>'
    return fill(
        Path(__file__).with_name("page.html"),
        title=escape(page.title),
        description=escape(page.description),
        generator=PAGE,
        head=head,
        kind=page.kind,
        nav=nav,
        body="\n".join(page.body),
        footer=footer,
    )


def copy_beside(folder: Path) -> None:
    """Copy what the pages ask for into their folder: the style, the scripts and the pictures."""
    for path in ("pages/site.css", "site/site.js", "museum/exhibit.js"):
        shutil.copy(DEMOS / path, folder)
    sources = shutil.ignore_patterns("*.py", "*.md", "*.html", "__pycache__")
    shutil.copytree(DEMOS / "pictures", folder / "pictures", ignore=sources, dirs_exist_ok=True)
