"""The choice of trainer.precision and trainer.compile where they are `auto`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from nmt import compat, kernels
from nmt.config import ExperimentConfig, NMTError
from nmt.training.run_folder import is_begun, read_config
from nmt.training.trainer import make_trainer

SHORTEST_COMPILED = 10
"""Compile only runs of at least this many minutes (`minutes=`): compiling takes one or two."""


def settle_trainer(
    config: ExperimentConfig, notice: Callable[[str], None] | None = None
) -> ExperimentConfig:
    """Replace `auto` in trainer.precision and trainer.compile.

    A run that has begun keeps its own settings, on any device. If `auto` cannot compile on a GPU,
    `notice` is called with the reason. Raises NMTError if trainer.compile=true is impossible.
    """
    asked = config.trainer
    # Nothing to choose: do not create a trainer just to learn the device.
    if asked.precision != "auto" and asked.compile is False:
        return config
    run = Path(config.run)
    begun = read_config(run)["trainer"] if is_begun(run) else {}
    # Only the device is needed, and Lightning would refuse `auto`.
    exact = replace(asked, precision="32-true", compile=False)
    device = make_trainer(replace(config, trainer=exact)).strategy.root_device
    settled = replace(
        asked,
        precision=settled_precision(asked.precision, begun, device),
        compile=settled_compile(config, begun, device),
    )
    if settled.compile:
        # Asked only if it matters, because importing the compiler takes a second.
        problem = why_not_compiled(config, device)
        # A compiled run cannot resume otherwise: its dropout uses other random numbers.
        is_optional = asked.compile == "auto" and not begun
        if problem and not is_optional:
            raise NMTError(
                f"trainer.compile=true: {problem}; "
                "pass trainer.compile=false, together with name=OTHER if the run has begun"
            )
        if problem:
            settled = replace(settled, compile=False)
            if notice:
                notice(f"the model is not compiled, which would make updates faster: {problem}")
    return replace(config, trainer=settled)


def settled_precision(asked: str, begun: Mapping[str, Any], device: torch.device) -> str:
    """`asked`, unless it is `auto`; `begun` are the trainer options of a run that has begun."""
    if asked != "auto":
        return asked
    if begun:
        # What nmt used before the option existed.
        return str(begun.get("precision", "32-true"))
    return "bf16-mixed" if compat.has_fast_bfloat16(device) else "32-true"


def settled_compile(
    config: ExperimentConfig, begun: Mapping[str, Any], device: torch.device
) -> bool:
    """Whether to compile, as `settled_precision` chooses; the device may still lack a compiler."""
    asked = config.trainer.compile
    if asked != "auto":
        return bool(asked)
    if begun:
        return bool(begun.get("compile", False))
    return is_worth_compiling(config, device)


def why_not_compiled(config: ExperimentConfig, device: torch.device) -> str:
    """Why this model cannot be compiled for a device; empty if it can."""
    if config.model.decoder != "attention":
        return f"model.decoder={config.model.decoder} would need a kernel for each length"
    return kernels.why_not_compiled(device)


def is_worth_compiling(config: ExperimentConfig, device: torch.device) -> bool:
    """Whether trainer.compile=auto compiles if it can: on GPUs, in runs that are long enough."""
    is_short = config.minutes is not None and config.minutes < SHORTEST_COMPILED
    return device.type == "cuda" and not is_short
