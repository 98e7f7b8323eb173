"""CPU, cores and libraries of this machine, without importing torch."""

import os
import platform
import re
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from nmt import __version__


def proc_value(file: str, key: str) -> str | None:
    """Return the value of the first `key: value` line in a /proc file; None if the file does not exist."""
    try:
        lines = Path("/proc", file).read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), None)


def processor() -> str:
    return proc_value("cpuinfo", "model name") or platform.processor() or platform.machine()


INSTRUCTION_SETS = re.compile("f16c|fma4?|avx\\w*|amx_\\w+|asimd\\w*|sve\\w*|sme2?|bf16|i8mm")
"""Names of a processor's flags that libraries look at when they choose kernels: x86, then ARM."""


def instruction_sets() -> str:
    """The instruction sets for vectors and matrices. Virtual machines may hide some from a processor of one name."""
    flags = proc_value("cpuinfo", "flags") or proc_value("cpuinfo", "Features") or ""
    return " ".join(sorted(flag for flag in flags.split() if INSTRUCTION_SETS.fullmatch(flag)))


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


GPU_DEFAULTS = {
    # About a thousand batch shapes would otherwise leave gaps between the blocks of memory.
    "PYTORCH_ALLOC_CONF": "expandable_segments:True",
    # cuBLAS gives the same bits each time only with workspaces of fixed sizes.
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
}


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
    """`torch.__version__`, which names the build, such as 2.13.0+cpu. The package's version may lack that part."""
    spec = find_spec("torch")
    file = Path(spec.origin).with_name("version.py") if spec and spec.origin else None
    content = file.read_text(encoding="utf-8") if file and file.is_file() else ""
    build = re.search(r"^__version__(?:: str)? = '([^']+)'", content, re.MULTILINE)
    return build[1] if build else version("torch")


def versions() -> dict[str, str]:
    """Return the versions of nmt, Python, and the libraries that affect training results."""
    libraries = {name: version(name) for name in ("lightning", "sentencepiece", "sacrebleu")}
    return {
        "nmt": __version__,
        "python": platform.python_version(),
        "torch": torch_build(),
        **libraries,
    }
