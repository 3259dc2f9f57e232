"""Demos · Speed: the machine: its memory, page faults, versions and BLAS kernels."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import os
import platform
import re
from pathlib import Path
from typing import Any

import numpy as np

try:
    import resource
except ImportError:  # on Windows
    resource = None  # type: ignore[assignment]


def trim() -> None:
    """Give back all memory that is free, so that what is resident is what is used."""
    gc.collect()
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)


def resident() -> int | None:
    """Return the bytes of memory that this process has now; None where we cannot ask."""
    return _status("VmRSS")


def peak_since_reset() -> int | None:
    """Return the largest value of `resident` since `reset_peak`."""
    return _status("VmHWM")


def reset_peak() -> bool:
    """Start to measure the peak anew; False where that is not possible."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return False
    return True


def _status(name: str) -> int | None:
    try:
        text = Path("/proc/self/status").read_text()
    except OSError:
        return None
    found = re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE)
    return 1024 * int(found[1]) if found else None


def faults() -> int | None:
    """Return the number of page faults of this process that needed no disk."""
    return None if resource is None else resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def kernels() -> list[dict[str, Any]]:
    """Return this process's BLAS libraries and the kernels that they chose; empty if unknown."""
    if importlib.util.find_spec("threadpoolctl") is None:
        return []
    from threadpoolctl import threadpool_info

    return [
        {
            "library": each["internal_api"],
            "version": each["version"],
            "kernel": each.get("architecture", "unknown"),
            "threads": each["num_threads"],
        }
        for each in threadpool_info()
        if each["user_api"] == "blas"
    ]


def processor() -> str:
    """Return the processor's name."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    found = re.search(r"^model name\s*: (.+)$", text, re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


def describe() -> dict[str, Any]:
    """Return the facts about the machine that all contestants share."""
    vector = [each for each in ("avx2", "avx512f", "neon") if each.upper() in _features()]
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "vector units": vector,
        "system": f"{platform.system()} {platform.machine()}",
        "C library": " ".join(platform.libc_ver()).strip() or "unknown",
        "Python": platform.python_version(),
        "NumPy": np.__version__,
    }


def _features() -> set[str]:
    """Return the features that NumPy found in the processor."""
    try:
        from numpy._core._multiarray_umath import __cpu_features__ as found
    except ImportError:
        return set()
    return {name for name, there in found.items() if there}


def warning() -> str:
    """Return a sentence if the environment fixes the kernel of OpenBLAS, or an empty string."""
    asked = os.environ.get("OPENBLAS_CORETYPE")
    if not asked:
        return ""
    return (
        f"OPENBLAS_CORETYPE={asked} is set: it fixes NumPy's kernel, which can make all but "
        "PyTorch and JAX slower; unset it for a fair comparison"
    )
