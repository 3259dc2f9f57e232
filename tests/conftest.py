"""Tests: how hypothesis draws (no deadline; the same draws every time in CI)."""

import os

from hypothesis import settings

settings.register_profile("here", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
