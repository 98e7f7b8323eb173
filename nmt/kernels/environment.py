"""The facts that decide which kernels run, and therefore the last bits of a sum.

They are the build of torch, the processor's instructions, and environment variables.
"""

import os
import re
from typing import Any

import torch

from nmt import hardware

SWITCHES = re.compile(
    r"(ATEN|ONEDNN|DNNL|MKL|OPENBLAS|BLIS|CUBLAS|CUBLASLT|CUDNN)_\w+"
    r"|(NVIDIA_TF32|TORCH_BLAS|TORCH_MKLDNN|TORCH_ALLOW_TF32)_\w+"
)
"""Environment variables with which the libraries that torch uses choose kernels."""
HARMLESS_SWITCHES = re.compile(
    r"\w*(VERBOSE|CAPACITY|DUMP|PROFILE|LOG|LOGINFO_\w+|LOGDEST_\w+|NUM_THREADS|DYNAMIC)\w*"
)
"""Switches of logs, caches and threads. Threads are recorded by their number."""
LIBRARIES = {
    "mkl": r"Math Kernel Library Version (\S+)",
    "onednn": r"MKL-DNN (\S+)",
}
"""Libraries in a build of torch, and where torch's summary of its build has their versions."""


def switches() -> dict[str, str]:
    """The environment variables that choose kernels.

    Upper and lower case mean the same to these libraries.
    """
    values = {}
    for name in sorted(os.environ):
        # Unknown switches of these libraries count, because a later version may have added them.
        if SWITCHES.fullmatch(name) and not HARMLESS_SWITCHES.fullmatch(name):
            values[name] = os.environ[name].upper()
    return values


def libraries() -> dict[str, str]:
    """The versions of the libraries in this build of torch."""
    # torch reports these versions only as text.
    summary = torch.__config__.show()
    versions = {}
    for name, pattern in LIBRARIES.items():
        match = re.search(pattern, summary)
        if match:
            versions[name] = match[1]
    return versions


def environment_record() -> dict[str, Any]:
    """Everything in this process and machine that decides the kernels of a CPU or GPU.

    The values are plain. The device and the number of threads are not included, because a trainer
    chooses them later.
    """
    # A program can turn oneDNN off, and a build may lack it.
    mkldnn = torch.backends.mkldnn
    facts: dict[str, Any] = {
        "instructions": hardware.instruction_sets(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "mkldnn": mkldnn.enabled and mkldnn.is_available(),
        "libraries": libraries(),
        "switches": switches(),
    }
    if torch.version.cuda:
        facts["cuda"] = torch.version.cuda
        facts["cudnn"] = torch.backends.cudnn.version()
    return facts
