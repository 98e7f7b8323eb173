"""How fast this machine trains the base model: a few updates on made-up tokens, in a process of its own.

python -m nmt.reproduce.speed PRECISION    # prints Speed as JSON
"""

import json
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from typing import Any

import torch

from nmt.config import ModelConfig
from nmt.errors import NMTError
from nmt.model import Transformer
from nmt.model.flops import training_flops
from nmt.training.loss import label_smoothed_cross_entropy
from nmt.training.peak_flops import precision_dtype

LENGTH = 25
"""Tokens of each sentence, on either side."""
VOCABULARY = 37_000
SECONDS = 3.0
"""The measurement goes on for so long, and for two updates at least."""


@dataclass
class Speed:
    """What one device does, and how many there are."""

    device: str
    gpus: int
    flops_per_second: float
    """Counted operations of training, as nmt/model/flops.py counts them."""


def measure_speed(precision: str) -> Speed:
    """NMTError where this machine cannot train the base model."""
    return Speed(**ask("nmt.reproduce.speed", precision))


def ask(module: str, *words: str) -> dict[str, Any]:
    """What another process measures, whose memory on the device is free again afterwards; NMTError where it fails."""
    result = subprocess.run([sys.executable, "-m", module, *words], capture_output=True, text=True)
    if result.returncode:
        said = (result.stderr.strip() or "no word of why").splitlines()[-1]
        raise NMTError(f"cannot measure how fast this machine is (python -m {module} {' '.join(words)}: {said})")
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def measure(precision: str) -> Speed:
    """Train on made-up tokens for some seconds."""
    gpus = torch.accelerator.device_count() if torch.accelerator.is_available() else 0
    accelerator = torch.accelerator.current_accelerator() if gpus else None
    device = accelerator or torch.device("cpu")
    config, sentences = ModelConfig(name="base"), 125 if gpus else 10
    model = Transformer(config, VOCABULARY).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)
    tokens = torch.randint(4, VOCABULARY, (sentences, LENGTH), device=device)
    dtype = precision_dtype(precision)
    context = torch.autocast(device.type, dtype) if dtype != torch.float32 else nullcontext()
    updates, start = -1, 0.0  # the first one warms up
    while updates < 2 or time.perf_counter() - start < SECONDS:
        with context:
            hidden = model.decoder_states(tokens, tokens).flatten(0, 1)
            loss, _ = label_smoothed_cross_entropy(hidden, model.output.weight, tokens.flatten(), 0.1)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss.item()  # waits for the device
        updates += 1
        start = start if updates else time.perf_counter()
    count = sentences * LENGTH
    pairs = count * LENGTH, count * (LENGTH + 1) // 2, count * LENGTH
    flops = updates * training_flops(config, VOCABULARY, (count, count), pairs)
    name = (
        torch.cuda.get_device_name() if device.type == "cuda" else f"{device.type}, {torch.get_num_threads()} threads"
    )
    return Speed(name, gpus, flops / (time.perf_counter() - start))


if __name__ == "__main__":
    print(json.dumps(asdict(measure(sys.argv[1]))))
