"""Compile the functions of a training step with torch.compile, so that each run gets the same kernels.

The compiler makes a kernel for all batch shapes, but it tunes the kernel for the first shape: how a long sum is split
depends on that shape, and so do the last bits of the sum. Therefore a run compiles with shapes that follow from its
corpus and configuration alone, before its first update, and keeps its kernels apart from those of other runs, because
torch's cache does not distinguish kernels by the shape that they were tuned for.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from nmt import compat

BACKEND = "inductor"
OLDEST_GPU = (7, 0)  # the compute capability that Triton needs
CACHE = "TORCHINDUCTOR_CACHE_DIR"
OURS = "nmt-"  # the beginning of the names of our folders in torch's cache


def why_not_compiled(device: torch.device) -> str:
    """Why functions cannot be compiled for a device; empty if they can."""
    if device.type == "cpu":
        return (
            ""
            if compat.has_cpp_compiler()
            else "torch.compile needs a C++ compiler, such as g++ (or set CXX)"
        )
    if device.type != "cuda":
        return f"torch.compile does not support {device.type} well"
    if find_spec("triton") is None:
        return "torch.compile needs the package triton"
    # Triton compiles with the first of these that exists.
    if not any(map(shutil.which, filter(None, (os.environ.get("CC"), "gcc", "clang")))):
        return "torch.compile needs a C compiler, such as gcc (or set CC)"
    if torch.cuda.get_device_capability(device) < OLDEST_GPU:
        return f"{torch.cuda.get_device_name(device)} is too old for torch.compile"
    return ""


class Compiler:
    """The compiled forms of functions; each is compiled when it is first called.

    `identity` is everything that decides the kernels: model, precision, and the shapes of the first calls.
    """

    def __init__(self, identity: str) -> None:
        torch.compiler.reset()  # forget other models, which count towards a limit on kernels per function
        compat.prepare_compiler()
        os.environ[CACHE] = str(cache_folder(identity))
        self.forms: dict[Callable[..., Any], Callable[..., Any]] = {}

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if function not in self.forms:
            self.forms[function] = torch.compile(
                function, dynamic=True, fullgraph=True, backend=BACKEND
            )
        return self.forms[function]


def cache_folder(identity: str) -> Path:
    """The folder for the kernels of runs with this identity, in torch's cache."""
    whole = f"{torch.__version__} {identity}"
    name = OURS + hashlib.sha256(whole.encode()).hexdigest()[:16]
    cache = Path(os.environ.get(CACHE) or compat.default_kernel_cache())
    if cache.name.startswith(
        OURS
    ):  # an earlier run in this process, or the process that started this one
        cache = cache.parent
    return cache / name
