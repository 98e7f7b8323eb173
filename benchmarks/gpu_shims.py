"""TO BE REMOVED: names that a later version of nmt provides, for the version that lacks them."""

from typing import Any

import torch

from nmt import kernels
from nmt.training import module as training_module


def prepare(device: torch.device) -> None:
    if hasattr(kernels, "prepare"):
        kernels.prepare(device)
    else:
        torch.backends.cuda.enable_cudnn_sdp(False)


def use_deterministic_kernels(on: bool) -> None:
    if hasattr(kernels, "use_deterministic_kernels"):
        kernels.use_deterministic_kernels(on)
    else:
        torch.use_deterministic_algorithms(on)
        torch.utils.deterministic.fill_uninitialized_memory = False


def compile_layers(model: Any) -> None:
    if hasattr(model, "compile_layers"):
        model.compile_layers()


summed_losses = training_module.summed_losses
label_smoothed_cross_entropy = training_module.label_smoothed_cross_entropy


def chunk_logits(device: torch.device, logits: int | None = None) -> int:
    """The number of logits in a chunk of the loss, after replacing it by `logits`."""
    if logits is not None:
        training_module.CHUNK_LOGITS = logits
    return training_module.CHUNK_LOGITS


def compile_options(value: str) -> list[str]:
    return []
