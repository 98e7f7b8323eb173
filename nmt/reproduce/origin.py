"""What a number was measured with: the code, the machine, the packages."""

import os
import platform
import shutil
import subprocess
from importlib.metadata import version
from pathlib import Path
from typing import Any

import nmt
from nmt.hardware import processor, usable_cores

PACKAGES = ("torch", "lightning", "sentencepiece", "tokenizers", "sacrebleu", "sacremoses")


def origin() -> dict[str, Any]:
    """Commit, machine and versions, as they are now."""
    return {
        "commit": commit(Path(nmt.__file__).parents[1]),
        "machine": machine(),
        "packages": {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}},
    }


def commit(root: Path) -> str:
    """The commit of nmt's own repository, with -dirty where its code or groups are others; else the version of nmt."""

    def git(*words: str) -> str | None:
        try:
            result = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True)
        except OSError:
            return None
        return result.stdout.strip() if result.returncode == 0 else None

    head = git("rev-parse", "HEAD")
    # A wheel may lie in an environment within somebody else's repository.
    if not head or git("ls-files", "--error-unmatch", "nmt/__init__.py") is None:
        return f"nmt {nmt.__version__}"
    changed = git("status", "--porcelain", "--", "nmt", "conf")
    return head if changed == "" else f"{head}-dirty"


def machine() -> dict[str, Any]:
    """Processor, the cores that this process may use, memory, GPUs."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {"processor": processor(), "cores": usable_cores(), "memory_gib": round(memory, 1), "gpus": gpus()}


def gpus() -> list[str]:
    """The names of the machine's GPUs, as NVIDIA's driver tells them; asking torch would take memory on each."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    words = [program, "--query-gpu=name", "--format=csv,noheader"]
    result = subprocess.run(words, capture_output=True, text=True)
    return result.stdout.split("\n")[:-1] if result.returncode == 0 else []


def in_words(about: dict[str, Any]) -> str:
    """A machine as one says it: AMD EPYC, 2 cores, 24 GiB, 8 x NVIDIA H100."""
    names = about["gpus"]
    cards = [f"{names.count(name)} x {name}" for name in dict.fromkeys(names)]
    cores = f"{about['cores']} core{'' if about['cores'] == 1 else 's'}"
    return ", ".join([about["processor"], cores, f"{about['memory_gib']:.0f} GiB", *cards])
