"""Tests: how hypothesis draws (no deadline; the same draws every time in CI), and one thread."""

import os

from hypothesis import settings

# Several threads make small products slower, above all on a busy machine: there the sweep of
# chapter 16 took 17 s with two of them, and 0.6 with one. (NumPy reads this when it is imported.)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

settings.register_profile("here", deadline=None, max_examples=50)
settings.register_profile("ci", deadline=None, max_examples=50, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")
