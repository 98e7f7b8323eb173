"""What a run is trained with: software, processor, devices."""

import json
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from lightning import Trainer

import nmt
from nmt.text.files import replace_file


def processor() -> str:
    """The processor's name."""
    path = Path("/proc/cpuinfo")
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def write_environment(run: Path, trainer: Trainer, devices: str) -> None:
    """Write environment.json into a run."""
    libraries = {name: version(name) for name in ("torch", "lightning", "sentencepiece", "sacrebleu")}
    environment = {
        "nmt": nmt.__version__,
        "python": platform.python_version(),
        **libraries,
        "platform": platform.platform(),
        "processor": processor(),
        "devices": devices,
        "world_size": trainer.world_size,
        "precision": str(trainer.precision),
        "command": " ".join(["nmt", *sys.argv[1:]]),
    }
    replace_file(run / "environment.json", json.dumps(environment, indent=2) + "\n")
