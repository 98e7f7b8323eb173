"""Checkpoint averaging (section 6.1): the mean of a run's last k checkpoints becomes its model directory.

The paper fixes k. While a model still learns fast, such a mean is much worse than the last checkpoint, so by default
the validation loss chooses k.
"""

from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from nmt.config import CheckpointConfig, ModelConfig, difference
from nmt.data import PreparedSplit
from nmt.errors import NMTError, enough_memory_or
from nmt.evaluation import Score
from nmt.files import ModelDescription, model_card, sha256, write_model_directory
from nmt.model import Transformer
from nmt.training.checkpoints import RunState, UnreadableCheckpoint, load_checkpoint, model_weights
from nmt.training.run_folder import kept_checkpoints
from nmt.training.validation import validation_loss


@dataclass
class Average:
    """A model whose weights are the mean of checkpoints."""

    model: Transformer
    updates: list[int]
    """Updates after which the checkpoints were saved."""
    state: RunState
    """That of the last checkpoint; of the run's newest one, where validation chose the checkpoints."""
    made: int
    """Updates that the run had made when `state` was saved,"""
    skipped: int
    """and how many of them it skipped."""
    losses: dict[str, float] = field(default_factory=dict)
    """Validation losses of the candidates, under the updates of their checkpoints, if validation chose."""


class RunningMean:
    """The mean of checkpoints of one model, summed in float64."""

    def __init__(self, *paths: Path) -> None:
        self.sums: dict[str, Tensor] = {}
        self.updates: list[int] = []
        self.identity: dict[str, Any] = {}
        for path in paths:
            self.add(path)

    def add(self, path: Path) -> None:
        """Read another checkpoint; NMTError where it is of another model."""
        checkpoint = load_checkpoint(path)
        self.state, self.skipped = RunState(**checkpoint["nmt"]), checkpoint["skipped"]
        model, size, tokenizer = self.state.config["model"], self.state.vocabulary_size, self.state.tokenizer
        identity = {"model": model, "vocabulary_size": size, "tokenizer": tokenizer}
        if changed := difference(self.identity or identity, identity):
            raise NMTError(f"{path} is of another model than the checkpoints before it ({changed})")
        self.identity = identity
        for name, tensor in model_weights(checkpoint).items():
            if name in self.sums:
                self.sums[name] += tensor
            else:
                self.sums[name] = tensor.to(torch.float64, copy=True)
        self.updates.append(checkpoint["global_step"])

    def average(self) -> Average:
        model = Transformer(ModelConfig(**self.state.config["model"]), self.state.vocabulary_size)
        model.load_state_dict({name: (total / len(self.updates)).float() for name, total in self.sums.items()})
        return Average(model.eval(), [*self.updates], self.state, self.updates[-1], self.skipped)


def averaged_model(paths: list[Path]) -> Average:
    """The mean of checkpoints (section 6.1); NMTError where they are of different models."""
    return RunningMean(*paths).average()


def delivered_model(run: Path, checkpoints: CheckpointConfig, split: PreparedSplit, device: torch.device) -> Average:
    """The model that a run delivers, by the rule `checkpoints.average`; `split` is its validation set."""
    paths = kept_checkpoints(run, checkpoints.every_steps, checkpoints.keep)
    if checkpoints.average == "all":
        return averaged_model(paths)
    newest, mean, best = averaged_model(paths[-1:]), RunningMean(), run / "checkpoints" / "best.ckpt"
    losses: dict[str, float] = {}
    sources: dict[str, list[Path]] = {}

    def consider(average: Average, paths: list[Path]) -> None:
        name = ", ".join(f"{update:,}" for update in sorted(average.updates))
        if name not in losses:
            smoothing = newest.state.config["optim"]["label_smoothing"]
            losses[name] = validation_loss(average.model.to(device), split, smoothing)
            sources[name] = paths

    with enough_memory_or("validation of the candidates does not fit: pass checkpoints.average=all"):
        for number, path in enumerate(reversed(paths), 1):
            mean.add(path)
            consider(mean.average(), paths[-number:])
        if best.is_file():
            with suppress(UnreadableCheckpoint):  # there are others
                consider(averaged_model([best]), [best])
    chosen = averaged_model(sources[min(losses, key=losses.__getitem__)])
    return replace(chosen, state=newest.state, made=newest.made, skipped=newest.skipped, losses=losses)


def check_skipped(average: Average, run: Path) -> None:
    """NMTError where a run skipped more than half of its updates."""
    if 2 * average.skipped > average.made:
        raise NMTError(
            f"{run}: no model is written, because optim.not_finite=skip left out {average.skipped:,} of the "
            f"{average.made:,} updates, whose gradients are not finite. Pass a lower optim.factor, or "
            "trainer.precision=32-true, with name=OTHER"
        )


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
        "updates": average.made,
        "averaged": average.updates,
        **{key: getattr(state, key) for key in ("tokens", "seconds", "devices", "versions", "corpus", "config")},
        **state.seen,
    }
    if state.init:
        training["init"] = state.init
    if average.losses:
        training["candidates"] = average.losses
    if score:
        training["score"] = {**asdict(score[0]), "sentences": score[1]}
    description = ModelDescription(
        state.config["model"], state.vocabulary_size, state.source, state.target, state.tokenizer, training
    )
    parameters = sum(parameter.numel() for parameter in average.model.parameters())
    write_model_directory(output, average.model, tokenizer_file, description, model_card(description, parameters))
