"""9.3 · Memory: what an allocation costs.

Where does a training step's time go that is not arithmetic? An array's memory comes from the C
library, which asks the kernel for it, and gives it back when the array is freed. The kernel hands
out memory in pages of 4 kB. At the first touch of each page it stops the program, fills the page
with zeros, and lets the program go on: a **page fault**, about a microsecond. A step that frees its
arrays pays all of that again at the next step. A GPT of four blocks, 128 features wide, has 45,000
page faults a step, which is a third of its time.

`keep_memory()` tells the C library to keep what was freed. It is a choice for the whole process, so
nothing calls it for you but the training loops of the demos. The price: memory that was once used
is not returned before the program ends, and `np.zeros` of a large array must then really write its
zeros, where fresh pages are zero already.
"""

from __future__ import annotations

import ctypes
import platform

# The numbers of glibc's malloc.h. The first says how much free memory at the end of the heap is
# given back, the second from which size on an array gets pages of its own, that are given back.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
GIB = 2**30


def keep_memory() -> str:
    """Let the C library keep freed memory, for this whole process; returns what was done.

    It uses glibc's `mallopt`, and returns "freed memory is kept". With another C library (macOS's,
    Windows's, musl) nothing is changed, and it returns a sentence that says so.
    """
    if not _has_glibc():
        return f"freed memory is not kept: {platform.system()} without glibc has no mallopt"
    library = ctypes.CDLL(None)
    for name, number in (("trim", M_TRIM_THRESHOLD), ("mmap", M_MMAP_THRESHOLD)):
        if library.mallopt(number, GIB) != 1:
            return f"freed memory is not kept: mallopt refused the {name} threshold"
    return "freed memory is kept"


def _has_glibc() -> bool:
    return platform.system() == "Linux" and platform.libc_ver()[0] == "glibc"
