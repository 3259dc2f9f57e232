"""Memory: what an allocation costs.

Where does a training step's time go that is not arithmetic? An array's memory comes from the C
library, which asks the kernel for it, and gives it back when the array is freed. The kernel hands
out memory in pages of 4 kB. At the first touch of each page it stops the program, fills the page
with zeros, and lets the program go on: a **page fault**, about a microsecond. A step that frees its
arrays has all of these faults again at the next step.

`keep_memory()` tells the C library to keep what was freed. In the row "char-gpt" of the benchmark
(`demos/speed/measured.md`) a training step has 30,860 page faults without it and 6 with it, and
takes 227 and 183 ms. It is a choice for the whole process, so nothing calls it for you but the
training loops of the demos. Call it once, before the first step; it works after a step or two:

    keep_memory()
    for step in range(steps):
        loss = cross_entropy(model(tokens), targets)
        ...

The price: freed memory is kept until the program ends (beyond 1 GiB at a time it is still
returned), and `np.zeros` of a large array must then write its zeros, where fresh pages are zero
already.
"""

from __future__ import annotations

import ctypes
import platform

# The numbers of glibc's malloc.h. Free memory at the end of the heap is given back if it is more
# than the first threshold. An array above the second gets pages of its own, which are given back.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
GIB = 2**30


def keep_memory() -> str:
    """Let the C library keep freed memory, for this whole process; return what was done, in words.

    It uses glibc's `mallopt`, and returns "freed memory is kept". With another C library (macOS's,
    Windows's, musl), or if glibc refuses, nothing is changed, and the sentence it returns says so.
    """
    if platform.libc_ver()[0] != "glibc":
        return f"freed memory is not kept: {platform.system()} without glibc has no mallopt"
    library = ctypes.CDLL(None)
    # (mmap first: some versions refuse it, and then the other is left as it was.)
    kept = library.mallopt(M_MMAP_THRESHOLD, GIB) and library.mallopt(M_TRIM_THRESHOLD, GIB)
    return "freed memory is kept" if kept else "freed memory is not kept: mallopt refused"
