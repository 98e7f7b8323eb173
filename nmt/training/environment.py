"""Software, processor and devices of a run, for its environment.json."""

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from lightning import Trainer

import nmt
from nmt.hardware import processor
from nmt.storage.whole import write_file


def versions() -> dict[str, str]:
    """Versions of nmt, Python, and the libraries that decide a training."""
    libraries = {name: version(name) for name in ("torch", "lightning", "sentencepiece", "sacrebleu")}
    return {"nmt": nmt.__version__, "python": platform.python_version(), **libraries}


def write_environment(run: Path, trainer: Trainer, devices: str, peaks: dict[str, float]) -> None:
    """Write environment.json into a run; `peaks` are FLOP/s of matrix products, by what they were measured on."""
    environment = {
        **versions(),
        "platform": platform.platform(),
        "processor": processor(),
        "devices": devices,
        "world_size": trainer.world_size,
        "precision": str(trainer.precision),
        "peak_flops_per_second": peaks,
        "command": " ".join(["nmt", *sys.argv[1:]]),
    }
    write_file(run / "environment.json", json.dumps(environment, indent=2) + "\n")
