"""What there is to train with; without torch, for those who must know it before the seconds that torch takes."""

import platform
from pathlib import Path


def processor() -> str:
    """The processor's name."""
    path = Path("/proc/cpuinfo")
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
