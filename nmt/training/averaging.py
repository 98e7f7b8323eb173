"""Checkpoint averaging (section 6.1): the last k checkpoints of a run become its model directory."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import ModelConfig
from nmt.data.manifest import difference
from nmt.errors import NMTError
from nmt.model import Transformer
from nmt.model_directory.card import model_card
from nmt.model_directory.description import ModelDescription
from nmt.model_directory.weights import write_model_directory
from nmt.training.checkpoint_content import model_weights
from nmt.training.checkpoints import load_checkpoint


def average_checkpoints(paths: list[Path]) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """The mean weights of checkpoints (section 6.1), summed in float64, and what each holds beside its weights.

    Raises NMTError where they are of different models or vocabularies.
    """
    sums: dict[str, Tensor] = {}
    first: dict[str, Any] = {}
    others = []
    for path in paths:
        checkpoint = load_checkpoint(path)
        about = checkpoint["nmt"]
        identity = {
            "model": about["config"]["model"],
            "vocabulary_size": about["vocabulary_size"],
            "tokenizer": about["tokenizer"],
        }
        first = first or identity
        if identity != first:
            raise NMTError(
                f"{path} is of another model than {paths[0]} ({difference(first, identity)}): they cannot be averaged"
            )
        for name, tensor in model_weights(checkpoint).items():
            if name in sums:
                sums[name] += tensor
            else:
                sums[name] = tensor.to(torch.float64, copy=True)
        others.append({key: checkpoint[key] for key in ("nmt", "global_step", "callbacks")})
    return {name: (total / len(paths)).float() for name, total in sums.items()}, others


@dataclass
class Average:
    """A model with the mean weights of checkpoints."""

    model: Transformer
    updates: list[int]
    """Of each checkpoint."""
    last: dict[str, Any]
    """What the last checkpoint holds beside its weights."""


def averaged_model(paths: list[Path]) -> Average:
    """The mean of checkpoints as a model; NMTError where they are of different models."""
    weights, checkpoints = average_checkpoints(paths)
    about = checkpoints[-1]["nmt"]
    model = Transformer(ModelConfig(**about["config"]["model"]), about["vocabulary_size"])
    model.load_state_dict(weights)
    return Average(model.eval(), [checkpoint["global_step"] for checkpoint in checkpoints], checkpoints[-1])


def write_average(average: Average, tokenizer_file: Path, output: Path, score: str | None = None) -> None:
    """Write the model directory of an average; `score` is what its card says of its quality."""
    about = average.last["nmt"]
    description = ModelDescription(
        model=about["config"]["model"],
        vocabulary_size=about["vocabulary_size"],
        source=about["source"],
        target=about["target"],
        tokenizer=about["tokenizer"],
        training={
            "updates": average.last["global_step"],
            "averaged": average.updates,
            "corpus": about["corpus"],
            "config": about["config"],
            **about.get("seen", {}),
        },
    )
    card = model_card(average.model, average.last, average.updates, score)
    write_model_directory(output, average.model, tokenizer_file, description, card)
