"""trainer.precision=auto: bf16-mixed where a short measurement on the run's device finds that it pays, else 32-true."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch
from rich.console import Console

from nmt.config import ExperimentConfig, ModelConfig
from nmt.kernels import linear
from nmt.model import DecoderLayer
from nmt.training.peak_flops import synchronize
from nmt.training.processes import require_one_process
from nmt.training.run_folder import read_config
from nmt.training.trainer import make_trainer

FEW_ROWS = 64
"""Rows of the first product: where the device has none of bfloat16, large ones take torch seconds."""
TOKENS, LENGTH = 1024, 32
"""Most target tokens, and those of a sentence, in the layer that is measured."""
ROUNDS = 3
LEAST_GAIN = 1.1
"""What bf16-mixed must be faster by. The layer leaves out what both do in float32, such as Adam."""


class Measured(NamedTuple):
    """Seconds of the same work in float32, and with bfloat16."""

    work: str
    float32: float
    bfloat16: float

    @property
    def precision(self) -> str:
        return "bf16-mixed" if self.float32 >= LEAST_GAIN * self.bfloat16 else "32-true"

    def __str__(self) -> str:
        return (
            f"trainer.precision=auto: {self.precision}; {self.work} takes {1000 * self.float32:.2f} ms in float32 and "
            f"{1000 * self.bfloat16:.2f} ms in bfloat16"
        )


def settle_precision(config: ExperimentConfig, run: Path, console: Console) -> ExperimentConfig:
    """The configuration with the precision that `auto` comes to on the run's device; prints how it was decided.

    It is decided when a run begins; from then on it is read from config.yaml, also on another machine.
    """
    if (run / "config.yaml").exists():
        saved = read_config(run).get("trainer", {}).get("precision")
        return with_precision(config, str(saved))
    require_one_process("trainer.precision=auto", "32-true or bf16-mixed")
    device = make_trainer(with_precision(config, "32-true")).strategy.root_device
    tokens = min(TOKENS, config.batching.tokens_per_update // (config.batching.micro_batches or 1))
    measured = measure(config.model, tokens, device)
    console.print(str(measured))
    return with_precision(config, measured.precision)


def with_precision(config: ExperimentConfig, precision: str) -> ExperimentConfig:
    return replace(config, trainer=replace(config.trainer, precision=precision))


def measure(model: ModelConfig, tokens: int, device: torch.device) -> Measured:
    """A product of the model's width or, where that is not slower in bfloat16, a decoder layer with its gradients."""
    product = Measured(f"a product of {FEW_ROWS} rows", *by_turns(few_rows(model.d_model, device), device))
    if product.bfloat16 > 2 * product.float32:
        return product
    rows = max(tokens // LENGTH, 1)
    work = f"a decoder layer for {rows * LENGTH:,} tokens, with its gradients,"
    return Measured(work, *by_turns(layer_step(model, rows, device), device))


def by_turns(work: Callable[[torch.dtype], object], device: torch.device) -> tuple[float, float]:
    """The least seconds of `work` with float32 and with bfloat16, after a first time that is not counted."""
    seconds: dict[torch.dtype, list[float]] = {torch.float32: [], torch.bfloat16: []}
    for _ in range(1 + ROUNDS):
        for dtype, taken in seconds.items():
            synchronize(device)
            start = time.perf_counter()
            work(dtype)
            synchronize(device)
            taken.append(time.perf_counter() - start)
    least_float32, least_bfloat16 = (min(taken[1:]) for taken in seconds.values())
    return least_float32, least_bfloat16


def few_rows(width: int, device: torch.device) -> Callable[[torch.dtype], object]:
    """A small product with a square matrix."""
    factors = torch.randn(FEW_ROWS, width, device=device), torch.randn(width, width, device=device)
    typed = {dtype: [x.to(dtype) for x in factors] for dtype in (torch.float32, torch.bfloat16)}
    return lambda dtype: linear(*typed[dtype])


def layer_step(model: ModelConfig, rows: int, device: torch.device) -> Callable[[torch.dtype], object]:
    """A decoder layer, the largest part of a training step, forward and backward."""
    layer = DecoderLayer(model).to(device)
    x_BTD = torch.randn(rows, LENGTH, model.d_model, device=device, requires_grad=True)

    def step(dtype: torch.dtype) -> None:
        with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
            y_BTD = layer(x_BTD, x_BTD, None)
        y_BTD.sum().backward()

    return step
