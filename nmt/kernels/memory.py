"""Settings for a processor's memory: reuse what was freed, and cache few kernels."""

import ctypes
import os
import platform

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_KERNELS = 8


def keep_freed_memory() -> None:
    """Make the C library keep memory that a training step frees, for the next step, instead of returning it.

    The first access to a fresh page costs more than writing the result of a product. Only glibc has these settings.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 2**30)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def forget_old_kernels() -> None:
    """Cache few of oneDNN's kernels: each is for one shape, and batches have hundreds of shapes.

    By default there are two caches of 1024 kernels of half a megabyte, scattered between the tensors, which doubles the
    memory of a model=small run. Rebuilding a kernel takes a fraction of a millisecond. Call this before the first
    product.
    """
    for cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(cache, str(KEPT_KERNELS))
