"""Demos · The page: one HTML file that shows what a demo found, and needs no other file.

The pictures are inside the file, as data, so the page can be mailed or moved alone. Long columns of
numbers are folded, so that the pictures are seen first. All text is escaped.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from html import escape
from pathlib import Path

from minigrad.runs.saving import write_whole

STYLE = """
body { font: 16px/1.5 Georgia, serif; color: #222; max-width: 66rem; margin: 2rem auto;
       padding: 0 1rem; }
h1, h2 { font-family: Helvetica, Arial, sans-serif; line-height: 1.2; }
h2 { margin-top: 2.6rem; border-top: 1px solid #ccc; padding-top: 1rem; font-size: 1.25rem; }
.pictures { display: flex; gap: 1.2rem; align-items: flex-start; }
figure { margin: 0 0 1rem 0; flex: 0 1 auto; min-width: 0; }
figure img { max-width: 100%; height: auto; border: 1px solid #e4e4e4; }
figcaption { font: 14px/1.4 Helvetica, Arial, sans-serif; color: #555; }
summary { font: 14px/1.4 Helvetica, Arial, sans-serif; color: #555; cursor: pointer; }
details { margin-bottom: 1rem; }
pre { background: #f6f6f4; padding: .8rem 1rem; overflow-x: auto; font: 12px/1.45 monospace; }
"""


@dataclass(frozen=True)
class Section:
    """A heading, its explanation, text in columns, and pictures (caption, path of an SVG)."""

    heading: str
    explanation: str
    columns: str = ""
    pictures: tuple[tuple[str, Path], ...] = ()


def write_page(path: Path, title: str, opening: str, sections: list[Section]) -> Path:
    """Write the sections as one page, whole or not at all."""
    body = [f"<h1>{escape(title)}</h1>", f"<p>{escape(opening)}</p>"]
    for section in sections:
        body.append(f"<section><h2>{escape(section.heading)}</h2>")
        body.append(f"<p>{escape(section.explanation)}</p>")
        if section.columns:
            folded = f"<summary>The numbers</summary><pre>{escape(section.columns)}</pre>"
            body.append(f"<details>{folded}</details>")
        body.append('<div class="pictures">')
        for caption, picture in section.pictures:
            data = base64.b64encode(picture.read_bytes()).decode()
            body.append(
                f'<figure><img alt="{escape(caption)}" src="data:image/svg+xml;base64,{data}">'
                f"<figcaption>{escape(caption)}</figcaption></figure>"
            )
        body.append("</div></section>")
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body>\n"
    )
    return write_whole(path, head + "\n".join(body) + "\n</body></html>\n")
