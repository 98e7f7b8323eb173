"""Settings for a processor's memory, to be made before the first product."""

import ctypes
import os
import platform

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Make glibc keep freed memory for the next step: a fresh page costs more than writing a product into it."""
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 2**30)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def forget_old_kernels() -> None:
    """Cache 8 of oneDNN's kernels: each is for one shape, batches have hundreds, and building one is fast.

    The default, two caches of 1024 kernels of half a megabyte between the tensors, doubles the memory of model=small.
    """
    for cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(cache, "8")
