"""How to compute on a device: settings of the process, and what differs between CPUs and GPUs."""

import ctypes
import os
import platform
import sys

import torch
from torch import Tensor

from nmt import hardware
from nmt.errors import NMTError
from nmt.kernels.waiting import watch_load

# From glibc's malloc.h.
M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3


def prepare() -> None:
    """Make the settings that every use of a model needs, before the first tensor is on a GPU.

    Attention never uses cuDNN. cuDNN builds a plan for each batch shape (0.06 to 1 second in public
    reports), and nmt makes about a thousand shapes; with some masks, its gradients are NaN
    (pytorch/pytorch#196678).
    """
    # First, because it may raise an error: nothing else has changed then.
    check_openmp()
    hardware.set_gpu_defaults()
    torch.backends.cuda.enable_cudnn_sdp(False)
    keep_freed_memory()
    watch_load()


def check_openmp() -> None:
    """Raise NMTError if OpenMP uses fewer threads than torch believes.

    Some kernels of torch leave a part of their result to each thread. Parts of threads that OpenMP
    does not start are never computed, and gradients are then not finite.
    """
    threads = torch.get_num_threads()
    # A single thread is never fewer, and other systems have another OpenMP.
    if threads == 1 or sys.platform != "linux":
        return
    limit = os.environ.get("OMP_THREAD_LIMIT", "").strip()
    dynamic = os.environ.get("OMP_DYNAMIC", "").strip().lower()
    levels = os.environ.get("OMP_MAX_ACTIVE_LEVELS", "").strip()
    # Each makes OpenMP start fewer threads than torch asked for: a limit, the load, no team at all.
    has_fewer_threads = {
        "OMP_THREAD_LIMIT": limit.isdecimal() and int(limit) < threads,
        "OMP_DYNAMIC": dynamic in ("true", "1"),
        "OMP_MAX_ACTIVE_LEVELS": levels == "0",
    }
    for name, is_harmful in has_fewer_threads.items():
        if is_harmful:
            raise NMTError(
                f"{name}={os.environ[name]}: torch computes wrong results with it; "
                "unset it, and set OMP_NUM_THREADS to use fewer threads"
            )


def keep_freed_memory() -> None:
    """Make glibc keep freed memory for the next step.

    Allocating a page takes longer than writing a product to it.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        # By default, a large block gets new pages from the system and returns them when it
        # is freed. Now only blocks from 1 GiB do. Up to 2 GiB, the most that an int can express,
        # stay at the end of the heap.
        libc.mallopt(M_MMAP_THRESHOLD, 2**30)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def forget_old_kernels() -> None:
    """Cache only 8 oneDNN kernels: each serves one of hundreds of shapes and is quick to build.

    By default, each of two caches keeps 1,024 kernels of half a megabyte, scattered among the
    tensors; this doubles the memory use of model=small.
    """
    for cache in ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "LRU_CACHE_CAPACITY"):
        # The user's own choice stays.
        os.environ.setdefault(cache, "8")


def use_deterministic_kernels(on: bool) -> None:
    """Let torch use only kernels that give the same bits each time.

    It raises an error where it has none. Without them, the gradients of attention and embeddings on
    a GPU are added in any order.
    """
    # Also `False` must be set, because an earlier run in this process may have set `True`.
    torch.use_deterministic_algorithms(on)
    # By default, the mode also fills each new tensor, which costs time and affects no result of
    # ours.
    torch.utils.deterministic.fill_uninitialized_memory = not on  # type: ignore[attr-defined]


def runs_ahead(device: torch.device) -> bool:
    """Whether the program continues while the device computes, and waits when it reads a result."""
    return device.type != "cpu"


def on_cpu(x: Tensor) -> bool:
    """Whether to use our own kernels for CPUs; torch's compiler makes its own for every device."""
    return x.device.type == "cpu" and not torch.compiler.is_compiling()
