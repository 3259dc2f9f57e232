"""Memory: freed memory is kept where the C library can, and a sentence says so elsewhere."""

import ctypes
import platform
import subprocess
import sys

import pytest

from minigrad import keep_memory

FAULTS = """
import resource, sys
import numpy as np
from minigrad import keep_memory
said = keep_memory() if sys.argv[1:] else ""
faults = []
for _ in range(4):  # each round frees what it made
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    arrays = [np.ones(1 << 20) for _ in range(4)]
    del arrays
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(faults[-1], said)
"""


def faults(*arguments):
    """Return the page faults of the last round, in a process of its own, and its printed text."""
    command = [sys.executable, "-c", FAULTS, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    count, _, said = done.stdout.strip().partition(" ")
    return int(count), said


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="there is no mallopt without glibc")
def test_kept_memory_is_not_faulted_in_again():
    usual, _ = faults()
    kept, said = faults("keep")
    assert said == "freed memory is kept"
    assert kept < usual / 10


def test_where_it_cannot_be_kept_nothing_is_changed_and_a_sentence_says_so(monkeypatch):
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    monkeypatch.setattr(ctypes, "CDLL", None)  # which must not be called
    assert keep_memory().startswith("freed memory is not kept: ")
    asked = []
    library = type("Library", (), {"mallopt": lambda self, *what: asked.append(what) or 0})
    monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", "2.36"))
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library())
    assert keep_memory() == "freed memory is not kept: mallopt refused"
    assert asked == [(-3, 2**30)]  # after a refusal nothing else is changed
