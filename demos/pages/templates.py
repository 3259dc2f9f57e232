"""Pages · Templates: HTML from files beside the code, in which every text is escaped.

What a template is given is text and is escaped, unless it is Markup, which is HTML.
"""

from __future__ import annotations

from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from demos._files import DEMOS

ENVIRONMENT = Environment(
    loader=FileSystemLoader(DEMOS),
    autoescape=True,
    undefined=StrictUndefined,  # (a name without a value ends the build)
    trim_blocks=True,
    lstrip_blocks=True,
)
# The macros of parts.html, each a function that returns Markup: `parts.fold("Title", html)`.
parts: Any = ENVIRONMENT.get_template("pages/html/parts.html").module


def fill(name: str, /, **values: object) -> Markup:
    """Return a template with its values; its name is its path in demos/."""
    return Markup(ENVIRONMENT.get_template(name).render(values))
