"""What this machine has; without torch, for those who must know it before the seconds that torch takes."""

import os
import platform
import sys
from pathlib import Path


def processor() -> str:
    """The processor's name."""
    path = Path("/proc/cpuinfo")
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def usable_cores() -> int:
    """Processor cores that this process may use."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> int:
    """Bytes that the processor's memory has left."""
    path = Path("/proc/meminfo")
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        if line.startswith("MemAvailable:"):
            return 1024 * int(line.split()[1])
    return 2**62
