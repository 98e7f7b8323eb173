"""Settings by which a processor's memory is used again, and not filled with kernels."""

import ctypes
import os
import platform

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT_KERNELS = 8


def keep_freed_memory() -> None:
    """Let the C library keep what a training step frees for the next one, instead of giving it back to the system.

    Fresh pages cost more to touch than a product costs to write. Only glibc has these settings.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(M_MMAP_THRESHOLD, 2**30)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def forget_old_kernels() -> None:
    """Keep few of oneDNN's kernels: each belongs to one shape, and batches come in hundreds of shapes.

    By default 1024 are kept, twice: half a megabyte each, strewn between the tensors, which doubles the memory that a
    model=small run takes. Building one again takes a fraction of a millisecond. To be called before the first product.
    """
    for cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        os.environ.setdefault(cache, str(KEPT_KERNELS))
