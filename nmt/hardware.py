"""CPU, cores and libraries of this machine, without importing torch."""

import os
import platform
import re
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from nmt import __version__

INSTRUCTION_SETS = re.compile("f16c|fma4?|avx\\w*|amx_\\w+|asimd\\w*|sve\\w*|sme2?|bf16|i8mm")
"""Names of a processor's flags that libraries look at when they choose kernels: x86, then ARM."""
GPU_DEFAULTS = {
    # About a thousand batch shapes would otherwise leave gaps between the blocks of memory.
    "PYTORCH_ALLOC_CONF": "expandable_segments:True",
    # cuBLAS gives the same bits each time only with workspaces of fixed sizes.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}
LIBRARIES = ("lightning", "sentencepiece", "sacrebleu")
"""The libraries, besides torch, that affect training results."""


def proc_value(file: str, key: str) -> str | None:
    """Return the value of the first `key: value` line in a /proc file.

    None if the file or the key does not exist.
    """
    try:
        lines = Path("/proc", file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith(key):
            return line.partition(":")[2].strip()
    return None


def processor() -> str:
    """The name of the CPU."""
    # ARM kernels and other systems have no such line.
    return proc_value("cpuinfo", "model name") or platform.processor() or platform.machine()


def instruction_sets() -> str:
    """The CPU's instruction sets for vectors and matrices.

    Virtual machines may hide some of them, so the processor's name does not determine them.
    """
    # x86 and ARM kernels name this line differently.
    flags = proc_value("cpuinfo", "flags") or proc_value("cpuinfo", "Features") or ""
    names = filter(INSTRUCTION_SETS.fullmatch, flags.split())
    return " ".join(sorted(names))


def usable_cores() -> int:
    """The number of cores that this process may use."""
    # A scheduler or a container may allow a process fewer cores than the machine has.
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def set_gpu_defaults() -> None:
    """Set the environment variables that torch and cuBLAS read once, unless the user has set them.

    Call this before torch uses a GPU; child processes inherit the variables.
    """
    if "PYTORCH_CUDA_ALLOC_CONF" in os.environ:  # the older name of the same variable
        os.environ.setdefault("PYTORCH_ALLOC_CONF", os.environ["PYTORCH_CUDA_ALLOC_CONF"])
    if sys.platform == "linux":
        for name, value in GPU_DEFAULTS.items():
            os.environ.setdefault(name, value)


def torch_build() -> str:
    """`torch.__version__`, which names the build, such as 2.13.0+cpu.

    It is read from a file, because importing torch takes seconds. The package's version may lack
    the build.
    """
    spec = find_spec("torch")
    if spec and spec.origin:
        # torch writes this file when it is built.
        file = Path(spec.origin).with_name("version.py")
        content = file.read_text(encoding="utf-8") if file.is_file() else ""
        build = re.search(r"^__version__(?:: str)? = '([^']+)'", content, re.MULTILINE)
        if build:
            return build[1]
    return version("torch")


def versions() -> dict[str, str]:
    """Return the versions of nmt, Python, and the libraries that affect training results."""
    versions = {
        "nmt": __version__,
        "python": platform.python_version(),
        "torch": torch_build(),
    }
    for name in LIBRARIES:
        versions[name] = version(name)
    return versions
