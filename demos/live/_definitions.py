"""Live · Definitions: a reader's lines take the place of a definition, wherever it is known."""

from __future__ import annotations

from typing import Any

from demos.live._examples import Post, Spaces


def define(message: dict[str, Any], post: Post, spaces: Spaces) -> Any:
    """Put `message["define"]` in the place of `message["name"]` of `message["of"]`; judge it."""
    raise NotImplementedError
