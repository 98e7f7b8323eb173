"""Compile the functions of a training step with torch.compile: a run always gets the same kernels.

The compiler makes one kernel for all batch shapes, but it tunes the kernel for the first shape: how
a long sum is split depends on that shape, and so do the last bits of the sum. Therefore a run
compiles before its first update, with shapes that follow from its corpus and configuration alone.
It keeps its kernels apart from the kernels of other runs, because torch's cache does not
distinguish kernels by the shape that they were tuned for.
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

OLDEST_GPU = (7, 0)
"""The compute capability that Triton needs."""

CACHE = "TORCHINDUCTOR_CACHE_DIR"
"""The environment variable that names torch's cache of kernels."""

PREFIX = "nmt-"
"""The prefix of the names of nmt's folders in that cache."""


def why_not_compiled(device: torch.device) -> str:
    """Why functions cannot be compiled for a device; empty if they can."""
    if device.type == "cpu":
        if compat.has_cpp_compiler():
            return ""
        return "torch.compile needs a C++ compiler, such as g++ (or set CXX)"
    if device.type != "cuda":
        return f"torch.compile does not support {device.type} well"
    # On a GPU, torch generates Triton code, which Triton launches through C code that it compiles.
    if find_spec("triton") is None:
        return "torch.compile needs the package triton"
    if not has_c_compiler():
        return "torch.compile needs a C compiler, such as gcc (or set CC)"
    if torch.cuda.get_device_capability(device) < OLDEST_GPU:
        return f"{torch.cuda.get_device_name(device)} is too old for torch.compile"
    return ""


def has_c_compiler() -> bool:
    """Whether Triton finds a compiler; it uses the first of these that exists."""
    programs = ["gcc", "clang"]
    if os.environ.get("CC"):
        programs.insert(0, os.environ["CC"])
    return any(shutil.which(program) for program in programs)


class Compiler:
    """The compiled forms of functions; each is compiled when it is first called.

    `identity` is everything that decides the kernels: model, precision, and the shapes of the first
    calls.
    """

    def __init__(self, identity: str) -> None:
        # Forget other models, which count towards a limit on kernels per function.
        torch.compiler.reset()
        compat.prepare_compiler()
        # torch and the worker processes of its compiler read the folder from the environment.
        os.environ[CACHE] = str(cache_folder(identity))
        self.forms: dict[Callable[..., Any], Callable[..., Any]] = {}

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        if function not in self.forms:
            # `dynamic` makes one kernel for all batch shapes. Without `fullgraph`, torch would
            # silently leave what it cannot compile to Python.
            self.forms[function] = torch.compile(
                function, dynamic=True, fullgraph=True, backend=BACKEND
            )
        return self.forms[function]


def cache_folder(identity: str) -> Path:
    """The folder for the kernels of runs with this identity, in torch's cache."""
    # Another version of torch makes other kernels.
    whole = f"{torch.__version__} {identity}"
    digest = hashlib.sha256(whole.encode()).hexdigest()
    cache = Path(os.environ.get(CACHE) or compat.default_kernel_cache())
    # Set by an earlier run in this process, or by the process that started this one.
    if cache.name.startswith(PREFIX):
        cache = cache.parent
    return cache / f"{PREFIX}{digest[:16]}"
