"""Site · Document: the file around a page of the site, and the files beside it."""

import shutil
from pathlib import Path

from markupsafe import Markup

from demos._files import DEMOS
from demos.live._runtime import MISSING, Runtime
from demos.pages.page import PAGE, Page
from demos.pages.templates import fill
from minigrad.runs.saving import write_whole

HEADER = (
    ("Book", "book.html"),
    ("Explore", "explore.html"),
    ("Exercises", "exercises.html"),
    ("Museum", "museum.html"),
    ("Demos", "demos.html"),
)


def document(page: Page, version: str, base: str = "", runtime: Runtime | None = None) -> str:
    """Return the whole file.

    base     the address of the site, if it has one
    runtime  Python for pages that run, if the site has it
    """
    runs = runtime if page.live else None
    header = HEADER
    if runtime:
        header += (("Try", "try.html"),)
    html = fill(
        "site/page.html",
        page=page,
        title=f"{page.title} · minigrad",
        kind=f"{page.kind} runs".strip() if runtime else page.kind,  # (for site.css: .if-runs)
        body=Markup("\n").join(page.body),
        generator=PAGE,
        header=header,
        version=version,
        base=base,
        runtime=runs,
        missing=MISSING.get(page.module, "") if runs else "",
    )
    return f"{html}\n"


def copy_beside(folder: Path) -> None:
    """Copy what the pages ask for into their folder: the style, the scripts and the pictures."""
    beside = ("site.css", "demo.css", "demo.js")
    for path in (*(f"pages/{name}" for name in beside), "site/site.js", "museum/exhibit.js"):
        _copy(DEMOS / path, folder / Path(path).name)
    shutil.copytree(
        DEMOS / "pictures",
        folder / "pictures",
        ignore=shutil.ignore_patterns("*.py", "*.md", "*.html", "__pycache__"),
        copy_function=_copy,
        dirs_exist_ok=True,
    )


def _copy(source: str | Path, copy: str | Path) -> Path:
    """Copy a file, whole or not at all."""
    return write_whole(copy, Path(source).read_bytes())
