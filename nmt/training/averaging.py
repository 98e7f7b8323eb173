"""Checkpoint averaging (section 6.1): the last k checkpoints of a run become its model directory."""

from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import AverageConfig, ModelConfig
from nmt.decoding.model_directory import ModelDescription
from nmt.decoding.weights import check_ours, write_model_directory
from nmt.errors import NMTError
from nmt.model import Transformer
from nmt.storage.lock import only_process
from nmt.text.manifest import difference
from nmt.text.tokenizers import tokenizer_fingerprint
from nmt.training.checkpoint_content import model_weights
from nmt.training.checkpoints import load_checkpoint
from nmt.training.model_card import model_card
from nmt.training.run_folder import check_no_links, kept_checkpoints, list_checkpoints


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


def choose_checkpoints(config: AverageConfig) -> list[Path]:
    """The checkpoints that `nmt average` is to average; NMTError where there are none, or fewer than asked for."""
    if config.checkpoints:
        if config.last is not None:
            raise NMTError("last=N takes the last of a run's checkpoints: leave it out with checkpoints=...")
        return [Path(path).resolve() for path in config.checkpoints]
    run = Path(config.run)
    check_no_links(run)
    paths = list_checkpoints(run)
    if not paths:
        raise NMTError(f"run={config.run}: no checkpoints there; train first, or pass checkpoints=[FILE,FILE]")
    if config.last is not None and config.last > len(paths):
        raise NMTError(f"last={config.last}: {config.run} has {len(paths)} checkpoints")
    if config.last is not None:
        return paths[-config.last :]
    checkpoints = load_checkpoint(paths[-1])["nmt"]["config"]["checkpoints"]
    return kept_checkpoints(run, checkpoints["every_steps"] or 1, checkpoints["keep"])


def average(config: AverageConfig) -> tuple[Path, list[Path]]:
    """`nmt average`: the model directory that was written, and the checkpoints that it is the mean of."""
    paths = choose_checkpoints(config)
    run = paths[-1].parent.parent
    output = Path(config.output) if config.output else run / "model"
    check_ours(output)
    with nullcontext() if config.output else only_process(run, "output"):
        write_average_of(paths, run, output)
    return output, paths


def write_average_of(paths: list[Path], run: Path, output: Path) -> None:
    """Write the model directory of the mean of these checkpoints of a run."""
    averaged = averaged_model(paths)
    tokenizer_file = run / "tokenizer.model"
    if not tokenizer_file.is_file():
        raise NMTError(f"{tokenizer_file}: no tokenizer beside the checkpoints; it lies in the run they come from")
    if tokenizer_fingerprint(tokenizer_file) != averaged.last["nmt"]["tokenizer"]:
        raise NMTError(f"{tokenizer_file} is not the tokenizer that {paths[-1]} was trained with")
    write_average(averaged, tokenizer_file, output)
