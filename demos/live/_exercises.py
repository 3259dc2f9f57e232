"""Live · Exercises: the check of an exercise, with the terminal's own words."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from demos.live._examples import Post


def check(
    message: dict[str, Any],
    post: Post,
    clock: Callable[[str, float], AbstractContextManager[object]],
) -> dict[str, Any]:
    """Judge `message["text"]` as the exercise `message["check"]`."""
    raise NotImplementedError


def compare(message: dict[str, Any]) -> list[str]:
    """Return the changes that lead from the learner's lines to ours."""
    raise NotImplementedError
