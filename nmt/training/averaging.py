"""Checkpoint averaging (section 6.1): the last k checkpoints of a run become its model directory."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import ModelConfig
from nmt.data.manifest import difference
from nmt.errors import NMTError
from nmt.evaluation.scores import Score
from nmt.model import Transformer
from nmt.model_directory.card import model_card
from nmt.model_directory.description import ModelDescription
from nmt.model_directory.weights import write_model_directory
from nmt.storage.foreign import sha256
from nmt.training.checkpoints import RunState, load_checkpoint, model_weights


@dataclass
class Average:
    """A model whose weights are the mean of several checkpoints."""

    model: Transformer
    updates: list[int]
    """Updates after which the checkpoints were saved."""
    state: RunState
    """That of the last checkpoint."""


def averaged_model(paths: list[Path]) -> Average:
    """The mean of checkpoints (section 6.1), summed in float64; NMTError where they are of different models."""
    sums: dict[str, Tensor] = {}
    first: dict[str, Any] = {}
    updates = []
    for path in paths:
        checkpoint = load_checkpoint(path)
        state = RunState(**checkpoint["nmt"])
        identity = {
            "model": asdict(ModelConfig(**state.config["model"])),
            "vocabulary_size": state.vocabulary_size,
            "tokenizer": state.tokenizer,
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
        updates.append(checkpoint["global_step"])
    model = Transformer(ModelConfig(**state.config["model"]), state.vocabulary_size)
    model.load_state_dict({name: (total / len(paths)).float() for name, total in sums.items()})
    return Average(model.eval(), updates, state)


def tokenizer_of(checkpoint: Path, state: RunState) -> Path:
    """The tokenizer of a checkpoint's run; NMTError where it is missing, or not the one used in training."""
    path = checkpoint.parent.parent / "tokenizer.model"
    if not path.is_file():
        raise NMTError(f"{path}: no such file; checkpoints are averaged with the tokenizer of their run, in its folder")
    if sha256(path) != state.tokenizer:
        raise NMTError(f"{path} is not the tokenizer that {checkpoint} was trained with")
    return path


def write_average(average: Average, tokenizer_file: Path, output: Path, score: tuple[Score, int] | None = None) -> None:
    """Write the model directory of an average; `score` is its validation score, and on how many sentences."""
    state = average.state
    training = {
        "updates": average.updates[-1],
        "averaged": average.updates,
        **{key: getattr(state, key) for key in ("tokens", "seconds", "devices", "versions", "corpus", "config")},
        **state.seen,
    }
    if score:
        training["score"] = {**asdict(score[0]), "sentences": score[1]}
    description = ModelDescription(
        state.config["model"], state.vocabulary_size, state.source, state.target, state.tokenizer, training
    )
    parameters = sum(parameter.numel() for parameter in average.model.parameters())
    write_model_directory(output, average.model, tokenizer_file, description, model_card(description, parameters))
