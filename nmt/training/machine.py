"""environment.json: the devices and the software that train a run."""

import json
import math
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from lightning import Trainer

from nmt import files, hardware, kernels
from nmt.config import difference

BIT_KEYS = ("torch", "processor", "threads", "device", "kernels")
"""The keys whose values may change the last bits of a sum."""
PEAK_KEYS = ("processor", "devices", "precision", "torch")
"""The keys that the peak of idle devices depends on."""
PEAK = "peak_flops_per_second"


def devices_in_words(trainer: Trainer) -> str:
    """The number and kind of devices, such as "1 x cpu (2 threads)"."""
    device = trainer.strategy.root_device
    # The number of threads decides how a CPU splits a sum, so it is part of the kind.
    kind = f"{device.type} ({torch.get_num_threads()} threads)"
    if device.type == "cuda":
        kind = torch.cuda.get_device_name(device)
    return f"{trainer.world_size} x {kind}"


def describe_machine(trainer: Trainer, peak: float) -> dict[str, Any]:
    """The content of environment.json; `peak` is the total FLOP/s of all devices."""
    devices = devices_in_words(trainer)
    _, _, kind = devices.partition(" x ")
    return {
        **hardware.versions(),
        "platform": platform.platform(),
        "processor": hardware.processor(),
        "devices": devices,
        "precision": str(trainer.precision),
        "threads": torch.get_num_threads(),
        # Without the number of threads, which has its own key.
        "device": kind.partition(" (")[0],
        "kernels": kernels.environment_record(),
        PEAK: peak,
        "command": " ".join(["nmt", *sys.argv[1:]]),
    }


def changed_bit_keys(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The changes that may change the last bits of the weights; empty if there are none."""
    recorded = [key for key in BIT_KEYS if key in before]  # older versions of nmt recorded less
    old = {key: before[key] for key in recorded}
    new = {key: now[key] for key in recorded}
    return difference(old, new)


def greater_peak(before: Mapping[str, Any], now: Mapping[str, Any]) -> float:
    """The greater of two recorded peaks if the devices are the same; otherwise the current peak.

    The devices may have been less busy with other programs before.
    """
    peak = float(now[PEAK])
    for key in PEAK_KEYS:
        if before.get(key) != now[key]:
            return peak
    recorded = before.get(PEAK)
    # Somebody may have edited environment.json, or a crash may have damaged it.
    if isinstance(recorded, int | float) and math.isfinite(recorded):
        peak = max(peak, float(recorded))
    return peak


class EnvironmentFile:
    """environment.json of a run."""

    def __init__(self, run: Path) -> None:
        self.path = run / "environment.json"
        self.content: dict[str, Any] = {}

    def read(self) -> dict[str, Any] | None:
        if not self.path.is_file():
            return None
        return files.read_mapping(self.path, files.parse_json)

    def write(self, content: dict[str, Any]) -> None:
        self.content = content
        files.write_file(self.path, json.dumps(content, indent=2) + "\n")

    def write_peak(self, peak: float) -> None:
        """Record the peak if it is greater than the recorded one."""
        if peak > self.content[PEAK]:
            self.write({**self.content, PEAK: peak})
