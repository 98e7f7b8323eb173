"""CPU, cores and libraries of this machine, without importing torch."""

import os
import platform
import sys
from importlib.metadata import version
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


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def versions() -> dict[str, str]:
    """Return the versions of nmt, Python, and the libraries that affect training results."""
    libraries = {name: version(name) for name in ("torch", "lightning", "sentencepiece", "sacrebleu")}
    return {"nmt": __version__, "python": platform.python_version(), **libraries}
